/* A library that is not linked to OpenMP: it calls sgemm_, and makes contexts of Rung's. */
#include "rung.h"

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void multiply_elsewhere(int n, const float *a, const float *b, float *c);
rung_status make_elsewhere(rung_context **context);

void multiply_elsewhere(int n, const float *a, const float *b, float *c)
{
    const float one = 1.0f, zero = 0.0f;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    __asm__ volatile(""); /* the call returns to here, not to the caller's caller */
}

rung_status make_elsewhere(rung_context **context)
{
    rung_status status = rung_context_create(context, NULL);
    __asm__ volatile("");
    return status;
}
