/* How many threads a CPU product may use: as the context says, else the process, else the environment, else the cores.
 */
#include "cpu/threads.h"
#include "core/status.h"
#include "cpu/features.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int process_threads; /* 0: nobody has said */
static _Atomic int is_named;        /* RUNG_NUM_THREADS names a number */

static int positive_from_environment(const char *name)
{
    const char *text = getenv(name);
    long value = text ? strtol(text, NULL, 10) : 0; /* OMP_NUM_THREADS may be a list: its first entry counts */
    return value > 0 && value <= RUNG_MOST_THREADS ? (int)value : 0;
}

rung_status rung_cpu_check_threads(void)
{
    const char *text = getenv("RUNG_NUM_THREADS");
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;
    if (text && (*end || value < 0 || value > RUNG_MOST_THREADS))
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "RUNG_NUM_THREADS is '%s': set it to a number from 1 to %d, or unset it", text,
                         RUNG_MOST_THREADS);
    return RUNG_SUCCESS;
}

int rung_cpu_said_threads(void)
{
    static const char *const names[] = {"RUNG_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                        "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
    int threads = 0;
    atomic_store_explicit(&is_named, positive_from_environment(names[0]) > 0, memory_order_relaxed);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !threads; i++)
        threads = positive_from_environment(names[i]);
    return threads;
}

int rung_cpu_default_threads(void)
{
    const int threads = rung_cpu_said_threads();
    return threads ? threads : rung_cpu_count();
}

int rung_cpu_threads_now(int asked, int otherwise)
{
    int most = atomic_load_explicit(&process_threads, memory_order_relaxed);
    if (!most)
        return otherwise;
    return asked && asked < most ? asked : most;
}

int rung_cpu_threads_of_team(const rung_team *team, int asked, int threads)
{
    if (team->is_inside())
        return 1;
    int is_told = asked || atomic_load_explicit(&process_threads, memory_order_relaxed) ||
                  atomic_load_explicit(&is_named, memory_order_relaxed);
    int most = is_told ? threads : team->most();
    return most < threads ? most : threads;
}

rung_status rung_process_set_threads(int threads)
{
    if (threads < 0 || threads > RUNG_MOST_THREADS)
        return rung_fail(RUNG_INVALID_ARGUMENT, "threads is %d: 0 to %d", threads, RUNG_MOST_THREADS);
    atomic_store_explicit(&process_threads, threads, memory_order_relaxed);
    return RUNG_SUCCESS;
}

int rung_process_threads(void)
{
    int most = atomic_load_explicit(&process_threads, memory_order_relaxed);
    return most ? most : rung_cpu_default_threads();
}
