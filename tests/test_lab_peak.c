/* The peak is what threads reach that work at once: how long it takes to start them is no part of it, and where some
 * cannot be started their work counts all the same. By a clock that goes on by a second whenever it is read it is the
 * work of all of them. */
#define _GNU_SOURCE
#include "support.h"
#include "lab/peak.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <time.h>

enum { THREADS = 3, SAMPLES = 5, TRIES = 5 /* on a machine that others use */ };

static int delay_ms, refuses, counts, seconds;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    *time = (struct timespec){.tv_sec = ++seconds};
    return counts ? 0 : real(clock, time);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    nanosleep(&(struct timespec){.tv_nsec = delay_ms * 1000000L}, NULL);
    return refuses ? EAGAIN : real(thread, attributes, run, argument);
}

/* The best of some: another program may take the cores now and then. */
static double peak(int delay, int refused, int threads)
{
    rung_context *context;
    rung_config config;
    double best = 0.0;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = 1;
    assert_int_equal(rung_context_create(&context, &config), RUNG_SUCCESS);
    delay_ms = delay, refuses = refused;
    for (int i = 0; i < SAMPLES; i++)
        best = fmax(best, lab_cpu_peak_gflops(context, threads));
    delay_ms = refuses = 0;
    rung_context_destroy(context);
    return best;
}

static void threads_that_start_late(void **state)
{
    (void)state;
    int holds = 0;
    for (int i = 0; i < TRIES && !holds; i++) {
        const double at_once = peak(0, 0, THREADS);
        assert_true(at_once > 0.0);
        holds = peak(40, 0, THREADS) > at_once / 4; /* one thread's work takes some milliseconds */
    }
    assert_true(holds);
}

static void threads_that_cannot_start(void **state)
{
    (void)state;
    int holds = 0;
    for (int i = 0; i < TRIES && !holds; i++) {
        const double alone = peak(0, 1, THREADS), together = peak(0, 0, THREADS);
        holds = alone > together / (4 * THREADS) && alone < 2 * together;
    }
    assert_true(holds);
}

/* A thread's chains have so many multiply-adds: 12 million of vectors of 4, 8 or 16 floats. */
static void work_of_all_threads(void **state)
{
    (void)state;
    counts = 1;
    const double one = peak(0, 0, 1), three = peak(0, 0, THREADS);
    counts = 0;
    const double lanes = one / (2 * 12e6 * 1e-9);
    assert_true(fabs(lanes - 4) < 1e-6 || fabs(lanes - 8) < 1e-6 || fabs(lanes - 16) < 1e-6);
    assert_true(fabs(three / one - THREADS) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_that_start_late),
                                       cmocka_unit_test(threads_that_cannot_start),
                                       cmocka_unit_test(work_of_all_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
