/* Runs a product that is cut along k: pieces, each into a result of its own, which are then added in order. The shape
 * alone decides where k is cut, so that the number of threads changes no bit. */
#include "cpu/gemm_block.h"
#include "core/status.h"

#include <string.h>

typedef struct job {
    const rung_cpu_args *p;
    const gemm_plan *plan;
    float *parts; /* one m x n result a piece of k, or n x m where the plan is of the transposed product */
    int64_t part_k, part_count;
    int64_t columns, strips_along_n; /* of a strip of a piece, and how many there are */
    int64_t add_columns;
} job;

static void run_part(void *argument, int64_t task, float *workspace)
{
    const job *j = argument;
    rung_cpu_args part = j->plan->transposed ? transposed(j->p) : *j->p, whole = part;
    int64_t piece = task / j->strips_along_n, step = piece * j->part_k, column = task % j->strips_along_n * j->columns;
    part.n = min64(j->columns, whole.n - column);
    part.k = min64(j->part_k, whole.k - step);
    part.a = a_at(&whole, 0, step);
    part.b = b_at(&whole, step, column);
    part.c = j->parts + piece * whole.m * whole.n + column;
    part.ldc = whole.n;
    part.beta = 0.0f;
    part.bias_kind = RUNG_NO_BIAS;
    part.activation = RUNG_IDENTITY;
    rung_gemm_strip(&part, j->plan, workspace);
}

/* Adds the pieces of a run of C's columns where a column of C is a row of theirs: into the first piece, then turned. */
static void add_turned(const job *j, int64_t column, int64_t columns)
{
    const rung_cpu_args *p = j->p;
    float *first = j->parts + column * p->m;
    for (int64_t part = 1; part < j->part_count; part++)
        for (int64_t i = 0; i < columns * p->m; i++)
            first[i] += first[part * p->m * p->n + i];
    for (int64_t row = 0; row < p->m; row++) {
        float *c = p->c + row * p->ldc + column;
        for (int64_t i = 0; i < columns; i++)
            c[i] = p->beta == 0.0f ? first[i * p->m + row] : p->beta * c[i] + first[i * p->m + row];
    }
}

static void add_straight(const job *j, int64_t column, int64_t columns)
{
    const rung_cpu_args *p = j->p;
    for (int64_t row = 0; row < p->m; row++) {
        float *c = p->c + row * p->ldc + column;
        for (int64_t part = 0; part < j->part_count; part++) {
            const float *from = j->parts + (part * p->m + row) * p->n + column;
            if (part == 0 && p->beta == 0.0f)
                memcpy(c, from, (size_t)columns * sizeof *c);
            else if (part == 0 && p->beta != 1.0f)
                for (int64_t i = 0; i < columns; i++)
                    c[i] = p->beta * c[i] + from[i];
            else
                for (int64_t i = 0; i < columns; i++)
                    c[i] += from[i];
        }
    }
}

/* Adds the pieces of a run of C's columns, in order, so that the sum does not depend on who finished first. */
static void add_parts(void *argument, int64_t task, float *workspace)
{
    const job *j = argument;
    int64_t column = task * j->add_columns, columns = min64(j->add_columns, j->p->n - column);
    (void)workspace;
    if (j->plan->transposed)
        add_turned(j, column, columns);
    else
        add_straight(j, column, columns);
    rung_gemm_finish(j->p, 0, j->p->m, column, columns);
}

/* Computes pieces of k, each into a result of its own. More threads than pieces cut the columns of long rows too. */
rung_status rung_gemm_parts(const rung_cpu_args *p, const gemm_plan *plan, int threads)
{
    enum { PART_STRIP_LEAST = 448, ADD_LEAST = 256 };
    int64_t strips = plan->path == PATH_STREAM ? max64(1, min64(threads / plan->parts, p->n / PART_STRIP_LEAST)) : 1;
    job j = {.p = p, .plan = plan, .part_k = round_up(divide_up(p->k, plan->parts), 16)};
    int64_t n = plan->transposed ? p->m : p->n;
    j.columns = round_up(divide_up(n, strips), panel_columns(p->kernel));
    j.strips_along_n = divide_up(n, j.columns);
    j.part_count = divide_up(p->k, j.part_k);
    j.add_columns = max64(ADD_LEAST, divide_up(p->n, threads));
    /* The caller's slot holds the pieces behind its own workspace. */
    int64_t floats = rung_gemm_workspace(p, plan, p->n), extra = j.part_count * p->m * p->n;
    int64_t base = round_up(floats, 16);
    RUNG_TRY(rung_gemm_reserve(p, threads, floats, base + extra));
    j.parts = rung_pool_workspace(p->pool, 0) + base;
    rung_pool_run(p->pool, threads, j.part_count * j.strips_along_n, run_part, &j);
    rung_pool_run(p->pool, threads, divide_up(p->n, j.add_columns), add_parts, &j);
    return RUNG_SUCCESS;
}
