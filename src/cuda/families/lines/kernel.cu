/* The lines kernels: see kernel.inc. Compiled once for each row of tiles.inc, whose numbers are macros. Each form takes
 * operands at any address. */
#include "device/ask.h"
#include "device/copies.h"
#include "device/end.h"
#include "families/lines/tile.h"

#define BODY "families/lines/kernel.inc"
#define B_EITHER 1
#define ODD_FORMS 0
#include "device/forms.inc"
