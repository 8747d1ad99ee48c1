/* Dot products: the long operand has k innermost, the other one is narrow. */
#include "cpu/paths/paths.h"

/* Returns whether C is too wide for dot products, which read all of B for every few rows of A, some columns at a time.
 * From L2 that is slower than tiles, once rows enough share the columns that tiles turn. */
static int is_wide_for_dots(const rung_cpu_args *p)
{
    enum { COLUMNS_LEAST = 4, FEW_COLUMNS = 7, ROWS_LEAST = 129, ROWS_LEAST_OF_FEW = 449 };
    return p->k * min64(p->n, RUNG_DOT_COLS_LEAST) * 4 > p->cpu->l1_bytes && p->n >= COLUMNS_LEAST &&
           p->m >= (p->n <= FEW_COLUMNS ? ROWS_LEAST_OF_FEW : ROWS_LEAST);
}

static int come_from_memory(const rung_cpu_args *p, int64_t rows)
{
    enum { L3_PARTS = 4 };
    return rows * p->k * 4 > p->cpu->l3_bytes / L3_PARTS;
}

/* Returns the most columns for dot products with rows of a long operand. From L3 and memory more than a few are better
 * packed; the same where the columns' k must be made innermost first. */
static int64_t dot_columns(int64_t rows, int64_t k, int has_k_innermost, const rung_processor *cpu)
{
    enum { COLUMNS_MOST = 12, COLUMNS_MOST_FROM_FAR = 8, L2_PARTS = 2 };
    int is_near = rows * k * 4 <= L2_PARTS * cpu->l2_bytes;
    return has_k_innermost && is_near ? COLUMNS_MOST : COLUMNS_MOST_FROM_FAR;
}

/* Returns the most columns for dot products with so many rows of A. Where these wait for L3 and memory tiles take some
 * more columns of a k that is not short: narrow tiles sooner, and of more bytes. */
static int64_t dot_columns_of_a(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 600, STEPS_LEAST_FROM_MEMORY = 300, MOST = 6, L2_PARTS = 4, L2_PARTS_OF_MEMORY = 8 };
    enum { STEPS_LEAST_OF_NARROW = 800, STEPS_LEAST_OF_FEW = 1000, MOST_OF_NARROW = 4, MOST_OF_FEW = 3 };
    int64_t most = dot_columns(p->m, p->k, p->trans_b, p->cpu), l2s = a_bytes(p) / p->cpu->l2_bytes;
    if (!p->cpu->waits_for_l3 || l2s < L2_PARTS)
        return most;
    int from_memory = l2s >= L2_PARTS_OF_MEMORY;
    if (has_narrow_tiles(p))
        return p->k < STEPS_LEAST_OF_NARROW                ? most
               : from_memory && p->k >= STEPS_LEAST_OF_FEW ? MOST_OF_FEW
                                                           : MOST_OF_NARROW;
    return p->k >= (from_memory ? STEPS_LEAST_FROM_MEMORY : STEPS_LEAST) ? MOST : most;
}

/* Returns the same where the long operand is B, so that the sums of four of its rows lie side by side in C. Where
 * blocks of narrow vectors write them so, more columns pay from L3, some more from memory, and many beside few rows of
 * a long k: in pieces of it both operands stay in L2, and neither is turned for tiles. */
static int64_t dot_columns_of_b(const rung_cpu_args *p)
{
    enum { COLUMNS_MOST = 12, COLUMNS_MOST_FROM_MEMORY = 10, COLUMNS_MOST_OF_FEW_ROWS = 25, STEPS_LEAST = 250 };
    enum { COLUMNS_MOST_OF_FOUR = 20, STEPS_LEAST_OF_FOUR = 1000, STEPS_MOST = 8000, ROWS_MOST = 63 };
    enum { ROWS_MOST_OF_FOUR = 48 };
    if (p->trans_a || p->cpu->three_loads || !has_narrow_tiles(p) || p->kernel->dot_fours < RUNG_DOT_COLS_LEAST)
        return dot_columns(p->n, p->k, !p->trans_a, p->cpu);
    int of_four = p->cpu->units_of_four;
    if (p->k >= (of_four ? STEPS_LEAST_OF_FOUR : STEPS_LEAST) && p->k <= STEPS_MOST && p->n >= p->m &&
        p->n <= (of_four ? ROWS_MOST_OF_FOUR : ROWS_MOST))
        return of_four ? COLUMNS_MOST_OF_FOUR : COLUMNS_MOST_OF_FEW_ROWS;
    return come_from_memory(p, p->n) ? COLUMNS_MOST_FROM_MEMORY : COLUMNS_MOST;
}

