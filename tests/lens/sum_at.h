/* One element of the product, for kernels of the lens's tests that are not about how it is computed. */
#include "device/args.h"

static __device__ float sum_at(const rung_args *g, int64_t row, int64_t column)
{
    float sum = 0.0f;
    for (int64_t p = 0; p < g->k; p++)
        sum = fmaf(g->a[row * g->lda + p], g->b[p * g->ldb + column], sum);
    return sum;
}
