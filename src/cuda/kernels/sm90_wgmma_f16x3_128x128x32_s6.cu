/* sm90_wgmma_f16x3_128x128x32_s6: FP32-accurate products from fp16 tensor cores, three products of split operands.
 * Contract: any product of its launcher ("accurate"); split pass and product are one file, then strict tiles: three or
 * four launches. Clusters of two blocks share the B tile by multicast; a stage is 32 of k, hi and lo together. Limits:
 * k of 64 and more; docs/numerics.md says what is promised. */
#define F16X3_NAME sm90_wgmma_f16x3_128x128x32_s6
#define F16X3_BN 128
#define F16X3_STAGES 6
#define F16X3_CLUSTER 2

#include "families/accurate/kernel.inc"
#include "device/f16x3_split.h"
