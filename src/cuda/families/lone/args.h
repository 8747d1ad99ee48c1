/* Arguments of the lone-warp FP32 tiles (families/lone/kernel.inc), shared by host and device. */
#ifndef RUNG_DEVICE_LONE_ARGS_H
#define RUNG_DEVICE_LONE_ARGS_H

#include "cuda/device/args.h"
#include "cuda/device/shifted_args.h"

#include <cuda.h>

/* Division of what is below 2^31 by a constant: (x * multiplier) >> shift. */
typedef struct rung_divisor {
    uint32_t multiplier, shift;
} rung_divisor;

typedef struct rung_lone_args {
    CUtensorMap a_map, b_map;      /* operands as they lie, the third dimension the batch */
    CUtensorMap c_map;             /* of C, where c_boxes is 1 */
    rung_shifted a_odd, b_odd;     /* instead of the first two, for kernels that shift */
    rung_args g;                   /* g.workspace: two partial tiles a block, tickets before them */
    rung_divisor by_batch, by_row; /* by the tiles of a batch, by those of a row of tiles */
    int32_t per_batch, tiles_n;    /* these two numbers */
    int32_t tiles;                 /* of all batches */
    int32_t steps;                 /* of a stage each, of one tile; at least one */
    int32_t together;              /* the warps of a block share a tile's k; else each has tiles of its own */
    int32_t cluster;               /* 1: two neighbouring blocks, a cluster, take half of a tile's k each */
    int32_t batched_a, batched_b;  /* 0: every batch has the same A, or B */
    int32_t tickets;               /* how many counters a tile has */
    int32_t c_vector;              /* every row of C starts at a multiple of 16 bytes */
    int32_t c_boxes;               /* pairs: the copy engine stores C by c_map */
} rung_lone_args;

#endif
