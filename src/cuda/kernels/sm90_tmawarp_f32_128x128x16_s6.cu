/* medium tiles, four warps of 64x64 fed by bulk copies, any transpose as it lies, k streamed over blocks. See
 * families/medium/kernel.inc. */
#define ROW sm90_tmawarp_f32_128x128x16_s6
#define WM 2
#define WN 2
#define WK 1
#define STAGES 6
#define BLOCKS 2
#include "families/medium/forms.inc"
