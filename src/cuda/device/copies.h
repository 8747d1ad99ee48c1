/* Copies of operand tiles from memory to shared memory that a thread does not wait for (device/async.h): the threads of
 * a block or of a warp share a tile's elements evenly. An operand lies "k innermost" where neighbours in memory are
 * neighbours along k, else "k outermost". Functions take sizes and flags as arguments; they are constants wherever a
 * function is called, so the compiler folds them away. What lies outside the matrix becomes zero. Limits: rows and
 * leading dimensions below 2^30. */
#ifndef RUNG_DEVICE_COPIES_H
#define RUNG_DEVICE_COPIES_H

#include "device/async.h"
#include "device/copies_room.h"

RUNG_DEVICE void copy_floats(rung_shared_at dst, const float *src, int bytes, const int width)
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

/* Returns the address of src[row * ld + col], by one wide multiply-add. */
RUNG_DEVICE const float *element(const float *src, unsigned row, unsigned ld, unsigned col)
{
    return (const float *)((const char *)src + (unsigned long long)row * (ld * 4) + col * 4);
}

/* Returns the float at which row r of a tile with k innermost starts: see device/copies_room.h. */
RUNG_DEVICE int row_at(int r, const int extent, const int depth)
{
    return (r & 3) * QUARTER_FLOATS(extent, depth) + (r >> 2) * (depth + 4);
}

/* Copies a tile of an operand with k innermost, `width` floats a copy: element (r, k) goes from src[r * ld + k] to
 * row_at(r) + k. */
RUNG_DEVICE void copy_k_innermost(rung_shared_at dst, const float *src, unsigned ld, int rows, int k_left, int tid,
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
            copy_floats(dst + c * (pass / 4) * (depth + 4) * 4, from, r + c * pass < rows ? bytes : 0, width);
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
                copy_floats(dst + (row_at(r, extent, depth) + k) * 4, element(src, r, ld, k), r < rows ? bytes : 0,
                            width);
            }
        }
    }
}

/* Copies a tile of an operand with k outermost, `width` floats a copy: element (k, x) goes from src[k * ld + x] to k *
 * extent + x. */
RUNG_DEVICE void copy_k_outermost(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
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
            copy_floats(dst + c * pass * extent * 4, from, k + c * pass < k_left ? bytes : 0, width);
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
                copy_floats(dst + (k * extent + x) * 4, element(src, k, ld, x), k < k_left ? bytes : 0, width);
            }
        }
    }
}
/* Copies one tile of an operand: 16 bytes a copy where its rows are aligned (`vec`), else 4. */
RUNG_DEVICE void copy_tile(rung_shared_at dst, const float *src, unsigned ld, int limit, int k_left, int vec, int tid,
                           const int extent, const int depth, const int threads, const int k_innermost)
{
    if (k_innermost) {
        if (vec)
            copy_k_innermost(dst, src, ld, limit, k_left, tid, extent, depth, threads, 4);
        else
            copy_k_innermost(dst, src, ld, limit, k_left, tid, extent, depth, threads, 1);
    } else {
        if (vec)
            copy_k_outermost(dst, src, ld, limit, k_left, tid, extent, depth, threads, 4);
        else
            copy_k_outermost(dst, src, ld, limit, k_left, tid, extent, depth, threads, 1);
    }
}

/* From here on tiles lie at any address, and a copy has 4 bytes. In shared memory k is always outermost: an operand
 * with k innermost is turned by the way it is copied. A tile that lies inside the operand is copied without a test for
 * each copy. */

/* Copies a tile of an operand with k innermost. Half a warp copies sixteen k of a row. A k takes `pitch` floats in
 * shared memory, four more than there are rows, so that the sixteen meet each bank twice at most. */
RUNG_DEVICE void copy_turned(rung_shared_at dst, const float *src, unsigned ld, int rows, int k_left, int tid,
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

/* Copies `wide` columns of an operand with k outermost, from column x0 on. */
RUNG_DEVICE void copy_band(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
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

RUNG_DEVICE void copy_across(rung_shared_at dst, const float *src, unsigned ld, int cols, int k_left, int tid,
                             const int extent, const int depth, const int threads)
{
    if (threads % extent == 0 || threads > 32) {
        copy_band(dst, src, ld, cols, k_left, tid, 0, extent, extent, depth, threads);
    } else { /* a warp copies as many columns as it has lanes, then half as many, then a quarter */
        if (extent >= 32)
            copy_band(dst, src, ld, cols, k_left, tid, 0, extent & ~31, extent, depth, threads);
        if (extent & 16)
            copy_band(dst, src, ld, cols, k_left, tid, extent & ~31, 16, extent, depth, threads);
        if (extent & 8)
            copy_band(dst, src, ld, cols, k_left, tid, extent & ~15, 8, extent, depth, threads);
    }
}

/* Asks the second level of cache for a tile of an operand: `lines` rows (or columns), and `ks` of k, of which there are
 * more than `depth` at times. */
RUNG_DEVICE void ask_for_tile(const float *src, unsigned ld, int lines, int ks, int tid, const int extent,
                              const int depth, const int threads, const int k_innermost)
{
    enum { LINE = 32 }; /* floats */
    const int across = k_innermost ? min(ks, depth) : min(lines, extent),
              down = k_innermost ? min(lines, extent) : min(ks, depth),
              pieces = ((k_innermost ? depth : extent) + LINE - 1) / LINE + 1;
#pragma unroll 1
    for (int i = tid; i < (ks > 0 ? down * pieces : 0); i += threads) {
        const int at = i % pieces * LINE;
        if (at < across + LINE) /* the last piece may begin in the line before and end in a line of its own */
            rung_ask_for_line(element(src, i / pieces, ld, at < across ? at : across - 1));
    }
}

/* Here are copies of 16 bytes. What a thread can know before the main loop, it keeps in registers. Rows and columns
 * outside the matrix are not copied: they reach only results that are not stored. k outside it becomes zero. */
typedef struct {
    const float *from; /* this thread's first element of the next step */
    unsigned to;       /* its place in the tile, in bytes */
    int limit; /* k innermost: how many passes have a row inside the matrix; k outermost: how many bytes of its columns
                  are */
} tile_copier;

RUNG_DEVICE tile_copier copier_start(const float *src, unsigned ld, int limit, int tid, const int extent,
                                     const int depth, const int threads, const int k_innermost)
{
    tile_copier r;
    const int per_row = (k_innermost ? depth : extent) / 4, pass = threads / per_row;
    const int line = tid / per_row, at = tid % per_row * 4;
    r.from = element(src, line, ld, at);
    r.to = (k_innermost ? row_at(line, extent, depth) + at : line * extent + at) * 4;
    if (k_innermost) {
        int left = (limit < extent ? limit : extent) - line;
        r.limit = left > 0 && tid < pass * per_row ? (left + pass - 1) / pass : 0;
    } else {
        r.limit = tid < pass * per_row ? clamp4(limit - at) * 4 : 0;
    }
    return r;
}

RUNG_DEVICE void copier_copy(const tile_copier *r, rung_shared_at tile, unsigned ld, int k_left, int tid,
                             const int extent, const int depth, const int threads, const int k_innermost)
{
    const int per_row = (k_innermost ? depth : extent) / 4, pass = threads / per_row;
    const float *from = r->from;
    if (k_innermost) {
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

#endif
