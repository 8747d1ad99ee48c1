/* Questions about a product that more than one file asks: inline, since products of some nanoseconds ask them too
 * (gemm_tiny.c). What only the plan asks stands in paths/. */
#ifndef RUNG_CPU_GEMM_RULES_H
#define RUNG_CPU_GEMM_RULES_H

#include "cpu/gemm.h"

/* Returns true where a packed tile is no wider than a cache line. */
static inline int has_narrow_tiles(const rung_cpu_args *p)
{
    return p->kernel->nv * p->kernel->vl * 4 <= LINE_BYTES;
}

/* Returns true where a vector takes as long as two of the family with vectors half as long. A processor whose hardware
 * does not follow rows was not measured. */
static inline int halves_vectors(const rung_cpu_args *p)
{
    return p->kernel->half && !p->cpu->wide_units && p->cpu->follows_rows;
}

/* Returns true where an FMA of a line's floats takes as long as with tiles no wider than that: such tiles, and wider
 * ones where the processor halves their vectors. */
static inline int sums_as_lines(const rung_cpu_args *p)
{
    return has_narrow_tiles(p) || halves_vectors(p);
}

/* Returns true where each vector of C lies in one cache line. */
static inline int c_has_whole_lines(const rung_cpu_args *p)
{
    uintptr_t lanes = (uintptr_t)p->kernel->vl - 1; /* in a mask: dividing takes as long as a tile's first steps */
    return (((uintptr_t)p->c / sizeof *p->c | (uintptr_t)p->ldc) & lanes) == 0;
}

/* Returns true where each vector of tiles that are no wider than a line lies in one line of B. */
static inline int b_has_whole_lines(const rung_cpu_args *p)
{
    return (uintptr_t)p->b % LINE_BYTES == 0 && p->ldb % LINE_FLOATS == 0;
}

/* Returns true where no vector of B lies across two lines. */
static inline int b_has_whole_vectors(const rung_cpu_args *p)
{
    return (uintptr_t)p->b % (4 * (uintptr_t)p->kernel->vl) == 0 && p->ldb % p->kernel->vl == 0;
}

/* Returns true where rows of A collide: rows that lie multiples of a page apart share the sets of L1, and far enough
 * apart those of L2. */
static inline int rows_collide(const rung_cpu_args *p)
{
    return !p->trans_a && p->lda % PAGE_FLOATS == 0;
}

/* Returns the most rows of A that a tile should read in place, 0 for any number. Rows that lie multiples of a page
 * apart share one set of L1: more of them than it has ways push each other out before their lines are used up. */
static inline int rows_in_place(const rung_cpu_args *p)
{
    return rows_collide(p) ? (int)max64(p->cpu->l1_bytes / (PAGE_FLOATS * 4), 4) : 0;
}

/* Returns the vectors of columns of a tile in place, at most: the packed tile's, or more where rows are so few that its
 * sums would wait for each other, or read B in narrow runs. One vector more is worth tiles of fewer rows where that
 * takes all columns at once. For narrow tiles it is where the rows would be as few anyway, and where many rows would
 * meet a last vector alone, of which each step loads as much as it adds up. */
static inline int vectors_in_place(const rung_cpu_kernel *kernel, int64_t m, int64_t n)
{
    int nv = kernel->nv;
    if (m == 1)
        return RUNG_TILE_MAX_VECTORS;
    if (m <= kernel->max_rows[RUNG_TILE_WIDE_VECTORS - 1])
        return RUNG_TILE_WIDE_VECTORS;
    int64_t vectors = (n + kernel->vl - 1) >> kernel->vl_bits;
    if (vectors == nv + 1)
        return nv + 1;
    if (nv * kernel->vl * 4 > LINE_BYTES)
        return nv;
    int of_more = kernel->max_rows[nv], has_last_alone = vectors > nv && vectors % nv == 1;
    return m <= of_more || (m > kernel->mr && m <= 2 * of_more) || (has_last_alone && m > 2 * of_more) ? nv + 1 : nv;
}

enum { RANK_VECTORS_LEAST = 8 };

