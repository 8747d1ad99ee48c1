/* Preloaded: after fork() the parent goes on a third of a second later than the child, as on a busy machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) pid_t fork(void)
{
    pid_t (*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    const pid_t pid = real();
    if (pid > 0)
        nanosleep(&(struct timespec){.tv_nsec = 333000000}, NULL);
    return pid;
}
