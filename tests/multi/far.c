/* Ranks whose matrices' columns lie so far apart that their offsets pass 2^31 elements, in memory that is reserved and
 * hardly touched: products of sub-matrices far out, copies between layouts, and to and from a whole matrix. Whole
 * numbers, so that each result is exact. */
#define _GNU_SOURCE
#include "rung_multi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 2, M = 12, N = 9, K = 11, FAR = 21, WIDE = 40 }; /* FAR: columns before the sub-matrix */

static const int64_t ld = ((int64_t)1 << 27) + 5; /* so that column FAR of a part begins beyond 2^31 elements */

typedef struct operand {
    rung_matrix d;
    float *parts[RANKS];
    int64_t row, col; /* the sub-matrix's first element, from 0 */
} operand;

static uint64_t state = 1;

static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int)(state >> 40) % 9 - 4);
}

static void need(rung_status status, const char *what)
{
    if (status == RUNG_SUCCESS)
        return;
    printf("FAILED: %s: %s\n", what, rung_last_error());
    exit(1);
}

static float *reserve(int64_t floats)
{
    float *at =
        mmap(NULL, (size_t)floats * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        printf("left out: ranks far apart, %lld GiB of address space cannot be reserved here\n",
               (long long)floats >> 28);
        exit(77);
    }
    madvise(at, (size_t)floats * 4, MADV_NOHUGEPAGE);
    return at;
}

/* An operand of `rows` rows on a column of two ranks, or on one rank, `rows` x WIDE in all. */
static void operand_new(operand *x, int64_t rows, int grid_rows)
{
    rung_matrix_init(&x->d, rows + 3, WIDE, 4, 3, grid_rows, 1);
    x->d.ld = ld;
    x->row = 2, x->col = FAR;
    for (int r = 0; r < RANKS; r++)
        x->parts[r] = r < grid_rows ? reserve(ld * (WIDE - 1) + rows + 3) : NULL;
}

/* Returns element (i, j) of the sub-matrix. */
static float *at(const operand *x, int64_t i, int64_t j)
{
    const int64_t row = x->row + i, block = row / x->d.mb;
    const int rank = (int)(block % x->d.grid_rows);
    return x->parts[rank] + block / x->d.grid_rows * x->d.mb + row % x->d.mb + (x->col + j) * ld;
}

static void fill(operand *x, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            *at(x, i, j) = draw();
}

static void release(operand *x)
{
    for (int r = 0; r < RANKS; r++)
        if (x->parts[r])
            munmap(x->parts[r], (size_t)(ld * (WIDE - 1) + x->d.m) * 4);
}

static void wrong(const char *what, int64_t i, int64_t j, double got, double wanted)
{
    printf("FAILED: %s: element (%lld, %lld) is %g, not %g\n", what, (long long)i, (long long)j, got, wanted);
    exit(1);
}

static void products(rung_multi *multi, int trans, int grid_rows)
{
    const int ta = trans >> 1, tb = trans & 1;
    operand a, b, c;
    float old[M][N];
    char what[64];
    snprintf(what, sizeof what, "a product %c%c, C on %d ranks", "NT"[ta], "NT"[tb], grid_rows);
    operand_new(&a, ta ? K : M, RANKS), operand_new(&b, tb ? N : K, 1), operand_new(&c, M, grid_rows);
    fill(&a, ta ? K : M, ta ? M : K), fill(&b, tb ? N : K, tb ? K : N), fill(&c, M, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            old[i][j] = *at(&c, i, j);
    need(rung_psgemm(multi, ta ? RUNG_TRANS : RUNG_NO_TRANS, tb ? RUNG_TRANS : RUNG_NO_TRANS, M, N, K, 2.0f,
                     (const float *const *)a.parts, a.row + 1, a.col + 1, &a.d, (const float *const *)b.parts,
                     b.row + 1, b.col + 1, &b.d, 0.5f, c.parts, c.row + 1, c.col + 1, &c.d),
         what);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0.5 * (double)old[i][j];
            for (int p = 0; p < K; p++)
                sum += 2.0 * (double)*(ta ? at(&a, p, i) : at(&a, i, p)) * (double)*(tb ? at(&b, j, p) : at(&b, p, j));
            if (!((double)*at(&c, i, j) == sum))
                wrong(what, i, j, (double)*at(&c, i, j), sum);
        }
    release(&a), release(&b), release(&c);
}

static void copies(rung_multi *multi)
{
    operand x, y;
    operand_new(&x, M, RANKS), operand_new(&y, M, 1);
    fill(&x, M, N);
    need(rung_redistribute(multi, M, N, (const float *const *)x.parts, x.row + 1, x.col + 1, &x.d, y.parts, y.row + 1,
                           y.col + 1, &y.d),
         "a copy");
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            if (!(*at(&y, i, j) == *at(&x, i, j)))
                wrong("a copy", i, j, (double)*at(&y, i, j), (double)*at(&x, i, j));
    release(&y);
    /* A whole matrix, as far apart, and back. */
    float *whole = reserve(ld * (WIDE - 1) + x.d.m);
    operand z;
    operand_new(&z, M, RANKS);
    need(rung_gather(multi, 1, (const float *const *)x.parts, &x.d, whole, ld), "gather");
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            if (!(whole[x.row + i + (x.col + j) * ld] == *at(&x, i, j)))
                wrong("gather", i, j, (double)whole[x.row + i + (x.col + j) * ld], (double)*at(&x, i, j));
    need(rung_scatter(multi, 1, whole, ld, z.parts, &z.d), "scatter");
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            if (!(*at(&z, i, j) == *at(&x, i, j)))
                wrong("scatter", i, j, (double)*at(&z, i, j), (double)*at(&x, i, j));
    munmap(whole, (size_t)(ld * (WIDE - 1) + x.d.m) * 4);
    release(&x), release(&z);
}

int main(void)
{
    static const int cpus[RANKS] = {RUNG_DEVICE_CPU, RUNG_DEVICE_CPU};
    rung_multi_config config;
    rung_multi *multi;
    rung_multi_config_init(&config);
    config.ranks = RANKS;
    config.devices = cpus;
    config.threads = 1;
    need(rung_multi_create(&multi, &config), "no context");
    for (int trans = 0; trans < 4; trans++)
        for (int grid_rows = 1; grid_rows <= RANKS; grid_rows++)
            products(multi, trans, grid_rows);
    copies(multi);
    rung_multi_destroy(multi);
    puts("8 products and 3 copies far out");
    return 0;
}