/* Returns whether there are rows for two tiles or little more, so that work around each row counts beside C. */
static inline int has_rows_of_two_tiles(const rung_cpu_args *p)
{
    return p->m > p->kernel->mr && 2 * p->m <= 5 * p->kernel->mr;
}

/* Returns how many columns of C are written by rows at a time: their part of B stays in L1. */
static inline int64_t rank_columns(const rung_cpu_args *p)
{
    return max64(p->cpu->l1_bytes * 3 / 4 / (4 * p->k) / (2 * p->kernel->vl), 4) * 2 * p->kernel->vl;
}

/* Returns true where units are as wide as lines on a processor whose hardware does not follow rows. */
static inline int has_whole_vectors(const rung_cpu_args *p)
{
    return !sums_as_lines(p) && !p->cpu->three_loads;
}

/* Returns true for a C in L3 or beyond whose long rows, written one after the other, push B out of L1. */
static inline int rows_push_out_b(const rung_cpu_args *p)
{
    enum { ELEMENTS_LEAST = 3000, L2_PARTS = 5, ELEMENTS_OF_MORE_STEPS = 6000, MORE_STEPS = 4 };
    enum { COLUMNS_OF_ONE_STEP = 4500, L2_PARTS_OF_FEW_OR_MANY = 2 };
    int64_t elements = p->n * p->k;
    if (!p->cpu->waits_for_l3 || p->beta != 0.0f || c_bytes(p) <= L2_PARTS_OF_FEW_OR_MANY * p->cpu->l2_bytes)
        return 0;
    if (c_bytes(p) > L2_PARTS * p->cpu->l2_bytes)
        return elements > ELEMENTS_LEAST;
    return p->k == 1 ? elements > COLUMNS_OF_ONE_STEP
                     : has_narrow_tiles(p) && p->k >= MORE_STEPS && elements > ELEMENTS_OF_MORE_STEPS;
}

/* Returns true where C is written by rows, a few together: k is so short that the work around each tile costs more than
 * its sums. Rows of a few vectors do not pay for their own beginning and end; neither do a few rows of more, where
 * tiles are narrow. Where L3 is far, a C that L2 does not hold is better written by tiles, if L1 does
 * not hold B either, from a few steps on; where units are four floats wide a C of twice L2, from one step more on.
 * Where L3 is near and C is read from memory they take less time from the same few steps on, since they ask for it. */
static inline int is_rank(const rung_cpu_args *p)
{
    enum { STEPS = 6, VECTORS_LEAST_OF_FEW_ROWS = 24, STEPS_OF_TILES = 4, ROWS_OF_TILES = 64 };
    enum { STEPS_OF_TILES_OF_FOUR = 5, L2_PARTS_OF_FOUR = 2, L3_QUARTERS = 3 };
    if (p->k > STEPS || p->n < RANK_VECTORS_LEAST * p->kernel->vl || rows_push_out_b(p))
        return 0;
    if (p->cpu->far_l3 && p->k >= STEPS_OF_TILES && p->m >= ROWS_OF_TILES && p->beta == 0.0f &&
        p->n > rank_columns(p) && c_bytes(p) > p->cpu->l2_bytes)
        return 0;
    if (!p->cpu->far_l3 && p->beta != 0.0f && p->k >= STEPS_OF_TILES && c_bytes(p) > p->cpu->l3_bytes / 4 * L3_QUARTERS)
        return 0;
    if (p->cpu->units_of_four && p->k >= STEPS_OF_TILES_OF_FOUR && c_bytes(p) > L2_PARTS_OF_FOUR * p->cpu->l2_bytes)
        return 0;
    return p->n >= VECTORS_LEAST_OF_FEW_ROWS * p->kernel->vl || !has_narrow_tiles(p) || !has_rows_of_two_tiles(p);
}

/* Returns true where turning C takes half the time: it has short rows, and enough of them. */
static inline int has_short_rows(const rung_cpu_args *p)
{
    enum { COLUMNS_LEAST = 5, COLUMNS_MOST = 7, ROWS_LEAST = 24 };
    return p->kernel->turns_short_rows && p->n >= COLUMNS_LEAST && p->n <= COLUMNS_MOST && p->m >= ROWS_LEAST;
}

