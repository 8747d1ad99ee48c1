/* Panels of 32 rows with short k: many blocks, each soon done. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_32x128x16_s2
#define BM 32
#define BN 128
#define BK 16
#define TM 8
#define TN 4
#define SLICES 1
#define STAGES 2
#define KSTEP 2
#define LANES_X 8
#define MIN_BLOCKS 5
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
