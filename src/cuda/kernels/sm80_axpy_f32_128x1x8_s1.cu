/* Matrix times vector, rows contiguous: 128 rows a block, warps share k. */
#define ROWS 128
#define STEP 8
#include "device/shapes_vector.h"

extern "C" __global__ void __launch_bounds__(WARPS * 32, 4)
    sm80_axpy_f32_128x1x8_s1(const __grid_constant__ rung_args p)
{
    __shared__ __align__(16) float part[WARPS][ROWS];
    VECTOR_PROLOGUE;
    const long long row0 = (long long)tile * ROWS;
    const int left = p.m - row0 < ROWS ? (int)(p.m - row0) : ROWS;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    a += k0 * p.lda + row0;
    x += k0 * p.ldb;
    if (vec && left % 4 == 0) {
        const float *from = a + lane * 4;
        if (lane * 4 < left) {
#pragma unroll 8
            for (int k = warp; k < depth; k += WARPS) {
                float4 v = __ldcs((const float4 *)(from + k * p.lda));
                float w = __ldg(x + k * p.ldb);
                acc.x = fmaf(v.x, w, acc.x);
                acc.y = fmaf(v.y, w, acc.y);
                acc.z = fmaf(v.z, w, acc.z);
                acc.w = fmaf(v.w, w, acc.w);
            }
        }
        *(float4 *)&part[warp][lane * 4] = acc;
    } else {
        const float *from = a + lane;
        int c0 = 0, c1 = lane + 32 < left ? 32 : 0, c2 = lane + 64 < left ? 64 : 0, c3 = lane + 96 < left ? 96 : 0;
        if (lane < left) {
#pragma unroll 4
            for (int k = warp; k < depth; k += WARPS) {
                const float *at = from + k * p.lda;
                float w = __ldg(x + k * p.ldb);
                acc.x = fmaf(at[c0], w, acc.x);
                acc.y = fmaf(at[c1], w, acc.y);
                acc.z = fmaf(at[c2], w, acc.z);
                acc.w = fmaf(at[c3], w, acc.w);
            }
        }
        part[warp][lane] = acc.x, part[warp][lane + 32] = acc.y, part[warp][lane + 64] = acc.z,
        part[warp][lane + 96] = acc.w;
    }
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x < ROWS)
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += part[w][threadIdx.x];
    finish_rows(&p, c, alpha, beta, tile, split, batch * tiles + tile, ROWS, sum);
}
