/* N up to 8: the mirror of 8x128. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_128x8x64_s3
#define BM 128
#define BN 8
#define BK 64
#define TM 4
#define TN 8
#define SLICES 8
#define STAGES 3
#define KSTEP 4
#define LANES_X 1
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
