/* c01_naive: the definition, one dot product a result. */
#include "cpu/cpu.h"

rung_status c01_naive(const void *arguments);

/* lesson */
rung_status c01_naive(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float acc = 0.0f;
            for (int64_t p = 0; p < g->k; p++)
                acc += g->a[i * g->lda + p] * g->b[p * g->ldb + j];
            float *c = &g->c[i * g->ldc + j];
            *c = g->beta == 0.0f ? g->alpha * acc : g->alpha * acc + g->beta * *c;
        }
    return RUNG_SUCCESS;
}
/* /lesson */
