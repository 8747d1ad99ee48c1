/* BLAS's rules, in BLAS's order: the first wrong number by position is the one reported, then the first wrong pointer.
 * Positions are those of sgemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc). */
#include "core/validate.h"
#include "core/status.h"

#include <inttypes.h>

unsigned rung_problem_trans_bit(const rung_problem *problem)
{
    return 1u << ((problem->trans_a ? 2 : 0) + (problem->trans_b ? 1 : 0));
}

static rung_status check_size(int argument, const char *name, int64_t value)
{
    if (value < 0)
        return rung_fail_argument(argument, "%s is %" PRId64 ": it must not be negative", name, value);
    return RUNG_SUCCESS;
}

static rung_status check_ld(int argument, const char *name, int64_t ld, int64_t least, const char *what)
{
    if (ld < (least > 1 ? least : 1))
        return rung_fail_argument(argument, "%s is %" PRId64 ": it must be at least %" PRId64 ", %s", name, ld,
                                  least > 1 ? least : 1, what);
    return RUNG_SUCCESS;
}

/* Checks that addresses, in bytes, fit an int64_t: lines * ld * 4, and the batch on top of that, whichever way it goes.
 * A single line leads to no next one, wherever that would be. */
static rung_status check_extent(int argument, const char *name, int64_t lines, int64_t length, int64_t ld,
                                int64_t stride, int64_t batch)
{
    const int64_t step = lines > 1 ? ld : length;
    int64_t elements, span, bytes;
    if (__builtin_mul_overflow(lines, step, &elements) || __builtin_mul_overflow(stride, batch - 1, &span) ||
        (span < 0 && __builtin_sub_overflow((int64_t)0, span, &span)) ||
        __builtin_add_overflow(elements, span, &elements) || __builtin_mul_overflow(elements, (int64_t)4, &bytes))
        return rung_fail_argument(
            argument, "%s would span more than 2^63 bytes (%" PRId64 " lines, ld %" PRId64 ", batch %" PRId64 ")", name,
            lines, ld, batch);
    return RUNG_SUCCESS;
}

static rung_status check_enums(const rung_gemm *g)
{
    if (g->layout != RUNG_COL_MAJOR && g->layout != RUNG_ROW_MAJOR)
        return rung_fail(RUNG_INVALID_ARGUMENT, "layout is %d: RUNG_COL_MAJOR (0) or RUNG_ROW_MAJOR (1)", g->layout);
    if (g->trans_a != RUNG_NO_TRANS && g->trans_a != RUNG_TRANS)
        return rung_fail_argument(1, "trans_a is %d: RUNG_NO_TRANS (0) or RUNG_TRANS (1)", g->trans_a);
    if (g->trans_b != RUNG_NO_TRANS && g->trans_b != RUNG_TRANS)
        return rung_fail_argument(2, "trans_b is %d: RUNG_NO_TRANS (0) or RUNG_TRANS (1)", g->trans_b);
    return RUNG_SUCCESS;
}

