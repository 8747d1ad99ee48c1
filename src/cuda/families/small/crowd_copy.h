/* A block's place in a crowd (crowd.inc), its copies, and its stores to a C at any address. */
#ifndef RUNG_DEVICE_CROWD_COPY_H
#define RUNG_DEVICE_CROWD_COPY_H

#include "families/small/tile.h"
#include "device/copies.h"

/* A block's place: grid x counts tiles, y parts of k, z matrices. It is computed again each time it is needed. */
typedef struct {
    unsigned part, batch, which; /* which: of all tiles of all matrices */
    int row0, col0;
} crowd_place;

RUNG_DEVICE crowd_place crowd_place_of(const rung_args *p, const int bm, const int bn)
{
    crowd_place at;
    unsigned tile = blockIdx.x;
    asm volatile("" : "+r"(tile));
    const unsigned tiles_n = ((unsigned)p->n + bn - 1) / bn;
    at.part = blockIdx.y;
    at.batch = blockIdx.z;
    at.which = at.batch * gridDim.x + tile;
    at.row0 = (int)(tile / tiles_n) * bm;
    at.col0 = (int)(tile % tiles_n) * bn;
    return at;
}

/* A thread's first element of the next stage, and the number of the operand's last line from its own. */
typedef struct {
    const float *from;
    int last;
} crowd_lines;

RUNG_DEVICE crowd_lines crowd_start(const float *src, long long ld, int line0, int lines, int k0, int tid,
                                    const int k_innermost)
{
    crowd_lines l;
    const int line = k_innermost ? tid / 8 : tid % 32, k = k_innermost ? tid % 8 : tid / 32;
    l.last = lines - 1 - line0 - line;
    l.from = k_innermost ? src + (line0 + line) * ld + k0 + k : src + (k0 + k) * ld + line0 + line;
    return l;
}

/* How many elements of a stage a thread copies, and in groups of how many. The main loop has a group here and there:
 * more than four copies at once become a branch, past which the compiler moves no multiplication. A block of one warp
 * has so many others beside it that it takes eight at once. */
#define CROWD_COPIES(extent, threads) ((extent)*8 / (threads))
#define CROWD_EACH(extent, threads) min(CROWD_COPIES(extent, threads), (threads) > 32 ? 4 : 8)
#define CROWD_GROUPS(extent, threads) (CROWD_COPIES(extent, threads) / CROWD_EACH(extent, threads))

/* Copies one group of a thread's share of the next stage, of which `k` of eight k exist; `whole` promises that all do.
 * What does not exist becomes zero. With `swapped` neighbouring lines change places. */
RUNG_DEVICE void crowd_copy(const crowd_lines *l, rung_shared_at tile, unsigned ld, int k, int tid, const int extent,
                            const int threads, const int k_innermost, const int swapped, const int whole,
                            const int group)
{
    const int each = CROWD_EACH(extent, threads), groups = CROWD_GROUPS(extent, threads);
    int last = l->last;
    /* These keep the compiler from computing ahead multiples of ld, and more answers than there are predicates. */
    asm volatile("" : "+r"(ld));
    if (k_innermost) { /* eight lanes copy eight k of a line */
        const int pass = threads / 8;
        if (groups > 1)
            asm volatile("" : "+r"(last));
        tile += (tid % 8 * TURNED_PITCH(extent) + (tid / 8 ^ swapped)) * 4;
#pragma unroll
        for (int c = group * each; c < group * each + each; c++)
            rung_async_put4_if(tile + c * pass * 4, element(l->from, c * pass, ld, 0),
                               c * pass <= last && (whole || tid % 8 < k));
    } else { /* a warp copies one k of 32 lines, and of the 32 after them */
        const int across = extent / 32, pass = threads / 32;
        if (across > 2)
            asm volatile("" : "+r"(last));
        tile += (tid / 32 * extent + (tid % 32 ^ swapped)) * 4;
#pragma unroll
        for (int c = group * each; c < group * each + each; c++) {
            const int x = c % across * 32, q = c / across * pass;
            rung_async_put4_if(tile + (q * extent + x) * 4, element(l->from, q, ld, x),
                               x <= last && (whole || tid / 32 + q < k));
        }
    }
}

/* Goes on to the next stage, `k` k further. */
RUNG_DEVICE void crowd_go_on(crowd_lines *l, unsigned ld, int k, const int k_innermost)
{
    asm volatile("" : "+r"(ld));
    l->from = k_innermost ? l->from + k : element(l->from, k, ld, 0);
}

/* Stores a warp's 32 x 32 results to a C at any address, by way of shared memory, so that each store fills sectors. The
 * second sixteen rows lie `apart` rows from the first. */
RUNG_DEVICE void crowd_store(const float *acc, const int tn, float *mine, float *c, long long ldc, int rows, int cols,
                             const int apart, float alpha, int ty, int tx, int lane)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        *(float4 *)(mine + (i / 4 * 16 + ty * 4 + i % 4) * SMALL_CROWD_PITCH + tx * 4) =
            make_float4(alpha * acc[tn * i], alpha * acc[tn * i + 1], alpha * acc[tn * i + 2], alpha * acc[tn * i + 3]);
    __syncwarp();
    mine += lane, c += lane;
    rows = lane < cols ? rows : 0;
#pragma unroll 1
    for (int half = 0; half < 2; half++, rows -= apart, mine += 16 * SMALL_CROWD_PITCH, c += apart * ldc) {
        float *to = c;
#pragma unroll
        for (int r = 0; r < 16; r++) {
            if (r < rows)
                *to = mine[r * SMALL_CROWD_PITCH];
            to += ldc;
            asm volatile("" : "+l"(to)); /* the compiler would multiply for each row */
        }
    }
    __syncwarp();
}

#endif
