/* Cases of distributed products, shared by the tests in one process and over MPI: random operands that every rank can
 * make for itself, element by element, and an FP64 check of the parts it holds. */
#ifndef RUNG_TESTS_LAYOUTS_H
#define RUNG_TESTS_LAYOUTS_H

#include "rung_multi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct grid {
    int rows, cols;
} grid;

typedef struct layout_case {
    int trans_a, trans_b;
    int64_t m, n, k;
    int64_t ia, ja, ib, jb, ic, jc; /* from 1; the matrices have a border beyond the part */
    int64_t mb[3], nb[3];           /* of A, B, C */
    grid grids[3];
    int row_source[3], col_source[3];
    int64_t pad; /* on every local leading dimension */
    float alpha, beta;
} layout_case;

/* Returns an element in [-1, 1) that depends on where it stands. */
static inline float element(int matrix, int64_t i, int64_t j)
{
    uint64_t x = (uint64_t)(i * 1000003 + j * 7919 + matrix * 104729 + 12345);
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(x >> 32) / 2147483648.0f;
}

static inline void case_shapes(const layout_case *t, int64_t rows[3], int64_t cols[3])
{
    rows[0] = t->ia - 1 + (t->trans_a ? t->k : t->m) + 2;
    cols[0] = t->ja - 1 + (t->trans_a ? t->m : t->k) + 1;
    rows[1] = t->ib - 1 + (t->trans_b ? t->n : t->k) + 3;
    cols[1] = t->jb - 1 + (t->trans_b ? t->k : t->n) + 1;
    rows[2] = t->ic - 1 + t->m + 1;
    cols[2] = t->jc - 1 + t->n + 2;
}

static inline void case_matrices(const layout_case *t, rung_matrix d[3])
{
    int64_t rows[3], cols[3];
    case_shapes(t, rows, cols);
    for (int i = 0; i < 3; i++) {
        rung_matrix_init(&d[i], rows[i], cols[i], t->mb[i], t->nb[i], t->grids[i].rows, t->grids[i].cols);
        d[i].row_source = t->row_source[i];
        d[i].col_source = t->col_source[i];
        d[i].ld += t->pad;
    }
}

static inline int64_t global_index(int64_t local, int64_t block, int part, int parts, int source)
{
    return (local / block * parts + (parts + part - source) % parts) * block + local % block;
}

/* Fills a rank's part with `value` or, where that is negative, with element(). */
static inline float *part_new(const rung_matrix *d, int rank, int matrix)
{
    int64_t rows = rung_matrix_rows(d, rank), cols = rung_matrix_cols(d, rank);
    float *at = malloc((size_t)(d->ld * (cols > 0 ? cols : 1) + 1) * sizeof *at);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < d->ld; i++)
            at[i + j * d->ld] =
                i < rows ? element(matrix, global_index(i, d->mb, rank / d->grid_cols, d->grid_rows, d->row_source),
                                   global_index(j, d->nb, rank % d->grid_cols, d->grid_cols, d->col_source))
                         : 12345.0f;
    return at;
}

static inline float op_element(int matrix, int trans, int64_t i0, int64_t j0, int64_t i, int64_t j)
{
    return trans ? element(matrix, i0 - 1 + j, j0 - 1 + i) : element(matrix, i0 - 1 + i, j0 - 1 + j);
}

/* Makes op(A)'s rows or op(B)'s columns, one behind the other: each element is made once, not once for each result. */
static inline float *lines_new(const layout_case *t, int matrix)
{
    int64_t lines = matrix ? t->n : t->m;
    float *at = malloc((size_t)(lines * t->k + 1) * sizeof *at);
    for (int64_t line = 0; line < lines; line++)
        for (int64_t p = 0; p < t->k; p++)
            at[line * t->k + p] = matrix ? op_element(1, t->trans_b, t->ib, t->jb, p, line)
                                         : op_element(0, t->trans_a, t->ia, t->ja, line, p);
    return at;
}

/* Sums in FP64, with the size that errors are measured by. There are four sums of each, so that none waits for the one
 * before. */
__attribute__((no_sanitize("thread"))) static inline double exact(const layout_case *t, const float *a, const float *b,
                                                                  int64_t i, int64_t j, double *size)
{
    double sum[4] = {0.0}, absolute[4] = {0.0};
    for (int64_t p = 0; p < t->k && t->alpha != 0.0f; p++) {
        double x = (double)a[i * t->k + p] * b[j * t->k + p];
        sum[p & 3] += x;
        absolute[p & 3] += fabs(x);
    }
    double c = t->beta == 0.0f ? 0.0 : (double)t->beta * element(2, t->ic - 1 + i, t->jc - 1 + j);
    *size = fabs((double)t->alpha) * (absolute[0] + absolute[1] + absolute[2] + absolute[3]) + fabs(c);
    return (double)t->alpha * (sum[0] + sum[1] + sum[2] + sum[3]) + c;
}

static inline int element_right(const layout_case *t, const rung_matrix *d, int rank, const float *a, const float *b,
                                int64_t i, int64_t j, double got, double bound)
{
    int64_t gi = global_index(i, d->mb, rank / d->grid_cols, d->grid_rows, d->row_source),
            gj = global_index(j, d->nb, rank % d->grid_cols, d->grid_cols, d->col_source);
    int beyond = i >= rung_matrix_rows(d, rank);
    int inside = !beyond && gi >= t->ic - 1 && gi < t->ic - 1 + t->m && gj >= t->jc - 1 && gj < t->jc - 1 + t->n;
    double size = 0.0, want = beyond ? 12345.0 : (double)element(2, gi, gj);
    if (inside)
        want = exact(t, a, b, gi - t->ic + 1, gj - t->jc + 1, &size);
    if (fabs(got - want) <= bound * size * 0x1p-24)
        return 1;
    fprintf(stderr, "rank %d, local (%lld, %lld), global (%lld, %lld): %.9g, not %.9g\n", rank, (long long)i,
            (long long)j, (long long)gi, (long long)gj, got, want);
    return 0;
}

