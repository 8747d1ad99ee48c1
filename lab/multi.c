/* Measures products over several ranks. */
#include "lab/multi.h"
#include "lab/host.h"
#include "lab/measure.h"
#include "lab/multi_shared.h"
#include "lab/projection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fill {
    float *at;
    uint64_t seed;
} fill;

static void fill_part(void *state, int64_t first, int64_t end)
{
    const fill *f = state;
    for (int64_t i = first; i < end; i++)
        f->at[i] = lab_element(f->seed, i);
}

static rung_status new_matrix(rung_multi *owner, float **at, int64_t floats, uint64_t seed)
{
    LAB_TRY(rung_multi_host_alloc(owner, floats * 4, (void **)at));
    fill f = {*at, seed};
    lab_parallel(lab_all_cores(), floats, fill_part, &f);
    return RUNG_SUCCESS;
}

rung_status lab_whole_new(lab_whole *w, const lab_shape *s, rung_multi *owner)
{
    *w = (lab_whole){.shape = *s, .owner = owner};
    w->lda = lab_stored_rows(s->trans_a, s->m, s->k);
    w->ldb = lab_stored_rows(s->trans_b, s->k, s->n);
    w->ldc = s->m;
    if (s->batch > 1 || s->pad)
        return lab_fail(RUNG_UNSUPPORTED, "%s are not distributed", s->batch > 1 ? "batches" : "pads");
    if (rung_multi_first_rank(owner) != 0)
        return RUNG_SUCCESS;
    int64_t floats = s->m * s->k + s->k * s->n + s->m * s->n;
    if (floats > (int64_t)1 << 59 || lab_memory_lacks(floats * 4))
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for operands of %.0f bytes", 4.0 * (double)floats);
    rung_status status;
    LAB_TRY_OUT(new_matrix(owner, &w->a, s->m * s->k, 1));
    LAB_TRY_OUT(new_matrix(owner, &w->b, s->k * s->n, (uint64_t)1 << 40));
    LAB_TRY_OUT(new_matrix(owner, &w->c, s->m * s->n, (uint64_t)1 << 41));
    return RUNG_SUCCESS;
out:
    lab_whole_free(w);
    return status;
}

void lab_whole_free(lab_whole *w)
{
    rung_multi_host_free(w->owner, w->a);
    rung_multi_host_free(w->owner, w->b);
    rung_multi_host_free(w->owner, w->c);
    w->a = w->b = w->c = NULL;
}

void lab_multi_grid(const lab_shape *s, int ranks, int *rows, int *cols)
{
    double best = INFINITY;
    for (int r = 1; r <= ranks; r++) {
        double sum = (double)s->m / r + (double)s->n / (ranks / r);
        if (ranks % r == 0 && sum < best) {
            best = sum;
            *rows = r;
            *cols = ranks / r;
        }
    }
}

/* ---- projections ---- */

rung_status lab_projection(const lab_whole *w, rung_math math, double *error_u, double *bound_u)
{
    const lab_shape *s = &w->shape;
    double *memory = malloc(lab_vectors_bytes(s));
    if (!memory)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a projection of %zu bytes", lab_vectors_bytes(s));
    lab_vectors v = lab_vectors_of(memory, s);
    lab_project(w->b, lab_stored_rows(s->trans_b, s->k, s->n), lab_stored_rows(!s->trans_b, s->k, s->n), w->ldb,
                s->trans_b, (const double **)v.x, v.y);
    lab_project(w->a, lab_stored_rows(s->trans_a, s->m, s->k), lab_stored_rows(!s->trans_a, s->m, s->k), w->lda,
                s->trans_a, (const double **)v.y, v.z);
    lab_project(w->c, s->m, s->n, w->ldc, 0, (const double **)v.x, v.r);
    *error_u = lab_vectors_error(&v, s->m);
    free(memory);
    *bound_u = lab_projection_bound(s, math);
    return RUNG_SUCCESS;
}

typedef struct hashing {
    const uint32_t *words;
    uint64_t *sums; /* a chunk each */
    int64_t count;
} hashing;

enum { HASH_CHUNK = 1 << 20 };

