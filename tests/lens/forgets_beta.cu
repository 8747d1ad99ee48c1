/* Forgets what C was. */
#define KERNEL_NAME forgets_beta
#define BEFORE_THE_END                                                                                                 \
    g.c[row * g.ldc + column] = g.alpha * acc;                                                                         \
    return
#include "plain16.h"
