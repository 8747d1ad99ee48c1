/* Splits two operands into scaled images of fp16 hi and lo (f16x3.h says how they lie), and finds what the guard needs.
 * Leading dimensions and addresses may be any. Lines and k are padded with zeros. Where no zeros are kept, one launch
 * clears first; the next one splits. It reads an element once as long as the line fits what its threads keep: registers
 * where lines lie along k, the shared memory of a cluster where they lie across. Values stay exact to 2^-23 of
 * themselves down to 2^-28 of their line's largest; smaller ones are counted. */
#ifndef RUNG_DEVICE_F16X3_SPLIT_H
#define RUNG_DEVICE_F16X3_SPLIT_H

#include <cuda_fp16.h>

#include "device/alike.h"
#include "device/f16x3.h"
#include "device/ptx.h"

enum { SPLIT_THREADS = F16X3_THREADS, SPLIT_KEEP = 8 /* float4s that a thread keeps in registers */ };

#define SPLIT_SMALL 0x1p-24f /* magnitudes are added times this: their sum must not overflow */

/* Returns the power of two that brings the largest magnitude of a line to [2^14, 2^15). Of lines below the normal range
 * the guard refuses the blocks, as of those with NaN and Inf: their magnitudes add up to 0, and no share is known. */
RUNG_DEVICE int split_scale(unsigned max_bits)
{
    if (max_bits < 0x00800000u || max_bits >= 0x7f800000u)
        return 0;
    return 14 - ((int)(max_bits >> 23) - 127);
}

RUNG_DEVICE float split_exp2(int e)
{
    return __int_as_float((e + 127) << 23);
}

/* Splits two values that follow each other along k: both hi go to one word, both lo to another. It counts those whose
 * lo lost bits. */
RUNG_DEVICE uint2 split_pair(float x, float y, float s1, float s2, unsigned *tiny)
{
    float v = x * s1 * s2, w = y * s1 * s2;
    unsigned hi = ptx_round_halves(v, w);
    float rest_v = v - __half2float(__ushort_as_half((unsigned short)hi));
    float rest_w = w - __half2float(__ushort_as_half((unsigned short)(hi >> 16)));
    *tiny += (x != 0.0f) & (fabsf(v) < 0x1p-13f); /* no branches: in lines of wide span they would diverge */
    *tiny += (y != 0.0f) & (fabsf(w) < 0x1p-13f);
    return make_uint2(hi, ptx_round_halves(rest_v * 2048.0f, rest_w * 2048.0f));
}

RUNG_DEVICE char *split_row(const f16x3_operand *s, int k_block, int line)
{
    return s->image + ((int64_t)k_block * s->row_groups + (line >> 3)) * 1024 + (line & 7) * 128;
}

/* Stores four values of a line, of k to k + 3, in the image. k is a multiple of four. */
RUNG_DEVICE void split_store4(const f16x3_operand *s, int line, int k, float4 x, float s1, float s2, unsigned *tiny)
{
    uint2 a = split_pair(x.x, x.y, s1, s2, tiny), b = split_pair(x.z, x.w, s1, s2, tiny);
    char *row = split_row(s, k >> 5, line);
    int chunk = (k >> 3) & 3, half = k & 4, r = line & 7;
    *(uint2 *)(row + ((chunk ^ r) << 4) + half * 2) = make_uint2(a.x, b.x);
    *(uint2 *)(row + (((chunk + 4) ^ r) << 4) + half * 2) = make_uint2(a.y, b.y);
}

RUNG_DEVICE float4 split_load4(const float *row, int k, int k_end, int vector)
{
    float4 v = make_float4(0, 0, 0, 0);
    if (vector && k + 3 < k_end)
        return *(const float4 *)(row + k);
    if (k < k_end)
        v.x = row[k];
    if (k + 1 < k_end)
        v.y = row[k + 1];
    if (k + 2 < k_end)
        v.z = row[k + 2];
    if (k + 3 < k_end)
        v.w = row[k + 3];
    return v;
}

