/* The medium tiles' kernels: see kernel.inc and slice.inc. Compiled once for each row of tiles.inc, whose numbers are
 * macros. */
#include "device/args.h"
#include "device/ptx.h"
#include "families/medium/tile.h"

#define WM (BM / 64) /* warps of a group down and across */
#define WN (BN / 64)
#if LARGE_LOOP
/* Only the threads that multiply add parts, not those that copy. */
#define PARTS_SYNC() ptx_bar_sync(1, 32 * WM * WN * GROUPS)
#define BODY "families/medium/slice.inc"
#else
#define BODY "families/medium/kernel.inc"
#endif
#include "families/medium/kernel.h"

#define B_EITHER (!LARGE_LOOP)
#define ODD_FORMS 0
#include "device/forms.inc"
