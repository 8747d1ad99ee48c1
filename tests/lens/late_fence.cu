/* No fault: who starts the products fences, behind the barrier that says what was stored. */
#define KERNEL_NAME late_fence
#define FENCE()                                                                                                        \
    __syncthreads();                                                                                                   \
    ptx_async_fence()
#include "engines.h"
