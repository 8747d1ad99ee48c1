/* Large FP32 products whose A has k innermost: as sm90_tma_f32_128x256x16_s8, but A is read along k as it lies. See
 * families/large/kernel.inc. */
#include "device/args.h"
#include "device/async.h"
#include "device/ptx.h"
#include "families/large/args.h"

#define KERNEL sm90_tmak_f32_128x256x16_s8
#define NAME(x) strict_##x
#define BM 128
#define BN 256
#define BK 16
#define STAGES 8
#define A_K_MAJOR 1
#include "families/large/kernel.inc"