RUNG_DEVICE void split_stat4(float4 v, unsigned *max_bits, float *sum)
{
    unsigned a = __float_as_uint(fabsf(v.x)), b = __float_as_uint(fabsf(v.y));
    unsigned c = __float_as_uint(fabsf(v.z)), d = __float_as_uint(fabsf(v.w));
    *max_bits = max(*max_bits, max(max(a, b), max(c, d)));
    *sum += fabsf(v.x) * SPLIT_SMALL + fabsf(v.y) * SPLIT_SMALL + fabsf(v.z) * SPLIT_SMALL + fabsf(v.w) * SPLIT_SMALL;
}

/* Returns the largest element's share of a line's sum of magnitudes: 1 where it is alone, 1/k where all are alike. */
RUNG_DEVICE float split_peak(unsigned max_bits, float sum)
{
    return __uint_as_float(max_bits) * SPLIT_SMALL / sum;
}

RUNG_DEVICE int split_alone(unsigned max_bits, float sum)
{
    return max_bits && max_bits < 0x7f800000u && split_peak(max_bits, sum) >= F16X3_ALONE;
}

/* True where few elements stand out and so many others are there that they may be a long tail. */
RUNG_DEVICE int split_may_tail(const f16x3_operand *s, unsigned max_bits, float sum)
{
    return s->k > F16X3_TAIL && split_alone(max_bits, sum);
}

/* Makes a line one of its block's two witnesses, where its 16 bits are the largest. */
RUNG_DEVICE void split_testify(const f16x3_operand *s, int line, int which, unsigned bits)
{
    atomicMax(&s->witness[line / F16X3_BM * 2 + which],
              (((f16x3_witness)s->number << 16 | bits) << F16X3_WITNESS_BITS) | line % F16X3_BM);
}

/* Tells of a line that could make its block unsafe. */
RUNG_DEVICE void split_tell_wild(const f16x3_operand *s, int line, float peak, unsigned max_bits)
{
    STORE_ALIKE(s->wild, 1u);
    if (s->witness && max_bits < 0x7f800000u)
        split_testify(s, line, 0, __float_as_uint(peak) >> 14 & 0xffff); /* a peak is at most 1, or unknown */
    if (s->witness && max_bits >= s->wild_bits)
        split_testify(s, line, 1, max_bits >> 15);
}

/* Adds to the line's group of 64 what this line has. */
RUNG_DEVICE void split_report(const f16x3_operand *s, int line, unsigned max_bits, float sum, int tail)
{
    f16x3_group *g = &s->group[line / F16X3_GROUP];
    s->line[line].scale = split_scale(max_bits);
    if (max_bits == 0)
        return;
    atomicMax(&g->max_bits, max_bits);
    const float peak = split_peak(max_bits, sum);
    if (!(peak <= s->tame_peak && max_bits < s->wild_bits))
        split_tell_wild(s, line, peak, max_bits);
    if (max_bits >= 0x7f800000u)
        return;
    atomicMax(&g->peak_bits, __float_as_uint(peak));
    if (split_alone(max_bits, sum))
        atomicAdd(&g->alone, 1u + ((unsigned)(tail >= F16X3_TAIL) << F16X3_TAIL_BIT));
}

RUNG_DEVICE unsigned split_warp_sum(unsigned v)
{
    int i;
    for (i = 16; i > 0; i >>= 1)
        v += __shfl_xor_sync(~0u, v, i);
    return v;
}

RUNG_DEVICE void split_count(const f16x3_operand *s, int line, unsigned tiny)
{
    if (tiny) {
        atomicAdd(&s->line[line].tiny, tiny);
        atomicAdd(&s->group[line / F16X3_GROUP].tiny, tiny);
    }
}

/* Does the same for 32 lines, a lane a line. */
RUNG_DEVICE void split_count32(const f16x3_operand *s, int line, unsigned tiny)
{
    unsigned all = split_warp_sum(tiny);
    if (tiny)
        atomicAdd(&s->line[line].tiny, tiny);
    if (all && threadIdx.x % 32 == 0)
        atomicAdd(&s->group[line / F16X3_GROUP].tiny, all);
}

RUNG_DEVICE const float *split_source(const f16x3_operand *s, int entry)
{
    return s->x_array ? s->x_array[entry] : s->x;
}

