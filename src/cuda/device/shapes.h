/* Mechanisms of the shape kernels (skinny, long k, outer, small, batched): asynchronous copies of tiles in either
 * storage order, fragments, split-k finishes, the epilogue. Constant parameters fold away when inlined. Rows and
 * leading dimensions stay under 2^30 (the launcher sees to it). */
#ifndef RUNG_DEVICE_SHAPES_H
#define RUNG_DEVICE_SHAPES_H

#include "device/args.h"
#include "device/async.h"
#include "device/meeting.h"

RUNG_DEVICE void copy_async(rung_shared_at dst, const float *src, int bytes, const int width)
{
    if (width == 4)
        rung_async_put16(dst, src, bytes);
    else
        rung_async_put4(dst, src, bytes);
}

RUNG_DEVICE int clamp4(int x)
{
    return x < 0 ? 0 : (x > 4 ? 4 : x);
}

/* src[row*ld + col] by one wide multiply-add: rows and leading dimensions stay under 2^30. */
RUNG_DEVICE const float *element(const float *src, unsigned row, unsigned ld, unsigned col)
{
    return (const float *)((const char *)src + (unsigned long long)row * (ld * 4) + col * 4);
}

/* Row r of a k-contiguous tile starts at float row_at(r): four consecutive rows land a quarter of the tile apart, so
 * threads that own four consecutive rows each still read neighbouring slots, and rows are padded by 16 bytes: no bank
 * conflicts. Depth 16 copies two rows a quarter warp: the quarters are then shifted half the banks apart. */
#define QUARTER_FLOATS(extent, depth)                                                                                  \
    ((extent) / 4 * ((depth) + 4) + ((depth) == 16 && (extent) / 4 * ((depth) + 4) % 32 == 0 ? 16 : 0))
#define TILE_FLOATS(extent, depth, k_contiguous)                                                                       \
    ((k_contiguous) ? 3 * QUARTER_FLOATS(extent, depth) + (extent) / 4 * ((depth) + 4) : (extent) * (depth))
RUNG_DEVICE int row_at(int r, const int extent, const int depth)
{
    return (r & 3) * QUARTER_FLOATS(extent, depth) + (r >> 2) * (depth + 4);
}

/* k-contiguous operand: element (r, k) at src[r*ld + k] -> shared row_at(r) + k, `width` floats a copy. */
RUNG_DEVICE void load_k_contiguous(rung_shared_at dst, const float *src, unsigned ld, int rows, int k_left, int tid,
                                   const int extent, const int depth, const int threads, const int width)
{
    const int per_row = depth / width, pass = threads / per_row;
    if (threads % per_row == 0 && pass % 4 == 0 && extent % pass == 0) {
        const int r = tid / per_row, k = tid % per_row * width;
        const int bytes = (width == 4 ? clamp4(k_left - k) : k < k_left) * 4;
        const float *from = element(src, r, ld, k);
        dst += (row_at(r, extent, depth) + k) * 4;
#pragma unroll
        for (int c = 0; c < extent / pass; c++) {
            copy_async(dst + c * (pass / 4) * (depth + 4) * 4, from, r + c * pass < rows ? bytes : 0, width);
            from = element(from, pass, ld, 0);
        }
    } else {
        const int total = extent * per_row;
#pragma unroll 4
        for (int q = 0; q < total; q += threads) {
            int idx = q + tid;
            if (total % threads == 0 || idx < total) {
                int r = idx / per_row, k = idx % per_row * width;
                int bytes = (width == 4 ? clamp4(k_left - k) : k < k_left) * 4;
                copy_async(dst + (row_at(r, extent, depth) + k) * 4, element(src, r, ld, k), r < rows ? bytes : 0,
                           width);
            }
        }
    }
}