/* Returns the columns of a small C beside so many steps that tiles, for which one operand is turned first, take longer:
 * both lie with k innermost, and vectors are long enough to add up several rows and columns at once, but fill no tile
 * of so few. Where vectors are not halved that holds for a C of fewer results, and not for the longest k. 0 elsewhere.
 */
static int64_t dot_columns_of_small_c(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 440, ROWS_LEAST = 13, COLUMNS_MOST = 64, LONGER_MOST = 160, L2_PARTS = 2 };
    enum { OUTPUTS_OF_WHOLE = 1150, STEPS_OF_WHOLE = 3000 };
    int is_near = (p->m + p->n) * p->k * 4 <= L2_PARTS * p->cpu->l2_bytes;
    int is_small =
        halves_vectors(p) || (has_whole_vectors(p) && p->m * p->n <= OUTPUTS_OF_WHOLE && p->k <= STEPS_OF_WHOLE);
    return is_small && p->trans_b && !p->trans_a && p->k >= STEPS_LEAST && p->m >= ROWS_LEAST && p->m <= LONGER_MOST &&
                   p->n <= LONGER_MOST && is_near
               ? COLUMNS_MOST
               : 0;
}

/* Returns true where tiles of a line leave so many lanes empty beside so few columns that dot products, whose time is
 * that of these columns and of some steps more for adding up lanes, take less time. These columns are turned first,
 * which rows share, and a long operand that L2 does not hold is better read once. Narrow vectors take four columns
 * together, and from some steps on L1 does not hold these for the next rows; they gain where their sums lie side by
 * side in C, or where units are four floats wide. */
static int saves_lanes(const rung_cpu_args *p, gemm_side side)
{
    enum { COLUMNS_LEAST = LINE_FLOATS / 2 + 1, COLUMNS_MOST = LINE_FLOATS - 1, ROWS_LEAST = 32, L2_PARTS = 2 };
    enum { STEPS_OF_ADDING = 50, STEPS_MOST_OF_NARROW = 1200, PERCENT = 95 };
    int64_t rows = side == SIDE_B ? p->n : p->m, columns = side == SIDE_B ? p->m : p->n;
    if (!sums_as_lines(p) || p->cpu->three_loads || p->cpu->far_l3 || columns < COLUMNS_LEAST ||
        columns > COLUMNS_MOST || rows < ROWS_LEAST || rows * p->k * 4 > L2_PARTS * p->cpu->l2_bytes ||
        (has_narrow_tiles(p) && p->k > STEPS_MOST_OF_NARROW))
        return 0;
    if (side == SIDE_A && has_narrow_tiles(p) && !p->cpu->units_of_four)
        return 0;
    return columns * (p->k + STEPS_OF_ADDING) * 100 <= PERCENT * LINE_FLOATS * p->k;
}

enum { DOT_STEPS_A_COLUMN = 8 };

/* Returns how long k must be for dot products to pay for what adding up a vector's lanes costs. Where three vectors are
 * loaded a cycle tiles lose less to their empty lanes, so that more columns than a few want a longer k; where units are
 * four floats wide adding up takes longer. Columns that fill a vector leave no lane of a tile empty. */
static int64_t dot_steps(const rung_cpu_args *p)
{
    enum { OF_MORE = 16, OF_MORE_AND_NARROW = 20, MORE = 6, L2_PARTS_OF_FULL = 4 };
    int64_t more = has_narrow_tiles(p) ? OF_MORE_AND_NARROW : OF_MORE;
    if (p->cpu->waits_for_l3 && p->n == narrow_of(p->kernel)->vl && a_bytes(p) <= L2_PARTS_OF_FULL * p->cpu->l2_bytes)
        return (p->n - 1) * OF_MORE;
    return (p->n - 1) * ((p->cpu->three_loads || p->cpu->units_of_four) && p->n >= MORE ? more : DOT_STEPS_A_COLUMN);
}

