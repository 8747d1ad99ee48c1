/* The few vector operations the kernel body needs, in AVX2 with FMA: 8 lanes, 16 registers.
 * Partial stores take up to three steps: AMD's masked stores are microcoded. */
#ifndef RUNG_CPU_SIMD_AVX2_H
#define RUNG_CPU_SIMD_AVX2_H

#include "cpu/kernels/simd_256.h"

typedef __m256i vmask;

VFN vmask v_mask(int lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VFN vf v_load_some(const float *p, vmask mask)
{
    return _mm256_maskload_ps(p, mask);
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
/* Where the last four of four to eight lanes lie: two stores of four lanes each, which may overlap, write them all. */
typedef struct vends {
    __m256i from;
    int64_t at;
} vends;
VFN vends v_ends(int lanes)
{
    return (vends){_mm256_add_epi32(_mm256_set1_epi32(lanes - VL / 2), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                   lanes - VL / 2};
}
VFN void v_store_ends(float *p, vf x, vends ends)
{
    _mm_storeu_ps(p, _mm256_castps256_ps128(x));
    _mm_storeu_ps(p + ends.at, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(x, ends.from)));
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
/* The element `step` of row 0, 1 or 2 from p on, rows ld_bytes apart, in one instruction: left the choice, the compiler
 * makes some addresses apart, and keeps others in memory. */
VFN vf v_tile_row(const float *p, int64_t ld_bytes, const int row, const int step)
{
#if defined __OPTIMIZE__ && !defined __clang__
    vf x;
    if (!__builtin_constant_p(step)) /* loops are not unrolled: under sanitizers, say */
        return v_tile_all(p + row * (ld_bytes / 4) + step);
    if (row == 0)
        __asm__ volatile("vbroadcastss %c2(%1), %0" : "=x"(x) : "r"(p), "i"(step * 4));
    else if (row == 1)
        __asm__ volatile("vbroadcastss %c3(%1,%2), %0" : "=x"(x) : "r"(p), "r"(ld_bytes), "i"(step * 4));
    else
        __asm__ volatile("vbroadcastss %c3(%1,%2,2), %0" : "=x"(x) : "r"(p), "r"(ld_bytes), "i"(step * 4));
    return x;
#else
    return v_tile_all(p + row * (ld_bytes / 4) + step);
#endif
}
VFN vf v_fma(vf x, vf y, vf z)
{
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(z) : "x"(x), "x"(y));
    return z;
}
/* The same with y in memory, where it is used once: one instruction instead of two. */
VFN vf v_fma_from(vf x, const float *y, vf z)
{
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(z) : "x"(x), "m"(*(const __m256_u *)y));
    return z;
}
/* Adds to two sums at once, so that the compiler moves neither between them. */
VFN void v_fma_pair(vf x, const vf y[2], vf z[2])
{
    __asm__ volatile("vfmadd231ps %3, %2, %0\n\tvfmadd231ps %4, %2, %1"
                     : "+&x"(z[0]), "+x"(z[1])
                     : "x"(x), "x"(y[0]), "x"(y[1]));
}
/* The same with three sums. */
VFN void v_fma_three(vf x, const vf y[3], vf z[3])
{
    __asm__ volatile("vfmadd231ps %4, %3, %0\n\tvfmadd231ps %5, %3, %1\n\tvfmadd231ps %6, %3, %2"
                     : "+&x"(z[0]), "+&x"(z[1]), "+x"(z[2])
                     : "x"(x), "x"(y[0]), "x"(y[1]), "x"(y[2]));
}
#define TILE_IN_ASSEMBLY

#endif
