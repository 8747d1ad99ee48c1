/* One lane of each warp hands the stage back, whether or not the others have read it. */
#define KERNEL_NAME early_hand_over
#define HANDS (HALF / 32)
#define HAND_BACK(bar)                                                                                                 \
    if (threadIdx.x % 32 == 0)                                                                                         \
    rung_barrier_arrive(bar)

#include "hand_over.h"
