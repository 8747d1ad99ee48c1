/* A kernel with the parameters that most have elsewhere: under Rung it gets one struct, and finds nothing in these. */
#include "device/args.h"

RUNG_KERNEL(256) others_parameters(const float *a, const float *b, float *c, int m, int n, int k)
{
    const int row = blockIdx.y * 16 + threadIdx.x / 16, column = blockIdx.x * 16 + threadIdx.x % 16;
    if (row >= m || column >= n)
        return;
    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum = fmaf(a[row * k + p], b[p * n + column], sum);
    c[row * n + column] = sum;
}
