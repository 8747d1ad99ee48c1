/* c03_register_tile: MR x NR results are summed in registers over all of k and written once.
 * Changed from c02_loop_order: C leaves the inner loop (it was loaded and stored for every multiplication), and each
 * element of A and B loaded serves NR or MR results. Edges take c01's loop. */
#include "ladder/cpu/start.h"

rung_status c03_register_tile(const void *arguments);

enum { MR = 4, NR = 8 };

typedef float four
    __attribute__((vector_size(16), aligned(4))); /* a register of any CPU; c02's compiler used them too */

static void tile(const rung_cpu_args *g, int64_t i, int64_t j)
{
    /* lesson */
    four acc[MR][2] = {{{0}}};
    for (int64_t p = 0; p < g->k; p++) {
        const float *b = &g->b[p * g->ldb + j];
        four left = *(const four *)b, right = *(const four *)(b + 4);
        for (int r = 0; r < MR; r++) {
            float a = g->a[(i + r) * g->lda + p];
            acc[r][0] += a * left;
            acc[r][1] += a * right;
        }
    }
    /* /lesson */
    for (int r = 0; r < MR; r++)
        for (int s = 0; s < NR; s++)
            g->c[(i + r) * g->ldc + j + s] += g->alpha * acc[r][s / 4][s % 4];
}

static void edge(const rung_cpu_args *g, int64_t i, int64_t j, int64_t rows, int64_t columns)
{
    for (int64_t r = i; r < i + rows; r++)
        for (int64_t s = j; s < j + columns; s++) {
            float acc = 0.0f;
            for (int64_t p = 0; p < g->k; p++)
                acc += g->a[r * g->lda + p] * g->b[p * g->ldb + s];
            g->c[r * g->ldc + s] += g->alpha * acc;
        }
}

rung_status c03_register_tile(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    start_from_beta(g);
    for (int64_t j = 0; j < g->n; j += NR) /* columns outside: a strip of B, k x NR, is used by all rows in turn */
        for (int64_t i = 0; i < g->m; i += MR) {
            int64_t rows = g->m - i < MR ? g->m - i : MR, columns = g->n - j < NR ? g->n - j : NR;
            if (rows == MR && columns == NR)
                tile(g, i, j);
            else
                edge(g, i, j, rows, columns);
        }
    return RUNG_SUCCESS;
}
