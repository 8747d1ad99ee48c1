/* Packing: an operand copied to workspace with k outermost and rows that start at multiples of 16 bytes, for operands
 * that the bulk copy engine cannot read as they lie (k innermost, odd strides). One 64 x 64 tile a block. */
#ifndef RUNG_DEVICE_STRICT_PACK_H
#define RUNG_DEVICE_STRICT_PACK_H

#include "device/args.h"
#include "device/strict_args.h"

RUNG_DEVICE void strict_pack(const rung_pack_args *p)
{
    __shared__ float tile[RUNG_PACK_TILE][RUNG_PACK_TILE + 1];
    int64_t mn0 = (int64_t)blockIdx.x * RUNG_PACK_TILE;
    const float *from = p->from + blockIdx.z * p->stride_from;
    float *to = p->to + blockIdx.z * p->stride_to;
    int x = threadIdx.x % RUNG_PACK_TILE, y0 = threadIdx.x / RUNG_PACK_TILE, step = RUNG_PACK_THREADS / RUNG_PACK_TILE;
    for (int64_t k0 = (int64_t)blockIdx.y * RUNG_PACK_TILE; k0 < p->k; k0 += (int64_t)gridDim.y * RUNG_PACK_TILE) {
        if (p->transposed) {
#pragma unroll 8
            for (int y = y0; y < RUNG_PACK_TILE; y += step)
                tile[x][y] = mn0 + y < p->mn && k0 + x < p->k ? from[(mn0 + y) * p->ld_from + k0 + x] : 0.0f;
            __syncthreads();
#pragma unroll 8
            for (int y = y0; y < RUNG_PACK_TILE; y += step)
                if (k0 + y < p->k && mn0 + x < p->mn)
                    to[(k0 + y) * p->ld_to + mn0 + x] = tile[y][x];
            __syncthreads();
        } else {
#pragma unroll 8
            for (int y = y0; y < RUNG_PACK_TILE; y += step)
                if (k0 + y < p->k && mn0 + x < p->mn)
                    to[(k0 + y) * p->ld_to + mn0 + x] = from[(k0 + y) * p->ld_from + mn0 + x];
        }
    }
}

#endif
