/* The barrier before the tiles are filled again is missing. */
#define KERNEL_NAME missing_second_barrier
#define SECOND_BARRIER
#include "tile16.h"
