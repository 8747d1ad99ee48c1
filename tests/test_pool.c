/* The process's workers: each task runs once, on as many threads as were asked for, in every call and not only in the
 * first one; workspaces are each slot's own, aligned, and kept. Tasks that wait for each other show who runs at once.
 */
#define _GNU_SOURCE
#include "cpu/pool.h"

#include <dlfcn.h>
#include <fenv.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_THREADS = 6, MOST_TASKS = 1000, PATIENCE_S = 200 };

/* Where a test sets it, the clock stands there until it is moved. */
static _Atomic double clock_us;

int clock_gettime(clockid_t which, struct timespec *t)
{
    static int (*next)(clockid_t, struct timespec *);
    if (clock_us > 0.0 && which == CLOCK_MONOTONIC) {
        *t = (struct timespec){(time_t)(clock_us * 1e-6), (long)(clock_us * 1e3) % 1000000000};
        return 0;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    return next(which, t);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct meeting {
    int wanted;                /* threads that have to be inside a task at once */
    atomic_int inside, missed; /* missed: tasks that have waited in vain */
    atomic_int ran[MOST_TASKS];
    _Atomic(uintptr_t) workspace[MOST_TASKS];
} meeting;

/* Jobs of many threads and of two in turn, while one of the many is stopped for a moment wherever it is. */
typedef struct turns {
    rung_pool *pool;
    float *of_the_two[2]; /* their workspaces */
    atomic_int strangers, is_over;
    _Atomic(pthread_t) third;
} turns;

static void brief_task(void *job, int64_t task, float *workspace)
{
    turns *t = job;
    (void)task;
    if (workspace != t->of_the_two[0] && workspace != t->of_the_two[1])
        t->third = pthread_self();
}

static void task_of_two(void *job, int64_t task, float *workspace)
{
    turns *t = job;
    (void)task;
    t->strangers += workspace != t->of_the_two[0] && workspace != t->of_the_two[1];
    for (const double end_s = now_s() + 20e-6; now_s() < end_s;)
        continue;
}

static void stay(int signal)
{
    const struct timespec moment = {0, 150000};
    (void)signal;
    nanosleep(&moment, NULL);
}

static void *stop_the_third(void *argument)
{
    turns *t = argument;
    const struct timespec between = {0, 50000};
    while (!t->is_over) {
        if (t->third)
            pthread_kill(t->third, SIGUSR2);
        nanosleep(&between, NULL);
    }
    return NULL;
}

/* A worker that was stopped between two tasks of a job finds the next one's, which may want fewer threads. */
static void nobody_comes_who_is_not_wanted(void **state)
{
    (void)state;
    static turns t;
    pthread_t other;
    struct sigaction action = {.sa_handler = stay}, before;
    t.pool = rung_pool_create();
    assert_non_null(t.pool);
    assert_true(rung_pool_reserve(t.pool, 4, 16));
    for (int slot = 0; slot < 2; slot++)
        t.of_the_two[slot] = rung_pool_workspace(t.pool, slot);
    sigaction(SIGUSR2, &action, &before);
    assert_int_equal(pthread_create(&other, NULL, stop_the_third, &t), 0);
    const double end_s = now_s() + 6.0;
    for (int round = 0; round < 6000 && !t.strangers && now_s() < end_s; round++) {
        rung_pool_run(t.pool, 4, 5000, brief_task, &t);
        rung_pool_run(t.pool, 2, 40, task_of_two, &t);
    }
    t.is_over = 1;
    pthread_join(other, NULL);
    rung_pool_destroy(t.pool);
    sigaction(SIGUSR2, &before, NULL);
    assert_int_equal(t.strangers, 0);
}

/* Stays until as many tasks as are wanted have begun. */
static void meet(void *job, int64_t task, float *workspace)
{
    meeting *m = job;
    const double end_s = now_s() + PATIENCE_S;
    m->ran[task]++;
    m->workspace[task] = (uintptr_t)workspace;
    m->inside++;
    while (m->inside < m->wanted && now_s() < end_s)
        sched_yield();
    if (m->inside < m->wanted)
        m->missed++;
}

/* A call of so many threads, with as many tasks that wait for each other and others behind them. */
static void run_once(rung_pool *pool, int threads, int64_t tasks)
{
    static meeting m;
    memset(&m, 0, sizeof m);
    m.wanted = tasks < threads ? (int)tasks : threads;
    rung_pool_run(pool, threads, tasks, meet, &m);
    for (int64_t t = 0; t < tasks; t++)
        if (m.ran[t] != 1)
            fail_msg("task %d of %d ran %d times", (int)t, (int)tasks, m.ran[t]);
    if (m.missed)
        fail_msg("%d threads were asked for; %d of %d tasks found fewer", threads, m.missed, (int)tasks);
    for (int64_t t = 0; t < tasks; t++) {
        int slot = 0;
        while (slot < m.wanted && (uintptr_t)rung_pool_workspace(pool, slot) != m.workspace[t])
            slot++;
        assert_true(slot < m.wanted);
        for (int64_t u = 0; u < t && tasks <= threads; u++) /* all were inside at once */
            assert_true(m.workspace[u] != m.workspace[t]);
    }
}

static rung_pool *new_pool(int slots)
{
    rung_pool *pool = rung_pool_create();
    assert_non_null(pool);
    assert_int_equal(rung_pool_reserve(pool, slots, 100), 1);
    return pool;
}

static void every_call_has_its_threads(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(MOST_THREADS);
    static const int64_t tasks[] = {1, 2, 3, 4, 5, 6, 7, 13, 64, 1000};
    for (int round = 0; round < 3; round++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) /* more and fewer than in the call before */
            for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
                run_once(pool, round == 1 ? MOST_THREADS + 1 - threads : threads, tasks[i]);
    rung_pool_destroy(pool);
}

static void pools_come_and_go(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        rung_pool *one = new_pool(3), *other = new_pool(3);
        run_once(one, 3, 5);
        run_once(other, 2, 5);
        rung_pool_destroy(one);
        run_once(other, 3, 3); /* the workers are not the first pool's */
        rung_pool_destroy(other);
        rung_pool_destroy(NULL);
    }
}

/* ---- the last pool's end: pthread_join() stands here ---- */

static atomic_int looks_for_pool, asks_for_pool, has_pool, had_pool_too_early;

static void *ask_for_pool(void *pool)
{
    asks_for_pool = 1;
    *(rung_pool **)pool = rung_pool_create();
    has_pool = 1;
    return NULL;
}

static pthread_t asking;
static rung_pool *asked;

/* While a worker is waited for another thread wants a pool: it has to wait until all are gone. */
int pthread_join(pthread_t thread, void **result)
{
    int (*next)(pthread_t, void **);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_join");
    if (atomic_exchange(&looks_for_pool, 0) && pthread_create(&asking, NULL, ask_for_pool, &asked) == 0) {
        while (!asks_for_pool)
            sched_yield();
        for (int i = 0; i < 50 && !has_pool; i++)
            usleep(1000);
        had_pool_too_early = has_pool;
    }
    return next(thread, result);
}

static void nobody_has_a_pool_while_workers_are_dismissed(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(3);
    run_once(pool, 3, 9);
    looks_for_pool = 1;
    rung_pool_destroy(pool);
    assert_int_equal(looks_for_pool, 0); /* it had workers, and they were waited for */
    pthread_join(asking, NULL);
    assert_int_equal(had_pool_too_early, 0);
    assert_int_equal(rung_pool_reserve(asked, 3, 100), 1);
    run_once(asked, 3, 9);
    rung_pool_destroy(asked);
}

/* Returns whether those who would share a job spin now: only then is a share worth it that is so short. */
static int is_hot(rung_pool *pool)
{
    enum { SHARE_OF_SPINNER_US = 2 };
    return rung_pool_least_share_us(pool, 0.0) <= SHARE_OF_SPINNER_US;
}

static void sleepers_wake(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(3);
    for (int i = 0; i < 5; i++) {
        run_once(pool, 3, 9);
        const double end_s = now_s() + PATIENCE_S;
        while (is_hot(pool) && now_s() < end_s)
            usleep(2000); /* far longer than a worker spins */
        assert_int_equal(is_hot(pool), 0);
    }
    rung_pool_destroy(pool);
}

static void expect_child_works(rung_pool *pool)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(1000);
        run_once(pool, 2, 9);
        run_once(pool, 2, 2);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_child_has_workers_of_its_own(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(3);
    expect_child_works(pool);
    run_once(pool, 3, 9);
    expect_child_works(pool);
    run_once(pool, 3, 9); /* the parent's are still there */
    rung_pool_destroy(pool);
}

/* While one caller has the workers another one works alone, and finds them free afterwards. */
static atomic_int holders, second_is_done;

static void add_task(void *job, int64_t task, float *workspace)
{
    (void)workspace;
    atomic_fetch_add((atomic_llong *)job, task + 1);
}

/* A task may be a line of a matrix: a job has millions of them, each of which is run once. */
static void a_job_may_have_millions_of_tasks(void **state)
{
    (void)state;
    rung_pool *pool = rung_pool_create();
    for (int threads = 1; threads <= 2; threads++) {
        const int64_t tasks = ((int64_t)1 << 22) + 5;
        atomic_llong sum = 0;
        rung_pool_run(pool, threads, tasks, add_task, &sum);
        assert_true(sum == tasks * (tasks + 1) / 2);
    }
    rung_pool_destroy(pool);
}

static void hold(void *job, int64_t task, float *workspace)
{
    (void)job, (void)task, (void)workspace;
    holders++;
    const double end_s = now_s() + PATIENCE_S;
    while (!second_is_done && now_s() < end_s)
        sched_yield();
}

static void *hold_the_workers(void *pool)
{
    rung_pool_run(pool, 2, 2, hold, NULL);
    return NULL;
}

static void two_callers_do_not_wait_for_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        rung_pool *one = new_pool(2), *other = new_pool(2);
        static meeting m;
        memset(&m, 0, sizeof m);
        holders = second_is_done = 0;
        assert_int_equal(pthread_create(&thread, NULL, hold_the_workers, one), 0);
        while (holders < 2) /* a fork while a thread begins leaves the child a sanitizer's lock that nobody opens */
            sched_yield();
        m.wanted = 1;
        const double begin_s = now_s();
        rung_pool_run(other, 2, 4, meet, &m);
        for (int t = 0; t < 4; t++) {
            assert_int_equal(m.ran[t], 1);
            assert_int_equal(m.workspace[t], (uintptr_t)rung_pool_workspace(other, 0));
        }
        assert_true(now_s() - begin_s < PATIENCE_S / 2);
        expect_child_works(other); /* where nobody holds the workers that the parent has not */
        second_is_done = 1;
        pthread_join(thread, NULL);
        run_once(other, 2, 2);
        rung_pool_destroy(one);
        rung_pool_destroy(other);
    }
}

