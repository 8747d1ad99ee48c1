/* N up to 48: the mirror of 48x64. */
#define STEM sm90_lonewarp_f32_64x48x16_s3
#define BM 64
#define BN 48
#define TM 8
#define TN 12
#define STAGES 3
#include "families/lone/forms.inc"
