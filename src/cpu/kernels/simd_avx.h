/* The few vector operations the kernel body needs, in AVX without FMA: 8 lanes, 16 registers. A product takes a
 * register until it is added. */
#ifndef RUNG_CPU_SIMD_AVX_H
#define RUNG_CPU_SIMD_AVX_H

#define TILE_IN_ORDER
#include "cpu/kernels/simd_256.h"

typedef __m256i vmask;

VFN vmask v_mask(int lanes)
{
    static const int some[2 * VL] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(some + VL - lanes));
}
VFN vf v_load_some(const float *p, vmask mask)
{
    return _mm256_maskload_ps(p, mask);
}
VFN void v_store_some(float *p, vf x, vmask mask)
{
    v_store_in_steps(p, x, mask);
}
VFN vf v_fma(vf x, vf y, vf z)
{
    vf product;
    __asm__ volatile("vmulps %2, %3, %1\n\tvaddps %1, %0, %0" : "+x"(z), "=&x"(product) : "x"(x), "x"(y));
    return z;
}
#endif
