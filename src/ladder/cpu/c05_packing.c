/* c05_packing: blocks of A and B are copied into the order in which the tile reads them, padded with zeros.
 * Changed from c04_cache_block: the tile walks two short contiguous panels. No address is computed in it, no page or
 * cache set is visited twice, and edges need no loop of their own: padding makes every tile whole. */
#include "ladder/cpu/start.h"

#include <stdlib.h>

rung_status c05_packing(const void *arguments);

enum { MR = 4, NR = 8, MC = 128, KC = 256, NC = 1024 };

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Panels of NR columns: for each step of k, NR neighbours. */
/* lesson */
static void pack_b(const rung_cpu_args *g, int64_t first, int64_t k, int64_t column, int64_t columns, float *to)
{
    for (int64_t j = 0; j < columns; j += NR)
        for (int64_t p = 0; p < k; p++)
            for (int64_t s = 0; s < NR; s++)
                *to++ = j + s < columns ? g->b[(first + p) * g->ldb + column + j + s] : 0.0f;
}

/* Panels of MR rows: for each step of k, MR neighbours. */
static void pack_a(const rung_cpu_args *g, int64_t row, int64_t rows, int64_t first, int64_t k, float *to)
{
    for (int64_t i = 0; i < rows; i += MR)
        for (int64_t p = 0; p < k; p++)
            for (int64_t r = 0; r < MR; r++)
                *to++ = i + r < rows ? g->a[(row + i + r) * g->lda + first + p] : 0.0f;
}
/* /lesson */

static void tile(int64_t k, const float *a, const float *b, float alpha, float *c, int64_t ldc, int64_t rows,
                 int64_t columns)
{
    float acc[MR][NR] = {{0}};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR)
        for (int r = 0; r < MR; r++)
            for (int s = 0; s < NR; s++)
                acc[r][s] += a[r] * b[s];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < columns; s++)
            c[r * ldc + s] += alpha * acc[r][s];
}

static void block(const rung_cpu_args *g, const float *a, const float *b, int64_t k, int64_t row, int64_t rows,
                  int64_t column, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += NR) /* a panel of B, 8 KB, stays in L1 while A passes from L2 */
        for (int64_t i = 0; i < rows; i += MR)
            tile(k, a + i * k, b + j * k, g->alpha, &g->c[(row + i) * g->ldc + column + j], g->ldc, least(rows - i, MR),
                 least(columns - j, NR));
}

rung_status c05_packing(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    float *a = aligned_alloc(64, sizeof(float) * (MC + NC) * KC);
    if (!a)
        return RUNG_OUT_OF_MEMORY;
    float *b = a + MC * KC;
    start_from_beta(g);
    for (int64_t j = 0; j < g->n; j += NC)
        for (int64_t p = 0; p < g->k; p += KC) {
            int64_t columns = least(g->n - j, NC), k = least(g->k - p, KC);
            pack_b(g, p, k, j, columns, b);
            for (int64_t i = 0; i < g->m; i += MC) {
                int64_t rows = least(g->m - i, MC);
                pack_a(g, i, rows, p, k, a);
                block(g, a, b, k, i, rows, j, columns);
            }
        }
    free(a);
    return RUNG_SUCCESS;
}