static rung_status check_shape(const rung_gemm *g)
{
    RUNG_TRY(check_enums(g));
    RUNG_TRY(check_size(3, "m", g->m));
    RUNG_TRY(check_size(4, "n", g->n));
    RUNG_TRY(check_size(5, "k", g->k));
    int row = g->layout == RUNG_ROW_MAJOR;
    /* The length of a stored line, which the leading dimension must cover. */
    int64_t line_a = row != (g->trans_a == RUNG_TRANS) ? g->k : g->m;
    int64_t line_b = row != (g->trans_b == RUNG_TRANS) ? g->n : g->k;
    int64_t line_c = row ? g->n : g->m;
    RUNG_TRY(check_ld(8, "lda", g->lda, line_a, "the length of a stored line of A"));
    RUNG_TRY(check_ld(10, "ldb", g->ldb, line_b, "the length of a stored line of B"));
    RUNG_TRY(check_ld(13, "ldc", g->ldc, line_c, "the length of a stored line of C"));
    if (g->batch < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "batch is %" PRId64 ": it must not be negative", g->batch);
    if (g->batch > 1 && g->stride_c == 0 && g->c && !g->c_array)
        return rung_fail(RUNG_INVALID_ARGUMENT, "stride_c is 0 for a batch of %" PRId64 ": the results would overlap",
                         g->batch);
    int64_t batch = g->batch > 0 && !g->c_array ? g->batch : 1;
    RUNG_TRY(check_extent(8, "A", line_a == g->k ? g->m : g->k, line_a, g->lda, g->stride_a, batch));
    RUNG_TRY(check_extent(10, "B", line_b == g->n ? g->k : g->n, line_b, g->ldb, g->stride_b, batch));
    RUNG_TRY(check_extent(13, "C", row ? g->m : g->n, line_c, g->ldc, g->stride_c, batch));
    if (g->bias_kind < RUNG_NO_BIAS || g->bias_kind > RUNG_BIAS_PER_COLUMN)
        return rung_fail(RUNG_INVALID_ARGUMENT, "bias_kind is %d: 0, 1 or 2", g->bias_kind);
    if (g->activation < RUNG_IDENTITY || g->activation > RUNG_GELU)
        return rung_fail(RUNG_INVALID_ARGUMENT, "activation is %d: 0, 1 or 2", g->activation);
    return RUNG_SUCCESS;
}

static rung_status check_pointers(const rung_gemm *g, const rung_problem *p)
{
    int arrays = g->a_array || g->b_array || g->c_array;
    if (p->k > 0 && (arrays ? !g->a_array : !g->a))
        return rung_fail_argument(7, "%s is NULL", arrays ? "a_array" : "a");
    if (p->k > 0 && (arrays ? !g->b_array : !g->b))
        return rung_fail_argument(9, "%s is NULL", arrays ? "b_array" : "b");
    if (arrays ? !g->c_array : !g->c)
        return rung_fail_argument(12, "%s is NULL", arrays ? "c_array" : "c");
    if (g->bias_kind != RUNG_NO_BIAS && !g->bias)
        return rung_fail(RUNG_INVALID_ARGUMENT, "bias is NULL although bias_kind is %d", g->bias_kind);
    if (g->bias_kind != RUNG_NO_BIAS && (uintptr_t)g->bias % 4)
        return rung_fail(RUNG_INVALID_ARGUMENT, "bias must be aligned to 4 bytes (%p)", (const void *)g->bias);
    if (arrays) /* then these are unused */
        return RUNG_SUCCESS;
    if ((uintptr_t)g->a % 4 || (uintptr_t)g->b % 4 || (uintptr_t)g->c % 4)
        return rung_fail_argument((uintptr_t)g->a % 4   ? 7
                                  : (uintptr_t)g->b % 4 ? 9
                                                        : 12,
                                  "operands must be aligned to 4 bytes (a %p, b %p, c %p)", (const void *)g->a,
                                  (const void *)g->b, (const void *)g->c);
    return RUNG_SUCCESS;
}

static void to_row_major(const rung_gemm *g, rung_problem *p)
{
    int swap = g->layout == RUNG_COL_MAJOR; /* Ct = Bt * At, and a column-major matrix read by rows is its transpose */
    p->m = swap ? g->n : g->m;
    p->n = swap ? g->m : g->n;
    p->a = swap ? g->b : g->a;
    p->b = swap ? g->a : g->b;
    p->a_array = swap ? g->b_array : g->a_array;
    p->b_array = swap ? g->a_array : g->b_array;
    p->lda = swap ? g->ldb : g->lda;
    p->ldb = swap ? g->lda : g->ldb;
    p->stride_a = swap ? g->stride_b : g->stride_a;
    p->stride_b = swap ? g->stride_a : g->stride_b;
    p->trans_a = swap ? g->trans_b : g->trans_a;
    p->trans_b = swap ? g->trans_a : g->trans_b;
    p->bias_kind = g->bias_kind;
    if (swap && g->bias_kind != RUNG_NO_BIAS)
        p->bias_kind = g->bias_kind == RUNG_BIAS_PER_ROW ? RUNG_BIAS_PER_COLUMN : RUNG_BIAS_PER_ROW;
}

