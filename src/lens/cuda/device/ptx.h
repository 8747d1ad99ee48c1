/* device/ptx.h under the lens: it has the same calls. Shared addresses are offsets into the block's shared memory. */
#ifndef RUNG_DEVICE_PTX_H
#define RUNG_DEVICE_PTX_H

/* Each function has one line, as in a table. */
/* clang-format off */

#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define PTX RUNG_LENS_INLINE

PTX uint32_t ptx_smem(const void *p) { return rung_lens_shared_offset(p); }
PTX void ptx_mbar_init(uint32_t bar, uint32_t n) { rung_lens_mbarrier_init(rung_lens_shared_pointer(bar), n); }
PTX void ptx_mbar_init_fence(void) { rung_lens_mbarrier_publish(); }
PTX void ptx_mbar_arrive_tx(uint32_t bar, uint32_t bytes) { rung_lens_mbarrier_arrive(rung_lens_shared_pointer(bar), bytes); }
PTX void ptx_mbar_arrive(uint32_t bar) { rung_lens_mbarrier_arrive(rung_lens_shared_pointer(bar), 0); }
#define PTX_MBAR_ARRIVE_BEHIND(bar, bytes) ptx_mbar_arrive((bar) + (bytes))
PTX void ptx_mbar_arrive_cluster(uint32_t bar, uint32_t rank)
{
    rung_lens_mbarrier_arrive_cluster(rung_lens_shared_pointer(bar), rank);
}
PTX void ptx_mbar_wait(uint32_t bar, uint32_t parity) { rung_lens_mbarrier_wait(rung_lens_shared_pointer(bar), parity); }
PTX void ptx_mbar_arrive_if(uint32_t bar, int condition)
{
    if (condition)
        ptx_mbar_arrive(bar);
}
PTX void ptx_loop_inputs(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, int)
{
}
PTX void ptx_fma(float *sum, float a, float b) { *sum = fmaf(a, b, *sum); }
PTX void ptx_here(int64_t *)
{
}
PTX void ptx_here_int(int *)
{
}
PTX void ptx_tensor_store_if(const void *map, uint32_t src, int x, int y, int z, int condition)
{
    int at[5] = {x, y, z, 0, 0};
    if (condition)
        rung_lens_tensor_store(map, rung_lens_shared_pointer(src), at);
}
PTX void ptx_tensor_stores_read(void) { rung_lens_tensor_stores_read(); }
PTX uint32_t ptx_mbar_test(uint32_t bar, uint32_t parity)
{
    return (uint32_t)rung_lens_mbarrier_test(rung_lens_shared_pointer(bar), parity);
}
PTX float4 ptx_shared_load4(uint32_t address) { return rung_lens_shared_load4(address); }
PTX float ptx_shared_load(uint32_t address) { return rung_lens_shared_load(address); }
PTX void ptx_shared_store(uint32_t address, float v) { *(float *)rung_lens_shared_pointer(address) = v; }
PTX void ptx_async_copy4(uint32_t to, const float *from)
{
    rung_lens_cp_async((float *)rung_lens_shared_pointer(to), from, 4, 4);
}
PTX void ptx_async_copy4_ahead(uint32_t to, const float *from) { ptx_async_copy4(to, from); }
PTX void ptx_async_put4(uint32_t to, const float *from, int bytes)
{
    rung_lens_cp_async((float *)rung_lens_shared_pointer(to), from, 4, bytes);
}
PTX void ptx_mbar_arrive_after_copies(uint32_t bar)
{
    rung_lens_cp_async_wait(-1);
    ptx_mbar_arrive(bar);
}
PTX void ptx_store_if(float *to, float v, int condition)
{
    if (condition)
        *to = v;
}
PTX float ptx_load_if(const float *from, int condition)
{
    return condition ? *from : 0.0f;
}
PTX void ptx_shared_store4(uint32_t address, float4 v) { *(float4 *)rung_lens_shared_pointer(address) = v; }
PTX void ptx_prefetch_map(const void *) {}
PTX void ptx_tensor_load(uint32_t dst, const void *map, uint32_t bar, int x, int y, int z)
{
    int at[5] = {x, y, z, 0, 0};
    rung_lens_tensor_load(rung_lens_shared_pointer(dst), map, at, rung_lens_shared_pointer(bar));
}
PTX void ptx_mbar_arrive_tx_elected(uint32_t bar, uint32_t bytes)
{
    if (threadIdx.x % 32 == 0)
        ptx_mbar_arrive_tx(bar, bytes);
}
PTX void ptx_tensor_load_elected(uint32_t dst, const void *map, uint32_t bar, int x, int y, int z)
{
    if (threadIdx.x % 32 == 0)
        ptx_tensor_load(dst, map, bar, x, y, z);
}
PTX void ptx_tensor_load_four_elected(uint32_t dst, uint32_t apart, const CUtensorMap map[4], uint32_t bar, const int x[4],
                                      int ahead, int y)
{
    for (int i = 0; i < 4; i++)
        ptx_tensor_load_elected(dst + i * apart, map + i, bar, x[i] + ahead, y, 0);
}
PTX void ptx_bulk_load(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar)
{
    rung_lens_bulk_load(rung_lens_shared_pointer(dst), src, (int)bytes, rung_lens_shared_pointer(bar), 0);
}
PTX void ptx_bulk_load_multicast(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar, uint16_t mask)
{
    rung_lens_bulk_load(rung_lens_shared_pointer(dst), src, (int)bytes, rung_lens_shared_pointer(bar), mask);
}
PTX void ptx_async_fence(void) { rung_lens_async_fence(); }
PTX uint32_t ptx_cluster_rank(void) { return rung_lens_cluster_rank(); }
PTX float4 ptx_cluster_load4(uint32_t address, uint32_t rank)
{
    float4 v;
    rung_lens_cluster_load(&v, address, rank, sizeof v);
    return v;
}
PTX void ptx_cluster_sync(void) { rung_lens_cluster_sync(); }
PTX void ptx_cluster_leave(void) {}
PTX void ptx_cluster_await(void) { rung_lens_cluster_sync(); }
PTX void ptx_bar_sync(int id, int threads)
{
    rung_lens_bar_check(id, threads);
    rung_lens_bar_sync(id, threads);
}
PTX void ptx_bar_arrive(int id, int threads)
{
    rung_lens_bar_check(id, threads);
    rung_lens_bar_arrive(id, threads);
}
PTX void ptx_clear_here(float *x) { *x = 0.0f; }
PTX void ptx_store_release(uint32_t *p, uint32_t v)
{
    rung_lens_threadfence();
    rung_lens_atomic(p, 4);
    rung_lens_poke(p, v);
}
PTX uint32_t ptx_load_acquire(const uint32_t *p)
{
    rung_lens_atomic(p, 4);
    return rung_lens_peek(p);
}
#define PTX_REGS_MORE(n)
#define PTX_REGS_FEWER(n)

