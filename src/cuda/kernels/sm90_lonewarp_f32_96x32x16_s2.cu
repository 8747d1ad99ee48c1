/* N up to 32, panels of 32 columns, batches of 96: a tile a warp. */
#define STEM sm90_lonewarp_f32_96x32x16_s2
#define BM 96
#define BN 32
#define TM 12
#define TN 8
#define STAGES 2
#include "families/lone/forms.inc"
