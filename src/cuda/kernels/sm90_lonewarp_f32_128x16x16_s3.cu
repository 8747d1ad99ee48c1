/* N up to 16: the mirror of 16x128. */
#define STEM sm90_lonewarp_f32_128x16x16_s3
#define BM 128
#define BN 16
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
