/* The end of a small tile: a thread holds tm x tn sums. Whole tiles go straight from the registers to an aligned C, all
 * else goes by way of shared memory. Where blocks share the tile's k they meet in the workspace (device/parts.h). */
#ifndef RUNG_SMALL_END_H
#define RUNG_SMALL_END_H

#include "device/end.h"
#include "device/parts.h"

/* Sizes of a tile and of the threads that compute it: constants where they are used. */
struct small_shape {
    int bm, bn, tm, tn;
    int rows, cols; /* threads down and across */
    int slices, threads;
    unsigned few; /* so many vectors of parts one block adds alone */
};

/* A block's tile and part of k, and a thread's place in the tile and slice of k. */
struct small_place {
    unsigned parts, part, which; /* which: of all tiles of all matrices */
    int row, col;
    int x, y, slice;
};

/* Row i and column j of a thread, counted from the tile's corner. */
RUNG_DEVICE int small_row(const struct small_shape s, int y, int i)
{
    return (i / 4 * s.rows + y) * 4 + i % 4;
}

RUNG_DEVICE int small_col(const struct small_shape s, int x, int j)
{
    return (j / 4 * s.cols + x) * 4;
}

RUNG_DEVICE void small_store_registers(const struct end *e, const struct small_shape s, const struct small_place *at,
                                       const float *acc)
{
    float *c = e->c + (at->row + at->y * 4) * e->g->ldc + at->col + at->x * 4;
#pragma unroll
    for (int i = 0; i < s.tm; i++)
#pragma unroll
        for (int j = 0; j < s.tn; j += 4) {
            const float *sum = acc + i * s.tn + j;
            end_put4(c + (i / 4 * s.rows * 4 + i % 4) * e->g->ldc + j * s.cols,
                     make_float4(e->alpha * sum[0], e->alpha * sum[1], e->alpha * sum[2], e->alpha * sum[3]));
        }
}

/* Does the same where the tile may hang over C, and C may lie at any address. */
RUNG_DEVICE void small_store_edges(const struct end *e, const struct small_shape s, const struct small_place *at,
                                   const float *acc)
{
    const int row = at->row + at->y * (s.tm < 4 ? s.tm : 4), col = at->col + at->x * 4, rows = (int)e->g->m - row,
              cols = (int)e->g->n - col;
    float *c = e->c + row * e->g->ldc + col;
#pragma unroll
    for (int i = 0; i < s.tm; i++) {
        const int r = i / 4 * s.rows * 4 + i % 4;
        if (r >= rows)
            continue;
#pragma unroll
        for (int j = 0; j < s.tn; j += 4) {
            const float *sum = acc + i * s.tn + j;
            float *out = c + r * e->g->ldc + j * s.cols;
            if (e->vector && j * s.cols + 3 < cols) {
                end_put4(out, make_float4(e->alpha * sum[0], e->alpha * sum[1], e->alpha * sum[2], e->alpha * sum[3]));
                continue;
            }
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (j * s.cols + q < cols)
                    out[q] = e->alpha * sum[q];
        }
    }
}

/* Stores alpha times the sums plus beta times what C holds, which a thread asks for four rows at a time. */
RUNG_DEVICE void small_store_with_old(const struct end *e, const struct small_shape s, const struct small_place *at,
                                      const float *acc)
{
    const int row = at->row + at->y * (s.tm < 4 ? s.tm : 4), col = at->col + at->x * 4;
#pragma unroll
    for (int i0 = 0; i0 < s.tm; i0 += 4) {
        float4 old[4][4];
#pragma unroll
        for (int i = 0; i < 4 && i0 + i < s.tm; i++)
#pragma unroll
            for (int j = 0; j < s.tn; j += 4)
                old[i][j / 4] = end_old4(e, row + i0 * s.rows + i, col + j * s.cols);
#pragma unroll
        for (int i = 0; i < 4 && i0 + i < s.tm; i++)
#pragma unroll
            for (int j = 0; j < s.tn; j += 4) {
                const float *sum = acc + (i0 + i) * s.tn + j;
                end_put_inside(e, row + i0 * s.rows + i, col + j * s.cols,
                               end_blend4(e, make_float4(sum[0], sum[1], sum[2], sum[3]), old[i][j / 4]));
            }
    }
}

