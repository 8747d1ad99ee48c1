/* M up to 64: 8x16 results a thread, two slices share k. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_64x128x32_s3
#define BM 64
#define BN 128
#define BK 32
#define TM 8
#define TN 16
#define SLICES 2
#define STAGES 3
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
