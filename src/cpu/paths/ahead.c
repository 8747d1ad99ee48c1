/* B in place, a panel of columns after the other, beside some rows of A. These, packed, all pass a panel while L1 has
 * it, and each tile asks for its share of the lines of a panel to come. */
#include "cpu/paths/paths.h"

/* Returns true where B is too large to come from L2, and its rows lie so far apart that the hardware does not fetch
 * what the next tile needs. Rows that lie close it also fetches from L3. */
static int is_far_apart(const rung_cpu_args *p)
{
    enum { COLUMNS = 500, L2_EIGHTHS = 3 };
    if (p->n >= COLUMNS)
        return b_bytes(p) * 8 > p->cpu->l2_bytes * L2_EIGHTHS;
    return b_bytes(p) > close_b_bytes(p);
}

/* Returns true where tiles would read a few floats of each step of a transposed A in place, and there are columns
 * enough to share what packing it costs. Where more rows share a packed B, both are packed. */
static int wants_packed_steps(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 20, ROWS_MOST = 2 * FEW, STEPS_LEAST = 150, COLUMNS = 200, COLUMNS_OF_MANY_ROWS = 120 };
    return p->trans_a && p->m >= ROWS_LEAST && p->m <= ROWS_MOST && p->k >= STEPS_LEAST &&
           p->n >= (p->m > FEW ? COLUMNS_OF_MANY_ROWS : COLUMNS);
}

/* Returns true where a tile as wide as a vector, for which the processor takes two passes anyway, beats wider ones: B
 * is not in L2, L2 keeps the packed rows of A, and columns are many beside these. Such a tile loads a line of B and an
 * element of A for each row, so that its FMAs are all that takes time. Fewer rows beside a B whose rows lie close need
 * no packing. */
static int wants_panels_of_lines(const rung_cpu_args *p)
{
    enum { ROWS_MOST = 320, COLUMNS_LEAST = 160 };
    return halves_vectors(p) && p->m <= ROWS_MOST && p->n >= max64(COLUMNS_LEAST, p->m) && p->ldb % PAGE_FLOATS &&
           b_bytes(p) > p->cpu->l2_bytes / 2 && !rung_is_few_rows_close(p);
}

/* Returns true where an FMA takes no longer than usual, or B comes from memory. From nearer, where units are four
 * floats wide, packing both operands or reading B as a stream is a small share of the time; and long rows that begin
 * anywhere take up to twice the time by panels, why is not known. */
static int pays_beside_slow_sums(const rung_cpu_args *p)
{
    enum { L3_SIXTEENTHS = 9, ROWS_MOST = 32, L3_PARTS_OF_MORE_ROWS = 2, ROWS_MOST_OF_LARGE = 48 };
    enum { FLOATS_ALIGNED = 4, LDB_MOST = 8192 };
    if (!p->cpu->units_of_four)
        return 1;
    int is_large = b_bytes(p) > L3_PARTS_OF_MORE_ROWS * p->cpu->l3_bytes;
    return p->m <= (is_large ? ROWS_MOST_OF_LARGE : ROWS_MOST) && p->ldb % PAGE_FLOATS &&
           b_bytes(p) > p->cpu->l3_bytes / 16 * L3_SIXTEENTHS && (p->ldb % FLOATS_ALIGNED == 0 || p->ldb <= LDB_MOST);
}

/* Returns true where long rows of a B from memory, asked for as it streams, come sooner than panels of it, in each of
 * which a line lies in a page of its own. More rows pass the sums of a stream too often. */
static int streams_in_time(const rung_cpu_args *p)
{
    enum { ROWS_MOST = 18, COLUMNS_LEAST = 512, L3_QUARTERS = 3 };
    return p->cpu->asks_next_rows && p->m <= ROWS_MOST && p->n >= COLUMNS_LEAST &&
           b_bytes(p) > p->cpu->l3_bytes / 4 * L3_QUARTERS;
}

/* Returns how many rows pass a panel of B at least. Where vectors take two passes each six do, or five beside few
 * columns, once B is larger than L2 by far: what streams is stored and loaded again. Lines of long rows from memory
 * come sooner as a stream. */
static int fewest_rows(const rung_cpu_args *p)
{
    enum { ROWS = 9, ROWS_OF_HALVES = 6, COLUMNS_OF_FEWER = 1024, COLUMNS_OF_FAR = 1800, L2_PARTS = 2, L3_PARTS = 4 };
    int is_long = p->n > COLUMNS_OF_FAR && b_bytes(p) * L3_PARTS > p->cpu->l3_bytes;
    if (!halves_vectors(p) || b_bytes(p) <= L2_PARTS * p->cpu->l2_bytes || is_long)
        return ROWS;
    return p->n <= COLUMNS_OF_FEWER ? ROWS_OF_HALVES - 1 : ROWS_OF_HALVES;
}

