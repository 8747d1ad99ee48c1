/* The corner of C is doubled. */
#define KERNEL_NAME wrong_edge
#define STORED(acc) (row == g.m - 1 && column == g.n - 1 ? 2.0f * (acc) : (acc))
#include "plain16.h"
