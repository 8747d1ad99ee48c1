/* Both operands packed: a slab of B at a time, k steps of columns that all threads share, against blocks of rows of A
 * that each thread packs for itself. Which thread takes which block changes no bit. */
#include "cpu/paths/paths.h"

enum { CHUNK_BYTES = 256 << 10 }; /* of B, packed at a time: more leaves too little of L2 for what is asked ahead */

/* Chooses blocks with both operands packed. Each pass over C costs page walks where its rows lie far apart, so k is cut
 * as seldom as L2 allows: a panel of B takes a fifth of it, a block of A a quarter, the slab of B a share of L3, and a
 * larger one where L3 is far, for which A is packed again. Few rows pass over C in little time, so their blocks are
 * small. */
void rung_packed_blocks(const rung_cpu_args *p, gemm_plan *plan)
{
    int64_t panel = panel_columns(p->kernel);
    int64_t deepest = panel > 32 ? 1024 : 512; /* narrow panels gain nothing, and long sums err more */
    int few = p->m <= 2 * FEW && !p->in_order && plan->path != PATH_LONG_K;
    int64_t kc = few ? 256 : max64(min64(p->cpu->l2_bytes / 5 / (4 * panel), deepest), 256);
    plan->kc = even_block(p->k, kc, 8);
    plan->mc = max64(p->cpu->l2_bytes / 4 / (4 * plan->kc) / p->kernel->mr, 1) * p->kernel->mr;
    int64_t slab = p->cpu->far_l3 ? p->cpu->l3_bytes / 2 : min64(p->cpu->l3_bytes / 4, 4 << 20);
    plan->nc = max64(slab / (4 * plan->kc) / panel, 1) * panel;
    plan->chunk = CHUNK_BYTES / (4 * plan->kc);
    if (p->m <= 2 * FEW)
        plan->split_m = 0;
    plan->mc = even_block(p->m, plan->mc, p->kernel->mr);
    plan->nc = even_block(p->n, plan->nc, panel);
}

void rung_plan_packed(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->path = PATH_PACKED;
    plan->last = p->in_order ? 0 : p->trans_a ? rung_last_beside_packed(p) : rung_last_columns(p);
    rung_packed_blocks(p, plan);
}

static int is_in_order(const rung_cpu_args *p)
{
    return p->in_order;
}

/* Returns true where so few steps are packed all the same: with a transposed A each tile in place takes half a line a
 * step, and C is as large as L2, so that its lines come while packed tiles sum. */
static int packs_few_steps(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 27, L2_PARTS_LEAST = 4, L2_HALVES_MOST = 5, LINES_LEAST = 216 };
    return p->kernel->runs_fetch && p->cpu->far_l3 && p->trans_a && p->k >= STEPS_LEAST && p->k <= OUTER_STEPS &&
           c_bytes(p) * L2_PARTS_LEAST >= p->cpu->l2_bytes && c_bytes(p) * 2 <= p->cpu->l2_bytes * L2_HALVES_MOST &&
           min64(p->m, p->n) >= LINES_LEAST;
}

/* Returns true where wide tiles in place would wait for lines longer than packing both operands takes: for a B whose
 * vectors lie across two lines, and for a transposed A of many rows, of which a tile takes half a line each step. What
 * packing takes grows with the columns and rows of C, and what it saves with their product: the numbers are how many
 * elements of C must share a packed column, a packed row (fewer, where each group of columns would read a large A
 * again), and the steps that packing takes whatever k is. Few columns of a transposed A are better turned. Where L3 is
 * near this was not measured. */
static int pays_for_packing(const rung_cpu_args *p)
{
    enum { COLUMN = 75, COLUMN_OF_WHOLE_LINES = 200, ROW = 145, STEPS = 60 };
    enum { ROW_OF_TRANSPOSED = 50, ROW_OF_LARGE_TRANSPOSED = 35, ROW_OF_BOTH_TRANSPOSED = 80, L2_PARTS = 8 };
    enum { COLUMNS_TO_TURN = 128, STEPS_TO_TURN = 200, COLUMNS_OF_FEW_STEPS = 72 };
    int is_whole = !p->trans_b && b_has_whole_vectors(p);
    if (packs_few_steps(p))
        return 1;
    int is_better_turned =
        p->k >= STEPS_TO_TURN ? p->n <= COLUMNS_TO_TURN : p->n <= COLUMNS_OF_FEW_STEPS && is_cheaper_transposed(p);
    if (!p->cpu->far_l3 || has_narrow_tiles(p) || p->k <= OUTER_STEPS || (!p->trans_a && (p->trans_b || is_whole)) ||
        is_better_turned)
        return 0;
    int64_t columns = (is_whole ? COLUMN_OF_WHOLE_LINES : COLUMN) * p->n;
    int64_t row = a_bytes(p) * L2_PARTS > p->cpu->l2_bytes ? ROW_OF_LARGE_TRANSPOSED : ROW_OF_TRANSPOSED;
    int64_t rows = (!p->trans_a ? ROW : p->trans_b ? ROW_OF_BOTH_TRANSPOSED : row) * p->m;
    return (double)(p->m * p->n) * (double)p->k >= (double)(columns + rows) * (double)(p->k + STEPS);
}

