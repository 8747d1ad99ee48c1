/* B streams past C: few rows of A beside a B from L3 or memory, which is read once, in long runs, while sums of some
 * columns stay in L2. */
#include "cpu/paths/paths.h"

#include <string.h>

enum {
    STREAM_ROWS_APART = 16,       /* rows, at most, where B's rows collide */
    STREAM_ROWS_OF_FOUR = 22,     /* the same where units are four floats wide */
    STREAM_PARTS_COLUMNS = 16384, /* at most: beyond, columns are enough to share out */
};

/* Returns the most rows past which B streams. Where B's rows lie multiples of a page apart, the lines of narrow vectors
 * push each other out of L1 before they are used up, unless L3 is far. */
static int64_t stream_rows(const rung_cpu_args *p)
{
    int64_t most = p->cpu->units_of_four ? STREAM_ROWS_OF_FOUR : STREAM_ROWS;
    int collides = !p->cpu->far_l3 && p->ldb % PAGE_FLOATS == 0 && p->kernel->vl < LINE_FLOATS;
    return collides ? STREAM_ROWS_APART : most;
}

static int is_few_rows(const rung_cpu_args *p)
{
    return !p->trans_b && p->m <= stream_rows(p);
}

/* Returns how many columns of C stay in a quarter of L2 while B streams. */
int64_t rung_stream_columns(int64_t rows, int64_t panel, const rung_processor *cpu)
{
    return max64(cpu->l2_bytes / 4 / (4 * rows) / panel, 8) * panel;
}

static void plan_stream(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->path = PATH_STREAM;
    plan->split_m = 0;
    plan->nc = rung_stream_columns(p->m, panel_columns(p->kernel), p->cpu);
    if (p->n <= STREAM_PARTS_COLUMNS)
        plan->parts = pieces_of_few_columns(p->k);
}

const gemm_rule rung_rule_few_rows = {"is_few_rows", is_few_rows, plan_stream};

/* Of A: packed a few at a time they would take a fifth of the time of a narrow B. A multiple of what is read at a time.
 */
enum { PACKED_STEPS = 256 };

/* Returns the floats of the packed steps of A. */
static int64_t packed_a_floats(const rung_cpu_args *p)
{
    int64_t rows = p->kernel->stream_rows; /* a multiple of what pack_by_row needs */
    return round_up(p->m, rows) * PACKED_STEPS + 2 * RUNG_PACK_SLACK;
}

/* Returns the length of a row of sums: a line more than its columns, so that rows begin in different cache sets. */
static int64_t sums_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(plan->nc, p->n), LINE_FLOATS) + LINE_FLOATS;
}

int64_t rung_stream_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)columns;
    return packed_a_floats(p) + p->m * sums_ld(p, plan) + 2 * RUNG_PACK_SLACK;
}

/* Returns the number of passes over m rows, which are as even as they can be. */
static int64_t pass_count(const rung_cpu_args *p)
{
    return divide_up(p->m, p->kernel->stream_rows);
}

static int64_t pass_start(const rung_cpu_args *p, int64_t pass)
{
    int64_t passes = pass_count(p);
    return p->m / passes * pass + min64(pass, p->m % passes);
}

/* Packs some steps of A, at most PACKED_STEPS, a panel a pass. */
static void pack_passes(const rung_cpu_args *p, int64_t step, int64_t steps, float *packed_a)
{
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t slot = (int64_t)kernel->stream_rows * PACKED_STEPS;
    for (int64_t pass = 0; pass < pass_count(p); pass++) {
        int64_t row = pass_start(p, pass), rows = pass_start(p, pass + 1) - row;
        (p->trans_a ? kernel->pack_by_k : kernel->pack_by_row)(packed_a + pass * slot, a_at(p, row, step), p->lda, rows,
                                                               steps, rung_stream_panel((int)rows, kernel->vl));
    }
}

/* Returns how many of so many rows of B passes before this one have asked for: where they are the next rows all passes
 * share them, for asked for at once they would wait for each other, else the first pass asks for all. */
static int64_t asked_before(const rung_cpu_args *p, int64_t steps, int64_t pass)
{
    return p->cpu->asks_next_rows ? steps * pass / pass_count(p) : pass ? steps : 0;
}

/* Adds some steps of k, at most RUNG_STREAM_STEPS, to a block of sums: those from `from` on of the packed ones. Each
 * pass takes its rows along some columns of B, which stay in L1 for the next pass. */
static void stream_steps(const rung_cpu_args *p, int64_t from, int64_t steps, const float *b, int64_t columns,
                         const float *packed_a, float *sums, int64_t ld, int64_t ask_at)
{
    enum { COLUMNS_IN_L1 = 384 };
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t passes = pass_count(p), slot = (int64_t)kernel->stream_rows * PACKED_STEPS;
    int64_t chunk = passes == 1 ? columns : COLUMNS_IN_L1, ask_steps = ask_at ? steps : 0;
    for (int64_t j = 0; j < columns; j += chunk)
        for (int64_t pass = 0; pass < passes; pass++) {
            int64_t row = pass_start(p, pass), rows = pass_start(p, pass + 1) - row;
            int64_t first = asked_before(p, ask_steps, pass), end = asked_before(p, ask_steps, pass + 1);
            kernel->stream[rows - 1](steps, min64(chunk, columns - j),
                                     packed_a + pass * slot + from * rung_stream_panel((int)rows, kernel->vl), b + j,
                                     p->ldb, sums + row * ld + j, ld, b + j + ask_at + first * p->ldb, end - first);
        }
}

