/* N up to 32: the mirror of 32x64. */
#define STEM sm90_lonewarp_f32_64x32x16_s3
#define BM 64
#define BN 32
#define TM 16
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
