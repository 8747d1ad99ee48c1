/* f16x3_rules.h: the order of the tiles, what the guard says of one, and how results are finished. */
#ifndef RUNG_DEVICE_F16X3_RULES_H
#define RUNG_DEVICE_F16X3_RULES_H

#include "device/end.h"
#include "device/f16x3_guard.h"

/* Bits of a verdict: this block is safe; some block of the cluster is; this block's lines have tiny elements; all
 * blocks are refused, and nothing follows. */
enum { F16X3_SAFE = 1, F16X3_RUN = 2, F16X3_TINY = 4, F16X3_NONE = 8 };

/* Finds a tile's place. Tiles go in bands of `band` cluster tiles along m, so that those computed at one time share
 * their operands in L2. */
RUNG_DEVICE void f16x3_tile(const f16x3_args *g, int tile, int *tm, int *tn)
{
    int per_band = g->band * g->tiles_n, first = tile / per_band * g->band, rest = tile % per_band;
    int height = min(g->band, g->tiles_m - first);
    *tm = first + rest % height;
    *tn = rest / height;
}

RUNG_DEVICE int f16x3_verdict(const f16x3_args *g, int block_m, int tm, int tn, int cluster, int bn)
{
    f16x3_group b = f16x3_join(g->guard.b + tn * (bn / F16X3_GROUP), bn / F16X3_GROUP), a;
    int i, safe, verdict = 0;
    for (i = 0; i < cluster; i++) {
        a = f16x3_join(g->guard.a + (tm * cluster + i) * (F16X3_BM / F16X3_GROUP), F16X3_BM / F16X3_GROUP);
        safe = f16x3_pair_safe(&g->guard, a, b);
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
