/* AVX-512: 8 rows of three 16-float vectors, 24 sums. Per step of k 24 FMAs take 12 cycles on two 512-bit pipes
 * against 6 for the 11 loads, so the FMA pipes set the pace. B passes from L2 at 16 bytes a cycle; the wide tile reads
 * and writes C in runs of three cache lines. Where each FMA takes two passes, as on a Zen 4, sixteen rows of one vector
 * are as fast, and a step of their panel is one line (paths/ahead.c). */
#if defined(__x86_64__)
#include "cpu/kernels/simd_avx512.h"
#include "cpu/kernels/tiles_avx512.h"

/* kernel_body.inc says what these are. */
#define FAMILY avx512_f32_8x48
#define FAMILY_HALF avx512_f32_8x24
#define FAMILY_MR 8
#define FAMILY_NV 3
#define FAMILY_ROWS 16, 12, 8, 6, 1, 1, 1, 1
#define FAMILY_AHEAD 16
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 3) X(8, 3)
#define DOT_LIST(X) X(8, 1) X(6, 2) X(6, 3) X(6, 4) X(4, 5) X(4, 6) X(3, 7) X(3, 8)

#include "cpu/kernels/kernel_body.inc"

#endif
