/* No fault: threads that share the parts of a short chunk add each of them once, whether there are fewer parts than
 * groups of threads or more. The parts are pieces of A. */
#include "device/args.h"
#include "device/parts.h"

RUNG_DEVICE int differs(float4 x, float4 y)
{
    return fabsf(x.x - y.x) + fabsf(x.y - y.y) + fabsf(x.z - y.z) + fabsf(x.w - y.w) > 1e-3f;
}

RUNG_KERNEL(256) parts_meet(const __grid_constant__ rung_args g)
{
    __shared__ float4 sums[512];
    const unsigned parts_of[] = {2, 3, 5, 6, 7, 10, 17}, counts[] = {128, 96, 64, 32, 32, 16, 16};
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    for (int i = 0; i < 7; i++) {
        const float4 *head = (const float4 *)g.a;
        const unsigned parts = parts_of[i], count = counts[i];
        const unsigned of_each = parts_add_chunk(sums, head, head + count, count, parts, 0, count, 256, 2);
        __syncthreads();
        for (unsigned v = threadIdx.x; v < count; v += 256) {
            float4 plain = head[v];
            for (unsigned s = 1; s < parts; s++)
                plain = add4(plain, head[s * count + v]);
            acc += differs(end_total(sums + v, of_each, count), plain) ? 1000.0f : 0.0f;
        }
        __syncthreads();
    }
    if (row >= g.m || column >= g.n)
        return;
    for (int64_t p = 0; p < g.k; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