/* Adds a row of A times B to sums. Elements of A that lie apart are gathered, some at a time. */
static void stream_row(const rung_cpu_args *p, const rung_cpu_kernel *kernel, int64_t column, int64_t columns,
                       float *sums)
{
    enum { GATHERED = 512 };
    float gathered[GATHERED];
    int64_t step_of_a = p->trans_a ? p->lda : 1, most = step_of_a == 1 ? p->k : GATHERED;
    for (int64_t step = 0; step < p->k; step += most) {
        int64_t steps = min64(most, p->k - step);
        const float *a = a_at(p, 0, step);
        if (step_of_a != 1)
            a = gather(gathered, a, step_of_a, steps);
        kernel->stream_row(steps, columns, a, b_at(p, step, column), p->ldb, sums);
    }
}

/* Without a beta C itself holds the sums. Of narrow vectors fewer lie across two lines. */
void rung_stream_one_row(const rung_cpu_args *p, int64_t nc, float *workspace)
{
    enum { COLUMNS_OF_WIDE = 256 };
    int is_wide = p->cpu->wide_units && p->n >= COLUMNS_OF_WIDE;
    const rung_cpu_kernel *kernel = is_wide ? p->kernel : narrow_of(p->kernel);
    for (int64_t j = 0; j < p->n; j += nc) {
        int64_t columns = min64(nc, p->n - j);
        float *sums = p->beta == 0.0f ? p->c + j : workspace;
        memset(sums, 0, (size_t)columns * sizeof *sums);
        stream_row(p, kernel, j, columns, sums);
        if (sums == workspace || p->alpha != 1.0f)
            p->kernel->add_sums(p->c + j, p->ldc, sums, 0, 1, columns, p->alpha, p->beta);
    }
}

/* How B is read: so many of its rows at a time, and how many floats ahead it is asked for, 0 for not at all. */
typedef struct reading {
    int64_t steps, ask_at;
} reading;

/* Rows that one pass takes add up little: where B comes from memory they follow fewer of its rows at a time. From there
 * B is asked for: from L3 that takes a fifth of the time more. Where the hardware follows its rows, one or two rows
 * need not ask, on some processors. Further floats of the same rows are what is asked for, or the rows that come next.
 */
static reading how_to_read(const rung_cpu_args *p)
{
    enum { STEPS_OF_ONE_PASS = 8, ROWS_THAT_WAIT = 2, FLOATS_AHEAD = 256, L3_SHARE = 8 }; /* neighbours have the rest */
    enum { STEPS_OF_NEXT_ROWS = 8, L3_SHARE_OF_NEXT_ROWS = 4 };
    int64_t bytes = p->k * p->ldb * 4;
    reading how = {.steps = RUNG_STREAM_STEPS};
    if (p->cpu->asks_next_rows) {
        if (bytes > p->cpu->l3_bytes / L3_SHARE_OF_NEXT_ROWS) {
            how.steps = STEPS_OF_NEXT_ROWS;
            how.ask_at = how.steps * p->ldb;
        }
    } else {
        int is_far = bytes > p->cpu->l3_bytes / L3_SHARE, follows = p->cpu->follows_rows;
        int in_one_pass = follows ? pass_count(p) == 1 : p->m == 1;
        if (is_far && in_one_pass)
            how.steps = STEPS_OF_ONE_PASS;
        if (is_far && (!follows || p->cpu->asks_for_few || p->m > ROWS_THAT_WAIT))
            how.ask_at = FLOATS_AHEAD;
    }
    return how;
}

/* Runs a product of few rows with a B larger than the caches. B passes once, a few of its rows at a time in long runs,
 * while the sums of a block of columns stay in L2. The sums lie apart from C, whose rows may all fall into the same
 * cache sets. */
void rung_stream_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    if (is_row(p)) {
        rung_stream_one_row(p, plan->nc, workspace);
        return;
    }
    reading how = how_to_read(p);
    float *sums = workspace + packed_a_floats(p);
    for (int64_t j = 0; j < p->n; j += plan->nc) {
        int64_t columns = min64(plan->nc, p->n - j), ld = sums_ld(p, plan);
        memset(sums, 0, (size_t)(p->m * ld) * sizeof *sums);
        for (int64_t step = 0; step < p->k; step += how.steps) {
            if (step % PACKED_STEPS == 0)
                pack_passes(p, step, min64(PACKED_STEPS, p->k - step), workspace);
            stream_steps(p, step % PACKED_STEPS, min64(how.steps, p->k - step), b_at(p, step, j), columns, workspace,
                         sums, ld, how.ask_at);
        }
        p->kernel->add_sums(p->c + j, p->ldc, sums, ld, p->m, columns, p->alpha, p->beta);
    }
}
