/* Each block also writes the first result of the block before it, and the same. */
#include "sum_at.h"
#define KERNEL_NAME two_alike
#define BEFORE_THE_END                                                                                                 \
    if (threadIdx.x == 0 && column >= 16)                                                                              \
    g.c[row * g.ldc + column - 16] = sum_at(&g, row, column - 16)
#include "plain16.h"
