/* l30_tf32_bulk: the same product fed by bulk copies: a kernel of its own rounds both operands and lays them out as
 * wgmma reads them, once; then one thread of a block copies whole tiles into a ring of stages, and eight warps do
 * nothing but multiply. Changed from l30_tf32: rounding and layout once an element, not once a tile; a ring with a
 * barrier pair a stage (as l21_tma); blocks stay and take one tile after another. Limits: as l30_tf32, 11 bits; a pass
 * over both operands before the product. */
#include "device/images.h"
#include "device/ptx.h"

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum { A_BYTES = BM * 128, STAGE_BYTES = A_BYTES + BN * 128 };

/* ---- the layout ---- */

/* To nearest: the tensor core would truncate. The largest floats stay finite. */
RUNG_DEVICE float rounded(float x)
{
    float y = __uint_as_float(ptx_round_tf32(x));
    return isinf(y) && !isinf(x) ? copysignf(__uint_as_float(0x7f7fe000u), x) : y;
}

/* lesson layout */
/* 32 lines a block. A thread takes 8 of k, two units of a row; along k four threads share a line's 128 bytes, across k
 * a warp reads 32 lines at once. */
RUNG_KERNEL(IMAGE_THREADS) l30_tf32_bulk_split(const __grid_constant__ rung_image_args p)
{
    int64_t first;
    image_operand o = image_operand_of(&p, &first);
    int t = threadIdx.x, line = o.k_step == 1 ? t / 4 % 32 : t % 32, eighth = o.k_step == 1 ? t % 4 : t / 32 % 4;
#pragma unroll 2
    for (int64_t kb = t / 128; kb < p.k_blocks; kb += IMAGE_THREADS / 128) {
        float v[8];
        image_load8(v, &o, first + line, kb * IMAGE_KB + eighth * 8);
#pragma unroll
        for (int i = 0; i < 8; i += 4)
            *(float4 *)image_unit(&o, kb, first + line, eighth * 2 + i / 4) =
                make_float4(rounded(v[i]), rounded(v[i + 1]), rounded(v[i + 2]), rounded(v[i + 3]));
    }
}
/* /lesson */

/* ---- the product ---- */

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

/* A chain of 64 along k, 8 instructions, then the sums into FP32 registers; the other warpgroup multiplies meanwhile.
 */
RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, float sum[SUMS])
{
    float acc[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb += 2) {
        /* lesson multiply */
        int first = r->stage;
        ptx_hold(acc, SUMS);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t at = r->data + r->stage * STAGE_BYTES;
            ptx_mbar_wait(r->full + r->stage * 8, r->parity);
            uint64_t a = ptx_wgmma_desc_k128(at + group * 64 * 128), b = ptx_wgmma_desc_k128(at + A_BYTES);
            ptx_wgmma_fence();
#pragma unroll
            for (int unit = 0; unit < 8; unit += 2) /* 8 of k: 2 units of 16 bytes */
                PTX_WGMMA_TF32_N128(acc, a + unit, b + unit, half + unit > 0);
            advance(r);
        }
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(acc, SUMS);
        if (threadIdx.x % 32 == 0) {
            ptx_mbar_arrive(r->empty + first * 8);
            ptx_mbar_arrive(r->empty + (first + 1 == STAGES ? 0 : first + 1) * 8);
        }
        /* /lesson */
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i];
    }
}

RUNG_DEVICE void consume_tiles(const rung_image_args *p, ring r)
{
    int t = threadIdx.x, lane = t % 32, group = __shfl_sync(~0u, t / 128, 0); /* the compiler is to know: one a warp */
    int64_t rows = p->a_lines / BM, columns = p->b_lines / BN, row, column;
    float sum[SUMS];
    for (int64_t tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        image_place(tile, rows, columns, &row, &column);
        consume(p, &r, group, sum);
        int64_t y = row * BM + t / 32 * 16 + lane / 4, x = column * BN + lane % 4 * 2;
        bool pairs = (row + 1) * BM <= p->g.m && (column + 1) * BN <= p->g.n && p->g.ldc % 2 == 0 &&
                     ((uintptr_t)p->g.c & 7) == 0;
#pragma unroll
        for (int i = 0; i < SUMS; i += 2)
            image_write2(&p->g, y + i / 2 % 2 * 8, x + i / 4 * 8, sum[i], sum[i + 1], pairs);
    }
}

RUNG_KERNEL(THREADS, 1) l30_tf32_bulk(const __grid_constant__ rung_image_args p)
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
