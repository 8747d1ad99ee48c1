/* No fault: what a block leaves by an atomic is there where it fenced before it told of that. */
#define KERNEL_NAME tells_by_atomics
#define WRITE(at, value) ((void)atomicExch(at, value))
#include "tells.h"
