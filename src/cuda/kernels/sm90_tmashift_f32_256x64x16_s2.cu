/* Operands at odd addresses, 256x64 tiles: what the copy engine brings is moved to its place by warps of its own. See
 * families/pairs/kernel.inc and device/shifted.h. */
#define STEM sm90_tmashift_f32_256x64x16_s2
#define BM 256
#define BN 64
#define STAGES 2
#include "families/pairs/shifted_forms.inc"
