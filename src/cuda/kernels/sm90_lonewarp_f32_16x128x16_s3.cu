/* M up to 16: a tile a warp, filled by tensor copies; eight warps share k. */
#define STEM sm90_lonewarp_f32_16x128x16_s3
#define BM 16
#define BN 128
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
