/* M up to 16: narrower than 16x128, so that more multiprocessors have columns of their own. */
#define STEM sm90_lonewarp_f32_16x64x16_s3
#define BM 16
#define BN 64
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
