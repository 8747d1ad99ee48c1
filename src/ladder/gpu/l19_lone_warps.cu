/* l19_lone_warps: small and skinny products: eight warps share a tile's k, and none waits for another on the way.
 * Changed from l19_tall_skinny: each warp has a ring of its own and takes every eighth step of k, so the loop has no
 * barrier; what lies outside a matrix arrives as zeros by the same asynchronous copies; where tiles are few, several
 * blocks share a tile, and the last of them to arrive adds the parts in order: one launch. Tiles are 32x32: half a tile
 * is empty where 16 rows or 16 columns are asked for, and both ways are equally good.
 * Limits: 12 floats from shared memory for 32 FMAs; the launcher chooses the parts.
 */
#include "device/async.h"
#include "device/parts.h"
#include "device/tile.h"

enum { BM = 32, BN = 32, BK = 16, TM = 4, TN = 8, STAGES = 3, WARPS = 8, THREADS = 32 * WARPS };
enum { A_ROW = BK + 4, A_FLOATS = BM * A_ROW, STAGE_FLOATS = A_FLOATS + BK * BN };
enum { SUM_ROW = BN + 8, SUM_FLOATS = BM * SUM_ROW }; /* a warp's sums, in its place in shared memory */

/* The block's tile, and this lane's share of the copies: four units of A, eight rows apart, and four of B. */
typedef struct place {
    int64_t row0, column0;
    const float *a, *b;  /* the lane's first unit of step 0 */
    int a_rows, b_bytes; /* how many of its rows of A exist; how much of its units of B */
    bool aligned;        /* all rows of A and B start on 16 bytes */
} place;

/* Of `wanted` from `at` on, those that lie before `end`. */
RUNG_DEVICE int inside(int64_t at, int64_t end, int wanted)
{
    return (int)(at >= end ? 0 : end - at < wanted ? end - at : wanted);
}

RUNG_DEVICE place place_of(const rung_args *g, int64_t row0, int64_t column0)
{
    int lane = threadIdx.x % 32;
    place p = {row0, column0};
    p.a = g->a + (row0 + lane / 4) * g->lda + lane % 4 * 4;
    p.b = g->b + lane / 8 * g->ldb + column0 + lane % 8 * 4;
    p.a_rows = (inside(row0 + lane / 4, g->m, BM) + 7) / 8;
    p.b_bytes = 4 * inside(column0 + lane % 8 * 4, g->n, 4);
    p.aligned = rung_is_aligned16(g->a, g->lda) && rung_is_aligned16(g->b, g->ldb);
    return p;
}

/* Rows x columns floats from (r0, c0) on, one at a time, for rows that start anywhere. */
RUNG_DEVICE void fetch_floats(float *to, int to_row, const float *x, int64_t ld, int64_t all_rows, int64_t all_columns,
                              int64_t r0, int64_t c0, int rows, int columns)
{
#pragma unroll 1
    for (int e = threadIdx.x % 32; e < rows * columns; e += 32) {
        int r = e / columns, c = e % columns;
        bool there = r0 + r < all_rows && c0 + c < all_columns;
        rung_async_copy4_or_zero(to + r * to_row + c, there ? x + (r0 + r) * ld + c0 + c : x, there);
    }
}

/* lesson fetch */
/* The warp asks for the 16 of k from i on. A copy brings the bytes that exist and fills its 16 with zeros. */
RUNG_DEVICE void fetch(const rung_args *g, const place *p, float *stage, int64_t i)
{
    if (!p->aligned) {
        fetch_floats(stage, A_ROW, g->a, g->lda, g->m, g->k, p->row0, i, BM, BK);
        fetch_floats(stage + A_FLOATS, BN, g->b, g->ldb, g->k, g->n, i, p->column0, BK, BN);
        return;
    }
    int lane = threadIdx.x % 32, bytes = 4 * inside(i + lane % 4 * 4, g->k, 4);
    int b_rows = (inside(i + lane / 8, g->k, BK) + 3) / 4;
    const float *a = p->a + i, *b = p->b + i * g->ldb;
    rung_shared_at a_to = rung_shared_address(stage + lane / 4 * A_ROW + lane % 4 * 4);
    rung_shared_at b_to = rung_shared_address(stage + A_FLOATS + lane / 8 * BN + lane % 8 * 4);
#pragma unroll
    for (int t = 0; t < 4; t++, a += 8 * g->lda, b += 4 * g->ldb) {
        rung_async_put16(a_to + t * 8 * A_ROW * 4, a, t < p->a_rows ? bytes : 0);
        rung_async_put16(b_to + t * 4 * BN * 4, b, t < b_rows ? p->b_bytes : 0);
    }
}
/* /lesson */

