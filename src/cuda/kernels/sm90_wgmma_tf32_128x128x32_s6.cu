/* sm90_wgmma_tf32_128x128x32_s6: one TF32 pass, the fast mode: operands rounded to 11 significant bits.
 * Contract: any product of its launcher ("accurate"); a packing and a product launch.
 * Sums are promoted to FP32 registers every 64 along k, so that the operands' rounding is all the error there is.
 * Limits: docs/numerics.md has the error; values below 2^-126 lose bits, in the end all of them. */
#define F16X3_NAME sm90_wgmma_tf32_128x128x32_s6
#define F16X3_BN 128
#define F16X3_STAGES 6
#define F16X3_CLUSTER 2
#define F16X3_SUMS 2

#include "families/accurate/kernel.inc"
#include "families/accurate/tf32_pack.h"
