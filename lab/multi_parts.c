/* Runs a product whose operands are nowhere whole, for sizes beyond one GPU's memory or the host's. They are made part
 * by part in the memory of one process's ranks and checked part by part. */
#include "lab/host.h"
#include "lab/measure.h"
#include "lab/multi.h"
#include "lab/multi_shared.h"
#include "lab/projection.h"

#include <stdlib.h>
#include <string.h>

#ifndef LAB_PIECE_FLOATS /* tests have small ones */
#define LAB_PIECE_FLOATS (1 << 26)
#endif
enum { PIECE_FLOATS = LAB_PIECE_FLOATS };

typedef struct parts {
    lab_distributed x;
    float *piece; /* pinned: some columns of a part */
    double *sums; /* of a piece's projection, with sizes */
} parts;

/* A stretch has columns [col, col + cols) of a rank's part; row0 and col0 say where it begins in the whole matrix. */
typedef struct stretch {
    int matrix, rank;
    int64_t row0, rows, col0, col, cols;
} stretch;

typedef rung_status visitor(parts *p, const stretch *s, void *state);

/* Visits the parts of all ranks. Parts are rectangles: one block a rank. */
static rung_status visit(parts *p, int matrix, visitor *visit_one, void *state)
{
    const rung_matrix *d = &p->x.desc[matrix];
    for (int rank = 0; rank < rung_multi_ranks(p->x.multi); rank++) {
        int64_t rows = rung_matrix_rows(d, rank), cols = rung_matrix_cols(d, rank);
        int64_t width = rows > 0 ? PIECE_FLOATS / d->ld : 0;
        for (int64_t col = 0; col < cols && width > 0; col += width) {
            stretch s = {matrix, rank, rank / d->grid_cols * d->mb, rows, rank % d->grid_cols * d->nb, col, width};
            s.cols = col + width < cols ? width : cols - col;
            LAB_TRY(visit_one(p, &s, state));
        }
    }
    return RUNG_SUCCESS;
}

typedef struct making {
    float *at;
    int64_t ld, rows, global_ld, first;
    uint64_t seed;
} making;

static void make_columns(void *state, int64_t begin, int64_t end)
{
    const making *x = state;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < x->rows; i++)
            x->at[i + j * x->ld] = lab_element(x->seed, x->first + i + j * x->global_ld);
}

static rung_status make(parts *p, const stretch *s, void *state)
{
    const rung_matrix *d = &p->x.desc[s->matrix];
    making x = {p->piece, d->ld, s->rows, d->m, s->row0 + (s->col0 + s->col) * d->m, (uint64_t)s->matrix << 40};
    (void)state;
    lab_parallel(lab_all_cores(), s->cols, make_columns, &x);
    return rung_multi_upload(p->x.multi, s->rank, p->x.part[s->matrix][s->rank] + s->col * d->ld, p->piece,
                             s->cols * d->ld * 4);
}

/* Adds to out: the stretch times v, or its transpose times v. */
typedef struct projecting {
    int trans;
    double **v, **out;
} projecting;

static rung_status project(parts *p, const stretch *s, void *state)
{
    const rung_matrix *d = &p->x.desc[s->matrix];
    const projecting *x = state;
    int64_t from = x->trans ? s->row0 : s->col0 + s->col, to = x->trans ? s->col0 + s->col : s->row0,
            count = x->trans ? s->cols : s->rows;
    const double *v[2] = {x->v[0] + from, x->v[1] + from};
    double *sums[2] = {p->sums, p->sums + count};
    LAB_TRY(rung_multi_download(p->x.multi, s->rank, p->piece, p->x.part[s->matrix][s->rank] + s->col * d->ld,
                                s->cols * d->ld * 4));
    lab_project(p->piece, s->rows, s->cols, d->ld, x->trans, v, sums);
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < count; j++)
            x->out[i][to + j] += sums[i][j];
    return RUNG_SUCCESS;
}

static rung_status judge(parts *p, rung_math math, lab_multi_row *row)
{
    const lab_shape *s = p->x.shape;
    double *memory = calloc(1, lab_vectors_bytes(s));
    rung_status status = RUNG_SUCCESS;
    if (!memory)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a projection of %zu bytes", lab_vectors_bytes(s));
    lab_vectors v = lab_vectors_of(memory, s);
    projecting steps[] = {{s->trans_b, v.x, v.y}, {s->trans_a, v.y, v.z}, {0, v.x, v.r}};
    static const int matrices[] = {1, 0, 2};
    for (int i = 0; i < 3; i++)
        LAB_TRY_OUT(visit(p, matrices[i], project, &steps[i]));
    row->error_u = lab_vectors_error(&v, s->m);
    row->bound_u = lab_projection_bound(s, math);
out:
    free(memory);
    return status;
}

static rung_status open_parts(parts *p, int rows, int cols)
{
    int64_t longest = 1;
    LAB_TRY(lab_distributed_open(&p->x, rows, cols, 0));
    for (int i = 0; i < 3; i++)
        longest = p->x.desc[i].ld > longest ? p->x.desc[i].ld : longest;
    if (longest > PIECE_FLOATS)
        return lab_fail(RUNG_UNSUPPORTED, "a part of %lld rows is more than is moved at a time", (long long)longest);
    p->sums = malloc((size_t)PIECE_FLOATS * 2 * sizeof *p->sums);
    if (!p->sums)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the sums of a projection");
    LAB_TRY(rung_multi_host_alloc(p->x.multi, (int64_t)PIECE_FLOATS * 4, (void **)&p->piece));
    LAB_TRY(visit(p, 0, make, NULL));
    return visit(p, 1, make, NULL);
}

static void close_parts(parts *p)
{
    lab_distributed_close(&p->x);
    rung_multi_host_free(p->x.multi, p->piece);
    free(p->sums);
}

rung_status lab_multi_parts(rung_multi *multi, const lab_shape *shape, int rows, int cols, int repeats, rung_math math,
                            lab_multi_row *row)
{
    parts p = {.x = {.multi = multi, .shape = shape}};
    double us[LAB_MULTI_REPEATS];
    rung_status status;
    memset(row, 0, sizeof *row);
    repeats = lab_multi_repeats(repeats);
    if (rung_multi_held_ranks(multi) != rung_multi_ranks(multi) || shape->batch > 1 || shape->pad)
        return lab_fail(RUNG_UNSUPPORTED, "parts are made in one process, and without batches and pads");
    LAB_TRY_OUT(open_parts(&p, rows, cols));
    for (int i = 0; i < repeats; i++) {
        double start_s = lab_now_s();
        LAB_TRY_OUT(lab_distributed_multiply(&p.x));
        us[i] = (lab_now_s() - start_s) * 1e6;
    }
    row->us = lab_stats_of(us, repeats);
    status = judge(&p, math, row);
out:
    close_parts(&p);
    return status;
}
