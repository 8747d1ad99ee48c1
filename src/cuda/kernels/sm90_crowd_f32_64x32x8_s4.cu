/* Operands at any address: tiles of two warps. */
#define NAME sm90_crowd_f32_64x32x8_s4
#define BM 64
#define BN 32
#define TN 4
#define STAGES 4
#define MIN_BLOCKS 8
#include "families/small/crowd_forms.inc"
