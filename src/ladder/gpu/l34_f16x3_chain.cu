/* l34_f16x3_chain: each element as two fp16 halves, split once by a kernel of its own; three products, one chain of
 * sums a tile. Changed from l33_bf16x9: fp16 has 11 bits, so two parts and three products are enough; a line (row of A,
 * column of B) is scaled by a power of two, because fp16 has a short range; and the product kernel only copies and
 * multiplies, as in l30_tf32_bulk. Limits: the tensor core cuts sums off behind 25 bits, so a long chain drifts.
 * Results that may owe too much to elements far below their line's largest, or to Inf and NaN, are computed by
 * definition. */
#include "device/images.h"
#include "device/ptx.h"

#include <cuda_fp16.h>

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum { A_BYTES = BM * 128, STAGE_BYTES = A_BYTES + BN * 128 };

/* ---- the split ---- */

/* The power of two that brings a line's largest magnitude to [2^14, 2^15). */
RUNG_DEVICE int scale_of(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int exponent = largest >= 0x00800000u ? (int)(largest >> 23) - 127 : -118 - __clz((int)largest);
    return 14 - exponent;
}

/* lesson split */
/* Two values, x = (hi + lo 2^-11) 2^-scale; counts those of which lo lost bits: below 2^-27 of the largest. */
RUNG_DEVICE void split2(const float *x, float s1, float s2, uint32_t *hi, uint32_t *lo, unsigned *tiny)
{
    float v = x[0] * s1 * s2, w = x[1] * s1 * s2; /* two factors: one alone could leave the exponent range */
    *hi = ptx_round_halves(v, w);
    float rest_v = v - __half2float(__ushort_as_half((unsigned short)*hi));
    float rest_w = w - __half2float(__ushort_as_half((unsigned short)(*hi >> 16)));
    *lo = ptx_round_halves(rest_v * 2048.0f, rest_w * 2048.0f);
    *tiny += (x[0] != 0.0f && fabsf(v) < 0x1p-13f) + (x[1] != 0.0f && fabsf(w) < 0x1p-13f);
}
/* /lesson */

/* 32 lines a block: a look for the largest of each line, then a second one that splits, from the end, which L2 may
 * still have. */
RUNG_KERNEL(IMAGE_THREADS) l34_f16x3_chain_split(const __grid_constant__ rung_image_args p)
{
    __shared__ unsigned largest[IMAGE_LINES], tiny[IMAGE_LINES];
    int64_t first;
    image_operand o = image_operand_of(&p, &first);
    /* A thread takes 8 of k. Along k four threads share a line's 128 bytes, across k a warp reads 32 lines at once. */
    int t = threadIdx.x, line = o.k_step == 1 ? t / 4 % 32 : t % 32, unit = o.k_step == 1 ? t % 4 : t / 32 % 4;
    float v[8];
    unsigned most = 0, lost = 0;
    if (t < IMAGE_LINES)
        largest[t] = tiny[t] = 0;
    __syncthreads();
#pragma unroll 2
    for (int64_t kb = t / 128; kb < p.k_blocks; kb += IMAGE_THREADS / 128) {
        image_load8(v, &o, first + line, kb * IMAGE_KB + unit * 8);
#pragma unroll
        for (int i = 0; i < 8; i++)
            most = max(most, __float_as_uint(fabsf(v[i])));
    }
    atomicMax(&largest[line], most);
    __syncthreads();
    int scale = scale_of(largest[line]);
    float s1 = __int_as_float((scale / 2 + 127) << 23), s2 = __int_as_float((scale - scale / 2 + 127) << 23);
#pragma unroll 2
    for (int64_t kb = p.k_blocks - 1 - t / 128; kb >= 0; kb -= IMAGE_THREADS / 128) {
        uint32_t hi[4], lo[4];
        image_load8(v, &o, first + line, kb * IMAGE_KB + unit * 8);
#pragma unroll
        for (int i = 0; i < 4; i++)
            split2(&v[2 * i], s1, s2, &hi[i], &lo[i], &lost);
        *(uint4 *)image_unit(&o, kb, first + line, unit) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        *(uint4 *)image_unit(&o, kb, first + line, unit + 4) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
    atomicAdd(&tiny[line], lost);
    __syncthreads();
    if (t < IMAGE_LINES) {
        rung_image_line of = {scale_of(largest[t]), 2.0f * tiny[t]};
        if (largest[t] >= 0x7f800000u)
            of.doubt = __int_as_float(0x7f800000);
        o.line[first + t] = of;
    }
}

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

/* All of k in one chain: hi * hi into sum, the two corrections into one of their own, 2^11 times as large as they
 * count. */
RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, float sum[SUMS])
{
    float cor[SUMS];
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb++) {
        /* lesson chain */
        uint32_t at = r->data + r->stage * STAGE_BYTES;
        ptx_mbar_wait(r->full + r->stage * 8, r->parity);
        uint64_t a = ptx_wgmma_desc_k128(at + group * 64 * 128), b = ptx_wgmma_desc_k128(at + A_BYTES);
        ptx_hold(sum, SUMS);
        ptx_hold(cor, SUMS);
        ptx_wgmma_fence();
        PTX_WGMMA_F16_N128(sum, a, b, kb > 0);     /* hi * hi, k 0 to 15; a step of 16 is 2 units of 16 bytes */
        PTX_WGMMA_F16_N128(sum, a + 2, b + 2, 1);  /* k 16 to 31 */
        PTX_WGMMA_F16_N128(cor, a + 4, b, kb > 0); /* lo * hi: lo lies 4 units behind hi */
        PTX_WGMMA_F16_N128(cor, a, b + 4, 1);      /* hi * lo */
        PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
        PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(sum, SUMS);
        ptx_hold(cor, SUMS);
        if (threadIdx.x % 32 == 0)
            ptx_mbar_arrive(r->empty + r->stage * 8);
        advance(r);
        /* /lesson */
    }
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
        uint64_t doubtful = image_doubtful(sum, &lines[y], &lines[BM + x]);
        image_write_tile(&p->g, sum, &lines[y], &lines[BM + x], row * BM + y, column * BN + x, whole, doubtful);
    }
}

RUNG_KERNEL(THREADS, 1) l34_f16x3_chain(const __grid_constant__ rung_image_args p)
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
