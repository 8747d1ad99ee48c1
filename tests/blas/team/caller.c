/* A library that is not linked to OpenMP: it calls sgemm_ and cblas_sgemm, and makes contexts of Rung's. */
#include "rung.h"

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void multiply_elsewhere(int n, const float *a, const float *b, float *c);
void multiply_elsewhere_in_c(int n, const float *a, const float *b, float *c);
rung_status make_elsewhere(rung_context **context);

void multiply_elsewhere(int n, const float *a, const float *b, float *c)
{
    const float one = 1.0f, zero = 0.0f;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    __asm__ volatile(""); /* the call returns to here, not to the caller's caller */
}

void multiply_elsewhere_in_c(int n, const float *a, const float *b, float *c)
{
    enum { COLUMN_MAJOR = 102, NO_TRANS = 111 };
    cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
    __asm__ volatile("");
}

rung_status make_elsewhere(rung_context **context)
{
    rung_status status = rung_context_create(context, NULL);
    __asm__ volatile("");
    return status;
}
