/* Matrix times vector, rows contiguous: 32 rows a block, a line of memory wide. See families/vector/ring.inc. */
#define KERNEL sm90_axpy_f32_32x1x256_s3
#define ROWS 32
#define WARPS 8
#define STAGES 3
#define BLOCKS 2
#include "families/vector/ring.inc"
