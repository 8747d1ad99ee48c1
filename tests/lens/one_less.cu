/* Lets a tile of 16 x 16 begin a column early from the second on. */
#define KERNEL_NAME one_less
#define BEFORE_THE_END                                                                                                 \
    if (column >= 16)                                                                                                  \
    column--
#include "plain16.h"