/* Returns true for so few columns of so long a k that packing A takes longer than its rows are waited for. On a
 * processor that follows few rows at once that was not measured. */
static int is_better_in_pieces(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 16, COLUMNS_MOST = 128, STEPS_LEAST = 4096 };
    return !p->cpu->asks_next_rows && p->m >= ROWS_LEAST && p->n <= COLUMNS_MOST && rung_is_long_k_of(p, STEPS_LEAST);
}

/* Returns true where L3 is near and so many rows pass a B in place that a panel of it in L1 pays for packing them, and
 * so few that B need not be packed: fewer, where vectors lie across lines and columns are few, and fewer still, where
 * all steps share one set of L1. */
int rung_is_by_panels(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 40, ROWS_MOST = 112, ROWS_ACROSS_LINES = 48, ROWS_THAT_COLLIDE = 16 };
    enum { ROWS_BESIDE_LONG = 64, COLUMNS_OF_LONG = 300 };
    if (p->cpu->far_l3 || !p->kernel->ahead_rows || p->trans_b || p->k < STEPS_LEAST || p->m < fewest_rows(p) ||
        !pays_beside_slow_sums(p) || streams_in_time(p))
        return 0;
    if (!has_narrow_tiles(p))
        return wants_panels_of_lines(p);
    if (is_better_in_pieces(p))
        return 0;
    int across_lines = p->n >= COLUMNS_OF_LONG ? ROWS_BESIDE_LONG : ROWS_ACROSS_LINES;
    int most = p->ldb % PAGE_FLOATS == 0 ? ROWS_THAT_COLLIDE : b_has_whole_vectors(p) ? ROWS_MOST : across_lines;
    return p->m <= most && (is_far_apart(p) || wants_packed_steps(p));
}

/* Returns true where few rows beside a far B are better off otherwise: in place, if the hardware and the tiles bring in
 * time what comes next, or with a B that streams, if its rows lie very far apart. */
static int is_better_unpacked(const rung_cpu_args *p)
{
    enum { ROWS_OF_TILES = 9, LDB_IN_TIME = 760, LDB_MOST = 2900, LDB_OF_STREAM = 1100, L2_PARTS_OF_STREAM = 2 };
    if (p->ldb > LDB_MOST)
        return 1;
    if (!steps_collide(p))
        return p->m >= ROWS_OF_TILES && next_group_comes_in_time(p, LDB_IN_TIME);
    return p->ldb > LDB_OF_STREAM ? b_bytes(p) <= L2_PARTS_OF_STREAM * p->cpu->l2_bytes
                                  : p->m >= ROWS_OF_TILES && p->ldb <= LDB_IN_TIME;
}

/* Returns true where packed rows that pass panels of a B in place pay, and L3 is far. They do until packing B as well
 * costs a small share of the time, or pieces of panels that collide pass over C too often. */
static int pays_from_afar(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 40, ROWS_LEAST = 6, ROWS_MOST = 96, ROWS_MOST_OF_TURNED = 64, ROWS_MOST_THAT_COLLIDE = 48 };
    enum { LDB_IN_TIME_OF_MANY = 500, LDB_THAT_COLLIDES = 800, ROWS_OF_PACKED_B = 64, COLUMNS_OF_PACKED_B = 300 };
    enum { EIGHTHS_LEAST = 3, EIGHTHS_LEAST_OF_PACKED_B = 2, EIGHTHS_MOST = 64 }; /* of L2: B's size */
    if (!has_narrow_tiles(p) || !p->kernel->ahead_rows || p->trans_b || p->k < STEPS_LEAST || p->m < ROWS_LEAST)
        return 0;
    int64_t eighths = b_bytes(p) * 8 / p->cpu->l2_bytes;
    int most = p->trans_a ? ROWS_MOST_OF_TURNED : steps_collide(p) ? ROWS_MOST_THAT_COLLIDE : ROWS_MOST;
    if (p->m > most || eighths >= EIGHTHS_MOST || p->ldb % PAGE_FLOATS == 0)
        return 0;
    if (p->m >= ROWS_OF_PACKED_B)
        return eighths >= EIGHTHS_LEAST_OF_PACKED_B && p->n >= COLUMNS_OF_PACKED_B;
    return eighths >= EIGHTHS_LEAST &&
           (p->m < FEW ? !is_better_unpacked(p)
                       : p->ldb > (steps_collide(p) ? LDB_THAT_COLLIDES : LDB_IN_TIME_OF_MANY));
}

