/* Hopper's asynchronous machinery (mbarrier, bulk copy, cluster, wgmma) as plain inline functions. Each function is one
 * instruction, and none knows about tiles. They are for sm_90a only. An address in shared memory is the 32-bit one that
 * ptx_smem() gives. */
#ifndef RUNG_DEVICE_PTX_H
#define RUNG_DEVICE_PTX_H

#include <cuda.h>
#include <stdint.h>

#define PTX static __device__ __forceinline__

PTX uint32_t ptx_smem(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- mbarrier ---- */

PTX void ptx_mbar_init(uint32_t bar, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

PTX void ptx_mbar_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

PTX void ptx_mbar_arrive_tx(uint32_t bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

PTX void ptx_mbar_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* Arrives on the barrier that lies so many bytes behind this one: the instruction adds them. */
#define PTX_MBAR_ARRIVE_BEHIND(bar, bytes)                                                                             \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0 + %1];" ::"r"(bar), "n"(bytes) : "memory")

/* Arrives on the barrier at the same offset in another block of the cluster. */
PTX void ptx_mbar_arrive_cluster(uint32_t bar, uint32_t rank)
{
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [a]; }" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

PTX void ptx_mbar_wait(uint32_t bar, uint32_t parity)
{
    asm volatile("{ .reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again; }" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* Arrives where the condition holds, without a branch: for warps of which only some lanes have something to say. */
PTX void ptx_mbar_arrive_if(uint32_t bar, int condition)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(bar),
                 "r"(condition)
                 : "memory");
}

/* One lane of a converged warp arrives. All lanes give the same address and count, so no branch is needed. */
PTX void ptx_mbar_arrive_tx_elected(uint32_t bar, uint32_t bytes)
{
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff;\n"
                 "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1; }" ::"r"(bar),
                 "r"(bytes)
                 : "memory");
}

/* Returns 1 when the phase is already over. It does not wait. */
PTX uint32_t ptx_mbar_test(uint32_t bar, uint32_t parity)
{
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done;
}

/* ---- arithmetic ---- */

/* sum += a * b, rounded once. The compiler keeps the order of these: it would put others in one of its own. */
PTX void ptx_fma(float *sum, float a, float b)
{
    asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(*sum) : "f"(a), "f"(b));
}

/* ---- shared memory ---- */

PTX float4 ptx_shared_load4(uint32_t address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address));
    return v;
}

PTX float ptx_shared_load(uint32_t address)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address));
    return v;
}

PTX void ptx_shared_store(uint32_t address, float v)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(v) : "memory");
}

PTX void ptx_shared_store4(uint32_t address, float4 v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}

/* Copies 4 bytes. The thread waits for its copies as in device/async.h. */
PTX void ptx_async_copy4(uint32_t to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from));
}

/* Does the same and has L2 fetch the 256 bytes around: the next steps along a row want them. */
PTX void ptx_async_copy4_ahead(uint32_t to, const float *from)
{
    asm volatile("cp.async.ca.shared.global.L2::256B [%0], [%1], 4;" ::"r"(to), "l"(from));
}

/* Copies 4 bytes, or copies none and writes zeros. The thread waits for its copies as in device/async.h. */
PTX void ptx_async_put4(uint32_t to, const float *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

/* Arrives once all copies are done that this thread has started in this way. */
PTX void ptx_mbar_arrive_after_copies(uint32_t bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* ---- global memory, without a branch that could part a warp ---- */

PTX void ptx_store_if(float *to, float v, int condition)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0;\n"
                 "@p st.global.f32 [%0], %1; }" ::"l"(to),
                 "f"(v), "r"(condition)
                 : "memory");
}

/* Loads where the condition holds, and returns zero elsewhere. */
PTX float ptx_load_if(const float *from, int condition)
{
    float v;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0;\n"
                 "mov.f32 %0, 0f00000000;\n"
                 "@p ld.global.f32 %0, [%1]; }"
                 : "=&f"(v)
                 : "l"(from), "r"(condition)
                 : "memory");
    return v;
}

