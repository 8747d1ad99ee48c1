/* How every rung from c02 on begins: C = beta * C, after which it only adds. beta = 0 must not read C. */
#ifndef RUNG_LADDER_CPU_START_H
#define RUNG_LADDER_CPU_START_H

#include "cpu/cpu.h"

static inline void start_from_beta(const rung_cpu_args *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float *c = &g->c[i * g->ldc + j];
            *c = g->beta == 0.0f ? 0.0f : g->beta * *c;
        }
}

#endif
