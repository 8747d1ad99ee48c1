/* N up to 16: the mirror of 16x64. */
#define STEM sm90_lonewarp_f32_64x16x16_s3
#define BM 64
#define BN 16
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
