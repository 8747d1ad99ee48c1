/* tiles of one warp, eight warps share k. See families/medium/kernel.inc. */
#define ROW sm90_tmawarp_f32_64x64x128_s3
#define WM 1
#define WN 1
#define WK 8
#define STAGES 3
#define BLOCKS 1
#include "families/medium/forms.inc"
