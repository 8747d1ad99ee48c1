/* No fault: all blocks store the same at one place, and say so by a volatile store. */
#include "sum_at.h"
#define KERNEL_NAME all_alike
#define BEFORE_THE_END                                                                                                 \
    if (threadIdx.x == 0)                                                                                              \
    *(volatile float *)g.c = sum_at(&g, 0, 0)
#include "plain16.h"
