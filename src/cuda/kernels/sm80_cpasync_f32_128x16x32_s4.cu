/* N up to 16: the mirror of 16x128. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_128x16x32_s4
#define BM 128
#define BN 16
#define BK 32
#define TM 4
#define TN 8
#define SLICES 4
#define STAGES 4
#define KSTEP 4
#define LANES_X 2
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