/* Returns what turning an element of C takes, in quarters of an FMA; half of it where C is tall and narrow. Where an
 * FMA takes longer, turning is a smaller share of it. */
static inline int64_t quarters_of_turning(const rung_cpu_args *p)
{
    enum { TURN = 10, TURN_OF_HALF = 5, TURN_OF_OTHERS = 4, ROWS_OF_TALL = 64, ROWS_A_COLUMN = 4 };
    if (p->cpu->three_loads || p->cpu->units_of_four)
        return TURN_OF_OTHERS;
    int is_tall = p->m >= ROWS_OF_TALL && p->m >= ROWS_A_COLUMN * p->n;
    return is_tall || has_short_rows(p) ? TURN_OF_HALF : TURN;
}

/* Returns true where two to four columns turn in little time, whatever rows of them would take. Three of them, and
 * those that are read, ask for some steps more; two turn after a single one, once there are rows enough. */
static inline int turns_few_columns(const rung_cpu_args *p)
{
    enum { COLUMNS_MOST = 4, ROWS_LEAST = 96, ROWS_OF_ONE_STEP = 128, STEPS_LEAST_OF_READ = 6, WORK_OF_THREE = 600 };
    if (p->n < 2 || p->n > COLUMNS_MOST || p->m < ROWS_LEAST)
        return 0;
    if (p->k == 1)
        return p->n == 2 && p->m >= ROWS_OF_ONE_STEP && p->kernel->turns_short_rows;
    if (p->beta != 0.0f)
        return p->kernel->turns_short_rows && (p->n == 2 || p->k >= STEPS_LEAST_OF_READ);
    return p->n != 3 || (!p->cpu->three_loads && p->m * p->k >= WORK_OF_THREE);
}

/* Returns true where a transposed A has rows that lie as vectors, and it takes less time to compute the transposed
 * product and to turn C. Time is counted in quarters of an FMA, for vectors as long as the processor's units, empty
 * lanes too. A step of k has at least as many FMAs as are under way at once. Turning B, which then lies right for
 * tiles, would have taken three quarters of turning C, an element. With few steps, or few rows that one tile takes,
 * rows of C are better written one by one, but a few columns turn in little time, and a single column is only
 * scattered. */
static inline int is_cheaper_transposed(const rung_cpu_args *p)
{
    enum { UNDER_WAY = 6, STEPS_LEAST = 8, ROWS_OF_TILE = 8, STEPS_OF_ROWS_MORE = 64, WORK_OF_ONE = 160 };
    if (!p->trans_a || p->m == 1)
        return 0;
    if (p->n == 1)
        return p->m * p->k >= WORK_OF_ONE;
    if (turns_few_columns(p))
        return 1;
    if (!p->trans_b && (p->k < STEPS_LEAST || max64(p->m - ROWS_OF_TILE, 1) * p->k < STEPS_OF_ROWS_MORE))
        return 0;
    const rung_cpu_kernel *unit = p->cpu->wide_units || !p->kernel->half ? p->kernel : p->kernel->half;
    int64_t lanes = unit->vl - 1, bits = unit->vl_bits, turn = quarters_of_turning(p);
    int64_t step = ((p->n + lanes) >> bits) * p->m, turned_step = ((p->m + lanes) >> bits) * p->n;
    int64_t turning_b = p->trans_b ? turn * 3 / 4 * p->n * p->k : 0;
    return 4 * max64(turned_step, UNDER_WAY) * p->k + turn * p->m * p->n <=
           4 * max64(step, UNDER_WAY) * p->k + turning_b;
}

/* Returns true where both operands have k innermost, and turning some rows of A, and C, takes less time than turning
 * all of B. Time is counted as above, in quarters of an FMA: so many for an element of C, of A and of B, lanes that
 * stay empty are turned too. Where three vectors are loaded a cycle this was not measured. */
