/* l21_tma: the copy engine (TMA) brings whole tiles; one warp asks for them, eight warps only compute.
 * Changed from l20_multistage: a box of a matrix is one instruction of one thread, edges are filled with zeros by the
 * engine, and barriers in shared memory (full, empty) pair each stage's producer with its consumers: no block-wide
 * barrier. The loop of a consumer holds FMAs and 16-byte shared loads and next to nothing else. Tile 128x256.
 * A is [row][k], 32 floats a row, its 16-byte units stored at unit ^ (row % 8) by the engine, so eight rows fill all
 * banks.
 * Limits: sm_90. The engine wants rows on 16 bytes: the launcher copies other operands first (l21_tma_pack).
 */
#include "device/tile.h"
#include "device/tma.h"

enum { BM = 128, BN = 256, BK = 32, STAGES = 4, WM = 64, WN = 64, TM = 8, TN = 16, CHUNK = 8 };
enum { CONSUMERS = BM * BN / (TM * TN), THREADS = CONSUMERS + 128, ROW_STEP = 8, COLUMN_STEP = 16 };
enum { A_FLOATS = BM * BK, B_FLOATS = BK * BN, STAGE_FLOATS = A_FLOATS + B_FLOATS };

/* One thread: asks for the tiles of all steps along k as stages come free. */
static __device__ __forceinline__ void produce(const rung_tma_args *p, float *ring, uint64_t *full, uint64_t *empty,
                                               int row0, int column0)
{
    /* lesson */
    int stage = 0;
    uint32_t parity = 0;
    for (int64_t i = 0; i < p->g.k; i += BK) {
        float *a_tile = ring + stage * STAGE_FLOATS;
        rung_barrier_wait(&empty[stage], parity ^ 1);
        rung_barrier_expect(&full[stage], STAGE_FLOATS * sizeof(float));
        rung_tensor_copy(a_tile, &p->a, (int)i, row0, &full[stage]);
        rung_tensor_copy(a_tile + A_FLOATS, &p->b, column0, (int)i, &full[stage]);
        stage = (stage + 1) % STAGES;
        parity ^= stage == 0;
    }
    /* /lesson */
}

static __device__ __forceinline__ void consume(const rung_tma_args *p, const float *ring, uint64_t *full,
                                               uint64_t *empty, int64_t row0, int64_t column0)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / (BN / WN) * WM + lane_m, x = warp % (BN / WN) * WN + lane_n * 4;
    int stage = 0;
    uint32_t parity = 0;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < p->g.k; i += BK) {
        const float *a_tile = ring + stage * STAGE_FLOATS + y * BK;
        const float *b_tile = ring + stage * STAGE_FLOATS + A_FLOATS + x;
        rung_barrier_wait(&full[stage], parity);
#pragma unroll 1
        for (int chunk = 0; chunk < BK; chunk += CHUNK) { /* eight steps of k fit the instruction cache, 32 would not */
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
        __syncwarp();
        if (lane == 0)
            rung_barrier_arrive(&empty[stage]);
        stage = (stage + 1) % STAGES;
        parity ^= stage == 0;
    }

    bool inside = rung_is_aligned16(p->g.c, p->g.ldc) && row0 + BM <= p->g.m && column0 + BN <= p->g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&p->g, row0 + y + t * ROW_STEP, column0 + x + u / 4 * COLUMN_STEP,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
}

RUNG_KERNEL(THREADS, 1) l21_tma(const __grid_constant__ rung_tma_args p)
{
    extern __shared__ __align__(1024) float ring[]; /* STAGES times a tile of A and one of B; then the barriers */
    uint64_t *full = (uint64_t *)(ring + STAGES * STAGE_FLOATS), *empty = full + STAGES;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            rung_barrier_init(&full[stage], 1);
            rung_barrier_init(&empty[stage], CONSUMERS / 32);
        }
        rung_barrier_publish();
    }
    __syncthreads();
    /* 65536 registers / 384 threads = 168 at launch: too few to compute, too many to ask for tiles. */
    if (threadIdx.x < CONSUMERS) {
        rung_registers_grow(240);
        consume(&p, ring, full, empty, row0, column0);
    } else {
        rung_registers_shrink(24);
        if (threadIdx.x == CONSUMERS)
            produce(&p, ring, full, empty, (int)row0, (int)column0);
    }
}

/* Copies a matrix into rows that start on 16 bytes. */
RUNG_KERNEL(256) l21_tma_pack(const __grid_constant__ rung_pack_args p)
{
    int64_t step = (int64_t)gridDim.x * 256, elements = p.rows * p.columns;
    for (int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x; e < elements; e += step)
        p.to[e / p.columns * p.to_ld + e % p.columns] = p.from[e / p.columns * p.from_ld + e % p.columns];
}
