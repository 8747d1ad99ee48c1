/* The paths a CPU product can take, each on one thread: in place, B packed, both packed, dot products, transposed. */
#include "cpu/gemm_block.h"

static void run_direct(const gemm_product *p, const gemm_plan *d)
{
    block s = {.x = p->x,
               .m = p->m,
               .n = p->n,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .ldb = p->ldb,
               .most = d->most,
               .c = p->c,
               .out = {.ldc = p->ldc, .stream = d->stream}};
    for (int64_t step = 0; step < p->k; step += d->kc) {
        s.k = min64(d->kc, p->k - step);
        s.a = a_at(p, 0, step);
        s.b = b_at(p, step, 0);
        s.fetch_rows = d->fetch && !p->trans_a ? p->m : 0;
        set_beta(&s, p, step);
        rung_gemm_sweep(&s);
    }
}

/* One tile holds all of C. */
static int run_one_tile(const gemm_product *p)
{
    const rung_cpu_kernel *x = p->x;
    int64_t vectors = (p->n + x->vl - 1) >> x->vl_bits;
    if (vectors > x->nv || p->m > x->max_rows[vectors - 1])
        return 0;
    rung_tile_out out = {p->ldc, p->alpha, p->beta, (int)(p->n - ((vectors - 1) << x->vl_bits)), 0};
    x->tile[p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW][vectors - 1][p->m - 1](p->k, p->a, p->lda, p->b, p->ldb, p->c,
                                                                             &out);
    return 1;
}

void rung_gemm_tiny(const gemm_product *p)
{
    if (run_one_tile(p))
        return;
    block s = {.x = p->x,
               .m = p->m,
               .n = p->n,
               .k = p->k,
               .a = p->a,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .b = p->b,
               .ldb = p->ldb,
               .most = p->x->nv,
               .c = p->c,
               .out = {.ldc = p->ldc, .alpha = p->alpha, .beta = p->beta}};
    rung_gemm_sweep(&s);
}

/* All rows of C against RUNG_STREAM_STEPS rows of B, along `columns` columns. */
static void stream_rows(block *s, int64_t columns)
{
    const rung_cpu_kernel *x = s->x;
    int64_t passes = divide_up(s->m, RUNG_STREAM_MAX_ROWS), i = 0;
    for (int64_t pass = 0; pass < passes; pass++) {
        int rows = (int)(s->m / passes + (pass < s->m % passes)), width = x->stream_nv[rows - 1] * x->vl;
        const float *a = s->a + i * (s->kind == RUNG_A_BY_ROW ? s->lda : 1);
        float *c = s->c + i * s->out.ldc;
        int64_t count = columns / width, done = count * width;
        s->out.lanes = x->vl;
        x->stream[s->kind][rows - 1](count, a, s->lda, s->b, s->ldb, c, &s->out);
        if (done < columns) {
            block rest = *s;
            rest.m = rows;
            rest.n = columns - done;
            rest.a = a;
            rest.b += done;
            rest.c = c + done;
            rung_gemm_sweep(&rest);
        }
        i += rows;
    }
}

/* Few rows against a B larger than the caches: B passes once, a few rows at a time in long runs, and a block of C's
 * columns stays in L2 meanwhile. */
static void run_stream(const gemm_product *p, const gemm_plan *d)
{
    block s = {.x = p->x,
               .m = p->m,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .ldb = p->ldb,
               .most = d->most,
               .out = {.ldc = p->ldc}};
    for (int64_t j = 0; j < p->n; j += d->nc)
        for (int64_t step = 0; step < p->k; step += RUNG_STREAM_STEPS) {
            s.n = min64(d->nc, p->n - j);
            s.k = min64(RUNG_STREAM_STEPS, p->k - step);
            s.a = a_at(p, 0, step);
            s.b = b_at(p, step, j);
            s.c = p->c + j;
            set_beta(&s, p, step);
            if (s.k == RUNG_STREAM_STEPS)
                stream_rows(&s, s.n);
            else
                rung_gemm_sweep(&s);
        }
}

/* Few columns: B is packed once a k block, A is read in place. Rows go outside in runs that stay in L1/L2. */
static void run_pack_b(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    block s = {.x = p->x,
               .n = p->n,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .b = workspace,
               .packed_b = 1,
               .most = d->most,
               .out = {.ldc = p->ldc}};
    grouping by = group_columns(p->n, p->x->vl_bits, d->most);
    for (int64_t step = 0; step < p->k; step += d->kc) {
        s.k = min64(d->kc, p->k - step);
        rung_gemm_pack_b(p, step, 0, s.k, p->n, &by, 0, by.groups, workspace);
        set_beta(&s, p, step);
        for (int64_t i = 0; i < p->m; i += d->mc) {
            s.m = min64(d->mc, p->m - i);
            s.a = a_at(p, i, step);
            s.c = p->c + i * p->ldc;
            s.fetch_rows = d->fetch && !p->trans_a ? p->m - i : 0;
            rung_gemm_sweep(&s);
        }
    }
}

