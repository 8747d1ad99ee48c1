/* Leaves one product out: the last k. */
#define KERNEL_NAME left_out
#define K_GUARD(p) ((p) < g.k - 1)
#include "tile16.h"
