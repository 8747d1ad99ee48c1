/* The few vector operations the kernel body needs, in AVX-512VL: 8 lanes, 32 registers, masks that suppress faults. */
#ifndef RUNG_CPU_SIMD_AVX512VL_H
#define RUNG_CPU_SIMD_AVX512VL_H

#include "cpu/kernels/simd_256.h"

#define V_REGISTER "+v"

typedef __mmask8 vmask;

VFN vmask v_mask(int lanes)
{
    return (vmask)((1u << lanes) - 1u);
}
VFN vf v_load_some(const float *p, vmask mask)
{
    return _mm256_maskz_loadu_ps(mask, p);
}
VFN void v_store_some(float *p, vf x, vmask mask)
{
    _mm256_mask_storeu_ps(p, mask, x);
}
VFN vf v_tile_load(const float *p)
{
    return v_load(p);
}
VFN vf v_tile_all(const float *p)
{
    return v_all(*p);
}
VFN vf v_fma(vf x, vf y, vf z)
{
    return _mm256_fmadd_ps(x, y, z);
}

#endif
