/* Off by one: reads column k of A, past its last element in the last row. */
#define KERNEL_NAME off_by_one_read
#define K_GUARD(p) ((p) <= g.k)
#include "tile16.h"
