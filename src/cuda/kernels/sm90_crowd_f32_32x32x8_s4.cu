/* Operands at any address: tiles of a warp. */
#define NAME sm90_crowd_f32_32x32x8_s4
#define BM 32
#define BN 32
#define TN 4
#define STAGES 4
#define MIN_BLOCKS 16
#include "families/small/crowd_forms.inc"
