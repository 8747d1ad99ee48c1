/* Leaves the last row out. */
#define KERNEL_NAME edge_left_out
#define INSIDE(row, column) ((row) < g.m - 1 && (column) < g.n)
#include "tile16.h"
