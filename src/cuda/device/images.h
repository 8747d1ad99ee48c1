/* Operands laid out for wgmma by a kernel of their own: what the rungs from l30_tf32_bulk on share with their launcher.
 * A line is a row of A or a column of B. For each 32 along k and each 8 lines an image has 1024 bytes: 8 rows of 128
 * bytes, one a line, whose 16-byte unit u lies at u ^ (line % 8): wgmma's 128-byte swizzle reads it so. 32 values of
 * TF32 fill a row, or 32 halves hi (units 0 to 3) and 32 halves lo (units 4 to 7). Lines and k are padded with zeros.
 */
#ifndef RUNG_DEVICE_IMAGES_H
#define RUNG_DEVICE_IMAGES_H

#include "cuda/device/args.h"

enum { IMAGE_LINES = 32, IMAGE_KB = 32, IMAGE_TILE = 128, IMAGE_THREADS = 512, IMAGE_COUNTERS = 3 };
enum { IMAGE_SUMS = IMAGE_TILE / 2 }; /* of a thread: 64 x 128 results over 128 threads */

/* One line of an operand split into scaled halves. */
typedef struct rung_image_line {
    int32_t scale; /* it was multiplied by 2^scale */
    float doubt;   /* a sum of smaller magnitude may owe too much to elements that lost bits */
} rung_image_line;

/* 32 lines, for a guard that judges tiles before they are multiplied. */
typedef struct rung_image_group {
    uint32_t largest_bits; /* magnitude, as bits: from 0x7f800000 on there is an Inf or a NaN */
    float peak; /* each line's largest element has a share of its sum of magnitudes: the largest of these shares */
} rung_image_group;

typedef struct rung_image_args {
    rung_args g;
    char *a, *b;                         /* images */
    rung_image_line *a_line, *b_line;    /* one a padded line */
    rung_image_group *a_group, *b_group; /* one for 32 */
    int64_t a_lines, b_lines;            /* padded to whole tiles, A's to whole clusters */
    int64_t k_blocks;                    /* of 32, an even number, 2 at least */
    uint32_t *tickets; /* l38: three counters, then how many pieces of each panel and 64 of k are done */
    uint32_t *lost;    /* from l38 on, of each line, A's first: how many elements lost bits */
    int64_t cluster;   /* l39: blocks that split 32 lines together */
} rung_image_args;

#ifdef __CUDACC__

/* One operand as the kernel sees it that fills its image: element (line, k) is x[line * line_step + k * k_step]. */
typedef struct image_operand {
    const float *x;
    int64_t line_step, k_step, lines, k;
    char *image;
    rung_image_line *line;
    rung_image_group *group;
    int64_t padded;
    uint32_t *lost;
} image_operand;

RUNG_DEVICE image_operand image_operand_a(const rung_image_args *p)
{
    image_operand a = {p->g.a, p->g.lda, 1, p->g.m, p->g.k, p->a, p->a_line, p->a_group, p->a_lines, p->lost};
    return a;
}

RUNG_DEVICE image_operand image_operand_b(const rung_image_args *p)
{
    image_operand b = {p->g.b, 1,         p->g.ldb,   p->g.n,     p->g.k,
                       p->b,   p->b_line, p->b_group, p->b_lines, p->lost + p->a_lines};
    return b;
}

/* Blocks of the launch take 32 lines each, A's first; *first is the block's first line. */
RUNG_DEVICE image_operand image_operand_of(const rung_image_args *p, int64_t *first)
{
    int64_t line = (int64_t)blockIdx.x * IMAGE_LINES;
    *first = line < p->a_lines ? line : line - p->a_lines;
    return line < p->a_lines ? image_operand_a(p) : image_operand_b(p);
}

/* Reads eight values along k of one line; outside the matrix it puts zeros. */
RUNG_DEVICE void image_load8(float v[8], const image_operand *o, int64_t line, int64_t k)
{
    const float *from = o->x + line * o->line_step + k * o->k_step;
    if (line < o->lines && k + 8 <= o->k) {
        if (o->k_step == 1 && ((uintptr_t)from & 15) == 0) {
            *(float4 *)v = *(const float4 *)from;
            *(float4 *)(v + 4) = *(const float4 *)(from + 4);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = from[i * o->k_step];
        }
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = line < o->lines && k + i < o->k ? from[i * o->k_step] : 0.0f;
    }
}

/* Returns where unit `unit` of a line's row for 32 of k starts. */
RUNG_DEVICE char *image_unit(const image_operand *o, int64_t k_block, int64_t line, int unit)
{
    return o->image + (k_block * (o->padded / 8) + line / 8) * 1024 + line % 8 * 128 + (unit ^ (int)(line % 8)) * 16;
}

/* Called before the flag is set: makes what this thread wrote visible to other blocks and to their copy engines. */
RUNG_DEVICE void image_publish(void)
{
#ifndef RUNG_LENS
    asm volatile("fence.proxy.async;" ::: "memory");
#endif
    __threadfence();
}

