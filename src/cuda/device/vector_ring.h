/* Matrix times vector, rows contiguous, memory bound: a block takes ROWS rows and one part of k, its warps some k each
 * at a time, which bulk copies bring into a ring of the warp's own: nobody waits for another, and no register or lane
 * is needed to keep many bytes under way. Included with KERNEL, ROWS (32, 64, 128 or 256), WARPS, STAGES, BLOCKS
 * (resident on a multiprocessor). */
#include "device/ptx.h"
#include "device/shapes_vector.h"
#include "device/vector_args.h"

#define COLUMNS (RUNG_VECTOR_BOX / ROWS) /* k of a copy */
#define LANES (ROWS / 4 < 32 ? ROWS / 4 : 32)
#define SIDE (32 / LANES)          /* k side by side in a warp */
#define VECTORS (ROWS / 4 / LANES) /* of a lane */

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS) KERNEL(const __grid_constant__ rung_vector_args q)
{
    extern __shared__ __align__(
        128) float memory[]; /* the warps' rings; their barriers; their sums take the rings' place */
    const rung_args *p = &q.args;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const unsigned tiles = (unsigned)((p->m + ROWS - 1) / ROWS), tile = blockIdx.x % tiles;
    const unsigned parts = p->split_k, part = blockIdx.x / tiles % parts, batch = blockIdx.x / tiles / parts;
    float *ring = memory + warp * (STAGES * RUNG_VECTOR_BOX);
    const uint32_t ring_at = __shfl_sync(~0u, ptx_smem(ring), 0);
    const uint32_t bars =
        __shfl_sync(~0u, ptx_smem(memory + WARPS * STAGES * RUNG_VECTOR_BOX) + warp * (8 * STAGES), 0);
    if (lane < STAGES) {
        ptx_mbar_init(bars + 8 * lane, 1);
        ptx_mbar_init_fence();
    }
    if (threadIdx.x == 0)
        ptx_prefetch_map(&q.a_map);
    __syncwarp();
    rung_after_earlier_kernels();
    const float alpha = p->alpha_device ? *p->alpha_device : p->alpha;
    const float beta = p->beta_device ? *p->beta_device : p->beta;
    const float *x = p->b + batch * p->stride_b;
    float *c = p->c + batch * p->stride_c;
    /* Copies of this part, and this warp's: every WARPS-th. */
    const int copies = (int)((p->k + COLUMNS - 1) / COLUMNS), share = (copies + (int)parts - 1) / (int)parts;
    const int first = (int)part * share + warp, end = min((int)part * share + share, copies);
    const int mine = alpha == 0.0f || first >= end ? 0 : (end - first + WARPS - 1) / WARPS;
    const int at_row = lane % LANES * 4, at_k = lane / LANES;
    for (int s = 0; s < STAGES && s < mine; s++) {
        ptx_mbar_arrive_tx_elected(bars + 8 * s, RUNG_VECTOR_BOX * 4);
        ptx_tensor_load_elected(ring_at + s * (RUNG_VECTOR_BOX * 4), &q.a_map, bars + 8 * s, (int)(tile * ROWS),
                                (first + s * WARPS) * COLUMNS, (int)batch);
    }
    /* One lane a k of the copy holds its factor, fetched one copy ahead. */
    long long at = (long long)first * COLUMNS + lane % COLUMNS;
    float w_next = mine && at < p->k ? __ldg(x + at * p->ldb) : 0.0f;
    float4 acc[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        acc[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int stage = 0;
    uint32_t phase = 0;
#pragma unroll 1
    for (int done = 0; done < mine; done++) {
        const float w = w_next;
        at += WARPS * COLUMNS;
        w_next = done + 1 < mine && at < p->k ? __ldg(x + at * p->ldb) : 0.0f;
        const uint32_t bar = bars + 8 * stage;
        const float *from = ring + stage * RUNG_VECTOR_BOX + at_k * ROWS + at_row;
        ptx_mbar_wait(bar, phase);
#pragma unroll
        for (int k = 0; k < COLUMNS; k += SIDE) {
            const float factor = __shfl_sync(~0u, w, k + at_k);
#pragma unroll
            for (int i = 0; i < VECTORS; i++) {
                const float4 v = *(const float4 *)(from + k * ROWS + i * 128);
                acc[i].x = fmaf(v.x, factor, acc[i].x);
                acc[i].y = fmaf(v.y, factor, acc[i].y);
                acc[i].z = fmaf(v.z, factor, acc[i].z);
                acc[i].w = fmaf(v.w, factor, acc[i].w);
            }
        }
        __syncwarp();
        if (done + STAGES < mine) {
            ptx_mbar_arrive_tx_elected(bar, RUNG_VECTOR_BOX * 4);
            ptx_tensor_load_elected(ring_at + stage * (RUNG_VECTOR_BOX * 4), &q.a_map, bar, (int)(tile * ROWS),
                                    (first + (done + STAGES) * WARPS) * COLUMNS, (int)batch);
        }
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
    /* The k side by side in a warp, then the warps, in order. */
    __syncthreads();
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        *(float4 *)(memory + (warp * SIDE + at_k) * ROWS + at_row + i * 128) = acc[i];
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x < ROWS)
#pragma unroll
        for (int i = 0; i < WARPS * SIDE; i++)
            sum += memory[i * ROWS + threadIdx.x];
    finish_rows(p, c, alpha, beta, tile, part, batch * tiles + tile, ROWS, sum);
}
