/* Matrix times vector, rows contiguous: 128 rows a block, for many rows. See families/vector/ring.inc. */
#define KERNEL sm90_axpy_f32_128x1x64_s3
#define ROWS 128
#define WARPS 8
#define STAGES 3
#define BLOCKS 2
#include "families/vector/ring.inc"