/* mn-contiguous operand: element (k, x) at src[k*ld + x] -> shared [k][extent], `width` floats a copy. */
RUNG_DEVICE void load_mn_contiguous(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
                                    const int extent, const int depth, const int threads, const int width)
{
    const int per_row = extent / width, pass = threads / per_row;
    if (threads % per_row == 0 && depth % pass == 0) {
        const int k = tid / per_row, x = tid % per_row * width;
        const int bytes = (width == 4 ? clamp4(cols - x) : x < cols) * 4;
        const float *from = element(src, k, ld, x);
        dst += (k * extent + x) * 4;
#pragma unroll
        for (int c = 0; c < depth / pass; c++) {
            copy_async(dst + c * pass * extent * 4, from, k + c * pass < k_left ? bytes : 0, width);
            from = element(from, pass, ld, 0);
        }
    } else {
        const int total = per_row * depth;
#pragma unroll 4
        for (int q = 0; q < total; q += threads) {
            int idx = q + tid;
            if (total % threads == 0 || idx < total) {
                int k = idx / per_row, x = idx % per_row * width;
                int bytes = (width == 4 ? clamp4(cols - x) : x < cols) * 4;
                copy_async(dst + (k * extent + x) * 4, element(src, k, ld, x), k < k_left ? bytes : 0, width);
            }
        }
    }
}

/* Whether this block's tile is marked. What is to be left zero is cleared here: nobody reads it any more, but the
 * marks. */
RUNG_DEVICE bool take_mark(const rung_args *p, unsigned tile, int threads)
{
    bool marked = p->marks[tile] != 0;
    for (long long i = blockIdx.x * (long long)threads + threadIdx.x; i < p->zero_words; i += gridDim.x * threads)
        ((uint4 *)p->zero)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads(); /* all have read the mark */
    if (marked && p->zero_words && threadIdx.x == 0)
        p->marks[tile] = 0;
    return marked;
}

/* Brings one operand tile in, 16 bytes a copy where pointer and leading dimension allow, 4 otherwise. */
RUNG_DEVICE void load_tile(rung_shared_at dst, const float *src, unsigned ld, int limit, int k_left, int vec, int tid,
                           const int extent, const int depth, const int threads, const int k_contiguous)
{
    if (k_contiguous) {
        if (vec)
            load_k_contiguous(dst, src, ld, limit, k_left, tid, extent, depth, threads, 4);
        else
            load_k_contiguous(dst, src, ld, limit, k_left, tid, extent, depth, threads, 1);
    } else {
        if (vec)
            load_mn_contiguous(dst, src, ld, limit, k_left, tid, extent, depth, threads, 4);
        else
            load_mn_contiguous(dst, src, ld, limit, k_left, tid, extent, depth, threads, 1);
    }
}

/* Tiles of operands at any address, 4 bytes a copy, always to rows of k in shared memory, whatever their order outside:
 * an operand with k innermost is turned by the way it is copied. Where the tile lies inside the operand nothing is
 * asked a copy. */

/* Sixteen k of a row by half a warp: a row of k is `pitch` floats, four more than the rows there are, so the sixteen
 * meet each bank twice at most. */
#define TURNED_PITCH(extent) ((extent) + 4)
RUNG_DEVICE void load_turned(rung_shared_at dst, const float *src, unsigned ld, int rows, int k_left, int tid,
                             const int extent, const int depth, const int threads)
{
    const int pitch = TURNED_PITCH(extent), halves = threads / 16, down = halves < extent ? halves : extent,
              deep = halves / down * 16;
    if (threads % 16 == 0 && halves % down == 0 && extent % down == 0 && depth % deep == 0) {
        const int r = tid / 16 % down, k = tid % 16 + tid / 16 / down * 16;
        const float *from = element(src, r, ld, k);
        const bool inside = rows >= extent && k_left >= depth;
        dst += (k * pitch + r) * 4;
        if (inside) {
#pragma unroll
            for (int c = 0; c < extent / down; c++) {
#pragma unroll
                for (int q = 0; q < depth / deep; q++)
                    rung_async_put4_if(dst + (q * deep * pitch + c * down) * 4, from + q * deep, true);
                from = element(from, down, ld, 0);
            }
        } else {
#pragma unroll
            for (int c = 0; c < extent / down; c++) {
#pragma unroll
                for (int q = 0; q < depth / deep; q++)
                    rung_async_put4_if(dst + (q * deep * pitch + c * down) * 4, from + q * deep,
                                       r + c * down < rows && k + q * deep < k_left);
                from = element(from, down, ld, 0);
            }
        }
    } else {
        const int total = extent * depth;
#pragma unroll 4
        for (int q = 0; q < total; q += threads) {
            const int at = q + tid, r = at / 16 % extent, k = at % 16 + at / 16 / extent * 16;
            if (total % threads == 0 || at < total)
                rung_async_put4_if(dst + (k * pitch + r) * 4, element(src, r, ld, k), r < rows && k < k_left);
        }
    }
}

