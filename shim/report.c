/* A drop-in's report: a table of (entry, shape, outcome), filled under a lock, written at exit. Built into each
 * drop-in: RUNG_REPORT_PEER names the library in front of which it stands (cuBLAS), RUNG_REPORT_GPU tells of a GPU. */
#define _GNU_SOURCE
#include "report.h"
#include "settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef RUNG_REPORT_PEER
#define RUNG_REPORT_PEER "cuBLAS"
#define RUNG_REPORT_GPU 1
#endif

enum {
    FIRST_SLOTS = 1024,
    MOST_SLOTS = 1 << 21,
    LISTED = 4096,
    PENDING = 256,
    CONTEXTS = 256,
    ANSWERED = 0,
    PEER = 1,
    WHOS = 2
};

typedef struct line {
    const char *entry;
    int64_t m, n, k, batch;
    int trans_a, trans_b;
    const char *kernel; /* answered */
    const char *reason; /* handed on */
    int64_t calls;
    double cpu_us;
    double gpu_us[WHOS];
    int64_t timed[WHOS];
} line;

typedef struct pending {
    void *start, *stop;
    line *of;
    int who;
} pending;

typedef struct events {
    int (*create)(void **, unsigned);
    int (*record)(void *, void *);
    int (*synchronize)(void *);
    int (*elapsed)(float *, void *, void *);
    int (*capturing)(void *, int *);
} events;

typedef struct current {
    const char *entry, *kernel;
    const rung_gemm *gemm;
    void *stream, *start;
    struct timespec since;
    line *last; /* the line the call went to */
    int timing;
} current;

const char *report_target;
static int with_time, with_compare;
static int64_t totals[2]; /* calls answered, calls handed on: those of no line too */
static rung_context *contexts[CONTEXTS];
static int context_count, guards_unread;
static rung_guard_counts guard;
static events cuda;
static line **lines; /* `slots` of them, a power of two, half of them empty; a line stays where it is */
static size_t slots, line_count;
static pending queue[PENDING];
static unsigned queue_head, queue_tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local current now;

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* The child of a fork has one thread: a lock that another one held would never be open there. */
static void before_fork(void)
{
    if (!now.timing) /* else this thread has it */
        pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    if (!now.timing)
        pthread_mutex_unlock(&lock);
}

/* A child tells its own calls; those before are its parent's, as are the contexts and events. */
static void begin_anew(void)
{
    for (size_t i = 0; i < slots; i++)
        free(lines[i]);
    free(lines);
    lines = NULL;
    slots = line_count = 0;
    memset(totals, 0, sizeof totals);
    memset(queue, 0, sizeof queue);
    queue_head = queue_tail = 0;
    context_count = guards_unread = 0;
    guard = (rung_guard_counts){0};
    now = (current){0};
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void start(void)
{
    const char *target = getenv("RUNG_REPORT");
    if (!target || !*target || !(report_target = strdup(target))) /* programs write titles over their environment */
        return;
    pthread_atfork(before_fork, after_fork, begin_anew);
    with_compare = RUNG_REPORT_GPU && setting_flag("RUNG_REPORT_COMPARE");
    with_time = with_compare || (RUNG_REPORT_GPU && setting_flag("RUNG_REPORT_TIME"));
}

/* Finds the driver's events. The constructor does not do this: a program that never calls cuBLAS should not load the
 * driver. */
static void find_events(void)
{
    *(void **)&cuda.create = driver_function("cuEventCreate");
    *(void **)&cuda.record = driver_function("cuEventRecord");
    *(void **)&cuda.synchronize = driver_function("cuEventSynchronize");
    *(void **)&cuda.elapsed = driver_function("cuEventElapsedTime");
    *(void **)&cuda.capturing = driver_function("cuStreamIsCapturing");
    if (!cuda.create || !cuda.record || !cuda.synchronize || !cuda.elapsed || !cuda.capturing)
        with_time = with_compare = 0;
}

/* Waits for the oldest timed call and books its time. The lock is held. */
static void settle_one(void)
{
    pending *p = &queue[queue_head++ % PENDING];
    float ms = 0;
    if (cuda.synchronize(p->stop) == 0 && cuda.elapsed(&ms, p->start, p->stop) == 0) {
        p->of->gpu_us[p->who] += ms * 1e3;
        p->of->timed[p->who]++;
    }
}

/* Reads what the guard did. The lock is held. The context's last stream may be gone by now, so the default one is used.
 */
static void read_guard(rung_context *context)
{
    rung_guard_counts counts;
    rung_context_set_stream(context, NULL);
    if (rung_context_guard_counts(context, &counts) != RUNG_SUCCESS) {
        guards_unread++;
        return;
    }
    guard.blocks += counts.blocks;
    guard.strict_blocks += counts.strict_blocks;
    guard.strict_elements += counts.strict_elements;
}

/* Collects all at exit. It is registered late, so that it runs before CUDA, which was there first, is taken down. */
static void collect(void)
{
    int (*synchronize)(void) = NULL;
    if (queue_head == queue_tail && context_count == 0) /* as in the child of a fork, where the driver is of no use */
        return;
    *(void **)&synchronize = driver_function("cuCtxSynchronize");
    if (synchronize)
        synchronize();
    pthread_mutex_lock(&lock);
    while (queue_head != queue_tail)
        settle_one();
    while (context_count > 0)
        read_guard(contexts[--context_count]);
    pthread_mutex_unlock(&lock);
}

void report_context(rung_context *context)
{
    static int registered;
    const int locked = now.timing; /* a timed call may make its thread's context */
    if (!report_target)
        return;
    if (!locked)
        pthread_mutex_lock(&lock);
    if (!registered)
        registered = atexit(collect) == 0;
    if (context_count < CONTEXTS)
        contexts[context_count++] = context;
    else
        guards_unread++;
    if (!locked)
        pthread_mutex_unlock(&lock);
}

void report_context_closing(rung_context *context)
{
    if (!report_target)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < context_count; i++)
        if (contexts[i] == context) {
            read_guard(context);
            contexts[i] = contexts[--context_count];
        }
    pthread_mutex_unlock(&lock);
}

