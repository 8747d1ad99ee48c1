/* l22_persistent: as many blocks as fit the GPU at once, each taking one tile of C after another.
 * Changed from l21_tma: barriers and ring are set up once; while the consumers write a tile of C, the producer already
 * fills the ring for the next. Tiles go in groups of GROUP tile rows, down the columns of a group, so that the tiles
 * in work at one time share panels of A and B in the L2 cache. Block b takes tiles b, b + blocks, b + 2 blocks, ...
 * Limits: the last round of tiles may keep only some of the SMs busy.
 */
#include "device/tile.h"
#include "device/tma.h"

enum { BM = 128, BN = 256, BK = 32, STAGES = 4, GROUP = 8, CHUNK = 8 };
enum { WM = 64, WN = 64, TM = 8, TN = 16, ROW_STEP = 8, COLUMN_STEP = 16 };
enum { CONSUMERS = BM * BN / (TM * TN), THREADS = CONSUMERS + 128 };
enum { A_FLOATS = BM * BK, STAGE_FLOATS = A_FLOATS + BK * BN };

RUNG_DEVICE void place(const rung_args *g, int64_t tile, int *row0, int *column0)
{
    int64_t rows = (g->m + BM - 1) / BM, columns = (g->n + BN - 1) / BN;
    int64_t group = tile / (GROUP * columns), inside = tile % (GROUP * columns);
    int64_t height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
    *row0 = (int)((group * GROUP + inside % height) * BM);
    *column0 = (int)(inside / height * BN);
}

RUNG_DEVICE int64_t tiles(const rung_args *g)
{
    return (g->m + BM - 1) / BM * ((g->n + BN - 1) / BN);
}

RUNG_DEVICE void produce(const rung_tma_args *p, float *ring, uint64_t *full, uint64_t *empty)
{
    int stage = 0, row0, column0;
    uint32_t parity = 0;
    /* lesson */
    for (int64_t tile = blockIdx.x; tile < tiles(&p->g); tile += gridDim.x) {
        place(&p->g, tile, &row0, &column0);
        for (int64_t i = 0; i < p->g.k; i += BK) {
            float *a_tile = ring + stage * STAGE_FLOATS;
            rung_barrier_wait(&empty[stage], parity ^ 1);
            rung_barrier_expect(&full[stage], STAGE_FLOATS * sizeof(float));
            rung_tensor_copy(a_tile, &p->a, (int)i, row0, &full[stage]);
            rung_tensor_copy(a_tile + A_FLOATS, &p->b, column0, (int)i, &full[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
    }
    /* /lesson */
}

/* The FMAs of one stage. */
RUNG_DEVICE void multiply(float acc[TM][TN], const float *a_tile, const float *b_tile, int lane_m)
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
                    rung_get4(b + u, b_tile + (chunk + kk + j) * BN + u / 4 * COLUMN_STEP);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int u = 0; u < TN; u++)
                        acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
            }
        }
    }
}

RUNG_DEVICE void consume(const rung_tma_args *p, const float *ring, uint64_t *full, uint64_t *empty)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / (BN / WN) * WM + lane_m, x = warp % (BN / WN) * WN + lane_n * 4;
    int stage = 0, row0, column0;
    uint32_t parity = 0;
    for (int64_t tile = blockIdx.x; tile < tiles(&p->g); tile += gridDim.x) {
        float acc[TM][TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        for (int64_t i = 0; i < p->g.k; i += BK) {
            const float *a_tile = ring + stage * STAGE_FLOATS;
            rung_barrier_wait(&full[stage], parity);
            multiply(acc, a_tile + y * BK, a_tile + A_FLOATS + x, lane_m);
            __syncwarp();
            if (lane == 0)
                rung_barrier_arrive(&empty[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
        place(&p->g, tile, &row0, &column0);
        bool inside =
            rung_is_aligned16(p->g.c, p->g.ldc) && (int64_t)row0 + BM <= p->g.m && (int64_t)column0 + BN <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, (int64_t)row0 + y + t * ROW_STEP, (int64_t)column0 + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_KERNEL(THREADS, 1) l22_persistent(const __grid_constant__ rung_tma_args p)
{
    extern __shared__ __align__(1024) float ring[]; /* STAGES times a tile of A and one of B; then the barriers */
    uint64_t *full = (uint64_t *)(ring + STAGES * STAGE_FLOATS), *empty = full + STAGES;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            rung_barrier_init(&full[stage], 1);
            rung_barrier_init(&empty[stage], CONSUMERS / 32);
        }
        rung_barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        rung_registers_grow(240);
        consume(&p, ring, full, empty);
    } else {
        rung_registers_shrink(24);
        if (threadIdx.x == CONSUMERS)
            produce(&p, ring, full, empty);
    }
}