/* Returns true where a transposed A of some rows beside a transposed B of few columns would be turned for dot products:
 * the transposed product reads both as they lie. */
static int lies_transposed(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 5, COLUMNS_A_ROW = 2, OF_NARROW = 4, OF_THREE_LOADS = 8 };
    int64_t a_row = !has_narrow_tiles(p) ? COLUMNS_A_ROW : p->cpu->three_loads ? OF_THREE_LOADS : OF_NARROW;
    return p->trans_a && p->m >= ROWS_LEAST && p->n <= a_row * p->m;
}

/* Returns the most columns of a narrow B whose k must be made innermost first. More nearly fill a vector of tiles,
 * which take such a B as it lies: so do fewer, the longer k is, for L1 does not keep what was turned, and the fewer
 * rows share turning it. */
static int64_t dot_columns_turned(const rung_cpu_args *p)
{
    enum { OF_THREE_LOADS = 6, FEW_ROWS = 24, OF_FEW_ROWS = 4 };
    enum { STEPS_MIDDLING = 800, STEPS_LONG = 5000, OF_SHORT = 7, OF_MIDDLING = 6, OF_LONG = 5 };
    if (p->cpu->three_loads)
        return OF_THREE_LOADS;
    if (p->m <= FEW_ROWS)
        return OF_FEW_ROWS;
    return p->k < STEPS_MIDDLING ? OF_SHORT : p->k < STEPS_LONG ? OF_MIDDLING : OF_LONG;
}

/* Returns true where halved vectors read a narrow B as it lies in less time than turning it for dot products takes: few
 * rows share turning, or its columns leave no lane empty. */
static int lies_well_for_tiles(const rung_cpu_args *p)
{
    enum { COLUMNS_LEAST = 7, ROWS_MOST = 40 };
    if (!halves_vectors(p) || p->trans_b)
        return 0;
    return (p->n >= COLUMNS_LEAST && p->m <= ROWS_MOST) ||
           (p->n == p->kernel->half->vl && a_bytes(p) <= p->cpu->l2_bytes / 2);
}

/* Returns the long operand of dot products, if they are worth it: k is its innermost dimension, the other one is
 * narrow, and k is long enough. A transposed B of few columns is turned for tiles in little time, other operands are
 * not. */
static gemm_side dot_side(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 64, ROWS_LEAST = 16 };
    if (is_dot_of_vectors(p))
        return SIDE_A;
    int64_t of_small = dot_columns_of_small_c(p), columns = dot_columns_of_a(p);
    if (!p->trans_b && has_narrow_tiles(p))
        columns = min64(columns, dot_columns_turned(p));
    columns = max64(columns, of_small);
    if (!p->trans_a && (p->n <= columns || saves_lanes(p, SIDE_A)) && !is_wide_for_dots(p) && !lies_well_for_tiles(p) &&
        (p->trans_b ? p->k >= dot_steps(p) : is_column_of_dots(p) || (p->k >= STEPS_LEAST && p->m >= ROWS_LEAST)))
        return SIDE_A;
    int is_of_b = p->trans_b && !lies_transposed(p) && !reads_both_transposed(p) &&
                  (p->m <= max64(dot_columns_of_b(p), of_small) || saves_lanes(p, SIDE_B)) &&
                  p->k >= DOT_STEPS_A_COLUMN * (p->m - 1);
    return is_of_b ? SIDE_B : SIDE_NONE;
}

static int has_dot_side(const rung_cpu_args *p)
{
    return dot_side(p) != SIDE_NONE;
}

/* Returns what dot products of so many rows ask for early. Rows from L3 of a middling length leave the hardware's
 * prefetchers no time to follow them; of longer ones the next do not fit L1 beside those at work. From memory it is
 * the same where the hardware follows rows well enough, and a single column is then best left to it; a processor that
 * follows few rows at once has longer ones asked for too. Where L3 is far, so is all that a good half of L2 would hold,
 * and rows of twice that length come late. */
