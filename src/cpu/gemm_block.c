/* The sweep: which tile goes where in a block of C. */
#include "cpu/gemm_block.h"
#include "core/status.h"

/* Fetches rows of A into L2. In L1 rows that lie a power of two apart would push each other out. */
static void fetch_a(const block *s, int64_t row, int64_t rows)
{
    for (int64_t i = row; i < min64(row + rows, s->fetch_rows); i++)
        for (int64_t p = 0; p < s->k; p += 16)
            __builtin_prefetch(s->a + i * s->lda + p, 0, 2);
}

/* Tells the next tile which raw operands to ask for, if it is time for that. */
static int fetch_ahead(ahead *next, int64_t k, rung_fetch *fetch)
{
    if (next->wait-- > 0 || next->now == next->count)
        return 0;
    const raw_rows *raw = &next->of[next->now];
    const float *row = raw->at + next->chunk / raw->row_chunks * raw->ld;
    *fetch = (rung_fetch){.at = row + next->chunk % raw->row_chunks * RUNG_FETCH_FLOATS,
                          .end = row + raw->floats,
                          .gap = raw->ld - raw->floats,
                          .ld = raw->ld};
    next->chunk += k / RUNG_FETCH_STEPS;
    if (next->chunk >= raw->chunks) {
        next->now++;
        next->chunk = 0;
    }
    return 1;
}

/* Says what the t-th tile of a group of so many columns asks for, which has these rows. */
static void ask(const block *s, int columns, int64_t t, int64_t row, int64_t rows, int64_t ldb, rung_tile_out *out)
{
    enum { STEPS_BELOW = 8, ROWS_AFTER = 24 };
    if (s->asks == ASKS_OF_A) { /* a line is asked for by the first of some tiles whose rows come that near to it */
        int64_t before = row + ROWS_AFTER, after = before + rows;
        out->asks = before / LINE_FLOATS == after / LINE_FLOATS ? RUNG_ASK_NOTHING : RUNG_ASK_A;
        out->ask_at = ROWS_AFTER + rows;
        return;
    }
    int has_lines_left = t <= columns / LINE_FLOATS; /* rows of B lie in a line more */
    if (s->asks == ASKS_AFTER || s->asks == ASKS_AFTER_INTO_L1) {
        int kind = s->asks == ASKS_AFTER ? RUNG_ASK_LINE : RUNG_ASK_VECTORS; /* a narrow tile's are a line */
        out->asks = has_lines_left ? kind : RUNG_ASK_NOTHING;
        out->ask_at = columns + t * LINE_FLOATS;
    } else {
        out->asks = s->asks == ASKS_BELOW ? RUNG_ASK_VECTORS : RUNG_ASK_NOTHING;
        out->ask_at = STEPS_BELOW * ldb;
    }
}

/* Returns whether tiles go in turn: all their vectors are in use, they ask for nothing but C and have one sum each.
 * With a long k there is little to gain, and a compiler's loop over tiles takes registers from the loop over steps. */
static int go_in_turn(const block *s, const rung_cpu_kernel *kernel, const rung_tile_out *out)
{
    enum { STEPS_MOST = 96 };
    int is_whole = out->b_lanes == kernel->vl && out->lanes == kernel->vl;
    return (s->k <= STEPS_MOST || kernel->runs_fetch) && is_whole && s->asks == ASKS_NOTHING && !s->fetch_rows &&
           !s->four_sums;
}

/* Returns the most rows of A in place that a tile of `nv` vectors takes. */
static int64_t rows_of_tile(const block *s, const rung_cpu_kernel *kernel, int nv)
{
    int most = kernel->max_rows[nv - 1];
    return s->rows_most && s->rows_most < most ? s->rows_most : most;
}

/* Returns how many of so many whole tiles with A packed go in turn: those before one that asks for raw operands. */
static int64_t packed_in_turn(const block *s, const rung_cpu_kernel *kernel, int64_t tiles, const rung_tile_out *out)
{
    if (!kernel->runs_fetch || out->lanes != kernel->vl)
        return 1;
    return s->next && s->next->now < s->next->count ? min64(tiles, s->next->wait) : tiles;
}

