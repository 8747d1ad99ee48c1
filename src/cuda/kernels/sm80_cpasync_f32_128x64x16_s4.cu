/* N up to 64: the mirror of 64x128. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_128x64x16_s4
#define BM 128
#define BN 64
#define BK 16
#define TM 8
#define TN 8
#define SLICES 1
#define STAGES 4
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 3
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
