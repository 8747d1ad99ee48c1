/* No fault: a count is cleared, added to and read with a barrier between each. */
#define KERNEL_NAME counts
#include "count16.h"