/* Computes all rows of one group of `nv` vectors of columns, with A packed. While tiles run, they ask for raw operands,
 * or for their part of the next group of B. */
static void sweep_packed_rows(const block *s, const rung_cpu_kernel *kernel, const float *b, int64_t ldb, float *c,
                              int nv, rung_tile_out *out)
{
    int64_t mr = s->kernel->mr, tiles = divide_up(s->m, mr);
    const float *after = b + s->k * nv * kernel->vl;
    int64_t part = round_up(divide_up(s->k * nv * kernel->vl, tiles), RUNG_FETCH_FLOATS);
    for (int64_t t = 0, alike; t < tiles; t += alike) {
        int64_t i = t * mr, rows = min64(s->m - i, mr), whole = (s->m - i) / mr;
        const float *a = s->a + i * s->k, *next = after + t * part;
        float *to = c + i * out->ldc;
        alike = max64(packed_in_turn(s, kernel, whole, out), 1);
        if (alike > 1) {
            rung_tile_run run = {.count = alike, .a_next = mr * s->k, .c_next = mr * out->ldc};
            out->fetch = (rung_fetch){.at = next, .end = after + tiles * part, .gap = -tiles * part};
            if (s->next)
                s->next->wait -= alike;
            kernel->run[s->kind][nv - 1][mr - 1](&run, s->k, a, mr, b, ldb, to, out);
            continue;
        }
        if (kernel != s->kernel)
            out->fetch = (rung_fetch){0};
        else if (!s->next || !fetch_ahead(s->next, s->k, &out->fetch))
            out->fetch = (rung_fetch){.at = next, .end = next + part, .gap = -part};
        kernel->tile[s->kind][nv - 1][rows - 1](s->k, a, mr, b, ldb, to, out);
    }
}

/* The same with A in place. Tiles of as many rows go in turn, unless they ask for B, or for A's next rows. */
static void sweep_rows(const block *s, const rung_cpu_kernel *kernel, row_tiles by, const float *b, int64_t ldb,
                       float *c, int nv, rung_tile_out *out)
{
    int64_t row_step = s->kind == RUNG_A_BY_ROW ? s->lda : 1, i = 0;
    int in_turn = go_in_turn(s, kernel, out);
    for (int64_t t = 0; t < by.count;) {
        int64_t rows = by.least + (t < by.higher), alike = (t < by.higher ? by.higher : by.count) - t;
        const float *a = s->a + i * row_step;
        if (in_turn && alike > 1) {
            rung_tile_run run = {.count = alike, .a_next = rows * row_step, .c_next = rows * out->ldc};
            kernel->run[s->kind][nv - 1][rows - 1](&run, s->k, a, s->lda, b, ldb, c + i * out->ldc, out);
        } else {
            alike = 1;
            if (s->fetch_rows)
                fetch_a(s, i + rows, rows);
            ask(s, nv * kernel->vl, t, i, rows, ldb, out);
            tile_of(kernel, s->kind, nv, rows, s->k, s->four_sums)(s->k, a, s->lda, b, ldb, c + i * out->ldc, out);
        }
        i += alike * rows;
        t += alike;
    }
}

/* Returns how many groups from `group` on, which is wholly in use, are as wide and wholly in use as well. */
static int64_t groups_alike(const block *s, const grouping *by, int64_t group, int64_t end, int64_t column)
{
    int64_t width = (int64_t)group_vectors(by, group) * s->kernel->vl, whole = by->groups - by->tail;
    if (is_tail(by, group))
        return 1;
    int64_t alike = min64(group < by->wide ? by->wide : whole, end) - group;
    return column + alike * width > s->n ? alike - 1 : alike;
}

