/* M up to 32: narrower than 32x128, so that more multiprocessors have columns of their own. */
#define STEM sm90_lonewarp_f32_32x64x16_s3
#define BM 32
#define BN 64
#define TM 8
#define TN 16
#define STAGES 3
#include "families/lone/forms.inc"