static int is_by_panels(const rung_cpu_args *p)
{
    return p->cpu->far_l3 ? pays_from_afar(p) : rung_is_by_panels(p);
}

/* Returns the steps of a panel, at most. From afar few rows do with so few that the hardware still follows B's rows;
 * and what collides must be few. */
static int64_t panel_steps(const rung_cpu_args *p)
{
    enum { STEPS_THAT_COLLIDE = 64 };
    if (!p->cpu->far_l3)
        return PANEL_STEPS;
    return p->m < FEW ? STEPS_FOLLOWED : steps_collide(p) ? STEPS_THAT_COLLIDE : PANEL_STEPS;
}

/* Threads share out columns, or pieces of k where columns are few. */
static void plan_ahead(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { COLUMNS_OF_PARTS = 768 };
    plan->path = PATH_AHEAD;
    plan->split_m = 0;
    plan->kc = even_block(p->k, panel_steps(p), 8);
    if (p->n < COLUMNS_OF_PARTS)
        plan->parts = pieces_of_few_columns(p->k);
}

const gemm_rule rung_rule_by_panels = {"is_by_panels", is_by_panels, plan_ahead};

int64_t rung_ahead_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)columns;
    return p->m * plan->kc + RUNG_PACK_SLACK;
}

static void pack_rows(const rung_cpu_args *p, int64_t step, int64_t k, row_tiles by, float *to)
{
    rung_pack_fn pack = p->trans_a ? p->kernel->pack_by_k : p->kernel->pack_by_row;
    for (int64_t t = 0, row = 0, rows; t < by.count; t++, row += rows) {
        rows = by.least + (t < by.higher);
        pack(to + row * k, a_at(p, row, step), p->lda, rows, k, (int)rows);
    }
}

/* Adds k steps to a panel of C from column j on. ask: the first of the lines to ask for, one a step; a tile asks for a
 * quarter of them, for more where there are few tiles. */
static void run_panel(const block *s, row_tiles by, int64_t j, const float *ask)
{
    enum { QUARTERS = 4 };
    const rung_cpu_kernel *kernel = s->kernel;
    int64_t width = min64(RUNG_AHEAD_COLUMNS, s->n - j), vectors = divide_up(width, kernel->vl);
    int64_t quarters = by.count >= QUARTERS ? 1 : by.count > 1 ? 2 : QUARTERS;
    int64_t share = divide_up(s->k * quarters, QUARTERS);
    rung_tile_out out = s->out;
    out.lanes = out.b_lanes = (int)(width - (vectors - 1) * kernel->vl);
    for (int64_t t = 0, row = 0, rows; t < by.count; t++, row += rows) {
        rows = by.least + (t < by.higher);
        const float *a = s->a + row * s->k;
        float *c = s->c + row * out.ldc + j;
        if (width == RUNG_AHEAD_COLUMNS)
            kernel->ahead[rows - 1](s->k, a, s->b + j, s->ldb, c, &out, ask + t * share * s->ldb,
                                    t * share < s->k ? (int)quarters : 0);
        else
            kernel->tile[RUNG_A_BY_K][vectors - 1][rows - 1](s->k, a, rows, s->b + j, s->ldb, c, &out);
    }
}

void rung_ahead_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    enum { PANELS_AHEAD = 2 }; /* the next one would come too late */
    row_tiles by = tile_rows(p->m, p->kernel->ahead_rows);
    int64_t behind = round_up(p->n, RUNG_AHEAD_COLUMNS);
    block s = {.kernel = p->kernel, .n = p->n, .a = workspace, .ldb = p->ldb, .c = p->c, .out = {.ldc = p->ldc}};
    for (int64_t step = 0; step < p->k; step += plan->kc) {
        s.k = min64(plan->kc, p->k - step);
        s.b = b_at(p, step, 0);
        set_beta(&s, p, step);
        s.out.ask_c |= p->cpu->far_l3;
        pack_rows(p, step, s.k, by, workspace);
        for (int64_t j = 0; j < p->n; j += RUNG_AHEAD_COLUMNS) {
            int64_t next = j + PANELS_AHEAD * RUNG_AHEAD_COLUMNS;
            run_panel(&s, by, j, next < p->n ? s.b + next : s.b + s.k * p->ldb + max64(next - behind, 0));
        }
    }
}