/* The threads that share a line along k, as many as keep it in registers: some of a warp, or some warps of a block. */
typedef struct {
    int line, first, threads; /* which line; this thread's place among so many */
    int warp, warps;          /* the first of its warps in the block, and how many they are */
} split_team;

RUNG_DEVICE split_team split_team_of(const f16x3_operand *s, int block)
{
    int bits = s->line_bits, threads = 1 << bits, team = threadIdx.x >> bits, first = team << bits;
    split_team of = {block * (SPLIT_THREADS >> bits) + team, (int)threadIdx.x - first, threads,
                     bits > 5 ? first / 32 : (int)threadIdx.x / 32, max(1, threads / 32)};
    return of;
}

#define SPLIT_TAIL 0x1p-21f /* a term smaller than this share of a sum's largest one does not move the sum */

/* Returns the k of the first of four elements, from k on, that has these bits; `none` where none has. */
RUNG_DEVICE int split_first4(float4 v, int k, unsigned bits, int none)
{
    none = __float_as_uint(fabsf(v.w)) == bits ? min(k + 3, none) : none;
    none = __float_as_uint(fabsf(v.z)) == bits ? min(k + 2, none) : none;
    none = __float_as_uint(fabsf(v.y)) == bits ? min(k + 1, none) : none;
    return __float_as_uint(fabsf(v.x)) == bits ? min(k, none) : none;
}

/* Counts those of four elements, from k on, that lie behind `place` and before the end and are not less than `least`.
 */
RUNG_DEVICE int split_count4(float4 v, int k, int place, int k_end, float least)
{
    return ((k > place) & (k < k_end) & (fabsf(v.x) >= least)) +
           ((k + 1 > place) & (k + 1 < k_end) & (fabsf(v.y) >= least)) +
           ((k + 2 > place) & (k + 2 < k_end) & (fabsf(v.z) >= least)) +
           ((k + 3 > place) & (k + 3 < k_end) & (fabsf(v.w) >= least));
}

/* What the threads of a block know together of their lines, by the first warp of each. */
typedef struct {
    int place[SPLIT_THREADS / 32]; /* of a line's first largest element */
    int after[SPLIT_THREADS / 32]; /* elements behind it that still move an FP32 sum that holds it */
} split_tails;

/* Says which of four elements are not less than `least`: a bit each. */
RUNG_DEVICE unsigned split_moves4(float4 v, float least)
{
    return (fabsf(v.x) >= least) | (fabsf(v.y) >= least) << 1 | (fabsf(v.z) >= least) << 2 | (fabsf(v.w) >= least) << 3;
}

/* Counts the tail of a line along k. `keep` is what this thread holds of the line; beyond the line it holds zeros,
 * which are never the largest and never count. The whole block comes here, or none of it; the counts are there after
 * the next meeting. */
RUNG_DEVICE void split_tail(const split_team *of, const float4 *keep, const float *row, int k_end, int vector,
                            unsigned max_bits, split_tails *tails)
{
    const float least = fmaxf(__uint_as_float(max_bits) * SPLIT_TAIL, __uint_as_float(1));
    const int step = of->threads * 4;
    unsigned moves = 0;
    int i, k, first = k_end, mine = 0;
#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++) {
        first = split_first4(keep[i], of->first * 4 + i * step, max_bits, first);
        moves |= split_moves4(keep[i], least) << 4 * i;
    }
#pragma unroll 2
    for (k = of->first * 4 + SPLIT_KEEP * step; k < k_end; k += step)
        first = split_first4(split_load4(row, k, k_end, vector), k, max_bits, first);
    if (first < k_end)
        atomicMin(&tails->place[of->warp], first);
    __syncthreads();
    first = tails->place[of->warp];
#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++) /* counts those of each four that lie behind the place */
        mine += __popc(moves >> 4 * i & 15 & 15 << max(0, min(4, first + 1 - of->first * 4 - i * step)));
#pragma unroll 2
    for (k = of->first * 4 + SPLIT_KEEP * step; k < k_end; k += step)
        mine += split_count4(split_load4(row, k, k_end, vector), k, first, k_end, least);
    mine = (int)split_warp_sum((unsigned)mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&tails->after[of->warp], mine);
}

