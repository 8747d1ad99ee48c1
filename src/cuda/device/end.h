/* The end of a product: what becomes of a sum, and its store. C = act(alpha * sum + beta * C + bias); with beta = 0 C
 * is not read. Rows and columns count from the first of C. */
#ifndef RUNG_DEVICE_END_H
#define RUNG_DEVICE_END_H

#include "device/args.h"
#include "rung.h"

#include <math.h>

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

/* Says whether a result is alpha times its sum plus beta times what C holds. */
#define END_ADDS_OLD(e) ((e)->beta != 0.0f && !(e)->g->bias_kind && !(e)->g->activation)

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

/* Returns what C holds of four neighbours of a row: zero where one lies outside C, and with a beta of 0. What memory
 * takes to answer is longer than all else that ends a tile, so a thread asks for several of these before it needs the
 * first. */
RUNG_DEVICE float4 end_old4(const struct end *e, int row, int col)
{
    float4 old = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int left = (int)e->g->n - col;
    if (e->beta == 0.0f || row >= e->g->m || left <= 0)
        return old;
    const float *from = e->c + (long long)row * e->g->ldc + col;
    if (e->vector && left >= 4)
        return *(const float4 *)from;
    old.x = from[0];
    if (left > 1)
        old.y = from[1];
    if (left > 2)
        old.z = from[2];
    if (left > 3)
        old.w = from[3];
    return old;
}

/* Stores those of four neighbours that lie inside C. */
RUNG_DEVICE void end_put_inside(const struct end *e, int row, int col, float4 v)
{
    const int left = (int)e->g->n - col;
    if (row >= e->g->m || left <= 0)
        return;
    float *out = e->c + (long long)row * e->g->ldc + col;
    if (e->vector && left >= 4) {
        *(float4 *)out = v;
        return;
    }
    out[0] = v.x;
    if (left > 1)
        out[1] = v.y;
    if (left > 2)
        out[2] = v.z;
    if (left > 3)
        out[3] = v.w;
}

/* Returns alpha times four sums plus beta times what C held. An alpha of 0 that lies in device memory is not known to
 * main loops, whose sums may then be NaN. */
RUNG_DEVICE float4 end_blend4(const struct end *e, float4 sum, float4 old)
{
    if (e->alpha == 0.0f)
        sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 v = make_float4(e->alpha * sum.x, e->alpha * sum.y, e->alpha * sum.z, e->alpha * sum.w);
    if (e->beta != 0.0f) {
        v.x = fmaf(e->beta, old.x, v.x), v.y = fmaf(e->beta, old.y, v.y);
        v.z = fmaf(e->beta, old.z, v.z), v.w = fmaf(e->beta, old.w, v.w);
    }
    return v;
}

/* Stores four neighbouring results of a row. Some or all of them may lie outside C. */
RUNG_DEVICE void end_store4(const struct end *e, int row, int col, float4 sum)
{
    if (row >= e->g->m || col >= e->g->n)
        return;
    const float4 blend = end_blend4(e, sum, end_old4(e, row, col));
    float v[4] = {blend.x, blend.y, blend.z, blend.w};
    const int left = (int)e->g->n - col;
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
    end_put_inside(e, row, col, make_float4(v[0], v[1], v[2], v[3]));
}

RUNG_DEVICE float4 add4(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/* Returns the sum of `terms` vectors that lie `apart`, in their order. */
RUNG_DEVICE float4 end_total(const float4 *sums, const unsigned terms, unsigned apart)
{
    float4 sum = sums[0];
    for (unsigned s = 1; s < terms; s++)
        sum = add4(sum, sums[s * apart]);
    return sum;
}

/* Stores vectors as end_store_vectors() does, where C is read: several are asked for at once. */
RUNG_DEVICE void end_add_vectors(const struct end *e, int row0, int col0, unsigned first, unsigned count,
                                 const float4 *sums, unsigned terms, unsigned apart, int tid, unsigned bn,
                                 unsigned threads)
{
    enum { AT_ONCE = 4 };
    const unsigned across = bn / 4;
#pragma unroll 1
    for (unsigned v0 = tid; v0 < count; v0 += AT_ONCE * threads) {
        int row[AT_ONCE], col[AT_ONCE];
        float4 old[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const unsigned v = v0 + i * threads;
            row[i] = v < count ? row0 + (int)((first + v) / across) : (int)e->g->m;
            col[i] = col0 + (int)((first + v) % across) * 4;
            old[i] = end_old4(e, row[i], col[i]);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (row[i] >= e->g->m)
                continue;
            float4 sum = sums[v0 + i * threads];
#pragma unroll 1
            for (unsigned s = 1; s < terms; s++)
                sum = add4(sum, sums[v0 + i * threads + s * apart]);
            end_put_inside(e, row[i], col[i], end_blend4(e, sum, old[i]));
        }
    }
}

/* Stores `count` vectors of a tile of `bn` columns, from its vector number `first` on. Each is the sum of `terms` of
 * `sums`, which lie `apart`. */
RUNG_DEVICE void end_store_vectors(const struct end *e, int row0, int col0, unsigned first, unsigned count,
                                   const float4 *sums, const unsigned terms, unsigned apart, int tid, const int bn,
                                   const int threads)
{
    if (END_ADDS_OLD(e)) {
        end_add_vectors(e, row0, col0, first, count, sums, terms, apart, tid, bn, threads);
        return;
    }
#pragma unroll 1
    for (unsigned v = tid; v < count; v += threads)
        end_store4(e, row0 + (first + v) / (bn / 4), col0 + (first + v) % (bn / 4) * 4,
                   end_total(sums + v, terms, apart));
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

/* Stores results as end_store_lines() does, where C is read: several are asked for at once. */
RUNG_DEVICE void end_add_lines(const struct end *e, int row0, int col0, unsigned first, unsigned count,
                               const float *sums, unsigned terms, unsigned apart, int tid, unsigned bn,
                               unsigned threads)
{
    enum { AT_ONCE = 8 };
    const int rows = (int)e->g->m - row0, cols = (int)e->g->n - col0;
    float *c = e->c + row0 * e->g->ldc + col0;
#pragma unroll 1
    for (unsigned i0 = tid; i0 < count; i0 += AT_ONCE * threads) {
        float *to[AT_ONCE], old[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const unsigned i = i0 + u * threads;
            const int row = (int)((first + i) / bn), col = (int)((first + i) % bn);
            to[u] = i < count && row < rows && col < cols ? c + row * e->g->ldc + col : NULL;
            old[u] = to[u] ? *to[u] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (!to[u])
                continue;
            const float *from = sums + i0 + u * threads;
            float sum = from[0];
#pragma unroll 1
            for (unsigned s = 1; s < terms; s++)
                sum += from[s * apart];
            *to[u] = fmaf(e->beta, old[u], e->alpha * sum);
        }
    }
}

/* Stores `count` results of a tile of `bn` columns, from its result number `first` on. Neighbouring threads store
 * neighbours, so that stores fill sectors wherever rows of C start. Each result is the sum of `terms` floats that lie
 * `apart`. */
RUNG_DEVICE void end_store_lines(const struct end *e, int row0, int col0, unsigned first, unsigned count,
                                 const float *sums, const unsigned terms, unsigned apart, int tid, const int bn,
                                 const int threads)
{
    const int rows = (int)e->g->m - row0, cols = (int)e->g->n - col0;
    const int plain = END_IS_PLAIN(e);
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
    if (END_ADDS_OLD(e)) {
        end_add_lines(e, row0, col0, first, count, sums, terms, apart, tid, bn, threads);
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