/* What no other question has taken is large. */
static int is_large(const rung_cpu_args *p)
{
    (void)p;
    return 1;
}

const gemm_rule rung_rule_in_order = {"is_in_order", is_in_order, rung_plan_packed};
const gemm_rule rung_rule_packing_pays = {"pays_for_packing", pays_for_packing, rung_plan_packed};
const gemm_rule rung_rule_large = {"is_large", is_large, rung_plan_packed};

static int64_t packed_a_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(plan->mc, round_up(p->m, p->kernel->mr)) * min64(plan->kc, p->k) + RUNG_PACK_SLACK, 16);
}

/* Returns the floats that a thread needs: a block of A, and what last columns take. */
static int64_t slot_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    return packed_a_floats(p, plan) + rung_last_floats(p, plan->last);
}

int64_t rung_packed_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    int64_t slab = min64(plan->kc, p->k) * min64(plan->nc, round_up(columns, panel_columns(p->kernel)));
    return slot_floats(p, plan) + slab + 2 * RUNG_PACK_SLACK;
}

typedef struct packed_job {
    const rung_cpu_args *p;
    const gemm_plan *plan;
    int64_t columns;            /* of C that tiles take: all but the last ones */
    int64_t column, step, n, k; /* the slab of B: columns from, k steps from, and how many */
    grouping by;
    float *packed_b;
    int64_t pack_tasks, row_blocks;
    int64_t chunk_groups; /* one thread: groups of columns of B that are packed at a time, at most */
} packed_job;

/* Returns where task t's share of `count` items begins. */
static int64_t share(int64_t count, int64_t tasks, int64_t t)
{
    return count * t / tasks;
}

/* Returns the first row of a block. */
static int64_t block_row(const packed_job *j, int64_t number)
{
    int64_t mr = j->p->kernel->mr;
    return min64(share(divide_up(j->p->m, mr), j->row_blocks, number) * mr, j->p->m);
}

static void pack_a(const rung_cpu_args *p, int64_t row, int64_t rows, int64_t step, int64_t k, float *to)
{
    rung_pack_fn pack = p->trans_a ? p->kernel->pack_by_k : p->kernel->pack_by_row;
    pack(to, a_at(p, row, step), p->lda, rows, k, p->kernel->mr);
}

static void pack_task(void *argument, int64_t task, float *workspace)
{
    const packed_job *j = argument;
    (void)workspace;
    int64_t first = share(j->by.groups, j->pack_tasks, task), end = share(j->by.groups, j->pack_tasks, task + 1);
    rung_gemm_pack_b(j->p, j->step, j->column, j->k, j->n, &j->by, first, end - first,
                     j->packed_b + group_start(&j->by, first, j->p->kernel->vl) * j->k);
}

/* Multiplies a block of rows by groups of the slab's columns. packed_b: the first of them. */
static void multiply(const packed_job *j, int64_t number, int64_t first, int64_t count, const float *packed_a,
                     const float *packed_b, ahead *next)
{
    const rung_cpu_args *p = j->p;
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t row = block_row(j, number), rows = block_row(j, number + 1) - row;
    int64_t from = group_start(&j->by, first, kernel->vl);
    int64_t to = min64(group_start(&j->by, first + count, kernel->vl), j->n);
    block s = {.kernel = kernel,
               .tail = tail_family(p),
               .m = rows,
               .n = to - from,
               .k = j->k,
               .kind = RUNG_A_BY_K,
               .packed_a = 1,
               .a = packed_a,
               .b = packed_b,
               .packed_b = 1,
               .next = next,
               .most = j->plan->most,
               .c = p->c + row * p->ldc + j->column + from,
               .out = {.ldc = p->ldc}};
    set_beta(&s, p, j->step);
    rung_gemm_sweep_groups(&s, &j->by, first, count);
    if (j->step + j->k == p->k)
        rung_gemm_finish(p, row, rows, j->column + from, to - from);
}

