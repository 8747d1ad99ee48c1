/* Medium tiles for the blocks of C that accurate mode's guard has marked, and no others. Every block of the launch
 * lists the marked ones for itself: all write the same list, so nobody waits. From their number it follows how their
 * tiles are spread over the blocks, as a plan would say it. So where sums are cut depends on this call's marks alone.
 * Part of kernel.h, where a row is compiled with MARKED. */
#include "device/alike.h"

/* These fields are as those of rung_medium_args. */
struct marked_spread {
    int whole_tiles, alone, share, wider;
    int all; /* all blocks are marked: their tiles are C's, and there is no list */
};

/* Volatile: it is read where it is needed, as the main loop has no registers for it. */
RUNG_DEVICE volatile struct marked_spread *marked_spread_here(void)
{
    __shared__ struct marked_spread spread;
    return &spread;
}

#define SPREAD(p) marked_spread_here()
#define WHOLE_TILES(p) marked_spread_here()->whole_tiles

/* Returns the number of tiles of one marked block. */
RUNG_DEVICE int marked_tiles(const int bm, const int bn)
{
    return MARKED_BLOCK / bm * (MARKED_BLOCK / bn);
}

/* Returns the i-th block of C in an order down the columns of groups of rows, so that neighbours in time share
 * operands. */
RUNG_DEVICE int marked_block(const rung_medium_args *p, int i)
{
    const int group = i / (MEDIUM_GROUP_M * p->blocks_n), first = group * MEDIUM_GROUP_M;
    const int rows = min(p->blocks_m - first, MEDIUM_GROUP_M);
    i -= first * p->blocks_n;
    return (first + i % rows) * p->blocks_n + i / rows;
}

RUNG_DEVICE struct order_place marked_place(unsigned tile, const rung_medium_args *p, const int bm, const int bn)
{
    const unsigned of_block = tile % marked_tiles(bm, bn), across = MARKED_BLOCK / bn;
    struct order_place at;
    if (SPREAD(p)->all)
        return order_place_of(tile, &p->order, MEDIUM_GROUP_M, bm, bn);
    const unsigned block = p->list[tile / marked_tiles(bm, bn)];
    at.row = block / p->blocks_n * MARKED_BLOCK + of_block / across * bm;
    at.col = block % p->blocks_n * MARKED_BLOCK + of_block % across * bn;
    at.batch = 0;
    return at;
}

/* Lists the marked blocks; returns their number. */
RUNG_DEVICE int marked_list(const rung_medium_args *p)
{
    __shared__ int of_warp[32];
    const int blocks = p->blocks_m * p->blocks_n, each = (blocks + blockDim.x - 1) / blockDim.x;
    const int first = threadIdx.x * each, end = min(first + each, blocks);
    int mine = 0, before, total = 0;
#pragma unroll 1
    for (int i = first; i < end; i++)
        mine += p->g.marks[marked_block(p, i)] != 0;
    before = mine;
#pragma unroll 1
    for (int d = 1; d < 32; d *= 2) {
        const int from = __shfl_up_sync(~0u, before, d);
        before += threadIdx.x % 32 >= d ? from : 0;
    }
    if (threadIdx.x % 32 == 31)
        of_warp[threadIdx.x / 32] = before;
    before -= mine;
    __syncthreads();
#pragma unroll 1
    for (int w = 0; w < blockDim.x / 32; w++) {
        before += w < threadIdx.x / 32 ? of_warp[w] : 0;
        total += of_warp[w];
    }
    if (mine)
#pragma unroll 1
        for (int i = first; i < end; i++) {
            const int block = marked_block(p, i);
            if (p->g.marks[block])
                STORE_ALIKE(&p->list[before++], block);
        }
    return total;
}

/* Spreads the tiles: full rounds whole, the rest cut along k where that is predicted to take less time. A block takes
 * at least eight steps a group. */
RUNG_DEVICE struct marked_spread marked_spread_of(const rung_medium_args *p, int tiles, const int groups)
{
    const int blocks = gridDim.x, rest = tiles % blocks, steps = rest * p->order.steps;
    const int streamers = min(blocks, steps / (8 * groups));
    const float whole = (2 * rest > blocks ? p->full_us : p->alone_us) * p->order.steps / groups;
    const float cut =
        (2 * streamers > blocks ? p->full_us : p->alone_us) * (steps / max(streamers, 1)) / groups + p->meeting_us;
    struct marked_spread s = {tiles, blocks, 0, 0, 0};
    if (rest > 0 && streamers > rest && cut < whole) {
        s.whole_tiles = tiles - rest;
        s.alone = blocks - streamers;
        s.share = steps / streamers;
        s.wider = steps % streamers;
    }
    return s;
}

/* One thread says for the next product like this one whether all blocks were marked; during a pause it only counts. */
RUNG_DEVICE void marked_tell(const rung_medium_args *p, int all)
{
    f16x3_recalled *r = p->recalled;
    if (!r || blockIdx.x < gridDim.x - 1 || threadIdx.x > 0)
        return;
    const uint64_t refused = all ? p->number : F16X3_NOT_ALL;
    if (r->refused == refused)
        return;
    if (all && r->left > 1) {
        r->left--;
        return;
    }
    r->refused = refused;
    if (p->told)
        *p->told = all; /* of changes alone: a store to the host's memory takes a microsecond */
}

/* All threads call this first. Returns whether there is anything to do. What the next product wants to find zero is
 * cleared, since nobody reads it any more. */
RUNG_DEVICE bool marked_begin(const rung_medium_args *p, const int groups, const int bm, const int bn)
{
    struct marked_spread s = {p->order.whole_tiles, p->alone, p->share, p->wider, 0};
    rung_after_earlier_kernels();
    if (p->g.marks) {
        const int any = *p->any, all = p->all && *p->all, blocks = p->blocks_m * p->blocks_n;
        for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p->g.zero_words; i += gridDim.x * blockDim.x)
            ((uint4 *)p->g.zero)[i] = make_uint4(0, 0, 0, 0);
        if (!any)
            return false;
        const int count = all ? blocks : marked_list(p);
        marked_tell(p, count == blocks);
        if (all && p->elsewhere)
            return false;
        /* Where there is a list, some of its blocks' tiles may lie outside C. */
        s = marked_spread_of(p, all ? p->order.tiles : count * marked_tiles(bm, bn), groups);
        s.all = all;
    }
    if (threadIdx.x == 0) {
        volatile struct marked_spread *here = marked_spread_here();
        here->whole_tiles = s.whole_tiles;
        here->alone = s.alone;
        here->share = s.share;
        here->wider = s.wider;
        here->all = s.all;
    }
    __syncthreads();
    return true;
}
