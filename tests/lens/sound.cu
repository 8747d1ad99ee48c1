/* No fault: nothing may be found. */
#define KERNEL_NAME sound

#include "tile16.h"
