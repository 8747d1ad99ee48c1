/* Many threads, a context each; contexts with several threads side by side; products after fork(). */
#define _GNU_SOURCE /* pthread_setattr_default_np */
#include "support.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 12, SECONDS_OF_A_CHILD = 1000 }; /* it computes for milliseconds; a busy machine is slow */

static float a[120 * 120], b[120 * 120], expected[120 * 120];

static void fill(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < 120 * 120; i++) {
        a[i] = random_float(&seed);
        b[i] = random_float(&seed);
    }
}

static int multiply(rung_context *context, float *c)
{
    return rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, 120, 120, 120, 1.0f, a, 120, b, 120, 0.0f, c, 120) == RUNG_SUCCESS;
}

static rung_context *open_quietly(int threads) /* cmocka's assertions belong to the main thread */
{
    rung_config config;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = threads;
    rung_context *context = NULL;
    rung_context_create(&context, &config);
    return context;
}

static void *work(void *argument)
{
    int threads = *(int *)argument, good = 1;
    float *c = malloc(sizeof expected);
    for (int round = 0; round < ROUNDS && good; round++) {
        rung_context *context = open_quietly(threads);
        good = context && multiply(context, c) && memcmp(c, expected, sizeof expected) == 0;
        /* A failure of one thread must not show in another's rung_last_error. */
        good = good && rung_context_set_threads(context, -1 - round) == RUNG_INVALID_ARGUMENT;
        char mine[16];
        snprintf(mine, sizeof mine, "is %d:", -1 - round);
        good = good && strstr(rung_last_error(), mine);
        rung_context_destroy(context);
    }
    free(c);
    return good ? NULL : (void *)"wrong";
}

/* What went wrong in one thread is that thread's, whatever fails elsewhere meanwhile. */
static void *fail_as_numbered(void *barrier)
{
    static int numbers;
    const int number = -1 - __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED);
    char mine[16];
    snprintf(mine, sizeof mine, "is %d:", number);
    int good = rung_process_set_threads(number) == RUNG_INVALID_ARGUMENT;
    pthread_barrier_wait(barrier);
    good = good && strstr(rung_last_error(), mine);
    pthread_barrier_wait(barrier);
    return good ? NULL : (void *)"wrong";
}

static void errors_are_a_threads_own(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_as_numbered, &barrier), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    pthread_barrier_destroy(&barrier);
}

/* This is what a program has set for its thread. */
typedef struct thread_settings {
    sigset_t blocked;
    cpu_set_t cpus;
    unsigned rounding; /* and whether tiny numbers are zero */
    int cancels;
} thread_settings;

static void settings_of_this_thread(thread_settings *s)
{
    memset(s, 0, sizeof *s);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &s->blocked), 0);
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof s->cpus, &s->cpus), 0);
#ifdef __x86_64__
    s->rounding = __builtin_ia32_stmxcsr() & ~0x3fu; /* without the flags of what has happened */
#endif
    int cancels;
    assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancels), 0);
    assert_int_equal(pthread_setcancelstate(cancels, &s->cancels), 0);
    s->cancels = cancels;
}

static void a_call_leaves_its_thread_as_it_was(void **state)
{
    (void)state;
    enum { SIZE = 400 }; /* long enough to be shared out */
    static float operands[3][SIZE * SIZE];
    thread_settings before, after;
    sigset_t one, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    settings_of_this_thread(&before);
    for (int threads = 1; threads <= 3; threads++) {
        rung_context *context = open_quietly(threads);
        assert_non_null(context);
        assert_ok(rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, SIZE, SIZE, SIZE, 1.0f, operands[0], SIZE, operands[1],
                             SIZE, 0.0f, operands[2], SIZE));
        rung_context_destroy(context);
        settings_of_this_thread(&after);
        assert_memory_equal(&after, &before, sizeof after);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void contexts_side_by_side(void **state)
{
    (void)state;
    fill();
    for (int threads = 1; threads <= 3; threads += 2) {
        rung_context *context = open_quietly(threads);
        assert_true(multiply(context, expected));
        rung_context_destroy(context);
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, work, &threads), 0);
        for (int i = 0; i < THREADS; i++) {
            void *result;
            pthread_join(thread[i], &result);
            assert_null(result);
        }
    }
}

static void *one_product(void *context)
{
    static float c[120 * 120];
    return multiply(context, c) && memcmp(c, expected, sizeof expected) == 0 ? NULL : (void *)"wrong";
}

