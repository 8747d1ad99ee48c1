/* tiles of one warp, four warps share k, FFMA-only inner loop. See families/medium/slice.inc. */
#define STEM sm90_tmaslice_f32_64x64x16_s2
#define WM 1
#define WN 1
#define WK 4
#define STAGES 2
#define BLOCKS 2
#include "families/medium/slice_forms.inc"
