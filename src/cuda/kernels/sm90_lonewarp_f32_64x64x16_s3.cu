/* Batches, panels and outer products: a tile a warp, the next one's operands copied while it stores. */
#define STEM sm90_lonewarp_f32_64x64x16_s3
#define BM 64
#define BN 64
#define TM 8
#define TN 16
#define HALVES 0
#define STAGES 3
#include "families/lone/forms.inc"
