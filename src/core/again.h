/* A call that repeats the one before it on other operands: what was checked then holds, so that only addresses are
 * looked at. Loops over equal products make such calls, and below 4 us a GPU waits for the host. */
#ifndef RUNG_CORE_AGAIN_H
#define RUNG_CORE_AGAIN_H

#include "core/backend.h"
#include "core/validate.h"

/* The call before, and the product that it was. */
typedef struct rung_again {
    rung_gemm gemm;
    rung_problem problem;
    int64_t span_a, span_b, span_c; /* bytes from a matrix's first float to behind its last; 0: no call is kept */
    int64_t span_bias;              /* the same of the bias; 0: it has none */
    rung_rerun rerun;
} rung_again;

/* Keeps a call that passed every check. Some calls are not kept: what is NULL in arrays must be looked for each time,
 * and where nothing is multiplied operands may be NULL. */
void rung_again_keep(rung_again *again, const rung_gemm *gemm, const rung_problem *problem);

static inline int rung_again_says_the_same(const rung_gemm *x, const rung_gemm *y)
{
    const uint64_t sizes = (uint64_t)(x->m ^ y->m) | (uint64_t)(x->n ^ y->n) | (uint64_t)(x->k ^ y->k) |
                           (uint64_t)(x->lda ^ y->lda) | (uint64_t)(x->ldb ^ y->ldb) | (uint64_t)(x->ldc ^ y->ldc) |
                           (uint64_t)(x->batch ^ y->batch) | (uint64_t)(x->stride_a ^ y->stride_a) |
                           (uint64_t)(x->stride_b ^ y->stride_b) | (uint64_t)(x->stride_c ^ y->stride_c);
    const unsigned kinds = ((unsigned)x->layout ^ (unsigned)y->layout) | ((unsigned)x->trans_a ^ (unsigned)y->trans_a) |
                           ((unsigned)x->trans_b ^ (unsigned)y->trans_b) |
                           ((unsigned)x->bias_kind ^ (unsigned)y->bias_kind) |
                           ((unsigned)x->activation ^ (unsigned)y->activation);
    return !(sizes | kinds) && x->a_array == y->a_array && x->b_array == y->b_array && x->c_array == y->c_array &&
           x->alpha == y->alpha && x->beta == y->beta && x->alpha_device == y->alpha_device &&
           x->beta_device == y->beta_device && x->bias == y->bias;
}

static inline int rung_again_is_apart(uintptr_t c, uintptr_t span_c, uintptr_t from, uintptr_t span)
{
    return c + span_c <= from || from + span <= c;
}

/* Returns whether the call is the one before, on operands that are certainly right, and puts their addresses into the
 * problem. A call that does not fit may still be right. */
static inline int rung_again_fits(rung_again *again, const rung_gemm *gemm)
{
    rung_problem *p = &again->problem;
    if (!again->span_c || !rung_again_says_the_same(&again->gemm, gemm))
        return 0;
    const int swap = gemm->layout == RUNG_COL_MAJOR;
    const float *a = swap ? gemm->b : gemm->a, *b = swap ? gemm->a : gemm->b;
    const uintptr_t at_a = (uintptr_t)a, at_b = (uintptr_t)b, at_c = (uintptr_t)gemm->c;
    if (!at_a || !at_b || !at_c || (at_a | at_b | at_c) % sizeof(float) ||
        rung_alignment(a, p->lda, p->stride_a) != p->align_a || rung_alignment(b, p->ldb, p->stride_b) != p->align_b ||
        rung_alignment(gemm->c, p->ldc, p->stride_c) != p->align_c ||
        !rung_again_is_apart(at_c, (uintptr_t)again->span_c, at_a, (uintptr_t)again->span_a) ||
        !rung_again_is_apart(at_c, (uintptr_t)again->span_c, at_b, (uintptr_t)again->span_b) ||
        !rung_again_is_apart(at_c, (uintptr_t)again->span_c, (uintptr_t)p->bias, (uintptr_t)again->span_bias))
        return 0;
    p->a = a, p->b = b, p->c = gemm->c;
    return 1;
}

#endif