/* Splits lines along k. The first SPLIT_KEEP * 4 values of a thread stay in registers between the two looks. */
RUNG_DEVICE void split_lines(const f16x3_operand *s, const float *x, int block)
{
    __shared__ unsigned warp_max[SPLIT_THREADS / 32];
    __shared__ float warp_sum[SPLIT_THREADS / 32];
    __shared__ split_tails tails;
    split_team of = split_team_of(s, block);
    int line = of.line, k_pad = s->k_blocks * F16X3_KB, k_end = line < s->lines ? s->k : 0;
    const float *row = x + line * s->ld;
    int vector = ((s->ld & 3) | (int)((uintptr_t)x >> 2 & 3)) == 0;
    float4 keep[SPLIT_KEEP];
    unsigned max_bits = 0, tiny = 0;
    float sum = 0, s1, s2;
    int i, k, scale, counts = 0, lanes = min(of.threads, 32);

#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++)
        keep[i] = split_load4(row, (i * of.threads + of.first) * 4, k_end, vector);
#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++)
        split_stat4(keep[i], &max_bits, &sum);
    for (k = (SPLIT_KEEP * of.threads + of.first) * 4; k < k_end; k += of.threads * 4)
        split_stat4(split_load4(row, k, k_end, vector), &max_bits, &sum);
    for (i = lanes / 2; i > 0; i >>= 1) {
        max_bits = max(max_bits, __shfl_xor_sync(~0u, max_bits, i));
        sum += __shfl_xor_sync(~0u, sum, i);
    }
    if (of.threads > 32) {
        if (of.first % 32 == 0) {
            warp_max[threadIdx.x / 32] = max_bits;
            warp_sum[threadIdx.x / 32] = sum;
        }
        __syncthreads();
        max_bits = 0;
        sum = 0;
        for (i = 0; i < of.warps; i++) {
            max_bits = max(max_bits, warp_max[of.warp + i]);
            sum += warp_sum[of.warp + i];
        }
    }
    if (s->k > F16X3_TAIL) { /* a line that long has a whole warp at least */
        if (of.first == 0)
            tails.place[of.warp] = k_end, tails.after[of.warp] = 0;
        counts = __syncthreads_or(split_may_tail(s, max_bits, sum));
        if (counts)
            split_tail(&of, keep, row, k_end, vector, max_bits, &tails);
    }
    scale = split_scale(max_bits);
    s1 = split_exp2(scale >> 1);
    s2 = split_exp2(scale - (scale >> 1));
#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++) {
        k = (i * of.threads + of.first) * 4;
        if (k < k_pad)
            split_store4(s, line, k, keep[i], s1, s2, &tiny);
    }
    for (k = (SPLIT_KEEP * of.threads + of.first) * 4; k < k_pad; k += of.threads * 4)
        split_store4(s, line, k, split_load4(row, k, k_end, vector), s1, s2, &tiny);
    if (counts)
        __syncthreads();
    if (of.first == 0)
        split_report(s, line, max_bits, sum, counts ? tails.after[of.warp] : 0);
    for (i = lanes / 2; i > 0; i >>= 1)
        tiny += __shfl_xor_sync(~0u, tiny, i);
    if (of.first % 32 == 0)
        split_count(s, line, tiny);
}

/* ---- lines across k: 32 lines a cluster, a lane a line, a warp 32 of k at a time ---- */

enum { SPLIT_WARPS = SPLIT_THREADS / 32, SPLIT_LINES = F16X3_LINES, SPLIT_PIECE = F16X3_KB * SPLIT_LINES };

/* What a warp or a block has seen of 32 lines: largest magnitudes and sums of magnitudes; or first places and counts.
 */
typedef struct {
    unsigned max[SPLIT_LINES];
    float sum[SPLIT_LINES];
} split_seen;

/* A thread's part in that. */
typedef struct {
    int lane, warp, rank, cluster;
    int line, first, step; /* its line; the first of its warp's blocks of k, and from one to the next */
    float *kept;           /* its warp's first piece, in shared memory */
} split_place;

