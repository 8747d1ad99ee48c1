/* N from 33 to 48: less padding than 64. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_128x48x16_s4
#define BM 128
#define BN 48
#define BK 16
#define TM 8
#define TN 8
#define SLICES 1
#define STAGES 4
#define KSTEP 2
#define LANES_X 2
#define MIN_BLOCKS 4
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
