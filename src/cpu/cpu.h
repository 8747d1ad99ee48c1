/* A product as the CPU computes it. Row-major, as in cuda/device/args.h. */
#ifndef RUNG_CPU_H
#define RUNG_CPU_H

#include "core/backend.h"
#include "cpu/features.h"
#include "cpu/kernels/kernels.h"
#include "cpu/pool.h"

/* What a product would do, for `rung explain`. */
typedef struct rung_cpu_note {
    const char *path, *rule; /* which way, and which question of the plan decided for it */
    int threads;
} rung_cpu_note;

/* The plans that a context made lately; free() ends them. */
typedef struct rung_gemm_plans rung_gemm_plans;
rung_gemm_plans *rung_gemm_plans_create(void); /* NULL where there is no memory */
/* How tiny products that were asked for lately are computed (gemm_tiny.c). free() ends it. */
typedef struct rung_tiny_ways rung_tiny_ways;
rung_tiny_ways *rung_tiny_ways_create(void); /* NULL where there is no memory */

/* What a CPU kernel is given, and what production kernels cut into strips and pieces of k. Ladder rungs read the first
 * half only. */
typedef struct rung_cpu_args {
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    float alpha;
    int trans_a; /* not beside trans_b: the compiler would ask for both at once, which waits until both are written */
    float beta;
    int trans_b;
    int threads;
    rung_pool *pool;           /* the context's pool; production kernels borrow threads and memory from it */
    const rung_processor *cpu; /* this machine's */
    rung_gemm_plans *plans;    /* the context's; NULL: every plan is made anew */
    rung_tiny_ways *ways;      /* the context's; NULL: every tiny product is asked about anew */
    int64_t batch;             /* production: products in a row, `stride` apart or listed in the arrays; 0 is 1 */
    int64_t stride_a, stride_b, stride_c;
    const float *const *a_array;
    const float *const *b_array;
    float *const *c_array;
    int in_order;        /* production: the bits may depend on k only, not on m and n */
    rung_bias bias_kind; /* production */
    rung_activation activation;
    const float *bias;
    rung_cpu_note *note;           /* production: where it is not NULL it is filled in, and nothing is computed */
    const rung_cpu_kernel *kernel; /* production: the micro-kernels */
} rung_cpu_args;

/* A row or a column whose elements lie side by side is its own transpose, and is taken as it lies: a row of A as not
 * transposed, a column of A as a transposed one, along which vectors run, a row of B as not transposed. What lies one
 * float apart from the next is a single one. */
static inline void rung_cpu_lay_flat(rung_cpu_args *p)
{
    if (p->trans_a && p->lda == 1) {
        p->trans_a = 0;
        p->lda = p->k;
    } else if (!p->trans_a && p->lda == 1 && p->m > 1) {
        p->trans_a = 1;
        p->lda = p->m;
    }
    if (p->trans_b && p->ldb == 1) {
        p->trans_b = 0;
        p->ldb = p->n;
    }
}

/* Runs a product: chooses the path, splits the work, packs where that pays. The bits of the result depend on the shape
 * and the instruction set, not on the number of threads. */
rung_status rung_cpu_gemm(const rung_cpu_args *p);
/* The same for a single product without bias and activation, whose alpha and sides are not 0, and whose C is no column
 * of elements side by side. */
rung_status rung_cpu_gemm_plain(const rung_cpu_args *p);
/* Returns the micro-kernels of a row of the catalog; NULL for a rung of the ladder. */
const rung_cpu_kernel *rung_cpu_kernel_of(const rung_kernel *row);

#endif
