/* A long run: threads that make and destroy places, contexts, streams and captured graphs and multiply all the while,
 * on a GPU with its memory nearly full. Every case must pass once and give the same bits ever after; memory must not
 * grow, and on a GPU calls must not become slower. usage: soak cpu|gpu SECONDS [THREADS [LEAVE_MIB]]
 */
#include "lab/fuzz.h"
#include "lab/names.h"
#include "lab/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MODES = 2, WAYS = 3, MOST_THREADS = 64, INTERVALS = 12, CASES_A_CONTEXT = 20, HOST_SLACK_MIB = 96 };
#ifdef __SANITIZE_THREAD__
enum { CASES = 64, MOST_SIZE = 60 };
#else
enum { CASES = 256, MOST_SIZE = 200 };
#endif

static struct {
    int device;
    time_t start, end;
    atomic_int stop, failed, tight;
    atomic_llong calls, contexts, refused;
    _Atomic uint64_t bits[CASES][MODES][WAYS]; /* 0: not computed yet */
} run;

static void complain(const lab_case *c, const char *why)
{
    char text[LAB_CASE_TEXT];
    lab_case_print(c, text);
    printf("FAILED after %lld s: %s: %s\n", (long long)(time(NULL) - run.start), text, why);
    fflush(stdout);
    if (atomic_fetch_add(&run.failed, 1) >= 10)
        atomic_store(&run.stop, 1);
}

/* The first time a case is judged in full. Later its bits must be those of the first time, unless memory has become so
 * short that another kernel may have answered; then it is judged again. */
static void one_call(lab_verifier *v, int number, int mode, int way)
{
    lab_case c;
    lab_verdict verdict;
    lab_fuzz_case(20, (uint64_t)number, MOST_SIZE, &c);
    uint64_t before = atomic_load(&run.bits[number][mode][way]);
    int tight = atomic_load(&run.tight);
    v->bits_alone = before && !tight;
    if (lab_verifier_set_via(v, (lab_via)way) != RUNG_SUCCESS || lab_verify(v, NULL, &c, &verdict) != RUNG_SUCCESS) {
        complain(&c, verdict.why);
        return;
    }
    atomic_fetch_add(&run.calls, 1);
    atomic_fetch_add(&run.refused, verdict.outcome == LAB_SKIP);
    if (verdict.outcome == LAB_FAIL)
        complain(&c, verdict.why);
    if (verdict.outcome != LAB_PASS || tight)
        return;
    uint64_t expected = 0;
    if (!atomic_compare_exchange_strong(&run.bits[number][mode][way], &expected, verdict.bits) &&
        expected != verdict.bits)
        complain(&c, "other bits than the first time");
}

static int is_over(void)
{
    return atomic_load(&run.stop) || time(NULL) >= run.end;
}

static void *thread(void *argument)
{
    uint64_t dice = (uint64_t)(uintptr_t)argument + 1;
    int ways = run.device == RUNG_DEVICE_CPU ? 1 : WAYS;
    while (!is_over()) {
        lab_place place;
        if (lab_place_open(&place, run.device, 2) != RUNG_SUCCESS) {
            atomic_fetch_add(&run.failed, !atomic_load(&run.tight));
            printf("%s: %s\n", atomic_load(&run.tight) ? "no room for a place" : "FAILED", lab_error());
            sleep(1);
            continue;
        }
        for (int context = 0; context < 4 && !is_over(); context++) {
            lab_verifier v;
            int mode = (int)(lab_mix(dice++) % MODES);
            if (lab_verifier_open(&v, &place, mode ? RUNG_ACCURATE : RUNG_STRICT, NULL) == RUNG_SUCCESS)
                for (int i = 0; i < CASES_A_CONTEXT && !is_over(); i++) {
                    uint64_t roll = lab_mix(dice++);
                    one_call(&v, (int)(roll % CASES), mode, (int)((roll >> 32) % (uint64_t)ways));
                }
            atomic_fetch_add(&run.contexts, 1);
            lab_verifier_close(&v);
        }
        lab_place_close(&place);
    }
    return NULL;
}

