/* The few vector operations the kernel body needs, in AVX2 with FMA: 8 lanes, 16 registers.
 * UNITS_OF_FOUR: simd_four.h. */
#ifndef RUNG_CPU_SIMD_AVX2_H
#define RUNG_CPU_SIMD_AVX2_H

#include "cpu/kernels/kernels.h"
#define TILE_IN_ORDER
#include "cpu/kernels/simd_256.h"

#ifdef UNITS_OF_FOUR
#include "cpu/kernels/simd_four.h"
#else
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
    v_store_in_steps(p, x, mask);
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
#endif
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
/* In that order too, and z stays where it is. */
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
#define FMA_PAIRS
VFN void v_fma_pair(vf x, const vf y[2], vf z[2])
{
    __asm__ volatile("vfmadd231ps %3, %2, %0\n\tvfmadd231ps %4, %2, %1"
                     : "+&x"(z[0]), "+x"(z[1])
                     : "x"(x), "x"(y[0]), "x"(y[1]));
}
/* A step of k of a tile whose twelve sums leave four registers for what they multiply: three vectors of B and one
 * element of A, or the other way round. It is one piece of assembly, for the compiler would move sums to the stack.
 * Rows of A lie ld_bytes apart, the fourth at `fourth`. mask: of the last vector of B; NULL: it is whole. */
/* clang-format off */
#define ELEMENT(at, to)       "vbroadcastss " at ", %%" to "\n\t"
#define VECTOR(at, to)        "vmovups " at "(%[b]), %%" to "\n\t"
#ifdef UNITS_OF_FOUR
#define SOME_OF_IT(at, to)    "vmovups %[some], %%" to "\n\t"
#define SOME(p)               const vf some = mask ? v_load_some(p, *mask) : v_zero()
#define IN_SOME               [some] "m"(some)
#else
#define SOME_OF_IT(at, to)    "vmovdqa (%[mask]), %%ymm15\n\t" "vmaskmovps " at "(%[b]), %%ymm15, %%" to "\n\t"
#define SOME(p)
#define IN_SOME               [mask] "r"(mask)
#endif
#define ADD(b, a, sum)        "vfmadd231ps %%" b ", %%" a ", %[" sum "]\n\t"
#define ROW(at, i)            ELEMENT(at, "ymm15") \
                              ADD("ymm12", "ymm15", i "0") ADD("ymm13", "ymm15", i "1") ADD("ymm14", "ymm15", i "2")
#define COLUMN(load, j)       load ADD("ymm15", "ymm12", "s0" j) ADD("ymm15", "ymm13", "s1" j) ADD("ymm15", "ymm14", "s2" j)
#define SUM(i, j)             [s##i##j] "+x"(s[i][j])
#define STEP_4X3(load_last, ...)                                                                                       \
    __asm__ volatile(VECTOR("", "ymm12") VECTOR("32", "ymm13") load_last("64", "ymm14")                                \
                     ROW("(%[a])", "s0") ROW("(%[a],%[ld])", "s1") ROW("(%[a],%[ld],2)", "s2") ROW("(%[r])", "s3")     \
                     : SUM(0, 0), SUM(0, 1), SUM(0, 2), SUM(1, 0), SUM(1, 1), SUM(1, 2),                               \
                       SUM(2, 0), SUM(2, 1), SUM(2, 2), SUM(3, 0), SUM(3, 1), SUM(3, 2)                                \
                     : [a] "r"(a), [r] "r"(fourth), [ld] "r"(ld_bytes), [b] "r"(b)__VA_ARGS__                          \
                     : "ymm12", "ymm13", "ymm14", "ymm15", "memory")
#define STEP_3X4(load_last, ...)                                                                                       \
    __asm__ volatile(ELEMENT("(%[a])", "ymm12") ELEMENT("(%[a],%[ld])", "ymm13") ELEMENT("(%[a],%[ld],2)", "ymm14")    \
                     COLUMN(VECTOR("", "ymm15"), "0") COLUMN(VECTOR("32", "ymm15"), "1")                               \
                     COLUMN(VECTOR("64", "ymm15"), "2") COLUMN(load_last("96", "ymm15"), "3")                          \
                     : SUM(0, 0), SUM(0, 1), SUM(0, 2), SUM(0, 3), SUM(1, 0), SUM(1, 1), SUM(1, 2), SUM(1, 3),         \
                       SUM(2, 0), SUM(2, 1), SUM(2, 2), SUM(2, 3)                                                      \
                     : [a] "r"(a), [ld] "r"(ld_bytes), [b] "r"(b)__VA_ARGS__                                           \
                     : "ymm12", "ymm13", "ymm14", "ymm15", "memory")
/* clang-format on */
VFN void v_step_4x3(const float *a, const float *fourth, int64_t ld_bytes, const float *b, const vmask *mask,
                    vf s[][RUNG_TILE_MAX_VECTORS])
{
    SOME(b + 2 * VL);
    if (mask)
        STEP_4X3(SOME_OF_IT, , IN_SOME);
    else
        STEP_4X3(VECTOR);
}
VFN void v_step_3x4(const float *a, int64_t ld_bytes, const float *b, const vmask *mask, vf s[][RUNG_TILE_MAX_VECTORS])
{
    SOME(b + 3 * VL);
    if (mask)
        STEP_3X4(SOME_OF_IT, , IN_SOME);
    else
        STEP_3X4(VECTOR);
}
#undef STEP_3X4
#undef STEP_4X3
#undef SUM
#undef COLUMN
#undef ROW
#undef ADD
#undef IN_SOME
#undef SOME
#undef SOME_OF_IT
#undef VECTOR
#undef ELEMENT
#define TILE_IN_ASSEMBLY

#endif
