/* The pairs' kernels: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros. */
#include "families/lone/kernel.h"
#if SHIFTED
#include "device/shifted.h"
#endif
#include "families/pairs/tile.h"

#define BODY "families/pairs/kernel.inc"
#define B_EITHER SHIFTED
#define ODD_FORMS 0
#include "device/forms.inc"
