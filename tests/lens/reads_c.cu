/* Reads C where beta is 0. */
#define KERNEL_NAME reads_c
#define STORED(acc) ((acc) + 0.0f * g.c[row * g.ldc + column])
#include "plain16.h"