/* Dot products want the long operand's rows along k (A as it is, or B transposed), the short one's columns too. */
static void run_dot(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    int of_b = d->of_b;
    int64_t rows = of_b ? p->n : p->m, columns = of_b ? p->m : p->n;
    const float *t = of_b ? p->a : p->b;
    int64_t ldt = of_b ? p->lda : p->ldb;
    int along_k = of_b ? !p->trans_a : p->trans_b;
    rung_dot_args dot = {.k = p->k,
                         .s = of_b ? p->b : p->a,
                         .lds = of_b ? p->ldb : p->lda,
                         .t = t,
                         .t_step = p->x->vl,
                         .t_ld = ldt,
                         .c = p->c,
                         .c_row = of_b ? 1 : p->ldc,
                         .c_col = of_b ? p->ldc : 1,
                         .alpha = p->alpha,
                         .beta = p->beta};
    if (!along_k && !(columns == 1 && ldt == 1)) {
        p->x->pack_by_row(workspace, t, ldt, p->k, columns, p->x->vl);
        dot.t = workspace;
        dot.t_step = columns * p->x->vl;
        dot.t_ld = p->x->vl;
    }
    p->x->dot[columns - 1](&dot, rows);
}

static void add_transposed(float *c, int64_t ldc, const float *d, int64_t ldd, int64_t m, int64_t n, float beta)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * ldc + j] = beta == 0.0f ? d[j * ldd + i] : beta * c[i * ldc + j] + d[j * ldd + i];
}

/* (op(A) op(B))' = op(B)' op(A)': brings the long operand's contiguous direction under the vectors. The result goes
 * through a strip that stays in L2. */
static void run_swapped(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    gemm_product t = {.x = p->x,
                      .k = p->k,
                      .a = p->b,
                      .lda = p->ldb,
                      .b = p->a,
                      .ldb = p->lda,
                      .c = workspace,
                      .alpha = p->alpha,
                      .beta = 0.0f,
                      .trans_a = !p->trans_b,
                      .trans_b = !p->trans_a};
    float *rest = workspace + round_up(RUNG_SWAP_STRIP * max64(min64(p->m, p->n), 1), 16);
    int columns = !d->of_b; /* the long operand is A: its m becomes the columns */
    int64_t length = columns ? p->m : p->n;
    for (int64_t at = 0; at < length; at += RUNG_SWAP_STRIP) {
        int64_t now = min64(RUNG_SWAP_STRIP, length - at);
        t.m = columns ? p->n : now;
        t.n = columns ? now : p->m;
        t.ldc = columns ? RUNG_SWAP_STRIP : p->m;
        if (columns)
            t.b = p->a + at;
        else
            t.a = p->b + at * p->ldb;
        if (columns)
            run_stream(&t, d);
        else
            run_pack_b(&t, d, rest);
        if (columns)
            add_transposed(p->c + at * p->ldc, p->ldc, workspace, t.ldc, now, p->n, p->beta);
        else
            add_transposed(p->c + at, p->ldc, workspace, t.ldc, p->m, now, p->beta);
    }
}

static void run_packed(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    rung_gemm_packed(p, d, workspace + rung_gemm_packed_a_floats(p, d), NULL, 1, workspace);
}

static void run_path(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    switch (d->path) {
    case PATH_DIRECT: run_direct(p, d); break;
    case PATH_STREAM: run_stream(p, d); break;
    case PATH_PACK_B: run_pack_b(p, d, workspace); break;
    case PATH_DOT: run_dot(p, d, workspace); break;
    case PATH_SWAPPED: run_swapped(p, d, workspace); break;
    case PATH_PACKED: run_packed(p, d, workspace); break;
    case PATH_LONG_K: /* each piece of k is a product of its own */
        if (d->in_place)
            run_direct(p, d);
        else
            run_packed(p, d, workspace);
        break;
    }
}

void rung_gemm_strip(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    run_path(p, d, workspace);
    if (d->path != PATH_PACKED) /* which finishes block by block */
        rung_gemm_finish(p, 0, p->m, 0, p->n);
}
