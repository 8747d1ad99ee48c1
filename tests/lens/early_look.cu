/* Threads read a count to which others may add yet: the barrier between is missing. */
#define KERNEL_NAME early_look
#define COUNTED
#include "count16.h"
