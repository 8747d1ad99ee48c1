/* B at any address with k outermost: lone warps that copy their operands themselves, each every fourth k. */
#define STEM sm90_lonefour_f32_48x64x16_s3
#define BM 48
#define BN 64
#define TM 12
#define TN 8
#define STAGES 3
#include "families/lone/fourths_forms.inc"
