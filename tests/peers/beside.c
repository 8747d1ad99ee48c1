/* Another BLAS for lab/beside_blas.c, and its clock: each look at the clock takes a microsecond, a dgemm 3000, an sgemm
 * 2000. It says at the end what was called, and fails a call that is not the one it knows. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double us;
static int dgemms, sgemms, threads;

int clock_gettime(clockid_t clock, struct timespec *t);
void scipy_cblas_dgemm(int layout, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                       int lda, const double *b, int ldb, double beta, double *c, int ldc);
void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void MKL_Set_Num_Threads(int count);

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    us += 1;
    t->tv_sec = (time_t)(us / 1e6);
    t->tv_nsec = (long)((us - 1e6 * (double)t->tv_sec) * 1e3);
    return 0;
}

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("%s\n", what);
    exit(1);
}

void scipy_cblas_dgemm(int layout, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                       int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    expect(layout == 101 && trans_a == 111 && trans_b == 111 && m == n && n == k && lda == n && ldb == n && ldc == n,
           "another dgemm");
    expect(alpha == 1 && beta == 0 && a == b && c == a + (size_t)n * (size_t)n && a[n * n - 1] > 0, "other operands");
    dgemms++;
    us += 3000;
}

void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    expect(layout == 101 && trans_a == 111 && trans_b == 111 && m == n && n == k && lda == n && ldb == n && ldc == n,
           "another sgemm");
    expect(alpha == 1 && beta == 0 && a == b && c == a + (size_t)n * (size_t)n && a[n * n - 1] > 0, "other operands");
    float sum = 0; /* Rung has multiplied the same before */
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i * n];
    expect(c[0] > 0.999f * sum && c[0] < 1.001f * sum, "another product");
    sgemms++;
    us += 2000;
}

void MKL_Set_Num_Threads(int count)
{
    threads = count;
}

__attribute__((destructor)) static void tell(void)
{
    printf("%d dgemms, %d sgemms, %d threads\n", dgemms, sgemms, threads);
}
