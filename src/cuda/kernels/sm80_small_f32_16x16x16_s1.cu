/* Batches of products up to 16 x 16: 8 matrices a block. */
#include "device/shapes.h"

#define NAME sm80_small_f32_16x16x16_s1
#define EDGE 16
#define TM 4
#define TN 4
#define PER_BLOCK 8
#define MIN_BLOCKS 7
#define BODY "families/small/batch.inc"
#include "families/small/forms.inc"
