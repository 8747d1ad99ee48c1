/* Leaves one product out: the last k. */
#define KERNEL_NAME left_out
#define LAST_K (g.k - 1)
#include "plain16.h"
