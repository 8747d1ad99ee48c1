/* Small squares in more blocks: two slices share k. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_32x32x32_s4
#define BM 32
#define BN 32
#define BK 32
#define TM 4
#define TN 4
#define SLICES 2
#define STAGES 4
#define KSTEP 4
#define LANES_X 8
#define MIN_BLOCKS 5
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
