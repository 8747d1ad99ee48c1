/* What all medium tiles share: the order of work, the places of tiles, and results that go through the general end. */
#ifndef RUNG_MEDIUM_KERNEL_H
#define RUNG_MEDIUM_KERNEL_H

#include "device/args.h"
#include "device/end.h"
#include "device/fragments.h"
#include "device/order.h"
#include "device/parts.h"
#include "device/ptx.h"
#include "device/ring.h"
#include "families/medium/args.h"

/* Where the streamed range of streaming block `streamer` begins. */
RUNG_DEVICE int medium_stream_start(const rung_medium_args *p, int streamer)
{
    return max(streamer, 0) * p->share + min(max(streamer, 0), p->wider);
}

RUNG_DEVICE void medium_start(struct order_run *w, const rung_medium_args *p)
{
    const int streamer = blockIdx.x - p->alone;
    w->next_tile = blockIdx.x;
    w->stream_begin = medium_stream_start(p, streamer);
    w->stream_end = medium_stream_start(p, streamer + 1);
}

/* The next run of this block. */
RUNG_DEVICE bool medium_next(struct order_run *w, const rung_medium_args *p)
{
    return order_next(w, &p->order);
}

RUNG_DEVICE struct order_place medium_place_of(unsigned tile, const rung_medium_args *p, const int bm, const int bn)
{
    return order_place_of(tile, &p->order, MEDIUM_GROUP_M, bm, bn);
}

/* The streaming block whose range holds step `first`. */
RUNG_DEVICE int medium_streamer_of(const rung_medium_args *p, int first)
{
    const int wide = p->wider * (p->share + 1);
    return first < wide ? first / (p->share + 1) : p->wider + (first - wide) / p->share;
}

/* One result with beta, bias and activation. */
RUNG_DEVICE float medium_end(const rung_medium_args *p, float product, float beta, float old, int row, int col)
{
    float value = beta != 0.0f ? fmaf(beta, old, product) : product;
    if (p->bias_kind)
        value += p->bias[p->bias_kind == RUNG_BIAS_PER_ROW ? row : col];
    return end_activate(value, p->activation);
}

/* Four neighbouring results of a row, wherever they lie and whatever they go through. */
RUNG_DEVICE void medium_store4(const rung_medium_args *p, float *c, float alpha, float beta, int row, int col,
                               float4 sum)
{
    int left = min(p->n - col, 4);
    float *out = c + (int64_t)row * p->ldc + col;
    float v[4] = {sum.x, sum.y, sum.z, sum.w}, old[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row >= p->m || left <= 0)
        return;
    int vector = p->c_vector && left == 4;
    if (beta != 0.0f) {
        if (vector) {
            float4 was = *(const float4 *)out;
            old[0] = was.x, old[1] = was.y, old[2] = was.z, old[3] = was.w;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (i < left)
                    old[i] = out[i];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < left)
            v[i] = medium_end(p, alpha != 0.0f ? alpha * v[i] : 0.0f, beta, old[i], row, col + i);
    if (vector) {
        *(float4 *)out = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                out[i] = v[i];
    }
}

#endif
