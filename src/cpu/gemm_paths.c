/* The paths a CPU product can take, each on one thread: in place, B packed, both packed, dot products, transposed. */
#include "cpu/gemm_block.h"

#include <stdatomic.h>
#include <string.h>

static void run_direct(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    int last = p->n & (p->kernel->vl - 1) ? plan->last : 0; /* of all strips the last one has them */
    rung_cpu_args to = *p;
    if (plan->apart) {
        to.c = workspace + round_up(rung_gemm_last_floats(p, plan->last), LINE_FLOATS);
        to.ldc = rung_gemm_apart_ld(p->n);
        to.beta = 0.0f;
    }
    block s = {.kernel = p->kernel,
               .tail = tail_family(p),
               .m = p->m,
               .n = p->n - last,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .rows_most = rows_in_place(p),
               .ldb = p->ldb,
               .asks_b = plan->asks_b,
               .most = plan->most,
               .c = to.c,
               .four_sums = plan->four_sums,
               .out = {.ldc = to.ldc}};
    for (int64_t step = 0; step < p->k; step += plan->kc) {
        s.k = min64(plan->kc, p->k - step);
        s.a = a_at(p, 0, step);
        s.b = b_at(p, step, 0);
        s.fetch_rows = plan->fetch && !p->trans_a ? p->m : 0;
        set_beta(&s, &to, step);
        rung_gemm_sweep(&s);
    }
    if (plan->apart)
        p->kernel->add_sums(p->c, p->ldc, to.c, to.ldc, p->m, p->n - last, 1.0f, p->beta);
    if (last)
        rung_gemm_run_last(p, last, workspace);
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

/* Adds some steps of k, at most RUNG_STREAM_STEPS, to a block of sums. Each pass takes its rows along some columns of
 * B, which stay in L1 for the next pass. */
static void stream_steps(const rung_cpu_args *p, int64_t step, int64_t steps, const float *b, int64_t columns,
                         float *packed_a, float *sums, int64_t ld, int fetch)
{
    enum { COLUMNS_IN_L1 = 384 };
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t passes = pass_count(p), slot = (int64_t)kernel->stream_rows * RUNG_STREAM_STEPS;
    int64_t chunk = passes == 1 ? columns : COLUMNS_IN_L1;
    for (int64_t pass = 0; pass < passes; pass++) {
        int64_t row = pass_start(p, pass), rows = pass_start(p, pass + 1) - row;
        (p->trans_a ? kernel->pack_by_k : kernel->pack_by_row)(packed_a + pass * slot, a_at(p, row, step), p->lda, rows,
                                                               steps, rung_stream_panel((int)rows, kernel->vl));
    }
    for (int64_t j = 0; j < columns; j += chunk)
        for (int64_t pass = 0; pass < passes; pass++) {
            int64_t row = pass_start(p, pass), rows = pass_start(p, pass + 1) - row;
            kernel->stream[rows - 1](steps, min64(chunk, columns - j), packed_a + pass * slot, b + j, p->ldb,
                                     sums + row * ld + j, ld, fetch && pass == 0);
        }
}

/* Runs a product of few rows with a B larger than the caches. B passes once, a few of its rows at a time in long runs,
 * while the sums of a block of columns stay in L2. The sums lie apart from C, whose rows may all fall into the same
 * cache sets. */
static void run_stream(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    /* Rows that one pass takes add up little: where B comes from memory they follow fewer of its rows at a time. B is
     * asked for from memory, and also from L3 where the hardware does not follow its rows. Where it does, one or two
     * rows need not ask, on some processors. */
    enum { STEPS_OF_ONE_PASS = 8, ROWS_THAT_WAIT = 2, L3_SHARE = 8 }; /* neighbours have the rest of L3 */
    int is_far = p->k * p->ldb * 4 > p->cpu->l3_bytes / L3_SHARE, follows = p->cpu->follows_rows;
    int fetch = follows ? is_far && (p->cpu->asks_for_few || p->m > ROWS_THAT_WAIT) : is_far || p->m > 1;
    int in_one_pass = follows ? pass_count(p) == 1 : p->m == 1;
    int64_t steps = is_far && in_one_pass ? STEPS_OF_ONE_PASS : RUNG_STREAM_STEPS;
    float *sums = workspace + rung_gemm_stream_a_floats(p);
    for (int64_t j = 0; j < p->n; j += plan->nc) {
        int64_t columns = min64(plan->nc, p->n - j), ld = rung_gemm_stream_ld(p, plan);
        memset(sums, 0, (size_t)(p->m * ld) * sizeof *sums);
        for (int64_t step = 0; step < p->k; step += steps)
            stream_steps(p, step, min64(steps, p->k - step), b_at(p, step, j), columns, workspace, sums, ld, fetch);
        p->kernel->add_sums(p->c + j, p->ldc, sums, ld, p->m, columns, p->alpha, p->beta);
    }
}

/* Runs a product whose B is packed, a block of k at a time, and whose A is read in place, mc rows at a time that stay
 * in L1 or L2. */
static void run_pack_b(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    block s = {.kernel = p->kernel,
               .tail = tail_family(p),
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .b = workspace,
               .packed_b = 1,
               .most = plan->most,
               .out = {.ldc = p->ldc}};
    int64_t n = p->n - plan->last;
    for (int64_t j = 0; j < n; j += plan->nc) {
        s.n = min64(plan->nc, n - j);
        grouping by = group_columns(p->m, s.n, p->kernel, s.tail, plan->most);
        int is_one_group = by.groups == 1 && plan->rows_most > 0; /* which needs no blocks of rows */
        int64_t mc = is_one_group ? p->m : plan->mc;
        s.rows_most = is_one_group ? plan->rows_most : rows_in_place(p);
        for (int64_t step = 0; step < p->k; step += plan->kc) {
            s.k = min64(plan->kc, p->k - step);
            rung_gemm_pack_b(p, step, j, s.k, s.n, &by, 0, by.groups, workspace);
            set_beta(&s, p, step);
            for (int64_t i = 0; i < p->m; i += mc) {
                s.m = min64(mc, p->m - i);
                s.a = a_at(p, i, step);
                s.c = p->c + i * p->ldc + j;
                s.fetch_rows = plan->fetch && !p->trans_a ? p->m - i : 0;
                rung_gemm_sweep_groups(&s, &by, 0, by.groups);
            }
        }
    }
    if (plan->last)
        rung_gemm_run_last(p, plan->last, NULL);
}

/* Computes some neighbouring columns of a few rows of C. The first of them is column `of_b` of B. */
static void write_columns(const rung_cpu_args *p, int64_t row, int64_t rows, int64_t column, int64_t of_b,
                          int64_t columns, int past)
{
    block s = {.kernel = p->kernel,
               .tail = tail_family(p),
               .m = rows,
               .n = columns,
               .k = p->k,
               .a = p->a + row * p->lda,
               .lda = p->lda,
               .kind = RUNG_A_BY_ROW,
               .b = p->b + of_b,
               .ldb = p->ldb,
               .most = p->kernel->nv,
               .c = p->c + row * p->ldc + column,
               .out = {.ldc = p->ldc, .alpha = p->alpha, .beta = 0.0f, .past = past}};
    s.out.ask_c = !p->cpu->stores_wait && asks_c(p, p->k, 0); /* write_chunk() asks, some rows before */
    if (columns > 0)
        rung_gemm_sweep(&s);
}

/* Computes rows that all begin at the same place of a cache line: the columns before the first whole line, then whole
 * lines, which go past the caches, then the rest. `j` is the first column of the chunk that b holds. Lines that are
 * written in part are fetched a few rows ahead. */
static void write_chunk(const rung_cpu_args *p, int64_t j, int64_t width)
{
    int64_t head = min64(p->n, line_floats_before(p->c)), mr = p->kernel->mr;
    int64_t end = head + (p->n - head) / LINE_FLOATS * LINE_FLOATS, first = j + head;
    int64_t columns = min64(width, end - first), last = first + columns == end ? p->n - end : 0;
    if (columns < 0 || (columns == 0 && j > 0)) /* the first chunk has the columns of a C without whole lines, too */
        return;
    for (int64_t i = 0; i < p->m; i += mr) {
        int64_t rows = min64(mr, p->m - i);
        for (int64_t r = i + mr; r < min64(i + 2 * mr, p->m); r++) {
            if (j == 0 && head > 0)
                __builtin_prefetch(p->c + r * p->ldc, 1);
            if (last > 0)
                __builtin_prefetch(p->c + r * p->ldc + end, 1);
        }
        if (j == 0)
            write_columns(p, i, rows, 0, 0, head, 0);
        write_columns(p, i, rows, first, head, columns, 1);
        write_columns(p, i, rows, end, end - j, last, 0);
    }
}

/* C is larger than the caches and written once after little work. Only whole lines go past the caches, and the tiles
 * of several rows write whole lines only where these rows begin alike. So the rows are taken in classes, `classes` rows
 * apart. A chunk of B's columns is copied for all of them, a few more than a chunk, since classes begin at different
 * columns; a transposed A, whose rows no class could pick out, is turned. */
static void run_past(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_cpu_args s = *p;
    int64_t classes = rung_gemm_row_classes(p);
    float *b = workspace;
    s.ldb = rung_gemm_past_ld(p, plan);
    s.b = b;
    if (p->trans_a) {
        float *a = workspace + p->k * s.ldb + RUNG_PACK_SLACK;
        s.lda = round_up(p->k, p->kernel->vl);
        s.a = a;
        p->kernel->pack_by_row(a, p->a, p->lda, p->k, p->m, (int)s.lda);
    }
    for (int64_t j = 0; j < p->n; j += plan->nc) {
        int64_t columns = min64(plan->nc + LINE_FLOATS, p->n - j);
        if (p->trans_b)
            p->kernel->pack_by_row(b, b_at(p, 0, j), p->ldb, columns, p->k, (int)s.ldb);
        else
            for (int64_t step = 0; step < p->k; step++)
                memcpy(b + step * s.ldb, b_at(p, step, j), (size_t)columns * sizeof *b);
        for (int64_t c = 0; c < min64(classes, p->m); c++) {
            rung_cpu_args of = s;
            of.m = divide_up(p->m - c, classes);
            of.a += c * s.lda;
            of.lda = s.lda * classes;
            of.c += c * s.ldc;
            of.ldc = s.ldc * classes;
            write_chunk(&of, j, plan->nc);
        }
    }
    atomic_thread_fence(memory_order_seq_cst); /* nothing else orders stores past the caches */
}

/* Runs dot products, as many columns at a time as L1 holds and the family takes; some rows at a time, which the next
 * columns find in a cache. */
static void run_dot_groups(const rung_cpu_args *p, const rung_cpu_kernel *kernel, const rung_dot_args *dot,
                           int64_t rows, int64_t columns)
{
    enum { ROWS = 24 };
    int64_t fit = max64(p->cpu->l1_bytes / (4 * p->k), RUNG_DOT_COLS_LEAST);
    int64_t groups = divide_up(columns, min64(fit, kernel->dot_cols)), step = groups > 1 ? ROWS : rows;
    rung_dot_args part = *dot;
    for (int64_t i = 0; i < rows; i += step) {
        part.s = dot->s + i * dot->lds;
        for (int64_t g = 0; g < groups; g++) {
            int64_t first = columns * g / groups;
            part.t = dot->t + first * dot->t_ld;
            part.c = dot->c + i * dot->c_row + first * dot->c_col;
            kernel->dot[columns * (g + 1) / groups - first - 1](&part, min64(step, rows - i));
        }
    }
}

/* Runs a product as dot products. They want the long operand's rows along k (A as it is, or B transposed), the short
 * one's columns too. */
static void run_dot(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    int64_t rows = plan->of_b ? p->n : p->m, columns = plan->of_b ? p->m : p->n;
    int has_k_innermost = plan->of_b ? !p->trans_a : p->trans_b;
    const rung_cpu_kernel *kernel = plan->narrow ? narrow_of(p->kernel) : p->kernel;
    rung_dot_args dot = dot_args(p, plan->of_b, kernel);
    dot.asks = rung_gemm_dot_asks(p, rows);
    if (!has_k_innermost && !(columns == 1 && dot.t_ld == 1))
        turn_columns(&dot, kernel, columns, workspace);
    run_dot_groups(p, kernel, &dot, rows, columns);
}

/* Computes (op(A) op(B))' = op(B)' op(A)', so that the vectors run along the rows of the long operand as they lie in
 * memory. The result goes through a strip that stays in L2. */
static void run_transposed(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_cpu_args t = transposed(p);
    t.c = workspace;
    t.beta = 0.0f;
    int64_t strip = rung_gemm_transposed_strip(p);
    int columns = !plan->of_b; /* the long operand is A: its m becomes the columns */
    float *rest = workspace + rung_gemm_transposed_floats(p, plan);
    t.ldc = rung_gemm_transposed_ld(p, plan);
    int64_t length = columns ? p->m : p->n;
    for (int64_t at = 0; at < length; at += strip) {
        int64_t now = min64(strip, length - at);
        t.m = columns ? p->n : now;
        t.n = columns ? now : p->m;
        if (columns)
            t.b = p->a + at;
        else
            t.a = p->b + at * p->ldb;
        if (columns && is_rank(&t))
            rung_gemm_rank(&t, strip, rest);
        else if (columns && plan->inner == PATH_DIRECT)
            run_direct(&t, plan, NULL);
        else if (columns)
            run_stream(&t, plan, rest);
        else
            run_pack_b(&t, plan, rest);
        if (columns)
            narrow_of(p->kernel)->turn(p->c + at * p->ldc, p->ldc, workspace, t.ldc, now, p->n, p->beta);
        else
            narrow_of(p->kernel)->turn(p->c + at, p->ldc, workspace, t.ldc, p->m, now, p->beta);
    }
}

static void run_packed(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_gemm_packed(p, plan, workspace + rung_gemm_packed_a_floats(p, plan), NULL, 1, workspace);
}

static void run_path(const rung_cpu_args *p, const gemm_plan *plan, gemm_path path, float *workspace)
{
    switch (path) {
    case PATH_TINY: rung_gemm_tiny(p); break;
    case PATH_DIRECT: run_direct(p, plan, workspace); break;
    case PATH_PAST: run_past(p, plan, workspace); break;
    case PATH_RANK: rung_gemm_rank(p, plan->nc, workspace); break;
    case PATH_SHORT_ROWS: rung_gemm_short_rows(p); break;
    case PATH_STREAM: run_stream(p, plan, workspace); break;
    case PATH_OUTER:
    case PATH_PACK_B: run_pack_b(p, plan, workspace); break;
    case PATH_DOT: run_dot(p, plan, workspace); break;
    case PATH_TRANSPOSED: run_transposed(p, plan, workspace); break;
    case PATH_PACKED: run_packed(p, plan, workspace); break;
    case PATH_LONG_K: run_path(p, plan, plan->inner, workspace); break; /* each piece of k is a product of its own */
    }
}

void rung_gemm_strip(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    run_path(p, plan, plan->path, workspace);
    if (plan->path != PATH_PACKED) /* which finishes block by block */
        rung_gemm_finish(p, 0, p->m, 0, p->n);
}
