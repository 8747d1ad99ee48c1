/* What all medium tiles share: the order of work, the places of tiles, and how the end of a tile is told what to do. */
#ifndef RUNG_MEDIUM_KERNEL_H
#define RUNG_MEDIUM_KERNEL_H

#include "device/args.h"
#include "device/ask.h"
#include "device/end.h"
#include "device/fragments.h"
#include "device/order.h"
#include "device/parts.h"
#include "device/ptx.h"
#include "device/ring.h"
#include "families/medium/args.h"

#if MARKED
#include "families/medium/marked.h"
#else
/* Tiles are spread over blocks as the plan says. */
#define SPREAD(p) (p)
#define WHOLE_TILES(p) (p)->order.whole_tiles
#endif

/* Returns where the range of streaming block `streamer` begins. */
RUNG_DEVICE int medium_stream_start(const rung_medium_args *p, int streamer)
{
    return max(streamer, 0) * SPREAD(p)->share + min(max(streamer, 0), SPREAD(p)->wider);
}

RUNG_DEVICE void medium_start(struct order_run *w, const rung_medium_args *p)
{
    const int streamer = blockIdx.x - SPREAD(p)->alone;
    w->next_tile = blockIdx.x;
    w->stream_begin = medium_stream_start(p, streamer);
    w->stream_end = medium_stream_start(p, streamer + 1);
}

#if MARKED
/* What a block has left to do lies in shared memory while the main loop takes all registers. */
enum { MARKED_KEPT = 128 }; /* threads that multiply */
RUNG_DEVICE volatile int *marked_kept(void)
{
    __shared__ int kept[2 * MARKED_KEPT];
    return kept;
}

RUNG_DEVICE void marked_keep(const struct order_run *w)
{
    marked_kept()[threadIdx.x] = w->next_tile;
    marked_kept()[MARKED_KEPT + threadIdx.x] = w->stream_end;
}

RUNG_DEVICE void marked_take(struct order_run *w, const rung_medium_args *p)
{
    w->next_tile = marked_kept()[threadIdx.x];
    w->stream_begin = medium_stream_start(p, blockIdx.x - SPREAD(p)->alone);
    w->stream_end = marked_kept()[MARKED_KEPT + threadIdx.x];
}
#endif

/* Finds the next run of this block. */
RUNG_DEVICE bool medium_next(struct order_run *w, const rung_medium_args *p)
{
#if MARKED /* does what order_next() does, but reads from shared memory each time what a plan would say, since         \
              registers are short */
    if (w->next_tile < WHOLE_TILES(p)) {
        w->tile = w->next_tile;
        w->step = 0;
        w->step_end = p->order.steps;
        w->next_tile += gridDim.x;
        return true;
    }
    if (w->stream_end <= w->stream_begin)
        return false;
    const int t = (unsigned)(w->stream_end - 1) / (unsigned)p->order.steps, first = t * p->order.steps;
    w->tile = WHOLE_TILES(p) + t;
    w->step_end = w->stream_end - first;
    w->step = w->stream_begin > first ? w->stream_begin - first : 0;
    w->stream_end = first + w->step;
    return true;
#else
    return order_next(w, &p->order);
#endif
}

RUNG_DEVICE struct order_place medium_place_of(unsigned tile, const rung_medium_args *p, const int bm, const int bn)
{
#if MARKED
    if (p->g.marks)
        return marked_place(tile, p, bm, bn);
#endif
    return order_place_of(tile, &p->order, MEDIUM_GROUP_M, bm, bn);
}

/* Which steps of a run a group takes: every 2^spread-th from `first` on. It takes four at least, so that short sums are
 * not cut up. */
struct medium_slice {
    int first, count, spread;
};

RUNG_DEVICE struct medium_slice medium_slice_of(const struct order_run *w, int group, const int groups)
{
    struct medium_slice s = {w->step + group, 0, 0};
#pragma unroll
    for (int i = 0; 1 << i < groups; i++)
        s.spread += w->step_end - w->step >= 8 << i;
    s.count = group >> s.spread ? 0 : (w->step_end - w->step - group + (1 << s.spread) - 1) >> s.spread;
    return s;
}

/* Returns the streaming block whose range holds step `first`. */
RUNG_DEVICE int medium_streamer_of(const rung_medium_args *p, int first)
{
    const int wide = SPREAD(p)->wider * (SPREAD(p)->share + 1);
    return first < wide ? first / (SPREAD(p)->share + 1) : SPREAD(p)->wider + (first - wide) / SPREAD(p)->share;
}

RUNG_DEVICE void medium_ask_for_old(const rung_medium_args *p, struct order_place at, int tid, const int bm,
                                    const int bn, const int threads)
{
    ask_for_old(p->g.c + at.batch * p->g.stride_c, p->g.ldc, p->g.m, p->g.n, at.row, at.col, tid, bm, bn, threads);
}

/* Returns what becomes of the sums of a matrix of the batch. With alpha = 0 or k = 0 there are no products: alpha is
 * +0. */
RUNG_DEVICE struct end medium_end_of(const rung_medium_args *p, int batch)
{
    const float alpha = scalar_of(p->g.alpha_device, p->g.alpha), beta = scalar_of(p->g.beta_device, p->g.beta);
    return (struct end){&p->g, p->g.c + batch * p->g.stride_c, alpha == 0.0f || p->g.k == 0 ? 0.0f : alpha, beta,
                        p->c_vector};
}

#endif
