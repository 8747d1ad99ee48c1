/* NEON: 8 rows of three 4-float vectors, 24 sums of the 32 registers. Per step of k 24 FMAs follow 11 loads: fewer than
 * half as many loads as FMAs, also for cores with four FMA pipes and three loads a cycle. */
#if defined(__aarch64__)
#include "cpu/kernels/simd_neon.h"

#define TAIL_ALWAYS_MASKED 0
#define FAMILY neon_f32_8x12
#define FAMILY_MR 8
#define FAMILY_NV 3
#define FAMILY_MAX_ROWS                                                                                                \
    {                                                                                                                  \
        16, 12, 8, 6                                                                                                   \
    }
/* clang-format off */
#define TILE_LIST(X)                                                                                                   \
    X(1, 1)                                                                                                            \
    X(2, 1)                                                                                                            \
    X(3, 1)                                                                                                            \
    X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1) X(13, 1) X(14, 1) X(15, 1) X(16, 1)     \
        X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(1, 3)     \
            X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
/* clang-format on */
#define STREAM_LIST(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 3) X(8, 3)
#define DOT_LIST(X) X(8, 1) X(6, 2) X(6, 3) X(4, 4) X(4, 5) X(4, 6) X(3, 7) X(3, 8)

#include "cpu/kernels/kernel_body.inc"

#endif
