/* Block-cyclic distribution, one dimension at a time: it says who owns an index, where, and in which runs the indices
 * of one distribution lie in another's. Indices count from 0 here. */
#ifndef RUNG_MULTI_LAYOUT_H
#define RUNG_MULTI_LAYOUT_H

#include "core/divide.h"
#include "core/status.h"
#include "rung_multi.h"

typedef struct multi_axis {
    int64_t n, block;
    int parts, source;
} multi_axis;

multi_axis multi_rows(const rung_matrix *matrix);
multi_axis multi_cols(const rung_matrix *matrix);
/* Returns a dimension that lies whole in one place. */
multi_axis multi_whole(int64_t n);

int multi_axis_owner(const multi_axis *x, int64_t index);
int64_t multi_axis_local(const multi_axis *x, int64_t index); /* its local index on its owner */
int64_t multi_axis_global(const multi_axis *x, int part, int64_t local);
/* Returns how many indices below `end` the part owns: also the local index where the first one at or after `end` lies.
 */
int64_t multi_axis_count(const multi_axis *x, int part, int64_t end);

/* A run: `count` elements from `at` on, in the order wanted, lie on `part` from its local index `local` on. */
typedef struct multi_run {
    int64_t at, count;
    int part;
    int64_t local;
} multi_run;

typedef struct multi_runs {
    multi_run *list;
    int count, capacity;
} multi_runs;

/* Finds the runs of part `part`'s local indices [first, first + count) of axis `to`. The element with index `to_origin`
 * there is the one with index `from_origin` of axis `from`. The runs say where they lie in `from`; `at` counts from
 * `first`. */
rung_status multi_runs_find(multi_runs *runs, const multi_axis *to, int part, int64_t first, int64_t count,
                            int64_t to_origin, const multi_axis *from, int64_t from_origin);
void multi_runs_free(multi_runs *runs);

/* Returns a rank's place in a matrix's grid; -1 for ranks beyond the grid. */
int multi_grid_row(const rung_matrix *matrix, int rank);
int multi_grid_col(const rung_matrix *matrix, int rank);

/* Checks everything about the descriptor itself; `name` is "A", "B" or "C". */
rung_status multi_matrix_check(const rung_matrix *matrix, const char *name, int ranks, int first_rank, int held);
/* Checks that rows x cols from (i, j), counted from 1, lie inside. */
rung_status multi_matrix_check_part(const rung_matrix *matrix, const char *name, int64_t i, int64_t j, int64_t rows,
                                    int64_t cols);

#endif
