/* The pool. All contexts of a process share one crew of workers; a context that finds it taken works alone. A job's
 * tasks are dealt in runs, one a thread: a thread that comes back to the same operands finds its part in its own
 * caches. Who has finished takes from the others' runs. A run is one 64-bit ticket: the job's number and how many tasks
 * nobody has claimed yet. Claiming is a compare-and-swap on it, so a worker that wakes late can never take a task of
 * one job with the function of another: while tasks are unclaimed the caller waits, and the job's fields stay as they
 * are.
 *
 * A job that is sent to the caller's own threads (cpu/team.h) is dealt in the same way. It lies on the caller's stack,
 * since these threads end together, and keeps off the crew. */
#define _GNU_SOURCE
#include "cpu/pool.h"
#include "cpu/float_mode.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum {
    MAX_THREADS = 256,
    WORKER_SPINS = 4000,      /* pauses, some 40 ns each, before a worker sleeps that expects the next job soon */
    BRIEF_SPINS = 250,        /* before one that does not */
    JOB_SPINS = 25000,        /* at most, that are not counted while the job goes on */
    SPIN_US = 100,            /* less than these pauses take */
    SHARE_OF_SPINNER_US = 2,  /* work that pays for a thread whose worker spins */
    SHARE_OF_SLEEPER_US = 18, /* whose worker has to be woken, for this job alone */
    SHARE_OF_LATE_US = 54,    /* whose worker came too late lately */
    TOGETHER_US = 54,         /* of jobs that follow each other closely: they pay for one wake together */
    WAKE_US = 100,            /* more than a worker takes to come when it is woken */
    TEAM_SPIN_US = 1000,      /* less than OpenMP's threads spin, unless they are told otherwise */
    TEAM_LATE_US = 5,         /* a thread of a team that comes later has slept */
    CALLER_SPINS = 4000,      /* before a waiting caller starts to yield its CPU to the worker it waits for */
    MOST_FAILURES = 3,        /* in a row, before help is not asked for a while */
    LEAST_REST_US = 10000,
    MOST_REST_US = 100000,
    TASK_BITS = 36, /* of a ticket: a task may be a line of a matrix. The others number the job */
    HUGE_PAGE_BYTES = 2 << 20,
};

#define TASK_MASK (((uint64_t)1 << TASK_BITS) - 1)

typedef struct slot {
    float *floats;
    int64_t capacity;
} slot;

/* What is known of helpers that may come too late: after some failures in a row they are left alone for a while, twice
 * as long each time. */
typedef struct patience {
    int failures;
    double rest_us, again_us;
} patience;

struct rung_pool {
    slot slots[MAX_THREADS];
    const rung_team *team;      /* the caller's threads, which jobs go to; NULL: to the crew */
    double team_hot_us;         /* when the last job on the team ended, if all its threads came at once; else 0 */
    double team_end_us;         /* when it ended */
    patience with_team;         /* whose threads sleep after each job: an OpenMP that is told not to spin */
    patience with_sleepers;     /* workers that are woken, and come when the caller has done all */
    double wake_us;             /* when workers were woken that have not helped since; 0: there are none */
    double called_us, close_us; /* when rung_pool_least_share_us was called last, and the work together by then */
};

typedef struct task_run {
    _Alignas(64) _Atomic uint64_t ticket; /* job number << TASK_BITS | tasks not yet claimed */
} task_run;

/* One job, as its threads see it. */
typedef struct shared_job {
    task_run run[MAX_THREADS];
    _Alignas(64) _Atomic int64_t done;
    _Alignas(64) _Atomic int limit; /* workers with a larger number leave the job alone */
    _Atomic int64_t tasks;
    _Atomic(rung_task_fn) fn;
    _Atomic(void *) job;
    _Atomic(rung_pool *) pool;    /* whose job it is: the tasks' workspaces */
    _Atomic uint64_t float_mode;  /* the caller's, in which all tasks compute */
    _Atomic int cpu[MAX_THREADS]; /* where each worker took its first task; -1: it has none */
} shared_job;

