/* f16x3_guard.h: which blocks the fp16x3 method may compute. A block is refused when its operands hold Inf or NaN, when
 * strict sums could overflow on the way, and when so few terms carry the sums that the error of one split product would
 * show. Where hardly any block would be left, all are refused. docs/numerics.md derives the limits. */
#ifndef RUNG_DEVICE_F16X3_GUARD_H
#define RUNG_DEVICE_F16X3_GUARD_H

#include "device/f16x3.h"

/* Joins what `count` groups hold: the largest values of all, the sum of the lines that stand alone. */
RUNG_DEVICE f16x3_group f16x3_join(const f16x3_group *g, int count)
{
    f16x3_group all = {0, 0, 0, 0};
    int i;
    for (i = 0; i < count; i++) {
        uint4 v = *(const uint4 *)&g[i];
        all.max_bits = max(all.max_bits, v.x);
        all.peak_bits = max(all.peak_bits, v.y);
        all.tiny = max(all.tiny, v.z);
        all.alone += v.w;
    }
    return all;
}

/* True where lines in which few elements stand out meet dense ones. FP32 adds these badly when a long tail follows what
 * stands out, because each term of the tail is rounded to the last bit of the large partial sum. Gradients of a softmax
 * look so. */
RUNG_DEVICE int f16x3_tails(f16x3_group few, f16x3_group dense, int k)
{
    unsigned alone = few.alone & ((1u << F16X3_TAIL_BIT) - 1), tailed = few.alone >> F16X3_TAIL_BIT;
    return alone > 0 && tailed * 8 >= alone && __uint_as_float(dense.peak_bits) * k <= F16X3_DENSE;
}

RUNG_DEVICE int f16x3_pair_safe(const f16x3_guard *g, f16x3_group a, f16x3_group b)
{
    int k = g->k, log2_k = 32 - __clz(k);
    int finite = max(a.max_bits, b.max_bits) < 0x7f800000u;
    int inside = (int)(a.max_bits >> 23) + (int)(b.max_bits >> 23) - 254 + 2 + log2_k <= 127;
    float few = __uint_as_float(a.peak_bits) * __uint_as_float(b.peak_bits) * (g->min_terms * k);
    return finite & inside && (few <= 1.0f || f16x3_tails(a, b, k) || f16x3_tails(b, a, k));
}

/* Says whether the guard refuses all blocks: those that are not safe, and with them the others, where these are too few
 * to be worth a split and a product. Every warp of a launch finds the same. All its lanes call this; `wild` is what
 * g->wild says. */
RUNG_DEVICE int f16x3_refuses_all(const f16x3_guard *g, uint32_t wild)
{
    enum { GROUPS = F16X3_BM / F16X3_GROUP };
    int i, safe = 0;
    if (!wild)
        return 0;
#pragma unroll 2
    for (i = threadIdx.x % 32; i < g->rows * g->columns; i += 32)
        safe += f16x3_pair_safe(g, f16x3_join(g->a + i / g->columns * GROUPS, GROUPS),
                                f16x3_join(g->b + i % g->columns * GROUPS, GROUPS));
#pragma unroll 1
    for (i = 16; i > 0; i >>= 1)
        safe += __shfl_xor_sync(~0u, safe, i);
    return safe < g->least_safe;
}

/* Says whether all of C is left to strict arithmetic, by a look or by the guard: for launches beside the product's. All
 * lanes of a warp call this. */
RUNG_DEVICE int f16x3_all_refused(const f16x3_guard *g)
{
    const uint32_t wild = *g->wild; /* on its way while the other word is waited for */
    return (g->refused && *g->refused) || f16x3_refuses_all(g, wild);
}

#endif
