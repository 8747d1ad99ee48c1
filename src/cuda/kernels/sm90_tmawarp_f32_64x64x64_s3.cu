/* tiles of one warp, four warps share k. See families/medium/kernel.inc. */
#define ROW sm90_tmawarp_f32_64x64x64_s3
#define WM 1
#define WN 1
#define WK 4
#define STAGES 3
#define BLOCKS 2
#include "families/medium/forms.inc"

#include "device/row_copy.h"
