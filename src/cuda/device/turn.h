/* To turn an operand is to copy it with k innermost to workspace, with k outermost and rows that start at multiples of
 * 16 bytes. A block copies one tile of 64 x 64. Here are its arguments and its kernel. */
#ifndef RUNG_DEVICE_TURN_H
#define RUNG_DEVICE_TURN_H

#include <stdint.h>

/* to[k][mn] = from[mn][k]. With class_rows, k, k + 4, k + 8 and so on follow each other; each class has so many rows.
 */
typedef struct rung_turn_args {
    const float *from;
    float *to;
    int64_t k, mn, ld_from, ld_to, stride_from, stride_to;
    int64_t class_rows;
    int32_t aligned; /* every row of `from` starts at a multiple of 16 bytes */
} rung_turn_args;

enum { RUNG_TURN_TILE = 64, RUNG_TURN_THREADS = 256 };

#ifdef __CUDACC__
#include "device/args.h"

RUNG_DEVICE int64_t turn_row(const rung_turn_args *p, int64_t k, const int classed)
{
    return (classed ? (k & 3) * p->class_rows + k / 4 : k) * p->ld_to;
}

/* A thread turns 4 x 4 elements in registers. Rows of `from` start at multiples of 16 bytes. A warp reads 128 bytes
 * of each of 16 rows and writes 64 bytes of each of 32; its neighbours write the rest of the lines. */
RUNG_DEVICE void turn_4x4(const rung_turn_args *p, const float *from, float *to, int64_t mn0, int64_t k0,
                          const int classed)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t mn = mn0 + warp % 4 * 16 + lane / 8 * 4, k = k0 + warp / 4 * 32 + lane % 8 * 4;
    if (mn + 4 <= p->mn && k + 4 <= p->k) {
        const float *at = from + mn * p->ld_from + k;
        float4 v0 = *(const float4 *)at, v1 = *(const float4 *)(at + p->ld_from);
        float4 v2 = *(const float4 *)(at + 2 * p->ld_from), v3 = *(const float4 *)(at + 3 * p->ld_from);
        float *put = to + turn_row(p, k, classed) + mn;
        const int64_t next = p->ld_to * (classed ? p->class_rows : 1); /* k is a multiple of four */
        *(float4 *)put = make_float4(v0.x, v1.x, v2.x, v3.x);
        *(float4 *)(put + next) = make_float4(v0.y, v1.y, v2.y, v3.y);
        *(float4 *)(put + 2 * next) = make_float4(v0.z, v1.z, v2.z, v3.z);
        *(float4 *)(put + 3 * next) = make_float4(v0.w, v1.w, v2.w, v3.w);
        return;
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (mn + i < p->mn && k + j < p->k)
                to[turn_row(p, k + j, classed) + mn + i] = from[(mn + i) * p->ld_from + k + j];
}

RUNG_DEVICE void turn(const rung_turn_args *p, const int classed)
{
    __shared__ float tile[RUNG_TURN_TILE][RUNG_TURN_TILE + 1];
    int64_t mn0 = (int64_t)blockIdx.x * RUNG_TURN_TILE;
    const float *from = p->from + blockIdx.z * p->stride_from;
    float *to = p->to + blockIdx.z * p->stride_to;
    int x = threadIdx.x % RUNG_TURN_TILE, y0 = threadIdx.x / RUNG_TURN_TILE, step = RUNG_TURN_THREADS / RUNG_TURN_TILE;
    for (int64_t k0 = (int64_t)blockIdx.y * RUNG_TURN_TILE; k0 < p->k; k0 += (int64_t)gridDim.y * RUNG_TURN_TILE) {
        if (p->aligned) {
            turn_4x4(p, from, to, mn0, k0, classed);
        } else {
#pragma unroll 8
            for (int y = y0; y < RUNG_TURN_TILE; y += step)
                tile[x][y] = mn0 + y < p->mn && k0 + x < p->k ? __ldg(from + (mn0 + y) * p->ld_from + k0 + x) : 0.0f;
            __syncthreads();
#pragma unroll 8
            for (int y = y0; y < RUNG_TURN_TILE; y += step)
                if (k0 + y < p->k && mn0 + x < p->mn)
                    to[turn_row(p, k0 + y, classed) + mn0 + x] = tile[y][x];
            __syncthreads();
        }
    }
}

#endif

#endif
