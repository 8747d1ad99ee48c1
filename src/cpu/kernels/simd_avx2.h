/* The few vector operations the kernel body needs, in AVX2 with FMA: 8 lanes, 16 registers.
 * Partial stores take up to three steps: AMD's masked stores are microcoded. */
#ifndef RUNG_CPU_SIMD_AVX2_H
#define RUNG_CPU_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define VL 8
typedef __m256 vf;
typedef __m256i vmask;

#define VFN static inline __attribute__((always_inline))

VFN vmask v_mask(int lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
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
VFN vf v_load_some(const float *p, vmask mask)
{
    return _mm256_maskload_ps(p, mask);
}
VFN void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
VFN void v_store_some(float *p, vf x, vmask mask)
{
    unsigned lanes = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask)); /* the low ones */
    if (lanes == 0xff) {
        _mm256_storeu_ps(p, x);
        return;
    }
    __m128 rest = _mm256_castps256_ps128(x);
    if (lanes & 0x8) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps(x, 1);
        p += 4;
        lanes >>= 4;
    }
    if (lanes & 0x2) {
        _mm_storel_pi((__m64 *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
        lanes >>= 2;
    }
    if (lanes & 0x1)
        _mm_store_ss(p, rest);
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
/* The three operations of a tile's loop stay in the order they are written in, and z where it is. Left the choice, the
 * compiler loads ahead, needs more than 16 registers and spills sums; or it takes y from memory, once a row. */
VFN vf v_tile_load(const float *p)
{
    vf x;
    __asm__ volatile("vmovups %1, %0" : "=x"(x) : "m"(*(const __m256_u *)p));
    return x;
}
VFN vf v_tile_all(const float *p)
{
    vf x;
    __asm__ volatile("vbroadcastss %1, %0" : "=x"(x) : "m"(*p));
    return x;
}
VFN vf v_fma(vf x, vf y, vf z)
{
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(z) : "x"(x), "x"(y));
    return z;
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
