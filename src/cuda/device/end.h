/* The end of a product: what becomes of a sum, and its store. C = act(alpha * sum + beta * C + bias); with beta = 0 C
 * is not read. Rows and columns count from the first of C. */
#ifndef RUNG_DEVICE_END_H
#define RUNG_DEVICE_END_H

#include "device/args.h"
#include "rung.h"

/* Where results go and what is done to them on the way. */
struct end {
    const rung_args *g; /* m, n, the leading dimension of C, bias and activation */
    float *c;           /* this matrix of the batch */
    float alpha, beta;
    int vector; /* every row of C starts at a multiple of 16 bytes */
};

/* Returns a scalar of the call, which may lie in device memory. */
RUNG_DEVICE float scalar_of(const float *device, float value)
{
    return device ? *device : value;
}

RUNG_DEVICE int aligned16(const void *p, long long ld)
{
    return (((unsigned long long)p | (unsigned long long)ld << 2) & 15) == 0;
}

/* Stores four floats at an aligned place as one. Of an assignment under a condition the compiler may make four stores
 * of 4 bytes, which suits its registers: each of them writes an eighth of its sectors. */
RUNG_DEVICE void end_put4(float *out, float4 v)
{
#ifdef RUNG_LENS
    *(float4 *)out = v;
#else
    asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(__cvta_generic_to_global(out)), "f"(v.x), "f"(v.y),
                 "f"(v.z), "f"(v.w)
                 : "memory");
#endif
}

/* Says whether a result is alpha times its sum and no more. It is a macro, since of a function's value the compiler
 * would compute all three terms. */
#define END_IS_PLAIN(e) ((e)->beta == 0.0f && !(e)->g->bias_kind && !(e)->g->activation)

RUNG_DEVICE float end_gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

/* Applies the activation. NaN stays NaN. */
RUNG_DEVICE float end_activate(float x, int activation)
{
    if (activation == RUNG_RELU)
        return x < 0.0f ? 0.0f : x;
    if (activation == RUNG_GELU)
        return end_gelu(x);
    return x;
}

/* Stores four neighbouring results of a row. Some or all of them may lie outside C. */
RUNG_DEVICE void end_store4(const struct end *e, int row, int col, float4 sum)
{
    if (row >= e->g->m || col >= e->g->n)
        return;
    float *out = e->c + (long long)row * e->g->ldc + col;
    float v[4] = {e->alpha * sum.x, e->alpha * sum.y, e->alpha * sum.z, e->alpha * sum.w};
    int left = e->g->n - col;
    if (e->vector && left >= 4) {
        if (e->beta != 0.0f) {
            float4 old = *(const float4 *)out;
            v[0] = fmaf(e->beta, old.x, v[0]);
            v[1] = fmaf(e->beta, old.y, v[1]);
            v[2] = fmaf(e->beta, old.z, v[2]);
            v[3] = fmaf(e->beta, old.w, v[3]);
        }
    } else if (e->beta != 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                v[i] = fmaf(e->beta, out[i], v[i]);
    }
    if (e->g->bias_kind) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                v[i] += e->g->bias[e->g->bias_kind == RUNG_BIAS_PER_ROW ? row : col + i];
    }
    if (e->g->activation) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = end_activate(v[i], e->g->activation);
    }
    if (e->vector && left >= 4) {
        *(float4 *)out = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                out[i] = v[i];
    }
}

/* Stores one result inside C, made as end_store4() makes it, at its place `out`. */
RUNG_DEVICE void end_store1(const struct end *e, float *out, int row, int col, float sum)
{
    float v = e->alpha * sum;
    if (e->beta != 0.0f)
        v = fmaf(e->beta, *out, v);
    if (e->g->bias_kind)
        v += e->g->bias[e->g->bias_kind == RUNG_BIAS_PER_ROW ? row : col];
    if (e->g->activation == RUNG_GELU)
        v = end_activate(v, RUNG_GELU);
    *out = e->g->activation == RUNG_RELU && v < 0.0f ? 0.0f : v;
}

/* Stores `count` results of a tile of `bn` columns, from its result number `first` on. Neighbouring threads store
 * neighbours, so that stores fill sectors wherever rows of C start. Each result is the sum of `terms` floats that lie
 * `apart`. */
RUNG_DEVICE void end_store_lines(const struct end *e, int row0, int col0, unsigned first, unsigned count,
                                 const float *sums, const unsigned terms, unsigned apart, int tid, const int bn,
                                 const int threads)
{
    const int rows = (int)e->g->m - row0, cols = (int)e->g->n - col0;
    const bool plain = END_IS_PLAIN(e);
    float *c = e->c + row0 * e->g->ldc + col0;
    if (plain) {
#pragma unroll 4
        for (unsigned i = tid; i < count; i += threads) {
            const int row = (int)((first + i) / bn), col = (int)((first + i) % bn);
            float sum = sums[i];
            for (unsigned s = 1; s < terms; s++)
                sum += sums[s * apart + i];
            if (row < rows && col < cols)
                c[row * e->g->ldc + col] = e->alpha * sum;
        }
        return;
    }
#pragma unroll 1
    for (unsigned i = tid; i < count; i += threads) {
        const int row = (int)((first + i) / bn), col = (int)((first + i) % bn);
        float sum = sums[i];
        for (unsigned s = 1; s < terms; s++)
            sum += sums[s * apart + i];
        if (row < rows && col < cols)
            end_store1(e, c + row * e->g->ldc + col, row0 + row, col0 + col, sum);
    }
}

#endif
