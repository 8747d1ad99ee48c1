/* B at any address with k outermost: lone warps that copy their operands themselves, each every fourth k. */
#define STEM sm90_lonefour_f32_32x64x16_s3
#define BM 32
#define BN 64
#define TM 8
#define TN 8
#define STAGES 3
#include "families/lone/fourths_forms.inc"
