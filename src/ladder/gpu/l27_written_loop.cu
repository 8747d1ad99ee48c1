/* l27_written_loop: the main loop's registers, order, loads and waits chosen by hand.
 * Changed from l26_operand_reuse: nothing but a mark in this file. tools/sass replaces the compiled loop behind
 * the mark by one of its own: sums in the register bank opposite to their column's, one row of A kept while sixteen
 * columns pass, loads spread evenly, a turn of four steps that the instruction cache holds. It runs the new loop on
 * symbols before it writes it; with another compiler the loop stays as compiled.
 * Limits: as l26.
 */
#include "device/ptx.h"
#include "device/tile.h"
#include "device/tma.h"

enum { BM = 128, BN = 256, BK = 16, STAGES = 8, WM = 64, WN = 64, TM = 8, TN = 16, GROUP = 16 };
enum { CONSUMERS = BM * BN / (TM * TN), THREADS = CONSUMERS + 128, ROW_STEP = 8, COLUMN_STEP = 16 };
enum { A_BYTES = BM * BK * 4, B_BYTES = BK * BN * 4, STAGE_BYTES = A_BYTES + B_BYTES };

typedef struct tile_place {
    int row, column;
} tile_place;

RUNG_DEVICE int tiles_of(const rung_args *g)
{
    return (int)((g->m + BM - 1) / BM * ((g->n + BN - 1) / BN));
}

/* Tiles go down the columns of a group of sixteen tile rows. */
RUNG_DEVICE tile_place place_of(const rung_args *g, int tile)
{
    int rows = (int)((g->m + BM - 1) / BM), columns = (int)((g->n + BN - 1) / BN);
    int group = tile / (GROUP * columns), inside = tile % (GROUP * columns);
    int height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
    tile_place at = {(group * GROUP + inside % height) * BM, inside / height * BN};
    return at;
}

/* One thread asks for the stages of all tiles of this block. */
RUNG_DEVICE void produce(const rung_tma_args *p, char *ring, uint64_t *full, uint64_t *empty)
{
    int stage = 0;
    uint32_t parity = 0;
    for (int tile = blockIdx.x; tile < tiles_of(&p->g); tile += gridDim.x) {
        tile_place at = place_of(&p->g, tile);
        for (int i = 0; i < p->g.k; i += BK) {
            char *to = ring + stage * STAGE_BYTES;
            rung_barrier_wait(&empty[stage], parity ^ 1);
            rung_barrier_expect(&full[stage], STAGE_BYTES);
            rung_tensor_copy(to, &p->a, i, at.row, &full[stage]);
            rung_tensor_copy(to + A_BYTES, &p->b, at.column, i, &full[stage]);
            stage = (stage + 1) % STAGES;
            parity ^= stage == 0;
        }
    }
}

/* Sixteen columns of B of one step of k. */
RUNG_DEVICE void load_b(float b[TN], uint32_t at)
{
#pragma unroll
    for (int u = 0; u < TN; u += 4) {
        float4 v = ptx_shared_load4(at + u / 4 * COLUMN_STEP * 4);
        b[u] = v.x, b[u + 1] = v.y, b[u + 2] = v.z, b[u + 3] = v.w;
    }
}

/* Eight rows of A, four steps of k of each: the unit of 16 bytes that begins with step k, where the engine put it. */
RUNG_DEVICE void load_a(float a[TM][4], uint32_t at, int k)
{
#pragma unroll
    for (int t = 0; t < TM; t++) {
        float4 v = ptx_shared_load4((at ^ k / 4 * 16) + t * ROW_STEP * BK * 4);
        a[t][0] = v.x, a[t][1] = v.y, a[t][2] = v.z, a[t][3] = v.w;
    }
}

/* One step of k. A row's float of A is the same in sixteen FFMAs on end: it is read once and kept. */
RUNG_DEVICE void multiply(float acc[TM][TN], const float a[TM][4], int k, const float b[TN])
{
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int v = 0; v < TN; v++) {
            int u = t % 2 ? TN - 1 - v : v; /* along one row, back along the next */
            acc[t][u] = fmaf(a[t][k % 4], b[u], acc[t][u]);
        }
}

