/* f16x3_split.h: two operands into scaled fp16 hi and lo images (layout in f16x3.h), with what the guard needs.
 * Contract: any leading dimension and alignment; lines and k padded with zeros. Launches, in order: clear (where no
 * zeros are kept), split. Lines along k are read once, lines across k twice, by different blocks of the one launch.
 * Limits: values stay exact to 2^-23 of themselves down to 2^-28 of their line's largest; what is smaller is counted.
 */
#ifndef RUNG_DEVICE_F16X3_SPLIT_H
#define RUNG_DEVICE_F16X3_SPLIT_H

#include <cuda_fp16.h>

#include "device/f16x3.h"
#include "device/ptx.h"

enum { SPLIT_THREADS = F16X3_THREADS, SPLIT_KEEP = 8 /* float4 a thread that stay in registers */ };

#define SPLIT_SMALL 0x1p-24f /* sums of magnitudes are kept so much smaller: they must not overflow */

/* The power of two that brings the largest magnitude of a line to [2^14, 2^15). */
RUNG_DEVICE int split_scale(unsigned max_bits)
{
    int e;
    if (max_bits == 0 || max_bits >= 0x7f800000u)
        return 0;
    if (max_bits >= 0x00800000u)
        e = (int)(max_bits >> 23) - 127;
    else
        e = -118 - __clz((int)max_bits); /* subnormal: bits * 2^-149 */
    return 14 - e;
}

RUNG_DEVICE float split_exp2(int e)
{
    return __int_as_float((e + 127) << 23);
}

/* Halves of one value, packed hi in the low and lo in the high 16 bits; says whether lo lost bits. */
RUNG_DEVICE unsigned split_value(float x, float s1, float s2, unsigned *tiny)
{
    float v = x * s1 * s2;
    __half hi = __float2half_rn(v);
    __half lo = __float2half_rn((v - __half2float(hi)) * 2048.0f);
    *tiny += x != 0.0f && fabsf(v) < 0x1p-13f;
    return (unsigned)__half_as_ushort(hi) | (unsigned)__half_as_ushort(lo) << 16;
}

RUNG_DEVICE char *split_row(const f16x3_operand *s, int k_block, int line)
{
    return s->image + ((int64_t)k_block * s->row_groups + (line >> 3)) * 1024 + (line & 7) * 128;
}

/* Four values at k, k+1, k+2, k+3 of a line, k a multiple of four. */
RUNG_DEVICE void split_store4(const f16x3_operand *s, int line, int k, float4 x, float s1, float s2, unsigned *tiny)
{
    unsigned a = split_value(x.x, s1, s2, tiny), b = split_value(x.y, s1, s2, tiny);
    unsigned c = split_value(x.z, s1, s2, tiny), d = split_value(x.w, s1, s2, tiny);
    char *row = split_row(s, k >> 5, line);
    int chunk = (k >> 3) & 3, half = k & 4, r = line & 7;
    *(uint2 *)(row + ((chunk ^ r) << 4) + half * 2) = make_uint2(__byte_perm(a, b, 0x5410), __byte_perm(c, d, 0x5410));
    *(uint2 *)(row + (((chunk + 4) ^ r) << 4) + half * 2) =
        make_uint2(__byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x7632));
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

/* The largest element's share of a line's magnitudes: 1 is one alone, 1/k is all alike. */
RUNG_DEVICE float split_peak(unsigned max_bits, float sum)
{
    return __uint_as_float(max_bits) * SPLIT_SMALL / sum;
}

RUNG_DEVICE int split_alone(unsigned max_bits, float sum)
{
    return max_bits && max_bits < 0x7f800000u && split_peak(max_bits, sum) >= F16X3_ALONE;
}

