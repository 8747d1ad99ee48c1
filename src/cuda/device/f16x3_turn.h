/* f16x3_turn.h: operands are turned where the guard refuses all blocks: for large tiles, which compute C then and read
 * them with k outermost. Nobody reads the images, whose room the turned operands take. */
#ifndef RUNG_DEVICE_F16X3_TURN_H
#define RUNG_DEVICE_F16X3_TURN_H

#include "device/f16x3_guard.h"
#include "device/turn.h"

RUNG_KERNEL(RUNG_TURN_THREADS) f16x3_turn(const __grid_constant__ f16x3_turn_args p)
{
    __shared__ int all;
    rung_after_earlier_kernels();
    if (threadIdx.x < 32) {
        const int refused = f16x3_all_refused(&p.guard);
        if (threadIdx.x == 0)
            all = refused;
    }
    __syncthreads();
    if (!all)
        return;
#pragma unroll 1
    for (int i = blockIdx.x; i < p.tiles; i += gridDim.x) {
        const rung_turn_args *t = &p.of[i >= p.tiles_of_first];
        const int at = i < p.tiles_of_first ? i : i - p.tiles_of_first;
        const int across = (int)((t->mn + RUNG_TURN_TILE - 1) / RUNG_TURN_TILE);
        turn_one(t, t->from, t->to, (int64_t)(at % across) * RUNG_TURN_TILE, (int64_t)(at / across) * RUNG_TURN_TILE,
                 0);
    }
}

#endif
