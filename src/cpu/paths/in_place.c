/* Operands in place: small ones, and few rows whose B comes in runs of steps and is asked for before its turn. */
#include "cpu/paths/paths.h"

enum { CLOSE_LDB_MOST = 512 };
enum { ROWS_OF_MANY_TILES = 27 }; /* rows whose first tiles ask for all that comes next, before it is needed */

/* Returns true where a transposed A stays in place beside a C so small that runs of a few steps pass over it in little
 * time: L1 then has the lines of a run for all tiles of a group. Where two vectors are loaded a cycle C is smaller
 * still, and B's rows lie close, so that it need not be packed either: the less so, the more of its vectors lie across
 * two lines. */
int rung_is_small_c_in_runs(const rung_cpu_args *p)
{
    enum { L2_PARTS = 5, STEPS_LEAST = 160, STEPS_LEAST_OF_TWO_LOADS = 250 };
    enum { ROWS_LEAST = 17, ROWS_MOST = 160, COLUMNS_LEAST = 16, COLUMNS_MOST = 112, ELEMENTS_LEAST = 600 };
    enum { ELEMENTS_MOST_ACROSS_LINES = 4096 };
    if (!has_narrow_tiles(p) || !p->trans_a)
        return 0;
    if (p->cpu->three_loads)
        return p->k >= STEPS_LEAST && p->m * p->n * 4 * L2_PARTS <= p->cpu->l2_bytes;
    return !p->trans_b && p->k >= STEPS_LEAST_OF_TWO_LOADS && p->m >= ROWS_LEAST && p->m <= ROWS_MOST &&
           p->n >= COLUMNS_LEAST && p->n <= COLUMNS_MOST && p->m * p->n >= ELEMENTS_LEAST && p->ldb < CLOSE_LDB_MOST &&
           (p->m * p->n <= ELEMENTS_MOST_ACROSS_LINES || b_has_whole_vectors(p));
}

/* Returns the same where L2 does not hold half of A: elsewhere than where two vectors are loaded a cycle other rules
 * come first. */
static int is_small_c_in_runs(const rung_cpu_args *p)
{
    return !p->cpu->three_loads && rung_is_small_c_in_runs(p);
}

/* Returns true where narrow tiles gain nothing from a packed B, however many rows share it: its rows lie close, so that
 * they neither collide nor leave the hardware's prefetchers behind, and a line that is read twice costs nothing where
 * three vectors are loaded a cycle. In place the last few columns go as dot products. */
int rung_is_narrow_b_close(const rung_cpu_args *p)
{
    enum { COLUMNS_MOST = 256, COLUMNS_MOST_OF_LARGE_A = 2 * FEW, L2_PARTS = 2 };
    if (!p->cpu->three_loads || !has_narrow_tiles(p) || p->trans_a || p->trans_b || p->ldb > CLOSE_LDB_MOST ||
        b_bytes(p) > p->cpu->l2_bytes / 2)
        return 0;
    if (a_bytes(p) <= p->cpu->l2_bytes / 2)
        return p->n <= COLUMNS_MOST;
    int has_last = p->n <= p->kernel->vl || last_as_dots(p) > 0;
    return has_last && p->n <= COLUMNS_MOST_OF_LARGE_A && a_bytes(p) <= L2_PARTS * p->cpu->l2_bytes;
}

/* Returns true where tiles read B in place although it is large: while the tiles of one group sum, the first of them
 * ask for the next group's part. That takes less time than packing for few rows, or for a narrow C of some more. A
 * transposed A is read in parts of lines, again for each group. From memory few rows are better off where B streams. */
