/* No fault: what a block tells of is there. */
#define KERNEL_NAME tells
#include "tells.h"