/* Adds so many steps to the last columns of some rows. */
static void add_to_last(const packed_job *j, int64_t row, int64_t rows, int64_t steps, float *workspace)
{
    const int last = (int)(j->p->n - j->columns);
    rung_cpu_args part = *j->p;
    part.m = rows;
    part.a = a_at(j->p, row, 0);
    part.c += row * part.ldc;
    rung_run_last(&part, last, j->step, steps, 0, workspace + packed_a_floats(j->p, j->plan));
    if (j->step + steps == part.k)
        rung_gemm_finish(j->p, row, rows, j->columns, last);
}

/* Computes the last columns of a block of rows, beside the last slab, and soon after its A was packed. */
static void multiply_last(const packed_job *j, int64_t number, float *workspace)
{
    int64_t row = block_row(j, number);
    if (j->columns < j->p->n && j->column + j->n == j->columns)
        add_to_last(j, row, block_row(j, number + 1) - row, j->k, workspace);
}

/* Multiplies a block of rows by the slab. */
static void multiply_task(void *argument, int64_t task, float *workspace)
{
    const packed_job *j = argument;
    int64_t row = block_row(j, task);
    pack_a(j->p, row, block_row(j, task + 1) - row, j->step, j->k, workspace);
    multiply_last(j, task, workspace);
    multiply(j, task, 0, j->by.groups, workspace, j->packed_b, NULL);
}

/* Chooses tasks: enough to even out a thread that is held up, none narrower than a few tiles, and as many for each
 * thread as for the others. Rows that are worth sharing (gemm.c) are enough for that. */
static void cut(packed_job *j, int threads)
{
    enum { TASKS_A_THREAD = 4, PANELS_LEAST = 6 };
    const int64_t tasks = (int64_t)threads * TASKS_A_THREAD;
    j->row_blocks = divide_up(j->p->m, j->plan->mc);
    j->pack_tasks = min64(j->by.groups, tasks);
    if (threads > 1) {
        const int64_t most = divide_up(j->p->m, j->p->kernel->mr) / PANELS_LEAST;
        j->row_blocks = round_up(max64(j->row_blocks, min64(most, tasks) - threads + 1), threads);
    }
}

/* Returns the floats of a run that is asked for: one that begins in a line ends in one more. */
static int64_t asked_floats(int64_t floats, int64_t ld)
{
    return min64(floats + LINE_FLOATS - 1, ld);
}

static void ahead_a(ahead *next, const packed_job *j, int64_t number, int64_t step, int64_t k)
{
    const rung_cpu_args *p = j->p;
    int64_t row = block_row(j, number), rows = block_row(j, number + 1) - row;
    if (p->trans_a)
        add_ahead(next, a_at(p, row, step), k, asked_floats(rows, p->lda), p->lda);
    else
        add_ahead(next, a_at(p, row, step), rows, k, p->lda);
}

static void ahead_b(ahead *next, const rung_cpu_args *p, int64_t step, int64_t k, int64_t column, int64_t n)
{
    if (p->trans_b)
        add_ahead(next, b_at(p, step, column), n, k, p->ldb);
    else
        add_ahead(next, b_at(p, step, column), k, asked_floats(n, p->ldb), p->ldb);
}

/* Returns the columns of so many groups, the first ones. */
static int64_t columns_of(const packed_job *j, int64_t groups)
{
    return min64(group_start(&j->by, groups, j->p->kernel->vl), j->n);
}

/* Finds what is packed next, when the groups up to `end` have met a block of rows in so many tiles, and the next chunk
 * has `count` groups. The tiles ask for it late, so that it is still in L2 when its turn comes. */
static ahead find_ahead(const packed_job *j, int64_t number, int64_t end, int64_t count, int64_t tiles)
{
    const rung_cpu_args *p = j->p;
    ahead next = {0};
    int64_t step = j->step + j->k, from = j->column;
    if (step >= p->k) {
        step = 0;
        from += j->n;
    }
    int64_t k = min64(j->plan->kc, p->k - step), chunks = max64(j->k / RUNG_FETCH_STEPS, 1), needed = 0;
    if (number == 0 && count > 0)
        ahead_b(&next, p, j->step, j->k, j->column + columns_of(j, end),
                columns_of(j, end + count) - columns_of(j, end));
    else if (number + 1 < j->row_blocks)
        ahead_a(&next, j, number + 1, j->step, j->k);
    else if (from < j->columns) {
        ahead_a(&next, j, 0, step, k);
        ahead_b(&next, p, step, k, from, min64(columns_of(j, j->chunk_groups), j->columns - from));
    }
    for (int i = 0; i < next.count; i++)
        needed += divide_up(next.of[i].chunks, chunks);
    /* An eighth early, and two tiles: the last lines are on their way then. */
    next.wait = max64(0, tiles - needed * 9 / 8 - 2);
    return next;
}