static int is_in_place_ahead(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 9, ROWS_MOST = 112, ROWS_MOST_OF_NARROW = 200, COLUMNS_OF_NARROW = 512 };
    enum { ROWS_ACROSS_LINES = 36, ROWS_ACROSS_LINES_OF_FEW_COLUMNS = 64, LDB_MOST_OF_FEW_TILES = 850 };
    int is_few = p->m < ROWS_OF_MANY_TILES, narrow = has_narrow_tiles(p);
    if (!p->cpu->far_l3 || p->trans_b || p->ldb % PAGE_FLOATS == 0 || p->m < ROWS_LEAST ||
        !next_group_comes_in_time(p, LDB_MOST_OF_FEW_TILES))
        return 0;
    if (is_few && b_bytes(p) > (narrow ? p->cpu->l3_bytes : p->cpu->l3_bytes / 2))
        return 0;
    int across = p->n <= COLUMNS_OF_NARROW ? ROWS_ACROSS_LINES_OF_FEW_COLUMNS : ROWS_ACROSS_LINES;
    if (narrow && p->m > across && !b_has_whole_lines(p))
        return 0;
    if (p->trans_a)
        return p->m <= 2 * FEW;
    return p->m <= ROWS_MOST || (p->m <= ROWS_MOST_OF_NARROW && p->n <= COLUMNS_OF_NARROW);
}

/* Returns true where so few rows read a B from L2 or L3 whose rows do not lie too far apart: in runs of steps its lines
 * come in time, and sums stay in registers. */
static int is_few_rows_in_runs(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 3, ROWS_MOST = 8, L2_PARTS = 8, LDB_MOST = 850, LDB_MOST_OF_NARROW = 512 };
    return p->cpu->far_l3 && !p->trans_b && p->m >= ROWS_LEAST && p->m <= ROWS_MOST && p->ldb % PAGE_FLOATS &&
           p->ldb <= (has_narrow_tiles(p) ? LDB_MOST_OF_NARROW : LDB_MOST) && b_bytes(p) <= L2_PARTS * p->cpu->l2_bytes;
}

/* Returns true where B's rows begin in the middle of lines, one after the other, but no vector lies across two. */
static int b_has_half_lines(const rung_cpu_args *p)
{
    return p->ldb % LINE_FLOATS == LINE_FLOATS / 2;
}

/* Returns true where five to eight rows read a B from an L3 at hand, and the hardware follows its rows: sums stay in
 * registers for a run of steps, where a B that streams has them stored and loaded again. Its rows lie close, or no
 * vector of it across two lines. Fewer rows have too few sums for tiles, and tiles of two leave lanes empty where
 * columns are few. Lines that are asked for a group ahead may come from further away, and let five rows keep up. */
int rung_is_few_rows_from_l3(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 5, ROWS_LEAST_UNASKED = 6, ROWS_MOST = 8 };
    enum { ROWS_OF_TWO_TILES = 7, COLUMNS_OF_TWO_TILES = 200, L3_PARTS = 16, L3_PARTS_OF_ASKED = 6 };
    if (p->cpu->far_l3 || !p->cpu->follows_rows || !has_narrow_tiles(p) || p->trans_b || p->m > ROWS_MOST ||
        b_bytes(p) <= p->cpu->l2_bytes / 2 || (p->ldb > CLOSE_LDB_MOST && !b_has_whole_vectors(p)))
        return 0;
    int in_one_tile = p->m < ROWS_OF_TWO_TILES, is_asked = in_one_tile && !b_has_half_lines(p);
    if (p->m < (is_asked ? ROWS_LEAST : ROWS_LEAST_UNASKED) ||
        b_bytes(p) * (is_asked ? L3_PARTS_OF_ASKED : L3_PARTS) > p->cpu->l3_bytes)
        return 0;
    return in_one_tile || (p->n >= COLUMNS_OF_TWO_TILES && p->ldb % PAGE_FLOATS);
}

/* Returns true where narrow tiles ask for a B in place, in runs, although it would fit L2: it may still come from L3,
 * whose lines the hardware does not bring for so many steps. Asked for in vain they cost a thirtieth of the time, where
 * steps collide a tenth. */
