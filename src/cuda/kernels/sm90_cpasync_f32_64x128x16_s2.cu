/* Panels of 64 rows with short k: 8x16 results a thread. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_64x128x16_s2
#define BM 64
#define BN 128
#define BK 16
#define TM 8
#define TN 16
#define SLICES 1
#define STAGES 2
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 4
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
