/* Arguments of the lone-warp FP32 tiles (device/lone_warp.inc), shared by host and device. */
#ifndef RUNG_DEVICE_LONE_ARGS_H
#define RUNG_DEVICE_LONE_ARGS_H

#include "args.h"

#include <cuda.h>

#define RUNG_LONE_BK 16   /* along k of a stage */
#define RUNG_LONE_WARPS 8 /* of a block */

typedef struct rung_lone_args {
    CUtensorMap a_map, b_map;        /* operands as they lie, the third dimension the batch */
    rung_args g;                     /* g.workspace: two partial tiles a block, tickets before them */
    int32_t tiles_m, tiles_n, tiles; /* tiles of all batches */
    int32_t steps;                   /* of RUNG_LONE_BK, of one tile; at least one */
    int32_t together;                /* the warps of a block share a tile's k; else each has tiles of its own */
    int32_t batched_a, batched_b;    /* 0: every batch has the same A, or B */
    int32_t tickets;                 /* counters of one tile */
    int32_t c_vector;                /* every row of C starts at a multiple of 16 bytes */
} rung_lone_args;

#endif
