/* Vector operations on eight lanes that AVX, AVX2 and AVX-512VL do alike. */
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
#ifdef TILE_IN_ORDER
/* The operations of a tile's loop stay in the order they are written in. Left the choice, the compiler loads ahead,
 * needs more than 16 registers and spills sums; or it takes B from memory, once a row. */
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
#endif
VFN vf v_load_halves(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
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
VFN void v_store_past(float *p, vf x)
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

/* Writes the lanes of a mask, which are the low ones, in up to three steps: AMD's masked stores are microcoded. */
VFN void v_store_in_steps(float *p, vf x, __m256i mask)
{
    unsigned lanes = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
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

/* Two halves, the low ones or the high ones. Where units are four floats wide a permutation takes three cycles. */
VFN vf v_both_low(vf x, vf y)
{
#ifdef UNITS_OF_FOUR
    return _mm256_insertf128_ps(x, _mm256_castps256_ps128(y), 1);
#else
    return _mm256_permute2f128_ps(x, y, 0x20);
#endif
}
VFN vf v_both_high(vf x, vf y)
{
#ifdef UNITS_OF_FOUR
    return _mm256_blend_ps(_mm256_castps128_ps256(_mm256_extractf128_ps(x, 1)), y, 0xf0);
#else
    return _mm256_permute2f128_ps(x, y, 0x31);
#endif
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
        r[i] = v_both_low(s[i], s[i + 4]);
        r[i + 4] = v_both_high(s[i], s[i + 4]);
    }
}

/* Loads the first one to three floats; the other lanes are 0. */
VFN __m128 v_load_few(const float *p, int lanes)
{
#ifdef UNITS_OF_FOUR
    if (!(lanes & 2))
        return lanes & 1 ? _mm_load_ss(p) : _mm_setzero_ps();
    __m128 two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p));
    return lanes & 1 ? _mm_insert_ps(two, _mm_load_ss(p + 2), 0x20) : two;
#else
    return _mm_maskload_ps(p, _mm_cmpgt_epi32(_mm_set1_epi32(lanes), _mm_setr_epi32(0, 1, 2, 3)));
#endif
}

/* Reads `steps` floats, at most four, of each of `rows` rows that lie ld apart: r[j] lane i becomes float j of row i.
 */
#define TURNS_FEW 4
VFN void v_load_turned(vf r[TURNS_FEW], const float *from, int64_t ld, int rows, int steps)
{
    __m128 x[VL];
    vf y[TURNS_FEW];
#pragma GCC unroll 8
    for (int i = 0; i < VL; i++)
        x[i] = i >= rows            ? _mm_setzero_ps()
               : steps == TURNS_FEW ? _mm_loadu_ps(from + i * ld)
                                    : v_load_few(from + i * ld, steps);
#pragma GCC unroll 4
    for (int i = 0; i < TURNS_FEW; i++)
        y[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(x[i]), x[i + TURNS_FEW], 1);
    const vf low01 = _mm256_unpacklo_ps(y[0], y[1]), high01 = _mm256_unpackhi_ps(y[0], y[1]);
    const vf low23 = _mm256_unpacklo_ps(y[2], y[3]), high23 = _mm256_unpackhi_ps(y[2], y[3]);
    r[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    r[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    r[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    r[3] = _mm256_shuffle_ps(high01, high23, 0xee);
}

#define STORES_TURNED 1
/* The other way: writes two to four floats to each of eight rows that lie ld apart; float j of row i is r[j] lane i. */
VFN void v_store_turned(float *to, int64_t ld, const vf r[TURNS_FEW], int columns)
{
    const vf low01 = _mm256_unpacklo_ps(r[0], r[1]), high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const vf low23 = _mm256_unpacklo_ps(r[2], r[3]), high23 = _mm256_unpackhi_ps(r[2], r[3]);
    const vf rows[TURNS_FEW] = {_mm256_shuffle_ps(low01, low23, 0x44), _mm256_shuffle_ps(low01, low23, 0xee),
                                _mm256_shuffle_ps(high01, high23, 0x44), _mm256_shuffle_ps(high01, high23, 0xee)};
#pragma GCC unroll 8
    for (int i = 0; i < VL; i++, to += ld) {
        const vf pair = rows[i % TURNS_FEW];
        const __m128 row = i < TURNS_FEW ? _mm256_castps256_ps128(pair) : _mm256_extractf128_ps(pair, 1);
        if (columns == TURNS_FEW) {
            _mm_storeu_ps(to, row);
            continue;
        }
        _mm_storel_pi((__m64 *)to, row);
        if (columns > 2)
            _mm_store_ss(to + 2, _mm_movehl_ps(row, row));
    }
}

#endif
