/* rung_psgemm: checks, agreement between the ranks, and the product's description. */
#include "multi/fetch.h"
#include "multi/product.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct operand {
    const char *name;
    const float *const *local;
    int64_t i, j, rows, cols; /* the sub-matrix, as it is stored */
    const rung_matrix *desc;
} operand;

static rung_status check_operand(const rung_multi *multi, const operand *x, int needed)
{
    RUNG_TRY(multi_matrix_check(x->desc, x->name, multi->ranks, multi->first_rank, multi->held));
    RUNG_TRY(multi_matrix_check_part(x->desc, x->name, x->i, x->j, x->rows, x->cols));
    if (!needed)
        return RUNG_SUCCESS;
    for (int h = 0; h < multi->held; h++) {
        int rank = multi->first_rank + h;
        if (rung_matrix_rows(x->desc, rank) * rung_matrix_cols(x->desc, rank) == 0)
            continue;
        if (!x->local || !x->local[h])
            return rung_fail(RUNG_INVALID_ARGUMENT, "rank %d's part of %s is NULL", rank, x->name);
        if ((uintptr_t)x->local[h] % 4)
            return rung_fail(RUNG_INVALID_ARGUMENT, "rank %d's part of %s (%p) is not aligned to 4 bytes", rank,
                             x->name, (const void *)x->local[h]);
    }
    return RUNG_SUCCESS;
}

static rung_status check_call(const rung_multi *multi, const multi_product *p, const operand x[3])
{
    for (int i = 0; i < SIDES; i++)
        if (p->side[i].trans != RUNG_NO_TRANS && p->side[i].trans != RUNG_TRANS)
            return rung_fail(RUNG_INVALID_ARGUMENT, "trans_%c is %d: RUNG_NO_TRANS (0) or RUNG_TRANS (1)", 'a' + i,
                             p->side[i].trans);
    if (p->m < 0 || p->n < 0 || p->k < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is %" PRId64 ": it must not be negative",
                         p->m < 0   ? "m"
                         : p->n < 0 ? "n"
                                    : "k",
                         p->m < 0   ? p->m
                         : p->n < 0 ? p->n
                                    : p->k);
    int multiplies = p->alpha != 0.0f && p->m > 0 && p->n > 0 && p->k > 0;
    for (int i = 0; i < 3; i++)
        RUNG_TRY(check_operand(multi, &x[i], i == 2 ? p->m > 0 && p->n > 0 : multiplies));
    return RUNG_SUCCESS;
}

static int64_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void describe(multi_record *r, const multi_product *p, const operand x[3])
{
    static const char *const origins[3][2] = {{"ia", "ja"}, {"ib", "jb"}, {"ic", "jc"}};
    multi_record_add(r, "trans_a", p->side[SIDE_A].trans);
    multi_record_add(r, "trans_b", p->side[SIDE_B].trans);
    multi_record_add(r, "m", p->m);
    multi_record_add(r, "n", p->n);
    multi_record_add(r, "k", p->k);
    multi_record_add(r, "alpha (its bits)", bits_of(p->alpha));
    multi_record_add(r, "beta (its bits)", bits_of(p->beta));
    for (int i = 0; i < 3; i++) {
        multi_record_add(r, origins[i][0], x[i].i);
        multi_record_add(r, origins[i][1], x[i].j);
        multi_record_matrix(r, "abc"[i], x[i].desc);
    }
}

/* Finds for every row (A) or column (B) of C's grid where the lines that it needs lie in the stored matrix. */
static rung_status find_lines(multi_product *p, int side)
{
    product_side *s = &p->side[side];
    multi_axis along = side == SIDE_A ? multi_rows(p->desc_c) : multi_cols(p->desc_c);
    multi_axis stored = s->lines_are_rows ? multi_rows(s->desc) : multi_cols(s->desc);
    int64_t origin = side == SIDE_A ? p->row_origin : p->col_origin, length = side == SIDE_A ? p->m : p->n;
    s->groups = along.parts;
    s->lines = calloc((size_t)along.parts, sizeof *s->lines);
    if (!s->lines)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the layout of %s", s->name);
    for (int part = 0; part < along.parts; part++) {
        int64_t first = multi_axis_count(&along, part, origin), end = multi_axis_count(&along, part, origin + length);
        RUNG_TRY(multi_runs_find(&s->lines[part], &along, part, first, end - first, origin, &stored, s->line_origin));
    }
    return RUNG_SUCCESS;
}