/* The workers of the process. They start when a job first wants them and end with the last pool. */
typedef struct worker_crew {
    shared_job job;
    uint64_t job_number;
    _Alignas(64) _Atomic uint32_t wake; /* the futex; changes with every job */
    _Atomic int sleepers;
    _Atomic int stop;
    _Atomic int caller_cpu; /* the last caller's: a worker there does not spin */
    _Atomic int is_working; /* a caller has a job */
    _Alignas(64) atomic_flag taken;
    _Atomic int workers;
    _Atomic unsigned generation; /* of the process that started the workers */
    pthread_t thread[MAX_THREADS];
} worker_crew;

static worker_crew crew = {.taken = ATOMIC_FLAG_INIT};
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static int pools; /* alive, under the lock */

static _Atomic unsigned process_generation;

static void lock_pools(void)
{
    pthread_mutex_lock(&pools_lock);
}

static void unlock_pools(void)
{
    pthread_mutex_unlock(&pools_lock);
}

/* The child has no workers, and nobody holds the crew there. */
static void forked(void)
{
    unlock_pools();
    atomic_fetch_add(&process_generation, 1);
    atomic_flag_clear(&crew.taken);
    atomic_store(&crew.is_working, 0);
}

/* From the start: a program may fork before its first product, and after its first parallel loop (cpu/team.c). */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(lock_pools, unlock_pools, forked);
}

