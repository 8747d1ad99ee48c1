/* Outer products and batches of 128 and more: 8x16 results a thread. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_128x128x16_s4
#define BM 128
#define BN 128
#define BK 16
#define TM 8
#define TN 16
#define SLICES 1
#define STAGES 4
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
