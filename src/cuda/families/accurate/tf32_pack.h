/* Rounds two operands to TF32 for the product in one pass. One launch reads each operand once. There are no scales and
 * nothing for a guard; else it does what f16x3_split.h does. The images have k innermost and lie as f16x3.h says, but a
 * row of 128 bytes holds 32 values. */
#ifndef RUNG_DEVICE_TF32_PACK_H
#define RUNG_DEVICE_TF32_PACK_H

#include "device/f16x3.h"
#include "device/ptx.h"

/* Rounds to nearest, ties away from zero: the matrix unit would truncate. The largest floats stay finite. */
RUNG_DEVICE float tf32_round(float x)
{
    uint32_t bits = ptx_round_tf32(x);
    if (isinf(__uint_as_float(bits)) && !isinf(x))
        return copysignf(__uint_as_float(0x7f7fe000u), x);
    return __uint_as_float(bits);
}

RUNG_DEVICE float4 tf32_round4(const float *v)
{
    return make_float4(tf32_round(v[0]), tf32_round(v[1]), tf32_round(v[2]), tf32_round(v[3]));
}

RUNG_DEVICE float4 *tf32_row(const f16x3_operand *s, int k_block, int line)
{
    return (float4 *)(s->image + ((int64_t)k_block * s->row_groups + (line >> 3)) * 1024 + (line & 7) * 128);
}

/* Packs lines along k. A block packs one line. */
RUNG_DEVICE void tf32_line(const f16x3_operand *s, const float *x, int line)
{
    const float *row = x + line * s->ld;
    int vector = ((s->ld & 3) | (int)((uintptr_t)x >> 2 & 3)) == 0, k, i;
    int k_end = line < s->lines ? s->k : 0;
#pragma unroll 4
    for (k = threadIdx.x * 4; k < s->k_blocks * F16X3_KB; k += F16X3_THREADS * 4) {
        float v[4] = {0, 0, 0, 0};
        if (vector && k + 3 < k_end)
            *(float4 *)v = *(const float4 *)(row + k);
        else
            for (i = 0; i < 4; i++)
                v[i] = k + i < k_end ? row[k + i] : 0.0f;
        tf32_row(s, k >> 5, line)[(k >> 2 & 7) ^ (line & 7)] = tf32_round4(v);
    }
}

/* Packs lines across k. A block packs 64 lines of turn_blocks blocks of k, and turns them in shared memory. */
RUNG_DEVICE void tf32_turn(const f16x3_operand *s, const float *x, int block)
{
    __shared__ __align__(128) float4 turn[2][F16X3_COLS * 8];
    int t = threadIdx.x, col = t % F16X3_COLS, piece = t / F16X3_COLS, i;
    int across = (int)(s->row_groups / (F16X3_COLS / 8)), first = block % across * F16X3_COLS, line = first + col;
    int b = block / across * s->turn_blocks, end = min(b + s->turn_blocks, s->k_blocks);
    for (; b < end; b++) {
        float4 *out = turn[b & 1], *image = tf32_row(s, b, first);
        int k = b * F16X3_KB + piece * 8;
        float v[8];
#pragma unroll
        for (i = 0; i < 8; i++)
            v[i] = k + i < s->k && line < s->lines ? x[(k + i) * s->ld + line] : 0.0f;
        out[col * 8 + ((piece * 2) ^ (col & 7))] = tf32_round4(v);
        out[col * 8 + ((piece * 2 + 1) ^ (col & 7))] = tf32_round4(v + 4);
        __syncthreads();
        image[t] = out[t];
        image[t + F16X3_THREADS] = out[t + F16X3_THREADS];
    }
}

RUNG_KERNEL(F16X3_THREADS) tf32_pack(const __grid_constant__ f16x3_split_args s)
{
    int of_a = blockIdx.x < s.a_blocks, block = of_a ? blockIdx.x : blockIdx.x - s.a_blocks;
    const f16x3_operand *op = of_a ? &s.a : &s.b;
    const float *x = op->x_array ? op->x_array[s.entry] : op->x;
    int64_t i;
    for (i = blockIdx.x * (int64_t)F16X3_THREADS + threadIdx.x; i < s.zero_words; i += gridDim.x * F16X3_THREADS)
        ((uint4 *)s.zero)[i] = make_uint4(0, 0, 0, 0); /* for the product */
    if (op->k_innermost)
        tf32_line(op, x, block);
    else
        tf32_turn(op, x, block);
}

#endif
