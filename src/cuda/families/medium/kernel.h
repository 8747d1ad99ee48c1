/* What all medium tiles share: the order of work, the places of tiles, and results that go through the general end. */
#ifndef RUNG_DEVICE_STRICT_WARP_H
#define RUNG_DEVICE_STRICT_WARP_H

#include "device/args.h"
#include "device/end.h"
#include "device/parts.h"
#include "device/ptx.h"
#include "families/medium/args.h"

/* A place in a ring of stages, and the parity of its round. */
struct warp_ring {
    int stage;
    uint32_t phase;
};

RUNG_DEVICE void warp_ring_next(struct warp_ring *at, const int stages)
{
    if (++at->stage == stages) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

/* A run of k steps of one tile, and what this block has left to do. */
struct warp_work {
    int tile, step, step_end, next_tile;
    int stream_begin, stream_end;
};

/* Where the streamed range of streaming block `streamer` begins. */
RUNG_DEVICE int warp_stream_start(const rung_warp_args *p, int streamer)
{
    return max(streamer, 0) * p->share + min(max(streamer, 0), p->wider);
}

RUNG_DEVICE void warp_work_start(struct warp_work *w, const rung_warp_args *p)
{
    const int streamer = blockIdx.x - p->alone;
    w->next_tile = blockIdx.x;
    w->stream_begin = warp_stream_start(p, streamer);
    w->stream_end = warp_stream_start(p, streamer + 1);
}

/* Streamed runs go from last to first: what other blocks wait for comes first. */
RUNG_DEVICE bool warp_work_next(struct warp_work *w, const rung_warp_args *p)
{
    if (w->next_tile < p->whole_tiles) {
        w->tile = w->next_tile;
        w->step = 0;
        w->step_end = p->steps;
        w->next_tile += gridDim.x;
        return true;
    }
    if (w->stream_end <= w->stream_begin)
        return false;
    const int t = (unsigned)(w->stream_end - 1) / (unsigned)p->steps, first = t * p->steps;
    w->tile = p->whole_tiles + t;
    w->step_end = w->stream_end - first;
    w->step = w->stream_begin > first ? w->stream_begin - first : 0;
    w->stream_end = first + w->step;
    return true;
}

struct warp_place {
    int row, col, batch;
};

/* Tiles go down columns within groups of tile rows: neighbours in time share operands. */
RUNG_DEVICE struct warp_place warp_place_of(unsigned tile, const rung_warp_args *p, const int bm, const int bn)
{
    struct warp_place at;
    const unsigned per_batch = p->tiles_m * p->tiles_n, per_group = RUNG_WARP_GROUP_M * p->tiles_n;
    at.batch = tile / per_batch;
    tile -= at.batch * per_batch;
    const unsigned group = tile / per_group;
    tile -= group * per_group;
    const unsigned rows = min((unsigned)p->tiles_m - group * RUNG_WARP_GROUP_M, (unsigned)RUNG_WARP_GROUP_M);
    at.row = (group * RUNG_WARP_GROUP_M + tile % rows) * bm;
    at.col = tile / rows * bn;
    return at;
}

/* Sixteen bytes of shared memory: four k of one row, or four rows of one k. */
RUNG_DEVICE void warp_load_row(float x[4], uint32_t at)
{
    float4 v = ptx_shared_load4(at);
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

RUNG_DEVICE void warp_load_column(float x[][4], const int k, uint32_t at)
{
    float4 v = ptx_shared_load4(at);
    x[0][k] = v.x, x[1][k] = v.y, x[2][k] = v.z, x[3][k] = v.w;
}

/* The streaming block whose range holds step `first`. */
RUNG_DEVICE int warp_streamer_of(const rung_warp_args *p, int first)
{
    const int wide = p->wider * (p->share + 1);
    return first < wide ? first / (p->share + 1) : p->wider + (first - wide) / p->share;
}

/* One result with beta, bias and activation. */
RUNG_DEVICE float warp_end(const rung_warp_args *p, float product, float beta, float old, int row, int col)
{
    float value = beta != 0.0f ? fmaf(beta, old, product) : product;
    if (p->bias_kind)
        value += p->bias[p->bias_kind == RUNG_BIAS_PER_ROW ? row : col];
    return end_activate(value, p->activation);
}

/* Four neighbouring results of a row, wherever they lie and whatever they go through. */
RUNG_DEVICE void warp_store4(const rung_warp_args *p, float *c, float alpha, float beta, int row, int col, float4 sum)
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
            v[i] = warp_end(p, alpha != 0.0f ? alpha * v[i] : 0.0f, beta, old[i], row, col + i);
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
