/* Small squares and narrow m: 4x8 results a thread. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_32x64x32_s4
#define BM 32
#define BN 64
#define BK 32
#define TM 4
#define TN 8
#define SLICES 2
#define STAGES 4
#define KSTEP 4
#define LANES_X 8
#define MIN_BLOCKS 3
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
