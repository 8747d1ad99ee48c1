/* Panels of 64 rows and batches with m up to 64: two groups a block end their 64 x 256 tiles in turn. See
 * families/pairs/kernel.inc. */
#define STEM sm90_tmapair_f32_64x256x16_s4
#define BM 64
#define BN 256
#define STAGES 4
#include "families/pairs/forms.inc"