static int what_dots_ask(const rung_cpu_args *p, int64_t rows, int64_t columns)
{
    enum { NEXT_LEAST = 128, NEXT_MOST = 512, NEXT_LEAST_FROM_AFAR = 96, NEXT_MOST_FROM_AFAR = 1000 };
    enum { NEXT_MOST_OF_ASKED = 2500 }; /* from memory, where `asks_next_rows` */
    if (p->cpu->far_l3 && p->k >= NEXT_LEAST_FROM_AFAR && p->k <= NEXT_MOST_FROM_AFAR)
        return rows * p->k * 4 * 2 > p->cpu->l2_bytes ? RUNG_DOT_ASKS_NEXT : RUNG_DOT_ASKS_NOTHING;
    int from_memory = come_from_memory(p, rows);
    int64_t most = from_memory && p->cpu->asks_next_rows ? NEXT_MOST_OF_ASKED : NEXT_MOST;
    int is_middling = p->k >= NEXT_LEAST && p->k <= most;
    if (from_memory) {
        int leaves_all = p->cpu->follows_rows && !p->cpu->asks_for_few && !p->cpu->far_l3;
        if (!leaves_all || (columns > 1 && p->k < NEXT_LEAST))
            return RUNG_DOT_ASKS_ALONG;
        return is_middling ? RUNG_DOT_ASKS_NEXT : RUNG_DOT_ASKS_NOTHING;
    }
    return is_middling && rows * p->k * 4 > p->cpu->l2_bytes ? RUNG_DOT_ASKS_NEXT : RUNG_DOT_ASKS_NOTHING;
}

/* Returns whether vectors half as long take less time. Of rows that begin anywhere every vector of a whole line crosses
 * into the next line, of those half as long every second one. One or two columns have little else to do than to read
 * these rows, which costs less where vectors of a line are loaded two at a time, as where three of half a line are.
 * From L3 more columns gain too, and so do those that L1 holds where the processor halves its vectors anyway, unless a
 * few meet rows from L3: the last steps of a row leave fewer lanes empty. From memory rows are asked for, and none
 * does. All of the product is asked about, not a thread's part of it: the bits are those of one length of vectors. */
static int wants_narrow_dots(const rung_cpu_args *p, int asks, int64_t rows, int64_t columns)
{
    enum { FEW_COLUMNS = 2, STEPS_OF_TWO_LINES = 48, L1_EIGHTHS = 5, COLUMNS_FROM_L3 = 5 };
    int takes_lines = p->cpu->three_loads && p->k >= STEPS_OF_TWO_LINES && asks == RUNG_DOT_ASKS_NOTHING;
    if (asks == RUNG_DOT_ASKS_ALONG || takes_lines)
        return 0;
    int are_near = columns * p->k * 4 * 8 <= L1_EIGHTHS * p->cpu->l1_bytes &&
                   (columns >= COLUMNS_FROM_L3 || rows * p->k * 4 <= p->cpu->l2_bytes);
    if (halves_vectors(p) && asks == RUNG_DOT_ASKS_NOTHING && are_near)
        return 1;
    return asks == RUNG_DOT_ASKS_NEXT ? columns != FEW_COLUMNS : columns <= FEW_COLUMNS;
}

/* Returns the steps of a piece of k: so many that L1 keeps four columns of it for all rows, or half as many where there
 * are more columns than usual. Where vectors are halved a few columns more go together, and L1 keeps all of them, if
 * there are so many steps. Rows from memory are worth following to their ends. */
static int64_t dot_piece(const rung_cpu_args *p, int64_t rows, int64_t columns)
{
    enum { COLUMNS_LEAST = 4, MANY_COLUMNS = 13, TOGETHER_MOST = 7, STEPS_OF_TOGETHER = 1400 };
    int64_t longest = p->cpu->l1_bytes / (4 * COLUMNS_LEAST);
    if (columns >= MANY_COLUMNS)
        return even_block(p->k, longest / 2, LINE_FLOATS);
    if (columns < COLUMNS_LEAST || come_from_memory(p, rows))
        return p->k;
    if (halves_vectors(p) && columns > COLUMNS_LEAST && columns <= TOGETHER_MOST && p->k >= STEPS_OF_TOGETHER)
        longest = p->cpu->l1_bytes * 3 / 4 / (4 * columns);
    return even_block(p->k, longest, LINE_FLOATS);
}