/* A context may move from thread to thread, one at a time. */
static void a_context_handed_on(void **state)
{
    (void)state;
    fill();
    rung_context *context = open_quietly(2);
    assert_true(multiply(context, expected));
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *result;
        assert_int_equal(pthread_create(&thread, NULL, one_product, context), 0);
        pthread_join(thread, &result);
        assert_null(result);
    }
    rung_context_destroy(context);
}

/* After fork() the C library gives a child's new threads the stacks, and so the thread ids, of the parent's threads,
 * which the thread sanitizer still takes for running: it ends the process with "dup thread with used id". Stacks too
 * large for that reuse are new ones. */
static void threads_of_a_child_get_new_stacks(void)
{
#ifdef __SANITIZE_THREAD__
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)64 << 20);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
#endif
}

static int child_multiplies(rung_context *inherited)
{
    threads_of_a_child_get_new_stacks();
    alarm(SECONDS_OF_A_CHILD); /* a lock held by a thread that is not there would wait for ever */
    static float c[120 * 120];
    if (!multiply(inherited, c) || memcmp(c, expected, sizeof expected) != 0)
        return 1;
    rung_context *own = open_quietly(2);
    if (!own || !multiply(own, c) || memcmp(c, expected, sizeof expected) != 0)
        return 2;
    rung_context_destroy(own);
    rung_context_destroy(inherited);
    return 0;
}

/* A child may close what it has inherited before it uses it: its parent's workers are not there to be waited for. */
static int child_closes(rung_context *inherited)
{
    threads_of_a_child_get_new_stacks();
    alarm(SECONDS_OF_A_CHILD);
    static float c[120 * 120];
    rung_context_destroy(inherited);
    rung_context *own = open_quietly(2);
    if (!own || !multiply(own, c) || memcmp(c, expected, sizeof expected) != 0)
        return 1;
    rung_context_destroy(own);
    return 0;
}

static void products_after_fork(void **state)
{
    (void)state;
    fill();
    rung_context *context = open_quietly(2);
    assert_true(multiply(context, expected));
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(i % 2 ? child_closes(context) : child_multiplies(context));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        static float c[120 * 120];
        assert_true(multiply(context, c));
        assert_memory_equal(c, expected, sizeof expected);
    }
    rung_context_destroy(context);
}

/* There is one shape for each way through the CPU backend, and for each of its ways to share the work. */
static const int64_t paths[][3] = {{90, 80, 70},    {300, 300, 300}, {600, 330, 1100}, {40, 600, 300},  {8, 300, 1100},
                                   {1, 1000, 600},  {600, 40, 300},  {700, 5, 300},    {20, 20, 4200},  {20, 600, 600},
                                   {120, 194, 150}, {330, 98, 120},  {2, 9000, 1100},  {16, 1500, 1600}};

/* Compares the bits of a product on several threads with those on one: they are the shape's matter alone. */
static void same_bits(rung_context *alone, const int64_t shape[3], int form, int pad, uint64_t seed)
{
    static const int threads[] = {2, 3, 5, 8, 12};
    product p;
    product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1 & 1, shape[0], shape[1], shape[2], pad, 1, seed);
    p.gemm.beta = form & 4 ? 0.0f : 0.7f; /* C times a half would not be rounded */
    p.gemm.activation = form == 3 ? RUNG_GELU : RUNG_IDENTITY;
    product_reset(&p);
    assert_ok(rung_gemm_run(alone, &p.gemm));
    float *first = malloc(p.count_c * sizeof *first);
    memcpy(first, p.gemm.c, p.count_c * sizeof *first);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        rung_context *several = open_quietly(threads[t]);
        for (int again = 0; again < 2; again++) { /* the first call starts the threads */
            product_reset(&p);
            assert_ok(rung_gemm_run(several, &p.gemm));
            if (memcmp(first, p.gemm.c, p.count_c * sizeof *first) != 0)
                fail_msg("%lld x %lld x %lld, form %d, pad %d: other bits on %d threads than on one",
                         (long long)shape[0], (long long)shape[1], (long long)shape[2], form, pad, threads[t]);
        }
        rung_context_destroy(several);
    }
    free(first);
    product_free(&p);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    rung_context *alone = open_quietly(1);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        for (int form = 0; form < 4; form++)
            same_bits(alone, paths[i], form, 1, i);
    rung_context_destroy(alone);
}

