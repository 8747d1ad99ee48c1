/* M up to 8: a row of B's columns a warp, eight warps share k. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_8x128x64_s3
#define BM 8
#define BN 128
#define BK 64
#define TM 8
#define TN 4
#define SLICES 8
#define STAGES 3
#define KSTEP 4
#define LANES_X 32
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