static void hash_chunks(void *state, int64_t first, int64_t end)
{
    const hashing *h = state;
    for (int64_t c = first; c < end; c++) {
        uint64_t hash = 1469598103934665603u;
        int64_t from = c * HASH_CHUNK, to = from + HASH_CHUNK < h->count ? from + HASH_CHUNK : h->count;
        for (int64_t i = from; i < to; i++)
            hash = (hash ^ h->words[i]) * 1099511628211u;
        h->sums[c] = hash;
    }
}

static rung_status hash_of(const lab_whole *w, uint64_t *bits)
{
    int64_t count = w->shape.m * w->shape.n, chunks = (count + HASH_CHUNK - 1) / HASH_CHUNK;
    hashing h = {(const uint32_t *)w->c, malloc((size_t)chunks * sizeof(uint64_t)), count};
    uint64_t hash = 0;
    if (!h.sums)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the sums of %lld pieces of C", (long long)chunks);
    lab_parallel(lab_all_cores(), chunks, hash_chunks, &h);
    for (int64_t i = 0; i < chunks; i++)
        hash = (hash ^ h.sums[i]) * 0x9e3779b97f4a7c15u + 1;
    free(h.sums);
    *bits = hash;
    return RUNG_SUCCESS;
}

static rung_status judge(const lab_whole *w, rung_math math, lab_multi_row *row)
{
    if (!w->c)
        return RUNG_SUCCESS;
    LAB_TRY(hash_of(w, &row->bits));
    return lab_projection(w, math, &row->error_u, &row->bound_u);
}

/* ---- runs ---- */

rung_status lab_distributed_open(lab_distributed *d, int rows, int cols, int64_t block)
{
    const lab_shape *s = d->shape;
    int64_t m[3] = {lab_stored_rows(s->trans_a, s->m, s->k), lab_stored_rows(s->trans_b, s->k, s->n), s->m},
            n[3] = {lab_stored_rows(!s->trans_a, s->m, s->k), lab_stored_rows(!s->trans_b, s->k, s->n), s->n};
    for (int i = 0; i < 3; i++) {
        int64_t mb = block ? block : (m[i] + rows - 1) / rows, nb = block ? block : (n[i] + cols - 1) / cols;
        rung_matrix_init(&d->desc[i], m[i], n[i], mb > 0 ? mb : 1, nb > 0 ? nb : 1, rows, cols);
        for (int r = 0; r < rung_multi_held_ranks(d->multi); r++) {
            int rank = rung_multi_first_rank(d->multi) + r;
            int64_t floats = d->desc[i].ld * rung_matrix_cols(&d->desc[i], rank);
            LAB_TRY(rung_multi_alloc(d->multi, r, floats * 4, (void **)&d->part[i][r]));
        }
    }
    return RUNG_SUCCESS;
}

void lab_distributed_close(lab_distributed *d)
{
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < rung_multi_held_ranks(d->multi); r++)
            rung_multi_free(d->multi, r, d->part[i][r]);
}

rung_status lab_distributed_multiply(lab_distributed *d)
{
    const lab_shape *s = d->shape;
    return rung_psgemm(d->multi, s->trans_a, s->trans_b, s->m, s->n, s->k, 1.0f, (const float *const *)d->part[0], 1, 1,
                       &d->desc[0], (const float *const *)d->part[1], 1, 1, &d->desc[1], 0.0f,
                       (float *const *)d->part[2], 1, 1, &d->desc[2]);
}

int lab_multi_repeats(int asked)
{
    return asked < 1 ? 1 : asked > LAB_MULTI_REPEATS ? LAB_MULTI_REPEATS : asked;
}

/* Makes all of C NaN, so that what a product does not write shows: what the way before has left there may be right. */
static void spoil_c(const lab_whole *w)
{
    if (w->c)
        memset(w->c, 0xff, (size_t)(w->shape.m * w->shape.n) * 4);
}

static rung_status scatter(lab_distributed *d, const lab_whole *w)
{
    const float *from[3] = {w->a, w->b, w->c};
    for (int i = 0; i < 3; i++)
        LAB_TRY(rung_scatter(d->multi, 0, from[i], d->desc[i].m, (float *const *)d->part[i], &d->desc[i]));
    return RUNG_SUCCESS;
}

