/* A block reads a result that another one writes: which of them comes first nothing says. */
#define KERNEL_NAME read_ahead
#define BEFORE_THE_END                                                                                                 \
    if (row == 0 && column == 16)                                                                                      \
    acc += g.c[32] == 0.5f ? 1.0f : 0.0f
#include "plain16.h"
