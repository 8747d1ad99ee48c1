/* Matrix times vector, k contiguous: four rows a block, warps share k. */
#define ROWS 4
#define STEP 1024
#include "families/vector/vector.h"

extern "C" __global__ void __launch_bounds__(WARPS * 32, 3)
    sm80_dot_f32_4x1x1024_s1(const __grid_constant__ rung_args p)
{
    __shared__ float part[WARPS][ROWS];
    VECTOR_PROLOGUE;
    const long long row0 = (long long)tile * ROWS;
    const float *row[ROWS];
    float acc[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        long long r = row0 + i < p.m ? row0 + i : p.m - 1;
        row[i] = a + r * p.lda + k0;
        acc[i] = 0.0f;
    }
    x += k0 * p.ldb;
    int done = 0;
    if (vec) {
        const int whole = depth & ~3, xvec = p.ldb == 1 && aligned16(x, 0);
        done = whole;
#pragma unroll 1 /* more loads under way are slower: 19.3 us against 18.6 at 4096 x 4096 */
        for (int k = (warp * 32 + lane) * 4; k < whole; k += WARPS * 128) {
            float4 v[ROWS], w;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                v[i] = __ldcs((const float4 *)(row[i] + k));
            if (xvec)
                w = __ldg((const float4 *)(x + k));
            else
                w = make_float4(x[k * p.ldb], x[(k + 1) * p.ldb], x[(k + 2) * p.ldb], x[(k + 3) * p.ldb]);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                acc[i] = fmaf(v[i].x, w.x, acc[i]);
                acc[i] = fmaf(v[i].y, w.y, acc[i]);
                acc[i] = fmaf(v[i].z, w.z, acc[i]);
                acc[i] = fmaf(v[i].w, w.w, acc[i]);
            }
        }
    }
#pragma unroll 8
    for (int k = done + warp * 32 + lane; k < depth; k += WARPS * 32) {
        float w = x[k * p.ldb];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            acc[i] = fmaf(row[i][k], w, acc[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int o = 16; o; o /= 2)
            acc[i] += __shfl_xor_sync(~0u, acc[i], o);
        if (lane == i)
            part[warp][i] = acc[i];
    }
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x < ROWS)
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += part[w][threadIdx.x];
    finish_rows(&p, c, alpha, beta, tile, split, batch * tiles + tile, ROWS, sum);
}
