/* Threads that do work ahead of need. They are joined by a handler of atexit(): it runs before those that libcuda
 * registered earlier, so that no thread is inside libcuda while that shuts down. A forked child has none of them. */
#include "cuda/driver/background.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

typedef struct background_thread {
    pthread_t thread;
    rung_background_work *work;
    void *argument;
} background_thread;

static background_thread threads[MOST_THREADS];
static int count, stop;
static pid_t process; /* whose threads they are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *of)
{
    const background_thread *mine = of;
    mine->work(mine->argument, &stop);
    return NULL;
}

static void end_all(void)
{
    if (getpid() != process)
        return;
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
    count = 0;
    pthread_mutex_unlock(&lock);
}

static int may_start(void)
{
    if (process == 0 && atexit(end_all) == 0)
        process = getpid();
    return process == getpid() && count < MOST_THREADS && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

void rung_background_start(rung_background_work *work, void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_lock(&lock);
    if (may_start()) {
        background_thread *mine = &threads[count];
        *mine = (background_thread){.work = work, .argument = argument};
        pthread_sigmask(SIG_SETMASK, &all, &before);
        count += pthread_create(&mine->thread, NULL, run, mine) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
}
