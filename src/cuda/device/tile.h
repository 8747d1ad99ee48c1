/* Guarded 16-byte reads and writes of row-major matrices, for the tiled rungs.
 * Outside a matrix there are zeros to read and nothing to write. `inside` promises that all four elements exist and are
 * aligned; it should be the same for a whole block, and then costs one untaken branch.
 */
#ifndef RUNG_DEVICE_TILE_H
#define RUNG_DEVICE_TILE_H

#include "args.h"

#ifdef __CUDACC__

/* True where every row of x starts at a multiple of 16 bytes. */
RUNG_DEVICE bool rung_is_aligned16(const float *x, int64_t ld)
{
    return (uintptr_t)x % 16 == 0 && ld % 4 == 0;
}

/* Reads four floats of a tile into registers, by one 16-byte shared load. */
RUNG_DEVICE void rung_get4(float *to, const float *tile)
{
    float4 v = *(const float4 *)tile;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

/* Reads four neighbours in row r of the rows x columns matrix x, from column c on. `p` is where they are. */
RUNG_DEVICE float4 rung_read4_at(const float *p, int64_t rows, int64_t columns, int64_t r, int64_t c, bool inside)
{
    if (inside)
        return *(const float4 *)p;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (r < rows) {
        if (c < columns)
            v.x = p[0];
        if (c + 1 < columns)
            v.y = p[1];
        if (c + 2 < columns)
            v.z = p[2];
        if (c + 3 < columns)
            v.w = p[3];
    }
    return v;
}

RUNG_DEVICE float4 rung_read4(const float *x, int64_t ld, int64_t rows, int64_t columns, int64_t r, int64_t c,
                              bool inside)
{
    return rung_read4_at(x + r * ld + c, rows, columns, r, c, inside);
}

/* C[row][column .. column + 3] = alpha * acc + beta * C. */
RUNG_DEVICE void rung_write4(const rung_args *g, int64_t row, int64_t column, float4 acc, bool inside)
{
    float *c = g->c + row * g->ldc + column;
    if (inside) {
        float4 v = make_float4(g->alpha * acc.x, g->alpha * acc.y, g->alpha * acc.z, g->alpha * acc.w);
        if (g->beta != 0.0f) {
            float4 old = *(const float4 *)c;
            v = make_float4(fmaf(g->beta, old.x, v.x), fmaf(g->beta, old.y, v.y), fmaf(g->beta, old.z, v.z),
                            fmaf(g->beta, old.w, v.w));
        }
        *(float4 *)c = v;
    } else if (row < g->m) {
        if (column < g->n)
            c[0] = rung_blend(g, acc.x, c);
        if (column + 1 < g->n)
            c[1] = rung_blend(g, acc.y, c + 1);
        if (column + 2 < g->n)
            c[2] = rung_blend(g, acc.z, c + 2);
        if (column + 3 < g->n)
            c[3] = rung_blend(g, acc.w, c + 3);
    }
}

#endif
#endif