static int may_come_from_afar(const rung_cpu_args *p)
{
    enum {
        ROWS_LEAST = 9,
        ROWS_MOST = 2 * FEW,
        ROWS_MOST_THAT_COLLIDE = FEW,
        L2_PARTS = 32,
        L2_PARTS_THAT_COLLIDE = 12
    };
    int collide = steps_collide(p);
    return p->cpu->far_l3 && has_narrow_tiles(p) && !p->trans_b && p->k >= STEPS_FOLLOWED && p->m >= ROWS_LEAST &&
           p->m <= (collide ? ROWS_MOST_THAT_COLLIDE : ROWS_MOST) &&
           b_bytes(p) > p->cpu->l2_bytes / (collide ? L2_PARTS_THAT_COLLIDE : L2_PARTS);
}

/* Returns how many steps of k a B in place is read at a time, 0 for all that fit: so many that L1 has a group's lines
 * for all rows, while those of the next group are asked for. Many rows pass over C more often for that than it brings.
 * Few rows, and those of a transposed A, want shorter runs. */
int64_t rung_run_steps(const rung_cpu_args *p)
{
    enum {
        FEW_STEPS = 64,
        STEPS = 96,
        ROWS_LEAST = 3,
        ROWS_LEAST_OF_SMALL_C = 17,
        ROWS_MOST = 112,
        ROWS_MOST_OF_NARROW = 64
    };
    enum { L2_PARTS = 2, L2_PARTS_OF_MANY_COLUMNS = 4, L2_PARTS_OF_NARROW = 5, MANY_COLUMNS = 256 };
    int narrow = has_narrow_tiles(p);
    if (rung_is_small_c_in_runs(p) && p->m >= ROWS_LEAST_OF_SMALL_C)
        return !p->cpu->three_loads ? FEW_STEPS : steps_collide(p) && p->m <= FEW ? STEPS_FOLLOWED : RUN_STEPS;
    if (rung_is_few_rows_from_l3(p))
        return PANEL_STEPS;
    int parts = narrow ? L2_PARTS_OF_NARROW : p->n > MANY_COLUMNS ? L2_PARTS_OF_MANY_COLUMNS : L2_PARTS;
    int is_near = b_bytes(p) < p->cpu->l2_bytes / parts;
    if (is_near && may_come_from_afar(p))
        return steps_collide(p) ? STEPS_FOLLOWED : STEPS;
    if (!p->cpu->far_l3 || p->trans_b || is_near || p->m < ROWS_LEAST ||
        p->m > (narrow ? ROWS_MOST_OF_NARROW : ROWS_MOST))
        return 0;
    return p->m < ROWS_OF_MANY_TILES || p->trans_a ? FEW_STEPS : STEPS;
}

/* Returns whether narrow tiles may ask for a B in place: each vector lies in one line of it, A in runs, and there are
 * rows for two or three tiles, or for many. */
static int narrow_tiles_ask(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 9, ROWS_MOST_OF_FEW = 16 };
    int rows_ask = p->m >= ROWS_OF_MANY_TILES || (p->m >= ROWS_LEAST && p->m <= ROWS_MOST_OF_FEW);
    return rows_ask && !p->trans_a && b_has_whole_lines(p);
}

/* Chooses what tiles ask for of a B in place that is not at hand. Many rows, and those that go in runs, ask for the
 * next group's part; a few, over a long k, wait for their own. */
