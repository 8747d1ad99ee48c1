/* Batches of 64 x 64: one block a matrix, six on a multiprocessor. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_64x64x16_s3
#define BM 64
#define BN 64
#define BK 16
#define TM 8
#define TN 8
#define SLICES 1
#define STAGES 3
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 6
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
