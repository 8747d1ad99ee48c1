/* Batches of 32 x 32: a tile a warp. */
#define STEM sm90_lonewarp_f32_32x32x16_s6
#define BM 32
#define BN 32
#define TM 8
#define TN 4
#define STAGES 6
#include "families/lone/forms.inc"
