/* The transposed product, op(B)' op(A)', whose vectors run along the long operand as it lies; then C is turned. */
#include "cpu/paths/paths.h"

/* Returns true where the rows of C fill a line as columns of the transposed product, which then reads a transposed B in
 * place. That takes less time than packing B for so few rows, once k is long enough for turning C. */
static int fills_lanes_transposed(const rung_cpu_args *p)
{
    enum { LANES_LEAST = 13, STEPS_LEAST = 48 };
    return p->trans_b && p->m >= LANES_LEAST && p->m <= LINE_FLOATS && p->n > 2 * FEW && p->k >= STEPS_LEAST;
}

/* Returns true where the rows of C fill lines as columns of the transposed product, but for a few that go as dot
 * products there. Beside a packed B such rows would take a tile more, of as many steps. */
static int fills_lines_but_few(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 64, STEPS_LEAST_OF_MORE = 128, ROWS_OF_ONE_LINE = LINE_FLOATS + 4 };
    if (!p->trans_b || !sums_as_lines(p) || p->cpu->three_loads || p->cpu->far_l3 || p->m <= LINE_FLOATS ||
        p->m > FEW || p->n <= 2 * FEW || p->k < (p->m > ROWS_OF_ONE_LINE ? STEPS_LEAST_OF_MORE : STEPS_LEAST))
        return 0;
    const rung_cpu_args t = transposed(p);
    return last_as_dots(&t) > 0;
}

/* Returns true where a transposed A is the B of the transposed product and stays in place, some steps at a time: L1 has
 * their lines for all of its rows, and while the first tiles sum, the next ones come. That pays where A is a good part
 * of L2, more of it where more columns share what packing it costs. From memory few columns are better off where A
 * streams. */
static int wants_runs_of_a(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 128, COLUMNS_LEAST = 10, COLUMNS_THAT_COLLIDE = 48, LDA_MOST_OF_FEW_TILES = 520 };
    if (!p->cpu->far_l3 || !p->trans_a || p->k < STEPS_LEAST || p->m <= 4 * FEW ||
        p->n > (has_narrow_tiles(p) ? 3 * FEW : 4 * FEW))
        return 0;
    const rung_cpu_args t = transposed(p);
    if (p->n <= FEW && !next_group_comes_in_time(&t, LDA_MOST_OF_FEW_TILES))
        return 0;
    if (a_bytes(p) > p->cpu->l3_bytes)
        return p->n > (p->lda % PAGE_FLOATS ? FEW : COLUMNS_THAT_COLLIDE);
    return p->n >= COLUMNS_LEAST && a_bytes(p) * 5 > p->cpu->l2_bytes * (p->n > 2 * FEW ? 2 : 1);
}

/* Returns true where some columns pass a transposed A panel by panel, as paths/ahead.c has it, and it comes from L3 or
 * memory: by itself, or packed, it would be waited for. */
static int wants_panels_of_a(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 128, L2_PARTS = 2, COLUMNS_MOST = 2 * FEW, COLUMNS_MOST_OF_HALVED = 5 * FEW };
    int is_halved = halves_vectors(p);
    if (!p->trans_a || p->k < STEPS_LEAST || p->n > (is_halved ? COLUMNS_MOST_OF_HALVED : COLUMNS_MOST) ||
        (!is_halved && a_bytes(p) <= L2_PARTS * p->cpu->l2_bytes))
        return 0;
    const rung_cpu_args t = transposed(p);
    return rung_is_by_panels(&t);
}

/* Returns true where reading a transposed B as it lies, as the transposed product's A, and turning C takes less time
 * than packing B. Time is counted in eighths of a vector's FMA, for a column and a step: tiles as wide as C has rows
 * leave lanes of their last vector empty, unless these rows go as dot products. */
static int is_cheaper_turning_c(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 9, ROWS_MOST = 4 * FEW, ROWS_MOST_OF_HALVED = 2 * FEW, ROWS_AS_DOTS = 4 };
    enum { STEPS_LEAST = 48, STEPS_LEAST_OF_HALVED = 64, TURN = 8, PACK = 6 };
    int is_halved = halves_vectors(p), may_turn = is_halved || (p->cpu->three_loads && !p->trans_a);
    int64_t steps = is_halved ? STEPS_LEAST_OF_HALVED : STEPS_LEAST;
    if (!may_turn || !p->trans_b || p->n <= 2 * FEW || p->k < steps || p->m < ROWS_LEAST ||
        p->m > (is_halved ? ROWS_MOST_OF_HALVED : ROWS_MOST))
        return 0;
    int64_t rest = p->m & (p->kernel->vl - 1), vectors = p->m >> p->kernel->vl_bits;
    int64_t turned = (8 * vectors + (rest > ROWS_AS_DOTS ? 8 : rest)) * p->k + TURN * p->m;
    int64_t packed = 8 * p->m * p->k / p->kernel->vl + PACK * p->k;
    return turned * 16 <= packed * 15;
}