gemm_asks rung_choose_asks(const rung_cpu_args *p)
{
    enum { STEPS_OF_FEW = 128, FEW_ROWS = 3, FEW_ROWS_MOST = 8 };
    int in_runs = rung_run_steps(p) > 0;
    if (rung_is_few_rows_from_l3(p) && b_has_half_lines(p))
        return ASKS_BELOW;
    if (is_small_c_in_runs(p))
        return ASKS_NOTHING;
    if (in_runs && may_come_from_afar(p) && !steps_collide(p))
        return ASKS_AFTER_INTO_L1;
    if (in_runs && (has_narrow_tiles(p) || p->m > FEW_ROWS_MOST))
        return ASKS_AFTER;
    if (!p->cpu->far_l3 || b_bytes(p) <= p->cpu->l2_bytes / 8 || (has_narrow_tiles(p) && !narrow_tiles_ask(p)))
        return ASKS_NOTHING;
    if (p->m >= ROWS_OF_MANY_TILES)
        return ASKS_AFTER;
    return p->m >= FEW_ROWS && p->k >= STEPS_OF_FEW ? ASKS_BELOW : ASKS_NOTHING;
}

/* Returns true where tiles of whole lines can read B in place: one row of it follows the other closely. */
int rung_has_close_rows_b(const rung_cpu_args *p)
{
    return !p->trans_b && p->ldb <= CLOSE_LDB_MOST && !has_narrow_tiles(p);
}

/* Returns true where vectors take two passes each, so that one tile of five to eight rows gives lines of L2, and of L3
 * a little, time to come, however far apart B's rows lie. */
static int keeps_up_with_far_rows(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 5, ROWS_MOST = 8, L2_QUARTERS = 7 };
    return halves_vectors(p) && p->m >= ROWS_LEAST && p->m <= ROWS_MOST &&
           b_bytes(p) * 4 <= p->cpu->l2_bytes * L2_QUARTERS;
}

/* Returns true where few rows read a B in place whose rows lie close and that L2 holds, or L3 at hand: sums stay in
 * registers, where a B that streams has them stored and loaded again. Narrow tiles need more rows, closer together, or
 * a single row that is done in a pass or two over B, wherever that comes from; and where columns are few, or no vector
 * lies across two lines, B need not be packed for twice as many. */
int rung_is_few_rows_close(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 2, NARROW_ROWS_LEAST = 9, NARROW_ROWS_MOST = 64, NARROW_LDB_MOST = 511, PASSES = 2 };
    if (p->m == 1 && sums_as_lines(p) && p->ldb <= NARROW_LDB_MOST)
        return !p->trans_b && p->n <= PASSES * RUNG_TILE_MAX_VECTORS * p->kernel->vl && !is_row_that_streams(p);
    int takes_more = has_narrow_tiles(p) && !p->trans_a && (p->n <= FEW || b_has_whole_vectors(p));
    int64_t most = takes_more ? NARROW_ROWS_MOST : STREAM_ROWS;
    int is_close = p->m >= NARROW_ROWS_LEAST && p->ldb <= NARROW_LDB_MOST;
    if (!has_narrow_tiles(p))
        is_close = p->m >= ROWS_LEAST && (p->ldb <= CLOSE_LDB_MOST || keeps_up_with_far_rows(p));
    return is_close && !p->trans_b && p->m <= most && b_bytes(p) <= close_b_bytes(p);
}

/* Returns how many steps of k narrow tiles take at a time of a B in place whose vectors lie across lines, 0 for all of
 * them: of so many as fill half of L1, a line more each than the group is wide, the next tile would find but a part
 * there. */
int64_t rung_steps_across_lines(const rung_cpu_args *p, int vectors)
{
    enum { STEPS = 96, COLUMNS_MANY = 145, ROWS_LEAST_OF_MANY = 24 };
    int64_t rows_least = p->n >= COLUMNS_MANY ? ROWS_LEAST_OF_MANY : p->kernel->mr + 1;
    int64_t step_bytes = (int64_t)vectors * p->kernel->vl * 4 + LINE_BYTES;
    int overflows = p->k * step_bytes > p->cpu->l1_bytes / 2;
    return has_narrow_tiles(p) && !p->cpu->units_of_four && !b_has_whole_vectors(p) && p->m >= rows_least && overflows
               ? STEPS
               : 0;
}

