/* The split of operands. Where the guard refused every block of the last product like this one
 * (families/accurate/recall.h), and in the first replay of a graph, it is preceded by a look at two lines of each block
 * of lines, its witnesses. They can prove that a block of C will be refused: other lines could only make the largest
 * share and the largest magnitude larger. Where so many blocks are certain to be refused that the guard will refuse
 * all, the look marks them, and neither split nor product takes place. Where it is not certain the look leaves no
 * trace. So it can change the time of a product and nothing else. */
#ifndef RUNG_DEVICE_F16X3_LOOK_H
#define RUNG_DEVICE_F16X3_LOOK_H

#include "device/f16x3_rules.h"
#include "device/f16x3_split.h"

enum {
    LOOK_AHEAD = 8, /* elements that a thread has asked for at once */
    LOOK_WARPS = F16X3_THREADS / 32,
    FIRST_PAUSE = 8, /* so many refused products without a look after one that was in vain, twice as many each time */
    LONGEST_PAUSE = 1024,
    TRUSTED = 64, /* after so many good looks the next pause is the first one again */
};

/* The split adds magnitudes in another order, and so does every number of threads. Up to F16X3_LOOK_K elements that
 * moves a line's peak by less than this factor. */
#define LOOK_MARGIN 1.01f

/* Returns the line that a witness names. Where none is known the lines are much alike: the block's first will do. */
RUNG_DEVICE int look_line(const f16x3_operand *s, int witness)
{
    const f16x3_witness w = __ldcg(&s->witness[witness]);
    const int first = witness / 2 * F16X3_BM, line = first + (int)(w & (F16X3_BM - 1));
    return w >> (16 + F16X3_WITNESS_BITS) >= s->number && line < s->lines ? line : first;
}

