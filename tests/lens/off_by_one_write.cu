/* Off by one: writes row m of C. */
#define KERNEL_NAME off_by_one_write
#define INSIDE(row, column) ((row) <= g.m && (column) < g.n)
#include "tile16.h"
