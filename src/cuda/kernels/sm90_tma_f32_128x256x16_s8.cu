/* Large FP32 products: 128 x 256 tiles filled by the bulk copy engine, an FFMA-only inner loop, k streamed over blocks.
 * Operands the copy engine cannot read as they lie are packed first by the second kernel. See
 * families/large/kernel.inc. */
#include "device/args.h"
#include "device/async.h"
#include "device/ptx.h"
#include "families/large/args.h"
#include "families/large/pack.h"

#define KERNEL sm90_tma_f32_128x256x16_s8
#define NAME(x) strict_##x
#define BM 128
#define BN 256
#define BK 16
#define STAGES 8
#define A_K_MAJOR 0
#include "families/large/kernel.inc"

RUNG_KERNEL(RUNG_PACK_THREADS) strict_pack_operand(const __grid_constant__ rung_pack_args p)
{
    rung_after_earlier_kernels();
    strict_pack(&p, 0);
}

RUNG_KERNEL(RUNG_PACK_THREADS) strict_pack_classes(const __grid_constant__ rung_pack_args p)
{
    rung_after_earlier_kernels();
    rung_next_kernel_may_start();
    strict_pack(&p, 1);
}
