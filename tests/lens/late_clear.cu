/* Threads add to a count that may be cleared after that: the barrier between is missing. */
#define KERNEL_NAME late_clear
#define CLEARED
#include "count16.h"
