/* FP32 products of short k, batches of 128 and more: two groups a block end their 128 x 128 tiles in turn. See
 * families/pairs/kernel.inc. */
#define STEM sm90_tmapair_f32_128x128x16_s4
#define BM 128
#define BN 128
#define STAGES 4
#include "families/pairs/forms.inc"
