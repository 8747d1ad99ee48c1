/* 64 columns, two groups of warps share k. See families/medium/kernel.inc. */
#define ROW sm90_tmawarp_f32_128x64x32_s4
#define WM 2
#define WN 1
#define WK 2
#define STAGES 4
#define BLOCKS 2
#include "families/medium/forms.inc"
