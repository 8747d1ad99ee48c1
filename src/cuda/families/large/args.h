/* Arguments of the large tiles (families/large/kernel.inc), shared by host and device. */
#ifndef RUNG_LARGE_ARGS_H
#define RUNG_LARGE_ARGS_H

#include "cuda/device/f16x3.h"
#include "cuda/device/order_args.h"

#include <cuda.h>
#include <stdint.h>

/* B lies with k outermost, as k x n; A as k x m or, for kernels that read it along k, m x k. Third dimension: the
 * batch. */
typedef struct rung_large_args {
    CUtensorMap a_map, b_map;
    CUtensorMap a_of[4],
        b_of[4]; /* with class_steps: map i has k = i, i + 4, i + 8 ... of an operand whose rows lie at any address */
    const float *copied; /* NULL, or what warps copy, 4 bytes a lane, where its map could not read it: A, */
    int64_t copied_ld, copied_stride;
    int32_t copied_a; /* or, if zero, B */
    int32_t k;
    float *c;
    int64_t ldc, stride_c;
    const float *alpha_device, *beta_device, *bias;
    float *partials;    /* two tiles a block: its parts of tiles that it shares with others */
    uint32_t *counters; /* two a streamed tile, zero before and after a launch */
    float alpha, beta;
    int32_t m, n;
    rung_order order;                 /* steps of BK */
    const float *a_tail, *b_tail;     /* with class_steps: the few k beyond whole steps, added with the parts; */
    int64_t a_row, a_k, b_col, b_k;   /* from row to row and from k to k of them */
    int32_t tail;                     /* how many */
    int32_t class_steps;              /* a quarter of them, of every fourth k, none of which two blocks share; or 0 */
    int32_t tile_rows, tile_cols;     /* of a tile's that are stored: four less where rows of classes start apart */
    int32_t a_starts[4], b_starts[4]; /* where a tile of each class begins in what is copied of it */
    int32_t bias_kind, activation;
    int32_t c_vector;     /* every row of C starts at a multiple of 16 bytes */
    int32_t c_transposed; /* C is stored n x m (a kernel that reads A along k) */
    int32_t guarded;      /* C is computed only where accurate mode's guard refuses all blocks: */
    f16x3_guard guard;
} rung_large_args;

#endif
