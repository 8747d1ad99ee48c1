/* Arguments of the medium FP32 tiles (families/medium/kernel.inc), shared by host and device. */
#ifndef RUNG_MEDIUM_ARGS_H
#define RUNG_MEDIUM_ARGS_H

#include "cuda/device/args.h"
#include "cuda/device/f16x3.h"
#include "cuda/device/order_args.h"

#include <cuda.h>
#include <stdint.h>

#define MARKED_BLOCK 128 /* rows and columns of a block of C that has one mark */
#define MEDIUM_BK 16     /* along k of a stage */
#define MEDIUM_GROUP_M 8 /* tile rows of a column group */
#define MEDIUM_FEW 24576 /* one block adds so many vectors of a tile's parts alone: 384 KB */

typedef struct rung_medium_args {
    CUtensorMap a_map, b_map; /* operands as they lie, the third dimension the batch */
    rung_args g;
    float *partials;      /* two tiles a block: its parts of tiles that it shares with others */
    uint32_t *counters;   /* two a streamed tile, zero before and after a launch */
    rung_order order;     /* steps of MEDIUM_BK */
    int32_t alone;        /* so many blocks, the first, stream nothing */
    int32_t share, wider; /* steps that each other block streams; the first `wider` of them stream one more */
    int32_t cluster;      /* 2: the two parts of a tile are a cluster; 0: parts meet in memory */
    int32_t c_vector;     /* every row of C starts at a multiple of 16 bytes */
    /* For kernels of marked blocks, where g.marks has a byte for each 128 x 128 block of C, row by row. How the tiles
     * of marked blocks are spread is found on the device; for a whole product the plan says it. */
    const uint8_t *any; /* one byte: whether any is marked */
    const uint8_t
        *all;          /* one byte: whether the guard refused all blocks; those that are marked later may be all, too */
    int32_t elsewhere; /* then large tiles compute C */
    int32_t *list;     /* room for the numbers of all blocks */
    int32_t blocks_m, blocks_n;
    f16x3_recalled *recalled; /* where to say whether all blocks were marked, for the next product like this one; */
    uint64_t number;          /* which has this number. NULL: nobody asks */
    volatile uint32_t *told;  /* in host memory: whether all were marked the last time; NULL: the host does not ask */
    float alone_us, full_us,
        meeting_us; /* a step of a tile, alone on its multiprocessor and not; the meeting of parts */
} rung_medium_args;

#endif
