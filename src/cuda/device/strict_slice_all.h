/* Compiles device/strict_slice.inc for the two ways A may lie: STEM_nn, k innermost, and STEM_tn. All threads that
 * multiply meet where a medium tile's do. */
#include "device/args.h"
#include "device/ptx.h"
#define MEETING_SYNC() ptx_bar_sync(1, 32 * WM * WN * WK)
#include "device/strict_warp.h"

#define SLICE_JOIN_(a, b) a##b
#define SLICE_JOIN(a, b) SLICE_JOIN_(a, b)

#define KERNEL SLICE_JOIN(STEM, _nn)
#define NAME(x) nn_##x
#define A_KC 1
#include "device/strict_slice.inc"

#define KERNEL SLICE_JOIN(STEM, _tn)
#define NAME(x) tn_##x
#define A_KC 0
#include "device/strict_slice.inc"
