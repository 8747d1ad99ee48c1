/* l19_batches: many small products in one launch: a warp has whole products of its own, one after another.
 * Changed from l19_lone_warps: the warps of a block share nothing. All tiles of all products of the batch stand in one
 * line, each warp takes every so many of them, and its ring runs on from one to the next: while it stores one product,
 * the next one's operands are under way. Nobody adds parts, so there is no barrier at all.
 * Limits: a tile is 32x32, so 16x16 products waste three quarters of the FMAs; memory is what they wait for.
 */
#include "device/async.h"
#include "device/tile.h"

enum { BM = 32, BN = 32, BK = 16, TM = 4, TN = 8, STAGES = 3, WARPS = 8, THREADS = 32 * WARPS };
enum { A_ROW = BK + 4, A_FLOATS = BM * A_ROW, STAGE_FLOATS = A_FLOATS + BK * BN };

/* A warp's place in its line of work: the product, the tile and the step of k. */
typedef struct cursor {
    uint32_t item; /* (product * tiles down + tile down) * tiles across + tile across */
    int64_t step;
    int64_t row0, column0, product;
    const float *a, *b;  /* this lane's first unit of 16 bytes of the item's step 0 */
    int a_rows, b_bytes; /* how many of its rows of A exist; how much of its units of B */
} cursor;

/* What is the same for all products. */
typedef struct line {
    uint32_t down, across, items;
    int64_t steps;
    bool aligned; /* all rows of all matrices start on 16 bytes */
} line;

RUNG_DEVICE line start(const rung_args *g)
{
    line l = {(uint32_t)((g->m + BM - 1) / BM), (uint32_t)((g->n + BN - 1) / BN), 0, (g->k + BK - 1) / BK, false};
    l.items = (uint32_t)(l.down * l.across * g->batch); /* fewer than 2^31: the launcher sees to it */
    l.aligned = rung_is_aligned16(g->a, g->lda) && rung_is_aligned16(g->b, g->ldb) && g->stride_a % 4 == 0 &&
                g->stride_b % 4 == 0;
    return l;
}

/* Of `wanted` from `at` on, those that lie before `end`. */
RUNG_DEVICE int inside(int64_t at, int64_t end, int wanted)
{
    return (int)(at >= end ? 0 : end - at < wanted ? end - at : wanted);
}

/* Goes to an item's first step. */
RUNG_DEVICE void go_to(cursor *at, const rung_args *g, const line *l, uint32_t item)
{
    uint32_t tile = item / l->across, lane = threadIdx.x % 32;
    at->item = item;
    at->step = 0;
    at->product = tile / l->down;
    at->row0 = (int64_t)(tile % l->down) * BM;
    at->column0 = (int64_t)(item % l->across) * BN;
    at->a = g->a + at->product * g->stride_a + (at->row0 + lane / 4) * g->lda + lane % 4 * 4;
    at->b = g->b + at->product * g->stride_b + lane / 8 * g->ldb + at->column0 + lane % 8 * 4;
    at->a_rows = (inside(at->row0 + lane / 4, g->m, BM) + 7) / 8;
    at->b_bytes = 4 * inside(at->column0 + lane % 8 * 4, g->n, 4);
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

/* The warp asks for the 16 of k from i on. A copy brings the bytes that exist and fills its 16 with zeros. */
RUNG_DEVICE void fetch(const rung_args *g, const cursor *p, bool aligned, float *stage, int64_t i)
{
    if (!aligned) {
        fetch_floats(stage, A_ROW, g->a + p->product * g->stride_a, g->lda, g->m, g->k, p->row0, i, BM, BK);
        fetch_floats(stage + A_FLOATS, BN, g->b + p->product * g->stride_b, g->ldb, g->k, g->n, i, p->column0, BK, BN);
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

/* lesson ahead */
/* Asks for the step under the cursor, if there is one, and moves on: to the next step, or to the warp's next item. */
RUNG_DEVICE void fetch_next(cursor *ahead, const rung_args *g, const line *l, float *stage, uint32_t stride)
{
    if (ahead->item < l->items) {
        fetch(g, ahead, l->aligned, stage, ahead->step * BK);
        if (++ahead->step >= l->steps)
            go_to(ahead, g, l, ahead->item + stride);
    }
    rung_async_commit();
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

/* A warp's results of one tile. The arguments are those of this product, with its own C. */
RUNG_DEVICE void store(rung_args *g, const cursor *at, int64_t y, int64_t x, float acc[TM][TN])
{
    bool whole = rung_is_aligned16(g->c, g->ldc) && at->row0 + BM <= g->m && at->column0 + BN <= g->n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(g, at->row0 + y + t * 8, at->column0 + x + u * 4,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), whole);
}

RUNG_KERNEL(THREADS, 2) l19_batches(const __grid_constant__ rung_args g)
{
    extern __shared__ __align__(16) float rings[]; /* [warp][stage]: A as [row][k], B as [k][column] */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, stage = 0;
    int y = lane / 2 % 8, x = (lane / 16 * 2 + lane % 2) * 4; /* rows y + 8 t; columns x .. x + 3 and 16 further */
    float *ring = rings + warp * STAGES * STAGE_FLOATS;
    uint32_t stride = gridDim.x * WARPS;
    line l = start(&g);
    cursor now = {0}, ahead = {0};
    rung_args mine = g;

    go_to(&ahead, &g, &l, blockIdx.x * WARPS + warp);
    now = ahead;
    for (int s = 0; s < STAGES - 1 && l.steps > 0; s++)
        fetch_next(&ahead, &g, &l, ring + s * STAGE_FLOATS, stride);
    /* lesson line */
    while (now.item < l.items) {
        float acc[TM][TN] = {{0.0f}};
        for (int64_t step = 0; step < l.steps; step++) {
            rung_async_wait(STAGES - 2);
            __syncwarp(); /* all lanes' copies are here, and nobody reads the slot that is filled next */
            fetch_next(&ahead, &g, &l, ring + (stage + STAGES - 1) % STAGES * STAGE_FLOATS, stride);
            multiply(acc, ring + stage * STAGE_FLOATS + y * A_ROW, ring + stage * STAGE_FLOATS + A_FLOATS + x);
            stage = (stage + 1) % STAGES;
        }
        mine.c = g.c + now.product * g.stride_c;
        store(&mine, &now, y, x, acc);
        go_to(&now, &g, &l, now.item + stride);
    }
    /* /lesson */
}
