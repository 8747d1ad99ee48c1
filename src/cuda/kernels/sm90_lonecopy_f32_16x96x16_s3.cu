/* Operands at any address: lone warps that copy them themselves. */
#define STEM sm90_lonecopy_f32_16x96x16_s3
#define BM 16
#define BN 96
#define TM 4
#define TN 12
#define STAGES 3
#include "families/lone/copied_forms.inc"
