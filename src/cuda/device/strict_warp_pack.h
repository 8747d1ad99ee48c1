/* Copies of operands whose rows do not start at multiples of 16 bytes, to rows that do, in the order they lie; both in
 * one launch. A block copies 16 rows of 256 elements. Rows of the copy end in up to three elements that nobody reads.
 */
#ifndef RUNG_DEVICE_STRICT_WARP_PACK_H
#define RUNG_DEVICE_STRICT_WARP_PACK_H

#include "device/args.h"
#include "device/strict_warp_args.h"

RUNG_DEVICE void warp_pack(const rung_warp_pack_operand *o, unsigned tile)
{
    const unsigned across = (unsigned)((o->inner + RUNG_WARP_PACK_COLUMNS - 1) / RUNG_WARP_PACK_COLUMNS);
    const unsigned down = (unsigned)((o->outer + RUNG_WARP_PACK_ROWS - 1) / RUNG_WARP_PACK_ROWS);
    const unsigned batch = tile / (across * down), row = tile / across % down, column = tile % across;
    const int64_t x = (int64_t)column * RUNG_WARP_PACK_COLUMNS + threadIdx.x % 64 * 4;
    const int64_t y = (int64_t)row * RUNG_WARP_PACK_ROWS + threadIdx.x / 64;
    const float *from = o->from + batch * o->stride_from + y * o->ld_from + x;
    float *to = o->to + batch * o->stride_to + y * o->ld_to + x;
    const int64_t left = o->inner - x;
    float v[4][4];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[r][i] = y + r * 4 < o->outer && i < left ? __ldg(from + r * 4 * o->ld_from + i) : 0.0f;
#pragma unroll
    for (int r = 0; r < 4; r++)
        if (y + r * 4 < o->outer && left > 0)
            *(float4 *)(to + r * 4 * o->ld_to) = make_float4(v[r][0], v[r][1], v[r][2], v[r][3]);
}

RUNG_KERNEL(RUNG_WARP_PACK_THREADS) warp_pack_operands(const __grid_constant__ rung_warp_pack_args p)
{
    if (blockIdx.x < p.blocks_a)
        warp_pack(&p.a, blockIdx.x);
    else
        warp_pack(&p.b, blockIdx.x - p.blocks_a);
}

#endif