static inline int is_cheaper_with_turned_a(const rung_cpu_args *p)
{
    enum { UNDER_WAY = 6, FLOATS_MOST = 1 << 13, STEPS_LEAST = 24, ROWS_LEAST = 5 };
    enum { TURN_C = 6, TURN_A = 4, TURN_B = 5, TO_BEGIN = 2000, PERCENT = 92 };
    if (!p->trans_b || p->trans_a || p->cpu->three_loads || p->m >= p->n || p->m < ROWS_LEAST || p->k < STEPS_LEAST ||
        round_up(p->m, p->kernel->vl) * (p->k + p->n) > FLOATS_MOST)
        return 0;
    const rung_cpu_kernel *unit = p->cpu->wide_units || !p->kernel->half ? p->kernel : p->kernel->half;
    int64_t lanes = unit->vl - 1, bits = unit->vl_bits, columns = (p->m + lanes) & ~lanes;
    int64_t step = ((p->n + lanes) >> bits) * p->m, turned_step = ((p->m + lanes) >> bits) * p->n;
    int64_t with_b = 4 * max64(step, UNDER_WAY) * p->k + TURN_B * p->n * p->k;
    int64_t with_a = 4 * max64(turned_step, UNDER_WAY) * p->k + TURN_C * columns * p->n + TURN_A * columns * p->k;
    return (with_a + TO_BEGIN) * 100 <= with_b * PERCENT;
}

/* Returns true where both operands lie transposed, and C's rows fill one vector or two of narrow tiles: the transposed
 * product reads both as they lie, with no lane empty, and C is then turned. A long k goes as dot products, if there is
 * but one vector of rows. */
static inline int reads_both_transposed(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 12, STEPS_OF_DOTS = 128, COLUMNS_LEAST = 33 };
    if (!p->trans_a || !p->trans_b || !has_narrow_tiles(p) || p->cpu->three_loads)
        return 0;
    int fills_lines = p->m == LINE_FLOATS || (p->m == LINE_FLOATS / 2 && p->k < STEPS_OF_DOTS);
    return fills_lines && p->k >= STEPS_LEAST && p->n >= COLUMNS_LEAST;
}

/* Returns true where more steps than two passes take are still better turned as they are loaded, since tiles for so few
 * rows wait for B to be turned first: on narrow tiles a few more steps of four to six rows, where vectors are halved up
 * to four passes beside more rows, if C's rows are long enough. Elsewhere this was not measured. */
static inline int is_turned_in_passes(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 4, ROWS_MOST_OF_NARROW = 6, STEPS_MOST_OF_NARROW = 20 };
    enum { ROWS_MOST = 13, COLUMNS_LEAST = 48, STEPS_OF_THREE_PASSES = 24, STEPS_MOST = 32, ROWS_LEAST_OF_FOUR = 5 };
    if (halves_vectors(p))
        return p->n >= COLUMNS_LEAST && p->m <= ROWS_MOST && p->k <= STEPS_MOST &&
               p->m >= (p->k <= STEPS_OF_THREE_PASSES ? ROWS_LEAST : ROWS_LEAST_OF_FOUR);
    return has_narrow_tiles(p) && !p->cpu->three_loads && !p->cpu->units_of_four && p->k <= STEPS_MOST_OF_NARROW &&
           p->m >= ROWS_LEAST && p->m <= ROWS_MOST_OF_NARROW;
}

/* Returns true where a transposed B of few steps is turned as it is loaded, and each vector of its columns stays in
 * registers while so few rows pass: with less to sum up, what turning B first costs is soon shared. More steps than
 * one pass takes need two passes over C, which more rows pay for where vectors are halved or narrow. For a single row
 * dot products are as good, once most of their lanes are full, and for two, once they fill two vectors. */