int rung_pool_is_forked(void)
{
    return atomic_load_explicit(&process_generation, memory_order_relaxed) > 0;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static double time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int is_asked(const patience *p, double now_us)
{
    return now_us >= p->again_us;
}

static void note_help(patience *p, int came)
{
    if (came) {
        *p = (patience){0};
    } else if (++p->failures >= MOST_FAILURES) {
        p->failures = 0;
        p->rest_us = p->rest_us == 0.0 ? LEAST_REST_US : 2.0 * p->rest_us;
        p->rest_us = p->rest_us < MOST_REST_US ? p->rest_us : MOST_REST_US;
        p->again_us = time_us() + p->rest_us;
    }
}

rung_pool *rung_pool_create(void)
{
    rung_pool *pool = malloc(sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (rung_pool){0};
    lock_pools();
    pools++;
    unlock_pools();
    return pool;
}

/* Returns the first task of a run. */
static int64_t run_start(int64_t tasks, int runs, int run)
{
    return tasks * run / runs;
}

/* Puts a job's tasks out. The tickets come last: with them the others begin. */
static void deal(shared_job *shared, rung_pool *pool, uint64_t number, int threads, int64_t tasks, rung_task_fn fn,
                 void *job)
{
    atomic_store_explicit(&shared->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&shared->job, job, memory_order_relaxed);
    atomic_store_explicit(&shared->pool, pool, memory_order_relaxed);
    atomic_store_explicit(&shared->float_mode, rung_float_mode(), memory_order_relaxed);
    atomic_store_explicit(&shared->tasks, tasks, memory_order_relaxed);
    atomic_store_explicit(&shared->limit, threads - 1, memory_order_release);
    atomic_store_explicit(&shared->done, 0, memory_order_relaxed);
    for (int i = 0; i < threads; i++)
        atomic_store_explicit(&shared->cpu[i], -1, memory_order_relaxed);
    for (int run = threads - 1; run >= 0; run--) {
        int64_t count = run_start(tasks, threads, run + 1) - run_start(tasks, threads, run);
        atomic_store(&shared->run[run].ticket, number << TASK_BITS | (uint64_t)count);
    }
}

/* Takes tasks of one run until none is left; returns whether it took any. */
static int work_on(shared_job *shared, int run, int number)
{
    int took = 0;
    _Atomic uint64_t *at = &shared->run[run].ticket;
    uint64_t ticket = atomic_load_explicit(at, memory_order_acquire);
    while (ticket & TASK_MASK) {
        rung_task_fn fn = atomic_load_explicit(&shared->fn, memory_order_relaxed);
        void *job = atomic_load_explicit(&shared->job, memory_order_relaxed);
        rung_pool *pool = atomic_load_explicit(&shared->pool, memory_order_relaxed);
        int64_t tasks = atomic_load_explicit(&shared->tasks, memory_order_relaxed);
        uint64_t float_mode = atomic_load_explicit(&shared->float_mode, memory_order_relaxed);
        int limit = atomic_load_explicit(&shared->limit, memory_order_relaxed);
        if (number > limit)
            return took;
        int64_t task = run_start(tasks, limit + 1, run + 1) - (int64_t)(ticket & TASK_MASK);
        if (!atomic_compare_exchange_weak_explicit(at, &ticket, ticket - 1, memory_order_acq_rel, memory_order_acquire))
            continue;
        if (number > 0 && !took)
            atomic_store_explicit(&shared->cpu[number], sched_getcpu(), memory_order_relaxed);
        rung_float_mode_set(float_mode);
        fn(job, task, pool->slots[number].floats);
        atomic_fetch_add_explicit(&shared->done, 1, memory_order_release);
        took = 1;
        ticket = atomic_load_explicit(at, memory_order_acquire);
    }
    return took;
}

/* Takes the tasks of its own run, then what is left of the others'. */
static int work(shared_job *shared, int number)
{
    int runs = atomic_load_explicit(&shared->limit, memory_order_acquire) + 1, took = 0;
    if (number >= runs)
        return 0;
    for (int i = 0; i < runs; i++)
        took |= work_on(shared, (number + i) % runs, number);
    return took;
}

static int has_work(int number)
{
    int runs = atomic_load_explicit(&crew.job.limit, memory_order_acquire) + 1;
    for (int run = 0; run < runs && number < runs; run++)
        if (atomic_load_explicit(&crew.job.run[run].ticket, memory_order_acquire) & TASK_MASK)
            return 1;
    return 0;
}

/* Workers sleep on one futex, each under a bit of its own as far as there are bits. */
static uint32_t bit_of(int number)
{
    return (uint32_t)1 << number % 32;
}

static void sleep_until_woken(int number)
{
    uint32_t seen = atomic_load(&crew.wake);
    atomic_fetch_add(&crew.sleepers, 1);
    if (!has_work(number) && !atomic_load(&crew.stop))
        syscall(SYS_futex, &crew.wake, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, bit_of(number));
    atomic_fetch_sub(&crew.sleepers, 1);
}

/* Moves to another CPU where there is one. The system may wake a worker on the caller's CPU, when threads of others
 * spin on the rest: there it would take turns with the caller, elsewhere with one that only spins. */
static void leave_callers_cpu(void)
{
    cpu_set_t allowed, others;
    int here = sched_getcpu();
    if (here != atomic_load_explicit(&crew.caller_cpu, memory_order_relaxed) ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

/* A worker spins after a job as long as it would have had to for this job; where that was too long, only for a moment:
 * other threads may want the CPU, those of another BLAS as well. It does not spin at all where its caller is. */
static int spins_after(double gap_us)
{
    if (sched_getcpu() == atomic_load_explicit(&crew.caller_cpu, memory_order_relaxed))
        return 0;
    return gap_us < SPIN_US ? WORKER_SPINS : BRIEF_SPINS;
}

/* A worker spins for the next job. While this one goes on no other comes, and its caller may be at waking workers yet:
 * on a machine that shares its processors with others that has taken five times as long as the work. */
static void spin(int *spins, int *job_spins)
{
    if (*job_spins > 0 && atomic_load_explicit(&crew.is_working, memory_order_relaxed))
        (*job_spins)--;
    else
        (*spins)--;
    pause_cpu();
}

static void *worker(void *argument)
{
    int number = (int)(intptr_t)argument, spins = 0, job_spins = 0;
    double ended_us = 0.0;
    while (!atomic_load_explicit(&crew.stop, memory_order_acquire)) {
        if (has_work(number)) {
            double gap_us = time_us() - ended_us;
            if (work(&crew.job, number))
                spins = spins_after(gap_us);
            job_spins = JOB_SPINS;
            ended_us = time_us();
        } else if (spins > 0) {
            spin(&spins, &job_spins);
        } else {
            sleep_until_woken(number);
            if (has_work(number))
                leave_callers_cpu();
            else
                spins = spins_after(SPIN_US); /* it comes too late for this job, and stays a moment for the next */
        }
    }
    return NULL;
}

/* Starts one more worker. The thread that has taken the crew calls this. */
static int start_worker(void)
{
    int workers = atomic_load(&crew.workers);
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&crew.thread[workers], NULL, worker, (void *)(intptr_t)(workers + 1));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        atomic_store(&crew.workers, workers + 1);
    return !failed;
}

static void forget_parents_workers(void)
{
    unsigned now = atomic_load(&process_generation);
    if (atomic_load(&crew.generation) == now)
        return;
    atomic_store(&crew.generation, now);
    atomic_store(&crew.workers, 0);
    for (int run = 0; run < MAX_THREADS; run++)
        atomic_store(&crew.job.run[run].ticket, 0);
    atomic_store(&crew.sleepers, 0);
}

/* Wakes workers 1 ... count; returns whether anybody slept. There may be others, which the job has no run for: woken in
 * their place, they would leave the caller alone with all the tasks. */
static int wake_workers(int count)
{
    uint32_t bits = count < 31 ? (((uint32_t)1 << count) - 1) << 1 : UINT32_MAX;
    atomic_fetch_add(&crew.wake, 1);
    if (atomic_load(&crew.sleepers) == 0)
        return 0;
    syscall(SYS_futex, &crew.wake, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
    return 1;
}

/* Returns whether jobs go to the caller's threads now. */
static int has_team(const rung_pool *pool, double now_us)
{
    return pool->team && is_asked(&pool->with_team, now_us);
}

static int is_hot(const rung_pool *pool, double now_us)
{
    if (has_team(pool, now_us))
        return now_us - pool->team_hot_us < TEAM_SPIN_US;
    return atomic_load_explicit(&crew.workers, memory_order_relaxed) > 0 &&
           atomic_load_explicit(&crew.sleepers, memory_order_relaxed) == 0;
}

double rung_pool_least_share_us(rung_pool *pool, double work_us)
{
    double now_us = time_us();
    pool->close_us = work_us + (now_us - pool->called_us < SPIN_US ? pool->close_us : 0.0);
    pool->called_us = now_us;
    if (is_hot(pool, now_us))
        return SHARE_OF_SPINNER_US;
    if (!is_asked(&pool->with_sleepers, now_us))
        return SHARE_OF_LATE_US;
    return pool->close_us >= TOGETHER_US ? SHARE_OF_SPINNER_US : SHARE_OF_SLEEPER_US;
}

/* Returns whether any worker took a task of the job. */
static int has_helped(int threads)
{
    for (int i = 1; i < threads; i++)
        if (atomic_load_explicit(&crew.job.cpu[i], memory_order_relaxed) >= 0)
            return 1;
    return 0;
}

/* Returns whether a worker of the job shares the caller's CPU: the system puts it there where other threads spin on all
 * others. */
static int has_worker_here(int threads)
{
    int here = sched_getcpu();
    for (int i = 1; i < threads; i++)
        if (atomic_load_explicit(&crew.job.cpu[i], memory_order_relaxed) == here)
            return 1;
    return 0;
}

static void wait_for(int64_t tasks, int threads)
{
    for (int spins = 0; atomic_load_explicit(&crew.job.done, memory_order_acquire) < tasks; spins++)
        if (spins < CALLER_SPINS && !has_worker_here(threads))
            pause_cpu();
        else
            sched_yield();
}

static void run_alone(rung_pool *pool, int64_t tasks, rung_task_fn fn, void *job)
{
    for (int64_t task = 0; task < tasks; task++)
        fn(job, task, pool->slots[0].floats);
}

/* Notes whether woken workers came in time. Several jobs may follow while one is on its way. */
static void note_wake(rung_pool *pool, int woke, int helped)
{
    if (helped) {
        pool->wake_us = 0.0;
        note_help(&pool->with_sleepers, 1);
    } else if (woke) {
        double now_us = time_us();
        if (pool->wake_us > 0.0 && now_us - pool->wake_us > WAKE_US)
            note_help(&pool->with_sleepers, 0);
        if (pool->wake_us == 0.0 || now_us - pool->wake_us > WAKE_US)
            pool->wake_us = now_us;
    }
}

static void run_with_crew(rung_pool *pool, int threads, int64_t tasks, rung_task_fn fn, void *job)
{
    atomic_store_explicit(&crew.is_working, 1, memory_order_relaxed);
    deal(&crew.job, pool, ++crew.job_number, threads, tasks, fn, job);
    atomic_store_explicit(&crew.caller_cpu, sched_getcpu(), memory_order_relaxed);
    int woke = wake_workers(threads - 1);
    work(&crew.job, 0);
    wait_for(tasks, threads);
    note_wake(pool, woke, has_helped(threads));
    atomic_store_explicit(&crew.is_working, 0, memory_order_relaxed);
}

typedef struct team_job {
    shared_job shared;
    const rung_team *team;
    double start_us;
    _Atomic int came, late; /* threads beside the caller, and those of them that were not there at once */
} team_job;

static void work_in_team(void *data)
{
    team_job *t = data;
    int number = t->team->number();
    if (number > 0) {
        atomic_fetch_add_explicit(&t->came, 1, memory_order_relaxed);
        if (time_us() - t->start_us > TEAM_LATE_US)
            atomic_fetch_add_explicit(&t->late, 1, memory_order_relaxed);
    }
    const uint64_t before = rung_float_mode();
    work(&t->shared, number);
    rung_float_mode_set(before); /* the thread is the program's */
}

/* The team may come with fewer threads than it was asked for; those that are there take all tasks. If all were late
 * although they had a job a moment ago, they sleep as soon as they have none: then Rung's own workers, which spin for
 * the next, are better, and nobody is in their way. */
static void run_in_team(rung_pool *pool, int threads, int64_t tasks, rung_task_fn fn, void *job)
{
    team_job t;
    t.team = pool->team;
    deal(&t.shared, pool, 1, threads, tasks, fn, job);
    atomic_init(&t.came, 0);
    atomic_init(&t.late, 0);
    t.start_us = time_us();
    int is_close = t.start_us - pool->team_end_us < SPIN_US;
    t.team->run(work_in_team, &t, (unsigned)threads, 0);
    pool->team_end_us = time_us();
    pool->team_hot_us = t.late ? 0.0 : pool->team_end_us;
    if (is_close || t.late < t.came)
        note_help(&pool->with_team, t.late < t.came || !t.came);
}

void rung_pool_use_team(rung_pool *pool, const rung_team *team)
{
    pool->team = team;
}

void rung_pool_run(rung_pool *pool, int threads, int64_t tasks, rung_task_fn fn, void *job)
{
    if (threads > tasks)
        threads = (int)tasks;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > 1 && has_team(pool, time_us())) {
        run_in_team(pool, threads, tasks, fn, job);
        return;
    }
    if (threads <= 1 || atomic_flag_test_and_set_explicit(&crew.taken, memory_order_acquire)) {
        run_alone(pool, tasks, fn, job);
        return;
    }
    forget_parents_workers();
    while (atomic_load(&crew.workers) < threads - 1 && start_worker())
        ;
    if (atomic_load(&crew.workers) > 0)
        run_with_crew(pool, threads, tasks, fn, job);
    else
        run_alone(pool, tasks, fn, job);
    atomic_flag_clear_explicit(&crew.taken, memory_order_release);
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

/* Lets the address sanitizer see who goes behind what was asked for, although the memory goes on. */
static void lend(const slot *s, int64_t floats)
{
    ASAN_UNPOISON_MEMORY_REGION(s->floats, (size_t)floats * sizeof(float));
    ASAN_POISON_MEMORY_REGION(s->floats + floats, (size_t)(s->capacity - floats) * sizeof(float));
}

int rung_pool_reserve(rung_pool *pool, int slots, int64_t floats)
{
    for (int i = 0; i < slots && i < MAX_THREADS; i++) {
        slot *s = &pool->slots[i];
        if (s->capacity < floats) {
            free(s->floats);
            s->floats = allocate(floats);
            s->capacity = s->floats ? floats : 0;
            if (!s->floats)
                return 0;
        }
        lend(s, floats);
    }
    return 1;
}

float *rung_pool_workspace(rung_pool *pool, int number)
{
    return pool->slots[number].floats;
}

/* No pool is left, so nobody can have taken the crew. */
static void dismiss_crew(void)
{
    int workers = atomic_load(&crew.workers);
    if (atomic_load(&crew.generation) != atomic_load(&process_generation) || workers == 0)
        return;
    atomic_store(&crew.stop, 1);
    wake_workers(INT_MAX);
    for (int i = 0; i < workers; i++)
        pthread_join(crew.thread[i], NULL);
    atomic_store(&crew.workers, 0);
    atomic_store(&crew.stop, 0);
}

void rung_pool_destroy(rung_pool *pool)
{
    if (!pool)
        return;
    lock_pools();
    if (--pools == 0)
        dismiss_crew();
    unlock_pools();
    for (int i = 0; i < MAX_THREADS; i++)
        free(pool->slots[i].floats);
    free(pool);
}