static void workspaces_are_apart_and_kept(void **state)
{
    (void)state;
    rung_pool *pool = rung_pool_create();
    static const int64_t sizes[] = {1, 15, 16, 17, 1000, 999, 600000, 524288, 2000000, 100};
    int64_t largest = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *before[3], *now[3];
        for (int s = 0; s < 3; s++)
            before[s] = rung_pool_workspace(pool, s);
        assert_int_equal(rung_pool_reserve(pool, 3, sizes[i]), 1);
        for (int s = 0; s < 3; s++) {
            now[s] = rung_pool_workspace(pool, s);
            assert_non_null(now[s]);
            assert_int_equal((uintptr_t)now[s] % 64, 0);
            if (sizes[i] <= largest)
                assert_ptr_equal(now[s], before[s]);
            for (int64_t f = 0; f < sizes[i]; f++)
                now[s][f] = (float)s;
        }
        for (int s = 0; s < 3; s++)
            for (int64_t f = 0; f < sizes[i]; f++)
                assert_true(now[s][f] == (float)s);
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which end the program there */
    assert_int_equal(rung_pool_reserve(pool, 1, INT64_MAX / 8), 0); /* there is not so much */
#endif
    assert_int_equal(rung_pool_reserve(pool, 3, 100), 1);
    rung_pool_destroy(pool);
}

