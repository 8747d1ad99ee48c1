/* Batches of products up to 32 x 32: 4 matrices a block. */
#include "device/shapes.h"

#define NAME sm80_small_f32_32x32x32_s1
#define EDGE 32
#define TM 4
#define TN 8
#define PER_BLOCK 4
#define MIN_BLOCKS 5
#define BODY "families/small/batch.inc"
#include "families/small/forms.inc"
