/* The clock that waiting and timelines read. */
#include "multi/clock.h"

#include <time.h>

double multi_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
