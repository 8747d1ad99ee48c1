/* Operands at any address: lone warps that copy them themselves. */
#define STEM sm90_lonecopy_f32_32x64x16_s3
#define BM 32
#define BN 64
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/copied_forms.inc"
