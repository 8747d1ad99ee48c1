/* The small tiles' kernels: see tile.inc, crowd.inc and batch.inc. Compiled once for each row of tiles.inc, whose
 * numbers are macros, in a form for each way that the operands may lie; those of tile.inc and batch.inc also for
 * operands at odd addresses (_u), which a crowd takes anyway. */
#include "device/shapes.h"
#include "families/small/tile.h"

#define MIN_BLOCKS RESIDENT
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FORM(end) JOIN(TILE, end)

#if CROWD
#include "families/small/crowd_copy.h"

#define KERNEL FORM(_nn)
#define A_KC 1
#define B_KC 0
#include "families/small/crowd.inc"

#define KERNEL FORM(_nt)
#define A_KC 1
#define B_KC 1
#include "families/small/crowd.inc"

#define KERNEL FORM(_tn)
#define A_KC 0
#define B_KC 0
#include "families/small/crowd.inc"

#define KERNEL FORM(_tt)
#define A_KC 0
#define B_KC 1
#include "families/small/crowd.inc"
#elif BATCH
#define EDGE BM
#define PER_BLOCK (SMALL_BATCH_THREADS / (BM / TM * (BN / TN)))

#define KERNEL FORM(_nn)
#define A_KC 1
#define B_KC 0
#define ALIGNED 1
#include "families/small/batch.inc"

#define KERNEL FORM(_nt)
#define A_KC 1
#define B_KC 1
#define ALIGNED 1
#include "families/small/batch.inc"

#define KERNEL FORM(_tn)
#define A_KC 0
#define B_KC 0
#define ALIGNED 1
#include "families/small/batch.inc"

#define KERNEL FORM(_tt)
#define A_KC 0
#define B_KC 1
#define ALIGNED 1
#include "families/small/batch.inc"

#define KERNEL FORM(_nn_u)
#define A_KC 1
#define B_KC 0
#define ALIGNED 0
#include "families/small/batch.inc"

#define KERNEL FORM(_nt_u)
#define A_KC 1
#define B_KC 1
#define ALIGNED 0
#include "families/small/batch.inc"

#define KERNEL FORM(_tn_u)
#define A_KC 0
#define B_KC 0
#define ALIGNED 0
#include "families/small/batch.inc"

#define KERNEL FORM(_tt_u)
#define A_KC 0
#define B_KC 1
#define ALIGNED 0
#include "families/small/batch.inc"
#else
#define KSTEP K_AT_ONCE

#define KERNEL FORM(_nn)
#define A_KC 1
#define B_KC 0
#define ALIGNED 1
#include "families/small/tile.inc"

#define KERNEL FORM(_nt)
#define A_KC 1
#define B_KC 1
#define ALIGNED 1
#include "families/small/tile.inc"

#define KERNEL FORM(_tn)
#define A_KC 0
#define B_KC 0
#define ALIGNED 1
#include "families/small/tile.inc"

#define KERNEL FORM(_tt)
#define A_KC 0
#define B_KC 1
#define ALIGNED 1
#include "families/small/tile.inc"

#define KERNEL FORM(_nn_u)
#define A_KC 1
#define B_KC 0
#define ALIGNED 0
#include "families/small/tile.inc"

#define KERNEL FORM(_nt_u)
#define A_KC 1
#define B_KC 1
#define ALIGNED 0
#include "families/small/tile.inc"

#define KERNEL FORM(_tn_u)
#define A_KC 0
#define B_KC 0
#define ALIGNED 0
#include "families/small/tile.inc"

#define KERNEL FORM(_tt_u)
#define A_KC 0
#define B_KC 1
#define ALIGNED 0
#include "families/small/tile.inc"
#endif
