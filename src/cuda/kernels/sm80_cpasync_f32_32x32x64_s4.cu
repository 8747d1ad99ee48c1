/* Small squares and long k: four slices share k. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_32x32x64_s4
#define BM 32
#define BN 32
#define BK 64
#define TM 4
#define TN 4
#define SLICES 4
#define STAGES 4
#define KSTEP 4
#define LANES_X 8
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