/* Reads 32 values along k of one line across k, from block kb of k on. */
RUNG_DEVICE void split_load32(const f16x3_operand *s, const float *x, int line, int kb, float *v)
{
    const float *from = x + (int64_t)kb * F16X3_KB * s->ld + line;
    int count = line < s->lines ? s->k - kb * F16X3_KB : 0, i;
    if (__all_sync(~0u, count >= F16X3_KB)) {
#pragma unroll
        for (i = 0; i < F16X3_KB; i++, from += s->ld)
            v[i] = *from;
    } else {
#pragma unroll
        for (i = 0; i < F16X3_KB; i++, from += s->ld)
            v[i] = i < count ? *from : 0.0f;
    }
}

/* Reads them once more; the warp's first piece is kept. */
RUNG_DEVICE void split_again32(const f16x3_operand *s, const float *x, const split_place *at, int kb, int piece,
                               float *v)
{
    int i;
    if (piece > 0) {
        split_load32(s, x, at->line, kb, v);
        return;
    }
#pragma unroll
    for (i = 0; i < F16X3_KB; i++)
        v[i] = at->kept[i * SPLIT_LINES + at->lane];
}

/* Gathers every block's record, in the order of the blocks. A block may overwrite its own after the next meeting. */
RUNG_DEVICE void split_gather(const split_place *at, const split_seen *mine, split_seen *all)
{
    enum { WORDS4 = sizeof(split_seen) / 16 };
    int i;
    ptx_cluster_sync();
    for (i = threadIdx.x; i < at->cluster * WORDS4; i += SPLIT_THREADS)
        ((float4 *)&all[i / WORDS4])[i % WORDS4] =
            ptx_cluster_load4(ptx_smem((const float4 *)mine + i % WORDS4), i / WORDS4);
    __syncthreads();
}

/* What a thread finds of its line's tail while it splits: the first place of the largest element, how many elements are
 * large enough, and which of each 32 of k, for the pieces that there is room for. */
enum { SPLIT_MOVES = 8 };
typedef struct {
    unsigned place, count;
    unsigned (*moves)[SPLIT_LINES]; /* of its warp's pieces, in shared memory */
} split_seen_tail;

/* Says which of 32 elements are not less than `least`: a bit each. */
RUNG_DEVICE unsigned split_moves32(const float *v, float least)
{
    unsigned moves = 0;
    int i;
#pragma unroll
    for (i = 0; i < F16X3_KB; i++)
        moves |= (unsigned)(fabsf(v[i]) >= least) << i;
    return moves;
}

/* Looks at 32 elements of block kb of k. Zeros behind the end are never the largest and never count. */
RUNG_DEVICE void split_see_tail(const split_place *at, int kb, int piece, const float *v, unsigned max_bits,
                                float least, split_seen_tail *tail)
{
    const unsigned moves = split_moves32(v, least);
    int i;
#pragma unroll
    for (i = F16X3_KB - 1; i >= 0; i--)
        if (__float_as_uint(fabsf(v[i])) == max_bits)
            tail->place = min(tail->place, (unsigned)(kb * F16X3_KB + i));
    tail->count += __popc(moves);
    if (piece < SPLIT_MOVES)
        tail->moves[piece][at->lane] = moves;
}

/* Does what split_tail does, after every thread has seen its part. The whole cluster comes here, or none of it. What
 * stands before the largest element is told apart only where that can matter. */
