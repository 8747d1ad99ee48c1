/* A look at both operands before they are split, where the guard refused every block of the last product like this one
 * (families/accurate/recall.h): it only reads, which takes a third to two thirds of a split. Where it is certain that
 * the guard would refuse every block again it marks them, and the split and the product end at once. Where it is not it
 * leaves no trace, and they do what they always do. So a look can change the time of a product and nothing else. */
#ifndef RUNG_DEVICE_F16X3_LOOK_H
#define RUNG_DEVICE_F16X3_LOOK_H

#include "device/f16x3_rules.h"
#include "device/f16x3_split.h"

enum {
    LOOK_AHEAD = 8, /* float4s of a line that a lane has asked for at once */
    LOOK_WARPS = F16X3_LOOK_THREADS / 32,
};

/* The split adds magnitudes in another order, and so does every number of threads. Up to F16X3_LOOK_K elements that
 * moves a line's peak by less than this factor. */
#define LOOK_MARGIN 1.01f

/* Adds to the line's group what the guard asks for. What is near a limit counts as beyond it where that makes the block
 * less certain to be refused. */
RUNG_DEVICE void look_report(const f16x3_operand *s, int line, unsigned max_bits, float sum)
{
    f16x3_group *g = &s->group[line / F16X3_GROUP];
    if (max_bits == 0)
        return;
    atomicMax(&g->max_bits, max_bits);
    if (max_bits >= 0x7f800000u)
        return;
    const float peak = split_peak(max_bits, sum);
    atomicMax(&g->peak_bits, __float_as_uint(peak));
    if (!(peak * LOOK_MARGIN < F16X3_ALONE))
        atomicAdd(&g->alone, 1u);
}

/* Looks at lines along k, a warp a line. */
RUNG_DEVICE void look_along(const f16x3_operand *s, int block)
{
    const int lane = threadIdx.x % 32, line = block * LOOK_WARPS + (int)threadIdx.x / 32;
    const int vector = ((s->ld & 3) | (int)((uintptr_t)s->x >> 2 & 3)) == 0;
    const float *row = s->x + line * s->ld;
    unsigned max_bits = 0;
    float sum = 0;
    int i, k;
    if (line >= s->lines)
        return;
#pragma unroll 1
    for (k = lane * 4; k < s->k; k += LOOK_AHEAD * 128) {
        float4 v[LOOK_AHEAD];
#pragma unroll
        for (i = 0; i < LOOK_AHEAD; i++)
            v[i] = split_load4(row, k + i * 128, s->k, vector);
#pragma unroll
        for (i = 0; i < LOOK_AHEAD; i++)
            split_stat4(v[i], &max_bits, &sum);
    }
#pragma unroll
    for (i = 16; i > 0; i >>= 1) {
        max_bits = max(max_bits, __shfl_xor_sync(~0u, max_bits, i));
        sum += __shfl_xor_sync(~0u, sum, i);
    }
    if (lane == 0)
        look_report(s, line, max_bits, sum);
}

/* Looks at 32 lines across k, a lane a line; the warps share k. */
RUNG_DEVICE void look_across(const f16x3_operand *s, int block)
{
    __shared__ split_seen seen[LOOK_WARPS];
    const int lane = threadIdx.x % 32, warp = (int)threadIdx.x / 32, line = block * SPLIT_LINES + lane;
    unsigned max_bits = 0;
    float sum = 0, v[F16X3_KB];
    int i, kb;
#pragma unroll 1
    for (kb = warp; kb < s->k_blocks; kb += LOOK_WARPS) {
        split_load32(s, s->x, line, kb, v);
#pragma unroll
        for (i = 0; i < F16X3_KB; i++) {
            max_bits = max(max_bits, __float_as_uint(fabsf(v[i])));
            sum += fabsf(v[i]) * SPLIT_SMALL;
        }
    }
    seen[warp].max[lane] = max_bits;
    seen[warp].sum[lane] = sum;
    __syncthreads();
    if (warp > 0 || line >= s->lines)
        return;
    for (i = 1; i < LOOK_WARPS; i++) {
        max_bits = max(max_bits, seen[i].max[lane]);
        sum += seen[i].sum[lane];
    }
    look_report(s, line, max_bits, sum);
}

