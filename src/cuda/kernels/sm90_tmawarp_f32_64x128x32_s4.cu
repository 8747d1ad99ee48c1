/* 64 rows, two groups of warps share k. See families/medium/kernel.inc. */
#define ROW sm90_tmawarp_f32_64x128x32_s4
#define WM 1
#define WN 2
#define WK 2
#define STAGES 4
#define BLOCKS 2
#include "families/medium/forms.inc"
