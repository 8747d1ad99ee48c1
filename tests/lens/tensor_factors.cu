/* No fault: a tensor core does not see the last 13 bits of a TF32 factor, so that each of these sums is eight times 1.
 */
#include "device/args.h"
#include "device/mma.h"

RUNG_KERNEL(256) tensor_factors(const __grid_constant__ rung_args g)
{
    const uint32_t a[4] = {0x3f801fffu, 0x3f801fffu, 0x3f801fffu, 0x3f801fffu}, b[2] = {0x3f801fffu, 0x3f801fffu};
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f, d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    mma_tf32(d, a, b);
    if (row >= g.m || column >= g.n)
        return;
    for (int64_t p = 0; p < g.k; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    acc += d[0] + d[1] + d[2] + d[3] - 32.0f;
    g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
