/* Operands at any address: tiles of four warps. */
#define NAME sm90_crowd_f32_32x128x8_s4
#define BM 32
#define BN 128
#define TN 4
#define STAGES 4
#define MIN_BLOCKS 4
#include "families/small/crowd_forms.inc"
