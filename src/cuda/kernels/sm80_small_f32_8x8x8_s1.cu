/* Batches of products up to 8 x 8: 32 matrices a block. */
#include "device/shapes.h"

#define NAME sm80_small_f32_8x8x8_s1
#define EDGE 8
#define TM 4
#define TN 4
#define PER_BLOCK 32
#define MIN_BLOCKS 7
#define BODY "families/small/batch.inc"
#include "families/small/forms.inc"