RUNG_DEVICE int split_tail_across(const f16x3_operand *s, const float *x, const split_place *at, float least,
                                  const split_seen_tail *tail, split_seen *mine, split_seen *all)
{
    float v[F16X3_KB];
    unsigned place = tail->place, count = 0, moves;
    int i, kb, piece;
    ptx_cluster_sync(); /* all blocks have read the maxima */
    if (at->warp == 0) {
        mine->max[at->lane] = s->k;
        mine->sum[at->lane] = 0.0f;
    }
    __syncthreads();
    atomicMin(&mine->max[at->lane], place);
    atomicAdd(&mine->sum[at->lane], (float)tail->count); /* whole numbers: exact in any order */
    split_gather(at, mine, all);
    for (i = 0; i < at->cluster; i++) {
        place = min(place, all[i].max[at->lane]);
        count += (unsigned)all[i].sum[at->lane];
    }
    if (__all_sync(~0u, count < F16X3_TAIL))
        return 0;
    ptx_cluster_sync();
    if (at->warp == 0)
        mine->max[at->lane] = 0;
    __syncthreads();
    count = 0;
    for (kb = at->first, piece = 0; kb < s->k_blocks; kb += at->step, piece++) {
        if (piece < SPLIT_MOVES) {
            moves = tail->moves[piece][at->lane];
        } else {
            split_load32(s, x, at->line, kb, v);
            moves = split_moves32(v, least);
        }
        i = (int)place + 1 - kb * F16X3_KB; /* so many of these stand before, or are the largest */
        count += i >= F16X3_KB ? 0 : __popc(moves >> max(i, 0));
    }
    atomicAdd(&mine->max[at->lane], count);
    split_gather(at, mine, all);
    count = 0;
    for (i = 0; i < at->cluster; i++)
        count += all[i].max[at->lane];
    return (int)count;
}

/* The first look finds the largest magnitude and the sum of magnitudes of this thread's line, over the whole cluster.
 */
RUNG_DEVICE void split_look(const f16x3_operand *s, const float *x, const split_place *at, split_seen *mine,
                            split_seen *all, unsigned *max_bits, float *sum)
{
    unsigned largest = 0;
    float total = 0, v[F16X3_KB];
    int i, kb, piece;
    for (kb = at->first, piece = 0; kb < s->k_blocks; kb += at->step, piece++) {
        split_load32(s, x, at->line, kb, v);
#pragma unroll
        for (i = 0; i < F16X3_KB; i++) {
            largest = max(largest, __float_as_uint(fabsf(v[i])));
            total += fabsf(v[i]) * SPLIT_SMALL;
        }
        if (piece == 0)
#pragma unroll
            for (i = 0; i < F16X3_KB; i++)
                at->kept[i * SPLIT_LINES + at->lane] = v[i];
    }
    all[at->warp].max[at->lane] = largest;
    all[at->warp].sum[at->lane] = total;
    __syncthreads();
    if (at->warp == 0) {
        for (i = 1; i < SPLIT_WARPS; i++) {
            largest = max(largest, all[i].max[at->lane]);
            total += all[i].sum[at->lane];
        }
        mine->max[at->lane] = largest;
        mine->sum[at->lane] = total;
    }
    split_gather(at, mine, all);
    *max_bits = 0;
    *sum = 0;
    for (i = 0; i < at->cluster; i++) {
        *max_bits = max(*max_bits, all[i].max[at->lane]);
        *sum += all[i].sum[at->lane];
    }
}

/* Stores a warp's 32 x 32 values as 4 KiB of the image. They are turned in shared memory, where the first piece was. */
RUNG_DEVICE void split_turn(const split_place *at, char *to, const float *v, float s1, float s2, unsigned *tiny)
{
    uint4 *image = (uint4 *)to, *turn = (uint4 *)at->kept;
    int i, j, row = at->lane * 8, swap = at->lane & 7;
    __syncwarp(); /* all lanes have read what lies there */
#pragma unroll
    for (i = 0; i < 4; i++) {
        uint2 h[4];
#pragma unroll
        for (j = 0; j < 4; j++)
            h[j] = split_pair(v[8 * i + 2 * j], v[8 * i + 2 * j + 1], s1, s2, tiny);
        turn[row + (i ^ swap)] = make_uint4(h[0].x, h[1].x, h[2].x, h[3].x);
        turn[row + ((i + 4) ^ swap)] = make_uint4(h[0].y, h[1].y, h[2].y, h[3].y);
    }
    __syncwarp();
#pragma unroll
    for (i = 0; i < 8; i++)
        image[i * 32 + at->lane] = turn[i * 32 + at->lane];
}

/* Splits 32 lines across k. A warp keeps one piece and reads its others again, the last one first: that may still be in
 * L2. To keep more would leave room for fewer blocks, which costs more than the second look. */
