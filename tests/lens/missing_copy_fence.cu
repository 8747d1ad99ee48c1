/* The copy engine writes where a thread has written, and no fence stands in between. */
#define KERNEL_NAME missing_copy_fence
#define FENCE_BEFORE_COPY()
#include "engines.h"