/* Marks where a loop begins that tools/sass writes anew, and tells it which registers hold the loop's inputs; the place
 * in that memory tells how A lies (k_innermost is known when this is compiled). The store goes to 16 bytes of shared
 * memory that nobody reads. */
PTX void ptx_loop_inputs(uint32_t full, uint32_t a, uint32_t b, uint32_t done, uint32_t steps, int k_innermost)
{
    if (k_innermost)
        asm volatile("st.shared.v4.b32 [%0 + 272], {%1, %2, %3, %4};" ::"r"(full), "r"(a), "r"(b), "r"(done), "r"(steps)
                     : "memory");
    else
        asm volatile("st.shared.v4.b32 [%0 + 256], {%1, %2, %3, %4};" ::"r"(full), "r"(a), "r"(b), "r"(done), "r"(steps)
                     : "memory");
}

/* Keeps the compiler from computing what follows from *x earlier: ahead of a loop it would hold registers. */
PTX void ptx_here(int64_t *x)
{
    asm volatile("" : "+l"(*x));
}

PTX void ptx_here_int(int *x)
{
    asm volatile("" : "+r"(*x));
}

/* ---- tensor copies: one box of a three-dimensional tensor, x fastest, to shared memory; completes on the barrier ----
 */

/* Fetches a map ahead, so that the first copy finds it there. */
PTX void ptx_prefetch_map(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

PTX void ptx_tensor_load(uint32_t dst, const void *map, uint32_t bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}

/* One lane of a converged warp starts the copy. All operands are the same in all lanes. */
PTX void ptx_tensor_load_elected(uint32_t dst, const void *map, uint32_t bar, int x, int y, int z)
{
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff;\n"
                 "@p cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5]; }" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}

/* Does the same for four boxes of two dimensions, from a map each, at x + `ahead`; they land `apart` bytes from each
 * other. */
PTX void ptx_tensor_load_four_elected(uint32_t dst, const uint32_t apart, const CUtensorMap map[4], uint32_t bar,
                                      const int x[4], const int ahead, int y)
{
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff;\n"
                 "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%4, {%8, "
                 "%13}], [%12];\n"
                 "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%1], [%5, {%9, "
                 "%13}], [%12];\n"
                 "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%2], [%6, {%10, "
                 "%13}], [%12];\n"
                 "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%3], [%7, {%11, "
                 "%13}], [%12]; }" ::"r"(dst),
                 "r"(dst + apart), "r"(dst + 2 * apart), "r"(dst + 3 * apart), "l"(map), "l"(map + 1), "l"(map + 2),
                 "l"(map + 3), "r"(x[0] + ahead), "r"(x[1] + ahead), "r"(x[2] + ahead), "r"(x[3] + ahead), "r"(bar),
                 "r"(y)
                 : "memory");
}

/* Stores one box. The copy engine reads it from shared memory while the thread goes on; it writes nothing outside the
 * tensor. */
PTX void ptx_tensor_store_if(const void *map, uint32_t src, int x, int y, int z, int condition)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0;\n"
                 "@p cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];\n"
                 "@p cp.async.bulk.commit_group; }" ::"l"(map),
                 "r"(src), "r"(x), "r"(y), "r"(z), "r"(condition)
                 : "memory");
}

/* Waits until this thread's boxes have been read. */
PTX void ptx_tensor_stores_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* ---- bulk copies, global to shared; size a multiple of 16 ---- */

PTX void ptx_bulk_load(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar)
                 : "memory");
}

/* The copy lands at the same offset in every block of the mask, and signals the barrier at the same offset of each. */
PTX void ptx_bulk_load_multicast(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar, uint16_t mask)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar), "h"(mask)
                 : "memory");
}

/* Makes what this thread stored to shared memory visible to the matrix unit and the copy engine after the next barrier.
 */
PTX void ptx_async_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- cluster ---- */

