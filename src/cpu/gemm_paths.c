/* The paths a CPU product can take, each on one thread: in place, B packed, both packed, dot products, transposed. */
#include "cpu/gemm.h"

/* A block of C that tiles cover. Columns go in groups of at most `most` vectors, as even as they come, so that no
 * narrow group is left over. B is in place or packed, one panel a group; A is in place or in panels of mr rows. */
typedef struct block {
    const rung_cpu_kernel *x;
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    int kind, packed_a;
    const float *b;
    int64_t ldb;
    int64_t fetch_rows; /* A in place: rows there are from a on; the next tile's are fetched while one runs. 0: not */
    int packed_b;
    int most;
    float *c;
    rung_tile_out out;
} block;

/* The first `wide` of `groups` groups have narrow + 1 vectors, the others `narrow`. */
typedef struct grouping {
    int64_t groups, narrow, wide;
} grouping;

static grouping group_columns(int64_t n, int vl_bits, int most)
{
    int64_t vectors = (n + (1 << vl_bits) - 1) >> vl_bits;
    if (vectors <= most)
        return (grouping){1, vectors, 0};
    int64_t groups = divide_up(vectors, most), narrow = vectors / groups;
    return (grouping){groups, narrow, vectors - groups * narrow};
}

/* Into L2: rows a power of two apart would push each other out of L1. */
static void fetch_a(const block *s, int64_t row, int64_t rows)
{
    for (int64_t i = row; i < min64(row + rows, s->fetch_rows); i++)
        for (int64_t p = 0; p < s->k; p += 16)
            __builtin_prefetch(s->a + i * s->lda + p, 0, 2);
}

/* All rows of one group of `nv` vectors of columns. */
static void sweep_rows(const block *s, const float *b, int64_t ldb, float *c, int nv, rung_tile_out *out)
{
    const rung_cpu_kernel *x = s->x;
    const rung_tile_fn *tiles = x->tile[s->kind][nv - 1];
    if (s->packed_a) {
        for (int64_t i = 0; i < s->m; i += x->mr) {
            int rows = (int)min64(s->m - i, x->mr);
            tiles[rows - 1](s->k, s->a + i * s->k, x->mr, b, ldb, c + i * out->ldc, out);
        }
        return;
    }
    int most = x->max_rows[nv - 1];
    int64_t count = s->m <= most ? 1 : divide_up(s->m, most), i = 0;
    int64_t least = count == 1 ? s->m : s->m / count, extra = count == 1 ? 0 : s->m % count;
    int64_t row_step = s->kind == RUNG_A_BY_ROW ? s->lda : 1;
    for (int64_t t = 0; t < count; t++) {
        int64_t rows = least + (t < extra);
        if (s->fetch_rows)
            fetch_a(s, i + rows, rows);
        tiles[rows - 1](s->k, s->a + i * row_step, s->lda, b, ldb, c + i * out->ldc, out);
        i += rows;
    }
}

/* Columns outside, rows inside: a group's B stays in L1 or L2 while A passes. */
static void sweep(const block *s)
{
    int vl = s->x->vl, stream = s->out.stream;
    rung_tile_out out = s->out;
    grouping by = group_columns(s->n, s->x->vl_bits, s->most);
    int64_t j = 0;
    for (int64_t g = 0; g < by.groups; g++) {
        int nv = (int)by.narrow + (g < by.wide);
        int64_t width = min64((int64_t)nv * vl, s->n - j);
        out.lanes = (int)(width - (int64_t)(nv - 1) * vl);
        out.stream = stream && out.lanes == vl;
        if (s->packed_b)
            sweep_rows(s, s->b + j * s->k, (int64_t)nv * vl, s->c + j, nv, &out);
        else
            sweep_rows(s, s->b + j, s->ldb, s->c + j, nv, &out);
        j += width;
    }
}

static void set_beta(block *s, const gemm_product *p, int64_t step)
{
    s->out.alpha = p->alpha;
    s->out.beta = step == 0 ? p->beta : 1.0f;
}

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
        sweep(&s);
    }
}

void rung_gemm_tiny(const gemm_product *p)
{
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
    sweep(&s);
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
            sweep(&rest);
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
                sweep(&s);
        }
}

/* One panel a group, in the order sweep() visits them. */
static void pack_b(const gemm_product *p, int64_t step, int64_t column, int64_t k, int64_t n, int most, float *to)
{
    rung_pack_fn pack = p->trans_b ? p->x->pack_by_row : p->x->pack_by_k;
    grouping by = group_columns(n, p->x->vl_bits, most);
    int vl = p->x->vl, wide_panel = (int)(by.narrow + 1) * vl;
    int64_t wide_columns = by.wide * wide_panel;
    if (by.wide > 0)
        pack(to, b_at(p, step, column), p->ldb, wide_columns, k, wide_panel);
    pack(to + wide_columns * k, b_at(p, step, column + wide_columns), p->ldb, n - wide_columns, k, (int)by.narrow * vl);
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
    for (int64_t step = 0; step < p->k; step += d->kc) {
        s.k = min64(d->kc, p->k - step);
        pack_b(p, step, 0, s.k, p->n, d->most, workspace);
        set_beta(&s, p, step);
        for (int64_t i = 0; i < p->m; i += d->mc) {
            s.m = min64(d->mc, p->m - i);
            s.a = a_at(p, i, step);
            s.c = p->c + i * p->ldc;
            s.fetch_rows = d->fetch && !p->trans_a ? p->m - i : 0;
            sweep(&s);
        }
    }
}

/* The next steps of k of a few long rows, one row after the other: rows far apart in memory are slow to read in turns.
 */
static void fetch_steps(const float *rows, int64_t ld, int64_t count, int64_t k)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t p = 0; p < k; p += 16)
            __builtin_prefetch(rows + i * ld + p, 0, 2);
}

static void run_packed(const gemm_product *p, const gemm_plan *d, float *workspace)
{
    const rung_cpu_kernel *x = p->x;
    int64_t mc = min64(d->mc, round_up(p->m, x->mr)), kc = min64(d->kc, p->k);
    float *packed_b = workspace + round_up(mc * kc + RUNG_PACK_SLACK, 16);
    block s = {.x = x,
               .kind = RUNG_A_BY_K,
               .packed_a = 1,
               .a = workspace,
               .b = packed_b,
               .packed_b = 1,
               .most = d->most,
               .out = {.ldc = p->ldc, .stream = d->stream}};
    for (int64_t j = 0; j < p->n; j += d->nc)
        for (int64_t step = 0; step < p->k; step += d->kc) {
            s.n = min64(d->nc, p->n - j);
            s.k = min64(d->kc, p->k - step);
            pack_b(p, step, j, s.k, s.n, d->most, packed_b);
            if (d->path == PATH_LONG_K && step + s.k < p->k) {
                if (!p->trans_a)
                    fetch_steps(a_at(p, 0, step + s.k), p->lda, p->m, min64(d->kc, p->k - step - s.k));
                if (p->trans_b)
                    fetch_steps(b_at(p, step + s.k, 0), p->ldb, p->n, min64(d->kc, p->k - step - s.k));
            }
            set_beta(&s, p, step);
            for (int64_t i = 0; i < p->m; i += d->mc) {
                s.m = min64(d->mc, p->m - i);
                (p->trans_a ? x->pack_by_k : x->pack_by_row)(workspace, a_at(p, i, step), p->lda, s.m, s.k, x->mr);
                s.c = p->c + i * p->ldc + j;
                sweep(&s);
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

void rung_gemm_strip(const gemm_product *p, const gemm_plan *d, float *workspace)
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
