/* The large tiles' kernel: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros. */
#include "device/args.h"
#include "device/async.h"
#include "device/ptx.h"
#include "families/large/args.h"
#include "families/large/tile.h"

#define KERNEL TILE
#define NAME(x) strict_##x
#define A_K_MAJOR A_K_INNERMOST
#include "families/large/kernel.inc"
