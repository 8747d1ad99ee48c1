/* Copies sub-matrices from one distribution to another, and to and from one rank's whole matrix in host memory. */
#include "multi/mover.h"

#include <string.h>

/* One end of a copy: a distribution, or a whole matrix in rank root's host memory. */
typedef struct end {
    const rung_matrix *desc; /* NULL: the matrix is whole */
    const float *const *local;
    const float *whole;
    int root;
    int64_t ld, i, j; /* i, j count from 0 */
} end;

static multi_axis rows_of(const end *x, int64_t m)
{
    return x->desc ? multi_rows(x->desc) : multi_whole(m);
}

static multi_axis cols_of(const end *x, int64_t n)
{
    return x->desc ? multi_cols(x->desc) : multi_whole(n);
}

static int rank_of(const end *x, int row, int col)
{
    return x->desc ? row * x->desc->grid_cols + col : x->root;
}

/* Returns where the part is, if this process holds it. */
static const float *address(const rung_multi *multi, const end *x, int rank, int64_t row, int64_t col)
{
    if (!multi_holds(multi, rank))
        return NULL;
    return x->desc ? x->local[rank - multi->first_rank] + row + col * x->desc->ld : x->whole + row + col * x->ld;
}

/* Adds everything that one part of the target's rows and one of its columns share. */
static rung_status add_part(rung_multi *multi, multi_mover *mover, const end *from, const end *to, int to_rank,
                            int64_t row0, const multi_runs *rows, int64_t col0, const multi_runs *cols)
{
    for (int j = 0; j < cols->count; j++)
        for (int i = 0; i < rows->count; i++) {
            const multi_run *r = &rows->list[i], *c = &cols->list[j];
            int from_rank = rank_of(from, r->part, c->part);
            multi_copy copy = {.from = address(multi, from, from_rank, r->local, c->local),
                               .from_ld = from->desc ? from->desc->ld : from->ld,
                               .to = (float *)(uintptr_t)address(multi, to, to_rank, row0 + r->at, col0 + c->at),
                               .to_ld = to->desc ? to->desc->ld : to->ld,
                               .length = r->count,
                               .lines = c->count,
                               .from_host = !from->desc,
                               .to_host = !to->desc};
            RUNG_TRY(multi_mover_add(multi, mover, from_rank, to_rank, &copy));
        }
    return RUNG_SUCCESS;
}

static rung_status add_all(rung_multi *multi, multi_mover *mover, int64_t m, int64_t n, const end *from, const end *to,
                           multi_runs *rows, multi_runs *cols)
{
    multi_axis to_rows = rows_of(to, m), to_cols = cols_of(to, n), from_rows = rows_of(from, m),
               from_cols = cols_of(from, n);
    for (int pr = 0; pr < to_rows.parts; pr++) {
        int64_t row0 = multi_axis_count(&to_rows, pr, to->i), row_end = multi_axis_count(&to_rows, pr, to->i + m);
        RUNG_TRY(multi_runs_find(rows, &to_rows, pr, row0, row_end - row0, to->i, &from_rows, from->i));
        for (int pc = 0; pc < to_cols.parts; pc++) {
            int64_t col0 = multi_axis_count(&to_cols, pc, to->j), col_end = multi_axis_count(&to_cols, pc, to->j + n);
            RUNG_TRY(multi_runs_find(cols, &to_cols, pc, col0, col_end - col0, to->j, &from_cols, from->j));
            RUNG_TRY(add_part(multi, mover, from, to, rank_of(to, pr, pc), row0, rows, col0, cols));
        }
    }
    return RUNG_SUCCESS;
}

static rung_status move(rung_multi *multi, int64_t m, int64_t n, const end *from, const end *to, const char *what)
{
    multi_mover mover = {0};
    multi_runs rows = {0}, cols = {0};
    rung_status status = RUNG_SUCCESS;
    for (int i = 0; i < multi->held; i++) {
        RUNG_TRY_OUT(multi->engines[i].ops->begin(&multi->engines[i]));
        multi->engines[i].label = (multi_label){what, 0, 0};
    }
    RUNG_TRY_OUT(add_all(multi, &mover, m, n, from, to, &rows, &cols));
    RUNG_TRY_OUT(multi_mover_begin(multi, &mover, multi->next_tag++));
    RUNG_TRY_OUT(multi_mover_finish(multi, &mover, what));
    status = multi_finish(multi);
out:
    multi_runs_free(&rows);
    multi_runs_free(&cols);
    if (status != RUNG_SUCCESS && multi->transport)
        status = multi_break(multi, status);
    if (status != RUNG_SUCCESS)
        status = multi_drain(multi, status);
    multi_mover_free(multi, &mover);
    return status;
}

