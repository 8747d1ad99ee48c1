/* Matrix times vector, rows contiguous: 32 rows a block, a line of memory wide; 16 warps share k. Each thread copies
 * ahead into a ring of its own, so that bytes are under way all the time and nobody waits for another. */
#define ROWS 32
#define STEP 64
#define WARPS 16
#define STAGES 6
#include "families/vector/vector.h"

extern "C" __global__ void __launch_bounds__(WARPS * 32, 2)
    sm80_axpy_f32_32x1x64_s6(const __grid_constant__ rung_args p)
{
    extern __shared__ __align__(16) float ring[]; /* STAGES times 16 bytes a thread; then the warps' sums */
    VECTOR_PROLOGUE;
    const long long row0 = (long long)tile * ROWS;
    const int left = p.m - row0 < ROWS ? (int)(p.m - row0) : ROWS;
    const int at_row = lane % 8 * 4, at_k = warp * 4 + lane / 8; /* of the step's rows and k */
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    a += (k0 + at_k) * p.lda + row0 + at_row;
    x += (k0 + at_k) * p.ldb;
    const int steps = (depth - at_k + STEP - 1) / STEP, mine = at_row < left ? steps : 0;
    if (vec && left % 4 == 0) {
        float4 *slots = (float4 *)ring + threadIdx.x;
        const rung_shared_at to = rung_shared_address(slots);
        const long long a_step = (long long)STEP * p.lda;
        const float *from = a;
#pragma unroll
        for (int s = 0; s < STAGES; s++, from += a_step) {
            if (s < mine)
                rung_async_put16(to + s * (WARPS * 32 * 16), from, 16);
            rung_async_commit();
        }
#pragma unroll 1
        for (int s0 = 0; s0 < mine; s0 += STAGES) {
            float w[STAGES];
#pragma unroll
            for (int s = 0; s < STAGES; s++)
                w[s] = s0 + s < mine ? __ldg(x + (long long)(s0 + s) * STEP * p.ldb) : 0.0f;
#pragma unroll
            for (int s = 0; s < STAGES; s++, from += a_step) {
                rung_async_wait(STAGES - 1);
                if (s0 + s < mine) {
                    const float4 v = slots[s * (WARPS * 32)];
                    acc.x = fmaf(v.x, w[s], acc.x);
                    acc.y = fmaf(v.y, w[s], acc.y);
                    acc.z = fmaf(v.z, w[s], acc.z);
                    acc.w = fmaf(v.w, w[s], acc.w);
                }
                if (s0 + s + STAGES < mine)
                    rung_async_put16(to + s * (WARPS * 32 * 16), from, 16);
                rung_async_commit();
            }
        }
        rung_async_wait(0);
    } else {
        const int n1 = at_row + 1 < left, n2 = at_row + 2 < left, n3 = at_row + 3 < left;
#pragma unroll 4
        for (int s = 0; s < mine; s++) {
            const float *at = a + (long long)s * STEP * p.lda;
            const float w = __ldg(x + (long long)s * STEP * p.ldb);
            acc.x = fmaf(at[0], w, acc.x);
            acc.y = fmaf(n1 ? at[1] : 0.0f, w, acc.y);
            acc.z = fmaf(n2 ? at[2] : 0.0f, w, acc.z);
            acc.w = fmaf(n3 ? at[3] : 0.0f, w, acc.w);
        }
    }
    /* The four k of a warp, then the warps, in order. */
#pragma unroll
    for (int o = 8; o < 32; o *= 2) {
        acc.x += __shfl_xor_sync(~0u, acc.x, o);
        acc.y += __shfl_xor_sync(~0u, acc.y, o);
        acc.z += __shfl_xor_sync(~0u, acc.z, o);
        acc.w += __shfl_xor_sync(~0u, acc.w, o);
    }
    float *part = ring + STAGES * WARPS * 32 * 4;
    if (lane < 8)
        *(float4 *)(part + warp * ROWS + at_row) = acc;
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x < ROWS)
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += part[w * ROWS + threadIdx.x];
    finish_rows(&p, c, alpha, beta, tile, split, batch * tiles + tile, ROWS, sum);
}