static double host_mib(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static double device_mib(rung_tools *tools)
{
    int64_t bytes = 0;
    if (tools)
        rung_tools_free_bytes(tools, &bytes);
    return (double)bytes / 1048576.0;
}

/* Takes memory until `leave_mib` are free. */
static void *fill_memory(rung_tools *tools, double leave_mib)
{
    void *ballast = NULL;
    double take = device_mib(tools) - leave_mib;
    if (take > 0 && rung_tools_alloc(tools, (size_t)(take * 1048576.0), &ballast) != RUNG_SUCCESS)
        printf("memory could not be filled: %s\n", lab_error());
    return ballast;
}

/* Prints a line each interval. Returns how many of the findings are memory that grows or calls that slow down. */
static int watch(rung_tools *tools, int seconds)
{
    double rate[INTERVALS], host[INTERVALS], device[INTERVALS];
    long long before = 0;
    void *rest = NULL;
    printf("%8s %10s %10s %10s %12s %14s\n", "s", "calls", "calls/s", "contexts", "host MiB", "GPU MiB free");
    for (int i = 0; i < INTERVALS; i++) {
        if (i == INTERVALS - 1 && tools) { /* at last next to nothing is free */
            atomic_store(&run.tight, 1);
            rest = fill_memory(tools, 40);
        }
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        while (time(NULL) < run.start + (time_t)seconds * (i + 1) / INTERVALS && !is_over())
            usleep(50000);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        double spent = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
        long long calls = atomic_load(&run.calls);
        rate[i] = spent > 0.0 ? (double)(calls - before) / spent : 0.0;
        host[i] = host_mib();
        device[i] = device_mib(tools);
        before = calls;
        if (atomic_load(&run.stop))
            return 0;
        printf("%8lld %10lld %10.0f %10lld %12.1f %14.1f\n", (long long)(time(NULL) - run.start), calls, rate[i],
               atomic_load(&run.contexts), host[i], device[i]);
        fflush(stdout);
    }
    if (rest)
        rung_tools_free(tools, rest);
    int bad = 0;
    const int warm = INTERVALS / 2 - 1, late = INTERVALS - 2;
#ifndef __SANITIZE_THREAD__ /* whose own memory grows */
    if (seconds >= 60 && host[late] > host[warm] + HOST_SLACK_MIB)
        bad += printf("FAILED: host memory grew from %.0f to %.0f MiB\n", host[warm], host[late]) > 0;
#endif
    if (tools && seconds >= 60 && device[late] < 0.5 * device[warm])
        bad += printf("FAILED: free memory of the GPU sank from %.0f to %.0f MiB\n", device[warm], device[late]) > 0;
    if (tools && seconds >= 60 && rate[late] < 0.7 * rate[warm])
        bad += printf("FAILED: %.0f calls a second became %.0f\n", rate[warm], rate[late]) > 0;
    return bad;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "usage: soak cpu|gpu SECONDS [THREADS [LEAVE_MIB]]\n"), 2;
    int seconds = atoi(argv[2]), threads = argc > 3 ? atoi(argv[3]) : 8, bad = 0;
    lab_place first = {0};
    pthread_t ids[MOST_THREADS];
    run.device = strcmp(argv[1], "cpu") == 0 ? RUNG_DEVICE_CPU : 0;
    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    if (lab_place_open(&first, run.device, 2) != RUNG_SUCCESS)
        return fprintf(stderr, "soak: %s\n", lab_error()), 1;
    lab_watch_begin();
    double free_before = device_mib(first.tools);
    void *ballast = first.tools ? fill_memory(first.tools, argc > 4 ? atof(argv[4]) : 4096) : NULL;
    run.start = time(NULL);
    run.end = run.start + seconds;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, thread, (void *)((uintptr_t)i << 40)) != 0)
            return fprintf(stderr, "soak: no thread\n"), 1;
    bad += watch(first.tools, seconds);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (ballast)
        rung_tools_free(first.tools, ballast);
    double lost = free_before - device_mib(first.tools);
    if (lost > 512.0) /* modules that were loaded stay, and what the driver keeps */
        bad += printf("FAILED: %.0f MiB of the GPU's memory did not come back\n", lost) > 0;
    lab_place_close(&first);
    printf("%lld calls on %d threads in %lld contexts: %lld refused, %d findings\n", atomic_load(&run.calls), threads,
           atomic_load(&run.contexts), atomic_load(&run.refused), atomic_load(&run.failed) + bad);
    return atomic_load(&run.failed) + bad || atomic_load(&run.calls) == 0;
}