/* Returns true where L3 is near, columns leave lanes of a tile's only vector empty, and there are steps enough to pay
 * for turning C. Such tiles load a float for each FMA, so that it pays as soon as A is not in L1. */
static int is_one_vector(const rung_cpu_args *p)
{
    enum { LANES = 8, STEPS_LEAST = 48, L1_PARTS = 2 };
    enum { COLUMNS_OF_FEW = 6, STEPS_OF_FEW = 11, STEPS_OF_SHORT_ROWS = 30 };
    if (p->cpu->far_l3 || p->n > LANES)
        return 0;
    if (!has_short_rows(p))
        return p->k >= STEPS_LEAST && a_bytes(p) > L1_PARTS * p->cpu->l1_bytes;
    if (p->n <= COLUMNS_OF_FEW)
        return p->k >= STEPS_OF_FEW && a_bytes(p) > p->cpu->l1_bytes;
    return p->k >= STEPS_OF_SHORT_ROWS && a_bytes(p) > L1_PARTS * p->cpu->l1_bytes;
}

/* Returns true where L3 is far and columns fill a narrow tile's only vector: a load for each FMA, too, and in the
 * transposed product B comes in runs. */
static int is_one_vector_of_far(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 80 };
    return p->cpu->far_l3 && has_narrow_tiles(p) && p->n == p->kernel->vl && p->k >= STEPS_LEAST;
}

/* Returns the long operand where few rows, or few columns, go as the transposed product, whose vectors run along that
 * operand as it lies. Turning the result costs some steps of k, more where other tiles would leave no lanes empty. */
static gemm_side transposed_side(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 256, STEPS_LEAST_OF_LINES = 128, STEPS_LEAST_BESIDE_PACKED = 64 };
    enum { L2_PARTS = 4, L2_PART_OF_FAR_L3 = 3, L2_PART_BESIDE_PACKED = 8 };
    int64_t steps = p->m % LINE_FLOATS ? STEPS_LEAST : STEPS_LEAST_OF_LINES;
    if ((p->trans_b && p->m <= FEW && p->n > 4 * FEW && p->k >= steps) || fills_lanes_transposed(p) ||
        fills_lines_but_few(p) || reads_both_transposed(p) || is_cheaper_turning_c(p))
        return SIDE_B;
    int is_narrow = p->n <= (p->cpu->far_l3 ? 2 * FEW : FEW);
    int is_in_l2 = max64(p->m, p->n) * p->k * 4 <= p->cpu->l2_bytes / 2;
    if (((is_narrow || is_in_l2) && is_cheaper_transposed(p)) || wants_runs_of_a(p) || wants_panels_of_a(p))
        return SIDE_A;
    int packs_b = p->cpu->far_l3 && has_narrow_tiles(p) && p->trans_b && p->k >= STEPS_LEAST_BESIDE_PACKED;
    int64_t near_bytes = packs_b          ? p->cpu->l2_bytes / L2_PART_BESIDE_PACKED
                         : p->cpu->far_l3 ? p->cpu->l2_bytes / L2_PART_OF_FAR_L3
                                          : L2_PARTS * p->cpu->l2_bytes;
    int is_long = p->trans_a && p->m > 4 * FEW && p->n <= (packs_b ? 2 * FEW : FEW);
    return is_long && (a_bytes(p) > near_bytes || is_one_vector(p) || is_one_vector_of_far(p)) ? SIDE_A : SIDE_NONE;
}

static int has_transposed_side(const rung_cpu_args *p)
{
    return transposed_side(p) != SIDE_NONE;
}

/* Returns how many columns of a transposed product are computed before they are written out. Many rows pass the same
 * cache lines of the long operand more often, so that longer runs of it pay; few rows have sums enough in L1 with 512.
 * From memory long runs are what the hardware's prefetchers want. */
static int64_t strip_length(const rung_cpu_args *p)
{
    enum { L3_SHARE = 8 };
    if (max64(p->m, p->n) * p->k * 4 > p->cpu->l3_bytes / L3_SHARE)
        return 2048;
    return min64(p->m, p->n) > 16 ? 1024 : 512;
}

/* Returns the length of a row of such a strip. Where A is the long operand rows begin in different cache sets. */
static int64_t strip_ld(const rung_cpu_args *p, const gemm_plan *plan)
{
    return plan->of_b ? p->m : round_up(min64(strip_length(p), p->m), LINE_FLOATS) + LINE_FLOATS;
}