/* Returns 1 where this thread rounds up, -1 where it rounds down, 0 where it rounds to nearest. */
static int rounding(void)
{
    const volatile float one = 1.0f, little = 0x1p-40f;
    const volatile float more = one + little, less = one - little;
    return (more > 1.0f) - (less < 1.0f);
}

/* A stand-in for OpenMP: real threads, of which as many come as it is told, some of them late. They round down. */
static _Thread_local int team_number;
static int team_most, team_is_late;
static atomic_int team_teams, team_was_changed;

typedef struct team_member {
    void (*fn)(void *);
    void *data;
    int number;
} team_member;

static void *run_team_member(void *argument)
{
    const team_member *m = argument;
    team_number = m->number;
    if (team_is_late)
        usleep(2000);
    fesetround(FE_DOWNWARD);
    m->fn(m->data);
    team_was_changed += rounding() != -1;
    return NULL;
}

static void run_team(void (*fn)(void *), void *data, unsigned threads, unsigned flags)
{
    pthread_t thread[MOST_THREADS];
    team_member member[MOST_THREADS];
    int started = 1;
    (void)flags;
    team_teams++;
    for (; started < (int)threads && started < team_most; started++) {
        member[started] = (team_member){fn, data, started};
        if (pthread_create(&thread[started], NULL, run_team_member, &member[started]))
            fail_msg("thread %d of a team did not start", started);
    }
    fn(data);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
}

