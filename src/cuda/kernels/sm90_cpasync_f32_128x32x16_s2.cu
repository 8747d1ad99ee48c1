/* Panels of 32 columns with short k. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_128x32x16_s2
#define BM 128
#define BN 32
#define BK 16
#define TM 4
#define TN 8
#define SLICES 1
#define STAGES 2
#define KSTEP 2
#define LANES_X 4
#define MIN_BLOCKS 5
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
