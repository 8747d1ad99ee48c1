/* No fault: fences and waits stand between what threads do and what the tensor cores and the copy engine do. */
#define KERNEL_NAME engines
#include "engines.h"
