/* Off by one: writes column n of C, which lies between its rows. */
#define KERNEL_NAME off_by_one_column
#define INSIDE(row, column) ((row) < g.m && (column) <= g.n)
#include "tile16.h"
