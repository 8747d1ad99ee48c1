/* No fault: one lane of a block, neither its first nor its last, reads more than a log holds, and the others wait for
 * no one. */
#define KERNEL_NAME busy_lane
#define BEFORE_THE_END                                                                                                 \
    if (row == 0 && column == 5)                                                                                       \
        for (int i = 0; i < 1 << 24; i++)                                                                              \
    acc += 0.0f * *(volatile const float *)&g.a[i % 32]
#include "plain16.h"
