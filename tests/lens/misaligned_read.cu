/* Reads four floats at once from a place in shared memory that is a multiple of 8 bytes only. */
#include "device/args.h"

enum { T = 16 };

RUNG_KERNEL(T *T) misaligned_read(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float values[T * T + 4];
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    values[t] = 0.0f;
    if (t < 4)
        values[T * T + t] = 0.0f;
    __syncthreads();
    const float4 four = *(const float4 *)&values[t / 4 * 4 + 2];
    float sum = four.x + four.y + four.z + four.w;
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
