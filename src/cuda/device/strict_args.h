/* Arguments of the bulk-copy FP32 kernels and of the packing that goes before them, shared by host and device. */
#ifndef RUNG_DEVICE_STRICT_ARGS_H
#define RUNG_DEVICE_STRICT_ARGS_H

#include <cuda.h>
#include <stdint.h>

/* B lies with k outermost, as k x n; A as k x m or, for kernels that read it along k, m x k. Third dimension: the
 * batch. */
typedef struct rung_strict_args {
    CUtensorMap a_map, b_map;
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
    int32_t tiles_m, tiles_n;
    int32_t tiles, whole_tiles; /* of all batches; done by one block each. The others are streamed along k */
    int32_t steps;              /* BK steps of one tile */
    int32_t bias_kind, activation;
    int32_t c_vector;     /* every row of C starts at a multiple of 16 bytes */
    int32_t c_transposed; /* C is stored n x m (a kernel that reads A along k) */
} rung_strict_args;

/* to[k][mn] = from[mn][k]. */
typedef struct rung_pack_args {
    const float *from;
    float *to;
    int64_t k, mn, ld_from, ld_to, stride_from, stride_to;
    int32_t aligned; /* every row of `from` starts at a multiple of 16 bytes */
} rung_pack_args;

enum { RUNG_PACK_TILE = 64, RUNG_PACK_THREADS = 256 };

#endif
