/* What a CPU kernel is given. Row-major, as in cuda/device/args.h. */
#ifndef RUNG_CPU_H
#define RUNG_CPU_H

#include "core/backend.h"

typedef struct rung_cpu_args {
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    float alpha, beta;
    int trans_a, trans_b;
    int threads;
} rung_cpu_args;

#endif
