/* The barrier after filling the tiles is missing. */
#define KERNEL_NAME missing_barrier
#define FIRST_BARRIER
#include "tile16.h"
