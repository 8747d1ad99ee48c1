/* l34_f16x3_chain: two fp16 halves after scaling each line, three products at the full fp16 rate, split beforehand.
 * Contract: any product of launcher "accurate". Changed: a split pass, so the product only copies and multiplies.
 * Limits: one wgmma chain over all of k: its truncated sums drift, some k/16 u on positive data. */
#define TILE l34_f16x3_chain
#define BM 128
#define BN 128
#define STAGES 6
#define CLUSTER 2
#define F16X3_SUMS 1

#include "families/accurate/kernel.inc"
#include "device/f16x3_split.h"
