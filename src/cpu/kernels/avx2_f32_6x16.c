/* AVX2 with FMA: 6 rows of two 8-float vectors, 12 accumulators of the 16 registers. */
#if defined(__x86_64__)
#include "cpu/kernels/simd_avx2.h"

#define TAIL_ALWAYS_MASKED 0
#define FAMILY avx2_f32_6x16
#define FAMILY_NEEDS RUNG_CPU_AVX2
#define FAMILY_MR 6
#define FAMILY_NV 2
#define FAMILY_MAX_ROWS                                                                                                \
    {                                                                                                                  \
        8, 6, 4, 3                                                                                                     \
    }
/* clang-format off */
#define TILE_LIST(X)                                                                                                   \
    X(1, 1)                                                                                                            \
    X(2, 1)                                                                                                            \
    X(3, 1)                                                                                                            \
    X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(1, 3) X(2, 3) X(3, 3)    \
        X(4, 3) X(1, 4) X(2, 4) X(3, 4)
/* clang-format on */
#define STREAM_LIST(X) X(1, 4) X(2, 4) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 1) X(8, 1)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(3, 3) X(2, 4) X(2, 5) X(2, 6) X(1, 7) X(1, 8)

#include "cpu/kernels/kernel_body.h"

#endif
