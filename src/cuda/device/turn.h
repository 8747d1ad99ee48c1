/* To turn an operand is to copy it with k innermost to workspace, with k outermost and rows that start at multiples of
 * 16 bytes. A block copies one tile of 64 x 64. Here are its arguments and its kernel. */
#ifndef RUNG_DEVICE_TURN_H
#define RUNG_DEVICE_TURN_H

#include <stdint.h>

/* No byte of it is padding, as arguments are compared. to[k][mn] = from[mn][k]. With class_rows, k, k + 4, k + 8 and so
 * on follow each other; each class has so many rows.
 */
typedef struct rung_turn_args {
    const float *from;
    float *to;
    int64_t k, mn, ld_from, ld_to, stride_from, stride_to;
    int64_t class_rows;
    int64_t aligned; /* every row of `from` starts at a multiple of 16 bytes */
} rung_turn_args;

enum { RUNG_TURN_TILE = 64, RUNG_TURN_THREADS = 256 };

#ifdef __CUDACC__
#include "device/args.h"

RUNG_DEVICE int64_t turn_row(const rung_turn_args *p, int64_t k, const int classed)
{
    return (classed ? (k & 3) * p->class_rows + k / 4 : k) * p->ld_to;
}

/* What is turned lies in shared memory on its way, so that whole lines are read and whole lines are written:
 * tile[k][mn]. With rows of 65 elements no two lanes of a warp that fills it meet in a bank. */
typedef float turn_tile[RUNG_TURN_TILE][RUNG_TURN_TILE + 1];

/* Brings a tile whose rows start at multiples of 16 bytes. A warp reads 128 bytes of each of four rows at a time. */
RUNG_DEVICE void turn_bring_16(const rung_turn_args *p, const float *from, int64_t mn0, int64_t k0, turn_tile tile)
{
    enum { ROUNDS = RUNG_TURN_TILE / 16 };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int k = warp % 2 * 32 + lane % 8 * 4, mn = warp / 2 * 4 + lane / 8;
    const int64_t left = p->k - k0 - k;
    const float *at = from + (mn0 + mn) * p->ld_from + k0 + k;
    float4 v[ROUNDS];
#pragma unroll
    for (int i = 0; i < ROUNDS; i++, at += 16 * p->ld_from) {
        const int64_t here = mn0 + mn + 16 * i < p->mn ? left : 0;
        v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (here >= 4) {
            v[i] = *(const float4 *)at;
        } else {
            v[i].x = here > 0 ? at[0] : 0.0f;
            v[i].y = here > 1 ? at[1] : 0.0f;
            v[i].z = here > 2 ? at[2] : 0.0f;
        }
    }
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) {
        tile[k][mn + 16 * i] = v[i].x;
        tile[k + 1][mn + 16 * i] = v[i].y;
        tile[k + 2][mn + 16 * i] = v[i].z;
        tile[k + 3][mn + 16 * i] = v[i].w;
    }
}

/* Brings a tile whose rows start anywhere. */
RUNG_DEVICE void turn_bring_4(const rung_turn_args *p, const float *from, int64_t mn0, int64_t k0, turn_tile tile)
{
    enum { STEP = RUNG_TURN_THREADS / RUNG_TURN_TILE, ROUNDS = RUNG_TURN_TILE / STEP };
    const int k = threadIdx.x % RUNG_TURN_TILE, mn = threadIdx.x / RUNG_TURN_TILE;
    const float *at = from + (mn0 + mn) * p->ld_from + k0 + k;
    float v[ROUNDS];
#pragma unroll
    for (int i = 0; i < ROUNDS; i++, at += STEP * p->ld_from)
        v[i] = k0 + k < p->k && mn0 + mn + STEP * i < p->mn ? __ldg(at) : 0.0f;
#pragma unroll
    for (int i = 0; i < ROUNDS; i++)
        tile[k][mn + STEP * i] = v[i];
}

/* Leaves a tile: 16 lanes write 256 bytes of a row. Rows of the copy have room for whole groups of four. */
RUNG_DEVICE void turn_leave(const rung_turn_args *p, float *to, int64_t mn0, int64_t k0, turn_tile tile,
                            const int classed)
{
    const int mn = threadIdx.x % 16 * 4, k = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < RUNG_TURN_TILE; i += 16) {
        const float *row = tile[k + i];
        if (k0 + k + i < p->k && mn0 + mn < p->mn)
            *(float4 *)(to + turn_row(p, k0 + k + i, classed) + mn0 + mn) =
                make_float4(row[mn], row[mn + 1], row[mn + 2], row[mn + 3]);
    }
}

/* Turns the tile that begins at (mn0, k0). The whole block does. */
RUNG_DEVICE void turn_one(const rung_turn_args *p, const float *from, float *to, int64_t mn0, int64_t k0,
                          const int classed)
{
    __shared__ turn_tile tile;
    if (p->aligned)
        turn_bring_16(p, from, mn0, k0, tile);
    else
        turn_bring_4(p, from, mn0, k0, tile);
    __syncthreads();
    turn_leave(p, to, mn0, k0, tile, classed);
    __syncthreads();
}

RUNG_DEVICE void turn(const rung_turn_args *p, const int classed)
{
    const float *from = p->from + blockIdx.z * p->stride_from;
    float *to = p->to + blockIdx.z * p->stride_to;
#pragma unroll 1
    for (int64_t k0 = (int64_t)blockIdx.y * RUNG_TURN_TILE; k0 < p->k; k0 += (int64_t)gridDim.y * RUNG_TURN_TILE)
        turn_one(p, from, to, (int64_t)blockIdx.x * RUNG_TURN_TILE, k0, classed);
}

#endif

#endif
