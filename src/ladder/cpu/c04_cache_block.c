/* c04_cache_block: k and n are cut so that the piece of B in use, KC x NC, stays in L2.
 * Changed from c03_register_tile: two loops outside; the tile sums KC steps instead of k and adds to C once a block.
 * A strip of B no longer falls out of the cache before the next rows need it. */
#include "ladder/cpu/start.h"

rung_status c04_cache_block(const void *arguments);

enum { MR = 4, NR = 8, KC = 256, NC = 256 }; /* 256 KB of B */

typedef float four
    __attribute__((vector_size(16), aligned(4))); /* a register of any CPU; c02's compiler used them too */

static void tile(const rung_cpu_args *g, int64_t i, int64_t j, int64_t first, int64_t k)
{
    four acc[MR][2] = {{{0}}};
    for (int64_t p = first; p < first + k; p++) {
        const float *b = &g->b[p * g->ldb + j];
        four left = *(const four *)b, right = *(const four *)(b + 4);
        for (int r = 0; r < MR; r++) {
            float a = g->a[(i + r) * g->lda + p];
            acc[r][0] += a * left;
            acc[r][1] += a * right;
        }
    }
    for (int r = 0; r < MR; r++)
        for (int s = 0; s < NR; s++)
            g->c[(i + r) * g->ldc + j + s] += g->alpha * acc[r][s / 4][s % 4];
}

static void edge(const rung_cpu_args *g, int64_t i, int64_t j, int64_t rows, int64_t columns, int64_t first, int64_t k)
{
    for (int64_t r = i; r < i + rows; r++)
        for (int64_t s = j; s < j + columns; s++) {
            float acc = 0.0f;
            for (int64_t p = first; p < first + k; p++)
                acc += g->a[r * g->lda + p] * g->b[p * g->ldb + s];
            g->c[r * g->ldc + s] += g->alpha * acc;
        }
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* lesson */
static void block(const rung_cpu_args *g, int64_t first_column, int64_t columns, int64_t first, int64_t k)
{
    for (int64_t j = first_column; j < first_column + columns; j += NR)
        for (int64_t i = 0; i < g->m; i += MR) {
            int64_t rows = least(g->m - i, MR), width = least(first_column + columns - j, NR);
            if (rows == MR && width == NR)
                tile(g, i, j, first, k);
            else
                edge(g, i, j, rows, width, first, k);
        }
}

rung_status c04_cache_block(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    start_from_beta(g);
    for (int64_t p = 0; p < g->k; p += KC)
        for (int64_t j = 0; j < g->n; j += NC)
            block(g, j, least(g->n - j, NC), p, least(g->k - p, KC));
    return RUNG_SUCCESS;
}
/* /lesson */
