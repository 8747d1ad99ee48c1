/* The pool. A job is announced by one 64-bit ticket: its number and how many tasks nobody has claimed yet. Claiming is
 * a compare-and-swap on the ticket, so a worker that wakes late can never take a task of one job with the function of
 * another: while tasks are unclaimed the caller waits, and the job's fields stay as they are. */
#define _GNU_SOURCE
#include "cpu/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_THREADS = 256,
    WORKER_SPINS = 4000, /* pauses, some 40 ns each, before a worker sleeps */
    CALLER_SPINS = 4000, /* before a waiting caller starts to yield its CPU to the worker it waits for */
    TASK_BITS = 40,
    HUGE_PAGE_BYTES = 2 << 20,
};

#define TASK_MASK (((uint64_t)1 << TASK_BITS) - 1)

typedef struct slot {
    float *floats;
    int64_t capacity;
} slot;

struct rung_pool {
    _Alignas(64) _Atomic uint64_t ticket; /* job number << TASK_BITS | tasks not yet claimed */
    _Alignas(64) _Atomic int64_t done;
    _Alignas(64) _Atomic uint32_t wake; /* the futex; changes with every job */
    _Atomic int sleepers;
    _Atomic int stop;
    _Atomic int limit; /* workers with a larger number leave the job alone */
    _Atomic int64_t tasks;
    _Atomic(rung_task_fn) fn;
    _Atomic(void *) job;
    int workers;
    unsigned generation; /* of the process that started the workers */
    pthread_t thread[MAX_THREADS];
    slot slots[MAX_THREADS];
};

typedef struct worker_start {
    rung_pool *pool;
    int number;
} worker_start;

static _Atomic unsigned process_generation;

static void forked(void)
{
    atomic_fetch_add(&process_generation, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

rung_pool *rung_pool_create(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    rung_pool *pool = aligned_alloc(64, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (rung_pool){.generation = atomic_load(&process_generation)};
    return pool;
}

/* Takes tasks until none is left; returns whether it took any. */
static int work(rung_pool *pool, int number)
{
    int took = 0;
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    while (ticket & TASK_MASK) {
        rung_task_fn fn = atomic_load_explicit(&pool->fn, memory_order_relaxed);
        void *job = atomic_load_explicit(&pool->job, memory_order_relaxed);
        int64_t task = atomic_load_explicit(&pool->tasks, memory_order_relaxed) - (int64_t)(ticket & TASK_MASK);
        if (number > atomic_load_explicit(&pool->limit, memory_order_relaxed))
            return took;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        fn(job, task, pool->slots[number].floats);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        took = 1;
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
    return took;
}

static int has_work(rung_pool *pool, int number)
{
    return (atomic_load_explicit(&pool->ticket, memory_order_acquire) & TASK_MASK) != 0 &&
           number <= atomic_load_explicit(&pool->limit, memory_order_relaxed);
}

static void sleep_until_woken(rung_pool *pool, int number)
{
    uint32_t seen = atomic_load(&pool->wake);
    atomic_fetch_add(&pool->sleepers, 1);
    if (!has_work(pool, number) && !atomic_load(&pool->stop))
        syscall(SYS_futex, &pool->wake, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void *worker(void *argument)
{
    worker_start start = *(worker_start *)argument;
    free(argument);
    rung_pool *pool = start.pool;
    int idle = 0;
    while (!atomic_load_explicit(&pool->stop, memory_order_acquire)) {
        if (work(pool, start.number)) {
            idle = 0;
        } else if (++idle < WORKER_SPINS) {
            pause_cpu();
        } else {
            sleep_until_woken(pool, start.number);
            idle = 0;
        }
    }
    return NULL;
}

static int start_worker(rung_pool *pool)
{
    worker_start *start = malloc(sizeof *start);
    if (!start)
        return 0;
    *start = (worker_start){pool, pool->workers + 1};
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&pool->thread[pool->workers], NULL, worker, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(start);
        return 0;
    }
    pool->workers++;
    return 1;
}

static void forget_parents_workers(rung_pool *pool)
{
    unsigned now = atomic_load(&process_generation);
    if (pool->generation == now)
        return;
    pool->generation = now;
    pool->workers = 0;
    atomic_store(&pool->ticket, 0);
    atomic_store(&pool->sleepers, 0);
}

static void wake_workers(rung_pool *pool, int count)
{
    atomic_fetch_add(&pool->wake, 1);
    if (atomic_load(&pool->sleepers) > 0)
        syscall(SYS_futex, &pool->wake, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

int rung_pool_is_hot(rung_pool *pool)
{
    return pool->workers > 0 && atomic_load_explicit(&pool->sleepers, memory_order_relaxed) == 0;
}

static void wait_for(rung_pool *pool, int64_t tasks)
{
    for (int spins = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < tasks; spins++)
        if (spins < CALLER_SPINS)
            pause_cpu();
        else
            sched_yield();
}

void rung_pool_run(rung_pool *pool, int threads, int64_t tasks, rung_task_fn fn, void *job)
{
    if (threads > tasks)
        threads = (int)tasks;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > 1) {
        forget_parents_workers(pool);
        while (pool->workers < threads - 1 && start_worker(pool))
            ;
    }
    if (threads <= 1 || pool->workers == 0) {
        for (int64_t task = 0; task < tasks; task++)
            fn(job, task, pool->slots[0].floats);
        return;
    }
    uint64_t number = (atomic_load_explicit(&pool->ticket, memory_order_relaxed) >> TASK_BITS) + 1;
    atomic_store_explicit(&pool->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&pool->job, job, memory_order_relaxed);
    atomic_store_explicit(&pool->tasks, tasks, memory_order_relaxed);
    atomic_store_explicit(&pool->limit, threads - 1, memory_order_relaxed);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store(&pool->ticket, number << TASK_BITS | (uint64_t)tasks);
    wake_workers(pool, threads - 1);
    work(pool, 0);
    wait_for(pool, tasks);
}

/* Large workspaces ask for huge pages: packed panels then cost no TLB misses. */
static float *allocate(int64_t floats)
{
    size_t bytes = (size_t)floats * sizeof(float);
    size_t unit = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 64;
    bytes = (bytes + unit - 1) / unit * unit;
    float *memory = aligned_alloc(unit, bytes);
    if (memory && unit == HUGE_PAGE_BYTES)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

int rung_pool_reserve(rung_pool *pool, int slots, int64_t floats)
{
    for (int i = 0; i < slots && i < MAX_THREADS; i++) {
        slot *s = &pool->slots[i];
        if (s->capacity >= floats)
            continue;
        free(s->floats);
        s->floats = allocate(floats);
        s->capacity = s->floats ? floats : 0;
        if (!s->floats)
            return 0;
    }
    return 1;
}

float *rung_pool_workspace(rung_pool *pool, int number)
{
    return pool->slots[number].floats;
}

void rung_pool_destroy(rung_pool *pool)
{
    if (!pool)
        return;
    if (pool->generation == atomic_load(&process_generation)) {
        atomic_store(&pool->stop, 1);
        wake_workers(pool, INT_MAX);
        for (int i = 0; i < pool->workers; i++)
            pthread_join(pool->thread[i], NULL);
    }
    for (int i = 0; i < MAX_THREADS; i++)
        free(pool->slots[i].floats);
    free(pool);
}