/* `wide` columns from x0 on. */
RUNG_DEVICE void load_band(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
                           const int x0, const int wide, const int extent, const int depth, const int threads)
{
    const int width = wide % 32 == 0 ? 32 : wide, lines = threads / width;
    if (threads % width == 0 && depth % lines == 0) {
        const int k = tid / width, x = x0 + tid % width;
        const float *from = element(src, k, ld, x);
        const bool inside = cols >= extent && k_left >= depth;
        dst += (k * extent + x) * 4;
        if (inside) {
#pragma unroll
            for (int c = 0; c < depth / lines; c++) {
#pragma unroll
                for (int j = 0; j < wide; j += width)
                    rung_async_put4_if(dst + (c * lines * extent + j) * 4, from + j, true);
                from = element(from, lines, ld, 0);
            }
        } else {
#pragma unroll
            for (int c = 0; c < depth / lines; c++) {
#pragma unroll
                for (int j = 0; j < wide; j += width)
                    rung_async_put4_if(dst + (c * lines * extent + j) * 4, from + j,
                                       x + j < cols && k + c * lines < k_left);
                from = element(from, lines, ld, 0);
            }
        }
    } else {
        const int total = wide * depth;
#pragma unroll 4
        for (int q = 0; q < total; q += threads) {
            const int at = q + tid, k = at / wide, x = x0 + at % wide;
            if (total % threads == 0 || at < total)
                rung_async_put4_if(dst + (k * extent + x) * 4, element(src, k, ld, x), x < cols && k < k_left);
        }
    }
}

RUNG_DEVICE void load_across(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
                             const int extent, const int depth, const int threads)
{
    if (threads % extent == 0 || threads > 32) {
        load_band(dst, src, ld, cols, k_left, tid, 0, extent, extent, depth, threads);
    } else { /* a warp: as many columns as it has lanes, then half, then a quarter */
        if (extent >= 32)
            load_band(dst, src, ld, cols, k_left, tid, 0, extent & ~31, extent, depth, threads);
        if (extent & 16)
            load_band(dst, src, ld, cols, k_left, tid, extent & ~31, 16, extent, depth, threads);
        if (extent & 8)
            load_band(dst, src, ld, cols, k_left, tid, extent & ~15, 8, extent, depth, threads);
    }
}

/* The 16-byte path with what a thread can know before the loop kept in registers. Rows and columns outside the
 * matrix are not copied (they only feed results that are never stored); k outside it is zero-filled. */
typedef struct {
    const float *from; /* this thread's first element in the current block of k */
    unsigned to;       /* byte offset inside the tile */
    int limit;         /* k contiguous: passes with a valid row; else bytes of its column group, 0 outside */
} tile_reader;

RUNG_DEVICE tile_reader reader_start(const float *src, unsigned ld, int limit, int tid, const int extent,
                                     const int depth, const int threads, const int k_contiguous)
{
    tile_reader r;
    const int per_row = (k_contiguous ? depth : extent) / 4, pass = threads / per_row;
    const int line = tid / per_row, at = tid % per_row * 4;
    r.from = element(src, line, ld, at);
    r.to = (k_contiguous ? row_at(line, extent, depth) + at : line * extent + at) * 4;
    if (k_contiguous) {
        int left = (limit < extent ? limit : extent) - line;
        r.limit = left > 0 && tid < pass * per_row ? (left + pass - 1) / pass : 0;
    } else {
        r.limit = tid < pass * per_row ? clamp4(limit - at) * 4 : 0;
    }
    return r;
}

