/* C written past the caches: it is larger than they are, is not read, and k is short. */
#include "cpu/paths/paths.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PAST_COLUMNS = 1024, /* at most: longer runs of C gain nothing */
    PAST_STEPS = 10,     /* of k, at most, where a line takes several vectors: tiles are narrow, B is read often */
    PAST_STEPS_OF_FAR_L3 = 14, /* the same where C in long runs costs less than B from L3, for each class of rows */
};

/* Returns the fewest rows of C after which rows begin at the same place of a cache line again: 1 to 16. */
static int64_t row_classes(const rung_cpu_args *p)
{
    int64_t low_bit = p->ldc & -p->ldc;
    return low_bit >= LINE_FLOATS ? 1 : LINE_FLOATS / low_bit;
}

/* Returns the bytes of C from which on it goes past the caches: a quarter of L3, which other things are in as well.
 * With one or two steps it is more: where L3 has C, these take half the time through it. Where units are four floats
 * wide it is three eighths with any steps. */
static int64_t bytes_to_pass(const rung_cpu_args *p)
{
    enum { QUARTERS_AND_STEPS = 4, EIGHTHS_OF_FOUR = 3 };
    if (p->cpu->units_of_four)
        return p->cpu->l3_bytes / 8 * EIGHTHS_OF_FOUR;
    return p->cpu->l3_bytes / 4 * max64(QUARTERS_AND_STEPS - p->k, 1);
}

/* Returns true where C is larger than a good part of L3, is written once after little work, and has whole tiles of rows
 * that begin alike (rung_past_run). Where L3 is far it is also large, and may keep all of C: past the caches that takes
 * up to four times as long to write again, while from memory it takes two thirds of the time. */
static int should_pass_caches(const rung_cpu_args *p)
{
    int64_t steps = p->kernel->vl >= LINE_FLOATS ? OUTER_STEPS : PAST_STEPS;
    if (p->cpu->far_l3)
        steps = c_bytes(p) <= p->cpu->whole_l3_bytes / 2 ? 0 : min64(steps, PAST_STEPS_OF_FAR_L3);
    return p->beta == 0.0f && p->k <= steps && c_bytes(p) > bytes_to_pass(p) && p->kernel->vl >= 8 && p->n >= 2 * FEW &&
           p->m >= row_classes(p) * p->kernel->mr && (uintptr_t)p->c % sizeof *p->c == 0;
}

static void plan_past(const rung_cpu_args *p, gemm_plan *plan)
{
    int64_t panel = panel_columns(p->kernel);
    plan->path = PATH_PAST;
    plan->nc = max64(min64(p->cpu->l2_bytes / 4 / (4 * p->k), PAST_COLUMNS) / panel, 1) * panel;
}

const gemm_rule rung_rule_past = {"should_pass_caches", should_pass_caches, plan_past};

/* Returns how many columns of B, at most, a chunk has: those of whole lines of C, what lies before the first line of
 * the class that begins last, and what is left behind the last one. */
static int64_t chunk_columns(const gemm_plan *plan)
{
    return plan->nc + 2 * (LINE_FLOATS - 1);
}

/* Returns the row length of a chunk of B on PATH_PAST: whole vectors, and rows begin in different cache sets. */
static int64_t chunk_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return round_up(min64(chunk_columns(plan), p->n), 2 * LINE_FLOATS) + LINE_FLOATS;
}

int64_t rung_past_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)columns;
    int64_t turned_a = p->trans_a ? p->m * round_up(p->k, p->kernel->vl) : 0;
    return p->k * chunk_ld(p, plan) + turned_a + 2 * RUNG_PACK_SLACK;
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
 * apart. A chunk of B's columns is copied for all of them, some more than a chunk, since classes begin at different
 * columns and the last chunk of each has what is left of a line; a transposed A, whose rows no class could pick out, is
 * turned. */
void rung_past_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_cpu_args s = *p;
    int64_t classes = row_classes(p);
    float *b = workspace;
    s.ldb = chunk_ld(p, plan);
    s.b = b;
    if (p->trans_a) {
        float *a = workspace + p->k * s.ldb + RUNG_PACK_SLACK;
        s.lda = round_up(p->k, p->kernel->vl);
        s.a = a;
        p->kernel->pack_by_row(a, p->a, p->lda, p->k, p->m, (int)s.lda);
    }
    for (int64_t j = 0; j < p->n; j += plan->nc) {
        int64_t columns = min64(chunk_columns(plan), p->n - j);
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