static rung_status check_local(const rung_multi *multi, const rung_matrix *desc, const float *const *local,
                               const char *name)
{
    for (int h = 0; h < multi->held; h++) {
        int rank = multi->first_rank + h;
        if (rung_matrix_rows(desc, rank) * rung_matrix_cols(desc, rank) > 0 && (!local || !local[h]))
            return rung_fail(RUNG_INVALID_ARGUMENT, "rank %d's part of %s is NULL", rank, name);
    }
    return RUNG_SUCCESS;
}

/* Checks one end, whose sub-matrix begins at (i, j), counted from 1. */
static rung_status check_end(const rung_multi *multi, end *x, const char *name, int64_t i, int64_t j, int64_t m,
                             int64_t n)
{
    RUNG_TRY(multi_matrix_check(x->desc, name, multi->ranks, multi->first_rank, multi->held));
    RUNG_TRY(multi_matrix_check_part(x->desc, name, i, j, m, n));
    x->i = i - 1;
    x->j = j - 1;
    return check_local(multi, x->desc, x->local, name);
}

rung_status rung_redistribute(rung_multi *multi, int64_t m, int64_t n, const float *const *a, int64_t ia, int64_t ja,
                              const rung_matrix *desc_a, float *const *b, int64_t ib, int64_t jb,
                              const rung_matrix *desc_b)
{
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    end from = {.desc = desc_a, .local = a}, to = {.desc = desc_b, .local = (const float *const *)b};
    rung_status status = RUNG_SUCCESS;
    if (m < 0 || n < 0)
        status = rung_fail(RUNG_INVALID_ARGUMENT, "m and n are %lld and %lld: they must not be negative", (long long)m,
                           (long long)n);
    if (status == RUNG_SUCCESS)
        status = check_end(multi, &from, "A", ia, ja, m, n);
    if (status == RUNG_SUCCESS)
        status = check_end(multi, &to, "B", ib, jb, m, n);
    const char *const where[] = {"m", "n", "ia", "ja", "ib", "jb"};
    const int64_t values[] = {m, n, ia, ja, ib, jb};
    multi_record record = {.count = 0};
    for (int i = 0; i < 6; i++)
        multi_record_add(&record, where[i], values[i]);
    multi_record_matrix(&record, 'a', desc_a);
    multi_record_matrix(&record, 'b', desc_b);
    RUNG_TRY(multi_agree(multi, &record, status, "rung_redistribute"));
    return move(multi, m, n, &from, &to, "rung_redistribute");
}

/* Does scatter and gather, which are the same but for who is read and who is written. */
static rung_status whole(rung_multi *multi, int root, const float *memory, int64_t ld, const float *const *local,
                         const rung_matrix *desc, int scatters)
{
    static const char *const calls[] = {"rung_gather", "rung_scatter"};
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    end distributed = {.desc = desc, .local = local}, one = {.whole = memory, .root = root, .ld = ld};
    rung_status status = multi_matrix_check(desc, "A", multi->ranks, multi->first_rank, multi->held);
    if (status == RUNG_SUCCESS)
        status = check_local(multi, desc, local, "A");
    if (status == RUNG_SUCCESS && (root < 0 || root >= multi->ranks))
        status = rung_fail(RUNG_INVALID_ARGUMENT, "root is %d: ranks go from 0 to %d", root, multi->ranks - 1);
    if (status == RUNG_SUCCESS && multi_holds(multi, root)) {
        if (!memory && desc->m > 0 && desc->n > 0)
            status = rung_fail(RUNG_INVALID_ARGUMENT, "whole is NULL on the root, rank %d", root);
        else if (ld < (desc->m > 1 ? desc->m : 1))
            status = rung_fail(RUNG_INVALID_ARGUMENT, "ld is %lld: the whole matrix has %lld rows", (long long)ld,
                               (long long)desc->m);
    }
    multi_record record = {.count = 0};
    multi_record_add(&record, "root", root);
    multi_record_matrix(&record, 'a', desc);
    RUNG_TRY(multi_agree(multi, &record, status, calls[scatters]));
    return move(multi, desc->m, desc->n, scatters ? &one : &distributed, scatters ? &distributed : &one,
                calls[scatters]);
}

rung_status rung_scatter(rung_multi *multi, int root, const float *memory, int64_t ld, float *const *a,
                         const rung_matrix *desc_a)
{
    return whole(multi, root, memory, ld, (const float *const *)a, desc_a, 1);
}

rung_status rung_gather(rung_multi *multi, int root, const float *const *a, const rung_matrix *desc_a, float *memory,
                        int64_t ld)
{
    return whole(multi, root, memory, ld, a, desc_a, 0);
}
