/* The BLAS drop-in where it may not answer (RUNG_DISABLE=1): every name is handed on, as it was called, to a BLAS that
 * is loaded now, not to one that was unloaded; without any the program ends with a sentence.
 * usage: test_other OTHER_BLAS ANOTHER_BLAS */
#include "other_blas.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROW = 101, N = 111 };

static int failed;

static void expect(const char *name, const float *c, float who, int layout)
{
    if (c[0] == who && c[1] == 0.5f && c[2] == -2.0f && c[3] == 9.0f && (!layout || c[4] == (float)layout))
        return;
    fprintf(stderr, "%s: BLAS number %g was given alpha %g, beta %g, ldc %g, not number %g 0.5, -2, 9\n", name,
            (double)c[0], (double)c[1], (double)c[2], (double)c[3], (double)who);
    failed = 1;
}

static void call_all(float who)
{
    const float alpha = 0.5f, beta = -2.0f;
    float a[64] = {0}, b[64] = {0}, c[64];
#define X(name, integer)                                                                                               \
    do {                                                                                                               \
        const integer m = 2, n = 3, k = 4, lda = 7, ldb = 8, ldc = 9;                                                  \
        memset(c, 0, sizeof c);                                                                                        \
        name("N", "N", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);                                          \
        expect(#name, c, who, 0);                                                                                      \
    } while (0);
    FORTRAN_NAMES(X)
#undef X
#define X(name, integer)                                                                                               \
    do {                                                                                                               \
        memset(c, 0, sizeof c);                                                                                        \
        name(ROW, N, N, 2, 3, 4, alpha, a, 7, b, 8, beta, c, 9);                                                       \
        expect(#name, c, who, ROW);                                                                                    \
    } while (0);
    C_NAMES(X)
#undef X
}

/* What this library does not know another one may, such as the conjugate without a transpose: it judges by itself. */
static void call_unknown(float who)
{
    static const int settings[][3] = {{ROW, 114, N}, {ROW, N, 114}, {100, N, N}};
    const float alpha = 0.5f, beta = -2.0f;
    float a[64] = {0}, b[64] = {0}, c[64];
#define X(name, integer)                                                                                               \
    for (int i = 0; i < 2; i++) {                                                                                      \
        const integer m = 2, n = 3, k = 4, lda = 7, ldb = 8, ldc = 9;                                                  \
        memset(c, 0, sizeof c);                                                                                        \
        name(i ? "N" : "R", i ? "R" : "N", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);                      \
        expect(#name, c, who, 0);                                                                                      \
    }
    FORTRAN_NAMES(X)
#undef X
#define X(name, integer)                                                                                               \
    for (int i = 0; i < 3; i++) {                                                                                      \
        memset(c, 0, sizeof c);                                                                                        \
        name(settings[i][0], settings[i][1], settings[i][2], 2, 3, 4, alpha, a, 7, b, 8, beta, c, 9);                  \
        expect(#name, c, who, settings[i][0]);                                                                         \
    }
    C_NAMES(X)
#undef X
}

/* A process of its own calls without another BLAS. */
static void expect_the_end(void)
{
    int out[2], status = 0;
    char said[300] = "";
    if (pipe(out))
        return;
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 2);
        call_all(0.0f);
        _exit(0);
    }
    close(out[1]);
    for (size_t at = 0; at + 1 < sizeof said;) {
        ssize_t got = read(out[0], said + at, sizeof said - 1 - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    close(out[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, "no other BLAS is loaded")) {
        fprintf(stderr, "without another BLAS the program went on or said: '%s'\n", said);
        failed = 1;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    expect_the_end();
    void *first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    call_all(1.0f);
    call_unknown(1.0f);
    void *second = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!first || !second || dlclose(first))
        return 2;
    float a[64] = {0}, b[64] = {0}, c[64] = {0};
    scipy_cblas_sgemm64_(ROW, N, N, 2, 3, 4, 0.5f, a, 7, b, 8, -2.0f, c, 9); /* the name that was called last */
    expect("scipy_cblas_sgemm64_ again", c, 2.0f, ROW);
    call_all(2.0f);
    dlclose(second);
    expect_the_end();
    return failed;
}
