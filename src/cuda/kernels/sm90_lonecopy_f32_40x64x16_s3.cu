/* Operands at any address: lone warps that copy them themselves. */
#define STEM sm90_lonecopy_f32_40x64x16_s3
#define BM 40
#define BN 64
#define TM 20
#define TN 4
#define HALVES 0
#define STAGES 3
#include "families/lone/copied_forms.inc"
