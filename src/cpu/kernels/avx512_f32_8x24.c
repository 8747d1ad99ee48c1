/* AVX-512 with vectors of 256 bits, for processors whose units are that wide: 8 rows of three 8-float vectors, 24 sums.
 * A vector of 512 bits takes such a processor as long as two of 256, so that shorter ones waste fewer lanes. */
#if defined(__x86_64__)
#include "cpu/kernels/simd_avx512vl.h"

/* kernel_body.inc says what these are. */
#define FAMILY avx512_f32_8x24
#define FAMILY_MR 8
#define FAMILY_NV 3
#define FAMILY_ROWS 16, 12, 8, 6, 1, 1, 1, 1
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 3) X(8, 3)
#define DOT_LIST(X) X(8, 1) X(8, 2) X(8, 3) X(4, 4) X(4, 5) X(4, 6) X(4, 7) X(3, 8)

#include "cpu/kernels/kernel_body.inc"

#endif
