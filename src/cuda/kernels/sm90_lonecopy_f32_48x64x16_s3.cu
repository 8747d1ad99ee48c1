/* Operands at any address: lone warps that copy them themselves. */
#define STEM sm90_lonecopy_f32_48x64x16_s3
#define BM 48
#define BN 64
#define TM 12
#define TN 8
#define HALVES 0
#define STAGES 3
#include "families/lone/copied_forms.inc"