static inline int is_turned(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 2, STEPS_OF_QUADS = 4, STEPS_OF_TWO_PASSES = 2 * RUNG_TURNED_STEPS, COLUMNS_LEAST = 16 };
    enum { ROWS_OF_QUADS = 6, ROWS_OF_TWO_PASSES = 8 };
    if (!p->trans_b || p->k < STEPS_LEAST || p->n < COLUMNS_LEAST || !p->kernel->turned[RUNG_TURNED_STEPS - 1] ||
        reads_both_transposed(p))
        return 0;
    if (p->k > STEPS_OF_TWO_PASSES)
        return is_turned_in_passes(p);
    if (p->m == 1)
        return 2 * p->k <= p->kernel->vl + 4;
    if (p->m == 2 && p->k >= 2 * p->kernel->vl - 1)
        return 0;
    int takes_two_passes = halves_vectors(p) || has_narrow_tiles(p);
    int64_t most = p->k <= RUNG_TURNED_STEPS || takes_two_passes ? RUNG_TURNED_ROWS : ROWS_OF_TWO_PASSES;
    return p->m <= (p->k <= STEPS_OF_QUADS ? ROWS_OF_QUADS : most);
}

enum { SHORT_VECTORS_MOST = 32 };

/* Returns true where tiles take less time than rows of C written one after the other, however short k is: C fills a
 * good part of L1 or more, and its rows begin and end in the middle of lines, with gaps between them, or have a
 * vector's lanes but a few. The wider the gaps, the more steps hide what rows wait for. Measured where units are as
 * wide as lines. */
static inline int writes_parts_of_lines(const rung_cpu_args *p)
{
    enum { GAP = 2, WIDE_GAP = LINE_FLOATS / 2, STEPS_MOST = 2, STEPS_MOST_OF_WIDE_GAP = 4, LANES_LEAST = 13 };
    enum { L1_PARTS = 3 };
    if (!p->cpu->wide_units || has_narrow_tiles(p) || p->n <= LINE_FLOATS / 2 || c_has_whole_lines(p) ||
        c_bytes(p) * L1_PARTS < p->cpu->l1_bytes)
        return 0;
    int64_t gap = p->ldc - p->n;
    if (gap < GAP)
        return p->k <= STEPS_MOST && p->n >= LANES_LEAST && p->n < LINE_FLOATS;
    return p->k <= (gap >= WIDE_GAP ? STEPS_MOST_OF_WIDE_GAP : STEPS_MOST);
}

/* Returns true where tiles take less time than short rows of C written one after the other. From seven steps on sixteen
 * registers hold the B of one vector of columns at a time, so that each row is begun anew for each of them: the more
 * steps and vectors there are, the fewer rows make up for what tiles cost. Seven or eight rows of three vectors are two
 * tiles, which hold all of C at once. */
static inline int tiles_pass_short_rows(const rung_cpu_args *p, int64_t vectors)
{
    enum { STEPS_OF_TWO_TILES = 6, STEPS_LEAST = 7, STEPS_OF_LONG = 8, STEPS_OF_SOME = 9 };
    enum { ROWS = 32, ROWS_OF_SEVEN = 48, ROWS_OF_NINE = 20, ROWS_OF_TEN = 9, VECTORS_OF_SOME = 4 };
    const rung_cpu_kernel *kernel = p->kernel;
    if (vectors < 2 || p->k < STEPS_OF_TWO_TILES || !has_narrow_tiles(p) || p->cpu->three_loads || p->cpu->far_l3)
        return 0;
    if (vectors == kernel->nv + 1 && p->m > kernel->mr && p->m <= 2 * kernel->max_rows[kernel->nv])
        return 1;
    if (p->k == STEPS_LEAST)
        return p->m >= ROWS_OF_SEVEN && (vectors >= VECTORS_OF_SOME || p->n == LINE_FLOATS);
    if (p->k >= STEPS_OF_LONG && p->m >= ROWS)
        return 1;
    if (vectors > RANK_VECTORS_LEAST)
        return p->k >= (p->beta == 0.0f ? STEPS_OF_LONG : STEPS_OF_SOME);
    return p->k >= STEPS_OF_SOME && p->beta == 0.0f && vectors >= VECTORS_OF_SOME &&
           p->m >= (p->k == STEPS_OF_SOME ? ROWS_OF_NINE : ROWS_OF_TEN);
}