static void time_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_events);
    int capture = 0;
    now.timing = 0;
    if (!with_time || cuda.capturing(now.stream, &capture) != 0 || capture != 0)
        return;
    pthread_mutex_lock(&lock);
    if (queue_tail - queue_head == PENDING)
        settle_one();
    pending *p = &queue[queue_tail % PENDING];
    now.timing = (p->start || cuda.create(&p->start, 0) == 0) && (p->stop || cuda.create(&p->stop, 0) == 0) &&
                 cuda.record(p->start, now.stream) == 0;
    if (!now.timing)
        pthread_mutex_unlock(&lock); /* held until time_end: timed calls are counted one at a time */
}

static void time_end(line *of, int who)
{
    if (!now.timing)
        return;
    pending *p = &queue[queue_tail % PENDING];
    if (of && cuda.record(p->stop, now.stream) == 0) {
        p->of = of;
        p->who = who;
        queue_tail++;
    }
    now.timing = 0;
    pthread_mutex_unlock(&lock);
}

void report_begin(const char *entry, const rung_gemm *gemm, void *stream)
{
    if (!report_target)
        return;
    now.entry = entry;
    now.gemm = gemm;
    now.stream = stream;
    now.kernel = NULL;
    now.last = NULL;
    if (with_time)
        time_begin();
    clock_gettime(CLOCK_MONOTONIC, &now.since);
}

void report_kernel(const char *kernel)
{
    now.kernel = kernel;
}

static int same(const line *l, const char *reason)
{
    const rung_gemm *g = now.gemm;
    return l->entry == now.entry && l->m == g->m && l->n == g->n && l->k == g->k && l->batch == g->batch &&
           l->trans_a == (int)g->trans_a && l->trans_b == (int)g->trans_b && l->kernel == now.kernel &&
           l->reason == reason;
}

static uint64_t hash_of(const line *l)
{
    return ((uint64_t)l->m * 0x9e3779b97f4a7c15u ^ (uint64_t)l->n * 0xc2b2ae3d27d4eb4fu ^
            (uint64_t)l->k * 0x165667b19e3779f9u ^ (uint64_t)(uintptr_t)l->entry ^ (uint64_t)(uintptr_t)l->reason) >>
           32;
}

static void grow(void)
{
    size_t wanted = slots ? 2 * slots : FIRST_SLOTS;
    line **larger = wanted <= MOST_SLOTS ? calloc(wanted, sizeof *larger) : NULL;
    if (!larger)
        return;
    for (size_t i = 0; i < slots; i++) {
        uint64_t at = lines[i] ? hash_of(lines[i]) : 0;
        while (lines[i] && larger[at & (wanted - 1)])
            at++;
        if (lines[i])
            larger[at & (wanted - 1)] = lines[i];
    }
    free(lines);
    lines = larger;
    slots = wanted;
}

/* Returns the line of a reason; NULL where there is no memory for another line. */
static line *find_line(const char *reason)
{
    const rung_gemm *g = now.gemm;
    line fresh = {.entry = now.entry,
                  .m = g->m,
                  .n = g->n,
                  .k = g->k,
                  .batch = g->batch,
                  .trans_a = (int)g->trans_a,
                  .trans_b = (int)g->trans_b,
                  .kernel = now.kernel,
                  .reason = reason};
    if (2 * line_count >= slots)
        grow();
    uint64_t at = hash_of(&fresh);
    for (size_t i = 0; i < slots; i++) {
        line **place = &lines[(at + i) & (slots - 1)];
        if (*place && same(*place, reason))
            return *place;
        if (!*place) {
            if (2 * line_count >= slots || !(*place = malloc(sizeof fresh)))
                return NULL;
            **place = fresh;
            line_count++;
            return *place;
        }
    }
    return NULL;
}

