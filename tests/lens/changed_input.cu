/* Writes to A where A has an element. */
#define KERNEL_NAME changed_input
#define BEFORE_THE_END                                                                                                 \
    if (row == 3 && column == 5)                                                                                       \
    ((float *)g.a)[row * g.lda + column] += 1.0f
#include "plain16.h"