RUNG_DEVICE void split_across(const f16x3_operand *s, const float *x, int block, int cluster)
{
    __shared__ __align__(16) float kept[SPLIT_WARPS][SPLIT_PIECE];
    __shared__ __align__(16) split_seen mine, all[SPLIT_WARPS];
    __shared__ unsigned moves[SPLIT_WARPS][SPLIT_MOVES][SPLIT_LINES];
    __shared__ unsigned
        tiny_of[SPLIT_LINES]; /* counted here first: with a count in memory for every thread 1024^3 took 20 us longer */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = (int)ptx_cluster_rank(), piece, pieces, i, kb, scale,
        tails, after = 0;
    split_place at = {lane,
                      warp,
                      rank,
                      cluster,
                      block / cluster * SPLIT_LINES + lane,
                      rank * SPLIT_WARPS + warp,
                      cluster * SPLIT_WARPS,
                      kept[warp]};
    unsigned max_bits, tiny = 0;
    split_seen_tail tail = {(unsigned)s->k, 0, moves[warp]};
    float sum, s1, s2, least, v[F16X3_KB];

    if (warp == 0)
        tiny_of[lane] = 0;
    split_look(s, x, &at, &mine, all, &max_bits, &sum);
    least = fmaxf(__uint_as_float(max_bits) * SPLIT_TAIL, __uint_as_float(1));
    tails = __any_sync(~0u, split_may_tail(s, max_bits, sum)); /* the same in all warps of the cluster */
    if (!tails)
        ptx_cluster_leave();
    scale = split_scale(max_bits);
    s1 = split_exp2(scale >> 1);
    s2 = split_exp2(scale - (scale >> 1));
    pieces = max(0, (s->k_blocks - at.first + at.step - 1) / at.step);
    for (i = 0; i < pieces; i++) {
        piece = i == 0 ? 0 : pieces - i;
        kb = at.first + piece * at.step;
        split_again32(s, x, &at, kb, piece, v);
        if (tails)
            split_see_tail(&at, kb, piece, v, max_bits, least, &tail);
        split_turn(&at, split_row(s, kb, at.line - lane), v, s1, s2, &tiny);
    }
    if (tails) {
        after = split_tail_across(s, x, &at, least, &tail, &mine, all);
        ptx_cluster_leave();
    }
    if (rank == 0 && warp == 0)
        split_report(s, at.line, max_bits, sum, after);
    if (tiny)
        atomicAdd(&tiny_of[lane], tiny);
    __syncthreads();
    if (warp == 0)
        split_count32(s, at.line, tiny_of[lane]);
    ptx_cluster_await();
}

RUNG_KERNEL(F16X3_THREADS) f16x3_clear(const __grid_constant__ f16x3_split_args s)
{
    int64_t i = blockIdx.x * (int64_t)SPLIT_THREADS + threadIdx.x;
    if (i < s.zero_words)
        ((uint4 *)s.zero)[i] = make_uint4(0, 0, 0, 0);
}

RUNG_DEVICE void split_clear_marks(const f16x3_split_args *s, int block)
{
    int64_t i = block * (int64_t)SPLIT_THREADS + threadIdx.x;
    if (i < s->mark_words)
        ((uint4 *)s->marks)[i] = make_uint4(0, 0, 0, 0);
}

/* Does the share of one block. Blocks of lines across k work in clusters. The blocks of an operand along k are a
 * multiple of a cluster and know nothing of it. */
RUNG_DEVICE void split_share(const f16x3_split_args *s, int block)
{
    int of_a = block < s->a_blocks, share = of_a ? block : block - s->a_blocks;
    const f16x3_operand *op = of_a ? &s->a : &s->b;
    const float *x = split_source(op, s->entry);
    split_clear_marks(s, block);
    if (op->k_innermost)
        split_lines(op, x, share);
    else
        split_across(op, x, share, s->cluster);
}

RUNG_KERNEL(F16X3_THREADS, 3) f16x3_split(const __grid_constant__ f16x3_split_args s)
{
    split_share(&s, blockIdx.x);
}

#endif
