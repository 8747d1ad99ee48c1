/* This file says how the parts of k meet. Where several blocks share a tile's k, each leaves its sums in memory. They
 * are a part. The parts of a tile are always added in the order of k, so the same call gives the same bits. There are
 * two ways: Meeting (parts_begin to parts_add_chunk). With much to add, blocks stay and add a chunk of the tile each; a
 * block stays only when all blocks of the tile are running, so nobody waits for one that cannot start. The last block
 * to arrive adds the chunks for which nobody stayed. With little to add, one block adds all of it. The last of a group
 * (parts_arrive_last). Nobody waits. The block that arrives last adds the parts of its group, and where there are
 * several groups, the last of their last blocks adds the groups' sums. */
#ifndef RUNG_DEVICE_PARTS_H
#define RUNG_DEVICE_PARTS_H

#include "device/args.h"
#include "device/end.h"

/* Waits for all threads of a block that add parts. A kernel that has other threads too defines its own before it
 * includes this file. */
#ifndef PARTS_SYNC
#define PARTS_SYNC() __syncthreads()
#endif

/* Returns the counters, which are zero before and after every launch. They lie just before the workspace. */
RUNG_DEVICE unsigned *parts_counters(const rung_args *g)
{
    return (unsigned *)((char *)g->workspace - RUNG_TICKET_BYTES);
}

RUNG_DEVICE unsigned parts_count_in(unsigned *at, unsigned value)
{
#ifdef RUNG_LENS
    __threadfence();
    return atomicAdd(at, value);
#else
    unsigned old;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(value) : "memory");
    return old;
#endif
}

RUNG_DEVICE unsigned parts_look(const unsigned *at)
{
#ifdef RUNG_LENS
    return atomicAdd((unsigned *)at, 0u);
#else
    unsigned now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
    return now;
#endif
}

/* ---- where parts lie ---- */

/* Where blocks share the steps of all tiles in their order, a block leaves two parts at most: the end of one tile and
 * the beginning of another. So each block has room for two. A beginning goes to the first, all else to the second. The
 * function returns the place of part `part` of a tile, in tiles from the place of its first part. */
RUNG_DEVICE unsigned parts_place(unsigned part)
{
    return part ? 2 * part + 1 : 0;
}

/* ---- meeting ----
 * Each tile has two counters. at[0] counts the parts that have begun and, from bit 16 on, the stayers that have seen
 * all parts arrive. at[1] counts the parts that are in memory and, from bit 16 on, the blocks that stay. */

/* Returns how many vectors (float4) of the tile make a chunk. There are as many chunks as parts, of 256 bytes at least,
 * and 32 chunks at most. Where all parts together have no more than `few` vectors, the tile is one chunk. */
RUNG_DEVICE unsigned parts_chunk(unsigned parts, const unsigned vectors, unsigned few)
{
    const unsigned chunks = min(min(parts, 32u), vectors / 16);
    return parts * vectors <= few ? vectors : ((vectors + chunks - 1) / chunks + 15) / 16 * 16;
}

/* One thread calls this when its block begins its part. */
RUNG_DEVICE void parts_begin(unsigned *at)
{
    atomicAdd(at, 1);
}

/* One thread calls this before its block's part goes to memory. It returns how many parts have begun, for parts_join().
 */
RUNG_DEVICE unsigned parts_begun(unsigned *at)
{
    return *(volatile unsigned *)at;
}

/* All threads of a block call this whose part is stored and that adds nothing. */
RUNG_DEVICE void parts_leave(unsigned *at)
{
    PARTS_SYNC(); /* thread 0 publishes what all have stored */
    if (threadIdx.x == 0)
        parts_count_in(at + 1, 1);
}

/* All threads of the block that adds all parts call this. It waits until `others` blocks, of lower numbers, have left.
 */
RUNG_DEVICE void parts_await(unsigned *at, unsigned others)
{
    if (threadIdx.x == 0) {
        while (parts_look(at + 1) != others)
            ;
        at[0] = at[1] = 0;
    }
    PARTS_SYNC();
}

/* The chunks that a block adds. */
struct parts_share {
    unsigned begin, end;
};

/* All threads call this once their block's part is stored. `begun` is what thread 0 saw; `may_stay` says that the block
 * has nothing else to do. It returns when all parts are in memory, or at once with no chunks. */
RUNG_DEVICE struct parts_share parts_join(unsigned *at, unsigned parts, unsigned chunks, unsigned begun, int may_stay)
{
    __shared__ struct parts_share share;
    PARTS_SYNC(); /* thread 0 publishes what all have stored */
    if (threadIdx.x == 0) {
        const int stays = may_stay && chunks > 1 && (begun & 0xffff) == parts;
        unsigned old = parts_count_in(at + 1, stays ? 0x10001 : 1), now = old + (stays ? 0x10001 : 1);
        share.begin = old >> 16, share.end = chunks;
        const int counts = stays && share.begin < chunks;
        if ((now & 0xffff) < parts) {
            share.begin = counts ? share.begin : chunks;
            share.end = counts ? share.begin + 1 : chunks;
            while (counts && (now & 0xffff) < parts)
                now = parts_look(at + 1);
        }
        if ((now & 0xffff) == parts) {
            const unsigned stayers = min(now >> 16, chunks);
            if (stayers == 0 || (counts && (parts_count_in(at, 0x10000) >> 16) + 1 == stayers))
                at[0] = 0, at[1] = 0;
        }
    }
    PARTS_SYNC();
    return share;
}