static int number_in_team(void)
{
    return team_number;
}

static const rung_team team = {.run = run_team, .number = number_in_team};

static void a_team_does_the_work(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(MOST_THREADS);
    static const int64_t tasks[] = {1, 2, 3, 5, 6, 7, 64, 1000};
    team_most = MOST_THREADS;
    rung_pool_use_team(pool, &team);
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
            const int before = team_teams;
            usleep(300); /* jobs that follow closely would show that this team's threads do not wait for them */
            run_once(pool, threads, tasks[i]);
            assert_int_equal(team_teams - before, threads > 1 && tasks[i] > 1);
        }
    rung_pool_use_team(pool, NULL);
    const int before = team_teams;
    run_once(pool, 3, 9);
    assert_int_equal(team_teams, before);
    rung_pool_destroy(pool);
}

typedef struct rounded {
    meeting meeting;
    int as[MOST_THREADS];
} rounded;

static void note_rounding(void *job, int64_t task, float *workspace)
{
    rounded *r = job;
    meet(&r->meeting, task, workspace);
    r->as[task] = rounding();
}

/* All threads compute as the caller does, whoever started them. A team's thread goes on as it was. */
static void all_round_as_the_caller_does(void **state)
{
    (void)state;
    static const struct {
        int mode, is;
    } modes[] = {{FE_UPWARD, 1}, {FE_TONEAREST, 0}, {FE_DOWNWARD, -1}, {FE_TONEAREST, 0}};
    for (int with_team = 0; with_team < 2; with_team++) {
        rung_pool *pool = new_pool(MOST_THREADS); /* workers start, and end with it */
        team_most = MOST_THREADS;
        rung_pool_use_team(pool, with_team ? &team : NULL);
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            static rounded r;
            memset(&r, 0, sizeof r);
            r.meeting.wanted = MOST_THREADS;
            fesetround(modes[i].mode);
            rung_pool_run(pool, MOST_THREADS, MOST_THREADS, note_rounding, &r);
            fesetround(FE_TONEAREST);
            assert_int_equal(r.meeting.missed, 0);
            for (int t = 0; t < MOST_THREADS; t++)
                assert_int_equal(r.as[t], modes[i].is);
            usleep(300);
        }
        rung_pool_destroy(pool);
    }
    assert_int_equal(team_was_changed, 0);
}

static void count_task(void *job, int64_t task, float *workspace)
{
    (void)workspace;
    ((atomic_int *)job)[task]++;
}

