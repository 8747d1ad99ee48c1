/* l23_searched: the persistent kernel in six tiles; which one runs was found by timing them all.
 * Changed from l22_persistent: the tile's sizes, stages and blocks an SM are arguments that the compiler knows. Each
 * line at the end is a kernel, and the launcher takes the one with the least predicted time: rounds of tiles on the SMs
 * times the tile's measured time for a step of k (src/cuda/ladder/tma.c has the table). Limits: sm_90; one thread tile,
 * 8x16, in all of them. The launcher copies unaligned operands first.
 */
#include "device/tile.h"
#include "device/tma.h"

enum { BK = 32, GROUP = 8, CHUNK = 8, WM = 64, WN = 64, TM = 8, TN = 16, ROW_STEP = 8, COLUMN_STEP = 16 };
enum { PIECE = 8 * 16 }; /* results a thread */

/* lesson shape */
/* A tile. Each kernel below hands in constants, and the compiler makes its own copy of the code for them: what a
 * template would do. Consumers in whole warpgroups get registers from a producer warpgroup; of fewer, one warp more
 * asks for the tiles. */
typedef struct {
    int bm, bn, stages;
} shape;

RUNG_DEVICE int consumers(const shape s)
{
    return s.bm * s.bn / PIECE;
}

RUNG_DEVICE int stage_floats(const shape s)
{
    return (s.bm + s.bn) * BK;
}
/* /lesson */

RUNG_DEVICE void place(const shape s, const rung_args *g, int64_t tile, int *row0, int *column0)
{
    int64_t rows = (g->m + s.bm - 1) / s.bm, columns = (g->n + s.bn - 1) / s.bn;
    int64_t group = tile / (GROUP * columns), inside = tile % (GROUP * columns);
    int64_t height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
    *row0 = (int)((group * GROUP + inside % height) * s.bm);
    *column0 = (int)(inside / height * s.bn);
}

RUNG_DEVICE int64_t tiles(const shape s, const rung_args *g)
{
    return (g->m + s.bm - 1) / s.bm * ((g->n + s.bn - 1) / s.bn);
}

RUNG_DEVICE void produce(const shape s, const rung_tma_args *p, float *ring, uint64_t *full, uint64_t *empty)
{
    int stage = 0, row0, column0;
    uint32_t parity = 0;
    for (int64_t tile = blockIdx.x; tile < tiles(s, &p->g); tile += gridDim.x) {
        place(s, &p->g, tile, &row0, &column0);
        for (int64_t i = 0; i < p->g.k; i += BK) {
            float *a_tile = ring + stage * stage_floats(s);
            rung_barrier_wait(&empty[stage], parity ^ 1);
            rung_barrier_expect(&full[stage], stage_floats(s) * sizeof(float));
            rung_tensor_copy(a_tile, &p->a, (int)i, row0, &full[stage]);
            rung_tensor_copy(a_tile + s.bm * BK, &p->b, column0, (int)i, &full[stage]);
            stage = (stage + 1) % s.stages;
            parity ^= stage == 0;
        }
    }
}

/* The FMAs of one stage. */
RUNG_DEVICE void multiply(const shape s, float acc[TM][TN], const float *a_tile, const float *b_tile, int lane_m)
{
#pragma unroll 1
    for (int chunk = 0; chunk < BK; chunk += CHUNK) {
#pragma unroll
        for (int kk = 0; kk < CHUNK; kk += 4) {
            int unit = (chunk + kk) / 4 ^ lane_m;
            float a[TM][4], b[TN];
#pragma unroll
            for (int t = 0; t < TM; t++)
                rung_get4(a[t], a_tile + t * ROW_STEP * BK + unit * 4);
#pragma unroll
            for (int j = 0; j < 4; j++) {
#pragma unroll
                for (int u = 0; u < TN; u += 4)
                    rung_get4(b + u, b_tile + (chunk + kk + j) * s.bn + u / 4 * COLUMN_STEP);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int u = 0; u < TN; u++)
                        acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
            }
        }
    }
}

RUNG_DEVICE void consume(const shape s, const rung_tma_args *p, const float *ring, uint64_t *full, uint64_t *empty)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / (s.bn / WN) * WM + lane_m, x = warp % (s.bn / WN) * WN + lane_n * 4;
    int stage = 0, row0, column0;
    uint32_t parity = 0;
    for (int64_t tile = blockIdx.x; tile < tiles(s, &p->g); tile += gridDim.x) {
        float acc[TM][TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        for (int64_t i = 0; i < p->g.k; i += BK) {
            const float *a_tile = ring + stage * stage_floats(s);
            rung_barrier_wait(&full[stage], parity);
            multiply(s, acc, a_tile + y * BK, a_tile + s.bm * BK + x, lane_m);
            __syncwarp();
            if (lane == 0)
                rung_barrier_arrive(&empty[stage]);
            stage = (stage + 1) % s.stages;
            parity ^= stage == 0;
        }
        place(s, &p->g, tile, &row0, &column0);
        bool inside =
            rung_is_aligned16(p->g.c, p->g.ldc) && (int64_t)row0 + s.bm <= p->g.m && (int64_t)column0 + s.bn <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, (int64_t)row0 + y + t * ROW_STEP, (int64_t)column0 + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_DEVICE void run(const shape s, const rung_tma_args *p, float *ring)
{
    uint64_t *full = (uint64_t *)(ring + s.stages * stage_floats(s)), *empty = full + s.stages;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < s.stages; stage++) {
            rung_barrier_init(&full[stage], 1);
            rung_barrier_init(&empty[stage], consumers(s) / 32);
        }
        rung_barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x < consumers(s)) {
        if (consumers(s) == 256)
            rung_registers_grow(240);
        else if (consumers(s) == 128)
            rung_registers_grow(232);
        consume(s, p, ring, full, empty);
    } else {
        if (consumers(s) % 128 == 0)
            rung_registers_shrink(24);
        if (threadIdx.x == consumers(s))
            produce(s, p, ring, full, empty);
    }
}

/* lesson kernels */
/* A kernel of the tile BM x BN in `STAGES` stages, `BLOCKS` of them on an SM. The ring: tiles of A and B, then the
 * barriers. */
#define KERNEL(NAME, BM, BN, STAGES, BLOCKS)                                                                           \
    RUNG_KERNEL(BM *BN / PIECE + (BM * BN / PIECE % 128 ? 32 : 128), BLOCKS)                                           \
    NAME(const __grid_constant__ rung_tma_args p)                                                                      \
    {                                                                                                                  \
        extern __shared__ __align__(1024) float ring[];                                                                \
        const shape s = {BM, BN, STAGES};                                                                              \
        run(s, &p, ring);                                                                                              \
    }

KERNEL(l23_searched, 128, 256, 4, 1)
KERNEL(l23_searched_256x128, 256, 128, 4, 1)
KERNEL(l23_searched_128x128, 128, 128, 3, 2)
KERNEL(l23_searched_64x256, 64, 256, 2, 2)
KERNEL(l23_searched_64x128, 64, 128, 4, 2)
KERNEL(l23_searched_64x64, 64, 64, 3, 4)
/* /lesson */
