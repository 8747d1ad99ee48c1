/* M and n up to 32, long k: stages of 32 k, rows with k innermost copied 128 bytes at a time. */
#define STEM sm90_lonewarp_f32_32x32x32_s3
#define BM 32
#define BN 32
#define BK 32
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/forms.inc"
