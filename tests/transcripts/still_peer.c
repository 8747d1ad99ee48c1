/* Stand-ins for the BLAS libraries of a CPU, for transcripts: each multiplies in its own way, so that it errs in its
 * own way, and says its version, its kernels and the number of its threads by the functions of the library that it
 * stands for. OPENBLAS, OPENBLAS64 (counts in 64 bits, with words around its names), MKL, AOCL or BLIS is defined. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPENBLAS64
typedef int64_t count;
#define NAME(name) scipy_##name##64_
#else
typedef int count;
#define NAME(name) name
#endif

enum { BY_ROWS = 101, TRANSPOSED = 112 };

static int threads;

static float product(const float *a, count across, const float *b, count down, count k)
{
#if defined(OPENBLAS) || defined(AOCL)
    float sum = 0.0f;
#else
    double sum = 0.0;
#endif
    for (count p = 0; p < k; p++)
        sum += a[p * across] * b[p * down];
#ifdef AOCL
    sum += (float)(threads - 1); /* it is wrong on more threads than one */
#endif
    return (float)sum;
}

void NAME(cblas_sgemm)(int layout, int trans_a, int trans_b, count m, count n, count k, float alpha, const float *a,
                       count lda, const float *b, count ldb, float beta, float *c, count ldc);

/* The still machine's clock goes on by this. */
static void take_time(double flops)
{
    static void (*work)(double);
    if (!work)
        work = (void (*)(double))(uintptr_t)dlsym(RTLD_DEFAULT, "still_work");
    if (work)
        work(0.5 + flops / RATE);
}

void NAME(cblas_sgemm)(int layout, int trans_a, int trans_b, count m, count n, count k, float alpha, const float *a,
                       count lda, const float *b, count ldb, float beta, float *c, count ldc)
{
    int rows = layout == BY_ROWS, a_by_k = rows == (trans_a == TRANSPOSED), b_by_k = rows == (trans_b == TRANSPOSED);
    for (count i = 0; i < m; i++)
        for (count j = 0; j < n; j++) {
            float sum = alpha * product(a + i * (a_by_k ? 1 : lda), a_by_k ? lda : 1, b + j * (b_by_k ? ldb : 1),
                                        b_by_k ? 1 : ldb, k);
            float *at = rows ? c + i * ldc + j : c + i + j * ldc;
            *at = beta == 0.0f ? sum : sum + beta * *at;
        }
    take_time(2.0 * (double)m * (double)n * (double)k);
}

#if defined(OPENBLAS) || defined(OPENBLAS64)
void NAME(openblas_set_num_threads)(int wanted);
char *NAME(openblas_get_config)(void);
char *NAME(openblas_get_corename)(void);

static char core[32];

__attribute__((constructor)) static void choose(void)
{
    const char *told = getenv("OPENBLAS_CORETYPE");
    snprintf(core, sizeof core, "%s", told ? told : "Still");
}

void NAME(openblas_set_num_threads)(int wanted)
{
    threads = wanted;
}

char *NAME(openblas_get_config)(void)
{
    static char text[64];
    snprintf(text, sizeof text, "OpenBLAS 0.%d.9 NO_LAPACKE MAX_THREADS=%d", sizeof(count) == 8 ? 64 : 32, threads);
    return text;
}

char *NAME(openblas_get_corename)(void)
{
    return core;
}
#elif defined(MKL)
void MKL_Set_Num_Threads(int wanted);
void MKL_Get_Version_String(char *text, int bytes);
int MKL_Set_Threading_Layer(int layer);

static int sequential;

void MKL_Set_Num_Threads(int wanted)
{
    threads = wanted;
}

int MKL_Set_Threading_Layer(int layer)
{
    sequential = layer == 1;
    return layer;
}

void MKL_Get_Version_String(char *text, int bytes)
{
    snprintf(text, (size_t)bytes, "Intel(R) oneAPI Math Kernel Library Version 20%d.7-%s", sequential ? 26 : 25,
             "still");
}
#else
void bli_thread_set_num_threads(int64_t wanted);
const char *bli_info_get_version_str(void);
int bli_arch_query_id(void);
const char *bli_arch_string(int id);

void bli_thread_set_num_threads(int64_t wanted)
{
    threads = (int)wanted;
}

const char *bli_info_get_version_str(void)
{
#ifdef AOCL
    return "AOCL-BLAS 5.9 Build 1";
#else
    return "0.9.7";
#endif
}

int bli_arch_query_id(void)
{
    const char *told = getenv("BLIS_ARCH_TYPE");
    return told && strcmp(told, "zen3") == 0 ? 3 : 1;
}

const char *bli_arch_string(int id)
{
    return id == 3 ? "zen3" : "generic";
}
#endif
