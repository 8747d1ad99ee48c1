/* Arguments of the medium FP32 tiles (families/medium/kernel.inc), shared by host and device. */
#ifndef RUNG_DEVICE_STRICT_WARP_ARGS_H
#define RUNG_DEVICE_STRICT_WARP_ARGS_H

#include <cuda.h>
#include <stdint.h>

#define RUNG_WARP_BK 16     /* along k of a stage */
#define RUNG_WARP_GROUP_M 8 /* tile rows of a column group */
#define RUNG_WARP_FEW 24576 /* vectors of all a tile's parts that one block adds alone: 384 KB */

/* Operands as they lie, the third dimension of a map the batch. */
typedef struct rung_warp_args {
    CUtensorMap a_map, b_map;
    float *c;
    int64_t ldc, stride_c;
    const float *alpha_device, *beta_device, *bias;
    float *partials;    /* two tiles a block: its parts of tiles that it shares with others */
    uint32_t *counters; /* two a streamed tile, zero before and after a launch */
    float alpha, beta;
    int32_t m, n;
    int32_t tiles_m, tiles_n;
    int32_t tiles, whole_tiles; /* of all batches; done by one block each. The others are streamed along k */
    int32_t steps;              /* of RUNG_WARP_BK, of one tile */
    int32_t alone;              /* the first blocks, which stream nothing */
    int32_t share, wider; /* steps that another streams, at least one if any; the first `wider` of them one more */
    int32_t cluster;      /* 2: the two parts of a tile are a cluster; 0: parts meet in memory */
    int32_t bias_kind, activation;
    int32_t c_vector; /* every row of C starts at a multiple of 16 bytes */
} rung_warp_args;

#endif