/* Puts a thread's sums into shared memory: a tile for each slice. */
RUNG_DEVICE void small_leave_sums(const struct small_shape s, const struct small_place *at, float *sums,
                                  const float *acc)
{
#pragma unroll
    for (int i = 0; i < s.tm; i++)
#pragma unroll
        for (int j = 0; j < s.tn; j += 4) {
            const float *sum = acc + i * s.tn + j;
            *(float4 *)(sums + at->slice * s.bm * s.bn + small_row(s, at->y, i) * s.bn + small_col(s, at->x, j)) =
                make_float4(sum[0], sum[1], sum[2], sum[3]);
        }
}

/* Adds one vector's sums of all slices, in their order. */
RUNG_DEVICE float4 small_sum(const struct small_shape s, const float *sums, unsigned v)
{
    return slice_sum((const float4 *)sums + v, s.slices, s.bm * s.bn / 4);
}

/* This block's part goes to memory; it adds and stores the chunks that fall to it. */
RUNG_DEVICE void small_meet(const struct end *e, const struct small_shape s, const struct small_place *at, float *sums)
{
    const unsigned vectors = s.bm * s.bn / 4;
    unsigned *counters = parts_counters(e->g) + (size_t)at->which * 2;
    float4 *slot = (float4 *)e->g->workspace + (size_t)at->which * at->parts * vectors, *totals = (float4 *)sums;
    const unsigned begun = threadIdx.x == 0 ? parts_begun(counters) : 0;
#pragma unroll 1
    for (int v = threadIdx.x; v < (int)vectors; v += s.threads)
        __stcg(slot + (size_t)at->part * vectors + v, small_sum(s, sums, v));
    const unsigned chunk = parts_chunk(at->parts, vectors, s.few);
    struct parts_share mine = parts_join(counters, at->parts, (vectors + chunk - 1) / chunk, begun, 1);
#pragma unroll 1
    for (; mine.begin < mine.end; mine.begin++) {
        const unsigned first = mine.begin * chunk, count = min(chunk, vectors - first);
        const unsigned of_each =
            parts_add_chunk(totals, slot, slot + vectors, vectors, at->parts, first, count, s.threads, 4);
        __syncthreads();
        if (!e->vector) {
            end_store_lines(e, at->row, at->col, 4 * first, 4 * count, sums, of_each, 4 * count, threadIdx.x, s.bn,
                            s.threads);
            __syncthreads();
            continue;
        }
        end_store_vectors(e, at->row, at->col, first, count, totals, of_each, count, threadIdx.x, s.bn, s.threads);
        __syncthreads();
    }
}

/* All threads call this when the block's copies have ended. `sums` is shared memory for the slices' tiles. */
RUNG_DEVICE void small_end(const struct end *e, const struct small_shape s, const struct small_place *at, float *sums,
                           const float *acc)
{
    const int rows = (int)e->g->m - at->row, cols = (int)e->g->n - at->col;
    if (s.slices == 1 && e->vector && END_IS_PLAIN(e) && at->parts == 1 && rows >= s.bm && cols >= s.bn) {
        small_store_registers(e, s, at, acc);
        return;
    }
    __syncthreads();
    small_leave_sums(s, at, sums, acc);
    __syncthreads();
    if (at->parts > 1) {
        small_meet(e, s, at, sums);
        return;
    }
    if (!e->vector) {
        end_store_lines(e, at->row, at->col, 0, s.bm * s.bn, sums, s.slices, s.bm * s.bn, threadIdx.x, s.bn, s.threads);
        return;
    }
    end_store_vectors(e, at->row, at->col, 0, s.bm * s.bn / 4, (const float4 *)sums, s.slices, s.bm * s.bn / 4,
                      threadIdx.x, s.bn, s.threads);
}

#endif
