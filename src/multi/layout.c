/* Block-cyclic arithmetic and the checks of descriptors. */
#include "multi/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

multi_axis multi_rows(const rung_matrix *x)
{
    return (multi_axis){x->m, x->mb, x->grid_rows, x->row_source};
}

multi_axis multi_cols(const rung_matrix *x)
{
    return (multi_axis){x->n, x->nb, x->grid_cols, x->col_source};
}

multi_axis multi_whole(int64_t n)
{
    return (multi_axis){n, n > 0 ? n : 1, 1, 0};
}

int multi_axis_owner(const multi_axis *x, int64_t index)
{
    return (int)((index / x->block + x->source) % x->parts);
}

int64_t multi_axis_local(const multi_axis *x, int64_t index)
{
    return index / x->block / x->parts * x->block + index % x->block;
}

static int64_t distance(const multi_axis *x, int part)
{
    return (x->parts + part - x->source) % x->parts;
}

int64_t multi_axis_global(const multi_axis *x, int part, int64_t local)
{
    return (local / x->block * x->parts + distance(x, part)) * x->block + local % x->block;
}

int64_t multi_axis_count(const multi_axis *x, int part, int64_t end)
{
    int64_t blocks = end / x->block, mine = distance(x, part), over = blocks % x->parts;
    int64_t count = (blocks / x->parts + (mine < over)) * x->block;
    return mine == over ? count + end % x->block : count;
}

/* Returns how many elements from `index` on stay together on one part. */
static int64_t together(const multi_axis *x, int64_t index)
{
    return x->parts == 1 ? INT64_MAX : x->block - index % x->block;
}

static rung_status add_run(multi_runs *runs, multi_run run)
{
    multi_run *last = runs->count ? &runs->list[runs->count - 1] : NULL;
    if (last && last->part == run.part && last->local + last->count == run.local) {
        last->count += run.count;
        return RUNG_SUCCESS;
    }
    if (runs->count == runs->capacity) {
        int capacity = runs->capacity ? 2 * runs->capacity : 16;
        multi_run *list = realloc(runs->list, (size_t)capacity * sizeof *list);
        if (!list)
            return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d runs of a distribution", capacity);
        runs->list = list;
        runs->capacity = capacity;
    }
    runs->list[runs->count++] = run;
    return RUNG_SUCCESS;
}

rung_status multi_runs_find(multi_runs *runs, const multi_axis *to, int part, int64_t first, int64_t count,
                            int64_t to_origin, const multi_axis *from, int64_t from_origin)
{
    runs->count = 0;
    for (int64_t at = 0; at < count;) {
        int64_t index = multi_axis_global(to, part, first + at), source = index - to_origin + from_origin;
        int64_t length = min64(count - at, min64(together(to, index), together(from, source)));
        multi_run run = {at, length, multi_axis_owner(from, source), multi_axis_local(from, source)};
        RUNG_TRY(add_run(runs, run));
        at += length;
    }
    return RUNG_SUCCESS;
}

void multi_runs_free(multi_runs *runs)
{
    free(runs->list);
    memset(runs, 0, sizeof *runs);
}

static int is_in_grid(const rung_matrix *x, int rank)
{
    return rank >= 0 && rank < (int64_t)x->grid_rows * x->grid_cols;
}

int multi_grid_row(const rung_matrix *x, int rank)
{
    return is_in_grid(x, rank) ? rank / x->grid_cols : -1;
}

int multi_grid_col(const rung_matrix *x, int rank)
{
    return is_in_grid(x, rank) ? rank % x->grid_cols : -1;
}

/* Returns whether the sizes are such as can be counted with. A caller asks for rows and columns before any call has
 * looked at the descriptor. */
static int is_countable(const rung_matrix *x)
{
    return x && x->m >= 0 && x->n >= 0 && x->mb > 0 && x->nb > 0 && x->grid_rows > 0 && x->grid_cols > 0;
}

int64_t rung_matrix_rows(const rung_matrix *x, int rank)
{
    if (!is_countable(x) || !is_in_grid(x, rank))
        return 0;
    multi_axis rows = multi_rows(x);
    return multi_axis_count(&rows, multi_grid_row(x, rank), x->m);
}

