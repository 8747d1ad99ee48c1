/* The last columns of C, which would leave most lanes of a tile empty: as dot products where A has k innermost, else as
 * rows of the transposed product, which reads A as it lies. They read A once more: best soon after the tiles have. */
#include "cpu/paths/paths.h"

enum { STRIP = 512 }; /* rows of C, whose columns lie side by side before they are turned */

/* Returns how many of the last columns are better rows of the transposed product: most lanes of their tile, of half a
 * vector where the processor halves them, would be empty, and rows and steps enough share the work around them. */
static int last_as_rows(const rung_cpu_args *p)
{
    enum { MOST = 4, COLUMNS_LEAST = 32, ROWS_LEAST = 32, STEPS_LEAST = 24 };
    const int rest = columns_over(p);
    return rest <= MOST && p->n >= COLUMNS_LEAST && p->m >= ROWS_LEAST && p->k >= STEPS_LEAST ? rest : 0;
}

int rung_last_columns(const rung_cpu_args *p)
{
    return p->trans_a ? last_as_rows(p) : last_as_dots(p);
}

int rung_last_beside_packed(const rung_cpu_args *p)
{
    enum { L3_SHARE = 8 };
    return a_bytes(p) <= p->cpu->l3_bytes / L3_SHARE ? rung_last_columns(p) : 0;
}

int64_t rung_last_floats(const rung_cpu_args *p, int last)
{
    if (last == 0)
        return 0;
    if (!p->trans_a)
        return round_up(p->k, p->kernel->vl) * last + RUNG_PACK_SLACK;
    const rung_cpu_args rows = {.kernel = p->kernel, .m = last, .n = STRIP};
    const gemm_plan plan = {.nc = STRIP};
    return last * (STRIP + LINE_FLOATS) + rung_stream_floats(&rows, &plan, STRIP);
}

/* Computes columns, which are few, as dot products. */
static void run_as_dots(const rung_cpu_args *p, int64_t all_steps, int is_turned, float *workspace)
{
    enum { STEPS_OF_HALF = 56 }; /* at most: with more the lanes of half vectors take as long to add up */
    const rung_cpu_kernel *kernel = halves_vectors(p) && all_steps <= STEPS_OF_HALF ? p->kernel->half : p->kernel;
    rung_dot_args dot = dot_args(p, 0, kernel);
    if (!p->trans_b && is_turned)
        take_turned(&dot, kernel, p->n, workspace);
    else if (!p->trans_b)
        turn_columns(&dot, kernel, p->n, workspace);
    kernel->dot[p->n - 1](&dot, p->m);
}

/* Runs a strip of rows in place. */
static void run_in_place(const rung_cpu_args *t)
{
    const rung_cpu_kernel *kernel = family_of_columns(t, t->n);
    block s = {.kernel = kernel,
               .tail = kernel == t->kernel ? tail_family(t) : NULL,
               .m = t->m,
               .n = t->n,
               .k = t->k,
               .a = t->a,
               .lda = t->lda,
               .kind = t->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .rows_most = rows_in_place(t),
               .b = t->b,
               .ldb = t->ldb,
               .most = vectors_in_place(t->kernel, t->m, t->n),
               .c = t->c,
               .out = {.ldc = t->ldc}};
    set_beta(&s, t, 0);
    rung_gemm_sweep(&s);
}

/* Computes columns, which are few, as rows of the transposed product, and turns them. Each element is one chain of FMAs
 * whether A streams past them or stays in place. */
static void run_as_rows(const rung_cpu_args *p, float *workspace)
{
    const gemm_plan stream = {.nc = STRIP};
    rung_cpu_args t = transposed(p);
    t.c = workspace;
    t.ldc = STRIP + LINE_FLOATS;
    t.beta = 0.0f;
    for (int64_t at = 0; at < p->m; at += STRIP) {
        t.n = min64(STRIP, p->m - at);
        t.b = p->a + at;
        if (b_bytes(&t) > p->cpu->l2_bytes / 2 || is_small_row_that_streams(&t))
            rung_stream_run(&t, &stream, workspace + t.m * t.ldc);
        else
            run_in_place(&t);
        narrow_of(p->kernel)->turn(p->c + at * p->ldc, p->ldc, workspace, t.ldc, t.n, p->n, p->beta);
    }
}

void rung_run_last(const rung_cpu_args *p, int last, int64_t step, int64_t steps, int is_turned, float *workspace)
{
    rung_cpu_args columns = *p;
    columns.n = last;
    columns.k = steps;
    columns.a = a_at(p, 0, step);
    columns.b = b_at(p, step, p->n - last);
    columns.c += p->n - last;
    if (step > 0)
        columns.beta = 1.0f;
    if (p->trans_a)
        run_as_rows(&columns, workspace);
    else
        run_as_dots(&columns, p->k, is_turned, workspace);
}