/* What a line adds to its group of 64. */
RUNG_DEVICE void split_report(const f16x3_operand *s, int line, unsigned max_bits, float sum, int tail)
{
    f16x3_group *g = &s->group[line / F16X3_GROUP];
    s->line[line].scale = split_scale(max_bits);
    if (max_bits == 0)
        return;
    atomicMax(&g->max_bits, max_bits);
    if (max_bits >= 0x7f800000u)
        return;
    atomicMax(&g->peak_bits, __float_as_uint(split_peak(max_bits, sum)));
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

RUNG_DEVICE const float *split_source(const f16x3_operand *s, int entry)
{
    return s->x_array ? s->x_array[entry] : s->x;
}

/* The threads of a block that share a line along k: `warps` warps, as many as keep it in registers. */
typedef struct {
    int line, first, threads; /* which line; this thread's place among so many */
    int warp, warps;          /* of the block: the first of them, and their number */
} split_team;

RUNG_DEVICE split_team split_team_of(const f16x3_operand *s, int block)
{
    int warps = s->line_warps, team = threadIdx.x / 32 / warps;
    split_team of = {block * (SPLIT_THREADS / 32 / warps) + team, (int)threadIdx.x - team * warps * 32, warps * 32,
                     team * warps, warps};
    return of;
}

/* Along k: how many elements after the line's first largest one still move an FP32 sum that holds it. */
RUNG_DEVICE int split_tail(const split_team *of, const float *row, int k_end, unsigned max_bits)
{
    __shared__ int place[SPLIT_THREADS / 32], count[SPLIT_THREADS / 32];
    float least = __uint_as_float(max_bits) * 0x1p-21f;
    int k, mine = 0;
    if (of->first == 0)
        place[of->warp] = k_end, count[of->warp] = 0;
    __syncthreads();
    for (k = of->first; k < k_end; k += of->threads)
        if (__float_as_uint(fabsf(row[k])) == max_bits) {
            atomicMin(&place[of->warp], k);
            break;
        }
    __syncthreads();
    for (k = place[of->warp] + 1 + of->first; k < k_end; k += of->threads)
        mine += fabsf(row[k]) >= least;
    atomicAdd(&count[of->warp], mine);
    __syncthreads();
    return count[of->warp];
}

/* Lines along k; the first SPLIT_KEEP * 4 values of a thread stay in registers between the two looks. */
RUNG_DEVICE void split_lines(const f16x3_operand *s, const float *x, int block)
{
    __shared__ unsigned warp_max[SPLIT_THREADS / 32];
    __shared__ float warp_sum[SPLIT_THREADS / 32];
    split_team of = split_team_of(s, block);
    int line = of.line, k_pad = s->k_blocks * F16X3_KB, k_end = line < s->lines ? s->k : 0;
    const float *row = x + line * s->ld;
    int vector = ((s->ld & 3) | (int)((uintptr_t)x >> 2 & 3)) == 0;
    float4 keep[SPLIT_KEEP];
    unsigned max_bits = 0, tiny = 0;
    float sum = 0, s1, s2;
    int i, k, scale, tail = 0;

#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++)
        keep[i] = split_load4(row, (i * of.threads + of.first) * 4, k_end, vector);
#pragma unroll
    for (i = 0; i < SPLIT_KEEP; i++)
        split_stat4(keep[i], &max_bits, &sum);
    for (k = (SPLIT_KEEP * of.threads + of.first) * 4; k < k_end; k += of.threads * 4)
        split_stat4(split_load4(row, k, k_end, vector), &max_bits, &sum);
    for (i = 16; i > 0; i >>= 1) {
        max_bits = max(max_bits, __shfl_xor_sync(~0u, max_bits, i));
        sum += __shfl_xor_sync(~0u, sum, i);
    }
    if (threadIdx.x % 32 == 0) {
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
    if (__syncthreads_or(split_alone(max_bits, sum)))
        tail = split_tail(&of, row, k_end, max_bits);
    if (of.first == 0)
        split_report(s, line, max_bits, sum, tail);
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
    tiny = split_warp_sum(tiny);
    if (threadIdx.x % 32 == 0)
        split_count(s, line, tiny);
}

/* What each warp of a block saw of 128 lines across k. */
typedef struct {
    unsigned max[SPLIT_THREADS / 32][F16X3_LOOK];
    float sum[SPLIT_THREADS / 32][F16X3_LOOK];
    int place[SPLIT_THREADS / 32][F16X3_LOOK], count[SPLIT_THREADS / 32][F16X3_LOOK];
} split_seen;

/* A block looks, or turns. */
typedef union {
    split_seen seen;
    uint4 turn[2][F16X3_COLS * 8];
} split_shared;

/* Lines across k, first look: largest magnitude, partial sums and counts over look_rows of k, 128 lines a block. */
RUNG_DEVICE void split_look(const f16x3_operand *s, const float *x, int block, split_seen *seen)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, across = (s->lines + F16X3_LOOK - 1) / F16X3_LOOK;
    int first = block % across * F16X3_LOOK, chunk = block / across;
    int k0 = chunk * s->look_rows, k1 = min(k0 + s->look_rows, s->k);
    unsigned max_bits[4] = {0, 0, 0, 0};
    float sum[4] = {0, 0, 0, 0};
    int place[4] = {k0, k0, k0, k0}, count[4] = {0, 0, 0, 0};
    int i, k, line;

#pragma unroll 8
    for (k = k0 + warp; k < k1; k += SPLIT_THREADS / 32) {
        const float *row = x + k * s->ld + first + lane;
#pragma unroll
        for (i = 0; i < 4; i++) {
            float v = first + lane + 32 * i < s->lines ? fabsf(row[32 * i]) : 0.0f;
            if (__float_as_uint(v) > max_bits[i])
                max_bits[i] = __float_as_uint(v), place[i] = k;
            count[i] += v > __uint_as_float(max_bits[i]) * 0x1p-6f;
            sum[i] += v * SPLIT_SMALL;
        }
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
        seen->max[warp][lane + 32 * i] = max_bits[i];
        seen->sum[warp][lane + 32 * i] = sum[i];
        seen->place[warp][lane + 32 * i] = place[i];
        seen->count[warp][lane + 32 * i] = count[i];
    }
    __syncthreads();
    line = first + threadIdx.x;
    if (threadIdx.x < F16X3_LOOK && line < s->lines) {
        unsigned long long m = 0;
        float a = 0;
        int n = 0;
        for (i = 0; i < SPLIT_THREADS / 32; i++) {
            m = max(m, (unsigned long long)seen->max[i][threadIdx.x] << 32 | ~(unsigned)seen->place[i][threadIdx.x]);
            a += seen->sum[i][threadIdx.x];
            n += seen->count[i][threadIdx.x];
        }
        if (m >> 32)
            atomicMax((unsigned long long *)&s->col_max[line], m);
        s->col_sum[chunk * s->row_groups * 8 + line] = a;
        s->col_count[chunk * s->row_groups * 8 + line] = n;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&s->looked[first / F16X3_LOOK], 1u);
}

/* Until all blocks that look at this line are done. They come before those that wait, which therefore may. */
RUNG_DEVICE void split_wait(const f16x3_operand *s, int line)
{
    unsigned chunks = (s->k + s->look_rows - 1) / s->look_rows;
    if (threadIdx.x == 0 && line < s->lines)
        while (ptx_load_acquire(&s->looked[line / F16X3_LOOK]) < chunks)
            __nanosleep(20);
    __syncthreads();
}

/* Eight values along k of one line across k. */
RUNG_DEVICE void split_load8(const f16x3_operand *s, const float *x, int line, int k, float *v)
{
    int i;
#pragma unroll
    for (i = 0; i < 8; i++)
        v[i] = k + i < s->k && line < s->lines ? x[(k + i) * s->ld + line] : 0.0f;
}

/* Eight values of line `col` of the block as 16 bytes of hi and 16 of lo, in the image's order. */
RUNG_DEVICE void split_pack8(uint4 *out, int col, int piece, const float *x, float s1, float s2, unsigned *tiny)
{
    unsigned v[8];
    int i;
#pragma unroll
    for (i = 0; i < 8; i++)
        v[i] = split_value(x[i], s1, s2, tiny);
    out[col * 8 + (piece ^ (col & 7))] = make_uint4(__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[2], v[3], 0x5410),
                                                    __byte_perm(v[4], v[5], 0x5410), __byte_perm(v[6], v[7], 0x5410));
    out[col * 8 + ((piece + 4) ^ (col & 7))] =
        make_uint4(__byte_perm(v[0], v[1], 0x7632), __byte_perm(v[2], v[3], 0x7632), __byte_perm(v[4], v[5], 0x7632),
                   __byte_perm(v[6], v[7], 0x7632));
}

