/* NEON: 8 rows of three 4-float vectors, 24 sums of the 32 registers. Per step of k 24 FMAs follow 11 loads: fewer than
 * half as many loads as FMAs, also for cores with four FMA pipes and three loads a cycle. */
#if defined(__aarch64__)
#include "cpu/kernels/simd_neon.h"

/* kernel_body.inc says what these are. */
#define FAMILY neon_f32_8x12
#define FAMILY_MR 8
#define FAMILY_NV 3
#define FAMILY_ROWS 16, 12, 8, 6, 1, 1, 1, 1
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 3) X(8, 3)
#define DOT_LIST(X) X(8, 1) X(6, 2) X(6, 3) X(4, 4) X(4, 5) X(4, 6) X(3, 7) X(3, 8)

#include "cpu/kernels/kernel_body.inc"

#endif