PTX uint32_t ptx_cluster_rank(void)
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

/* Loads from the same address of another block's shared memory. */
PTX float4 ptx_cluster_load4(uint32_t address, uint32_t rank)
{
    float4 v;
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [a]; }"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return v;
}

PTX void ptx_cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The cluster's barrier in two halves, for blocks that have only read each other's memory. */
PTX void ptx_cluster_leave(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

PTX void ptx_cluster_await(void)
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

/* ---- named barriers, registers, memory order ---- */

PTX void ptx_bar_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Arrives at a named barrier and does not wait. */
PTX void ptx_bar_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Sets *x to zero, here and not ahead of the asm before it. */
PTX void ptx_clear_here(float *x)
{
    asm volatile("mov.f32 %0, 0f00000000;" : "=f"(*x));
}

#define PTX_REGS_MORE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define PTX_REGS_FEWER(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

PTX void ptx_store_release(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

PTX uint32_t ptx_load_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* ---- roundings, as the bits of a float ---- */

/* Rounds to the nearest TF32; ties go away from zero. */
PTX uint32_t ptx_round_tf32(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* Rounds to the nearest bf16; ties go to even. */
PTX uint32_t ptx_round_bf16(float x)
{
    uint32_t bits;
    asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {0, h}; }" : "=r"(bits) : "f"(x));
    return bits;
}

/* Rounds two to the nearest fp16. The first lies in the low 16 bits. */
PTX uint32_t ptx_round_halves(float low, float high)
{
    uint32_t bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

/* ---- wgmma ---- */

/* Describes a tile with k innermost to the matrix unit: rows of 128 bytes, swizzled in groups of eight (1024 bytes). */
PTX uint64_t ptx_wgmma_desc_k128(uint32_t smem)
{
    return (uint64_t)((smem & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

PTX void ptx_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Keeps what touches d from moving across this: a memory clobber does not order ordinary arithmetic against wgmma. */
PTX void ptx_hold(float *d, int count)
{
    int i;
#pragma unroll
    for (i = 0; i < count; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}
PTX void ptx_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#define PTX_WGMMA_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")

#define PTX_F4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define PTX_F16(d, i) PTX_F4(d, i), PTX_F4(d, i + 4), PTX_F4(d, i + 8), PTX_F4(d, i + 12)
#define PTX_R16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                                        \
    "%" #a ",%" #b ",%" #c ",%" #d ",%" #e ",%" #f ",%" #g ",%" #h ",%" #i ",%" #j ",%" #k ",%" #l ",%" #m ",%" #n     \
    ",%" #o ",%" #p

#define PTX_REGS_64                                                                                                    \
    PTX_R16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                                      \
    "," PTX_R16(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,                                            \
                31) "," PTX_R16(32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46,                            \
                                47) "," PTX_R16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63)
#define PTX_WGMMA_N128(kind, types, d, a, b, keep, trail)                                                              \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"                                                            \
                 "wgmma.mma_async.sync.aligned.m64n128" kind ".f32" types " {" PTX_REGS_64                             \
                 "}, %64, %65, p, 1, 1" trail "; }"                                                                    \
                 : PTX_F16(d, 0), PTX_F16(d, 16), PTX_F16(d, 32), PTX_F16(d, 48)                                       \
                 : "l"(a), "l"(b), "r"((int)(keep)))
/* Starts d (64 x 128) = a b + (keep ? d : 0) with fp32 sums. Both operands have k innermost. */
#define PTX_WGMMA_F16_N128(d, a, b, keep) PTX_WGMMA_N128("k16", ".f16.f16", d, a, b, keep, ", 0, 0")
#define PTX_WGMMA_BF16_N128(d, a, b, keep) PTX_WGMMA_N128("k16", ".bf16.bf16", d, a, b, keep, ", 0, 0")
#define PTX_WGMMA_TF32_N128(d, a, b, keep) PTX_WGMMA_N128("k8", ".tf32.tf32", d, a, b, keep, "")

#endif
