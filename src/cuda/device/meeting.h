/* Where the blocks that hold parts of one tile's sums meet, each part left in memory, always added in the same order.
 * Where there is much to add, as many blocks as the tile has chunks stay to add one chunk each. A block stays only when
 * all the parts' blocks are running, so that nobody waits for one that cannot start; what nobody stayed for is added by
 * the last to come. Where there is little, one block adds all: the last to come, or the one of the last part, which
 * keeps that part and awaits the others (meeting_leave, meeting_await). Two counters a tile, zero before and after a
 * launch: at[0]  parts begun, and from bit 16 on the stayers that have seen all parts arrive at[1]  parts left in
 * memory, and from bit 16 on the blocks that stay */
#ifndef RUNG_DEVICE_MEETING_H
#define RUNG_DEVICE_MEETING_H

#include "device/args.h"

/* All threads of a block that meet others: a kernel may have more than those. */
#ifndef MEETING_SYNC
#define MEETING_SYNC() __syncthreads()
#endif

/* Vectors (float4) of a chunk: a tile's, over parts, 256 bytes at least and 32 chunks at most. Where all parts have no
 * more than `few`, one block does it all: waiting for each other would take longer. */
RUNG_DEVICE unsigned meeting_chunk(unsigned parts, const unsigned vectors, unsigned few)
{
    const unsigned chunks = min(min(parts, 32u), vectors / 16);
    return parts * vectors <= few ? vectors : ((vectors + chunks - 1) / chunks + 15) / 16 * 16;
}

/* By one thread, when its block begins its part. */
RUNG_DEVICE void meeting_begin(unsigned *at)
{
    atomicAdd(at, 1);
}

/* By one thread, before its block's part goes to memory: how many parts have begun, for meeting_join(). */
RUNG_DEVICE unsigned meeting_begun(unsigned *at)
{
    return *(volatile unsigned *)at;
}

RUNG_DEVICE unsigned meeting_add(unsigned *at, unsigned value)
{
#ifdef RUNG_LENS
    return atomicAdd(at, value);
#else
    unsigned old;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(value) : "memory");
    return old;
#endif
}

RUNG_DEVICE unsigned meeting_look(const unsigned *at)
{
#ifdef RUNG_LENS
    return atomicAdd((unsigned *)at, 0u);
#else
    unsigned now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
    return now;
#endif
}

/* By all threads of a block whose part is stored and that adds nothing. */
RUNG_DEVICE void meeting_leave(unsigned *at)
{
    MEETING_SYNC(); /* thread 0 lets out what all have stored */
    if (threadIdx.x == 0)
        meeting_add(at + 1, 1);
}

/* By all threads of the block that adds all: until `others` blocks, of lower numbers, have left. */
RUNG_DEVICE void meeting_await(unsigned *at, unsigned others)
{
    if (threadIdx.x == 0) {
        while (meeting_look(at + 1) != others)
            ;
        at[0] = at[1] = 0;
    }
    MEETING_SYNC();
}

/* The chunks, from `begin` on, that this block is to add. */
struct meeting_share {
    unsigned begin, end;
};

/* By all threads, once the block's part is stored. `begun` as thread 0 saw it; `may_stay`: the block has nothing else
 * to do. Returns when all parts are there, or with no chunks. */
RUNG_DEVICE struct meeting_share meeting_join(unsigned *at, unsigned parts, unsigned chunks, unsigned begun,
                                              int may_stay)
{
    __shared__ struct meeting_share share;
    MEETING_SYNC(); /* thread 0 lets out what all have stored */
    if (threadIdx.x == 0) {
        const int stays = may_stay && chunks > 1 && (begun & 0xffff) == parts;
        unsigned old = meeting_add(at + 1, stays ? 0x10001 : 1), now = old + (stays ? 0x10001 : 1);
        share.begin = old >> 16, share.end = chunks;
        const int counts = stays && share.begin < chunks;
        if ((now & 0xffff) < parts) {
            share.begin = counts ? share.begin : chunks;
            share.end = counts ? share.begin + 1 : chunks;
            while (counts && (now & 0xffff) < parts)
                now = meeting_look(at + 1);
        }
        if ((now & 0xffff) == parts) {
            const unsigned stayers = min(now >> 16, chunks);
            if (stayers == 0 || (counts && (meeting_add(at, 0x10000) >> 16) + 1 == stayers))
                at[0] = 0, at[1] = 0;
        }
    }
    MEETING_SYNC();
    return share;
}

RUNG_DEVICE float4 meeting_add4(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/* Adds one vector's parts `from` to `to`: the first lies at `head`, the others at next, next + stride, ... */
RUNG_DEVICE float4 meeting_sum(const float4 *head, const float4 *next, size_t stride, unsigned from, unsigned to)
{
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (from == 0 && to > 0)
        sum = __ldcg(head), from = 1;
    next += (from - 1) * stride;
#pragma unroll 8
    for (; from < to; from++, next += stride)
        sum = meeting_add4(sum, __ldcg(next));
    return sum;
}

/* Vectors first .. first + count of the tile into `sums` (shared memory, count or as many vectors as threads): the
 * threads share a short chunk's parts between them. Returns how many sums of each vector there are, `count` apart.
 * `many` vectors of a long chunk at once keep loads under way. */
RUNG_DEVICE unsigned meeting_add_chunk(float4 *sums, const float4 *head, const float4 *next, size_t stride,
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
                        sum[i] = meeting_add4(sum[i], __ldcg(from + i * threads));
#pragma unroll
            for (int i = 0; i < many; i++)
                if (v + i * threads < count)
                    sums[v + i * threads] = sum[i];
        }
        return 1;
    }
    const unsigned groups = threads / count, group = tid / count, v = tid % count;
    if (group < groups)
        sums[tid] = meeting_sum(head + v, next + v, stride, group * parts / groups, (group + 1) * parts / groups);
    return groups;
}

/* A vector's sum of those that meeting_add_chunk() made. */
RUNG_DEVICE float4 meeting_total(const float4 *sums, unsigned of_each, unsigned count)
{
    float4 sum = sums[0];
    for (unsigned i = 1; i < of_each; i++)
        sum = meeting_add4(sum, sums[i * count]);
    return sum;
}
#endif