RUNG_DEVICE void reader_copy(const tile_reader *r, rung_shared_at tile, unsigned ld, int k_left, int tid,
                             const int extent, const int depth, const int threads, const int k_contiguous)
{
    const int per_row = (k_contiguous ? depth : extent) / 4, pass = threads / per_row;
    const float *from = r->from;
    if (k_contiguous) {
        const int bytes = clamp4(k_left - tid % per_row * 4) * 4;
#pragma unroll
        for (int c = 0; c < (extent + pass - 1) / pass; c++) {
            const int to = pass % 4 == 0
                               ? c * (pass / 4) * (depth + 4)
                               : row_at(tid / per_row + c * pass, extent, depth) - row_at(tid / per_row, extent, depth);
            if (c < r->limit)
                rung_async_put16(tile + r->to + to * 4, from, bytes);
            from = element(from, pass, ld, 0);
        }
    } else {
#pragma unroll
        for (int c = 0; c < (depth + pass - 1) / pass; c++) {
            const int k = tid / per_row + c * pass;
            if (r->limit && (depth % pass == 0 || k < depth))
                rung_async_put16(tile + r->to + c * pass * extent * 4, from, k < k_left ? r->limit : 0);
            from = element(from, pass, ld, 0);
        }
    }
}

/* f[q][i]: `count` rows (or columns) of a thread for `step` values of k, groups of four consecutive ones `lines` groups
 * apart; `at` is the thread's first element at the first of these k. */
RUNG_DEVICE void fragment(float *f, const float *at, const int count, const int lines, const int extent,
                          const int depth, const int step, const int k_contiguous)
{
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        if (k_contiguous) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const float *from = at + q * QUARTER_FLOATS(extent, depth) + i / 4 * lines * (depth + 4);
                if (step == 4) {
                    float4 v = *(const float4 *)from;
                    f[i + q] = v.x, f[count + i + q] = v.y, f[2 * count + i + q] = v.z, f[3 * count + i + q] = v.w;
                } else {
                    float2 v = *(const float2 *)from;
                    f[i + q] = v.x, f[count + i + q] = v.y;
                }
            }
        } else {
#pragma unroll
            for (int q = 0; q < step; q++) {
                float4 v = *(const float4 *)(at + q * extent + i * lines);
                f[q * count + i] = v.x, f[q * count + i + 1] = v.y, f[q * count + i + 2] = v.z,
                              f[q * count + i + 3] = v.w;
            }
        }
    }
}

/* acc += a * b for `step` values of k. */
RUNG_DEVICE void multiply(float *acc, const float *a, const float *b, const int tm, const int tn, const int step)
{
#pragma unroll
    for (int q = 0; q < step; q++)
#pragma unroll
        for (int i = 0; i < tm; i++)
#pragma unroll
            for (int j = 0; j < tn; j++)
                acc[i * tn + j] = fmaf(a[q * tm + i], b[q * tn + j], acc[i * tn + j]);
}

