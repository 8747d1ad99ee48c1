/* Parts of AVX2 vectors for processors whose units are four floats wide (Zen 1). A load by a mask takes ten cycles
 * there, so four floats, two and one are loaded, whichever the number of lanes has. The compiler makes a loop of its
 * own for each number. */
#ifndef RUNG_CPU_SIMD_FOUR_H
#define RUNG_CPU_SIMD_FOUR_H

#include "cpu/kernels/simd_256.h"

typedef int vmask; /* how many lanes */

VFN vmask v_mask(int lanes)
{
    return lanes;
}
VFN vf v_load_some(const float *p, vmask lanes)
{
    if (lanes & 8)
        return v_load(p);
    if (lanes & 4)
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), v_load_few(p + 4, lanes), 1);
    return _mm256_zextps128_ps256(v_load_few(p, lanes));
}
VFN void v_store_some(float *p, vf x, vmask lanes)
{
    if (lanes & 8) {
        v_store(p, x);
        return;
    }
    __m128 rest = _mm256_castps256_ps128(x);
    if (lanes & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps(x, 1);
        p += 4;
    }
    if (lanes & 2) {
        _mm_storel_pi((__m64 *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
    }
    if (lanes & 1)
        _mm_store_ss(p, rest);
}
/* Writing the last four of four to eight lanes by themselves would take a permutation of four cycles. */
typedef vmask vends;

VFN vends v_ends(int lanes)
{
    return lanes;
}
VFN void v_store_ends(float *p, vf x, vends lanes)
{
    v_store_some(p, x, lanes);
}

#endif
