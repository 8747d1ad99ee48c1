/* Copies operands whose rows do not start at multiples of 16 bytes to rows that do, in the order in which they lie. One
 * launch copies two. A warp copies 16 pieces of 32 elements, all on their way at once; a piece lies in one row. Rows of
 * the copy end in elements that nobody reads. There are fewer than 2^32 pieces. Here are the arguments and the kernel.
 */
#ifndef RUNG_DEVICE_ROW_COPY_H
#define RUNG_DEVICE_ROW_COPY_H

#include <stdint.h>

/* `outer` rows of `inner` elements, of each matrix of a batch. */
typedef struct rung_row_copy {
    const float *from;
    float *to;
    int64_t inner, outer, batch, ld_from, ld_to, stride_from, stride_to;
} rung_row_copy;

typedef struct rung_row_copy_args {
    rung_row_copy of[2];
    uint32_t shares, shares_of_first; /* a share is what a block copies at a time; the first so many are of the first */
    const uint8_t *only_if, *unless; /* one byte: where it is 0, and where it is not, nothing is copied; NULL: always */
} rung_row_copy_args;

enum { RUNG_ROW_PIECE = 32, RUNG_ROW_PIECES = 16, RUNG_ROW_COPY_THREADS = 256 };
enum { RUNG_ROW_BLOCK_PIECES = RUNG_ROW_PIECES * RUNG_ROW_COPY_THREADS / RUNG_ROW_PIECE };

#ifdef __CUDACC__
#include "device/args.h"

struct row_place {
    const float *from; /* this lane's element of the next piece */
    float *to;
    unsigned row, matrix;
    int left; /* elements of the row from this lane's on */
};

RUNG_DEVICE void row_place_at(const rung_row_copy *c, struct row_place *at, unsigned piece)
{
    const int64_t x = (int64_t)piece * RUNG_ROW_PIECE + threadIdx.x % 32;
    at->from = c->from + at->matrix * c->stride_from + at->row * c->ld_from + x;
    at->to = c->to + at->matrix * c->stride_to + at->row * c->ld_to + x;
    at->left = at->matrix < c->batch ? (int)(c->inner - x) : 0;
}

RUNG_DEVICE void row_place_next(const rung_row_copy *c, struct row_place *at)
{
    at->from += RUNG_ROW_PIECE;
    at->to += RUNG_ROW_PIECE;
    at->left -= RUNG_ROW_PIECE;
    if (at->left + (int)(threadIdx.x % 32) > 0 || at->matrix >= c->batch)
        return;
    if (++at->row == c->outer) {
        at->row = 0;
        at->matrix++;
    }
    row_place_at(c, at, 0);
}

RUNG_DEVICE void row_copy(const rung_row_copy *c, unsigned share)
{
    const unsigned across = (unsigned)((c->inner + RUNG_ROW_PIECE - 1) / RUNG_ROW_PIECE), outer = (unsigned)c->outer;
    const unsigned first = (share * (RUNG_ROW_COPY_THREADS / 32) + threadIdx.x / 32) * RUNG_ROW_PIECES;
    struct row_place start;
    start.row = first / across % outer;
    start.matrix = first / across / outer;
    row_place_at(c, &start, first % across);
    struct row_place at = start;
    float v[RUNG_ROW_PIECES];
#pragma unroll
    for (int i = 0; i < RUNG_ROW_PIECES; i++) {
        v[i] = at.left > 0 ? __ldg(at.from) : 0.0f;
        row_place_next(c, &at);
    }
    at = start;
#pragma unroll
    for (int i = 0; i < RUNG_ROW_PIECES; i++) {
        if (at.left > 0)
            *at.to = v[i];
        row_place_next(c, &at);
    }
}
#endif

#endif
