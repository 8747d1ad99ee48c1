/* Operands at any address: tiles of four warps. */
#define NAME sm90_crowd_f32_128x32x8_s4
#define BM 128
#define BN 32
#define TN 4
#define STAGES 4
#define MIN_BLOCKS 4
#include "families/small/crowd_forms.inc"
