/* A product as every backend sees it: checked, and row-major. Column-major callers were swapped on the way in. */
#ifndef RUNG_CORE_PROBLEM_H
#define RUNG_CORE_PROBLEM_H

#include "rung.h"

typedef struct rung_problem {
    /* What a plan depends on. */
    int64_t m, n, k; /* k is 0 when alpha is 0 by value: A and B are then never read */
    int64_t lda, ldb, ldc;
    int64_t batch, stride_a, stride_b, stride_c;
    int trans_a, trans_b;
    int arrays;                    /* pointer-array batch */
    int align_a, align_b, align_c; /* largest power of two, at most 16, that divides every row's address, in bytes */
    int beta_zero;                 /* known on the host to be 0 */
    int device_scalars;
    int in_order; /* the bits of an element may depend on k only, not on the size of C: src/multi */
    rung_bias bias_kind;
    rung_activation activation;
    rung_math math;
    /* What a plan does not depend on. */
    const float *a, *b;
    float *c;
    const float *const *a_array;
    const float *const *b_array;
    float *const *c_array;
    float alpha, beta;
    const float *alpha_device, *beta_device;
    const float *bias;
} rung_problem;

/* Returns how many floats the bias has. */
static inline int64_t rung_bias_length(const rung_problem *problem)
{
    return problem->bias_kind == RUNG_NO_BIAS ? 0 : problem->bias_kind == RUNG_BIAS_PER_ROW ? problem->m : problem->n;
}

/* Returns RUNG_ACCEPTS_NN ... RUNG_ACCEPTS_TT for the problem's transposes. */
unsigned rung_problem_trans_bit(const rung_problem *problem);

#endif
