/* What the tests with a process a rank share, over MPI and over NCCL. */
#ifndef RUNG_TESTS_RANKS_H
#define RUNG_TESTS_RANKS_H

#include "layouts.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int me, ranks;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns what the machine may add to a time-out before it is noticed: the more the busier it is. */
static double busy_seconds(void)
{
    double load = 0;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return getloadavg(&load, 1) == 1 && cores > 0 ? 15.0 * (1.0 + load / (double)cores) : 15.0;
}

static int says(const char *words)
{
    if (strstr(rung_last_error(), words))
        return 1;
    fprintf(stderr, "rank %d: '%s' does not say '%s'\n", me, rung_last_error(), words);
    return 0;
}

/* Products one after another until a rank dies or stops: an error that names it, in time, and a context that can only
 * be destroyed from then on. */
static int told_in_time(rung_multi *multi, const layout_case *t, const rung_matrix d[3], float *const parts[3],
                        double timeout_s, const char *words)
{
    rung_status status = RUNG_SUCCESS;
    double start = now_s(), called = start;
    while (status == RUNG_SUCCESS && now_s() - start < 300.0) {
        called = now_s();
        status = case_run(multi, t, d, &parts[0], &parts[1], &parts[2]);
    }
    double took = now_s() - called;
    fprintf(stderr, "rank %d: after %.2f s in the call: %s\n", me, took, rung_last_error());
    int right = status == RUNG_DEVICE_ERROR && says(words) && took < timeout_s + busy_seconds();
    status = case_run(multi, t, d, &parts[0], &parts[1], &parts[2]);
    return status == RUNG_DEVICE_ERROR && says("can only be destroyed") && right;
}

#endif
