/* Products on ranks of this process: each call cuts the matrices into other blocks on another grid, sets them into
 * larger ones, and must give the same bits all the same. */
#include "lab/entry.h"
#include "rung_multi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, A, B, C, MATRICES };

/* One operand: a column-major whole with a margin, and its parts. */
typedef struct spread {
    rung_matrix matrix;
    int64_t rows, columns, row, column; /* the product's part of it, which begins at row, column (from 0) */
    float *whole, *parts[RANKS];
} spread;

static int64_t below(uint64_t *dice, int64_t count)
{
    *dice = lab_mix(*dice);
    return (int64_t)(*dice % (uint64_t)count);
}

static void fill(float *at, int64_t count, uint32_t pattern)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(at + i, &pattern, sizeof pattern);
}

/* Returns the place of element (i, j) of a column-major operand that may be stored by rows. */
static float *element(const float *at, int64_t ld, int by_rows, int64_t i, int64_t j)
{
    return (float *)(uintptr_t)(by_rows ? at + i * ld + j : at + j * ld + i);
}

static rung_status spread_out(rung_multi *multi, spread *s, const float *at, int64_t ld, int by_rows, int64_t rows,
                              int64_t columns, uint64_t *dice)
{
    static const int grids[][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}, {4, 1}, {1, 3}, {3, 1}};
    const int *grid = grids[below(dice, 8)];
    s->rows = rows;
    s->columns = columns;
    s->row = below(dice, 3) ? 0 : below(dice, 9);
    s->column = below(dice, 3) ? 0 : below(dice, 9);
    int64_t m = s->row + rows + below(dice, 3), n = s->column + columns + below(dice, 3);
    rung_matrix_init(&s->matrix, m, n, 1 + below(dice, 40), 1 + below(dice, 40), grid[0], grid[1]);
    s->matrix.row_source = (int)below(dice, grid[0]);
    s->matrix.col_source = (int)below(dice, grid[1]);
    for (int r = 0; r < RANKS; r++)
        if (rung_matrix_rows(&s->matrix, r) > s->matrix.ld)
            s->matrix.ld = rung_matrix_rows(&s->matrix, r);
    s->matrix.ld += below(dice, 4);
    s->whole = malloc((size_t)(m * n + 1) * sizeof(float));
    for (int r = 0; r < RANKS && s->whole; r++) {
        int64_t count = s->matrix.ld * rung_matrix_cols(&s->matrix, r) + 1;
        if (!(s->parts[r] = malloc((size_t)count * sizeof(float))))
            return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a rank's part");
        fill(s->parts[r], count, LAB_POISON);
    }
    if (!s->whole)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a matrix");
    fill(s->whole, m * n, LAB_POISON);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            s->whole[(j + s->column) * m + i + s->row] = *element(at, ld, by_rows, i, j);
    return rung_scatter(multi, (int)below(dice, RANKS), s->whole, m > 0 ? m : 1, s->parts, &s->matrix);
}

/* Between the columns of each rank's part nothing may have been written. */
static rung_status check_gaps(const spread *s)
{
    for (int r = 0; r < RANKS; r++)
        for (int64_t j = 0; j < rung_matrix_cols(&s->matrix, r); j++)
            for (int64_t i = rung_matrix_rows(&s->matrix, r); i < s->matrix.ld; i++) {
                uint32_t bits;
                memcpy(&bits, &s->parts[r][j * s->matrix.ld + i], sizeof bits);
                if (bits != LAB_POISON)
                    return lab_fail(RUNG_INTERNAL, "rank %d wrote behind its rows in column %lld of its part", r,
                                    (long long)j);
            }
    return RUNG_SUCCESS;
}

/* Brings C back; what lies around the product's part must be as it was. */
static rung_status gather(rung_multi *multi, spread *s, float *at, int64_t ld, int by_rows)
{
    int64_t m = s->matrix.m, n = s->matrix.n;
    LAB_TRY(check_gaps(s));
    LAB_TRY(rung_gather(multi, 0, (const float *const *)s->parts, &s->matrix, s->whole, m > 0 ? m : 1));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            int64_t row = i - s->row, column = j - s->column;
            const float *from = &s->whole[j * m + i];
            uint32_t bits;
            memcpy(&bits, from, sizeof bits);
            if (row >= 0 && row < s->rows && column >= 0 && column < s->columns)
                *element(at, ld, by_rows, row, column) = *from;
            else if (bits != LAB_POISON)
                return lab_fail(RUNG_INTERNAL, "ranks wrote element (%lld, %lld) beside C", (long long)row,
                                (long long)column);
        }
    return RUNG_SUCCESS;
}

static rung_status run(lab_entry *entry, const rung_gemm *g)
{
    rung_multi *multi = entry->state;
    spread x[MATRICES];
    int rows = g->layout == RUNG_ROW_MAJOR;
    uint64_t dice = entry->calls++;
    int64_t am = g->trans_a ? g->k : g->m, an = g->trans_a ? g->m : g->k;
    int64_t bm = g->trans_b ? g->n : g->k, bn = g->trans_b ? g->k : g->n;
    rung_status status;
    memset(x, 0, sizeof x);
    LAB_TRY_OUT(spread_out(multi, &x[A], g->a, g->lda, rows, am, an, &dice));
    LAB_TRY_OUT(spread_out(multi, &x[B], g->b, g->ldb, rows, bm, bn, &dice));
    LAB_TRY_OUT(spread_out(multi, &x[C], g->c, g->ldc, rows, g->m, g->n, &dice));
    LAB_TRY_OUT(rung_psgemm(multi, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, (const float *const *)x[A].parts,
                            x[A].row + 1, x[A].column + 1, &x[A].matrix, (const float *const *)x[B].parts, x[B].row + 1,
                            x[B].column + 1, &x[B].matrix, g->beta, x[C].parts, x[C].row + 1, x[C].column + 1,
                            &x[C].matrix));
    LAB_TRY_OUT(gather(multi, &x[C], g->c, g->ldc, rows));
out:
    for (int i = 0; i < MATRICES; i++) {
        free(x[i].whole);
        for (int r = 0; r < RANKS; r++)
            free(x[i].parts[r]);
    }
    return status;
}

static void close_ranks(lab_entry *entry)
{
    rung_multi_destroy(entry->state);
}

rung_status lab_entry_open_ranks(lab_entry *entry, lab_place *place, rung_math math)
{
    static const int cpus[RANKS] = {RUNG_DEVICE_CPU, RUNG_DEVICE_CPU, RUNG_DEVICE_CPU, RUNG_DEVICE_CPU};
    rung_multi_config config;
    rung_multi *multi;
    if (place->tools)
        return lab_fail(RUNG_UNSUPPORTED, "ranks are verified on the CPU: --device cpu");
    rung_multi_config_init(&config);
    config.ranks = RANKS;
    config.devices = cpus;
    config.threads = 1;
    config.math = math;
    LAB_TRY(rung_multi_create(&multi, &config));
    *entry = (lab_entry){.run = run, .close = close_ranks, .place = place, .state = multi};
    return RUNG_SUCCESS;
}
