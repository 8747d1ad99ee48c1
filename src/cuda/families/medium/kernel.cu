/* The medium tiles' kernels: see kernel.inc and slice.inc. Compiled once for each row of tiles.inc, whose numbers are
 * macros, in a form for each way that the operands may lie. */
#include "device/args.h"
#include "device/ptx.h"
#include "families/medium/tile.h"

#define WM (BM / 64)
#define WN (BN / 64)
#define WK GROUPS
#define BLOCKS RESIDENT
#if LARGE_LOOP /* the threads that multiply meet, not those that copy */
#define PARTS_SYNC() ptx_bar_sync(1, 32 * WM * WN * WK)
#endif
#include "families/medium/kernel.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FORM(end) JOIN(TILE, end)

#if LARGE_LOOP
#define KERNEL FORM(_nn)
#define NAME(x) nn_##x
#define A_KC 1
#include "families/medium/slice.inc"

#define KERNEL FORM(_tn)
#define NAME(x) tn_##x
#define A_KC 0
#include "families/medium/slice.inc"

#else
#define KERNEL FORM(_nn)
#define NAME(x) warp_nn_##x
#define A_KC 1
#define B_KC 0
#include "families/medium/kernel.inc"

#define KERNEL FORM(_nt)
#define NAME(x) warp_nt_##x
#define A_KC 1
#define B_KC 1
#include "families/medium/kernel.inc"

#define KERNEL FORM(_tn)
#define NAME(x) warp_tn_##x
#define A_KC 0
#define B_KC 0
#include "families/medium/kernel.inc"

#define KERNEL FORM(_tt)
#define NAME(x) warp_tt_##x
#define A_KC 0
#define B_KC 1
#include "families/medium/kernel.inc"

#endif
