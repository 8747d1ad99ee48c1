/* AVX2 with FMA: 6 rows of two 8-float vectors, 12 sums of the 16 registers. Per step of k 12 FMAs take 6 cycles on two
 * pipes against 4 for the 8 loads. Fewer rows take more vectors, 4 x 3 and 3 x 4: their 12 sums, what they multiply and
 * one element of A fill all 16 registers. */
#if defined(__x86_64__)
#include "cpu/kernels/simd_avx2.h"

/* kernel_body.inc says what these are. */
#define UNROLL_K 4
#ifndef FAMILY
#define FAMILY avx2_f32_6x16
#define FAMILY_OF_FOUR avx2_f32_6x16_four
#endif
#define FAMILY_MR 6
#define FAMILY_NV 2
#define FAMILY_ROWS 12, 6, 4, 3, 1, 1, 1, 1
#define FAMILY_AHEAD 6
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 3) X(4, 2) X(5, 2) X(6, 2)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(4, 3) X(3, 4) X(2, 5) X(2, 6)

#include "cpu/kernels/kernel_body.inc"

#endif
