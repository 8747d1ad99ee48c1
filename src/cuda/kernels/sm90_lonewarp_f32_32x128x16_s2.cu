/* M up to 32 and panels of 32 rows: a tile a warp, k shared or not. */
#define STEM sm90_lonewarp_f32_32x128x16_s2
#define BM 32
#define BN 128
#define TM 8
#define TN 16
#define HALVES 0
#define STAGES 2
#include "families/lone/forms.inc"
