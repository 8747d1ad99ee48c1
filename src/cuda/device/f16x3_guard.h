/* f16x3_guard.h: what the fp16x3 product left alone, by FP32 multiply-adds.
 * Contract: the product's arguments and refusals (f16x3_rules.h); elements that were not refused are not touched.
 * One word is read first: when nothing was left, the launch costs its latency.
 * Limits: meant for a few blocks; one 128 x BN block at a time, 8 x BN/16 results a thread. */
#ifndef RUNG_DEVICE_F16X3_GUARD_H
#define RUNG_DEVICE_F16X3_GUARD_H

#include "device/f16x3_rules.h"

enum { GUARD_THREADS = F16X3_THREADS, GBM = F16X3_BM, GBN = F16X3_BN, GBK = 8, GTN = GBN / 16 };

typedef struct guard_operands {
    const float *a, *b;
} guard_operands;

RUNG_DEVICE float guard_a(const rung_args *g, const float *a, int row, int k)
{
    if (row >= g->m || k >= g->k)
        return 0.0f;
    return g->trans_a ? a[k * g->lda + row] : a[row * g->lda + k];
}

RUNG_DEVICE float guard_b(const rung_args *g, const float *b, int k, int col)
{
    if (col >= g->n || k >= g->k)
        return 0.0f;
    return g->trans_b ? b[col * g->ldb + k] : b[k * g->ldb + col];
}

RUNG_DEVICE void guard_store(const f16x3_args *g, float *c, float v)
{
    float alpha = g->g.alpha_device ? *g->g.alpha_device : g->g.alpha;
    float beta = g->g.beta_device ? *g->g.beta_device : g->g.beta;
    *c = f16x3_finish(v, alpha, beta, c);
}

static __device__ void guard_block(const f16x3_args *f, const float *pa, const float *pb, int row0, int col0)
{
    __shared__ float a[GBK][GBM + 4], b[GBK][GBN + 4];
    const rung_args *g = &f->g;
    float *c = f16x3_c(f);
    float sum[8][GTN];
    int t = threadIdx.x, tr = t / 16, tc = t % 16, i, j, k, k0;

#pragma unroll
    for (i = 0; i < 8; i++)
#pragma unroll
        for (j = 0; j < GTN; j++)
            sum[i][j] = 0.0f;
    for (k0 = 0; k0 < g->k; k0 += GBK) {
#pragma unroll
        for (i = t; i < GBM * GBK; i += GUARD_THREADS) {
            int row = g->trans_a ? i % GBM : i / GBK, kk = g->trans_a ? i / GBM : i % GBK;
            a[kk][row] = guard_a(g, pa, row0 + row, k0 + kk);
        }
#pragma unroll
        for (i = t; i < GBN * GBK; i += GUARD_THREADS) {
            int col = g->trans_b ? i / GBK : i % GBN, kk = g->trans_b ? i % GBK : i / GBN;
            b[kk][col] = guard_b(g, pb, k0 + kk, col0 + col);
        }
        __syncthreads();
#pragma unroll
        for (k = 0; k < GBK; k++) {
            float x[8], y[GTN];
#pragma unroll
            for (i = 0; i < 8; i++)
                x[i] = a[k][tr * 8 + i];
#pragma unroll
            for (j = 0; j < GTN; j++)
                y[j] = b[k][tc * 4 + j / 4 * 64 + j % 4];
#pragma unroll
            for (i = 0; i < 8; i++)
#pragma unroll
                for (j = 0; j < GTN; j++)
                    sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (i = 0; i < 8; i++)
#pragma unroll
        for (j = 0; j < GTN; j++) {
            int row = row0 + tr * 8 + i, col = col0 + tc * 4 + j / 4 * 64 + j % 4;
            if (row < g->m && col < g->n)
                guard_store(f, c + row * g->ldc + col, sum[i][j]);
        }
#pragma unroll 1
    for (i = 0; i < 8 * GTN && (g->bias_kind | g->activation); i++)
        f16x3_extras(g, row0 + tr * 8 + i / GTN, col0 + tc * 4 + i % GTN / 4 * 64 + i % 4, c);
}

/* Single elements: one warp each, in 32 interleaved sums. */
static __device__ void guard_elements(const f16x3_args *f, const float *pa, const float *pb, int tile, int count)
{
    int lane = threadIdx.x % 32, i, k;
    for (i = threadIdx.x / 32; i < count; i += GUARD_THREADS / 32) {
        f16x3_element at = f->fix[(int64_t)tile * F16X3_FIX_MAX + i];
        float sum = 0.0f;
        for (k = lane; k < f->g.k; k += 32)
            sum = fmaf(guard_a(&f->g, pa, at.row, k), guard_b(&f->g, pb, k, at.col), sum);
        for (k = 16; k > 0; k >>= 1)
            sum += __shfl_xor_sync(~0u, sum, k);
        if (lane == 0)
            guard_store(f, f16x3_c(f) + at.row * f->g.ldc + at.col,
                        sum); /* never with bias or activation: see few_doubtful */
    }
}

RUNG_KERNEL(F16X3_THREADS) f16x3_guard(const __grid_constant__ f16x3_args g)
{
    int blocks_m = (int)((g.g.m + GBM - 1) / GBM), tile;
    if (blockIdx.x == 0 && threadIdx.x == 0 && g.counts)
        atomicAdd(&g.counts[0], (unsigned long long)blocks_m * g.tiles_n);
    if (*g.work == 0)
        return;
    const float *a = g.g.a_array ? g.g.a_array[g.entry] : g.g.a, *b = g.g.b_array ? g.g.b_array[g.entry] : g.g.b;
    for (tile = blockIdx.x; tile < blocks_m * g.tiles_n; tile += gridDim.x) {
        int block_m = tile / g.tiles_n, tn = tile % g.tiles_n, fixes = g.fix_count[tile] & 0xffff;
        if (!f16x3_safe(&g, block_m, tn, GBN) || g.late[tile]) {
            guard_block(&g, a, b, block_m * GBM, tn * GBN);
            if (threadIdx.x == 0 && g.counts)
                atomicAdd(&g.counts[1], 1ull);
        } else if (fixes) {
            guard_elements(&g, a, b, tile, fixes);
            if (threadIdx.x == 0 && g.counts)
                atomicAdd(&g.counts[2], (unsigned long long)fixes);
        }
    }
}

#endif