void report_end(const char *reason)
{
    if (!report_target)
        return;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int locked = now.timing;
    if (!locked)
        pthread_mutex_lock(&lock);
    line *l = find_line(reason);
    totals[reason != NULL]++;
    if (l) {
        l->calls++;
        l->cpu_us += (double)(nanoseconds(&until) - nanoseconds(&now.since)) * 1e-3;
    }
    now.last = reason ? NULL : l;
    if (locked)
        time_end(reason ? NULL : l, ANSWERED);
    else
        pthread_mutex_unlock(&lock);
}

int report_compare(void)
{
    return report_target && with_compare && now.last && now.gemm->beta == 0.0f && !now.gemm->beta_device;
}

void report_peer_begin(void)
{
    time_begin();
}

void report_peer_end(void)
{
    time_end(now.last, PEER);
}

static int by_time(const void *left, const void *right)
{
    const line *x = *(line *const *)left, *y = *(line *const *)right;
    double tx = x->gpu_us[0] + x->cpu_us, ty = y->gpu_us[0] + y->cpu_us;
    return (tx < ty) - (tx > ty);
}

static void write_line(FILE *out, const line *l)
{
    fprintf(out, "%-29s %c%c %8lld %8lld %8lld %6lld %9lld %10.2f", l->entry, l->trans_a ? 'T' : 'N',
            l->trans_b ? 'T' : 'N', (long long)l->m, (long long)l->n, (long long)l->k, (long long)l->batch,
            (long long)l->calls, l->cpu_us / (double)l->calls);
    for (int who = ANSWERED; RUNG_REPORT_GPU && who < WHOS; who++) {
        if (l->timed[who])
            fprintf(out, " %11.1f", l->gpu_us[who] / (double)l->timed[who]);
        else
            fprintf(out, " %11s", "-");
    }
    fprintf(out, "  %s%s\n", l->reason ? RUNG_REPORT_PEER ": " : "",
            l->reason   ? l->reason
            : l->kernel ? l->kernel
                        : "nothing to do");
}

static void write_lines(FILE *out)
{
    line **order = calloc(line_count + 1, sizeof *order);
    size_t count = 0;
    int64_t left = totals[0] + totals[1];
    if (!order)
        return;
    for (size_t i = 0; i < slots; i++)
        if (lines[i])
            order[count++] = lines[i];
    qsort(order, count, sizeof *order, by_time);
    fprintf(out, "%-29s %2s %8s %8s %8s %6s %9s %10s", "entry", "op", "m", "n", "k", "batch", "calls", "CPU us");
    if (RUNG_REPORT_GPU)
        fprintf(out, " %11s %11s", "GPU us", RUNG_REPORT_PEER " us");
    fprintf(out, "  answered by\n");
    for (size_t i = 0; i < count && i < LISTED; i++) {
        write_line(out, order[i]);
        left -= order[i]->calls;
    }
    if (left > 0)
        fprintf(out, "%lld more call%s, of other shapes: the %d lines that took the most time are listed\n",
                (long long)left, left == 1 ? "" : "s", LISTED);
    free(order);
}

static void write_report(FILE *out)
{
    fprintf(out, "Rung %s: %lld call%s answered, %lld handed on to %s\n", rung_version(), (long long)totals[0],
            totals[0] == 1 ? "" : "s", (long long)totals[1], RUNG_REPORT_PEER);
    if (RUNG_REPORT_GPU)
        fprintf(out,
                "guard of accurate products: %lld blocks of 128 x 128, of which %lld computed in strict FP32; %lld "
                "single elements besides%s\n",
                (long long)guard.blocks, (long long)guard.strict_blocks, (long long)guard.strict_elements,
                guards_unread ? " (some contexts could not be asked)" : "");
    write_lines(out);
}

/* A process without a call has nothing to say: a shell around the program should not write over the program's report.
 */
__attribute__((destructor)) static void finish(void)
{
    if (!report_target || totals[0] + totals[1] == 0)
        return;
    int to_stderr = strcmp(report_target, "stderr") == 0;
    FILE *out = to_stderr ? stderr : fopen(report_target, "a");
    int failed = out == NULL, why = errno;
    if (out) {
        pthread_mutex_lock(&lock);
        write_report(out);
        pthread_mutex_unlock(&lock);
        failed = fflush(out) != 0;
        why = errno;
    }
    if (out && !to_stderr)
        fclose(out);
    if (failed)
        fprintf(stderr, "Rung: the report could not be written to %s: %s\n", report_target, strerror(why));
}
