/* AVX without FMA, for processors of 2011 to 2013: 5 rows of two 8-float vectors. A product takes a register until it
 * is added; with six rows the compiler keeps one of 12 sums on the stack, and gains nothing. */
#if defined(__x86_64__)
#include "cpu/kernels/simd_avx.h"

/* kernel_body.inc says what these are. */
#define FAMILY avx_f32_5x16
#define FAMILY_MR 5
#define FAMILY_NV 2
#define FAMILY_ROWS 12, 5, 3, 2, 1, 1, 1, 1
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 3) X(4, 2) X(5, 2) X(6, 2)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(4, 3) X(2, 4) X(2, 5) X(2, 6)

#include "cpu/kernels/kernel_body.inc"

#endif
