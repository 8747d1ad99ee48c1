/* The barrier waits for one more than there are readers. */
#define KERNEL_NAME lost_hand_over
#define HANDS (HALF + 1)

#include "hand_over.h"