void rung_gemm_sweep_groups(block *s, const grouping *by, int64_t first, int64_t count)
{
    int vl = s->kernel->vl, past = s->out.past;
    int64_t j = 0, end = first + count, alike;
    rung_tile_out *out = &s->out;
    row_tiles rows = {0};
    int64_t most = 0, rows_most; /* of the group before: to divide takes as long as a step or two */
    for (int64_t g = first; g < end; g += alike) {
        int nv = group_vectors(by, g);
        const rung_cpu_kernel *kernel = is_tail(by, g) ? s->tail : s->kernel;
        int64_t width = min64((int64_t)nv * vl, s->n - j), ldb = s->packed_b ? (int64_t)nv * vl : s->ldb;
        const float *b = s->b + (s->packed_b ? j * s->k : j);
        float *c = s->c + j;
        out->lanes = (int)(width - (int64_t)(nv - 1) * vl);
        out->b_lanes = s->packed_b ? kernel->vl : out->lanes;
        out->past = past && out->lanes == vl;
        alike = 1;
        if (s->packed_a) {
            sweep_packed_rows(s, kernel, b, ldb, c, nv, out);
        } else if (s->m > (rows_most = rows_of_tile(s, kernel, nv))) {
            if (rows_most != most)
                rows = tile_rows(s->m, most = rows_most);
            sweep_rows(s, kernel, rows, b, ldb, c, nv, out);
        } else if (go_in_turn(s, kernel, out)) { /* one tile each of the groups that are as wide */
            alike = groups_alike(s, by, g, end, j);
            rung_tile_run run = {.count = alike, .b_next = s->packed_b ? s->k * width : width, .c_next = width};
            kernel->run[s->kind][nv - 1][s->m - 1](&run, s->k, s->a, s->lda, b, ldb, c, out);
        } else {
            if (s->fetch_rows)
                fetch_a(s, s->m, s->m);
            ask(s, nv * kernel->vl, 0, 0, s->m, ldb, out);
            tile_of(kernel, s->kind, nv, s->m, s->k, s->four_sums)(s->k, s->a, s->lda, b, ldb, c, out);
        }
        j += alike * width;
    }
    out->past = past;
}

void rung_gemm_sweep(block *s)
{
    grouping by = group_columns(s->m, s->n, s->kernel, s->tail, s->most);
    rung_gemm_sweep_groups(s, &by, 0, by.groups);
}

/* Packs one panel a group, in the order in which the sweep visits them. */
void rung_gemm_pack_b(const rung_cpu_args *p, int64_t step, int64_t column, int64_t k, int64_t n, const grouping *by,
                      int64_t first, int64_t count, float *to)
{
    rung_pack_fn pack = p->trans_b ? p->kernel->pack_by_row : p->kernel->pack_by_k;
    int vl = p->kernel->vl;
    int64_t start = group_start(by, first, vl);
    int64_t end = first + count, whole = by->groups - by->tail;
    int64_t bounds[] = {first, max64(first, min64(by->wide, end)), max64(first, min64(whole, end)), end};
    for (int part = 0; part < 3; part++) { /* the wide groups, the others, the tail */
        int64_t from = group_start(by, bounds[part], vl), to_column = min64(group_start(by, bounds[part + 1], vl), n);
        if (bounds[part + 1] > bounds[part])
            pack(to + (from - start) * k, b_at(p, step, column + from), p->ldb, to_column - from, k,
                 group_vectors(by, bounds[part]) * vl);
    }
}

void rung_gemm_finish(const rung_cpu_args *p, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    if (!p->bias_kind && !p->activation)
        return;
    const float *by_row = p->bias_kind == RUNG_BIAS_PER_ROW ? p->bias + row : NULL;
    const float *by_column = p->bias_kind == RUNG_BIAS_PER_COLUMN ? p->bias + column : NULL;
    p->kernel->finish(p->c + row * p->ldc + column, p->ldc, rows, columns, by_row, by_column, (int)p->activation);
}

rung_status rung_gemm_reserve(const rung_cpu_args *p, int threads, int64_t floats, int64_t of_caller)
{
    if ((floats <= 0 || rung_pool_reserve(p->pool, threads, floats)) &&
        (of_caller <= floats || rung_pool_reserve(p->pool, 1, of_caller)))
        return RUNG_SUCCESS;
    return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for packing: %d times %lld bytes", threads,
                     (long long)of_caller * (long long)sizeof(float));
}
