/* B at any address with k outermost: lone warps that copy their operands themselves, each every fourth k. */
#define STEM sm90_lonefour_f32_40x64x16_s3
#define BM 40
#define BN 64
#define TM 20
#define TN 4
#define STAGES 3
#include "families/lone/fourths_forms.inc"
