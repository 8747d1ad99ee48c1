/* A small fault of each kind that has no file of its own; alpha says which. None of them computes a product. */
#include "device/args.h"
#include "device/async.h"
#include "device/ptx.h"

#include <assert.h>

/* A call that never ends, and one that wants more than all of a thread's stack at once. */
__device__ __attribute__((noinline)) float deeper(const float *a, int64_t n)
{
    volatile float kept[64];
    kept[n % 64] = a[0];
    return n > 0 ? deeper(a, n + 1) + kept[n % 64] : 0.0f;
}

__device__ __attribute__((noinline)) float wide(const float *a)
{
    volatile float kept[40000];
    kept[0] = kept[39999] = a[0];
    return kept[0] + kept[39999];
}

/* Over 80 lines: a case for each fault. */
RUNG_KERNEL(256) kinds(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float few[2];
    __shared__ __align__(8) uint64_t bar;
    __shared__ __align__(16) float four[4];
    const int t = threadIdx.x;
    volatile float taken = 0.0f;
    if (blockIdx.x + blockIdx.y > 0)
        return;
    switch ((int)g.alpha) {
    case 1: few[0] = (float)t; return;
    case 2: taken = few[64 + t % 2]; return;
    case 3: *(float4 *)few = make_float4(0, 0, 0, 0); return;
    case 4: atomicAdd(few, 1.0f); return;
    case 5:
        if (t == 0)
            few[0] = 0.0f;
        else
            atomicAdd(few, 1.0f);
        return;
    case 6: taken = __shfl_sync(1u, (float)t, 0); return;
    case 7: __trap(); return;
    case 8: ptx_mbar_arrive(ptx_smem(&bar)); return;
    case 9:
        if (t == 0)
            ptx_mbar_init(ptx_smem(&bar), 2);
        __syncthreads();
        ptx_mbar_arrive_tx(ptx_smem(&bar), t < 2 ? 16 : 0);
        return;
    case 10:
        if (t == 0)
            ptx_mbar_init(ptx_smem(&bar), 1);
        if (t == 0)
            ptx_bulk_load(ptx_smem(few), g.a, 8, ptx_smem(&bar));
        return;
    case 11: taken = g.a[-1]; return;
    case 12: taken = (float)*(const double *)(g.a + 1); return;
    case 13: taken = *(const float *)(uintptr_t)(4096 + 4 * t); return;
    case 14: ptx_bar_sync(1, 288); return;
    case 15:
        if (t < 16)
            __syncwarp(0xffffu);
        else if (t < 31)
            __syncwarp();
        return;
    case 16: atomicAdd((unsigned long long *)((char *)few + 4), 1ull); return;
    case 17: taken = few[-1 - (int)(sizeof bar + sizeof few)]; return;
    case 18: taken = few[50000]; return;
    case 19: taken = deeper(g.a, 1); return;
    case 20: taken = wide(g.a); return;
    case 21: ptx_bar_sync(16, 256); return;
    case 22: ptx_bar_arrive(1, 48); return;
    case 23: ptx_mbar_init(ptx_smem(few) + 4, 1); return;
    case 24: ptx_mbar_init(ptx_smem(few) + 1024, 1); return;
    case 25:
        if (t == 0)
            ptx_mbar_init(ptx_smem(&bar), 2);
        if (t == 1)
            ptx_mbar_arrive(ptx_smem(&bar));
        return;
    case 26:
        ptx_async_copy4(ptx_smem(few) + (1 << 20) + 4 * t, g.a);
        rung_async_commit();
        rung_async_wait(0);
        return;
    case 27: rung_async_put4(rung_shared_address(&few[t % 2]), g.a, 8); return;
    case 28:
    case 29:
        if (t > 0)
            return;
        ptx_mbar_init(ptx_smem(&bar), 1);
        ptx_mbar_init_fence();
        if (g.alpha < 29)
            ptx_bulk_load(ptx_smem(few) + (1 << 20), g.a, 16, ptx_smem(&bar));
        else
            ptx_bulk_load_multicast(ptx_smem(few), g.a, 16, ptx_smem(&bar), 2);
        return;
    case 30: taken = ptx_cluster_load4(0, 17).x; return;
    case 31: taken = *(const float *)(uintptr_t)(4 * t); return;
    case 32: rung_async_put16(rung_shared_address(four), g.a + g.m * g.lda / 4 * 4, 8); return;
    case 33: rung_async_put16(rung_shared_address(four), g.a + 1, 8); return;
    case 34: assert(t != 3); return;
    case 36: /* no fault, but a second of computing */
        for (int i = 0; i < 2000000000 && t == 0; i++)
            asm volatile("");
        return;
    case 35: taken = (float)(t / (int)g.beta); return;
    case 37: taken = t % 32 < 16 ? __shfl_up_sync(~0u, 1.0f, 1) : __shfl_down_sync(~0u, 1.0f, 1); return;
    case 38: taken = t % 32 < 16 ? __shfl_sync(~0u, 1.0f, 1) : (float)__ballot_sync(~0u, 1); return;
    case 39:
        if (t % 2)
            __syncwarp();
        else
            taken = (float)__any_sync(~0u, 1);
        return;
    default: taken = taken + 1.0f;
    }
}