/* Called after the flag was seen: a copy that starts from now on finds what was written. */
RUNG_DEVICE void image_acquire(void)
{
    __threadfence();
#ifndef RUNG_LENS
    asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

/* Finds a tile's place. Tiles go down the columns of bands of eight tile rows: those computed at one time share panels
 * in L2. */
RUNG_DEVICE void image_place(int64_t tile, int64_t rows, int64_t columns, int64_t *row, int64_t *column)
{
    enum { BAND = 8 };
    int64_t band = tile / (BAND * columns), inside = tile % (BAND * columns);
    int64_t height = rows - band * BAND < BAND ? rows - band * BAND : BAND;
    *row = band * BAND + inside % height;
    *column = inside / height;
}

/* Returns v 2^e, by two exact factors: the scales of two lines together can leave the exponent range where the result
 * does not.
 */
RUNG_DEVICE float image_unscale(float v, int e)
{
    e = max(-250, min(e, 254));
    return v * __int_as_float((e / 2 + 127) << 23) * __int_as_float((e - e / 2 + 127) << 23);
}

/* Writes C[row][column] and its right neighbour. `pairs` promises that both exist and lie at a multiple of 8 bytes. */
RUNG_DEVICE void image_write2(const rung_args *g, int64_t row, int64_t column, float x, float y, bool pairs)
{
    float *c = g->c + row * g->ldc + column;
    if (pairs) {
        *(float2 *)c = make_float2(rung_blend(g, x, c), rung_blend(g, y, c + 1));
    } else if (row < g->m) {
        if (column < g->n)
            c[0] = rung_blend(g, x, c);
        if (column + 1 < g->n)
            c[1] = rung_blend(g, y, c + 1);
    }
}

/* ---- the end of a tile: 64 rows a warpgroup, 64 sums a thread, as wgmma deals them out ---- */

/* A thread has rows row and row + 8, and of each 8 columns two: sum i is at row + i / 2 % 2 * 8, column + i / 4 * 8 + i
 * % 2. */
RUNG_DEVICE uint64_t image_doubtful(const float sum[IMAGE_SUMS], const rung_image_line *rows,
                                    const rung_image_line *columns)
{
    uint64_t doubtful = 0;
#pragma unroll
    for (int i = 0; i < IMAGE_SUMS; i++) {
        float limit = rows[i / 2 % 2 * 8].doubt + columns[i / 4 * 8 + i % 2].doubt;
        doubtful |= (uint64_t) !(fabsf(sum[i]) >= limit) << i; /* NaN too */
    }
    return doubtful;
}

/* Computes results by their definition where the halves cannot promise enough. */
RUNG_DEVICE void image_write_by_definition(const rung_args *g, uint64_t doubtful, int64_t row, int64_t column)
{
#pragma unroll 1
    for (; doubtful; doubtful &= doubtful - 1) {
        int i = __ffsll(doubtful) - 1;
        int64_t y = row + i / 2 % 2 * 8, x = column + i / 4 * 8 + i % 2;
        float sum = 0.0f;
        if (y >= g->m || x >= g->n)
            continue;
#pragma unroll 1
        for (int64_t k = 0; k < g->k; k++)
            sum = fmaf(g->a[y * g->lda + k], g->b[k * g->ldb + x], sum);
        g->c[y * g->ldc + x] = rung_blend(g, sum, &g->c[y * g->ldc + x]);
    }
}

RUNG_DEVICE void image_write_tile(const rung_args *g, const float sum[IMAGE_SUMS], const rung_image_line *rows,
                                  const rung_image_line *columns, int64_t row, int64_t column, bool whole,
                                  uint64_t doubtful)
{
    bool pairs = whole && !doubtful && g->ldc % 2 == 0 && ((uintptr_t)g->c & 7) == 0;
#pragma unroll
    for (int i = 0; i < IMAGE_SUMS; i += 2) {
        int scale = rows[i / 2 % 2 * 8].scale, at = i / 4 * 8;
        float x = image_unscale(sum[i], -scale - columns[at].scale);
        float y = image_unscale(sum[i + 1], -scale - columns[at + 1].scale);
        int64_t to_row = row + i / 2 % 2 * 8, to_column = column + at;
        if (pairs || !(doubtful >> i & 3))
            image_write2(g, to_row, to_column, x, y, pairs);
        else if (to_row < g->m) /* at most one of the two exists */
            for (int e = 0; e < 2; e++)
                if (!(doubtful >> (i + e) & 1) && to_column + e < g->n)
                    g->c[to_row * g->ldc + to_column + e] =
                        rung_blend(g, e ? y : x, &g->c[to_row * g->ldc + to_column + e]);
    }
    image_write_by_definition(g, doubtful, row, column);
}

#endif
#endif
