/* Work ahead of need: each piece runs once, with all signals blocked, and none is running, or begins, once the process
 * ends: its threads are joined while another thread goes on asking for more. Under the thread sanitizer that also shows
 * whether all share the list of threads in order. */
#define _GNU_SOURCE
#include "cuda/driver/background.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 20, OWN_PIECES = 3 };

static atomic_int begun, ended, open_to_signals, told_to_stop;

/* Works until it is told to stop. */
static void work(void *pieces, const int *stop)
{
    sigset_t blocked;
    begun++;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    open_to_signals += !sigismember(&blocked, SIGTERM);
    ++*(atomic_int *)pieces;
    while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
        sched_yield();
    told_to_stop++;
    ended++;
}

static atomic_int asked_for;

static void *ask_for_more(void *unused)
{
    (void)unused;
    for (;;) {
        rung_background_start(work, &asked_for);
        sched_yield();
    }
    return NULL;
}

/* Runs after the threads have been joined, since it was registered before them. */
static void look(void)
{
    if (begun != ended || told_to_stop != ended || open_to_signals || begun < OWN_PIECES) {
        fprintf(stderr, "%d pieces begun, %d ended, %d of them open to signals\n", begun, ended, open_to_signals);
        _exit(1);
    }
}

static int live(int life)
{
    static atomic_int own;
    pthread_t other;
    atexit(look);
    for (int i = 0; i < OWN_PIECES; i++)
        rung_background_start(work, &own);
    if (pthread_create(&other, NULL, ask_for_more, NULL))
        return 1;
    while (own < OWN_PIECES || asked_for < life % 7) /* some end early, some when all threads are taken */
        sched_yield();
    return 0;
}

int main(void)
{
    int failed = 0;
    for (int life = 0; life < LIVES; life++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(1000);
            exit(live(life));
        }
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            printf("FAILED: life %d ended with status %d\n", life, status);
            failed = 1;
        }
    }
    return failed;
}