/* lesson */
/* The next `steps` stages of the ring into acc, `done` having gone before. */
RUNG_DEVICE void main_loop(float acc[TM][TN], uint32_t full, uint32_t a_base, uint32_t b_base, uint32_t done, int steps)
{
    float a[TM][4], b[2][TN];
    ptx_loop_inputs(full, a_base, b_base, done, steps, 1); /* the mark; it names the registers of what goes in */
    int stage = done % STAGES;
    uint32_t parity = done / STAGES & 1;
    ptx_mbar_wait(full + 8 * stage, parity);
    uint32_t a_at = a_base + stage * STAGE_BYTES, b_at = b_base + stage * STAGE_BYTES;
    load_b(b[0], b_at);
    load_a(a, a_at, 0);
    /* /lesson */
#pragma unroll 1
    for (int left = steps; left > 0; left--) {
#pragma unroll
        for (int k = 0; k < BK; k++) {
            int next = (k + 1) % BK;
            if (next % 4 == 0) /* four steps of A are used up before the next four are read */
                multiply(acc, a, k, b[k % 2]);
            if (next == 0) {
                PTX_MBAR_ARRIVE_BEHIND(full + 8 * stage, 8 * STAGES); /* its empty barrier */
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
                a_at = a_base + stage * STAGE_BYTES;
                b_at = b_base + stage * STAGE_BYTES;
                if (left > 1)
                    ptx_mbar_wait(full + 8 * stage, parity);
            }
            if (next > 0 || left > 1) { /* behind the last stage the ring may stay empty */
                load_b(b[next % 2], b_at + next * BN * 4);
                if (next % 4 == 0)
                    load_a(a, a_at, next);
            }
            if (next % 4 > 0)
                multiply(acc, a, k, b[k % 2]);
        }
    }
}

RUNG_DEVICE void consume(const rung_tma_args *p, uint32_t ring, uint32_t full)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2; /* neighbours share addresses: two passes a load */
    int y = warp / (BN / WN) * WM + lane_m, x = warp % (BN / WN) * WN + lane_n * 4;
    /* The engine stores unit u of row r at u ^ (r / 2 % 4). What a shuffle gives is kept and not made anew. */
    uint32_t a_base = __shfl_sync(~0u, ring + y * BK * 4 + y / 2 % 4 * 16, lane);
    uint32_t b_base = __shfl_sync(~0u, ring + A_BYTES + x * 4, lane), done = 0;
    full = __shfl_sync(~0u, full, 0);
    int steps = __shfl_sync(~0u, (int)((p->g.k + BK - 1) / BK), lane);
    for (int tile = blockIdx.x; tile < tiles_of(&p->g); tile += gridDim.x) {
        float acc[TM][TN];
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        if (steps > 0)
            main_loop(acc, full, a_base, b_base, done, steps);
        done += steps;
        tile_place at = place_of(&p->g, tile);
        bool inside = rung_is_aligned16(p->g.c, p->g.ldc) && at.row + BM <= p->g.m && at.column + BN <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, at.row + y + t * ROW_STEP, at.column + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_KERNEL(THREADS, 1) l27_written_loop(const __grid_constant__ rung_tma_args p)
{
    extern __shared__ __align__(1024) char ring[]; /* the stages; then the barriers */
    uint64_t *full = (uint64_t *)(ring + STAGES * STAGE_BYTES), *empty = full + STAGES;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            rung_barrier_init(&full[stage], 1);
            rung_barrier_init(&empty[stage], CONSUMERS);
        }
        rung_barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        rung_registers_grow(240);
        consume(&p, ptx_smem(ring), ptx_smem(full));
    } else {
        rung_registers_shrink(24);
        if (threadIdx.x == CONSUMERS)
            produce(&p, ring, full, empty);
    }
}
