/* Leaves the last row out. */
#define KERNEL_NAME edge_left_out
#define ROWS (g.m - 1)
#include "plain16.h"