/* Shapes that a seed draws, from a few to thousands in each direction, so that threads' parts have any width; and such
 * as once had other bits, or wrong ones. */
static void so_it_does_for_drawn_shapes(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    enum { DRAWN = 4 };
#else
    enum { DRAWN = 60 };
#endif
    static const struct {
        int64_t shape[3];
        int form;
    } known[] = {{{1197, 3186, 3}, 4}, {{236, 9, 2880}, 3},  {{2, 9000, 1100}, 2}, {{2, 9000, 1100}, 0},
                 {{63, 17, 25502}, 3}, {{250, 1, 4356}, 3},  {{3, 619, 1567}, 2},  {{2, 675, 935}, 2},
                 {{4, 1379, 860}, 2},  {{3, 435, 1502}, 3},  {{365, 114, 254}, 1}, {{365, 114, 254}, 3},
                 {{900, 137, 500}, 0}, {{950, 130, 800}, 1}, {{700, 385, 600}, 5}, {{2300, 19, 1000}, 0}};
    rung_context *alone = open_quietly(1);
    uint64_t seed = 20261126;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        same_bits(alone, known[i].shape, known[i].form, 0, i);
    for (int i = 0; i < DRAWN; i++) {
        int64_t shape[3];
        double size, largest;
        do {
            for (int j = 0; j < 3; j++)
                shape[j] = (int64_t)exp(10.0 * (0.5 + 0.5 * (double)random_float(&seed)));
            size = (double)shape[0] * (double)shape[1] * (double)shape[2];
            largest = size / (double)(shape[0] < shape[1]   ? shape[0] < shape[2] ? shape[0] : shape[2]
                                        : shape[1] < shape[2] ? shape[1]
                                                            : shape[2]);
        } while (size > 2e7 || size < 2e5 || largest > 4e6);
        same_bits(alone, shape, i % 8, i % 3, (uint64_t)i);
    }
    for (int i = 0; i < DRAWN; i++) { /* few rows or columns, or a vector's whole ones and a few more; C is read */
        int64_t few = 1 + (int64_t)(5.99f + 6.0f * random_float(&seed)), shape[3];
        shape[i % 2] = i % 4 < 2 ? few : 24 * few + 1 + i % 3;
        shape[1 - i % 2] = 700 + (int64_t)(600.0f * random_float(&seed));
        shape[2] = 900 + (int64_t)(800.0f * random_float(&seed));
        same_bits(alone, shape, i / 4 % 4, i % 3, (uint64_t)i);
    }
    rung_context_destroy(alone);
}

/* Counts the threads of this process, as the kernel does. */
static int thread_count(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

static int large_in_a_child(rung_context *context, const product *p, const float *expected_c)
{
    threads_of_a_child_get_new_stacks();
    alarm(SECONDS_OF_A_CHILD);
    int before = thread_count();
    for (int i = 0; i < 2; i++)
        if (rung_gemm_run(context, &p->gemm) != RUNG_SUCCESS ||
            memcmp(p->gemm.c, expected_c, p->count_c * sizeof *expected_c) != 0)
            return 1;
    return thread_count() == before + 1 ? 0 : 2; /* a worker of its own */
}

/* Large enough that the parent's workers run, spin and sleep: the child has none of them. */
static void workers_after_fork(void **state)
{
    (void)state;
    rung_context *context = open_quietly(2);
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 300, 300, 600, 0, 1, 4);
    product_reset(&p);
    assert_ok(rung_gemm_run(context, &p.gemm));
    float *first = malloc(p.count_c * sizeof *first);
    memcpy(first, p.gemm.c, p.count_c * sizeof *first);
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            usleep(20000); /* asleep by now */
        pid_t child = fork();
        if (child == 0)
            _exit(large_in_a_child(context, &p, first));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_ok(rung_gemm_run(context, &p.gemm));
        assert_memory_equal(first, p.gemm.c, p.count_c * sizeof *first);
    }
    free(first);
    product_free(&p);
    rung_context_destroy(context);
}

enum { CALLERS = 16, CALLERS_THREADS = 8 };

static pthread_barrier_t all_have_called, counted;