/* The sum over all chunks of one line's magnitudes. */
RUNG_DEVICE float split_sum(const f16x3_operand *s, int line)
{
    int chunks = (s->k + s->look_rows - 1) / s->look_rows, i;
    float sum = 0;
    for (i = 0; i < chunks; i++)
        sum += __ldcg(&s->col_sum[i * s->row_groups * 8 + line]);
    return sum;
}

/* Across k: as split_tail, but by whole chunks, of those that are not too small beside the largest element. */
RUNG_DEVICE int split_tail_across(const f16x3_operand *s, int line, uint64_t largest)
{
    int chunks = (s->k + s->look_rows - 1) / s->look_rows, i = (int)(~(unsigned)largest / s->look_rows) + 1, tail = 0;
    float least = __uint_as_float((unsigned)(largest >> 32)) * (SPLIT_SMALL * 0x1p-15f);
    for (; i < chunks; i++) {
        int64_t at = i * s->row_groups * 8 + line;
        tail += __ldcg(&s->col_sum[at]) >= least * s->look_rows ? (int)__ldcg(&s->col_count[at]) : 0;
    }
    return tail;
}

/* Lines across k, second look: 64 lines by turn_blocks blocks of k, turned through shared memory. The end of k goes
 * first: it was looked at last, and may still be in L2. */