/* Returns how many groups are packed at once after `done` of them. Nobody has asked for the first ones of a call, so it
 * is one; each later chunk is about as large as the tiles of the one before can ask for, half a line a step each. */
static int64_t next_chunk(const packed_job *j, int64_t done, int64_t before, int64_t rows)
{
    enum { GROWTH_LEAST = 2 };
    const rung_cpu_kernel *kernel = j->p->kernel;
    int64_t most = min64(j->chunk_groups, j->by.groups - done);
    if (done == 0)
        return j->step == 0 && j->column == 0 ? 1 : most;
    int64_t lines = divide_up(panel_columns(kernel), LINE_FLOATS); /* of a group in a step */
    return min64(before * max64(rows / (2 * kernel->mr * lines), GROWTH_LEAST), most);
}

/* Runs a slab on one thread. B is packed a chunk of groups at a time, just before the first block of rows meets it, so
 * that chunk is in L2 then. The blocks that follow find the slab whole; where there are none, a chunk takes the place
 * of the one before. */
static void run_slab(const packed_job *j, float *packed_a)
{
    int vl = j->p->kernel->vl;
    for (int64_t number = 0; number < j->row_blocks; number++) {
        int64_t row = block_row(j, number), rows = block_row(j, number + 1) - row;
        int64_t count = number == 0 ? next_chunk(j, 0, 0, rows) : j->by.groups, after = 0;
        pack_a(j->p, row, rows, j->step, j->k, packed_a);
        multiply_last(j, number, packed_a);
        for (int64_t first = 0; first < j->by.groups; first += count, count = after) {
            float *packed_b = j->packed_b + (j->row_blocks > 1 ? group_start(&j->by, first, vl) * j->k : 0);
            if (number == 0) {
                rung_gemm_pack_b(j->p, j->step, j->column, j->k, j->n, &j->by, first, count, packed_b);
                after = next_chunk(j, first + count, count, rows);
            }
            ahead next = find_ahead(j, number, first + count, after, rows / j->p->kernel->mr * count);
            multiply(j, number, first, count, packed_a, packed_b, &next);
        }
    }
}

/* Runs the product on `threads` threads of the pool, or on the calling one. packed_b holds one slab of B; workspace,
 * and each thread's slot, a block of A. */
static void run_packed(const rung_cpu_args *p, const gemm_plan *plan, float *packed_b, int threads, float *workspace)
{
    packed_job j = {.p = p, .plan = plan, .columns = p->n - last_of_strip(p, plan), .packed_b = packed_b};
    for (j.column = 0; j.column < j.columns; j.column += plan->nc) {
        j.n = min64(plan->nc, j.columns - j.column);
        j.by = group_columns(p->m, j.n, p->kernel, tail_family(p), plan->most);
        cut(&j, threads);
        j.chunk_groups = max64(1, plan->chunk / (group_vectors(&j.by, 0) * p->kernel->vl));
        for (j.step = 0; j.step < p->k; j.step += plan->kc) {
            j.k = min64(plan->kc, p->k - j.step);
            if (threads > 1) {
                rung_pool_run(p->pool, threads, j.pack_tasks, pack_task, &j);
                rung_pool_run(p->pool, threads, j.row_blocks, multiply_task, &j);
                continue;
            }
            run_slab(&j, workspace);
        }
    }
    if (j.columns == 0) /* a strip of the last columns alone, which adds up as the others do */
        for (j.step = 0; j.step < p->k; j.step += plan->kc)
            add_to_last(&j, 0, p->m, min64(plan->kc, p->k - j.step), workspace);
}

void rung_packed_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    run_packed(p, plan, workspace + slot_floats(p, plan), 1, workspace);
}

rung_status rung_packed_share(const rung_cpu_args *p, const gemm_plan *plan, int threads)
{
    int64_t slot = slot_floats(p, plan);
    RUNG_TRY(rung_gemm_reserve(p, threads, slot, rung_packed_floats(p, plan, p->n)));
    float *workspace = rung_pool_workspace(p->pool, 0);
    run_packed(p, plan, workspace + slot, threads, workspace);
    return RUNG_SUCCESS;
}
