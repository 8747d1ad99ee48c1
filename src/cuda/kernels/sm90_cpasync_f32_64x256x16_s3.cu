/* M up to 64, wide n: 8x16 results a thread. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_64x256x16_s3
#define BM 64
#define BN 256
#define BK 16
#define TM 8
#define TN 16
#define SLICES 1
#define STAGES 3
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
