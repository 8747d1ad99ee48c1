/* Off by one: writes row m of C. */
#define KERNEL_NAME off_by_one_write
#define ROW_GUARD(row) ((row) <= g.m)
#include "tile16.h"
