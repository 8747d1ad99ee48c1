/* Leaves the part of the tile that lies outside A unwritten. */
#define KERNEL_NAME uninitialised_tile
#define SKIP_OUTSIDE
#include "tile16.h"
