/* A plain product is one product whose arguments are certainly right: a CPU runs it without validation and plan, which
 * take as long as a product of a fifth of a microsecond. What must be asked first is inline, since every test takes
 * time that shows beside a small one: where the caller's values are at hand, most tests fall away. */
#ifndef RUNG_CORE_PLAIN_H
#define RUNG_CORE_PLAIN_H

#include "rung.h"

/* A single plain product, row-major as every backend sees it. */
typedef struct rung_plain {
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    float alpha, beta;
    int trans_a, trans_b;
} rung_plain;

/* Returns true where the sizes are right and so small that nothing overflows. Numbers that are too large, or negative,
 * have a high bit, so that one test does for several. */
static inline int rung_is_sound_shape(const rung_plain *s)
{
    enum { SIDE_BITS = 20, LD_BITS = 40 };
    uint64_t sides = ((uint64_t)s->m - 1) | ((uint64_t)s->n - 1) | ((uint64_t)s->k - 1);
    if (sides >> SIDE_BITS || (uint64_t)(s->lda | s->ldb | s->ldc) >> LD_BITS)
        return 0;
    return s->lda >= (s->trans_a ? s->m : s->k) && s->ldb >= (s->trans_b ? s->k : s->n) && s->ldc >= s->n;
}

/* Returns whether a sound shape is so small that no second thread could help, some 2 us of work: an FMA counts as much
 * as an element that comes from a cache. */
static inline int rung_is_small_shape(const rung_plain *s)
{
    enum { SIDE = 32, MOST = 1 << 17 };
    uint64_t sides = ((uint64_t)s->m - 1) | ((uint64_t)s->n - 1) | ((uint64_t)s->k - 1);
    return sides < SIDE || (s->m * s->n + s->k * (s->m + s->n)) + s->m * s->n * s->k <= MOST;
}

/* Returns whether the result is certainly apart from both operands. Whole lines count, the last one's rest included: a
 * little too much, and cheap. */
static inline int rung_is_apart(const rung_plain *s)
{
    uintptr_t a = (uintptr_t)s->a, b = (uintptr_t)s->b, c = (uintptr_t)s->c;
    uintptr_t end_a = a + (uintptr_t)(s->lda * (s->trans_a ? s->k : s->m)) * sizeof(float);
    uintptr_t end_b = b + (uintptr_t)(s->ldb * (s->trans_b ? s->n : s->k)) * sizeof(float);
    uintptr_t end_c = c + (uintptr_t)(s->ldc * s->m) * sizeof(float);
    return (a >= end_c || c >= end_a) && (b >= end_c || c >= end_b);
}

/* Puts an sgemm call's arguments where every backend has them. */
static inline void rung_plain_fill(rung_plain *s, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                                   int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                                   const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    int swap = layout == RUNG_COL_MAJOR; /* as in core/validate.c */
    s->m = swap ? n : m;
    s->n = swap ? m : n;
    s->k = k;
    s->a = swap ? b : a;
    s->lda = swap ? ldb : lda;
    s->b = swap ? a : b;
    s->ldb = swap ? lda : ldb;
    s->c = c;
    s->ldc = ldc;
    s->alpha = alpha;
    s->beta = beta;
    s->trans_a = (int)(swap ? trans_b : trans_a);
    s->trans_b = (int)(swap ? trans_a : trans_b);
}

/* Returns whether alpha and the pointers are certainly right. */
static inline int rung_is_sound_call(const rung_plain *s)
{
    return s->alpha != 0.0f && s->a && s->b && s->c && ((uintptr_t)s->a | (uintptr_t)s->b | (uintptr_t)s->c) % 4 == 0 &&
           rung_is_apart(s);
}

/* Turns an sgemm call into a plain product. Returns whether it certainly is one; a call that fails here may still be
 * right. */
static inline int rung_plain_of(rung_plain *s, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                                int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                                const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    rung_plain_fill(s, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return ((unsigned)layout | (unsigned)trans_a | (unsigned)trans_b) <= 1 && rung_is_sound_shape(s) &&
           rung_is_sound_call(s);
}

/* Returns whether the call asks for one product and nothing else. */
static inline int rung_asks_for_one(const rung_gemm *g)
{
    return g->batch == 1 && !g->a_array && !g->b_array && !g->c_array && !g->alpha_device && !g->beta_device &&
           !g->bias_kind && !g->activation;
}

static inline int rung_plain_of_gemm(rung_plain *s, const rung_gemm *g)
{
    return rung_asks_for_one(g) && rung_plain_of(s, g->layout, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a,
                                                 g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
}

/* For the BLAS drop-in, whose callers feel each hand that thirteen arguments pass: runs what rung_plain_of() has
 * accepted and is small. RUNG_UNSUPPORTED: this context has no way of plain products, and nothing is done. */
RUNG_API rung_status rung_small_run(rung_context *context, const rung_plain *small);

#endif