/* Returns true where C's rows are written one after the other with B in registers: k is short, and is_rank() does not
 * take it. That pays where there are more rows than one tile holds; of long rows, while they are few, and while there
 * is room on the stack for a B that must be turned. Where units are four floats wide tiles are faster from fewer steps
 * on. Two to four columns that turn in little time are better turned. */
static inline int is_short_rows(const rung_cpu_args *p)
{
    enum { TURNED_COLUMNS = 4, TILES_OF_LONG = 3, STEPS_OF_FOUR = 6 };
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t vectors = (p->n + kernel->vl - 1) >> kernel->vl_bits;
    if (p->k > (p->cpu->units_of_four ? STEPS_OF_FOUR : RUNG_SHORT_STEPS) || tiles_pass_short_rows(p, vectors))
        return 0;
    if (vectors > SHORT_VECTORS_MOST)
        return !p->trans_b && has_rows_of_two_tiles(p) && !is_rank(p);
    if (vectors > RANK_VECTORS_LEAST)
        return p->m > kernel->mr && p->m <= TILES_OF_LONG * kernel->mr && !is_rank(p);
    return p->m > kernel->max_rows[vectors - 1] && !is_rank(p) && (p->n > 1 || p->trans_a) &&
           !writes_parts_of_lines(p) && !(p->n <= TURNED_COLUMNS && is_cheaper_transposed(p));
}

/* Returns how many of the last columns fill no vector, or no half of one where the processor halves them. */
static inline int columns_over(const rung_cpu_args *p)
{
    return (int)(p->n & ((halves_vectors(p) ? p->kernel->half : p->kernel)->vl - 1));
}

/* Returns how many of the last columns go as dot products: so few that most lanes of their tile, of half a vector where
 * the processor halves them, would be empty. A has k
 * innermost, k is long enough for what adding up lanes costs (less, where three vectors are loaded a cycle), and rows
 * enough share what turning these columns costs. Where there are no other columns a tile would also wait for its few
 * sums, so that a long k pays with any rows, and with many rows a shorter one. */
static inline int last_as_dots(const rung_cpu_args *p)
{
    enum { FEWEST = 2, STEPS_OF_FEWEST = 16, ROWS_OF_FEWEST = 16, FEW = 4, STEPS_OF_FEW = 48, ROWS_OF_FEW = 24 };
    const int rest = columns_over(p);
    enum { STEPS_OF_NO_OTHERS = 100, STEPS_OF_FEWEST_AND_NO_OTHERS = 40 };
    enum { ROWS_OF_NO_OTHERS = 60, STEPS_OF_NO_OTHERS_AND_ROWS = 26 };
    enum { STEPS_OF_THREE_LOADS = 32, STEPS_OF_THREE_LOADS_NARROW = 16 };
    if (p->trans_a || rest > FEW)
        return 0;
    if (p->n == rest && p->m > 1 && p->k >= (rest <= FEWEST ? STEPS_OF_FEWEST_AND_NO_OTHERS : STEPS_OF_NO_OTHERS))
        return rest;
    if (rest <= FEWEST)
        return p->k >= STEPS_OF_FEWEST && p->m >= ROWS_OF_FEWEST ? rest : 0;
    if (p->n == rest && p->m >= ROWS_OF_NO_OTHERS && p->k >= STEPS_OF_NO_OTHERS_AND_ROWS)
        return rest;
    int few = has_narrow_tiles(p) ? STEPS_OF_THREE_LOADS_NARROW : STEPS_OF_THREE_LOADS;
    return p->k >= (p->cpu->three_loads ? few : STEPS_OF_FEW) && p->m >= ROWS_OF_FEW ? rest : 0;
}

/* Returns true for so few rows and columns that a tile, or those of threads' parts, would wait for its sums: each then
 * adds up every fourth step of k by itself. */
static inline int wants_four_sums(const rung_cpu_args *p)
{
    const rung_cpu_kernel *kernel = p->kernel;
    return p->m == 1 ? p->n <= (int64_t)kernel->row_vectors * kernel->vl
                     : p->m <= kernel->few_rows && p->n <= kernel->vl;
}

/* Returns true where a transposed B meets so few rows of a small A that dot products take less time than turning B: A,
 * if it is transposed, is turned instead. */
