/* Operands at any address: tiles of two warps. */
#define NAME sm90_crowd_f32_32x64x8_s4
#define BM 32
#define BN 64
#define TN 4
#define STAGES 4
#define MIN_BLOCKS 8
#include "families/small/crowd_forms.inc"
