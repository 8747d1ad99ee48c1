/* l29_one_kernel: the last rounds cut along k and added up in the same kernel: the end of the strict ladder.
 * Changed from l27_written_loop: the tiles of the last full round and of what is left lie end to end, as in l25, and
 * every block takes an equal stretch of them. Blocks that share a tile meet in this kernel: those with earlier k leave
 * their sums in workspace, the one with the last k waits for them and adds them in the order of k: the same bits every
 * time. A block only waits for blocks of lower number, and walks its stretch from its end, so that nobody waits in a
 * ring. Limits: as l26; all blocks run at once.
 */
#include "device/ptx.h"
#include "device/tile.h"
#include "device/tma.h"

#define PARTS_SYNC() ptx_bar_sync(1, 256) /* those that multiply */
#include "device/parts.h"

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

/* Steps first .. end - 1 of a tile, and what this block has still to do. */
typedef struct work {
    int tile, first, end;
    int steps, whole, next_tile; /* of a tile; tiles that are not cut; the next of them */
    int64_t begin, left;         /* the block's stretch of the others: from here, up to here */
} work;

/* Where block b's stretch begins, in steps of the tiles that are cut. */
RUNG_DEVICE int64_t stretch(const rung_args *g, const work *w, int64_t b)
{
    return (int64_t)(tiles_of(g) - w->whole) * w->steps * b / gridDim.x;
}

RUNG_DEVICE work start(const rung_args *g)
{
    work w = {0};
    int tiles = tiles_of(g), blocks = (int)gridDim.x, rounds = tiles / blocks;
    w.steps = (int)((g->k + BK - 1) / BK);
    w.whole = w.steps == 0 || tiles % blocks == 0 ? tiles : rounds > 1 ? (rounds - 1) * blocks : 0;
    w.next_tile = blockIdx.x;
    w.begin = stretch(g, &w, blockIdx.x);
    w.left = stretch(g, &w, blockIdx.x + 1);
    return w;
}

/* lesson work */
/* The next piece: a whole tile, or the last piece that is left of the stretch; false: no more. */
RUNG_DEVICE bool next_piece(work *w)
{
    if (w->next_tile < w->whole) {
        w->tile = w->next_tile;
        w->first = 0;
        w->end = w->steps;
        w->next_tile += gridDim.x;
        return true;
    }
    if (w->left <= w->begin)
        return false;
    int64_t nth = (w->left - 1) / w->steps, at = nth * w->steps;
    w->tile = w->whole + (int)nth;
    w->first = (int)(w->begin > at ? w->begin - at : 0);
    w->end = (int)(w->left - at);
    w->left = at + w->first;
    return true;
}
/* /lesson */

/* One thread asks for the stages of this block's pieces. */
RUNG_DEVICE void produce(const rung_tma_args *p, char *ring, uint64_t *full, uint64_t *empty)
{
    int stage = 0;
    uint32_t parity = 0;
    for (work w = start(&p->g); next_piece(&w);) {
        tile_place at = place_of(&p->g, w.tile);
        for (int i = w.first * BK; i < w.end * BK; i += BK) {
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

/* Where block b keeps the one piece that it does not finish, a thread's sums after another's. */
RUNG_DEVICE float4 *kept_at(const rung_args *g, int64_t b)
{
    return (float4 *)g->workspace + b * (BM * BN / 4) + threadIdx.x;
}

/* True: acc is the whole tile's sum. False: another block has the tile's last steps and gets these sums. */
RUNG_DEVICE bool meet(const rung_args *g, const work *w, float acc[TM][TN])
{
    /* lesson leave */
    unsigned *counters = (unsigned *)((char *)g->workspace - RUNG_TICKET_BYTES) + 2 * (w->tile - w->whole);
    if (w->end < w->steps) {
        float4 *to = kept_at(g, blockIdx.x);
#pragma unroll
        for (int i = 0; i < TM * TN; i += 4)
            __stcg(to + i / 4 * CONSUMERS, make_float4(acc[i / TN][i % TN], acc[i / TN][i % TN + 1],
                                                       acc[i / TN][i % TN + 2], acc[i / TN][i % TN + 3]));
        parts_leave(counters);
        return false;
    }
    /* /lesson */
    /* lesson meet */
    int64_t first = blockIdx.x, begins = (int64_t)(w->tile - w->whole) * w->steps;
    while (stretch(g, w, first) > begins)
        first--;
    parts_await(counters, (unsigned)(blockIdx.x - first));
#pragma unroll 1
    for (; first < blockIdx.x; first++) {
        const float4 *from = kept_at(g, first);
#pragma unroll
        for (int i = 0; i < TM * TN; i += 4) {
            float4 v = __ldcg(from + i / 4 * CONSUMERS);
            acc[i / TN][i % TN] += v.x, acc[i / TN][i % TN + 1] += v.y;
            acc[i / TN][i % TN + 2] += v.z, acc[i / TN][i % TN + 3] += v.w;
        }
    }
    return true;
    /* /lesson */
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
    for (work w = start(&p->g); next_piece(&w);) {
        float acc[TM][TN];
        int steps = __shfl_sync(~0u, w.end - w.first, lane);
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u++)
                acc[t][u] = 0.0f;
        if (steps > 0)
            main_loop(acc, full, a_base, b_base, done, steps);
        done += steps;
        if ((w.first > 0 || w.end < w.steps) && !meet(&p->g, &w, acc))
            continue;
        tile_place at = place_of(&p->g, w.tile);
        bool inside = rung_is_aligned16(p->g.c, p->g.ldc) && at.row + BM <= p->g.m && at.column + BN <= p->g.n;
#pragma unroll
        for (int t = 0; t < TM; t++)
#pragma unroll
            for (int u = 0; u < TN; u += 4)
                rung_write4(&p->g, at.row + y + t * ROW_STEP, at.column + x + u / 4 * COLUMN_STEP,
                            make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), inside);
    }
}

RUNG_KERNEL(THREADS, 1) l29_one_kernel(const __grid_constant__ rung_tma_args p)
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