static void a_small_team_does_all_tasks(void **state)
{
    (void)state;
    rung_pool *pool = new_pool(MOST_THREADS);
    rung_pool_use_team(pool, &team);
    for (team_most = 1; team_most <= 3; team_most++) {
        static atomic_int ran[MOST_TASKS];
        memset(ran, 0, sizeof ran);
        rung_pool_run(pool, MOST_THREADS, MOST_TASKS, count_task, ran);
        for (int t = 0; t < MOST_TASKS; t++)
            assert_int_equal(ran[t], 1);
    }
    rung_pool_destroy(pool);
}

/* A team is hot for a while after a job that all its threads came to at once. */
static void a_team_cools_down(void **state)
{
    (void)state;
    static atomic_int ran[2];
    int was_hot = 0;
    rung_pool *pool = new_pool(2);
    rung_pool_use_team(pool, &team);
    assert_int_equal(is_hot(pool), 0);
    team_most = 1; /* the caller alone, who is not late */
    for (int i = 0; i < 1000 && !was_hot; i++) {
        rung_pool_run(pool, 2, 2, count_task, ran);
        was_hot = is_hot(pool);
    }
    assert_int_equal(was_hot, 1);
    usleep(3000);
    assert_int_equal(is_hot(pool), 0);
    team_most = 2;
    team_is_late = 1;
    rung_pool_run(pool, 2, 2, count_task, ran);
    assert_int_equal(is_hot(pool), 0);
    team_is_late = 0;
    rung_pool_destroy(pool);
}

enum { MANY_JOBS = 2000 };

/* An OpenMP that is told not to spin: its threads come late to each job however close it follows. It gets no more jobs
 * after a few, until some time has passed; the pool's own workers do them. */
static void a_team_that_sleeps_is_left_alone(void **state)
{
    (void)state;
    static atomic_int ran[MOST_TASKS];
    rung_pool *pool = new_pool(2);
    rung_pool_use_team(pool, &team);
    team_most = 2;
    team_is_late = 1;
    int teams = team_teams, jobs = 0;
    for (int before = -1; jobs < MANY_JOBS && before != team_teams; jobs++) {
        before = team_teams;
        memset(ran, 0, sizeof ran);
        rung_pool_run(pool, 2, MOST_TASKS, count_task, ran);
        for (int t = 0; t < MOST_TASKS; t++)
            assert_int_equal(ran[t], 1);
    }
    assert_in_range(jobs, 4, MANY_JOBS - 1); /* once or twice may be chance */
    assert_int_equal(team_teams - teams, jobs - 1);
    team_is_late = 0;
    team_most = 1;  /* the caller alone, who is not late */
    usleep(150000); /* longer than any rest */
    teams = team_teams;
    for (int i = 0; i < 10; i++)
        rung_pool_run(pool, 2, 2, count_task, ran);
    assert_int_equal(team_teams - teams, 10);
    rung_pool_destroy(pool);
}

/* Jobs that lie apart wake the team each time: that says nothing about what it does between close ones. */
static void a_team_that_is_seldom_asked_is_not_left_alone(void **state)
{
    (void)state;
    static atomic_int ran[2];
    rung_pool *pool = new_pool(2);
    rung_pool_use_team(pool, &team);
    team_most = 2;
    team_is_late = 1;
    const int teams = team_teams;
    for (int i = 0; i < 10; i++) {
        usleep(300);
        rung_pool_run(pool, 2, 2, count_task, ran);
    }
    assert_int_equal(team_teams - teams, 10);
    team_is_late = 0;
    rung_pool_destroy(pool);
}

/* A team of two of which one is always late, by a clock of the test's own. */
static void run_late_team(void (*fn)(void *), void *data, unsigned threads, unsigned flags)
{
    (void)threads, (void)flags;
    team_teams++;
    fn(data);
    clock_us = clock_us + 10.0;
    team_number = 1;
    fn(data);
    team_number = 0;
}

static int teams_of_a_job(rung_pool *pool)
{
    static atomic_int ran[2];
    const int before = team_teams;
    rung_pool_run(pool, 2, 2, count_task, ran);
    return team_teams - before;
}

