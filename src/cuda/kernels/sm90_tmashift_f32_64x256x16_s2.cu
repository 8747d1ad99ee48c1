/* Operands at odd addresses, 64x256 tiles: what the copy engine brings is moved to its place by warps of its own. See
 * families/pairs/kernel.inc and device/shifted.h. */
#define STEM sm90_tmashift_f32_64x256x16_s2
#define BM 64
#define BN 256
#define STAGES 2
#include "families/pairs/shifted_forms.inc"
