/* The vector kernels: see dot.inc and axpy.inc. Compiled once for each row of tiles.inc, whose numbers are
 * macros. */
#include "families/vector/vector.h"
#include "families/vector/tile.h"

#if K_INNERMOST
#include "families/vector/dot.inc"
#include "families/vector/gather.h"
#else
#include "families/vector/axpy.inc"
#endif