/* After three failures in a row a team rests, twice as long each time up to a limit, to the microsecond. */
static void a_late_team_rests_longer_each_time(void **state)
{
    (void)state;
    static const rung_team late = {.run = run_late_team, .number = number_in_team};
    static const double rests_us[] = {10000, 20000, 40000, 80000, 100000, 100000};
    rung_pool *pool = new_pool(2);
    rung_pool_use_team(pool, &late);
    clock_us = 1e9;
    for (size_t i = 0; i < sizeof rests_us / sizeof *rests_us; i++) {
        assert_int_equal(teams_of_a_job(pool), 1); /* long after the one before: it says nothing */
        for (int failure = 0; failure < 3; failure++)
            assert_int_equal(teams_of_a_job(pool), 1);
        assert_int_equal(teams_of_a_job(pool), 0);
        clock_us = clock_us + rests_us[i] - 1.0;
        assert_int_equal(teams_of_a_job(pool), 0);
        clock_us = clock_us + 1.0;
    }
    clock_us = 0.0;
    rung_pool_destroy(pool);
}

static int stay_on_one_cpu(cpu_set_t *before)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    return sched_getaffinity(0, sizeof *before, before) == 0 && sched_setaffinity(0, sizeof one, &one) == 0;
}

static int use_policy(int policy)
{
    return sched_setscheduler(0, policy, &(struct sched_param){0}) == 0;
}

/* Jobs of 60 us that follow each other are shared out to workers that sleep. Where these come too late three times in a
 * row - here they have the caller's CPU, and only when it has no work - such jobs are for the caller alone, until some
 * time has passed. */
static void workers_that_come_too_late_are_not_woken(void **state)
{
    (void)state;
    enum { JOB_US = 60, SHARE_MOST_US = 18, WAKE_US = 100 };
    static atomic_int ran[2];
    cpu_set_t before;
    if (!stay_on_one_cpu(&before) || !use_policy(SCHED_IDLE))
        skip();
    rung_pool *pool = new_pool(2);
    run_once(pool, 2, 2); /* the worker begins, at the least priority */
    const double end_s = now_s() + PATIENCE_S;
    while (is_hot(pool) && now_s() < end_s)
        usleep(2000);
    const int is_back = use_policy(SCHED_OTHER);
    double least = 0.0, most = 0.0, start_s = now_s(), until_s = start_s;
    for (int i = 0; is_back && i < MANY_JOBS && most <= SHARE_MOST_US; i++) {
        double share = rung_pool_least_share_us(pool, JOB_US);
        most = share > most ? share : most;
        least = i == 0 || share < least ? share : least;
        until_s = now_s();
        rung_pool_run(pool, 2, 2, count_task, ran);
    }
    usleep(150000); /* longer than any rest */
    const double later = rung_pool_least_share_us(pool, JOB_US);
    sched_setaffinity(0, sizeof before, &before);
    rung_pool_destroy(pool);
    if (!is_back) /* a system may keep who was idle so */
        skip();
    assert_true(least < 3.0);
    if (2.0 * most <= JOB_US)
        fail_msg("workers that never come get shares of %.0f us at most", most);
    assert_true(later < 3.0);
    assert_true(until_s - start_s > 2.0 * WAKE_US * 1e-6); /* one wake may be on its way for several jobs */
}

/* Workers that are woken for each job, and come to it, are woken for the next one, too. */
static void workers_that_come_are_woken_again(void **state)
{
    (void)state;
    enum { JOBS = 12, SHARE_MOST_US = 18 };
    rung_pool *pool = new_pool(2);
    for (int i = 0; i < JOBS; i++) {
        usleep(3000); /* longer than a worker spins */
        const double share = rung_pool_least_share_us(pool, 1.0);
        if (share > SHARE_MOST_US)
            fail_msg("after %d jobs a share is %.0f us", i, share);
        run_once(pool, 2, 2);
    }
    rung_pool_destroy(pool);
}

/* Where a test says so, the caller and the workers believe to be on two CPUs, whatever the system does with them. */
static atomic_int are_apart;
static pthread_t caller;

