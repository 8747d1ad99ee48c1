/* Batches of 48 x 48 without padding. */
#include "device/shapes.h"

#define NAME sm90_cpasync_f32_48x48x16_s3
#define BM 48
#define BN 48
#define BK 16
#define TM 4
#define TN 4
#define SLICES 2
#define STAGES 3
#define KSTEP 4
#define LANES_X 4
#define MIN_BLOCKS 2
#define BODY "families/small/tile.inc"
#include "families/small/forms.inc"
