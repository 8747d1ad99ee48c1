/* M up to 48, batches of 48: a tile a warp. */
#define STEM sm90_lonewarp_f32_48x64x16_s3
#define BM 48
#define BN 64
#define TM 12
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
