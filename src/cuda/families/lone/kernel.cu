/* The lone warps' kernels: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros. */
#include "families/lone/kernel.h"
#include "families/lone/tile.h"

#define BODY "families/lone/kernel.inc"
#define B_EITHER (!FOURTHS)
#define ODD_FORMS 0
#include "device/forms.inc"
