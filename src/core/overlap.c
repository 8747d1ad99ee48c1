/* Finds whether the result lies on an operand. A matrix is lines of floats, a fixed step apart, and two of them may lie
 * between each other's lines (parts of one larger matrix do): only floats that both hold count. Costs a few comparisons
 * where the spans are apart; only where they are not, lines are compared. */
#include "core/overlap.h"
#include "core/status.h"

typedef struct lines {
    int64_t at, count, length, step; /* in floats */
    int64_t batch, stride;           /* the stride is not negative: `at` is the lowest matrix's */
} lines;

static int64_t span_of(const lines *x)
{
    return (x->count - 1) * x->step + x->length;
}

static lines lines_of(const float *at, int64_t count, int64_t length, int64_t step, int64_t batch, int64_t stride)
{
    lines x = {(int64_t)((uintptr_t)at / sizeof *at), count, length, step, batch, stride};
    if (batch > 1 && stride < 0) {
        x.at += stride * (batch - 1);
        x.stride = -stride;
    }
    return x;
}

static int64_t floor_of(int64_t x, int64_t by)
{
    return x / by - (x % by < 0);
}

/* Finds the whole numbers i in [least, most] with low < i * step < high. Returns 0 when there are none. */
static int some_between(int64_t low, int64_t high, int64_t step, int64_t least, int64_t most)
{
    int64_t first = floor_of(low, step) + 1, last = -floor_of(-high, step) - 1;
    first = first > least ? first : least;
    last = last < most ? last : most;
    return first <= last;
}

/* Returns true where two single matrices have a float in common. */
static int meet(const lines *x, const lines *y)
{
    int64_t from_x_to_y = y->at - x->at;
    if (from_x_to_y >= span_of(x) || -from_x_to_y >= span_of(y))
        return 0;
    if (x->step == y->step) /* line i of x and line j of y: only i - j counts */
        return some_between(from_x_to_y - x->length, from_x_to_y + y->length, x->step, 1 - y->count, x->count - 1);
    if (x->count < y->count)
        return meet(y, x);
    for (int64_t j = 0; j < y->count; j++) {
        int64_t line = from_x_to_y + j * y->step;
        if (some_between(line - x->length, line + y->length, x->step, 0, x->count - 1))
            return 1;
    }
    return 0;
}

/* Returns true where any matrix of one batch and any of the other have one in common. */
static int batches_meet(const lines *x, const lines *y)
{
    int64_t end_x = x->at + x->stride * (x->batch - 1) + span_of(x);
    int64_t end_y = y->at + y->stride * (y->batch - 1) + span_of(y);
    if (y->at >= end_x || x->at >= end_y)
        return 0;
    int64_t matrices = y->stride ? y->batch : 1;
    for (int64_t e = 0; e < (x->stride ? x->batch : 1); e++) {
        lines one = *x, other = *y;
        one.at = x->at + e * x->stride;
        int64_t first = y->stride ? floor_of(one.at - span_of(y) - y->at, y->stride) + 1 : 0;
        for (int64_t f = first > 0 ? first : 0; f < matrices; f++) {
            other.at = y->at + f * y->stride;
            if (other.at >= one.at + span_of(&one))
                break;
            if (meet(&one, &other))
                return 1;
        }
    }
    return 0;
}

static int results_meet(const lines *c)
{
    lines next = *c;
    for (int64_t e = 1; e < c->batch && e * c->stride < span_of(c); e++) {
        next.at = c->at + e * c->stride;
        if (meet(c, &next))
            return 1;
    }
    return 0;
}

rung_status rung_refuse_overlap(const rung_problem *p, const rung_gemm *g)
{
    if (p->arrays)
        return RUNG_SUCCESS;
    int swap = g->layout == RUNG_COL_MAJOR;
    lines c = lines_of(p->c, p->m, p->n, p->ldc, p->batch, p->stride_c);
    if (c.batch > 1 && results_meet(&c))
        return rung_fail_argument(12, "the results of the batch overlap: their stride is %lld, and C is %lld x %lld",
                                  (long long)g->stride_c, (long long)g->m, (long long)g->n);
    if (p->bias_kind != RUNG_NO_BIAS) {
        const int64_t length = rung_bias_length(p);
        const lines bias = lines_of(p->bias, 1, length, length, 1, 0);
        if (batches_meet(&c, &bias))
            return rung_fail_argument(
                12, "c (%p) overlaps bias (%p), which is read while C is written: give C memory of its own",
                (void *)g->c, (const void *)g->bias);
    }
    if (p->k == 0)
        return RUNG_SUCCESS;
    lines a = lines_of(p->a, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda, p->batch, p->stride_a);
    lines b = lines_of(p->b, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb, p->batch, p->stride_b);
    int on_a = batches_meet(&c, &a), on_b = !on_a && batches_meet(&c, &b);
    if (on_a || on_b)
        return rung_fail_argument(12,
                                  "c (%p) overlaps %s (%p), which is read while C is written: give C memory of its own",
                                  (void *)g->c, on_a != swap ? "a" : "b", (const void *)(on_a != swap ? g->a : g->b));
    return RUNG_SUCCESS;
}