RUNG_DEVICE float4 add4(float4 x, float4 y)
{
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/* sum[i] = head[i * apart] + next[i * apart] + next[stride + i * apart] + ... over `count` parts in this order, for
 * `many` vectors at once: enough loads are in flight to hide their way from L2. */
RUNG_DEVICE void sum_parts(float4 *sum, const float4 *head, const float4 *next, size_t stride, unsigned count,
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

/* The sums of a block's slices, from shared memory, in slice order. */
RUNG_DEVICE float4 slice_sum(const float4 *from, const int slices, const int stride)
{
    float4 sum = from[0];
#pragma unroll
    for (int s = 1; s < slices; s++)
        sum = add4(sum, from[s * stride]);
    return sum;
}

/* Parts of k whose partial tiles one block adds: all up to 16, beyond that a square root, so that no block reads many.
 */
RUNG_DEVICE unsigned group_of(unsigned parts)
{
    unsigned group = parts;
    if (parts > 16)
        for (group = 5; group * group < parts;)
            group++;
    return group;
}

/* Counters that are zero before and after every launch; they lie just before the workspace. */
RUNG_DEVICE unsigned *tickets_of(const rung_args *g)
{
    return (unsigned *)((char *)g->workspace - RUNG_TICKET_BYTES);
}

/* Counts this block in; true for the last of `count`, which then sees the others' stores. Leaves the counter at 0. */
RUNG_DEVICE int arrive_last(unsigned *counter, unsigned count)
{
    __shared__ unsigned ticket;
    __syncthreads(); /* thread 0 lets out what all have stored */
    if (threadIdx.x == 0) {
        ticket = meeting_add(counter, 1);
        if (ticket == count - 1)
            *counter = 0;
    }
    __syncthreads();
    return ticket == count - 1;
}

RUNG_DEVICE float activate(float x, int kind)
{
    if (kind == 1)
        return x < 0.0f ? 0.0f : x; /* NaN stays */
    if (kind == 2)
        return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x;
}

/* Four neighbouring results of one row: alpha*sum + beta*C + bias, activation, store. beta == 0 never reads C. */
RUNG_DEVICE void store4(const rung_args *p, float *c, int vec, float alpha, float beta, int row, int col, float4 sum)
{
    if (row >= p->m || col >= p->n)
        return;
    float *out = c + (long long)row * p->ldc + col;
    float v[4] = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
    int left = p->n - col;
    if (vec && left >= 4) {
        if (beta != 0.0f) {
            float4 old = *(const float4 *)out;
            v[0] = fmaf(beta, old.x, v[0]);
            v[1] = fmaf(beta, old.y, v[1]);
            v[2] = fmaf(beta, old.z, v[2]);
            v[3] = fmaf(beta, old.w, v[3]);
        }
    } else if (beta != 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                v[i] = fmaf(beta, out[i], v[i]);
    }
    if (p->bias_kind) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                v[i] += p->bias[p->bias_kind == 1 ? row : col + i];
    }
    if (p->activation) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = activate(v[i], p->activation);
    }
    if (vec && left >= 4) {
        *(float4 *)out = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                out[i] = v[i];
    }
}

/* One result, as store4() makes it. */
RUNG_DEVICE void store1(const rung_args *p, float *out, float alpha, float beta, int row, int col, float sum)
{
    float v = alpha * sum;
    if (beta != 0.0f)
        v = fmaf(beta, *out, v);
    if (p->bias_kind)
        v += p->bias[p->bias_kind == 1 ? row : col];
    if (p->activation == 2)
        v = activate(v, 2);
    *out = p->activation == 1 && v < 0.0f ? 0.0f : v;
}

/* Rows of C at odd addresses: `count` results from `first` of the tile on, a line of them a warp, so that its stores
 * fill sectors. Each is the sum of `terms` floats `apart`. */
RUNG_DEVICE void store_lines(const rung_args *p, float *c, float alpha, float beta, int row0, int col0, unsigned first,
                             unsigned count, const float *sums, const unsigned terms, unsigned apart, int tid,
                             const int bn, const int threads)
{
    const int rows = (int)p->m - row0, cols = (int)p->n - col0;
    const bool plain = beta == 0.0f && !p->bias_kind && !p->activation;
    c += row0 * p->ldc + col0;
    if (plain) {
#pragma unroll 4
        for (unsigned e = tid; e < count; e += threads) {
            const int row = (int)((first + e) / bn), col = (int)((first + e) % bn);
            float sum = sums[e];
            for (unsigned s = 1; s < terms; s++)
                sum += sums[s * apart + e];
            if (row < rows && col < cols)
                c[row * p->ldc + col] = alpha * sum;
        }
        return;
    }
#pragma unroll 1
    for (unsigned e = tid; e < count; e += threads) {
        const int row = (int)((first + e) / bn), col = (int)((first + e) % bn);
        float sum = sums[e];
        for (unsigned s = 1; s < terms; s++)
            sum += sums[s * apart + e];
        if (row < rows && col < cols)
            store1(p, c + row * p->ldc + col, alpha, beta, row0 + row, col0 + col, sum);
    }
}

RUNG_DEVICE int aligned16(const void *p, long long ld)
{
    return (((unsigned long long)p | (unsigned long long)ld << 2) & 15) == 0;
}
#endif
