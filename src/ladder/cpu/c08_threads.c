/* c08_threads: all threads share one packed block of B, and take pieces of rows.
 * Changed from c07_prefetch: the two loops inside become two jobs of the pool. First panels of B are packed, then
 * pieces of rows are computed, each with a packed A of its own. A job ends when all its tasks are done, so nobody reads
 * a panel that is not there, and no two threads write the same element. More pieces than threads even out a thread that
 * is late.
 */
#include "ladder/cpu/start.h"

#include <stdlib.h>

rung_status c08_threads(const void *arguments);

enum { VL = 8, MR = 6, NR = 2 * VL, MC = 120, KC = 256, NC = 1024, PIECES_A_THREAD = 8 };

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

typedef struct shared_block {
    const rung_cpu_args *g;
    float *b;                          /* packed once, read by all */
    int64_t first, k, column, columns; /* of the block of B */
    int64_t rows;                      /* of a piece */
} shared_block;

/* lesson */
static void pack_panel(void *job, int64_t number, float *unused)
{
    (void)unused;
    const shared_block *s = job;
    int64_t j = number * NR;
    pack_b(s->g, s->first, s->k, s->column + j, least(s->columns - j, NR), s->b + j * s->k);
}

static void take_rows(void *job, int64_t number, float *a)
{
    const shared_block *s = job;
    const rung_cpu_args *g = s->g;
    int64_t row = number * s->rows, rows = least(g->m - row, s->rows);
    if (s->first == 0) { /* the first to touch this part of C */
        rung_cpu_args part = {
            .m = rows, .n = s->columns, .c = &g->c[row * g->ldc + s->column], .ldc = g->ldc, .beta = g->beta};
        start_from_beta(&part);
    }
    pack_a(g, row, rows, s->first, s->k, a);
    block(g, a, s->b, s->k, row, rows, s->column, s->columns);
}
/* /lesson */

static int64_t round_up(int64_t x, int64_t step)
{
    return (x + step - 1) / step * step;
}

rung_status c08_threads(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    if (g->k == 0) {
        start_from_beta(g);
        return RUNG_SUCCESS;
    }
    if (!rung_pool_reserve(g->pool, g->threads, MC * KC))
        return RUNG_OUT_OF_MEMORY;
    shared_block s = {.g = g, .b = aligned_alloc(64, sizeof(float) * NC * KC)};
    if (!s.b)
        return RUNG_OUT_OF_MEMORY;
    s.rows = least(MC, round_up(g->m / ((int64_t)g->threads * PIECES_A_THREAD) + 1, MR));
    for (s.column = 0; s.column < g->n; s.column += NC)
        for (s.first = 0; s.first < g->k; s.first += KC) {
            s.columns = least(g->n - s.column, NC);
            s.k = least(g->k - s.first, KC);
            rung_pool_run(g->pool, g->threads, (s.columns + NR - 1) / NR, pack_panel, &s);
            rung_pool_run(g->pool, g->threads, (g->m + s.rows - 1) / s.rows, take_rows, &s);
        }
    free(s.b);
    return RUNG_SUCCESS;
}
