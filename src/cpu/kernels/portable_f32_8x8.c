/* Vector C: 8 rows of two 4-float vectors, for any CPU. 16 accumulators suit the 32 registers of aarch64; on x86 this
 * is the kernel of last resort. */
#include "cpu/kernels/simd_portable.h"

#define TAIL_ALWAYS_MASKED 0
#define FAMILY portable_f32_8x8
#define FAMILY_MR 8
#define FAMILY_NV 2
#define FAMILY_MAX_ROWS                                                                                                \
    {                                                                                                                  \
        8, 8, 6, 4                                                                                                     \
    }
/* clang-format off */
#define TILE_LIST(X)                                                                                                   \
    X(1, 1)                                                                                                            \
    X(2, 1)                                                                                                            \
    X(3, 1)                                                                                                            \
    X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(1, 3)    \
        X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(1, 4) X(2, 4) X(3, 4) X(4, 4)
/* clang-format on */
#define STREAM_LIST(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 3) X(6, 3) X(7, 2) X(8, 2)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(3, 3) X(2, 4) X(2, 5) X(2, 6) X(1, 7) X(1, 8)

#include "cpu/kernels/kernel_body.inc"