/* Joins the two groups of one block's lines. They were written by other blocks of this launch. */
RUNG_DEVICE f16x3_group look_join(const f16x3_group *g)
{
    const uint4 v = __ldcg((const uint4 *)g), w = __ldcg((const uint4 *)g + 1);
    return (f16x3_group){max(v.x, w.x), max(v.y, w.y), 0, v.w + w.w};
}

/* Says whether a long tail could make a block safe that has too few terms: tails are not counted here. */
RUNG_DEVICE int look_may_tail(f16x3_group few, f16x3_group dense, int k)
{
    return k > F16X3_TAIL && few.alone > 0 && __uint_as_float(dense.peak_bits) * k <= F16X3_DENSE * LOOK_MARGIN;
}

/* Says whether f16x3_pair_safe() is certain to be 0. */
RUNG_DEVICE int look_is_refused(const f16x3_look_args *s, f16x3_group a, f16x3_group b)
{
    const int k = s->a.k, log2_k = 32 - __clz(k);
    const float few = __uint_as_float(a.peak_bits) * __uint_as_float(b.peak_bits) * (s->min_terms * k);
    if (max(a.max_bits, b.max_bits) >= 0x7f800000u)
        return 1;
    if ((int)(a.max_bits >> 23) + (int)(b.max_bits >> 23) - 254 + 2 + log2_k > 127)
        return 1;
    return few > LOOK_MARGIN && !look_may_tail(a, b, k) && !look_may_tail(b, a, k);
}

/* The last block of the launch judges all blocks of C, and leaves the groups zero. */
RUNG_DEVICE void look_judge(const f16x3_look_args *s)
{
    const int blocks = s->rows * s->columns;
    int i, all = 1;
    for (i = threadIdx.x; i < blocks; i += F16X3_LOOK_THREADS)
        all &= look_is_refused(s, look_join(s->a.group + i / s->columns * (F16X3_BM / F16X3_GROUP)),
                               look_join(s->b.group + i % s->columns * (F16X3_BM / F16X3_GROUP)));
    all = __syncthreads_and(all);
    for (i = threadIdx.x; i < s->a.row_groups * 8 / F16X3_GROUP; i += F16X3_LOOK_THREADS)
        *(uint4 *)&s->a.group[i] = make_uint4(0, 0, 0, 0);
    for (i = threadIdx.x; i < s->b.row_groups * 8 / F16X3_GROUP; i += F16X3_LOOK_THREADS)
        *(uint4 *)&s->b.group[i] = make_uint4(0, 0, 0, 0);
    for (i = threadIdx.x; all && i < blocks; i += F16X3_LOOK_THREADS)
        s->marks[i] = 1;
    if (threadIdx.x > 0)
        return;
    *s->arrived = 0;
    if (!all) {
        *s->last = *s->told = 0;
        *s->in_vain = *s->in_vain + 1;
        return;
    }
    s->marks[s->any] = 1;
    *s->refused = 1;
    if (s->counts) {
        atomicAdd(&s->counts[0], (unsigned long long)blocks);
        atomicAdd(&s->counts[1], (unsigned long long)blocks);
    }
}

RUNG_KERNEL(F16X3_LOOK_THREADS, 1) f16x3_look(const __grid_constant__ f16x3_look_args s)
{
    __shared__ int is_last;
    const int of_a = blockIdx.x < s.a_blocks, block = of_a ? blockIdx.x : blockIdx.x - s.a_blocks;
    const f16x3_operand *op = of_a ? &s.a : &s.b;
    if (op->k_innermost)
        look_along(op, block);
    else
        look_across(op, block);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(s.arrived, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    look_judge(&s);
}

#endif
