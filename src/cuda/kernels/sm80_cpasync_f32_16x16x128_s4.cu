/* The smallest products, one block's whole latency shared by sixteen slices. */
#include "device/shapes.h"

#define NAME sm80_cpasync_f32_16x16x128_s4
#define BM 16
#define BN 16
#define BK 128
#define TM 4
#define TN 4
#define SLICES 16
#define STAGES 4
#define KSTEP 4
#define LANES_X 4
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
