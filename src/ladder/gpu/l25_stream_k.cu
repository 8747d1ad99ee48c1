/* l25_stream_k: what would leave SMs idle in the last round of tiles is cut along k and shared out evenly.
 * Changed from l24_register_banks: whole rounds of tiles are worked as before; the tiles of the last full round and of
 * the ragged one after it lie end to end, as steps of k, and every block takes an equal stretch of them. A tile that a
 * stretch cuts goes to workspace in pieces, and l25_stream_k_finish adds them in the order of k: the same bits every
 * time. Limits: as l24; a cut tile costs a trip to memory and a second kernel, some ten microseconds.
 */
#include "device/async.h"
#include "device/tile.h"
#include "device/tma.h"

enum { BM = 128, BN = 256, BK = 32, STAGES = 4, WM = 64, WN = 64, TM = 8, TN = 16, CHUNK = 16, PAD = 4, GROUP = 8 };
enum { CONSUMERS = BM * BN / (TM * TN), PRODUCERS = 128, THREADS = CONSUMERS + PRODUCERS };
enum { ROW_STEP = 32, COLUMN_STEP = 16, A_ROW = BM + PAD };
enum { A_FLOATS = BK * A_ROW, B_FLOATS = BK * BN, STAGE_FLOATS = A_FLOATS + B_FLOATS };

typedef struct tile_place {
    int64_t row, column;
} tile_place;

static __device__ __forceinline__ int64_t tiles_of(const rung_args *g)
{
    return (g->m + BM - 1) / BM * ((g->n + BN - 1) / BN);
}

static __device__ __forceinline__ int64_t steps_of(const rung_args *g)
{
    return (g->k + BK - 1) / BK;
}

static __device__ __forceinline__ tile_place place_of(const rung_args *g, int64_t tile)
{
    int64_t rows = (g->m + BM - 1) / BM, columns = (g->n + BN - 1) / BN;
    int64_t group = tile / (GROUP * columns), inside = tile % (GROUP * columns);
    int64_t height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
    tile_place at = {(group * GROUP + inside % height) * BM, inside / height * BN};
    return at;
}

/* Tiles that are not cut: all but the last round and what is left over. */
static __device__ __forceinline__ int64_t whole_tiles(const rung_args *g, int64_t blocks)
{
    int64_t tiles = tiles_of(g), rounds = tiles / blocks;
    if (g->k == 0 || tiles % blocks == 0)
        return tiles;
    return rounds > 1 ? (rounds - 1) * blocks : 0;
}

/* The first step of block b's stretch of those that are. */
static __device__ __forceinline__ int64_t stretch(const rung_args *g, int64_t blocks, int64_t b)
{
    return (tiles_of(g) - whole_tiles(g, blocks)) * steps_of(g) * b / blocks;
}

/* A tile, or the steps first .. end - 1 of one. */
typedef struct piece {
    int64_t tile, first, end;
} piece;

/* lesson */
/* Piece i of this block; false: it has no more. */
static __device__ __forceinline__ bool piece_at(const rung_args *g, int64_t i, piece *w)
{
    int64_t blocks = gridDim.x, whole = whole_tiles(g, blocks), steps = steps_of(g);
    w->tile = blockIdx.x + i * blocks;
    w->first = 0;
    w->end = steps;
    if (w->tile < whole)
        return true;
    int64_t nth = i - (whole + blocks - 1 - blockIdx.x) / blocks;
    int64_t begin = stretch(g, blocks, blockIdx.x), end = stretch(g, blocks, blockIdx.x + 1);
    int64_t at = nth == 0 ? begin : (begin / steps + nth) * steps;
    if (g->k == 0 || at >= end)
        return false;
    w->tile = whole + at / steps;
    w->first = at % steps;
    w->end = w->first + (end - at) < steps ? w->first + (end - at) : steps;
    return true;
}
/* /lesson */

/* Where block b keeps a piece: it has at most one that begins a tile without ending it, and one that does not begin it.
 */
static __device__ __forceinline__ float *kept_at(const rung_args *g, int64_t b, bool begins)
{
    return (float *)g->workspace + (b * 2 + begins) * (BM * BN);
}

/* This thread's share of a tile of A: 32 floats, 8 steps of k of 4 rows for a warp at a time. */
static __device__ __forceinline__ void copy_a(const rung_args *g, float *a_tile, int64_t row, int64_t i)
{
    int c = threadIdx.x % 8, r0 = threadIdx.x % PRODUCERS / 8;
    const float *from = g->a + (row + r0) * g->lda + i + c;
    float *to = a_tile + c * A_ROW + r0;
    int64_t next_rows = PRODUCERS / 8 * g->lda;
    if (row + BM <= g->m && i + BK <= g->k) {
#pragma unroll
        for (int r = 0; r < BM; r += PRODUCERS / 8, from += next_rows)
#pragma unroll
            for (int kk = 0; kk < BK; kk += 8)
                rung_async_copy4(to + kk * A_ROW + r, from + kk);
    } else {
#pragma unroll 1
        for (int r = 0; r < BM; r += PRODUCERS / 8, from += next_rows)
#pragma unroll
            for (int kk = 0; kk < BK; kk += 8)
                rung_async_copy4_or_zero(to + kk * A_ROW + r, from + kk, row + r0 + r < g->m && i + c + kk < g->k);
    }
}

