/* Operands at any address: lone warps that copy them themselves. */
#define STEM sm90_lonecopy_f32_32x32x16_s4
#define BM 32
#define BN 32
#define TM 8
#define TN 4
#define STAGES 4
#include "families/lone/copied_forms.inc"