/* Sixteen steps of k: 12 loads of 16 bytes for 128 FMAs, four times. */
RUNG_DEVICE void multiply(float acc[TM][TN], const float *a_mine, const float *b_mine)
{
#pragma unroll
    for (int kk = 0; kk < BK; kk += 4) {
        float a[TM][4], b[TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
            rung_get4(a[t], a_mine + t * 8 * A_ROW + kk);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            rung_get4(b, b_mine + (kk + j) * BN);
            rung_get4(b + 4, b_mine + (kk + j) * BN + 16);
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
        }
    }
}

/* lesson loop */
/* This warp's steps of k: first, first + 8, first + 16, ... before end. Its ring is its own: no barrier of the block.
 */
RUNG_DEVICE void walk(const rung_args *g, const place *p, float *ring, int y, int x, int64_t first, int64_t end,
                      float acc[TM][TN])
{
    for (int s = 0; s < STAGES - 1; s++) {
        if (first + s * WARPS < end)
            fetch(g, p, ring + s * STAGE_FLOATS, (first + s * WARPS) * BK);
        rung_async_commit();
    }
    int stage = 0;
    for (int64_t step = first; step < end; step += WARPS) {
        int64_t ahead = step + (STAGES - 1) * WARPS;
        rung_async_wait(STAGES - 2);
        __syncwarp(); /* all lanes' copies are here, and nobody reads the slot that is filled next */
        if (ahead < end)
            fetch(g, p, ring + (stage + STAGES - 1) % STAGES * STAGE_FLOATS, ahead * BK);
        rung_async_commit();
        const float *now = ring + stage * STAGE_FLOATS;
        multiply(acc, now + y * A_ROW, now + A_FLOATS + x);
        stage = (stage + 1) % STAGES;
    }
}
/* /lesson */

/* Adds the eight warps' sums in order; then, where blocks share the tile, the blocks' parts. True: `sum` is complete.
 */
RUNG_DEVICE bool add_up(const rung_args *g, float *shared, int y, int x, float acc[TM][TN], float4 *sum)
{
    /* lesson meet */
    float *mine = shared + threadIdx.x / 32 * SUM_FLOATS;
    int r = threadIdx.x / (BN / 4), c = threadIdx.x % (BN / 4) * 4, parts = g->split_k;
    rung_async_wait(0);
    __syncthreads(); /* the rings are free */
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            *(float4 *)&mine[(y + t * 8) * SUM_ROW + x + u * 4] =
                make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]);
    __syncthreads();
    *sum = slice_sum((const float4 *)&shared[r * SUM_ROW + c], WARPS, SUM_FLOATS / 4);
    if (parts == 1)
        return true;
    int64_t tile = rung_block_row() * (gridDim.x / parts) + blockIdx.x / parts, part = blockIdx.x % parts;
    float4 *kept = (float4 *)g->workspace + tile * parts * THREADS + threadIdx.x;
    __stcg(kept + part * THREADS, *sum);
    if (!parts_arrive_last(parts_counters(g) + tile, (unsigned)parts))
        return false;
    parts_sum_many(sum, kept, kept + THREADS, THREADS, (unsigned)parts, 1, 0);
    return true;
    /* /lesson */
}

RUNG_KERNEL(THREADS, 2) l19_lone_warps(const __grid_constant__ rung_args g)
{
    extern __shared__ __align__(16) float rings[]; /* [warp][stage]: A as [row][k], B as [k][column] */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, parts = g.split_k, part = blockIdx.x % parts;
    int y = lane / 2 % 8, x = (lane / 16 * 2 + lane % 2) * 4; /* rows y + 8 t; columns x .. x + 3 and 16 further */
    place p = place_of(&g, rung_block_row() * BM, (int64_t)(blockIdx.x / parts) * BN);
    int64_t steps = (g.k + BK - 1) / BK, begin = steps * part / parts, end = steps * (part + 1) / parts;
    float acc[TM][TN] = {{0.0f}};
    float4 sum;

    walk(&g, &p, rings + warp * STAGES * STAGE_FLOATS, y, x, begin + warp, end, acc);
    if (!add_up(&g, rings, y, x, acc, &sum))
        return;
    bool c_inside = rung_is_aligned16(g.c, g.ldc) && p.row0 + BM <= g.m && p.column0 + BN <= g.n;
    rung_write4(&g, p.row0 + threadIdx.x / (BN / 4), p.column0 + threadIdx.x % (BN / 4) * 4, sum, c_inside);
}
