/* No fault: an atomic finds what another one has left, fenced or not. */
#define KERNEL_NAME atomics_in_turn
#define FENCE()
#define WRITE(at, value) ((void)atomicExch(at, value))
#define READ(at) atomicAdd(at, 0.0f)
#include "tells.h"
