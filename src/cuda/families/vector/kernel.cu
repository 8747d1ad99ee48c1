/* The vector kernels: see dot.inc, axpy.inc and ring.inc. Compiled once for each row of tiles.inc, whose numbers are
 * macros. */
#define ROWS BM
#define STEP BK
#define BLOCKS RESIDENT
#include "families/vector/vector.h"
#include "families/vector/tile.h"

#define KERNEL TILE
#if K_INNERMOST
#include "families/vector/dot.inc"
#elif BULK
#include "families/vector/ring.inc"
#else
#include "families/vector/axpy.inc"
#endif
