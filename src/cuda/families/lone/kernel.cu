/* The lone warps' kernels: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros, in a form
 * for each way that the operands may lie; with .fourths B has k outermost. */
#include "families/lone/kernel.h"
#include "families/lone/tile.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FORM(end) JOIN(TILE, end)

#define KERNEL FORM(_nn)
#define NAME(x) nn_##x
#define A_K_INNERMOST 1
#define B_K_INNERMOST 0
#include "families/lone/kernel.inc"

#if !FOURTHS
#define KERNEL FORM(_nt)
#define NAME(x) nt_##x
#define A_K_INNERMOST 1
#define B_K_INNERMOST 1
#include "families/lone/kernel.inc"
#endif

#define KERNEL FORM(_tn)
#define NAME(x) tn_##x
#define A_K_INNERMOST 0
#define B_K_INNERMOST 0
#include "families/lone/kernel.inc"

#if !FOURTHS
#define KERNEL FORM(_tt)
#define NAME(x) tt_##x
#define A_K_INNERMOST 0
#define B_K_INNERMOST 1
#include "families/lone/kernel.inc"
#endif
