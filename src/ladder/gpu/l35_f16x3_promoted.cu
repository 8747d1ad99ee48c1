/* l35_f16x3_promoted: every 64 along k the chain of sums ends, is added to FP32 registers, and starts again from zero.
 * Changed from l34_f16x3_chain: promotion. A sum of 64 products is cut off where it is small; the additions round to
 * nearest. The corrections count 2^-11 as much, and so do their errors: they keep one chain over all of k. l34's kernel
 * splits. Limits: the tensor cores idle while sums are added: a warpgroup waits for all its products first. */
#include "device/images.h"
#include "device/ptx.h"

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum { A_BYTES = BM * 128, STAGE_BYTES = A_BYTES + BN * 128 };
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

/* One thread: bulk copies of both images' next 32 of k, as stages come free. */
RUNG_DEVICE void produce(const rung_image_args *p, ring r)
{
    int64_t rows = p->a_lines / BM, columns = p->b_lines / BN, row, column;
    for (int64_t tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        image_place(tile, rows, columns, &row, &column);
        for (int64_t kb = 0; kb < p->k_blocks; kb++) {
            uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
            ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1);
            ptx_mbar_arrive_tx(full, STAGE_BYTES);
            ptx_bulk_load(to, p->a + (kb * p->a_lines + row * BM) * 128, A_BYTES, full);
            ptx_bulk_load(to + A_BYTES, p->b + (kb * p->b_lines + column * BN) * 128, STAGE_BYTES - A_BYTES, full);
            advance(&r);
        }
    }
}

RUNG_DEVICE void release(const ring *r, int stage)
{
    if (threadIdx.x % 32 == 0)
        ptx_mbar_arrive(r->empty + stage * 8);
}

/* 32 of k: hi * hi into acc, the two corrections into cor. */
RUNG_DEVICE void multiply(ring *r, int group, float acc[SUMS], float cor[SUMS], bool keep_acc, bool keep_cor)
{
    uint32_t at = r->data + r->stage * STAGE_BYTES;
    ptx_mbar_wait(r->full + r->stage * 8, r->parity);
    uint64_t a = ptx_wgmma_desc_k128(at + group * 64 * 128), b = ptx_wgmma_desc_k128(at + A_BYTES);
    ptx_wgmma_fence();
    PTX_WGMMA_F16_N128(acc, a, b, keep_acc);
    PTX_WGMMA_F16_N128(acc, a + 2, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 4, b, keep_cor);
    PTX_WGMMA_F16_N128(cor, a, b + 4, 1);
    PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
    advance(r);
}

RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, float sum[SUMS])
{
    float acc[SUMS], cor[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
        /* lesson promotion */
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb += 2) {
        int first = r->stage;
        ptx_hold(acc, SUMS);
        ptx_hold(cor, SUMS);
        multiply(r, group, acc, cor, false, kb > 0); /* acc starts from zero */
        multiply(r, group, acc, cor, true, true);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(acc, SUMS);
        ptx_hold(cor, SUMS);
        release(r, first);
        release(r, first + 1 == STAGES ? 0 : first + 1);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i]; /* an FP32 addition, rounded to nearest */
    }
    /* /lesson */
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}

RUNG_DEVICE void consume_tiles(const rung_image_args *p, ring r)
{
    __shared__ rung_image_line lines[BM + BN];
    int t = threadIdx.x, lane = t % 32, group = __shfl_sync(~0u, t / 128, 0); /* the compiler is to know: one a warp */
    int64_t rows = p->a_lines / BM, columns = p->b_lines / BN, row, column;
    float sum[SUMS];
    for (int64_t tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        image_place(tile, rows, columns, &row, &column);
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

RUNG_KERNEL(THREADS, 1) l35_f16x3_promoted(const __grid_constant__ rung_image_args p)
{
    extern __shared__ __align__(1024) char stages[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    ring r = {ptx_smem(full), ptx_smem(empty), ptx_smem(stages), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx_mbar_init(r.full + i * 8, 1);
            ptx_mbar_init(r.empty + i * 8, CONSUMERS / 32);
        }
        ptx_mbar_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        PTX_REGS_MORE(232);
        consume_tiles(&p, r);
    } else {
        PTX_REGS_FEWER(40);
        if (threadIdx.x == CONSUMERS)
            produce(&p, r);
    }
}
