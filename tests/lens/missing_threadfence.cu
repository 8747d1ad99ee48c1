/* A block tells of what it has written, and no fence stands in between. */
#define KERNEL_NAME missing_threadfence
#define FENCE()
#include "tells.h"
