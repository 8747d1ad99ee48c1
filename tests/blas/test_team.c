/* A program that is linked to OpenMP, here a stand-in: its products are shared out to OpenMP's threads, as many as the
 * program lets it have; those of a library that is not are Rung's workers'. The bits are the same.
 * usage: test_team CALLER MKL_LAYER OTHER_LAYER [told | absent], three modules; with OMP_NUM_THREADS=3 and no other
 * variable that counts threads, or `told` and RUNG_NUM_THREADS=2; or `absent`, where libiomp5.so can be found and is
 * not loaded. test_team timeout prints what OpenBLAS would read. */
#include "rung.h"
#include "team/openmp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

enum { COLUMN_MAJOR = 102, NO_TRANS = 111 }; /* CBLAS's */
/* The stand-in's threads do not wait for the next call. Of calls that are so far apart nobody notes it. */
enum { N = 300, OBJECTS_ASKED_AFTER = 8, APART_US = 300 };

static int failed;
static float a[N * N], b[N * N], c[N * N], right[N * N];
static void (*multiply_elsewhere)(int, const float *, const float *, float *);
static void (*multiply_elsewhere_in_c)(int, const float *, const float *, float *);
static rung_status (*make_elsewhere)(rung_context **);

static void multiply_here(void)
{
    const int n = N;
    const float one = 1.0f, zero = 0.0f;
    memset(c, 0xff, sizeof c);
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
}

static void multiply_here_in_c(void)
{
    memset(c, 0xff, sizeof c);
    cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, N, N, N, 1.0f, a, N, b, N, 0.0f, c, N);
    __asm__ volatile(""); /* the call returns to here */
}

/* Other places of this program that call: so many that one of them shares the slot of the call from elsewhere, whatever
 * slots places are kept in. */
#define PLACE(number)                                                                                                  \
    static void multiply_here_##number(void)                                                                           \
    {                                                                                                                  \
        memset(c, 0xff, sizeof c);                                                                                     \
        sgemm_("N", "N", &(const int){N}, &(const int){N}, &(const int){N}, &(const float){1.0f}, a, &(const int){N},  \
               b, &(const int){N}, &(const float){0.0f}, c, &(const int){N});                                          \
        __asm__ volatile("" ::"i"(number)); /* each is code of its own */                                              \
    }
#define NINE(P, tens) P(tens##0) P(tens##1) P(tens##2) P(tens##3) P(tens##4) P(tens##5) P(tens##6) P(tens##7) P(tens##8)
#define PLACES(P) NINE(P, 1) NINE(P, 2) NINE(P, 3) NINE(P, 4)
PLACES(PLACE)

static void multiply_there(void)
{
    memset(c, 0xff, sizeof c);
    multiply_elsewhere(N, a, b, c);
}

static void multiply_there_in_c(void)
{
    memset(c, 0xff, sizeof c);
    multiply_elsewhere_in_c(N, a, b, c);
}

/* Multiplies and looks how many threads OpenMP was asked for; 0: none. */
static void expect(const char *what, int threads, void (*multiply)(void))
{
    const int before = fake_teams;
    usleep(APART_US);
    fake_threads = 0;
    multiply();
    if (fake_threads != threads || (fake_teams > before) != (threads > 0)) {
        fprintf(stderr, "FAILED: %s: OpenMP was asked for %d threads, not %d\n", what, fake_threads, threads);
        failed = 1;
    }
    if (memcmp(c, right, sizeof c) != 0) {
        fprintf(stderr, "FAILED: %s: other bits\n", what);
        failed = 1;
    }
}

static void expect_of_places(void)
{
#define NAME(number) multiply_here_##number,
    static void (*const places[])(void) = {PLACES(NAME)};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        expect("another place here", 3, places[i]);
        expect("elsewhere, after another place", 0, multiply_there);
    }
}

static rung_context *context;

static void multiply_in_context(void)
{
    memset(c, 0xff, sizeof c);
    if (rung_sgemm(context, RUNG_COL_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, N, N, N, 1.0f, a, N, b, N, 0.0f, c, N))
        fprintf(stderr, "FAILED: %s\n", rung_last_error());
}