static void find_shares(multi_product *p, float *const *c)
{
    multi_axis rows = multi_rows(p->desc_c), cols = multi_cols(p->desc_c);
    for (int i = 0; i < p->multi->held; i++) {
        product_share *share = &p->shares[i];
        share->rank = p->multi->first_rank + i;
        share->row = multi_grid_row(p->desc_c, share->rank);
        share->col = multi_grid_col(p->desc_c, share->rank);
        if (share->row < 0)
            continue;
        int64_t row = multi_axis_count(&rows, share->row, p->row_origin),
                col = multi_axis_count(&cols, share->col, p->col_origin);
        share->lines[SIDE_A] = multi_axis_count(&rows, share->row, p->row_origin + p->m) - row;
        share->lines[SIDE_B] = multi_axis_count(&cols, share->col, p->col_origin + p->n) - col;
        if (c && c[i])
            share->c = c[i] + row + col * p->desc_c->ld;
    }
}

static void set_side(multi_product *p, int side, rung_transpose trans, const operand *x)
{
    product_side *s = &p->side[side];
    s->name = x->name;
    s->desc = x->desc;
    s->local = x->local;
    s->trans = trans;
    s->lines_are_rows = (side == SIDE_A) == (trans == RUNG_NO_TRANS);
}

/* Says where the sub-matrices begin, counted from 0, once that has been checked. */
static void set_origins(multi_product *p, const operand x[3])
{
    for (int i = 0; i < SIDES; i++) {
        product_side *s = &p->side[i];
        s->line_origin = (s->lines_are_rows ? x[i].i : x[i].j) - 1;
        s->k_origin = (s->lines_are_rows ? x[i].j : x[i].i) - 1;
    }
    p->row_origin = x[2].i - 1;
    p->col_origin = x[2].j - 1;
}

static rung_status run(multi_product *p, float *const *c)
{
    rung_status status;
    find_shares(p, c);
    RUNG_TRY_OUT(find_lines(p, SIDE_A));
    RUNG_TRY_OUT(find_lines(p, SIDE_B));
    status = multi_product_run(p);
out:
    if (status != RUNG_SUCCESS) {
        if (p->multi->transport) /* the other ranks wait for this one's parts */
            status = multi_break(p->multi, status);
        status = multi_drain(p->multi, status);
    }
    fetch_message_close(p);
    multi_panels_free(&p->cuts);
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; p->side[side].lines && i < p->side[side].groups; i++)
            multi_runs_free(&p->side[side].lines[i]);
        free(p->side[side].lines);
    }
    return status;
}

rung_status rung_psgemm(rung_multi *multi, rung_transpose trans_a, rung_transpose trans_b, int64_t m, int64_t n,
                        int64_t k, float alpha, const float *const *a, int64_t ia, int64_t ja,
                        const rung_matrix *desc_a, const float *const *b, int64_t ib, int64_t jb,
                        const rung_matrix *desc_b, float beta, float *const *c, int64_t ic, int64_t jc,
                        const rung_matrix *desc_c)
{
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    int ta = trans_a != RUNG_NO_TRANS, tb = trans_b != RUNG_NO_TRANS;
    const operand x[3] = {{"A", a, ia, ja, ta ? k : m, ta ? m : k, desc_a},
                          {"B", b, ib, jb, tb ? n : k, tb ? k : n, desc_b},
                          {"C", (const float *const *)c, ic, jc, m, n, desc_c}};
    multi_product *p = calloc(1, sizeof *p);
    multi_record record = {.count = 0};
    rung_status status = RUNG_SUCCESS;
    if (!p)
        status = rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a product (%zu bytes)", sizeof *p);
    if (p) {
        *p = (multi_product){.multi = multi, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .desc_c = desc_c};
        set_side(p, SIDE_A, trans_a, &x[0]);
        set_side(p, SIDE_B, trans_b, &x[1]);
        status = check_call(multi, p, x);
        describe(&record, p, x);
    }
    status = multi_agree(multi, &record, status, "rung_psgemm");
    if (status == RUNG_SUCCESS) {
        set_origins(p, x);
        status = run(p, c);
    }
    free(p);
    return status;
}
