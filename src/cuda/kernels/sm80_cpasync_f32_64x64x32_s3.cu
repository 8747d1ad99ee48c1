/* Long k, medium squares: two slices of a block share k. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_64x64x32_s3
#define BM 64
#define BN 64
#define BK 32
#define TM 8
#define TN 8
#define SLICES 2
#define STAGES 3
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 3
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