static void expect_of_contexts(void)
{
    if (rung_context_create(&context, NULL))
        failed = 1;
    expect("a context that was made here", 3, multiply_in_context);
    rung_context_set_threads(context, 2);
    expect("a context of two threads", 2, multiply_in_context);
    fake_most = 1;
    expect("a context of two threads, and OpenMP held to one", 2, multiply_in_context);
    fake_most = 3;
    rung_context_destroy(context);
    if (make_elsewhere(&context))
        failed = 1;
    expect("a context that was made elsewhere", 0, multiply_in_context);
    rung_context_destroy(context);
}

static void expect_in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        failed = 0;
        multiply_there();
        memcpy(right, c, sizeof right);
        expect("in a forked process", 0, multiply_here);
        _exit(failed);
    }
    int status = 1;
    waitpid(child, &status, 0);
    failed |= status != 0;
}

static void expect_of_teams(void)
{
    expect("elsewhere", 0, multiply_there);
    expect("here", 3, multiply_here);
    expect("elsewhere, through CBLAS", 0, multiply_there_in_c);
    expect("here, through CBLAS", 3, multiply_here_in_c);
    expect_of_places();
    fake_most = 2;
    expect("OpenMP held to two", 2, multiply_here);
    fake_most = 1;
    expect("OpenMP held to one", 0, multiply_here);
    rung_process_set_threads(2);
    expect("OpenMP held to one, and Rung told two", 2, multiply_here);
    rung_process_set_threads(0);
    fake_most = 8;
    expect("OpenMP has more than Rung", 3, multiply_here);
    fake_is_inside = 1;
    expect("in a parallel loop", 0, multiply_here);
    fake_is_inside = 0;
    fake_most = 3;
    expect_in_child();
    expect("after the child", 3, multiply_here);
    expect_of_contexts();
    expect("elsewhere, again", 0, multiply_there);
}

static int print_timeout(void)
{
    const char *timeout = getenv("OPENBLAS_THREAD_TIMEOUT");
    puts(timeout ? timeout : "none");
    return 0;
}

/* Multiplies beside an MKL whose OpenMP nobody has loaded; returns whether it is there then. */
static int loads_openmp(const char *other_layer)
{
    static const char openmp[] = "libiomp5.so";
    if (!dlopen(other_layer, RTLD_NOW | RTLD_LOCAL) || dlopen(openmp, RTLD_LAZY | RTLD_NOLOAD))
        return 1;
    for (int i = 0; i < OBJECTS_ASKED_AFTER; i++)
        multiply_there();
    if (dlopen(openmp, RTLD_LAZY | RTLD_NOLOAD))
        return 1;
    return !dlopen(openmp, RTLD_LAZY); /* it could have been found */
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "timeout") == 0)
        return print_timeout();
    void *module = count >= 4 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!module) {
        fprintf(stderr, "usage: test_team CALLER MKL_LAYER OTHER_LAYER: %s\n",
                count >= 4 ? dlerror() : "three modules");
        return 2;
    }
    *(void **)&multiply_elsewhere = dlsym(module, "multiply_elsewhere");
    *(void **)&multiply_elsewhere_in_c = dlsym(module, "multiply_elsewhere_in_c");
    *(void **)&make_elsewhere = dlsym(module, "make_elsewhere");
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 17) - 7.3f;
        b[i] = (float)(i % 13) - 6.1f;
    }
    if (strcmp(arguments[count - 1], "absent") == 0)
        return loads_openmp(arguments[3]);
    expect_in_child(); /* before the first product */
    multiply_there();
    memcpy(right, c, sizeof right);
    if (right[0] == 0.0f || right[N * N - 1] == 0.0f)
        failed = 1;
    if (strcmp(arguments[count - 1], "told") == 0) {
        fake_most = 1;
        expect("OpenMP held to one, and RUNG_NUM_THREADS is 2", 2, multiply_here);
        return failed;
    }
    expect_of_teams();
    if (!dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL))
        failed = 1;
    for (int i = 0; i < OBJECTS_ASKED_AFTER; i++) {
        usleep(APART_US);
        multiply_there();
    }
    expect("beside an MKL on OpenMP's threads", 3, multiply_there);
    if (!dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL) || make_elsewhere(&context))
        failed = 1;
    else
        expect("beside an MKL on another OpenMP's threads, too", 0, multiply_in_context);
    rung_context_destroy(context);
    return failed;
}