PTX uint32_t ptx_round_halves(float low, float high)
{
    return (uint32_t)__half_as_ushort(__float2half_rn(high)) << 16 | __half_as_ushort(__float2half_rn(low));
}

PTX uint64_t ptx_wgmma_desc_k128(uint32_t smem) { return (smem & 0x3ffff) >> 4; }
PTX void ptx_wgmma_fence(void) {}
PTX void ptx_hold(float *, int) {}
PTX void ptx_wgmma_commit(void) { rung_lens_wgmma_commit(); }
#define PTX_WGMMA_WAIT(n) rung_lens_wgmma_wait(n)
#define PTX_WGMMA_F16_N128(d, a, b, keep) rung_lens_wgmma(d, a, b, keep, 128, 0)
#define PTX_WGMMA_BF16_N128(d, a, b, keep) rung_lens_wgmma(d, a, b, keep, 128, 1)
#define PTX_WGMMA_TF32_N128(d, a, b, keep) rung_lens_wgmma(d, a, b, keep, 128, 2)

/* These round as the originals do, which need one instruction for it. */
PTX uint32_t ptx_round_tf32(float x)
{
    uint32_t bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
PTX uint32_t ptx_round_bf16(float x)
{
    uint32_t bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits & 0xffff0000u : (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
}

#endif