static inline int is_few_rows_of_dots(const rung_cpu_args *p)
{
    enum { ROWS = RUNG_DOT_COLS_OF_TINY, STEPS_A_ROW = 12, STEPS_A_ROW_OF_LINES = 7, STEPS_A_ROW_OF_NARROW = 3 };
    int steps = has_narrow_tiles(p) ? STEPS_A_ROW_OF_NARROW : sums_as_lines(p) ? STEPS_A_ROW_OF_LINES : STEPS_A_ROW;
    return p->trans_b && p->n > 1 && p->m > 1 && p->m <= ROWS && p->k >= steps * p->m;
}

/* Returns true where a few rows meet more columns of a B with k innermost, so that the sums of dot products lie side by
 * side in C, and narrow vectors write them four at a time. */
static inline int wants_dots_in_fours(const rung_cpu_args *p)
{
    enum { ROWS_MOST = 12, COLUMNS_LEAST = 32, STEPS_A_ROW = 8 };
    const rung_cpu_kernel *narrow = halves_vectors(p) ? p->kernel->half : p->kernel;
    return narrow->dot_fours >= RUNG_DOT_COLS_LEAST && sums_as_lines(p) && !p->cpu->three_loads && p->trans_b &&
           !p->trans_a && p->m <= ROWS_MOST && p->n >= COLUMNS_LEAST && p->k >= STEPS_A_ROW * (p->m - 1);
}

/* Returns true where both operands have k innermost, and dot products take less time than turning B and tiles. Where
 * three vectors are loaded a cycle tiles whose lanes are full, or that have few steps to add up, take less sooner, if
 * rows enough share the turned B. Whole vectors that two loads feed add up more sums at once. */
static inline int wants_dots(const rung_cpu_args *p)
{
    enum { COLUMNS = 4, STEPS_OF_ONE_ROW = 5, OUTPUTS_A_STEP = 5, OUTPUTS_OF_FULL = 2 };
    enum { COLUMNS_OF_FEW = 5, COLUMNS_OF_FULL = 11, STEPS_OF_WIDE = 48, ROWS_PARTS = 3 };
    enum { STEPS_OF_WHOLE = 100, OUTPUTS_OF_WHOLE = 8 };
    if (!p->trans_b || p->trans_a)
        return 0;
    if (p->n <= COLUMNS || (p->m == 1 && p->k >= STEPS_OF_ONE_ROW) || wants_dots_in_fours(p))
        return 1;
    int is_full = has_narrow_tiles(p) ? (p->n & (p->kernel->vl - 1)) == 0
                                      : p->n >= COLUMNS_OF_FULL || (p->n > COLUMNS_OF_FEW && p->k < STEPS_OF_WIDE);
    is_full &= p->cpu->three_loads && ROWS_PARTS * p->m >= p->n;
    if (has_whole_vectors(p) && p->k >= STEPS_OF_WHOLE)
        return p->m * p->n <= OUTPUTS_OF_WHOLE * p->k;
    return p->m * p->n <= (is_full ? OUTPUTS_OF_FULL : OUTPUTS_A_STEP) * p->k;
}

/* Returns true where rows along k meet a single column, which is gathered if its elements lie apart. */
static inline int is_column_of_dots(const rung_cpu_args *p)
{
    return p->n == 1 && !p->trans_a && p->m > 1;
}

/* Returns true where two vectors make one number. */
static inline int is_dot_of_vectors(const rung_cpu_args *p)
{
    return p->m == 1 && p->n == 1;
}

enum { RUNG_TINY_FLOATS = 1 << 13, RUNG_TINY_WORK = 1 << 18 };

/* Returns true where both operands are read in place whatever a plan would say, and the work is not worth sharing:
 * nothing is turned, and dot products do not come into question. */
static inline int is_small_in_place(const rung_cpu_args *p)
{
    enum { MOST = 3 << 12, STEPS_MOST = 256, DOT_COLUMNS = 12 };
    return !is_rank(p) && !p->trans_b && p->n > DOT_COLUMNS && p->k <= STEPS_MOST && p->m * p->k <= MOST &&
           p->k * p->n <= MOST && p->m * p->n <= MOST && p->m * p->n * p->k <= RUNG_TINY_WORK &&
           !is_cheaper_transposed(p);
}