static void *call_and_wait(void *argument)
{
    rung_context *context = open_quietly(CALLERS_THREADS);
    float *c = malloc(400 * 400 * sizeof *c);
    const float *operand = argument;
    int good = context && c;
    for (int round = 0; round < 4 && good; round++)
        good = rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, 400, 400, 400, 1.0f, operand, 400, operand, 400, 0.0f, c,
                          400) == RUNG_SUCCESS;
    pthread_barrier_wait(&all_have_called);
    pthread_barrier_wait(&counted);
    rung_context_destroy(context);
    free(c);
    return good ? NULL : (void *)"wrong";
}

static void callers_share_their_workers(void **state)
{
    (void)state;
    pthread_t callers[CALLERS];
    float *operand = calloc(400 * 400, sizeof *operand);
    int before = thread_count();
    pthread_barrier_init(&all_have_called, NULL, CALLERS + 1);
    pthread_barrier_init(&counted, NULL, CALLERS + 1);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_and_wait, operand), 0);
    pthread_barrier_wait(&all_have_called);
    int during = thread_count();
    pthread_barrier_wait(&counted);
    for (int i = 0; i < CALLERS; i++) {
        void *result;
        pthread_join(callers[i], &result);
        assert_null(result);
    }
    assert_in_range(during - before - CALLERS, 1, CALLERS_THREADS - 1);
    for (int tries = 0; tries < 1000 && thread_count() > before; tries++)
        usleep(1000);                      /* a joined thread leaves /proc a moment later, */
    assert_true(thread_count() <= before); /* those of tests before this one may have been counted as well */
    free(operand);
}

#ifndef __SANITIZE_THREAD__
/* Far more threads than processors, and short tasks: each job's tasks are offered to all while others take them. */
static void many_threads_take_short_tasks(void **state)
{
    (void)state;
    enum { ORDER = 12, ENTRIES = 16384, FLOATS = ORDER * ORDER, TIMES = 40 };
    rung_context *context = test_context(256);
    float *c = malloc((size_t)ENTRIES * FLOATS * sizeof *c);
    assert_non_null(c);
    memset(c, 0xff, (size_t)ENTRIES * FLOATS * sizeof *c);
    for (int i = 0; i < TIMES; i++) /* one A and one B for all; at once, so that workers still look for tasks */
        assert_ok(rung_sgemm_strided_batched(context, RUNG_ROW_MAJOR, 0, 0, ORDER, ORDER, ORDER, 1.0f, a, ORDER, 0, b,
                                             ORDER, 0, 0.0f, c, ORDER, FLOATS, ENTRIES));
    assert_true(c[0] == c[0]);
    for (int e = 1; e < ENTRIES; e++)
        assert_memory_equal(c + (size_t)e * FLOATS, c, FLOATS * sizeof *c);
    free(c);
    rung_context_destroy(context);
}

/* Reads which signals a thread of this process has blocked, signal 1 in bit 0. */
static unsigned long long blocked_by(const char *thread)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "SigBlk: %llx", &mask);
    if (file)
        fclose(file);
    return mask;
}

/* The program's signals are for its own threads: a handler may not expect to run on another. */
static void workers_take_no_signals(void **state)
{
    (void)state;
    const unsigned long long wanted = 1ull << (SIGTERM - 1) | 1ull << (SIGUSR1 - 1) | 1ull << (SIGINT - 1);
    rung_context *context = test_context(4);
    int others = 0;
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 300, 300, 600, 0, 1, 4);
    assert_ok(rung_gemm_run(context, &p.gemm));
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (struct dirent *one; (one = readdir(threads));) {
        if (one->d_name[0] == '.' || atoi(one->d_name) == (int)getpid())
            continue;
        assert_true((blocked_by(one->d_name) & wanted) == wanted);
        others++;
    }
    closedir(threads);
    assert_int_equal(others, 3);
    product_free(&p);
    rung_context_destroy(context);
}
#endif

int main(int count, char **arguments)
{
    if (count > 1) /* these tests alone, such as 'any*' */
        cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_leaves_its_thread_as_it_was),
        cmocka_unit_test(errors_are_a_threads_own),
        cmocka_unit_test(contexts_side_by_side),
        cmocka_unit_test(a_context_handed_on),
        cmocka_unit_test(callers_share_their_workers),
        cmocka_unit_test(products_after_fork),
        cmocka_unit_test(workers_after_fork),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(so_it_does_for_drawn_shapes),
#ifndef __SANITIZE_THREAD__ /* which is slow with many threads, and has one of its own */
        cmocka_unit_test(many_threads_take_short_tasks),
        cmocka_unit_test(workers_take_no_signals),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
