/* Products on tensor cores: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros.
 * FP32-accurate products from fp16 tensor cores, three products of split operands (accurate mode), or one TF32 pass of
 * operands rounded to 11 significant bits (fast mode); with them the kernels that split, or pack, the operands first.
 * docs/numerics.md says what is promised. Limits: k of 64 and more for three products; of TF32, values below 2^-126
 * lose bits. */
#include "families/accurate/tile.h"

#if TF32
#define TF32_SUMS
#include "families/accurate/kernel.inc"
#include "families/accurate/tf32_pack.h"
#else
#include "families/accurate/kernel.inc"
#include "device/f16x3_split.h"
#include "device/f16x3_look.h"
#endif
