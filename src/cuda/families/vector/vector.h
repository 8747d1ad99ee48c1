/* Matrix times vector, memory bound: every matrix element is read once, 16 bytes a load. A is the matrix, B[k * ldb]
 * the vector, C[row * ldc] the result; the launcher swaps sides where m = 1. WARPS warps share k; their sums meet
 * in shared memory in warp order, parts of k in the workspace in part order. */
#ifndef RUNG_DEVICE_SHAPES_VECTOR_H
#define RUNG_DEVICE_SHAPES_VECTOR_H

#include "device/copies.h"
#include "device/end.h"
#include "device/parts.h"

/* Adds the parts' sums in order, in the last block to arrive, then applies alpha, beta, bias and activation. The
 * block's rows are row0, row0 + apart, and so on. */
RUNG_DEVICE void finish_rows(const rung_args *p, float *c, float alpha, float beta, long long row0, int apart,
                             unsigned split, unsigned of, const int rows, float sum)
{
    const int t = threadIdx.x;
    rung_next_kernel_may_start_now(p, RUNG_NEXT_BEFORE_END);
    if (p->split_k > 1) {
        float *slot = (float *)p->workspace + (size_t)of * p->split_k * rows + t;
        if (t < rows)
            __stcg(slot + (size_t)split * rows, sum);
        if (!parts_arrive_last(parts_counters(p) + of, p->split_k))
            return;
        if (t < rows) {
            sum = 0.0f;
#pragma unroll 1
            for (int s = 0; s < p->split_k; s += 16) { /* sixteen loads are under way before the first is added */
                float v[16];
#pragma unroll
                for (int i = 0; i < 16; i++)
                    v[i] = s + i < p->split_k ? __ldcg(slot + (size_t)(s + i) * rows) : 0.0f;
#pragma unroll
                for (int i = 0; i < 16; i++)
                    sum += v[i];
            }
        }
    }
    long long r = row0 + t * apart;
    if (t >= rows || r >= p->m)
        return;
    float v = alpha * sum;
    if (beta != 0.0f)
        v = fmaf(beta, c[r * p->ldc], v);
    if (p->bias_kind)
        v += p->bias[p->bias_kind == RUNG_BIAS_PER_ROW ? r : 0];
    if (p->activation)
        v = end_activate(v, p->activation);
    c[r * p->ldc] = v;
}

#define VECTOR_PROLOGUE                                                                                                \
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;                                                        \
    unsigned tiles = (unsigned)VECTOR_TILES(p.m, p.lda), tile = blockIdx.x % tiles, rest = blockIdx.x / tiles;         \
    unsigned split = rest % p.split_k, batch = rest / p.split_k;                                                       \
    const int k = (int)p.k, k_per_part = ((k + BK - 1) / BK + p.split_k - 1) / p.split_k * BK;                         \
    const int k0 = (int)split * k_per_part, part_k = k0 >= k ? 0 : min(k - k0, k_per_part);                            \
    if (p.asks)                                                                                                        \
        VECTOR_ASK(&p, tile, batch, k0, part_k);                                                                       \
    rung_after_earlier_kernels();                                                                                      \
    rung_next_kernel_may_start_now(&p, RUNG_NEXT_AT_ONCE);                                                             \
    const float alpha = p.alpha_device ? *p.alpha_device : p.alpha;                                                    \
    const float beta = p.beta_device ? *p.beta_device : p.beta;                                                        \
    const float *a = p.a_array ? p.a_array[batch] : p.a + batch * p.stride_a;                                          \
    const float *x = p.b_array ? p.b_array[batch] : p.b + batch * p.stride_b;                                          \
    float *c = p.c_array ? p.c_array[batch] : p.c + batch * p.stride_c;                                                \
    const int vec = aligned16(a, p.lda);                                                                               \
    const int depth = alpha == 0.0f ? 0 : part_k

#endif
