/* A block fences what it has written when it has told of it. */
#define KERNEL_NAME late_threadfence
#define FENCE()
#define FENCE_LATE() __threadfence()
#include "tells.h"
