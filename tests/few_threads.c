/* Preloaded: only so many threads can be started as FEW_THREADS says, and none after those. Who waits for a thread that
 * was not started ends here: the C library may forgive it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static _Atomic pthread_t started[MOST];
static atomic_int asked;

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *argument)
{
    const char *most = getenv("FEW_THREADS");
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const int number = atomic_fetch_add(&asked, 1);
    if (!most || number >= atoi(most) || number >= MOST)
        return EAGAIN;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    const int result = real(thread, attributes, run, argument);
    started[number] = result == 0 ? *thread : 0;
    return result;
}

__attribute__((visibility("default"))) int pthread_join(pthread_t thread, void **value)
{
    int (*real)(pthread_t, void **), known = 0;
    for (int i = 0; i < MOST; i++)
        known |= thread && started[i] == thread;
    if (!known) {
        fprintf(stderr, "a thread is waited for that was not started\n");
        abort();
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_join");
    return real(thread, value);
}
