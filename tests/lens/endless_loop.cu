/* One thread never leaves a loop. */
#define KERNEL_NAME endless_loop
#define FOREVER
#include "tile16.h"
