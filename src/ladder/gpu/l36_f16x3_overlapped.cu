/* l36_f16x3_overlapped: while a chain of 64 is added to the sums, the tensor cores work on its corrections.
 * Changed from l35_f16x3_promoted: two groups of wgmma, the chain and its corrections, and each is waited for only
 * after the other was queued. And two blocks of a cluster take tiles one below the other: each fetches half of their
 * tile of B and sends it to both. Limits: a product of two kernels; Inf and NaN, or elements far below their line's
 * largest, go by definition. */
#include "device/images.h"
#include "device/ptx.h"

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum {
    CLUSTER = 2,
    A_BYTES = BM * 128,
    B_BYTES = BN * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    HALF_BYTES = B_BYTES / CLUSTER
};
enum { LEAST_K = 64 }; /* of shorter sums FP32 has fewer errors than one split product */

typedef struct {
    uint32_t full, empty, data; /* shared addresses */
    int stage;
    uint32_t parity;
} ring;

RUNG_DEVICE void advance(ring *r)
{
    r->stage = r->stage + 1 == STAGES ? 0 : r->stage + 1;
    r->parity ^= r->stage == 0;
}

/* lesson pair */
/* One thread: its own tile of A, and its half of the cluster's tile of B for both blocks. Tiles are counted in
 * clusters. */
RUNG_DEVICE void produce(const rung_image_args *p, ring r, uint32_t rank)
{
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        const char *a = p->a + (row * CLUSTER + rank) * A_BYTES, *b = p->b + column * B_BYTES + rank * HALF_BYTES;
        for (int64_t kb = 0; kb < p->k_blocks; kb++) {
            uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
            ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1); /* both blocks' warps have left this stage */
            ptx_mbar_arrive_tx(full, STAGE_BYTES);
            ptx_bulk_load(to, a, A_BYTES, full);
            ptx_bulk_load_multicast(to + A_BYTES + rank * HALF_BYTES, b, HALF_BYTES, full, (1 << CLUSTER) - 1);
            a += p->a_lines * 128;
            b += p->b_lines * 128;
            advance(&r);
        }
    }
}
/* /lesson */

/* This warp is done with two stages: both blocks of the cluster are told, for each fills halves of the other's. */
RUNG_DEVICE void release_two(const ring *r, int stage)
{
    int lane = threadIdx.x % 32, next = stage + 1 == STAGES ? 0 : stage + 1;
    if (lane < CLUSTER) {
        ptx_mbar_arrive_cluster(r->empty + stage * 8, lane);
        ptx_mbar_arrive_cluster(r->empty + next * 8, lane);
    }
}

/* Waits for the next stage and hands out its operands. */
RUNG_DEVICE void take(ring *r, int group, uint64_t *a, uint64_t *b)
{
    uint32_t at = r->data + r->stage * STAGE_BYTES;
    ptx_mbar_wait(r->full + r->stage * 8, r->parity);
    *a = ptx_wgmma_desc_k128(at + group * 64 * 128);
    *b = ptx_wgmma_desc_k128(at + A_BYTES);
    advance(r);
    ptx_wgmma_fence();
}

RUNG_DEVICE void leading(float acc[SUMS], uint64_t a, uint64_t b, bool keep)
{
    PTX_WGMMA_F16_N128(acc, a, b, keep);
    PTX_WGMMA_F16_N128(acc, a + 2, b + 2, 1);
}

RUNG_DEVICE void corrections(float cor[SUMS], uint64_t a, uint64_t b, bool keep)
{
    PTX_WGMMA_F16_N128(cor, a + 4, b, keep);
    PTX_WGMMA_F16_N128(cor, a, b + 4, 1);
    PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
}

RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, float sum[SUMS])
{
    float acc[SUMS], cor[SUMS];
    uint64_t a0, b0, a1, b1;
    int before = -1;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb += 2) {
        /* lesson overlap */
        int first = r->stage;
        ptx_hold(acc, SUMS);
        take(r, group, &a0, &b0);
        leading(acc, a0, b0, false);
        take(r, group, &a1, &b1);
        leading(acc, a1, b1, true);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* all but the newest group: the corrections of the chain before are done */
        if (before >= 0)
            release_two(r, before);
        before = first;
        ptx_wgmma_fence();
        corrections(cor, a0, b0, kb > 0);
        corrections(cor, a1, b1, true);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* this chain; its corrections go on below */
        ptx_hold(acc, SUMS);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i];
        /* /lesson */
    }
    PTX_WGMMA_WAIT(0);
    ptx_hold(cor, SUMS);
    release_two(r, before);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}

RUNG_DEVICE void consume_tiles(const rung_image_args *p, ring r, uint32_t rank)
{
    __shared__ rung_image_line lines[BM + BN];
    int t = threadIdx.x, lane = t % 32, group = __shfl_sync(~0u, t / 128, 0); /* the compiler is to know: one a warp */
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    float sum[SUMS];
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        row = row * CLUSTER + rank;
        /* Asked for now, wanted at the end. */
        rung_image_line mine = t < BM ? p->a_line[row * BM + t] : p->b_line[column * BN + t - BM];
        consume(p, &r, group, sum);
        ptx_bar_sync(1, CONSUMERS); /* everybody has read the lines of the tile before */
        lines[t] = mine;
        ptx_bar_sync(1, CONSUMERS);
        int y = t / 32 * 16 + lane / 4, x = lane % 4 * 2;
        bool whole = (row + 1) * BM <= p->g.m && (column + 1) * BN <= p->g.n;
        uint64_t doubtful = p->g.k < LEAST_K ? ~0ull : image_doubtful(sum, &lines[y], &lines[BM + x]);
        image_write_tile(&p->g, sum, &lines[y], &lines[BM + x], row * BM + y, column * BN + x, whole, doubtful);
    }
}

RUNG_KERNEL(THREADS, 1) l36_f16x3_overlapped(const __grid_constant__ rung_image_args p)
{
    extern __shared__ __align__(1024) char stages[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    uint32_t rank = ptx_cluster_rank();
    ring r = {ptx_smem(full), ptx_smem(empty), ptx_smem(stages), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx_mbar_init(r.full + i * 8, 1);
            ptx_mbar_init(r.empty + i * 8, CLUSTER * CONSUMERS / 32);
        }
        ptx_mbar_init_fence();
    }
    __syncthreads();
    ptx_cluster_sync(); /* nobody signals a barrier that is not there yet */
    if (threadIdx.x < CONSUMERS) {
        PTX_REGS_MORE(232);
        consume_tiles(&p, r, rank);
    } else {
        PTX_REGS_FEWER(40);
        if (threadIdx.x == CONSUMERS)
            produce(&p, r, rank);
    }
    __syncwarp();
    ptx_cluster_sync(); /* the other block may still signal into this one */
}
