/* A block tells of what it has left by an atomic, and no fence stands in between: atomics alone keep no order. */
#define KERNEL_NAME missing_atomics_fence
#define FENCE()
#define WRITE(at, value) ((void)atomicExch(at, value))
#include "tells.h"
