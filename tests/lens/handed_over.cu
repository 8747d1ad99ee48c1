/* No fault: nothing may be found. */
#define KERNEL_NAME handed_over

#include "hand_over.h"
