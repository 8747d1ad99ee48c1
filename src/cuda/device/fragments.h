/* Fragments: what a thread holds of a tile's operands in registers, read from shared memory 16 bytes at a time, and
 * what it makes of them. */
#ifndef RUNG_DEVICE_FRAGMENTS_H
#define RUNG_DEVICE_FRAGMENTS_H

#include "device/copies.h"
#include "device/ptx.h"

/* A RUNG_DEVICE function that sees nothing but arrays of its own thread, which are registers. The lens, which says the
 * word first, compiles it without hooks. */
#ifndef RUNG_IN_REGISTERS
#define RUNG_IN_REGISTERS RUNG_DEVICE
#endif

/* Reads sixteen bytes of shared memory: four k of one row of an operand, */
RUNG_DEVICE void load_row(float x[4], uint32_t at)
{
    float4 v = ptx_shared_load4(at);
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

/* or one k of four rows. */
RUNG_DEVICE void load_column(float x[][4], const int k, uint32_t at)
{
    float4 v = ptx_shared_load4(at);
    x[0][k] = v.x, x[1][k] = v.y, x[2][k] = v.z, x[3][k] = v.w;
}

/* Reads `count` rows (or columns) of a thread for `step` values of k into f[q][i]. Groups of four rows in sequence lie
 * `lines` groups apart. `at` is the thread's first element at the first of these k. */
RUNG_DEVICE void fragment(float *f, const float *at, const int count, const int lines, const int extent,
                          const int depth, const int step, const int k_innermost)
{
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        if (k_innermost) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const float *from = at + q * QUARTER_FLOATS(extent, depth) + i / 4 * lines * (depth + 4);
                if (step == 4) {
                    float4 v = *(const float4 *)from;
                    f[i + q] = v.x, f[count + i + q] = v.y, f[2 * count + i + q] = v.z, f[3 * count + i + q] = v.w;
                } else {
                    float2 v = *(const float2 *)from;
                    f[i + q] = v.x, f[count + i + q] = v.y;
                }
            }
        } else {
#pragma unroll
            for (int q = 0; q < step; q++) {
                float4 v = *(const float4 *)(at + q * extent + i * lines);
                f[q * count + i] = v.x, f[q * count + i + 1] = v.y, f[q * count + i + 2] = v.z,
                              f[q * count + i + 3] = v.w;
            }
        }
    }
}

/* Reads two neighbouring rows of a thread for four k into f[q][i]. `at` is the first row's first element. */
RUNG_DEVICE void fragment_pair(float *f, const float *at, const int pitch, const int extent, const int depth,
                               const int k_innermost)
{
    if (k_innermost) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float4 v = *(const float4 *)(at + i * QUARTER_FLOATS(extent, depth));
            f[i] = v.x, f[2 + i] = v.y, f[4 + i] = v.z, f[6 + i] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float2 v = *(const float2 *)(at + q * pitch);
            f[2 * q] = v.x, f[2 * q + 1] = v.y;
        }
    }
}

/* acc += a * b for `step` values of k. */
RUNG_IN_REGISTERS void multiply(float *acc, const float *a, const float *b, const int tm, const int tn, const int step)
{
#pragma unroll
    for (int q = 0; q < step; q++)
#pragma unroll
        for (int i = 0; i < tm; i++)
#pragma unroll
            for (int j = 0; j < tn; j++)
                acc[i * tn + j] = fmaf(a[q * tm + i], b[q * tn + j], acc[i * tn + j]);
}

/* Does so for one k, in the order that keeps the register ports least busy (tools/sass/ports.h): four rows by two
 * columns at a time. The elements of both columns stay in the operand cache, and each row's is read once for two
 * products. */
RUNG_IN_REGISTERS void multiply_in_pairs(float *acc, const float *a, const float *b, const int tm, const int tn)
{
#pragma unroll
    for (int i = 0; i < tm; i += 4)
#pragma unroll
        for (int j = 0; j < tn; j += 2)
#pragma unroll
            for (int u = 0; u < 8; u++) {
                const int h = u / 2, row = i + (j / 2 % 2 ? (h + 2) % 4 : h), column = j + u % 2;
                ptx_fma(&acc[row * tn + column], a[row], b[column]);
            }
}

#endif
