/* M up to 16: memory-bound on B, four slices of a block share k. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_16x128x64_s3
#define BM 16
#define BN 128
#define BK 64
#define TM 8
#define TN 4
#define SLICES 4
#define STAGES 3
#define KSTEP 4
#define LANES_X 8
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