static void plan_dots(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->path = PATH_DOT;
    plan->of_b = dot_side(p) == SIDE_B;
    plan->split_m = !plan->of_b;
    int64_t rows = plan->of_b ? p->n : p->m, columns = plan->of_b ? p->m : p->n;
    plan->narrow = wants_narrow_dots(p, what_dots_ask(p, rows, columns), rows, columns);
    plan->kc = dot_piece(p, rows, columns);
}

const gemm_rule rung_rule_dots = {"has_dot_side", has_dot_side, plan_dots};

int64_t rung_dots_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    (void)columns;
    if (is_dot_of_vectors(p))
        return 2 * p->k;
    return round_up(p->k, p->kernel->vl) * (plan->of_b ? p->m : p->n) + 2 * RUNG_PACK_SLACK;
}

/* Returns how many columns go together, at most: as many as L1 holds and the family takes. Where C's elements lie side
 * by side down the rows, it is those whose sums are written four at a time, once three groups of them are needed, or
 * two while k is so short that writing counts. */
static int64_t columns_together(const rung_processor *cpu, const rung_cpu_kernel *kernel, const rung_dot_args *dot,
                                int64_t columns)
{
    enum { GROUPS_LEAST = 3, GROUPS_LEAST_OF_FEW_STEPS = 2, FEW_STEPS = 96 };
    int64_t most = min64(max64(cpu->l1_bytes / (4 * dot->k), RUNG_DOT_COLS_LEAST), kernel->dot_cols);
    int64_t groups = dot->k <= FEW_STEPS ? GROUPS_LEAST_OF_FEW_STEPS : GROUPS_LEAST, fours = kernel->dot_fours;
    int in_fours = dot->c_row == 1 && fours >= RUNG_DOT_COLS_LEAST && columns >= groups * fours;
    return in_fours ? min64(most, fours) : most;
}

/* Runs dot products, some columns at a time; some rows at a time, which the next columns find in a cache, so that only
 * the first columns ask for further ones. */
static void run_dot_groups(const rung_processor *cpu, const rung_cpu_kernel *kernel, const rung_dot_args *dot,
                           int64_t rows, int64_t columns)
{
    enum { ROWS = 24 };
    int64_t groups = divide_up(columns, columns_together(cpu, kernel, dot, columns)), step = groups > 1 ? ROWS : rows;
    rung_dot_args part = *dot;
    for (int64_t i = 0; i < rows; i += step) {
        part.s = dot->s + i * dot->lds;
        for (int64_t g = 0; g < groups; g++) {
            int64_t first = columns * g / groups;
            part.asks = g ? RUNG_DOT_ASKS_NOTHING : dot->asks;
            part.t = dot->t + first * dot->t_ld;
            part.c = dot->c + i * dot->c_row + first * dot->c_col;
            kernel->dot[columns * (g + 1) / groups - first - 1](&part, min64(step, rows - i));
        }
    }
}

/* Runs a product as dot products. They want the long operand's rows along k (A as it is, or B transposed), the short
 * one's columns too. */
void rung_dots_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    if (is_dot_of_vectors(p)) {
        rung_gemm_vectors(p, workspace);
        return;
    }
    int64_t rows = plan->of_b ? p->n : p->m, columns = plan->of_b ? p->m : p->n;
    int has_k_innermost = plan->of_b ? !p->trans_a : p->trans_b;
    const rung_cpu_kernel *kernel = plan->narrow ? narrow_of(p->kernel) : p->kernel;
    rung_dot_args dot = dot_args(p, plan->of_b, kernel);
    dot.asks = what_dots_ask(p, rows, columns);
    if (!has_k_innermost && !(columns == 1 && dot.t_ld == 1))
        turn_columns(&dot, kernel, columns, workspace);
    const float *t = dot.t;
    for (int64_t step = 0; step < p->k; step += plan->kc, dot.s += plan->kc, dot.beta = 1.0f) {
        dot.k = min64(plan->kc, p->k - step);
        dot.t = t + step / kernel->vl * dot.t_step;
        run_dot_groups(p->cpu, kernel, &dot, rows, columns);
    }
}