/* Where a single line's leading dimension leads beyond all memory it becomes the line's length: below it is multiplied
 * by, and added to addresses that nobody reads. */
static int64_t addressable(int64_t ld, int64_t lines, int64_t length)
{
    const int64_t most = (int64_t)1 << 45; /* floats of 2^47 bytes, all that a process may have */
    return lines > 1 || ld <= most ? ld : length > 1 ? length : 1;
}

rung_status rung_validate(const rung_gemm *g, rung_math math, rung_problem *p, int *nothing)
{
    *nothing = 0;
    RUNG_TRY(check_shape(g));
    to_row_major(g, p);
    p->arrays = g->a_array || g->b_array || g->c_array;
    p->k = g->alpha == 0.0f && !g->alpha_device ? 0 : g->k;
    p->c = g->c;
    p->c_array = g->c_array;
    p->ldc = addressable(g->ldc, p->m, p->n);
    p->lda = addressable(p->lda, p->trans_a ? g->k : p->m, p->trans_a ? p->m : g->k);
    p->ldb = addressable(p->ldb, p->trans_b ? p->n : g->k, p->trans_b ? g->k : p->n);
    p->batch = g->batch;
    p->stride_c = g->stride_c;
    if (g->batch == 1 && !p->arrays) /* strides of a single product mean nothing: keep plans of one shape alike */
        p->stride_a = p->stride_b = p->stride_c = 0;
    p->alpha = p->k ? g->alpha : 0.0f; /* an infinite alpha must not meet a sum of nothing */
    p->beta = g->beta;
    p->alpha_device = p->k ? g->alpha_device : NULL;
    p->beta_device = g->beta_device;
    p->device_scalars = g->alpha_device || g->beta_device;
    p->beta_zero = g->beta == 0.0f && !g->beta_device;
    p->bias = g->bias;
    p->activation = g->activation;
    p->math = math;
    if (p->m == 0 || p->n == 0 || p->batch == 0) {
        *nothing = 1;
        return RUNG_SUCCESS;
    }
    if (p->k == 0 && p->beta == 1.0f && !p->beta_device && p->bias_kind == RUNG_NO_BIAS &&
        p->activation == RUNG_IDENTITY) {
        *nothing = 1;
        return RUNG_SUCCESS;
    }
    RUNG_TRY(check_pointers(g, p));
    /* The addresses inside a pointer array are unknown here. */
    p->align_a = p->arrays ? 4 : rung_alignment(p->a, p->lda, p->stride_a);
    p->align_b = p->arrays ? 4 : rung_alignment(p->b, p->ldb, p->stride_b);
    p->align_c = p->arrays ? 4 : rung_alignment(p->c, p->ldc, p->stride_c);
    return RUNG_SUCCESS;
}

static rung_status check_elements(int argument, const char *name, const float *const *array, int64_t batch)
{
    for (int64_t i = 0; i < batch; i++)
        if (!array[i])
            return rung_fail_argument(argument, "%s[%" PRId64 "] is NULL", name, i);
    return RUNG_SUCCESS;
}

rung_status rung_refuse_null_elements(const rung_problem *p, const rung_gemm *g)
{
    if (p->k > 0) {
        RUNG_TRY(check_elements(7, "a_array", g->a_array, g->batch));
        RUNG_TRY(check_elements(9, "b_array", g->b_array, g->batch));
    }
    return check_elements(12, "c_array", (const float *const *)g->c_array, g->batch);
}
