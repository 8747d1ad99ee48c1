/* M up to 8: a tile a warp, filled by tensor copies; eight warps share k. */
#define STEM sm90_lonewarp_f32_8x128x16_s3
#define BM 8
#define BN 128
#define TM 8
#define TN 4
#define STAGES 3
#include "families/lone/forms.inc"
