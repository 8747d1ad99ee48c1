/* What all lone tiles share: the order of work and the places of tiles. */
#ifndef RUNG_DEVICE_LONE_WARP_H
#define RUNG_DEVICE_LONE_WARP_H

#include "families/lone/args.h"
#include "device/ask.h"
#include "device/copies.h"
#include "device/ptx.h"
#include "device/end.h"
#include "device/fragments.h"
#include "device/parts.h"

/* A run of steps of one tile: `step` and those after it, below `end`. `row` and `col` are the tile's corner. */
struct lone_run {
    int tile, step, end;
    int row, col, batch;
};

RUNG_DEVICE unsigned lone_divide(unsigned x, rung_divisor by)
{
    return (unsigned)((unsigned long long)x * by.multiplier >> by.shift);
}

RUNG_DEVICE void lone_place(struct lone_run *r, const rung_lone_args *p, const int bm, const int bn)
{
    const unsigned tile = (unsigned)r->tile, batch = lone_divide(tile, p->by_batch),
                   rest = tile - batch * (unsigned)p->per_batch, down = lone_divide(rest, p->by_row);
    r->batch = (int)batch;
    r->row = (int)down * bm;
    r->col = (int)(rest - down * (unsigned)p->tiles_n) * bn;
}

/* Returns the first step of a block, where all blocks share the steps of all tiles in order. */
RUNG_DEVICE int lone_begin(const rung_lone_args *p, int block)
{
    return (int)((long long)p->tiles * p->steps * block / gridDim.x);
}

/* Returns the block whose range holds step `at`. */
RUNG_DEVICE int lone_block_of(const rung_lone_args *p, int at)
{
    int b = (int)((long long)at * gridDim.x / ((long long)p->tiles * p->steps));
    while (lone_begin(p, b + 1) <= at)
        b++;
    return b;
}

#endif
