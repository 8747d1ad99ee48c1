/* f16x3_rules.h: the order of the tiles, and which blocks the fp16x3 method may compute. A block is refused when its
 * operands hold Inf or NaN, when strict sums could overflow on the way, and when so few terms carry the sums that the
 * error of one split product would show. docs/numerics.md derives the limits. */
#ifndef RUNG_DEVICE_F16X3_RULES_H
#define RUNG_DEVICE_F16X3_RULES_H

#include "device/end.h"
#include "device/f16x3.h"

/* Bits of a verdict: this block is safe; some block of the cluster is; this block's lines have tiny elements. */
enum { F16X3_SAFE = 1, F16X3_RUN = 2, F16X3_TINY = 4 };

/* Finds a tile's place. Tiles go in bands of `band` cluster tiles along m, so that those computed at one time share
 * their operands in L2. */
RUNG_DEVICE void f16x3_tile(const f16x3_args *g, int tile, int *tm, int *tn)
{
    int per_band = g->band * g->tiles_n, first = tile / per_band * g->band, rest = tile % per_band;
    int height = min(g->band, g->tiles_m - first);
    *tm = first + rest % height;
    *tn = rest / height;
}

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

RUNG_DEVICE int f16x3_pair_safe(const f16x3_args *g, f16x3_group a, f16x3_group b)
{
    int k = (int)g->g.k, log2_k = 32 - __clz(k);
    int finite = max(a.max_bits, b.max_bits) < 0x7f800000u;
    int inside = (int)(a.max_bits >> 23) + (int)(b.max_bits >> 23) - 254 + 2 + log2_k <= 127;
    float few = __uint_as_float(a.peak_bits) * __uint_as_float(b.peak_bits) * (g->min_terms * k);
    return finite & inside && (few <= 1.0f || f16x3_tails(a, b, k) || f16x3_tails(b, a, k));
}

RUNG_DEVICE int f16x3_verdict(const f16x3_args *g, int block_m, int tm, int tn, int cluster, int bn)
{
    f16x3_group b = f16x3_join(g->b_group + tn * (bn / F16X3_GROUP), bn / F16X3_GROUP), a;
    int i, safe, verdict = 0;
    for (i = 0; i < cluster; i++) {
        a = f16x3_join(g->a_group + (tm * cluster + i) * (F16X3_BM / F16X3_GROUP), F16X3_BM / F16X3_GROUP);
        safe = f16x3_pair_safe(g, a, b);
        verdict |= safe ? F16X3_RUN : 0;
        if (tm * cluster + i == block_m)
            verdict |= (safe ? F16X3_SAFE : 0) | (a.tiny | b.tiny ? F16X3_TINY : 0);
    }
    return verdict;
}

RUNG_DEVICE float *f16x3_c(const f16x3_args *g)
{
    return g->g.c_array ? g->g.c_array[g->entry] : g->g.c;
}

/* Returns alpha v + beta c. It reads c only when beta is not 0. */
RUNG_DEVICE float f16x3_finish(float v, float alpha, float beta, const float *c)
{
    v = alpha == 0.0f ? 0.0f : alpha * v;
    return beta == 0.0f ? v : fmaf(beta, *c, v);
}

/* What follows alpha A B + beta C: the bias, and relu as the least value allowed. Without them nothing changes: adding
 * -0 leaves every value alone, and NaN is below nothing. */
typedef struct {
    const float *bias;
    int kind;
    float least;
} f16x3_ending;

RUNG_DEVICE f16x3_ending f16x3_ending_of(const rung_args *g)
{
    f16x3_ending e = {g->bias, g->bias_kind, g->activation == RUNG_RELU ? 0.0f : __int_as_float(0xff800000)};
    return e;
}

RUNG_DEVICE float f16x3_bias(const f16x3_ending *e, int kind, int64_t at, int64_t limit)
{
    return e->kind == kind && at < limit ? __ldg(e->bias + at) : -0.0f;
}

RUNG_DEVICE float f16x3_end(float v, float bias, float least)
{
    v += bias;
    return v < least ? least : v;
}

#endif
