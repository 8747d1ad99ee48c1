/* The few vector operations the kernel body needs, in the vector extensions of GCC and Clang: 4 lanes,
 * any CPU. With -ffp-contract=fast the compiler fuses where the CPU can (aarch64 always can). */
#ifndef RUNG_CPU_SIMD_PORTABLE_H
#define RUNG_CPU_SIMD_PORTABLE_H

#include <string.h>

#define VL 4
typedef float vf __attribute__((vector_size(16)));
typedef int vmask; /* the number of leading lanes */

#define VFN static inline __attribute__((always_inline))

VFN vmask v_mask(int lanes)
{
    return lanes;
}
VFN vf v_zero(void)
{
    return (vf){0, 0, 0, 0};
}
VFN vf v_all(float x)
{
    return (vf){x, x, x, x};
}
VFN vf v_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
VFN vf v_load_halves(const float *low, const float *high)
{
    return (vf){low[0], low[1], high[0], high[1]};
}
VFN vf v_load_some(const float *p, vmask lanes)
{
    vf x = v_zero();
    if (lanes == 4)
        return v_load(p);
    for (int i = 0; i < lanes; i++)
        x[i] = p[i];
    return x;
}
VFN void v_store(float *p, vf x)
{
    memcpy(p, &x, sizeof x);
}
VFN void v_store_some(float *p, vf x, vmask lanes)
{
    if (lanes == 4) {
        v_store(p, x);
        return;
    }
    for (int i = 0; i < lanes; i++)
        p[i] = x[i];
}
VFN void v_store_low(float *p, vf x)
{
    memcpy(p, &x, 8);
}
VFN void v_store_high(float *p, vf x)
{
    memcpy(p, (const float *)&x + 2, 8);
}
VFN void v_store_past(float *p, vf x)
{
    v_store(p, x);
}
VFN vf v_add(vf x, vf y)
{
    return x + y;
}
VFN vf v_mul(vf x, vf y)
{
    return x * y;
}
/* x86: the loads and products of a tile's loop stay in the order they are written in. Left the choice, the compiler
 * adds the products of eight steps to one sum after the other, and keeps most of what it loads on the stack. */
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
VFN vf v_tile_load(const float *p)
{
    vf x;
    __asm__ volatile("movups %1, %0" : "=x"(x) : "m"(*(const float(*)[VL])p));
    return x;
}
VFN vf v_tile_all(const float *p)
{
    vf x;
    __asm__ volatile("movss %1, %0\n\tshufps $0, %0, %0" : "=x"(x) : "m"(*p));
    return x;
}
/* Adds to two sums; x is not used again, so that the second product needs no copy of it. */
#define FMA_PAIRS
VFN void v_fma_pair(vf x, const vf y[2], vf z[2])
{
    vf product;
    __asm__ volatile("movaps %0, %1\n\tmulps %4, %1\n\taddps %1, %2\n\tmulps %5, %0\n\taddps %0, %3"
                     : "+&x"(x), "=&x"(product), "+&x"(z[0]), "+&x"(z[1])
                     : "x"(y[0]), "x"(y[1]));
}
#else
VFN vf v_tile_load(const float *p)
{
    return v_load(p);
}
VFN vf v_tile_all(const float *p)
{
    return v_all(*p);
}
#endif
VFN vf v_fma(vf x, vf y, vf z)
{
    return x * y + z;
}
/* Writes the sums of the lanes of four vectors. */
VFN void v_sums(float *to, const vf x[4])
{
    for (int i = 0; i < 4; i++)
        to[i] = (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
}

/* r[i] lane j becomes r[j] lane i. */
VFN void v_transpose(vf r[VL])
{
    vf a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < 4; i++)
        r[i] = (vf){a[i], b[i], c[i], d[i]};
}

#endif