/* Looks at one line. The whole block does. */
RUNG_DEVICE void look_at(const f16x3_operand *s, int line, f16x3_seen *seen)
{
    __shared__ unsigned warp_max[LOOK_WARPS];
    __shared__ float warp_sum[LOOK_WARPS];
    const int64_t step = s->k_innermost ? 1 : s->ld;
    const float *x = s->x + line * (s->k_innermost ? s->ld : 1);
    unsigned max_bits = 0;
    float sum = 0;
    int i, k;
    for (k = threadIdx.x; k < s->k; k += LOOK_AHEAD * F16X3_THREADS) {
        float v[LOOK_AHEAD];
#pragma unroll
        for (i = 0; i < LOOK_AHEAD; i++) {
            const int at = k + i * F16X3_THREADS;
            v[i] = at < s->k ? x[at * step] : 0.0f;
        }
#pragma unroll
        for (i = 0; i < LOOK_AHEAD; i++) {
            max_bits = max(max_bits, __float_as_uint(fabsf(v[i])));
            sum += fabsf(v[i]) * SPLIT_SMALL;
        }
    }
    for (i = 16; i > 0; i >>= 1) {
        max_bits = max(max_bits, __shfl_xor_sync(~0u, max_bits, i));
        sum += __shfl_xor_sync(~0u, sum, i);
    }
    if (threadIdx.x % 32 == 0) {
        warp_max[threadIdx.x / 32] = max_bits;
        warp_sum[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (i = 1; i < LOOK_WARPS; i++) {
        max_bits = max(max_bits, warp_max[i]);
        sum += warp_sum[i];
    }
    seen->max_bits = max_bits;
    seen->peak_bits = max_bits && max_bits < 0x7f800000u ? __float_as_uint(split_peak(max_bits, sum)) : 0;
}

/* Joins what was seen of a block's two witnesses, by other blocks of this launch. */
RUNG_DEVICE f16x3_seen look_join(const f16x3_seen *of_block)
{
    const uint4 v = __ldcg((const uint4 *)of_block);
    return (f16x3_seen){max(v.x, v.z), max(v.y, v.w)};
}

/* Says whether lines may be dense, beside which a long tail makes a block safe. Nobody looks for tails here. */
RUNG_DEVICE int look_may_be_dense(f16x3_seen lines, int k)
{
    return k > F16X3_TAIL && __uint_as_float(lines.peak_bits) * k <= F16X3_DENSE * LOOK_MARGIN;
}

/* Says whether f16x3_pair_safe() is certain to be 0. */
RUNG_DEVICE int look_is_refused(const f16x3_look_args *s, f16x3_seen a, f16x3_seen b)
{
    const int k = s->split.a.k, log2_k = 32 - __clz(k);
    const float few = __uint_as_float(a.peak_bits) * __uint_as_float(b.peak_bits) * (s->min_terms * k);
    if (max(a.max_bits, b.max_bits) >= 0x7f800000u)
        return 1;
    if ((int)(a.max_bits >> 23) + (int)(b.max_bits >> 23) - 254 + 2 + log2_k > 127)
        return 1;
    return few > LOOK_MARGIN && !look_may_be_dense(a, k) && !look_may_be_dense(b, k);
}

/* Remembers a look in vain: what is known of the lines is no good, and for a while nobody looks. Where nothing was
 * known the look was a question, and the next refused product is looked at. */
RUNG_DEVICE void look_was_in_vain(const f16x3_look_args *s)
{
    f16x3_recalled *r = s->recalled;
    const int asked = r->refused == F16X3_NOT_KNOWN;
    int i;
    for (i = threadIdx.x; i < (s->rows + s->columns) * 2; i += F16X3_THREADS)
        s->split.a.witness[i] = 0;
    if (threadIdx.x > 0)
        return;
    r->refused = F16X3_NOT_ALL;
    if (s->told)
        *s->told = 0;
    if (asked)
        return;
    r->pause = r->pause == 0 || r->good >= TRUSTED ? FIRST_PAUSE : min(2 * r->pause, (uint32_t)LONGEST_PAUSE);
    r->left = r->pause;
    r->good = 0;
}

/* The last block that has looked judges all blocks of C. */
RUNG_DEVICE void look_judge(const f16x3_look_args *s)
{
    __shared__ int open; /* so many blocks may be safe */
    const int blocks = s->rows * s->columns;
    int i, mine = 0, all;
    if (threadIdx.x == 0)
        open = 0;
    __syncthreads();
    for (i = threadIdx.x; i < blocks; i += F16X3_THREADS)
        mine += !look_is_refused(s, look_join(s->seen + i / s->columns * 2),
                                 look_join(s->seen + (s->rows + i % s->columns) * 2));
    if (mine)
        atomicAdd(&open, mine);
    __syncthreads();
    all = open < s->least_safe;
    for (i = threadIdx.x; all && i < blocks; i += F16X3_THREADS)
        s->marks[i] = 1;
    if (!all) {
        look_was_in_vain(s);
        __threadfence();
        __syncthreads(); /* the split leaves witnesses, too */
    }
    if (threadIdx.x > 0)
        return;
    *s->arrived = 0;
    ptx_store_release(s->decided, all ? F16X3_TO_REFUSE : F16X3_TO_SPLIT);
    if (!all)
        return;
    s->recalled->good++;
    s->marks[s->any] = s->marks[s->any + 1] = 1;
    *s->refused = 1;
    if (s->counts) {
        atomicAdd(&s->counts[0], (unsigned long long)blocks);
        atomicAdd(&s->counts[1], (unsigned long long)blocks);
    }
}

/* Says whether there is a look: where all was refused the last time, and where nothing is known, which is once in the
 * life of a graph. A block that starts after a look in vain finds that there is none, and splits as the others do. */
RUNG_DEVICE int look_is_due(const f16x3_look_args *s)
{
    const uint64_t refused = *(const volatile uint64_t *)&s->recalled->refused;
    return refused == s->split.a.number || refused == F16X3_NOT_KNOWN;
}

/* Looks at one witness, where there is a look. */
RUNG_DEVICE void look(const f16x3_look_args *s, int witness)
{
    __shared__ int is_last;
    const int of_a = witness < s->rows * 2, all = (s->rows + s->columns) * 2;
    const f16x3_operand *op = of_a ? &s->split.a : &s->split.b;
    if (witness >= all)
        return;
    const int line = look_line(op, of_a ? witness : witness - s->rows * 2); /* asked for with the question */
    if (!look_is_due(s))
        return;
    look_at(op, line, s->seen + witness);
    __threadfence();
    if (threadIdx.x == 0)
        is_last = atomicAdd(s->arrived, 1u) == (unsigned)all - 1;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    look_judge(s);
}

/* Says whether a block splits its share. It waits for what a look says, if there is one, which takes place in blocks of
 * lower number. One thread asks, as thousands of warps would wait for each other at one place of L2; it asks whether
 * there is a look and what that says at once. */
RUNG_DEVICE int look_leaves_split(const f16x3_look_args *s)
{
    int split = 1;
    if (threadIdx.x == 0) {
        const int due = look_is_due(s);
        uint32_t said = ptx_load_acquire(s->decided);
        while (due && said == 0) {
            __nanosleep(20);
            said = ptx_load_acquire(s->decided);
        }
        split = !due || said == F16X3_TO_SPLIT;
    }
    return __syncthreads_and(split);
}

RUNG_KERNEL(F16X3_THREADS, 3) f16x3_look(const __grid_constant__ f16x3_look_args s)
{
    if (blockIdx.x >= s.blocks) {
        if (look_leaves_split(&s))
            split_share(&s.split, blockIdx.x - s.blocks);
    } else {
        look(&s, blockIdx.x);
    }
}

#endif
