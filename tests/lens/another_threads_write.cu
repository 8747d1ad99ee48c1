/* A block tells of what one of its threads has written and fenced; another one's write, of which that thread knows
 * nothing, is read as well. */
#define KERNEL_NAME another_threads_write
#define READ(at) ((at)[2])
#include "tells.h"
