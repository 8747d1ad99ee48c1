/* c07_prefetch: the end of a tile made short. Its rows of C are asked for before it starts to sum, and are added to in
 * vectors.
 * Changed from c06_simd_tile: the prefetches and the end. C lies in rows far apart that no hardware prefetcher guesses;
 * asked for KC steps ahead, it is there when the sums are done. A whole tile then takes 12 vectors, not 96 floats. */
#include "ladder/cpu/start.h"

#include <stdlib.h>

rung_status c07_prefetch(const void *arguments);

enum { VL = 8, MR = 6, NR = 2 * VL, MC = 120, KC = 256, NC = 1024 };

typedef float vec __attribute__((vector_size(VL * sizeof(float)), aligned(4)));

#if defined(__x86_64__)
#define SIMD __attribute__((target("avx2,fma"))) /* elsewhere the compiler maps vec to what there is */
#else
#define SIMD
#endif

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Panels of NR columns: for each step of k, NR neighbours. */
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

/* lesson */
SIMD static void tile(int64_t k, const float *a, const float *b, float alpha, float *c, int64_t ldc, int64_t rows,
                      int64_t columns)
{
    vec acc[MR][2] = {{{0}}};
    for (int64_t r = 0; r < rows; r++)
        __builtin_prefetch(&c[r * ldc], 1);
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        vec left = *(const vec *)b, right = *(const vec *)(b + VL);
#pragma GCC unroll 6
        for (int r = 0; r < MR; r++) {
            acc[r][0] += a[r] * left;
            acc[r][1] += a[r] * right;
        }
    }
    if (rows == MR && columns == NR) { /* a whole tile: its sums stay in their registers */
#pragma GCC unroll 6
        for (int64_t r = 0; r < MR; r++) {
            *(vec *)&c[r * ldc] += alpha * acc[r][0];
            *(vec *)&c[r * ldc + VL] += alpha * acc[r][1];
        }
        return;
    }
    /* /lesson */
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < columns; s++)
            c[r * ldc + s] += alpha * acc[r][s / VL][s % VL];
}

static void block(const rung_cpu_args *g, const float *a, const float *b, int64_t k, int64_t row, int64_t rows,
                  int64_t column, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += NR) /* a panel of B, 16 KB, stays in L1 while A passes from L2 */
        for (int64_t i = 0; i < rows; i += MR)
            tile(k, a + i * k, b + j * k, g->alpha, &g->c[(row + i) * g->ldc + column + j], g->ldc, least(rows - i, MR),
                 least(columns - j, NR));
}

rung_status c07_prefetch(const void *arguments)
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