/* Returns the floats of such a strip. */
static int64_t strip_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    int64_t rows = plan->of_b ? strip_length(p) : p->n;
    return round_up(rows * strip_ld(p, plan), LINE_FLOATS);
}

static void plan_transposed(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { COLUMNS_IN_ONE_TILE = 6 };
    const rung_cpu_args t = transposed(p);
    int in_runs = wants_runs_of_a(p);
    plan->path = PATH_TRANSPOSED;
    plan->of_b = transposed_side(p) == SIDE_B;
    plan->split_m = !plan->of_b;
    plan->mc = plan->rows_most = p->kernel->mr;
    plan->nc = rung_stream_columns(p->n, panel_columns(p->kernel), p->cpu);
    int is_of_a = !plan->of_b && !in_runs, by_panels = is_of_a && rung_is_by_panels(&t);
    int from_l3 = is_of_a && p->n <= COLUMNS_IN_ONE_TILE && rung_is_few_rows_from_l3(&t);
    int is_close = a_bytes(p) <= p->cpu->l2_bytes / 2 || (is_of_a && sums_as_lines(p) && rung_is_few_rows_close(&t));
    int streams = is_small_row_that_streams(&t) || (is_of_a && is_few_rows_apart(&t));
    plan->inner = (in_runs || from_l3 || is_close) && !streams ? PATH_DIRECT : PATH_STREAM;
    if (by_panels)
        plan->inner = PATH_AHEAD;
    if (by_panels || from_l3)
        plan->kc = even_block(p->k, PANEL_STEPS, 8);
    if (!plan->of_b && in_runs)
        plan->kc = even_block(p->k, RUN_STEPS, 8);
    if (plan->inner == PATH_DIRECT) {
        plan->asks = in_runs && has_narrow_tiles(p) ? ASKS_AFTER : rung_choose_asks(&t);
        plan->four_sums = wants_four_sums(&t);
        plan->most = vectors_in_place(p->kernel, t.m, min64(t.n, strip_length(p)));
        int64_t runs = p->cpu->far_l3 && !in_runs ? rung_run_steps(&t) : 0;
        int64_t steps = runs ? runs : rung_steps_across_lines(&t, plan->most);
        if (steps)
            plan->kc = even_block(p->k, min64(plan->kc, steps), 8);
    }
    if (plan->of_b)
        rung_plan_last(&t, plan);
}

const gemm_rule rung_rule_transposed = {"has_transposed_side", has_transposed_side, plan_transposed};

/* A strip of the result comes first, then what the path that computes it needs. */
int64_t rung_transposed_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)columns;
    int64_t few = plan->of_b ? p->m : p->n, strip = strip_length(p);
    rung_cpu_args stream = {.kernel = p->kernel, .m = few, .n = strip};
    int64_t sums = rung_stream_floats(&stream, plan, strip) - 2 * RUNG_PACK_SLACK;
    int64_t rows = p->k <= RUNG_RANK_STEPS ? rung_gemm_rank_floats(p, strip) : 0;
    const rung_cpu_args t = transposed(p);
    int64_t packed_a = plan->of_b ? 0 : p->n * plan->kc, last = rung_last_floats(&t, plan->last);
    int64_t packed_b = min64(plan->kc, p->k) * round_up(few, panel_columns(p->kernel)) + 2 * RUNG_PACK_SLACK;
    return strip_floats(p, plan) + max64(max64(packed_b + last, sums), max64(rows, packed_a)) + 2 * RUNG_PACK_SLACK;
}

/* Computes (op(A) op(B))' = op(B)' op(A)', so that the vectors run along the rows of the long operand as they lie in
 * memory. The result goes through a strip that stays in L2. */
void rung_transposed_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_cpu_args t = transposed(p);
    t.c = workspace;
    t.beta = 0.0f;
    int64_t strip = strip_length(p);
    int columns = !plan->of_b; /* the long operand is A: its m becomes the columns */
    float *rest = workspace + strip_floats(p, plan);
    t.ldc = strip_ld(p, plan);
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
        else if (columns && plan->inner == PATH_AHEAD)
            rung_ahead_run(&t, plan, rest);
        else if (columns && plan->inner == PATH_DIRECT)
            rung_in_place_run(&t, plan, NULL);
        else if (columns)
            rung_stream_run(&t, plan, rest);
        else
            rung_pack_b_run(&t, plan, rest);
        if (columns)
            narrow_of(p->kernel)->turn(p->c + at * p->ldc, p->ldc, workspace, t.ldc, now, p->n, p->beta);
        else
            narrow_of(p->kernel)->turn(p->c + at, p->ldc, workspace, t.ldc, p->m, now, p->beta);
    }
}