void rung_plan_in_place(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->path = PATH_DIRECT;
    plan->last = rung_last_columns(p);
    plan->most = vectors_in_place(p->kernel, p->m, p->n - plan->last);
    int64_t runs = rung_run_steps(p), steps = runs ? runs : rung_steps_across_lines(p, plan->most);
    if (steps) {
        plan->kc = even_block(p->k, min64(plan->kc, steps), 8);
        plan->apart = p->beta != 0.0f; /* a large C would be rounded once a run */
    }
    plan->asks = rung_choose_asks(p);
    plan->four_sums = wants_four_sums(p);
}

/* Threads share out columns, or pieces of k where columns are few. */
static void plan_few_rows_from_l3(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { COLUMNS_OF_PARTS = 256 };
    rung_plan_in_place(p, plan);
    plan->split_m = 0;
    if (p->n < COLUMNS_OF_PARTS)
        plan->parts = pieces_of_few_columns(p->k);
}

/* A long k beside few columns is shared out in pieces. */
static void plan_few_rows_close(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { COLUMNS_OF_PIECES = 128, STEPS_LEAST = 2048 };
    rung_plan_in_place(p, plan);
    if (has_narrow_tiles(p) && !p->trans_a && p->m > 1 && p->n < COLUMNS_OF_PIECES && p->k >= STEPS_LEAST)
        plan->parts = pieces_of_few_columns(p->k);
}

/* Where L3 is far, B's columns are shared out in strips of some groups, each of which begins with lines that nobody has
 * asked for, in every run of steps: a long k beside some columns is shared out in pieces. */
static void plan_in_place_ahead(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { COLUMNS_OF_PIECES = 512, STEPS_LEAST = 1536 };
    rung_plan_in_place(p, plan);
    if (p->n <= COLUMNS_OF_PIECES && p->k >= STEPS_LEAST)
        plan->parts = pieces_of_few_columns(p->k);
}

const gemm_rule rung_rule_in_place_ahead = {"is_in_place_ahead", is_in_place_ahead, plan_in_place_ahead};
const gemm_rule rung_rule_small_c_in_runs = {"is_small_c_in_runs", is_small_c_in_runs, rung_plan_in_place};
const gemm_rule rung_rule_few_rows_close = {"is_few_rows_close", rung_is_few_rows_close, plan_few_rows_close};
const gemm_rule rung_rule_few_rows_in_runs = {"is_few_rows_in_runs", is_few_rows_in_runs, plan_in_place_ahead};
const gemm_rule rung_rule_few_rows_from_l3 = {"is_few_rows_from_l3", rung_is_few_rows_from_l3, plan_few_rows_from_l3};
const gemm_rule rung_rule_narrow_b_close = {"is_narrow_b_close", rung_is_narrow_b_close, rung_plan_in_place};

/* Returns the length of a row of sums that lie apart, so that rows do not collide. */
static int64_t apart_ld(int64_t columns)
{
    return round_up(columns, LINE_FLOATS) + LINE_FLOATS;
}

int64_t rung_in_place_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    int64_t floats = rung_last_floats(p, plan->last);
    return plan->apart ? round_up(floats, LINE_FLOATS) + p->m * apart_ld(columns) : floats;
}

void rung_in_place_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    int last = last_of_strip(p, plan);
    rung_cpu_args to = *p;
    if (plan->apart) {
        to.c = workspace + round_up(rung_last_floats(p, plan->last), LINE_FLOATS);
        to.ldc = apart_ld(p->n);
        to.beta = 0.0f;
    }
    const rung_cpu_kernel *kernel = family_of_columns(p, p->n - last);
    block s = {.kernel = kernel,
               .tail = kernel == p->kernel ? tail_family(p) : NULL,
               .m = p->m,
               .n = p->n - last,
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .rows_most = rows_in_place(p),
               .ldb = p->ldb,
               .asks = plan->asks,
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
        rung_run_last(p, last, 0, p->k, 0, workspace);
}