static __device__ __forceinline__ void produce(const rung_tma_args *p, float *ring, uint64_t *full, uint64_t *empty)
{
    int stage = 0;
    uint32_t parity = 0;
    piece w;
    for (int64_t n = 0; piece_at(&p->g, n, &w); n++) {
        tile_place at = place_of(&p->g, w.tile);
        for (int64_t i = w.first * BK; i < p->g.k && i < w.end * BK; i += BK) {
            float *a_tile = ring + stage * STAGE_FLOATS;
            rung_barrier_wait(&empty[stage], parity ^ 1);
            if (threadIdx.x == CONSUMERS) {
                rung_barrier_expect(&full[stage], B_FLOATS * sizeof(float));
                rung_tensor_copy(a_tile + A_FLOATS, &p->b, (int)at.column, (int)i, &full[stage]);
            }
            copy_a(&p->g, a_tile, at.row, i);
            rung_barrier_arrive_after_copies(&full[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
    }
}

/* One step of k from shared memory to registers. */
static __device__ __forceinline__ void fragments(float *a, float *b, const float *a_row, const float *b_row)
{
#pragma unroll
    for (int t = 0; t < TM; t += 4)
        rung_get4(a + t, a_row + t / 4 * ROW_STEP);
#pragma unroll
    for (int u = 0; u < TN; u += 4)
        rung_get4(b + u, b_row + u / 4 * COLUMN_STEP);
}

/* The FMAs of one stage. */
static __device__ __forceinline__ void multiply(float acc[TM][TN], const float *a_tile, const float *b_tile)
{
    float a[2][TM], b[2][TN];
    fragments(a[0], b[0], a_tile, b_tile);
#pragma unroll 1
    for (int chunk = 0; chunk < BK; chunk += CHUNK) {
#pragma unroll
        for (int kk = 0; kk < CHUNK; kk++) {
            int now = kk % 2, next = 1 - now;
            if (kk + 1 < CHUNK || chunk + CHUNK < BK)
                fragments(a[next], b[next], a_tile + (chunk + kk + 1) * A_ROW, b_tile + (chunk + kk + 1) * BN);
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int v = 0; v < TN; v++) {
                    int u = t % 2 ? TN - 1 - v : v; /* along one row, back along the next */
                    acc[t][u] = fmaf(a[now][t], b[now][u], acc[t][u]);
                }
        }
    }
}

static __device__ __forceinline__ void consume(const rung_tma_args *p, const float *ring, uint64_t *full,
                                               uint64_t *empty)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / (BN / WN) * WM + lane_m * 4, x = warp % (BN / WN) * WN + lane_n * 4;
    int stage = 0;
    uint32_t parity = 0;
    piece w;
    for (int64_t n = 0; piece_at(&p->g, n, &w); n++) {
        float acc[TM][TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        for (int64_t i = w.first; i < w.end; i++) {
            const float *a_tile = ring + stage * STAGE_FLOATS;
            rung_barrier_wait(&full[stage], parity);
            multiply(acc, a_tile + y, a_tile + A_FLOATS + x);
            rung_barrier_arrive(&empty[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
        if (w.end - w.first < steps_of(&p->g)) {
            float *kept = kept_at(&p->g, blockIdx.x, w.first == 0) + y * BN + x;
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u += 4)
                    *(float4 *)(kept + (t / 4 * ROW_STEP + t % 4) * BN + u / 4 * COLUMN_STEP) =
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]);
            continue;
        }
        tile_place at = place_of(&p->g, w.tile);
        bool inside = rung_is_aligned16(p->g.c, p->g.ldc) && at.row + BM <= p->g.m && at.column + BN <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, at.row + y + t / 4 * ROW_STEP + t % 4, at.column + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_KERNEL(THREADS, 1) l25_stream_k(const __grid_constant__ rung_tma_args p)
{
    extern __shared__ __align__(1024) float ring[]; /* STAGES times a tile of A and one of B; then the barriers */
    uint64_t *full = (uint64_t *)(ring + STAGES * STAGE_FLOATS), *empty = full + STAGES;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            rung_barrier_init(&full[stage], 1 + PRODUCERS);
            rung_barrier_init(&empty[stage], CONSUMERS);
        }
        rung_barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        rung_registers_grow(232);
        consume(&p, ring, full, empty);
    } else {
        rung_registers_shrink(40);
        produce(&p, ring, full, empty);
    }
}

enum { FINISHERS = 256, SLICES = BM * BN / (FINISHERS * 4) };

/* Blocks (t, slice): a slice of the t-th tile that may be cut, if it is: the sum of its pieces.
 * g.split_k: the product's blocks. */
RUNG_KERNEL(FINISHERS) l25_stream_k_finish(const __grid_constant__ rung_tma_args p)
{
    const rung_args *g = &p.g;
    int64_t blocks = g->split_k, steps = steps_of(g), first = blockIdx.x * steps, last = first + steps;
    int64_t b = first * blocks / stretch(g, blocks, blocks);
    while (stretch(g, blocks, b + 1) <= first)
        b++;
    if (stretch(g, blocks, b + 1) >= last)
        return; /* one stretch holds all of it */
    int at = (blockIdx.y * FINISHERS + threadIdx.x) * 4;
    float4 sum = *(const float4 *)(kept_at(g, b, true) + at);
    for (b++; stretch(g, blocks, b) < last; b++) {
        float4 v = *(const float4 *)(kept_at(g, b, false) + at);
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    tile_place to = place_of(g, whole_tiles(g, blocks) + blockIdx.x);
    bool inside = rung_is_aligned16(g->c, g->ldc) && to.row + BM <= g->m && to.column + BN <= g->n;
    rung_write4(g, to.row + at / BN, to.column + at % BN, sum, inside);
}
