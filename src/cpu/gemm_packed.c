/* Both operands packed: a slab of B at a time, k steps of columns that all threads share, against blocks of rows of A
 * that each thread packs for itself. Which thread takes which block changes no bit. */
#include "cpu/gemm_block.h"

typedef struct packed_job {
    const rung_cpu_args *p;
    const gemm_plan *plan;
    int64_t column, step, n, k; /* the slab of B: columns from, k steps from, and how many */
    grouping by;
    float *packed_b;
    int64_t pack_tasks, row_blocks, column_chunks;
} packed_job;

/* Returns where task t's share of `count` items begins. */
static int64_t share(int64_t count, int64_t tasks, int64_t t)
{
    return count * t / tasks;
}

static void pack_task(void *argument, int64_t task, float *workspace)
{
    const packed_job *j = argument;
    (void)workspace;
    int64_t first = share(j->by.groups, j->pack_tasks, task), end = share(j->by.groups, j->pack_tasks, task + 1);
    rung_gemm_pack_b(j->p, j->step, j->column, j->k, j->n, &j->by, first, end - first, j->packed_b);
}

/* Multiplies a block of rows by a chunk of the slab's columns. */
static void multiply_task(void *argument, int64_t task, float *workspace)
{
    const packed_job *j = argument;
    const rung_cpu_args *p = j->p;
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t panels = divide_up(p->m, kernel->mr), rows_at = task / j->column_chunks, chunk = task % j->column_chunks;
    int64_t row = share(panels, j->row_blocks, rows_at) * kernel->mr;
    int64_t rows = min64(share(panels, j->row_blocks, rows_at + 1) * kernel->mr, p->m) - row;
    int64_t first = share(j->by.groups, j->column_chunks, chunk),
            end = share(j->by.groups, j->column_chunks, chunk + 1);
    int64_t from = group_start(&j->by, first, kernel->vl), to = min64(group_start(&j->by, end, kernel->vl), j->n);
    block s = {.kernel = kernel,
               .m = rows,
               .n = to - from,
               .k = j->k,
               .kind = RUNG_A_BY_K,
               .packed_a = 1,
               .a = workspace,
               .b = j->packed_b + from * j->k,
               .packed_b = 1,
               .most = j->plan->most,
               .c = p->c + row * p->ldc + j->column + from,
               .out = {.ldc = p->ldc}};
    set_beta(&s, p, j->step);
    (p->trans_a ? kernel->pack_by_k : kernel->pack_by_row)(workspace, a_at(p, row, j->step), p->lda, rows, j->k,
                                                           kernel->mr);
    rung_gemm_sweep_groups(&s, &j->by, first, end - first);
    if (j->step + j->k == p->k)
        rung_gemm_finish(p, row, rows, j->column + from, to - from);
}

/* Chooses tasks: enough to even out a thread that is held up, none narrower than a few tiles. */
static void cut(packed_job *j, int threads)
{
    enum { TASKS_A_THREAD = 4, PANELS_LEAST = 6 };
    int64_t panels = divide_up(j->p->m, j->p->kernel->mr), tasks = threads > 1 ? (int64_t)threads * TASKS_A_THREAD : 1;
    int64_t most = panels / PANELS_LEAST;
    j->row_blocks = divide_up(j->p->m, j->plan->mc);
    if (most >= threads && threads > 1)
        j->row_blocks = round_up(max64(j->row_blocks, min64(most, tasks) - threads + 1), threads);
    j->column_chunks = min64(j->by.groups, j->row_blocks < threads ? divide_up(tasks, j->row_blocks) : 1);
    j->pack_tasks = min64(j->by.groups, tasks);
}

/* Fetches the steps of k that come next of a few long rows, one row after the other: rows far apart in memory are slow
 * to read in turns. */
static void fetch_steps(const float *rows, int64_t ld, int64_t count, int64_t k)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t p = 0; p < k; p += 16)
            __builtin_prefetch(rows + i * ld + p, 0, 2);
}

static void fetch_next(const packed_job *j)
{
    const rung_cpu_args *p = j->p;
    int64_t next = j->step + j->k, steps = min64(j->plan->kc, p->k - next);
    if (j->plan->path != PATH_LONG_K || steps <= 0)
        return;
    if (!p->trans_a)
        fetch_steps(a_at(p, 0, next), p->lda, p->m, steps);
    if (p->trans_b)
        fetch_steps(b_at(p, next, 0), p->ldb, p->n, steps);
}

int64_t rung_gemm_packed_a_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(plan->mc, round_up(p->m, p->kernel->mr)) * min64(plan->kc, p->k) + RUNG_PACK_SLACK, 16);
}

void rung_gemm_packed(const rung_cpu_args *p, const gemm_plan *plan, float *packed_b, rung_pool *pool, int threads,
                      float *workspace)
{
    packed_job j = {.p = p, .plan = plan, .packed_b = packed_b};
    for (j.column = 0; j.column < p->n; j.column += plan->nc) {
        j.n = min64(plan->nc, p->n - j.column);
        j.by = group_columns(j.n, p->kernel->vl_bits, plan->most);
        cut(&j, threads);
        for (j.step = 0; j.step < p->k; j.step += plan->kc) {
            j.k = min64(plan->kc, p->k - j.step);
            if (threads > 1) {
                rung_pool_run(pool, threads, j.pack_tasks, pack_task, &j);
                rung_pool_run(pool, threads, j.row_blocks * j.column_chunks, multiply_task, &j);
                continue;
            }
            pack_task(&j, 0, workspace);
            fetch_next(&j);
            for (int64_t task = 0; task < j.row_blocks; task++)
                multiply_task(&j, task, workspace);
        }
    }
}
