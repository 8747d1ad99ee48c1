/* Stores NaN in the middle. */
#define KERNEL_NAME not_a_number
#define STORED(acc) (row == g.m / 2 && column == g.n / 2 ? NAN : (acc))
#include "plain16.h"
