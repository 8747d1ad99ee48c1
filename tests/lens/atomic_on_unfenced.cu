/* A block adds to what another one wrote, told of with no fence in between: what it finds may be older. */
#define KERNEL_NAME atomic_on_unfenced
#define FENCE()
#define READ(at) atomicAdd(at, 0.0f)
#include "tells.h"
