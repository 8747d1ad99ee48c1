/* Operands at odd addresses, 128x128 tiles: what the copy engine brings is moved to its place by warps of its own. See
 * families/pairs/kernel.inc and device/shifted.h. */
#define STEM sm90_tmashift_f32_128x128x16_s2
#define BM 128
#define BN 128
#define STAGES 2
#include "families/pairs/shifted_forms.inc"
