/* Large FP32 products with few columns whose A has k innermost: as sm90_tmak_f32_128x256x16_s8, in 256 x 128 tiles. See
 * families/large/kernel.inc. */
#include "device/args.h"
#include "device/async.h"
#include "device/ptx.h"
#include "families/large/args.h"

#define KERNEL sm90_tmak_f32_256x128x16_s8
#define NAME(x) strict_##x
#define BM 256
#define BN 128
#define BK 16
#define STAGES 8
#define A_K_MAJOR 1
#include "families/large/kernel.inc"
