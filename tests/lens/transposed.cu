/* Writes the transpose of the result. */
#define KERNEL_NAME transposed
#define BEFORE_THE_END                                                                                                 \
    g.c[column * g.ldc + row] = acc;                                                                                   \
    return
#include "plain16.h"