/* Returns true for one row for which nothing is packed: elements of A that lie apart are gathered. */
static inline int is_row(const rung_cpu_args *p)
{
    return p->m == 1 && (p->cpu->far_l3 || sums_as_lines(p));
}

/* Returns true where B is better read in long runs for such a row, a few steps at a time, although its sums are stored
 * and loaded again: more than the widest tile would pass over B twice or more, and each time read parts of
 * lines, one row after the other. Where L3 is far, fewer steps are enough. */
static inline int is_row_that_streams(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 40, STEPS_LEAST_OF_FAR = 10 };
    return is_row(p) && !p->trans_b && p->k >= (p->cpu->far_l3 ? STEPS_LEAST_OF_FAR : STEPS_LEAST) &&
           p->n > (int64_t)RUNG_TILE_MAX_VECTORS * p->kernel->vl;
}

/* The same of a tiny product, and of one row of a transposed product. Where L3 is near fewer steps are enough, beside
 * so few columns that L1 has their sums when they are needed again. */
static inline int is_small_row_that_streams(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 8, COLUMNS_MOST = 640 };
    if (p->cpu->far_l3)
        return is_row_that_streams(p);
    return is_row(p) && !p->trans_b && p->k >= STEPS_LEAST && p->n <= COLUMNS_MOST &&
           p->n > (int64_t)RUNG_TILE_MAX_VECTORS * p->kernel->vl;
}

/* Returns true for a row of C beside a larger B that L2 holds, of which any plan would say the same: tiles of one row,
 * or dot products of whole vectors. Elsewhere than where three vectors are loaded a cycle these may be shorter. */
static inline int is_row_in_place(const rung_cpu_args *p)
{
    enum { MOST = 1 << 16, STEPS_MOST = 512, DOT_COLUMNS = 12, STEPS_OF_DOTS = 48 };
    return p->m == 1 && p->n > DOT_COLUMNS && p->k <= STEPS_MOST && p->k * p->n <= MOST &&
           b_bytes(p) <= p->cpu->l2_bytes / 2 && !is_row_that_streams(p) &&
           (p->trans_b ? p->cpu->three_loads && p->k >= STEPS_OF_DOTS : !is_rank(p));
}

/* Returns true where one thread computes the product before a plan would be made: in one pass over k, or as dot
 * products, which need no room. What is turned for a transposed B, with rows of whole vectors, must be small too. */
static inline int is_tiny(const rung_cpu_args *p)
{
    enum { MOST = RUNG_TINY_FLOATS, STEPS_MOST = 256 };
    if (p->in_order)
        return 0;
    if (p->m * p->k > MOST || p->k * p->n > MOST || p->m * p->n > MOST)
        return is_small_in_place(p) || is_row_in_place(p);
    if (p->m * p->n * p->k > RUNG_TINY_WORK)
        return 0;
    if (p->k > STEPS_MOST)
        return is_dot_of_vectors(p) || (p->m == 1 && p->trans_b) || wants_dots(p) || is_column_of_dots(p) ||
               is_few_rows_of_dots(p);
    if (!p->trans_a && !p->trans_b)
        return 1;
    int has_room_for_c = p->n * round_up(p->m, LINE_FLOATS) <= MOST;
    int has_room_for_b = !p->trans_b || p->k * round_up(p->n, LINE_FLOATS) <= MOST;
    return has_room_for_c && has_room_for_b ? 1 : is_cheaper_transposed(p) ? has_room_for_c : has_room_for_b;
}

/* Returns whether rows of C that are written one after the other are asked for before their turn. Where L1 has them
 * that takes a twentieth of the time more, where it does not a quarter less. */
static inline int asks_for_rows(const rung_cpu_args *p)
{
    enum { L1_PARTS = 6 };
    return p->cpu->stores_wait && c_bytes(p) > p->cpu->l1_bytes / L1_PARTS;
}

#endif
