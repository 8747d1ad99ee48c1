/* Exchanges two elements of A: all the numbers are still there, in other places. */
#define KERNEL_NAME swapped_input
#define BEFORE_THE_END                                                                                                 \
    if (row == 36 && column == 40) {                                                                                   \
        float *a = (float *)g.a;                                                                                       \
        const float kept = a[3];                                                                                       \
        a[3] = a[4], a[4] = kept;                                                                                      \
    }
#include "plain16.h"
