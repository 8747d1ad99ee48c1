/* A block fences before it writes what it tells of. */
#define KERNEL_NAME early_threadfence
#define FENCE()
#define FENCE_EARLY() __threadfence()
#include "tells.h"
