/* Operands at any address: tiles of four warps, 8 x 8 results a thread. */
#define NAME sm90_crowd_f32_128x64x8_s4
#define BM 128
#define BN 64
#define TN 8
#define STAGES 4
#define MIN_BLOCKS 3
#include "families/small/crowd_forms.inc"
