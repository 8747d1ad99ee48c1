/* The few vector operations the kernel body needs, in AVX-512F: 16 lanes, 32 registers, masks that
 * suppress faults. Included by kernel files compiled with -mavx512f only. */
#ifndef RUNG_CPU_SIMD_AVX512_H
#define RUNG_CPU_SIMD_AVX512_H

#include <immintrin.h>

#define VL 16
#define V_REGISTER "+v"
typedef __m512 vf;
typedef __mmask16 vmask;

#define VFN static inline __attribute__((always_inline))

VFN vmask v_mask(int lanes)
{
    return (vmask)((1u << lanes) - 1u);
}
VFN vf v_zero(void)
{
    return _mm512_setzero_ps();
}
VFN vf v_all(float x)
{
    return _mm512_set1_ps(x);
}
VFN vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
VFN vf v_load_some(const float *p, vmask mask)
{
    return _mm512_maskz_loadu_ps(mask, p);
}
VFN vf v_load_halves(const float *low, const float *high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1);
}
VFN void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
VFN void v_store_some(float *p, vf x, vmask mask)
{
    _mm512_mask_storeu_ps(p, mask, x);
}
VFN void v_store_low(float *p, vf x)
{
    _mm256_storeu_ps(p, _mm512_castps512_ps256(x));
}
VFN void v_store_high(float *p, vf x)
{
    _mm256_storeu_ps(p, _mm512_extractf32x8_ps(x, 1));
}
VFN void v_store_past(float *p, vf x)
{
    _mm512_stream_ps(p, x);
}
VFN vf v_add(vf x, vf y)
{
    return _mm512_add_ps(x, y);
}
VFN vf v_mul(vf x, vf y)
{
    return _mm512_mul_ps(x, y);
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
    return _mm512_fmadd_ps(x, y, z);
}
/* A step's loads and FMAs that stay in the order they are written in, and z where it is, in tiles of so many vectors
 * and more: left the choice, the compiler moves their sums from register to register. */
#define TILE_VECTORS_KEPT 3
VFN vf v_kept_load(const float *p)
{
    vf x;
    __asm__ volatile("vmovups %1, %0" : "=v"(x) : "m"(*(const __m512_u *)p));
    return x;
}
VFN vf v_kept_all(const float *p)
{
    vf x;
    __asm__ volatile("vbroadcastss %1, %0" : "=v"(x) : "m"(*p));
    return x;
}
VFN vf v_kept_fma(vf x, vf y, vf z)
{
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(z) : "v"(x), "v"(y));
    return z;
}
/* Writes the sums of the lanes of four vectors. */
VFN void v_sums(float *to, const vf x[4])
{
    __m256 half[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        half[i] = _mm256_add_ps(_mm512_castps512_ps256(x[i]), _mm512_extractf32x8_ps(x[i], 1));
    __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}

/* Reads `steps` floats, at most four, of each of `rows` rows that lie ld apart: r[j] lane i becomes float j of row i.
 */
#define TURNS_FEW 4
VFN void v_load_turned(vf r[TURNS_FEW], const float *from, int64_t ld, int rows, int steps)
{
    const __mmask8 mask = (__mmask8)((1u << steps) - 1u);
    vf y[TURNS_FEW];
#pragma GCC unroll 4
    for (int i = 0; i < TURNS_FEW; i++) {
        __m128 x[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const int row = i + TURNS_FEW * j;
            x[j] = row >= rows          ? _mm_setzero_ps()
                   : steps == TURNS_FEW ? _mm_loadu_ps(from + row * ld)
                                        : _mm_maskz_loadu_ps(mask, from + row * ld);
        }
        y[i] = _mm512_insertf32x4(_mm512_castps128_ps512(x[0]), x[1], 1);
        y[i] = _mm512_insertf32x4(_mm512_insertf32x4(y[i], x[2], 2), x[3], 3);
    }
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(y[0], y[1]));
    const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(y[0], y[1]));
    const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(y[2], y[3]));
    const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(y[2], y[3]));
    r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
}

/* r[i] lane j becomes r[j] lane i. */
VFN void v_transpose(vf r[VL])
{
    vf t[VL];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        __m512d t0 = _mm512_castps_pd(t[i]), t1 = _mm512_castps_pd(t[i + 1]);
        __m512d t2 = _mm512_castps_pd(t[i + 2]), t3 = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

#endif