rung_status lab_multi_distributed(rung_multi *multi, const lab_whole *w, int rows, int cols, int64_t block, int repeats,
                                  int trace, rung_math math, lab_multi_row *row)
{
    lab_distributed d = {.multi = multi, .shape = &w->shape};
    double us[LAB_MULTI_REPEATS];
    rung_status status;
    memset(row, 0, sizeof *row);
    repeats = lab_multi_repeats(repeats);
    spoil_c(w);
    LAB_TRY_OUT(lab_distributed_open(&d, rows, cols, block));
    LAB_TRY_OUT(scatter(&d, w));
    LAB_TRY_OUT(lab_distributed_multiply(&d));
    for (int i = 0; i < repeats; i++) {
        LAB_TRY_OUT(rung_multi_barrier(multi));
        double start_s = lab_now_s();
        LAB_TRY_OUT(lab_distributed_multiply(&d));
        LAB_TRY_OUT(rung_multi_barrier(multi));
        us[i] = (lab_now_s() - start_s) * 1e6;
    }
    row->us = lab_stats_of(us, repeats);
    if (trace) {
        LAB_TRY_OUT(rung_multi_trace(multi, 1));
        LAB_TRY_OUT(lab_distributed_multiply(&d));
        LAB_TRY_OUT(rung_multi_trace(multi, 0));
    }
    LAB_TRY_OUT(rung_gather(multi, 0, (const float *const *)d.part[2], &d.desc[2], w->c, w->ldc));
    status = judge(w, math, row);
out:
    lab_distributed_close(&d);
    return status;
}

static rung_status run_host(rung_multi *multi, const lab_whole *w)
{
    const lab_shape *s = &w->shape;
    return rung_multi_sgemm(multi, RUNG_COL_MAJOR, s->trans_a, s->trans_b, s->m, s->n, s->k, 1.0f, w->a, w->lda, w->b,
                            w->ldb, 0.0f, w->c, w->ldc);
}

rung_status lab_multi_host(rung_multi *multi, const lab_whole *w, int repeats, int trace, rung_math math,
                           lab_multi_row *row)
{
    double us[LAB_MULTI_REPEATS];
    memset(row, 0, sizeof *row);
    repeats = lab_multi_repeats(repeats);
    spoil_c(w);
    LAB_TRY(run_host(multi, w));
    for (int i = 0; i < repeats; i++) {
        double start_s = lab_now_s();
        LAB_TRY(run_host(multi, w));
        us[i] = (lab_now_s() - start_s) * 1e6;
    }
    row->us = lab_stats_of(us, repeats);
    if (trace) {
        LAB_TRY(rung_multi_trace(multi, 1));
        LAB_TRY(run_host(multi, w));
        LAB_TRY(rung_multi_trace(multi, 0));
    }
    return judge(w, math, row);
}

rung_status lab_multi_one_gpu(const lab_whole *w, rung_math math, int repeats, lab_stats *us)
{
    const lab_shape *s = &w->shape;
    lab_place place;
    lab_buffer x[3] = {{0}};
    rung_context *context = NULL;
    double times[LAB_MULTI_REPEATS];
    int64_t floats[3] = {s->m * s->k, s->k * s->n, s->m * s->n};
    const float *from[3] = {w->a, w->b, w->c};
    rung_status status;
    repeats = lab_multi_repeats(repeats);
    LAB_TRY(lab_place_open(&place, 0, 0));
    for (int i = 0; i < 3; i++) {
        LAB_TRY_OUT(lab_buffer_reserve(&place, &x[i], floats[i] * 4));
        LAB_TRY_OUT(lab_upload(&place, x[i].at, from[i], (size_t)floats[i] * 4));
    }
    LAB_TRY_OUT(lab_place_context(&place, math, &context));
    for (int i = -1; i < repeats; i++) {
        double start_s = lab_now_s();
        LAB_TRY_OUT(rung_sgemm(context, RUNG_COL_MAJOR, s->trans_a, s->trans_b, s->m, s->n, s->k, 1.0f, x[0].at, w->lda,
                               x[1].at, w->ldb, 0.0f, x[2].at, w->ldc));
        LAB_TRY_OUT(rung_context_synchronize(context));
        if (i >= 0)
            times[i] = (lab_now_s() - start_s) * 1e6;
    }
    *us = lab_stats_of(times, repeats);
out:
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        lab_buffer_free(&place, &x[i]);
    lab_place_close(&place);
    return status;
}