/* Returns whether this rank's part of C is right and all around the sub-matrix is as it was; says what is not. `bound`
 * is in units of 2^-24. */
static inline int part_right(const layout_case *t, const rung_matrix *d, int rank, const float *c, double bound)
{
    int64_t cols = rung_matrix_cols(d, rank);
    float *a = lines_new(t, 0), *b = lines_new(t, 1);
    int right = 1;
    for (int64_t j = 0; j < cols && right; j++)
        for (int64_t i = 0; i < d->ld && right; i++)
            right = element_right(t, d, rank, a, b, i, j, (double)c[i + j * d->ld], bound);
    free(a);
    free(b);
    return right;
}

/* One pointer for each rank that the process holds. */
static inline rung_status case_run(rung_multi *multi, const layout_case *t, const rung_matrix d[3], float *const *a,
                                   float *const *b, float *const *c)
{
    return rung_psgemm(multi, (rung_transpose)t->trans_a, (rung_transpose)t->trans_b, t->m, t->n, t->k, t->alpha,
                       (const float *const *)a, t->ia, t->ja, &d[0], (const float *const *)b, t->ib, t->jb, &d[1],
                       t->beta, c, t->ic, t->jc, &d[2]);
}

/* Whole matrices, all on one grid; blocks and transposes are the caller's. */
static inline layout_case whole_case(grid g, int64_t m, int64_t n, int64_t k)
{
    return (layout_case){.m = m,
                         .n = n,
                         .k = k,
                         .ia = 1,
                         .ja = 1,
                         .ib = 1,
                         .jb = 1,
                         .ic = 1,
                         .jc = 1,
                         .grids = {g, g, g},
                         .alpha = 0.7f,
                         .beta = -0.3f};
}

/* Large enough for bands and chunks of C, and for more panels than slots. */
static inline layout_case large_case(int rows, int cols)
{
    layout_case t = whole_case((grid){rows, cols}, 600, 560, 500);
    memcpy(t.mb, (int64_t[]){300, 100, 300}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){64, 300, 280}, sizeof t.nb);
    return t;
}

static inline void print_case(const layout_case *t)
{
    fprintf(stderr, "case %c%c %lldx%lldx%lld alpha %g beta %g from (%lld,%lld) (%lld,%lld) (%lld,%lld)",
            "NT"[t->trans_a], "NT"[t->trans_b], (long long)t -> m, (long long)t -> n, (long long)t -> k,
            (double)t -> alpha, (double)t -> beta, (long long)t -> ia, (long long)t -> ja, (long long)t -> ib,
            (long long)t -> jb, (long long)t -> ic, (long long)t -> jc);
    for (int i = 0; i < 3; i++)
        fprintf(stderr, " | %c: blocks %lldx%lld grid %dx%d source (%d,%d)", "ABC"[i], (long long)t -> mb[i],
                (long long)t -> nb[i], t -> grids[i].rows, t->grids[i].cols, t->row_source[i], t->col_source[i]);
    fprintf(stderr, "\n");
}

static inline int pick(uint64_t *s, int n)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (int)((*s >> 33) % (uint64_t)n);
}

/* Case number `index` of an endless list that covers transposes, grids, uneven blocks, sources, sub-matrices and
 * corners of alpha and beta. one_grid: all three on one grid, as ScaLAPACK wants them. */
static inline layout_case case_at(int index, int ranks, int one_grid)
{
    static const float alphas[] = {1.0f, -0.5f, 1.0f, 0.0f}, betas[] = {0.0f, 1.0f, -0.5f};
    static const int64_t sizes[] = {37, 1, 64, 97, 5, 128, 33}, blocks[] = {7, 16, 64, 3, 200};
    uint64_t s = (uint64_t)index * 0x9e3779b97f4a7c15u + 1;
#define PICK(n) pick(&s, n)
    layout_case t = {.trans_a = index & 1, .trans_b = index >> 1 & 1};
    t.m = sizes[PICK(7)], t.n = sizes[PICK(7)], t.k = sizes[PICK(7)] + (PICK(3) == 0 ? 61 : 0);
    t.alpha = alphas[PICK(4)], t.beta = betas[PICK(3)];
    t.pad = PICK(3);
    int part = PICK(2);
    int64_t *origins[] = {&t.ia, &t.ja, &t.ib, &t.jb, &t.ic, &t.jc};
    for (int i = 0; i < 6; i++)
        *origins[i] = part ? 1 + PICK(9) : 1;
    grid one = {1, ranks};
    for (int rows = 1 + PICK(ranks); rows >= 1; rows--)
        if (ranks % rows == 0) {
            one = (grid){rows, ranks / rows};
            break;
        }
    for (int i = 0; i < 3; i++) {
        t.mb[i] = blocks[PICK(5)];
        t.nb[i] = blocks[PICK(5)];
        t.grids[i] = one;
        if (!one_grid && PICK(3) == 0)
            t.grids[i] = (grid){ranks, 1};
        if (!one_grid && PICK(5) == 0)
            t.grids[i] = (grid){1, 1};
        t.row_source[i] = PICK(t.grids[i].rows);
        t.col_source[i] = PICK(t.grids[i].cols);
    }
#undef PICK
    return t;
}

#endif