/* Adds parts `from` to `to` of one vector. The first part lies at `head`, the others at next, next + stride and so on.
 */
RUNG_DEVICE float4 parts_sum(const float4 *head, const float4 *next, size_t stride, unsigned from, unsigned to)
{
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (from == 0 && to > 0)
        sum = __ldcg(head), from = 1;
    next += (from - 1) * stride;
#pragma unroll 8
    for (; from < to; from++, next += stride)
        sum = add4(sum, __ldcg(next));
    return sum;
}

/* Adds the parts of vectors first .. first + count of a tile into `sums`, which lies in shared memory and holds count
 * vectors, or as many as there are threads. The threads share a short chunk's parts: then there are several sums of
 * each vector, `count` apart. It returns how many. In a long chunk a thread adds `many` vectors at once: so many loads
 * are under way. */
RUNG_DEVICE unsigned parts_add_chunk(float4 *sums, const float4 *head, const float4 *next, size_t stride,
                                     unsigned parts, unsigned first, unsigned count, const unsigned threads,
                                     const int many)
{
    const unsigned tid = threadIdx.x;
    head += first, next += first;
    if (count >= threads) {
#pragma unroll 1
        for (unsigned v = tid; v < count; v += many * threads) {
            float4 sum[6];
            const float4 *from = next + v;
#pragma unroll
            for (int i = 0; i < many; i++)
                if (v + i * threads < count)
                    sum[i] = __ldcg(head + v + i * threads);
#pragma unroll 2
            for (unsigned s = 1; s < parts; s++, from += stride)
#pragma unroll
                for (int i = 0; i < many; i++)
                    if (v + i * threads < count)
                        sum[i] = add4(sum[i], __ldcg(from + i * threads));
#pragma unroll
            for (int i = 0; i < many; i++)
                if (v + i * threads < count)
                    sums[v + i * threads] = sum[i];
        }
        return 1;
    }
    const unsigned groups = threads / count, group = tid / count, v = tid % count;
    if (group < groups)
        sums[tid] = parts_sum(head + v, next + v, stride, group * parts / groups, (group + 1) * parts / groups);
    return groups;
}

/* ---- the last of a group ---- */

/* Returns how many parts make a group: all, up to 16; beyond that about the square root of their number, so that no
 * block reads many. */
RUNG_DEVICE unsigned parts_group(unsigned parts)
{
    unsigned group = parts;
    if (parts > 16)
        for (group = 5; group * group < parts;)
            group++;
    return group;
}

/* Counts this block in. It returns true in the last block of `count`, which then sees what the others have stored. The
 * counter is zero afterwards. */
RUNG_DEVICE int parts_arrive_last(unsigned *counter, unsigned count)
{
    __shared__ unsigned ticket;
    __syncthreads(); /* thread 0 publishes what all have stored */
    if (threadIdx.x == 0) {
        ticket = parts_count_in(counter, 1);
        if (ticket == count - 1)
            *counter = 0;
    }
    __syncthreads();
    return ticket == count - 1;
}

/* Adds `count` parts of `many` vectors, which lie `apart` from each other. So enough loads are under way to hide how
 * long each takes from L2. The first part lies at `head`, the others at next, next + stride and so on. */
RUNG_DEVICE void parts_sum_many(float4 *sum, const float4 *head, const float4 *next, size_t stride, unsigned count,
                                const int many, const int apart)
{
#pragma unroll
    for (int i = 0; i < many; i++)
        sum[i] = __ldcg(head + i * apart);
    if (many > 2) {
#pragma unroll 4
        for (unsigned s = 1; s < count; s++, next += stride)
#pragma unroll
            for (int i = 0; i < many; i++)
                sum[i] = add4(sum[i], __ldcg(next + i * apart));
    } else {
#pragma unroll 8
        for (unsigned s = 1; s < count; s++, next += stride)
#pragma unroll
            for (int i = 0; i < many; i++)
                sum[i] = add4(sum[i], __ldcg(next + i * apart));
    }
}

/* Adds the sums of a block's slices of k, which lie in shared memory, in their order. */
RUNG_DEVICE float4 slice_sum(const float4 *from, const int slices, const int stride)
{
    float4 sum = from[0];
#pragma unroll
    for (int s = 1; s < slices; s++)
        sum = add4(sum, from[s * stride]);
    return sum;
}

#endif
