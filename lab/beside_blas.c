/* Times Rung's sgemm between another BLAS's threaded dgemms in one process, and that BLAS's own sgemm in the same
 * place. Build and run: cc -O2 -Iinclude lab/beside_blas.c -lrung -ldl -o beside; ./beside libscipy_openblas.so 1024 2
 */
#define _GNU_SOURCE
#include "rung.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 60, ROW_MAJOR = 101, NO_TRANS = 111 };

typedef void dgemm_function(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                            double *, int);
typedef void sgemm_function(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                            int);

static void *library, *symbol;

static void *find(const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "scipy_%s", name);
    symbol = dlsym(library, name);
    return symbol ? symbol : dlsym(library, text);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *us)
{
    qsort(us, ROUNDS, sizeof *us, by_size);
    return us[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    if (argc != 4 || !(library = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "usage: beside BLAS N THREADS: %s\n", argc == 4 ? dlerror() : "three arguments");
        return 2;
    }
    int n = atoi(argv[2]), threads = atoi(argv[3]);
    size_t count = (size_t)n * (size_t)n;
    dgemm_function *dgemm = (dgemm_function *)find("cblas_dgemm");
    sgemm_function *sgemm = (sgemm_function *)find("cblas_sgemm");
    void (*set_threads)(int) = (void (*)(int))find("openblas_set_num_threads");
    if (!set_threads)
        set_threads = (void (*)(int))find("MKL_Set_Num_Threads");
    double *wide = calloc(count * 2, sizeof *wide), dgemm_us[2][ROUNDS], sgemm_us[2][ROUNDS];
    float *narrow = calloc(count * 2, sizeof *narrow);
    rung_config config;
    rung_context *context;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = threads;
    if (!dgemm || !sgemm || !set_threads || !wide || !narrow || rung_context_create(&context, &config) != RUNG_SUCCESS)
        return 1;
    set_threads(threads);
    for (size_t i = 0; i < count; i++)
        wide[i] = narrow[i] = (float)drand48();
    for (int peer = 0; peer < 2; peer++)
        for (int i = 0; i < ROUNDS; i++) {
            double start = now_us();
            dgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1.0, wide, n, wide, n, 0.0, wide + count, n);
            double middle = now_us();
            if (peer)
                sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1.0f, narrow, n, narrow, n, 0.0f, narrow + count, n);
            else
                rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, n, n, n, 1.0f, narrow, n, narrow, n, 0.0f, narrow + count, n);
            dgemm_us[peer][i] = middle - start;
            sgemm_us[peer][i] = now_us() - middle;
        }
    double ours = median(sgemm_us[0]), theirs = median(sgemm_us[1]);
    printf("%d on %d threads: between dgemms Rung's sgemm %.0f us, its own %.0f (%.2f x); dgemm beside Rung %.0f us, "
           "beside its own sgemm %.0f\n",
           n, threads, ours, theirs, theirs / ours, median(dgemm_us[0]), median(dgemm_us[1]));
    return 0;
}
