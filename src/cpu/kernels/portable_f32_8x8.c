/* Vector C: 8 rows of two 4-float vectors, for any CPU. 16 accumulators suit the 32 registers of aarch64; on x86 this
 * is the kernel of last resort. */
#include "cpu/kernels/simd_portable.h"

/* kernel_body.inc says what these are. */
#define FAMILY portable_f32_8x8
#define FAMILY_MR 8
#define FAMILY_NV 2
#define FAMILY_ROWS 8, 8, 6, 4, 1, 1, 1, 1
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 4) X(4, 4) X(5, 3) X(6, 3) X(7, 2) X(8, 2)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(3, 3) X(2, 4) X(2, 5) X(2, 6) X(1, 7) X(1, 8)

#include "cpu/kernels/kernel_body.inc"