int64_t rung_matrix_cols(const rung_matrix *x, int rank)
{
    if (!is_countable(x) || !is_in_grid(x, rank))
        return 0;
    multi_axis cols = multi_cols(x);
    return multi_axis_count(&cols, multi_grid_col(x, rank), x->n);
}

void rung_matrix_init(rung_matrix *x, int64_t m, int64_t n, int64_t mb, int64_t nb, int grid_rows, int grid_cols)
{
    *x = (rung_matrix){.m = m, .n = n, .mb = mb, .nb = nb, .grid_rows = grid_rows, .grid_cols = grid_cols, .ld = 1};
    if (m < 0 || n < 0 || mb < 1 || nb < 1 || grid_rows < 1 || grid_cols < 1)
        return;                            /* whoever uses it says what is wrong */
    int64_t most = rung_matrix_rows(x, 0); /* the source holds the most */
    x->ld = most > 1 ? most : 1;
}

static rung_status refuse(const char *name, const char *field, int64_t value, const char *rule)
{
    return rung_fail(RUNG_INVALID_ARGUMENT, "descriptor of %s: %s is %" PRId64 ": %s", name, field, value, rule);
}

rung_status multi_matrix_check(const rung_matrix *x, const char *name, int ranks, int first_rank, int held)
{
    if (!x)
        return rung_fail(RUNG_INVALID_ARGUMENT, "descriptor of %s is NULL", name);
    if (x->m < 0 || x->n < 0)
        return refuse(name, x->m < 0 ? "m" : "n", x->m < 0 ? x->m : x->n, "it must not be negative");
    if (x->mb < 1 || x->nb < 1)
        return refuse(name, x->mb < 1 ? "mb" : "nb", x->mb < 1 ? x->mb : x->nb, "a block has at least 1");
    if (x->grid_rows < 1 || x->grid_cols < 1)
        return refuse(name, x->grid_rows < 1 ? "grid_rows" : "grid_cols",
                      x->grid_rows < 1 ? x->grid_rows : x->grid_cols, "it must be at least 1");
    if ((int64_t)x->grid_rows * x->grid_cols > ranks)
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "descriptor of %s: a grid of %d x %d needs %" PRId64 " ranks, there are %d", name,
                         x->grid_rows, x->grid_cols, (int64_t)x->grid_rows * x->grid_cols, ranks);
    if (x->row_source < 0 || x->row_source >= x->grid_rows)
        return refuse(name, "row_source", x->row_source, "it must be a row of the grid");
    if (x->col_source < 0 || x->col_source >= x->grid_cols)
        return refuse(name, "col_source", x->col_source, "it must be a column of the grid");
    for (int rank = first_rank; rank < first_rank + held; rank++) {
        int64_t rows = rung_matrix_rows(x, rank), bytes;
        if (x->ld < (rows > 1 ? rows : 1))
            return rung_fail(RUNG_INVALID_ARGUMENT,
                             "descriptor of %s: ld is %" PRId64 ": rank %d holds %" PRId64 " rows", name, x->ld, rank,
                             rows);
        if (__builtin_mul_overflow(x->ld, rung_matrix_cols(x, rank), &bytes) ||
            __builtin_mul_overflow(bytes, (int64_t)4, &bytes))
            return rung_fail(RUNG_INVALID_ARGUMENT, "descriptor of %s: rank %d's part spans more than 2^63 bytes", name,
                             rank);
    }
    return RUNG_SUCCESS;
}

rung_status multi_matrix_check_part(const rung_matrix *x, const char *name, int64_t i, int64_t j, int64_t rows,
                                    int64_t cols)
{
    if (i < 1 || j < 1 || i - 1 > x->m - rows || j - 1 > x->n - cols)
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "%" PRId64 " x %" PRId64 " elements of %s from (%" PRId64 ", %" PRId64
                         "), counted from 1, are not inside its %" PRId64 " x %" PRId64,
                         rows, cols, name, i, j, x->m, x->n);
    return RUNG_SUCCESS;
}
