/* A block stores a result and adds to it, as others do: what they add before it stores is lost. */
#define KERNEL_NAME added_and_cleared
#define FENCE()
#define WRITE(at, value) (*(at) = (value), (void)atomicAdd(at, 0.0f))
#define READ(at) atomicAdd(at, 0.0f)
#include "tells.h"