RUNG_DEVICE void split_turn(const f16x3_operand *s, const float *x, int block, uint4 (*turn)[F16X3_COLS * 8])
{
    int t = threadIdx.x, col = t % F16X3_COLS, piece = t / F16X3_COLS;
    int across = (int)(s->row_groups / (F16X3_COLS / 8)), first = block % across * F16X3_COLS, line = first + col;
    int turns = (s->k_blocks + s->turn_blocks - 1) / s->turn_blocks, chunk = turns - 1 - block / across;
    int b = chunk * s->turn_blocks, end = min(b + s->turn_blocks, s->k_blocks);
    uint64_t largest;
    unsigned max_bits, tiny = 0;
    int scale;
    float s1, s2, v[8];

    split_load8(s, x, line, b * F16X3_KB + piece * 8, v);
    split_wait(s, first);
    largest = line < s->lines ? __ldcg((const unsigned long long *)&s->col_max[line]) : 0;
    max_bits = (unsigned)(largest >> 32);
    scale = split_scale(max_bits);
    s1 = split_exp2(scale >> 1);
    s2 = split_exp2(scale - (scale >> 1));
    if (chunk == 0 && t < F16X3_COLS) {
        float sum = line < s->lines ? split_sum(s, line) : 0.0f;
        split_report(s, line, max_bits, sum, split_alone(max_bits, sum) ? split_tail_across(s, line, largest) : 0);
    }
    for (; b < end; b++) {
        uint4 *out = turn[b & 1], *image = (uint4 *)split_row(s, b, first);
        split_pack8(out, col, piece, v, s1, s2, &tiny);
        if (b + 1 < end)
            split_load8(s, x, line, (b + 1) * F16X3_KB + piece * 8, v);
        __syncthreads();
        image[t] = out[t];
        image[t + SPLIT_THREADS] = out[t + SPLIT_THREADS];
    }
    split_count(s, line, tiny);
}

RUNG_KERNEL(F16X3_THREADS) f16x3_clear(const __grid_constant__ f16x3_split_args s)
{
    int64_t i = blockIdx.x * (int64_t)SPLIT_THREADS + threadIdx.x;
    if (i < s.zero_words)
        ((uint4 *)s.zero)[i] = make_uint4(0, 0, 0, 0);
}

/* Operands along k whole, the others looked at and then turned. The host puts an operand along k first: its lines then
 * do not come between the two looks at the other, which may still be in L2. */
RUNG_KERNEL(F16X3_THREADS, 4) f16x3_split(const __grid_constant__ f16x3_split_args s)
{
    __shared__ __align__(128) split_shared shared;
    int block = blockIdx.x, of_a = block < s.a_blocks, turns = block >= s.a_blocks + s.b_blocks;
    if (!of_a)
        block -= s.a_blocks;
    if (turns) {
        block -= s.b_blocks;
        of_a = block < s.a_turns;
        block -= of_a ? 0 : s.a_turns;
    }
    const f16x3_operand *op = of_a ? &s.a : &s.b;
    const float *x = split_source(op, s.entry);
    if (turns)
        split_turn(op, x, block, shared.turn);
    else if (op->along_k)
        split_lines(op, x, block);
    else
        split_look(op, x, block, &shared.seen);
}

#endif
