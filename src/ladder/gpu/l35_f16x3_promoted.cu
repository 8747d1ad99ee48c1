/* l35_f16x3_promoted: every 64 along k the chain ends and is added into FP32 registers: no drift.
 * Contract: any product of launcher "accurate". Changed: promotion; all products of the 64 are waited for first.
 * Limits: the matrix unit idles while both warpgroups add. */
#define TILE l35_f16x3_promoted
#define BM 128
#define BN 128
#define STAGES 6
#define CLUSTER 2
#define F16X3_SUMS 3

#include "families/accurate/kernel.inc"
#include "device/f16x3_split.h"
