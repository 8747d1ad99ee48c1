/* l28_thread_tile_12x16: 12x16 results a thread in a 192x256 tile: 22% fewer shared loads an FMA. Slower.
 * Changed from l24_register_banks: a thread reads 28 floats for 192 FMAs instead of 24 for 128. 192 sums leave room for
 * one set of fragments, not two: the rows of the next step are read as those of this one are used up, and its columns
 * only when the last row has passed. Stages of 16 steps, seven of them.
 * Limits: as l24; and a tile is half as large again, so more of the last round is empty.
 */
#include "device/async.h"
#include "device/tile.h"
#include "device/tma.h"

enum { BM = 192, BN = 256, BK = 16, STAGES = 7, WM = 96, WN = 64, TM = 12, TN = 16, CHUNK = 8, PAD = 4, GROUP = 8 };
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

static __device__ __forceinline__ tile_place place_of(const rung_args *g, int64_t tile)
{
    int64_t rows = (g->m + BM - 1) / BM, columns = (g->n + BN - 1) / BN;
    int64_t group = tile / (GROUP * columns), inside = tile % (GROUP * columns);
    int64_t height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
    tile_place at = {(group * GROUP + inside % height) * BM, inside / height * BN};
    return at;
}

/* This thread's share of a tile of A: 24 floats, 8 steps of k of 4 rows for a warp at a time. */
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
    for (int64_t tile = blockIdx.x; tile < tiles_of(&p->g); tile += gridDim.x) {
        tile_place at = place_of(&p->g, tile);
        for (int64_t i = 0; i < p->g.k; i += BK) {
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

/* Sixteen columns of B of one step of k. */
static __device__ __forceinline__ void load_b(float *b, const float *b_row)
{
#pragma unroll
    for (int u = 0; u < TN; u += 4)
        rung_get4(b + u, b_row + u / 4 * COLUMN_STEP);
}

/* The FMAs of one stage, with one set of fragments: what a row used is read again as soon as the row has passed. */
static __device__ __forceinline__ void multiply(float acc[TM][TN], const float *a_tile, const float *b_tile)
{
    float a[TM], b[TN];
#pragma unroll
    for (int t = 0; t < TM; t += 4)
        rung_get4(a + t, a_tile + t / 4 * ROW_STEP);
    load_b(b, b_tile);
    /* lesson */
#pragma unroll 1
    for (int chunk = 0; chunk < BK; chunk += CHUNK) {
#pragma unroll
        for (int kk = 1; kk <= CHUNK; kk++) {
            bool more = kk < CHUNK || chunk + CHUNK < BK;
#pragma unroll
            for (int t = 0; t < TM; t++) {
#pragma unroll
                for (int v = 0; v < TN; v++) {
                    int u = t % 2 ? TN - 1 - v : v; /* along one row, back along the next */
                    acc[t][u] = fmaf(a[t], b[u], acc[t][u]);
                }
                if (t % 4 == 3 && more)
                    rung_get4(a + t - 3, a_tile + (chunk + kk) * A_ROW + t / 4 * ROW_STEP);
            }
            if (more)
                load_b(b, b_tile + (chunk + kk) * BN);
        }
    }
    /* /lesson */
}

static __device__ __forceinline__ void consume(const rung_tma_args *p, const float *ring, uint64_t *full,
                                               uint64_t *empty)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / (BN / WN) * WM + lane_m * 4, x = warp % (BN / WN) * WN + lane_n * 4;
    int stage = 0;
    uint32_t parity = 0;
    for (int64_t tile = blockIdx.x; tile < tiles_of(&p->g); tile += gridDim.x) {
        float acc[TM][TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        for (int64_t i = 0; i < p->g.k; i += BK) {
            const float *a_tile = ring + stage * STAGE_FLOATS;
            rung_barrier_wait(&full[stage], parity);
            multiply(acc, a_tile + y, a_tile + A_FLOATS + x);
            rung_barrier_arrive(&empty[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
        tile_place at = place_of(&p->g, tile);
        bool inside = rung_is_aligned16(p->g.c, p->g.ldc) && at.row + BM <= p->g.m && at.column + BN <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, at.row + y + t / 4 * ROW_STEP + t % 4, at.column + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_KERNEL(THREADS, 1) l28_thread_tile_12x16(const __grid_constant__ rung_tma_args p)
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
        rung_registers_grow(240);
        consume(&p, ring, full, empty);
    } else {
        rung_registers_shrink(24);
        produce(&p, ring, full, empty);
    }
}