int sched_getcpu(void)
{
    unsigned cpu = 0;
    if (are_apart)
        return !pthread_equal(pthread_self(), caller);
    return syscall(SYS_getcpu, &cpu, NULL, NULL, 0L, 0L, 0L) == 0 ? (int)cpu : -1; /* syscall() below takes six */
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Of a worker: how long after its last task this one came, and how long it spun after that, in time on its CPU. */
static _Thread_local double ended_cpu_us;
static _Atomic double ended_s, gap_us, spun_us;

/* The worker is the last to end, so that it need not spin for its caller. */
static void meet_and_outlast(void *job, int64_t task, float *workspace)
{
    atomic_int *inside = job;
    const double begun_s = now_s();
    (void)task, (void)workspace;
    ++*inside;
    while (*inside < 2 && now_s() < begun_s + PATIENCE_S)
        continue;
    if (pthread_equal(pthread_self(), caller))
        return;
    for (const double end_s = now_s() + 5e-6; now_s() < end_s;)
        continue;
    gap_us = 1e6 * (begun_s - ended_s);
    ended_s = now_s();
    ended_cpu_us = cpu_us();
}

static const double NO_TRY = 1e9;

/* Returns how long the worker spins after so many jobs, the last of which came soon after the one before, or late: the
 * least of some tries, since the machine has other work too. Where that keeps the caller from its return, for one on
 * the worker's own CPU, the worker takes the job to go on, and the try tells nothing. So does one that waits for a CPU
 * which another program holds: there is an end to tries. NO_TRY: none told anything. */
static double spins_after_jobs(rung_pool *pool, int jobs)
{
    enum { TRIES = 2000, GOOD_TRIES = 20, SOON_US = 50, LATE_US = 1000, BACK_US = 10 };
    double least = NO_TRY;
    const double patience_s = now_s() + 20.0;
    for (int i = 0, good = 0; i < TRIES && good < GOOD_TRIES && now_s() < patience_s; i++) {
        usleep(3000);
        for (int j = 0; j < jobs; j++) {
            atomic_int inside = 0;
            spun_us = -1.0;
            rung_pool_run(pool, 2, 2, meet_and_outlast, &inside);
        }
        const double back_s = now_s();
        usleep(3000);
        const double spun = spun_us;
        if (spun < 0.0 || 1e6 * (back_s - ended_s) > BACK_US || (jobs > 1 ? gap_us > SOON_US : gap_us < LATE_US))
            continue;
        good++;
        least = spun < least ? spun : least;
    }
    return least;
}

/* A worker that has slept before a job does not expect another one soon. */
static void workers_spin_where_it_pays(void **state)
{
    (void)state;
    caller = pthread_self();
    rung_pool *pool = new_pool(2);
    run_once(pool, 2, 2);
    are_apart = 1;
    double alone = spins_after_jobs(pool, 1), together = spins_after_jobs(pool, 20);
    are_apart = 0;
    rung_pool_destroy(pool);
    if (alone == NO_TRY || together == NO_TRY) {
        print_message("the machine has too much other work to see how long the worker spins\n");
        skip();
    }
    if (alone * 4 > together)
        fail_msg("after a job by itself the worker spins %.1f us, after twenty %.1f", alone, together);
}

enum { JOB_TASKS = 2 };

static atomic_int wakes_are_slow, tasks_done, sleeps, windows, windows_slept;

static void count_brief_task(void *job, int64_t task, float *workspace)
{
    const double end_s = now_s() + 20e-6;
    (void)job, (void)task, (void)workspace;
    while (now_s() < end_s)
        continue;
    tasks_done++;
}

/* Waits for the worker to do all tasks, and 300 us more, in which it may or may not go to sleep. */
static void wake_slowly(void)
{
    const double patience_s = now_s() + 0.02;
    while (tasks_done < JOB_TASKS && now_s() < patience_s)
        continue;
    if (tasks_done < JOB_TASKS)
        return;
    const int before = sleeps;
    const double end_s = now_s() + 300e-6;
    while (now_s() < end_s)
        continue;
    windows++;
    windows_slept += sleeps > before;
}

static long (*real_syscall)(long, ...);

/* The pool's calls of the system, in place of the C library's. */
long syscall(long number, ...)
{
    long of[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        of[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!real_syscall)
        *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_futex && (of[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        sleeps++;
        spun_us = cpu_us() - ended_cpu_us;
    }
    long result = real_syscall(number, of[0], of[1], of[2], of[3], of[4], of[5]);
    if (number == SYS_futex && (of[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_BITSET && wakes_are_slow)
        wake_slowly();
    return result;
}

/* Waking takes the caller longer than the worker needs for the whole job: it does not sleep again before the caller is
 * back, whose next job would have to wake it anew. Where the system puts it on the caller's CPU it sleeps at once. */
static void a_worker_stays_while_its_caller_wakes(void **state)
{
    (void)state;
    enum { JOBS = 60 };
    rung_pool *pool = new_pool(2);
    run_once(pool, 2, 2);
    wakes_are_slow = 1;
    for (int i = 0; i < JOBS; i++) {
        usleep(2000); /* longer than a worker spins */
        tasks_done = 0;
        rung_pool_run(pool, 2, JOB_TASKS, count_brief_task, NULL);
    }
    wakes_are_slow = 0;
    rung_pool_destroy(pool);
    if (2 * windows_slept > windows)
        fail_msg("in %d of %d jobs the worker slept while its caller was waking it", windows_slept, windows);
}

/* Others spin on every CPU, and workers sleep in between: some of them wake where the caller is, and move. What they
 * may use stays as it was. */
static atomic_int spinners_end;

static void *spin(void *argument)
{
    (void)argument;
    while (!spinners_end)
        continue;
    return NULL;
}

typedef struct place_seen {
    cpu_set_t allowed[3];
    atomic_int is_seen[3], inside;
} place_seen;

static void see_place(void *job, int64_t task, float *workspace)
{
    place_seen *seen = job;
    const double end_s = now_s() + PATIENCE_S;
    (void)workspace;
    seen->is_seen[task] = sched_getaffinity(0, sizeof seen->allowed[task], &seen->allowed[task]) == 0;
    seen->inside++;
    while (seen->inside < 3 && now_s() < end_s)
        sched_yield();
}

static void workers_keep_their_cpus(void **state)
{
    (void)state;
    enum { SPINNERS = 3, ROUNDS = 20 };
    pthread_t spinners[SPINNERS];
    cpu_set_t mine;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    rung_pool *pool = new_pool(3);
    run_once(pool, 3, 3);
    spinners_end = 0;
    for (int i = 0; i < SPINNERS; i++)
        assert_int_equal(pthread_create(&spinners[i], NULL, spin, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        place_seen seen = {.inside = 0};
        usleep(1000); /* longer than a worker spins */
        rung_pool_run(pool, 3, 3, see_place, &seen);
        for (int i = 0; i < 3; i++)
            assert_true(seen.is_seen[i] && CPU_EQUAL(&seen.allowed[i], &mine));
    }
    spinners_end = 1;
    for (int i = 0; i < SPINNERS; i++)
        pthread_join(spinners[i], NULL);
    rung_pool_destroy(pool);
}

int main(void)
{
    (void)syscall(SYS_getpid, 0, 0, 0, 0, 0, 0); /* finds the C library's while there is one thread */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_its_threads),
        cmocka_unit_test(a_job_may_have_millions_of_tasks),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(nobody_has_a_pool_while_workers_are_dismissed),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(a_child_has_workers_of_its_own),
        cmocka_unit_test(two_callers_do_not_wait_for_each_other),
        cmocka_unit_test(workspaces_are_apart_and_kept),
        cmocka_unit_test(nobody_comes_who_is_not_wanted),
        cmocka_unit_test(workers_keep_their_cpus),
        cmocka_unit_test(workers_spin_where_it_pays),
        cmocka_unit_test(a_worker_stays_while_its_caller_wakes),
        cmocka_unit_test(a_team_does_the_work),
        cmocka_unit_test(all_round_as_the_caller_does),
        cmocka_unit_test(a_small_team_does_all_tasks),
        cmocka_unit_test(a_team_cools_down),
        cmocka_unit_test(a_team_that_sleeps_is_left_alone),
        cmocka_unit_test(a_team_that_is_seldom_asked_is_not_left_alone),
        cmocka_unit_test(a_late_team_rests_longer_each_time),
        cmocka_unit_test(workers_that_come_too_late_are_not_woken),
        cmocka_unit_test(workers_that_come_are_woken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
