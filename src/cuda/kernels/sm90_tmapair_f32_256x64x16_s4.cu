/* Panels of 64 columns and batches with n up to 64: two groups a block end their 256 x 64 tiles in turn. See
 * families/pairs/kernel.inc. */
#define STEM sm90_tmapair_f32_256x64x16_s4
#define BM 256
#define BN 64
#define STAGES 4
#include "families/pairs/forms.inc"
