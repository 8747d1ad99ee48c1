/* The BLAS drop-in in a program that loads it twice, or unloads it.
 * usage: test_twice LIBRUNG_BLAS COPY_OF_IT OTHER_BLAS */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COLUMN = 102, N = 111 };

typedef void routine(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

static float call(routine *sgemm)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[64] = {0};
    sgemm(COLUMN, N, N, 2, 2, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
    return c[3];
}

static routine *open_one(const char *library, void **handle)
{
    routine *sgemm;
    *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    *(void **)&sgemm = *handle ? dlsym(*handle, "cblas_sgemm") : NULL;
    if (!sgemm)
        fprintf(stderr, "%s: %s\n", library, dlerror()), exit(2);
    return sgemm;
}

static pthread_barrier_t step;

static void *call_and_wait(void *sgemm)
{
    const float is = call(*(routine **)sgemm);
    pthread_barrier_wait(&step); /* it has been called: the library is closed now */
    pthread_barrier_wait(&step);
    return is == 4.0f ? sgemm : NULL; /* and the thread ends, which gives back its context */
}

static int is_closed_under_a_thread(const char *library)
{
    void *handle, *right;
    pthread_t thread;
    routine *sgemm = open_one(library, &handle);
    if (pthread_barrier_init(&step, NULL, 2) || pthread_create(&thread, NULL, call_and_wait, &sgemm))
        return 2;
    pthread_barrier_wait(&step);
    dlclose(handle);
    pthread_barrier_wait(&step);
    pthread_join(thread, &right);
    return right == NULL;
}

/* Neither copy may take the other one for another BLAS: each would call the other without end. */
static int is_there_twice(const char *library, const char *copy, const char *other)
{
    void *handles[3];
    setenv("RUNG_DISABLE", "1", 1);
    routine *first = open_one(library, &handles[0]), *second = open_one(copy, &handles[1]);
    if (first == second)
        return 2;
    if (!other) { /* which ends the program with a sentence */
        call(first);
        return 1;
    }
    handles[2] = dlopen(other, RTLD_NOW | RTLD_LOCAL);
    return !handles[2] || call(first) != 2.0f || call(second) != 2.0f; /* ldc, which the other one says */
}

/* Runs one of them in a process of its own; returns what waitpid() tells of it, and puts what it says there. */
static int apart(const char *library, const char *copy, const char *other, char said[512])
{
    int out[2], status = -1;
    size_t at = 0;
    if (pipe(out))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 2);
        _exit(copy ? is_there_twice(library, copy, other) : is_closed_under_a_thread(library));
    }
    close(out[1]);
    for (ssize_t got; at < 511 && (got = read(out[0], said + at, 511 - at)) > 0;)
        at += (size_t)got;
    said[at] = 0;
    close(out[0]);
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    char said[512];
    int failed = 0, status;
    if (argc != 4)
        return 2;
    if ((status = apart(argv[1], NULL, NULL, said)) != 0)
        failed = printf("a thread that ends after the library was closed: status %d: %s\n", status, said);
    if ((status = apart(argv[1], argv[2], argv[3], said)) != 0)
        failed = printf("two copies beside another BLAS: status %d: %s\n", status, said);
    status = apart(argv[1], argv[2], NULL, said);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, "no other BLAS is loaded"))
        failed = printf("two copies and no other BLAS: status %d: %s\n", status, said);
    return failed != 0;
}
