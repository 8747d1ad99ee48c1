/* Vector C: 4 rows of two 4-float vectors, for any CPU: on x86 without FMA a product takes a register until it is
 * added, and 8 sums leave enough of the 16. Small products take tiles of more sums, some of which are then kept on the
 * stack. */
#include "cpu/kernels/simd_portable.h"

/* kernel_body.inc says what these are. */
#define FAMILY portable_f32_4x8
#define FAMILY_MR 4
#define FAMILY_NV 2
#define FAMILY_ROWS 8, 6, 4, 4, 1, 1, 1, 1
#define STREAM_LIST(X) X(1, 8) X(2, 4) X(3, 3) X(4, 2) X(5, 2) X(6, 2) X(7, 1) X(8, 1)
#define DOT_LIST(X) X(8, 1) X(4, 2) X(3, 3) X(2, 4) X(2, 5) X(2, 6) X(1, 7) X(1, 8)

#include "cpu/kernels/kernel_body.inc"
