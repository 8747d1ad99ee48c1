/* Vector operations on eight lanes that AVX2 and AVX-512VL do alike. */
#ifndef RUNG_CPU_SIMD_256_H
#define RUNG_CPU_SIMD_256_H

#include <immintrin.h>
#include <stdint.h>

#define VL 8
typedef __m256 vf;

#define VFN static inline __attribute__((always_inline))

VFN vf v_zero(void)
{
    return _mm256_setzero_ps();
}
VFN vf v_all(float x)
{
    return _mm256_set1_ps(x);
}
VFN vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
VFN void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
VFN void v_store_low(float *p, vf x)
{
    _mm_storeu_ps(p, _mm256_castps256_ps128(x));
}
VFN void v_store_high(float *p, vf x)
{
    _mm_storeu_ps(p, _mm256_extractf128_ps(x, 1));
}
VFN void v_stream(float *p, vf x)
{
    _mm256_stream_ps(p, x);
}
VFN vf v_add(vf x, vf y)
{
    return _mm256_add_ps(x, y);
}
VFN vf v_mul(vf x, vf y)
{
    return _mm256_mul_ps(x, y);
}
/* Writes the sums of the lanes of four vectors. */
VFN void v_sums(float *to, const vf x[4])
{
    vf sums = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}

/* r[i] lane j becomes r[j] lane i. */
VFN void v_transpose(vf r[VL])
{
    vf t[VL], s[VL];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        s[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        s[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        s[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        s[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x31);
    }
}

#endif
