/* The order in which persistent blocks compute tiles, and where tiles lie. A block first takes whole tiles, one a grid
 * apart from the next. The steps of the other tiles lie end to end and are streamed: each block has a range of them. */
#ifndef RUNG_DEVICE_ORDER_H
#define RUNG_DEVICE_ORDER_H

#include "device/args.h"
#include "device/order_args.h"

/* A run of steps along k of one tile, and what this block has left to do: whole tiles from next_tile on, and its range
 * of streamed steps. */
struct order_run {
    int tile, step, step_end, next_tile;
    int stream_begin, stream_end;
};

/* Finds the next run; false where there is none. A block takes its streamed runs from last to first, so that it does
 * first what other blocks wait for. */
RUNG_DEVICE bool order_next(struct order_run *w, const rung_order *o)
{
    if (w->next_tile < o->whole_tiles) {
        w->tile = w->next_tile;
        w->step = 0;
        w->step_end = o->steps;
        w->next_tile += gridDim.x;
        return true;
    }
    if (w->stream_end <= w->stream_begin)
        return false;
    const int t = (unsigned)(w->stream_end - 1) / (unsigned)o->steps, first = t * o->steps;
    w->tile = o->whole_tiles + t;
    w->step_end = w->stream_end - first;
    w->step = w->stream_begin > first ? w->stream_begin - first : 0;
    w->stream_end = first + w->step;
    return true;
}

/* A tile's first row and column of C, and its matrix of the batch. */
struct order_place {
    int row, col, batch;
};

/* Finds a tile's place. Tiles go down columns within groups of group_m rows of tiles, so that neighbours in time share
 * operands. */
RUNG_DEVICE struct order_place order_place_of(unsigned tile, const rung_order *o, const int group_m, int bm, int bn)
{
    struct order_place at;
    const unsigned per_batch = o->tiles_m * o->tiles_n, per_group = group_m * o->tiles_n;
    at.batch = tile / per_batch;
    tile -= at.batch * per_batch;
    const unsigned group = tile / per_group;
    tile -= group * per_group;
    const unsigned rows = min((unsigned)o->tiles_m - group * group_m, (unsigned)group_m);
    at.row = (group * group_m + tile % rows) * bm;
    at.col = tile / rows * bn;
    return at;
}

#endif
