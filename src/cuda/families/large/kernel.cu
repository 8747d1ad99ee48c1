/* The large tiles' kernel: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros. */
#include "device/args.h"
#include "device/ask.h"
#include "device/async.h"
#include "device/f16x3_guard.h"
#include "device/ptx.h"
#include "families/large/args.h"
#include "families/large/tile.h"

#include "families/large/kernel.inc"
