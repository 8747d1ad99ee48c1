/* Decides which path a product takes and its block sizes, by the shape, the tile and the sizes of the caches. */
#include "cpu/gemm_rules.h"

/* Finds the smallest block that needs no more blocks than `largest` would: 1000 by 256 gives 4 x 250, not 3 x 256 +
 * 232. */
static int64_t even_block(int64_t size, int64_t largest, int64_t unit)
{
    return round_up(size <= largest ? size : divide_up(size, divide_up(size, largest)), unit);
}

enum {
    FEW = 32, /* rows or columns that make a product skinny */
    LONG_K_PARTS = 8,
    LONG_K_PART_LEAST = 1024,
    LONG_K_LEAST = 4096,
    LONG_K_CLOSE = 2048,
    TRANSPOSED_PART_LEAST = 512,
    STREAM_ROWS = 32,       /* at most: with more, packing B costs less than passing the sums again and again */
    STREAM_ROWS_APART = 16, /* the same where B's rows collide */
    STREAM_PARTS = 4,
    STREAM_PART_LEAST = 512,
    STREAM_PARTS_COLUMNS = 16384, /* at most: beyond, columns are enough to share out */
    PAST_COLUMNS = 1024,          /* at most: longer runs of C gain nothing */
    OUTER_STEPS = 64,             /* of k, at most: writing C takes longer than adding up */
    CHUNK_BYTES = 256 << 10,      /* of B, packed at a time: more leaves too little of L2 for what is asked ahead */
    ROWS_OF_MANY_TILES = 27,      /* rows whose first tiles ask for all that comes next, before it is needed */
    ROWS_TO_SHARE = 32, /* rows of C, at least, that threads cut by rows: cut by columns, each row has a line of two */
    FAR_FROM_L2 = 2,    /* times the size of L2: a C so large is best written in long runs */
    L3_SHARE_AT_HAND = 16, /* of L3, a part that neighbours leave alone, so that C in it is read twice in little time */
    PAST_STEPS = 10,       /* of k, at most, where a line takes several vectors: tiles are narrow, B is read often */
    PAST_STEPS_OF_FAR_L3 = 14, /* the same where C in long runs costs less than B from L3, for each class of rows */
};

/* Returns true where C is larger than a good part of L3, is written once after little work, and has whole tiles of rows
 * that begin alike (run_past). Where L3 is far it is also large: what it keeps of C costs less to write again. */
static int should_pass_caches(const rung_cpu_args *p)
{
    int64_t steps = p->kernel->vl >= LINE_FLOATS ? OUTER_STEPS : PAST_STEPS;
    if (p->cpu->far_l3)
        steps = c_bytes(p) <= p->cpu->l3_bytes / 4 * 3 ? 0 : min64(steps, PAST_STEPS_OF_FAR_L3);
    return p->beta == 0.0f && p->k <= steps && c_bytes(p) > p->cpu->l3_bytes / 4 && p->kernel->vl >= 8 &&
           p->n >= 2 * FEW && p->m >= rung_gemm_row_classes(p) * p->kernel->mr && (uintptr_t)p->c % sizeof *p->c == 0;
}

/* Returns true where more steps than is_rank() takes are written by rows: C is far larger than L2, and L1 holds B, so
 * that C is written in one run from its first row to its last. Where stores wait for lines that nobody asked for, rows
 * ask for them early enough, so that a smaller C pays too; but narrow tiles in turn are faster. */
static int is_narrow_rank(const rung_cpu_args *p)
{
    enum { STEPS_OF_LINES = 9 };
    if (p->cpu->stores_wait)
        return !has_narrow_tiles(p) && p->k <= STEPS_OF_LINES && p->n >= RANK_VECTORS_LEAST * p->kernel->vl &&
               p->n <= rank_columns(p) && c_bytes(p) > p->cpu->l2_bytes / 8;
    return p->k <= RUNG_RANK_STEPS && p->n >= RANK_VECTORS_LEAST * p->kernel->vl && p->n <= rank_columns(p) &&
           c_bytes(p) > FAR_FROM_L2 * p->cpu->l2_bytes;
}

/* Returns whether C is too wide for dot products, which read all of B for every few rows of A, some columns at a time.
 * From L2 that is slower than tiles, once rows enough share the columns that tiles turn. */
static int is_wide_for_dots(const rung_cpu_args *p)
{
    enum { COLUMNS_LEAST = 4, FEW_COLUMNS = 7, ROWS_LEAST = 129, ROWS_LEAST_OF_FEW = 449 };
    return p->k * min64(p->n, RUNG_DOT_COLS_LEAST) * 4 > p->cpu->l1_bytes && p->n >= COLUMNS_LEAST &&
           p->m >= (p->n <= FEW_COLUMNS ? ROWS_LEAST_OF_FEW : ROWS_LEAST);
}

/* Returns the most columns for dot products with rows of a long operand. From L3 and memory more than a few are better
 * packed; the same where the columns' k must be made innermost first. */
static int64_t dot_columns(int64_t rows, int64_t k, int has_k_innermost, const rung_processor *cpu)
{
    enum { COLUMNS_MOST = 12, COLUMNS_MOST_FROM_FAR = 8, L2_PARTS = 2 };
    int is_near = rows * k * 4 <= L2_PARTS * cpu->l2_bytes;
    return has_k_innermost && is_near ? COLUMNS_MOST : COLUMNS_MOST_FROM_FAR;
}

enum { DOT_STEPS_A_COLUMN = 8 };

/* Returns how long k must be for dot products to pay for what adding up a vector's lanes costs. Where three vectors are
 * loaded a cycle tiles lose less to their empty lanes, so that more columns than a few want a longer k. */
static int64_t dot_steps(const rung_cpu_args *p)
{
    enum { OF_MORE = 16, OF_MORE_AND_NARROW = 20, MORE = 6 };
    int64_t more = has_narrow_tiles(p) ? OF_MORE_AND_NARROW : OF_MORE;
    return (p->n - 1) * (p->cpu->three_loads && p->n >= MORE ? more : DOT_STEPS_A_COLUMN);
}

/* Returns true where a transposed A of some rows beside a transposed B of few columns would be turned for dot products:
 * the transposed product reads both as they lie. */
static int lies_transposed(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 5, COLUMNS_A_ROW = 2, COLUMNS_A_ROW_OF_NARROW = 8 };
    int64_t a_row = has_narrow_tiles(p) ? COLUMNS_A_ROW_OF_NARROW : COLUMNS_A_ROW;
    return p->cpu->three_loads && p->trans_a && p->m >= ROWS_LEAST && p->n <= a_row * p->m;
}

/* Which operand is the long one, if any: where products go as dot products, or as the transposed product. */
typedef enum gemm_side { SIDE_NONE, SIDE_A, SIDE_B } gemm_side;

/* Returns the long operand of dot products: k is its innermost dimension, the other one is narrow, and k is long
 * enough. A transposed B of few columns is turned for tiles in little time, other operands are not. */
static gemm_side dot_side(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 64, ROWS_LEAST = 16, COLUMNS_MOST_OF_NARROW = 6 };
    int64_t columns = dot_columns(p->m, p->k, p->trans_b, p->cpu);
    if (!p->trans_b && has_narrow_tiles(p) && p->cpu->three_loads)
        columns = COLUMNS_MOST_OF_NARROW; /* more nearly fill a vector of tiles */
    if (!p->trans_a && p->n <= columns && !is_wide_for_dots(p) &&
        (p->trans_b ? p->k >= dot_steps(p) : is_column_of_dots(p) || (p->k >= STEPS_LEAST && p->m >= ROWS_LEAST)))
        return SIDE_A;
    int is_of_b = p->trans_b && !lies_transposed(p) && p->m <= dot_columns(p->n, p->k, !p->trans_a, p->cpu) &&
                  p->k >= DOT_STEPS_A_COLUMN * (p->m - 1);
    return is_of_b ? SIDE_B : SIDE_NONE;
}

/* Returns true where the rows of C fill a line as columns of the transposed product, which then reads a transposed B in
 * place. That takes less time than packing B for so few rows, once k is long enough for turning C. */
static int fills_lanes_transposed(const rung_cpu_args *p)
{
    enum { LANES_LEAST = 13, STEPS_LEAST = 48 };
    return p->trans_b && p->m >= LANES_LEAST && p->m <= LINE_FLOATS && p->n > 2 * FEW && p->k >= STEPS_LEAST;
}

/* Returns true where a transposed A is the B of the transposed product and stays in place, some steps at a time: L1 has
 * their lines for all of its rows, and while the first tiles sum, the next ones come. That pays where A is a good part
 * of L2, more of it where more columns share what packing it costs. From memory few columns are better off where A
 * streams. */
static int wants_runs_of_a(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 128, COLUMNS_LEAST = 10, COLUMNS_THAT_COLLIDE = 48 };
    if (!p->cpu->far_l3 || !p->trans_a || p->k < STEPS_LEAST || p->m <= 4 * FEW ||
        p->n > (has_narrow_tiles(p) ? 3 * FEW : 4 * FEW))
        return 0;
    if (a_bytes(p) > p->cpu->l3_bytes)
        return p->n > (p->lda % PAGE_FLOATS ? FEW : COLUMNS_THAT_COLLIDE);
    return p->n >= COLUMNS_LEAST && a_bytes(p) * 5 > p->cpu->l2_bytes * (p->n > 2 * FEW ? 2 : 1);
}

/* Returns true where reading a transposed B as it lies, as the transposed product's A, and turning C takes less time
 * than packing B. Time is counted in eighths of a vector's FMA, for a column and a step: tiles as wide as C has rows
 * leave lanes of their last vector empty, unless these rows go as dot products. */
static int is_cheaper_turning_c(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 48, ROWS_LEAST = 9, ROWS_AS_DOTS = 4, TURN = 8, PACK = 6 };
    if (!p->cpu->three_loads || !p->trans_b || p->trans_a || p->n <= 2 * FEW || p->k < STEPS_LEAST ||
        p->m < ROWS_LEAST || p->m > 4 * FEW)
        return 0;
    int64_t rest = p->m & (p->kernel->vl - 1), vectors = p->m >> p->kernel->vl_bits;
    int64_t turned = (8 * vectors + (rest > ROWS_AS_DOTS ? 8 : rest)) * p->k + TURN * p->m;
    int64_t packed = 8 * p->m * p->k / p->kernel->vl + PACK * p->k;
    return turned * 16 <= packed * 15;
}

/* Returns the long operand where few rows, or few columns, go as the transposed product, whose vectors run along that
 * operand as it lies. Turning the result costs some steps of k, more where other tiles would leave no lanes empty.
 * Tiles of one short vector load a float for each FMA, so that it pays as soon as A is not in L1. */
static gemm_side transposed_side(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 256, STEPS_LEAST_OF_LINES = 128, L2_PARTS = 4, L2_PART_OF_FAR_L3 = 3 };
    enum { LANES = 8, STEPS_OF_ONE_VECTOR = 48, L1_PARTS = 2 };
    int64_t steps = p->m % LINE_FLOATS ? STEPS_LEAST : STEPS_LEAST_OF_LINES;
    if ((p->trans_b && p->m <= FEW && p->n > 4 * FEW && p->k >= steps) || fills_lanes_transposed(p) ||
        is_cheaper_turning_c(p))
        return SIDE_B;
    int is_narrow = p->n <= (p->cpu->far_l3 ? 2 * FEW : FEW);
    int is_in_l2 = max64(p->m, p->n) * p->k * 4 <= p->cpu->l2_bytes / 2;
    if (((is_narrow || is_in_l2) && is_cheaper_transposed(p)) || wants_runs_of_a(p))
        return SIDE_A;
    int64_t in_l2 = p->cpu->far_l3 ? p->cpu->l2_bytes / L2_PART_OF_FAR_L3 : L2_PARTS * p->cpu->l2_bytes;
    int is_one_vector = !p->cpu->far_l3 && p->n <= LANES && p->k >= STEPS_OF_ONE_VECTOR;
    int64_t near_bytes = is_one_vector ? L1_PARTS * p->cpu->l1_bytes : in_l2;
    return p->trans_a && p->m > 4 * FEW && p->n <= FEW && a_bytes(p) > near_bytes ? SIDE_A : SIDE_NONE;
}

/* Returns true where a transposed A stays in place beside a C so small that runs of a few steps pass over it in little
 * time: L1 then has the lines of a run for all tiles of a group. */
static int is_small_c_in_runs(const rung_cpu_args *p)
{
    enum { L2_PARTS = 5, STEPS_LEAST = 160 };
    return p->cpu->three_loads && has_narrow_tiles(p) && p->trans_a && p->k >= STEPS_LEAST &&
           p->m * p->n * 4 * L2_PARTS <= p->cpu->l2_bytes;
}

enum { CLOSE_LDB_MOST = 512 };

/* Returns true where narrow tiles gain nothing from a packed B, however many rows share it: its rows lie close, so that
 * they neither collide nor leave the hardware's prefetchers behind, and a line that is read twice costs nothing where
 * three vectors are loaded a cycle. In place the last few columns go as dot products. */
static int is_narrow_b_close(const rung_cpu_args *p)
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

/* Returns true where packing B pays. A tile as wide as a cache line reads two lines a step where B's rows start
 * anywhere; where they lie whole lines apart, all steps of it share few sets of L1. Packing mends both. It pays once
 * enough rows read B again; fewer are enough where B fills a good part of L2. */
static int wants_packed_b(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 128, ROWS_LEAST_OF_LARGE = 64 };
    int64_t least = b_bytes(p) > p->cpu->l2_bytes / 4 ? ROWS_LEAST_OF_LARGE : ROWS_LEAST;
    return has_narrow_tiles(p) && p->m >= least && !is_narrow_b_close(p) && !is_small_c_in_runs(p);
}

/* Returns true where packing A pays. A tile takes a few floats of each row of a transposed A, so that it reads a line
 * or two for them each step, and up to two of B. Where the steps of a narrow tile do not fit L1, it pushes out the B
 * that the next tile needs. Packing mends that, and pays once enough rows share it. */
static int wants_packed_a(const rung_cpu_args *p)
{
    enum { STEP_BYTES = 13 * 16, PANELS_LEAST = 8 };
    return p->trans_a && !is_small_c_in_runs(p) && has_narrow_tiles(p) && p->m >= PANELS_LEAST * p->kernel->mr &&
           p->k * STEP_BYTES > p->cpu->l1_bytes;
}

/* Returns true where tiles read B in place although it is large: while the tiles of one group sum, the first of them
 * ask for the next group's part. That takes less time than packing for few rows, or for a narrow C of some more. A
 * transposed A is read in parts of lines, again for each group. From memory few rows are better off where B streams,
 * and so are they where its rows lie far apart. */
static int is_in_place_ahead(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 9, ROWS_MOST = 112, ROWS_MOST_OF_NARROW = 200, COLUMNS_OF_NARROW = 512 };
    enum { LDB_MOST_OF_FEW = 2048, ROWS_MOST_OF_ANY_LINES = 64 };
    int is_few = p->m < ROWS_OF_MANY_TILES, narrow = has_narrow_tiles(p);
    if (!p->cpu->far_l3 || p->trans_b || p->ldb % PAGE_FLOATS == 0 || p->m < ROWS_LEAST)
        return 0;
    if (is_few && b_bytes(p) > (narrow ? p->cpu->l3_bytes : p->cpu->l3_bytes / 2))
        return 0;
    if (narrow && ((is_few && p->ldb > LDB_MOST_OF_FEW) || (p->m > ROWS_MOST_OF_ANY_LINES && !b_has_whole_lines(p))))
        return 0;
    if (p->trans_a)
        return p->m <= 2 * FEW;
    return p->m <= ROWS_MOST || (p->m <= ROWS_MOST_OF_NARROW && p->n <= COLUMNS_OF_NARROW);
}

/* Returns true where so few rows read a B from L2 or L3 whose rows do not lie too far apart: in runs of steps its lines
 * come in time, and sums stay in registers. */
static int is_few_rows_in_runs(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 3, ROWS_MOST = 8, L2_PARTS = 8, LDB_MOST = 2048, LDB_MOST_OF_NARROW = 512 };
    return p->cpu->far_l3 && !p->trans_b && p->m >= ROWS_LEAST && p->m <= ROWS_MOST && p->ldb % PAGE_FLOATS &&
           p->ldb <= (has_narrow_tiles(p) ? LDB_MOST_OF_NARROW : LDB_MOST) && b_bytes(p) <= L2_PARTS * p->cpu->l2_bytes;
}

enum { RUN_STEPS = 128 };

/* Returns how many steps of k a B in place is read at a time, 0 for all that fit: so many that L1 has a group's lines
 * for all rows, while those of the next group are asked for. Many rows pass over C more often for that than it brings.
 * Few rows, and those of a transposed A, want shorter runs. */
static int64_t run_steps(const rung_cpu_args *p)
{
    enum { FEW_STEPS = 64, ROWS_LEAST = 3, ROWS_LEAST_OF_SMALL_C = 17, ROWS_MOST = 48, ROWS_MOST_OF_NARROW = 64 };
    enum { L2_PARTS = 2, L2_PARTS_OF_NARROW = 5 };
    int narrow = has_narrow_tiles(p);
    if (is_small_c_in_runs(p) && p->m >= ROWS_LEAST_OF_SMALL_C)
        return RUN_STEPS;
    int is_near = b_bytes(p) < p->cpu->l2_bytes / (narrow ? L2_PARTS_OF_NARROW : L2_PARTS);
    if (!p->cpu->far_l3 || p->trans_b || is_near || p->m < ROWS_LEAST ||
        p->m > (narrow ? ROWS_MOST_OF_NARROW : ROWS_MOST))
        return 0;
    return p->m < ROWS_OF_MANY_TILES || p->trans_a ? FEW_STEPS : RUN_STEPS;
}

/* Returns true where a transposed A of many rows is packed for tiles of whole lines: they take half a line of each of
 * its steps, which L1 does not keep beside B until the next tile takes the other half. */
static int wants_wide_packed_a(const rung_cpu_args *p)
{
    enum { STEP_LINES = 5, PANELS_LEAST = 36, COLUMNS_LEAST = 128 };
    return p->cpu->far_l3 && p->trans_a && !has_narrow_tiles(p) && p->m >= PANELS_LEAST * p->kernel->mr &&
           p->n > COLUMNS_LEAST && p->k * STEP_LINES * LINE_BYTES > p->cpu->l1_bytes;
}

/* Returns how many columns, at most, a B may have that is turned by packing, beside an A that stays in place. With few
 * steps C is most of the work, and columns of tiles write it badly where L2 does not hold it. */
static int64_t columns_beside_a(const rung_cpu_args *p)
{
    enum { MOST = 256, MOST_TURNED = 512, STEPS_LEAST = 128, STEPS_MOST = 640 };
    enum { MOST_OF_FEW_STEPS = 448, STEPS_LEAST_BESIDE_LARGE_C = 64 };
    if (!p->cpu->far_l3 || !p->trans_b || p->trans_a || p->k > STEPS_MOST)
        return MOST;
    if (p->k >= STEPS_LEAST)
        return MOST_TURNED;
    int is_small_c = c_bytes(p) <= p->cpu->l2_bytes / 2;
    return is_small_c || p->k >= STEPS_LEAST_BESIDE_LARGE_C ? MOST_OF_FEW_STEPS : MOST;
}

/* Returns true where A stays in place: each group of columns reads it again, which takes few groups less time than
 * packing. Tiles narrower than a line read rows of A as fast in place, as long as L2 has most of them. Of a transposed
 * A that L2 does not keep, packing is worth it for narrow tiles, or where L3 is near. */
static int wants_a_in_place(const rung_cpu_args *p)
{
    enum { COLUMNS_MOST = 256, COLUMNS_MOST_OF_LARGE = 128, L2_THIRDS_MOST = 4, L2_MOST_OF_TRANSPOSED = 2 };
    if (p->n <= 2 * FEW || a_bytes(p) <= p->cpu->l1_bytes / 2)
        return 1;
    if (has_narrow_tiles(p) && !p->trans_a && !rows_collide(p) && a_bytes(p) <= p->cpu->l2_bytes * L2_THIRDS_MOST / 3)
        return 1;
    if (a_bytes(p) <= p->cpu->l2_bytes / 2)
        return p->n <= columns_beside_a(p) && !wants_packed_a(p);
    if (p->trans_a && (!p->cpu->far_l3 || has_narrow_tiles(p) || a_bytes(p) > L2_MOST_OF_TRANSPOSED * p->cpu->l2_bytes))
        return 0;
    return p->n <= (p->cpu->far_l3 ? COLUMNS_MOST : COLUMNS_MOST_OF_LARGE);
}

/* Returns true where k is so short that writing C takes longer than adding up, and C is not in L2. Where no line is
 * shared between tiles, packing A pays from a middling k on. */
static int is_short_k(const rung_cpu_args *p)
{
    enum { STEPS_LEAST_PACKED = 17 };
    if (p->cpu->stores_wait)
        return p->k <= OUTER_STEPS && p->m >= 2 * FEW && p->n > 2 * FEW && c_bytes(p) > p->cpu->l2_bytes / 8 * 3;
    if (p->k >= STEPS_LEAST_PACKED && c_has_whole_lines(p))
        return 0;
    return p->k <= OUTER_STEPS && p->m >= 2 * FEW && p->n > 2 * FEW && c_bytes(p) > p->cpu->l2_bytes;
}

/* By columns of tiles, lines that two tiles share would come from memory twice. By rows, narrow tiles take little of
 * each line of a transposed A, again for each few rows, for which a Zen 3 pays more than for packing both operands; a
 * Zen 4, whose L2 is twice as large, pays less. */
static gemm_path short_k_path(const rung_cpu_args *p)
{
    enum { SMALL_L2 = 512 << 10 };
    if (p->cpu->stores_wait)
        return PATH_OUTER;
    if (c_bytes(p) <= max64(FAR_FROM_L2 * p->cpu->l2_bytes, p->cpu->l3_bytes / L3_SHARE_AT_HAND))
        return PATH_PACK_B;
    return p->trans_a && has_narrow_tiles(p) && p->cpu->l2_bytes <= SMALL_L2 ? PATH_PACKED : PATH_OUTER;
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
static gemm_asks choose_asks(const rung_cpu_args *p)
{
    enum { STEPS_OF_FEW = 128, FEW_ROWS = 3, FEW_ROWS_MOST = 8 };
    int in_runs = run_steps(p) > 0;
    if (in_runs && (has_narrow_tiles(p) || p->m > FEW_ROWS_MOST))
        return ASKS_AFTER;
    if (!p->cpu->far_l3 || b_bytes(p) <= p->cpu->l2_bytes / 8 || (has_narrow_tiles(p) && !narrow_tiles_ask(p)))
        return ASKS_NOTHING;
    if (p->m >= ROWS_OF_MANY_TILES)
        return ASKS_AFTER;
    return p->m >= FEW_ROWS && p->k >= STEPS_OF_FEW ? ASKS_BELOW : ASKS_NOTHING;
}

/* Returns true where tiles of whole lines can read B in place: one row of it follows the other closely. */
static int has_close_rows_b(const rung_cpu_args *p)
{
    return !p->trans_b && p->ldb <= CLOSE_LDB_MOST && !has_narrow_tiles(p);
}

/* Returns true where few rows read a B in place whose rows lie close and that L2 holds, or L3 at hand: sums stay in
 * registers, where a B that streams has them stored and loaded again. Narrow tiles need more rows, closer together, or
 * a single row that is done in two passes over B, wherever that comes from. */
static int is_few_rows_close(const rung_cpu_args *p)
{
    enum { L2_PARTS = 2, ROWS_LEAST = 2, NARROW_ROWS_LEAST = 12, NARROW_LDB_MOST = 320, PASSES = 2 };
    if (p->m == 1 && has_narrow_tiles(p) && p->ldb <= NARROW_LDB_MOST)
        return !p->trans_b && p->n <= PASSES * RUNG_TILE_MAX_VECTORS * p->kernel->vl;
    int is_close = p->m >= NARROW_ROWS_LEAST && p->ldb <= NARROW_LDB_MOST;
    if (!has_narrow_tiles(p))
        is_close = p->m >= ROWS_LEAST && p->ldb <= CLOSE_LDB_MOST;
    return is_close && !p->trans_b && p->m <= STREAM_ROWS && b_bytes(p) <= L2_PARTS * p->cpu->l2_bytes;
}

/* Returns true where k is cut into pieces that are computed apart. Tiles narrower than a line pack B for that; so few
 * rows that B passes once are better off without. */
static int is_long_k_of(const rung_cpu_args *p, int64_t least)
{
    enum { LONG_K_TIMES = 16, ROWS_IN_PASSING = 8 };
    if (!p->trans_b && p->m <= ROWS_IN_PASSING && !has_close_rows_b(p))
        return 0;
    return p->m * p->n <= 256 * 256 && p->k >= least && p->k >= LONG_K_TIMES * max64(p->m, p->n);
}

/* Returns true where both operands lie well for tiles in place once they are exchanged, and C is small, so that turning
 * it costs little. */
static int is_better_transposed(const rung_cpu_args *p)
{
    enum { K_LEAST = 1024, K_TIMES = 16 };
    rung_cpu_args t = transposed(p);
    return p->trans_a && p->trans_b && has_close_rows_b(&t) && p->m * p->n <= 256 * 256 && p->k >= K_LEAST &&
           p->k >= K_TIMES * max64(p->m, p->n);
}

/* Returns the most rows past which B streams. Where B's rows lie multiples of a page apart, the lines of narrow vectors
 * push each other out of L1 before they are used up, unless L3 is far. */
static int64_t stream_rows(const rung_cpu_args *p)
{
    int collides = !p->cpu->far_l3 && p->ldb % PAGE_FLOATS == 0 && p->kernel->vl < LINE_FLOATS;
    return collides ? STREAM_ROWS_APART : STREAM_ROWS;
}

/* Returns true where tiles read both operands from L2 as they lie. */
static int is_close(const rung_cpu_args *p)
{
    return !p->trans_b && b_bytes(p) <= p->cpu->l2_bytes / 2 && a_bytes(p) <= p->cpu->l2_bytes / 2 &&
           !wants_packed_a(p) && !wants_wide_packed_a(p);
}

static gemm_path close_path(const rung_cpu_args *p)
{
    return wants_packed_b(p) ? PATH_PACK_B : is_long_k_of(p, LONG_K_CLOSE) ? PATH_LONG_K : PATH_DIRECT;
}

static int is_in_order(const rung_cpu_args *p)
{
    return p->in_order;
}

static int has_dot_side(const rung_cpu_args *p)
{
    return dot_side(p) != SIDE_NONE;
}

static int has_transposed_side(const rung_cpu_args *p)
{
    return transposed_side(p) != SIDE_NONE;
}

static int is_long_k(const rung_cpu_args *p)
{
    return is_long_k_of(p, LONG_K_LEAST);
}

static int is_few_rows(const rung_cpu_args *p)
{
    return !p->trans_b && p->m <= stream_rows(p);
}

static int is_large(const rung_cpu_args *p)
{
    (void)p;
    return 1;
}

/* The questions and the path of each. The order matters: each is asked of what those before it have left, and the first
 * that is true decides. `rung explain` names it. */
#define PATH_RULES(RULE)                                                                                               \
    RULE(is_in_order, PATH_PACKED)                                                                                     \
    RULE(is_tiny, PATH_TINY)                                                                                           \
    RULE(should_pass_caches, PATH_PAST)                                                                                \
    RULE(is_rank, PATH_RANK)                                                                                           \
    RULE(is_narrow_rank, PATH_RANK)                                                                                    \
    RULE(is_short_rows, PATH_SHORT_ROWS)                                                                               \
    RULE(has_dot_side, PATH_DOT)                                                                                       \
    RULE(is_better_transposed, PATH_LONG_K)                                                                            \
    RULE(has_transposed_side, PATH_TRANSPOSED)                                                                         \
    RULE(is_short_k, short_k_path(p))                                                                                  \
    RULE(is_close, close_path(p))                                                                                      \
    RULE(is_long_k, PATH_LONG_K)                                                                                       \
    RULE(is_in_place_ahead, PATH_DIRECT)                                                                               \
    RULE(is_few_rows_close, PATH_DIRECT)                                                                               \
    RULE(is_few_rows_in_runs, PATH_DIRECT)                                                                             \
    RULE(is_narrow_b_close, PATH_DIRECT)                                                                               \
    RULE(is_few_rows, PATH_STREAM)                                                                                     \
    RULE(wants_a_in_place, PATH_PACK_B)                                                                                \
    RULE(is_large, PATH_PACKED)

static gemm_path choose_path(const rung_cpu_args *p)
{
#define RULE(holds, path)                                                                                              \
    if (holds(p))                                                                                                      \
        return path;
    PATH_RULES(RULE)
#undef RULE
    return PATH_PACKED;
}

#define RULE(holds, path) #holds,
const char *const rung_gemm_rules[] = {PATH_RULES(RULE) NULL};
#undef RULE

int rung_gemm_rule(const rung_cpu_args *p)
{
    int rule = 0;
#define RULE(holds, path)                                                                                              \
    if (holds(p))                                                                                                      \
        return rule;                                                                                                   \
    rule++;
    PATH_RULES(RULE)
#undef RULE
    return rule;
}

/* Returns how many columns of C stay in a quarter of L2 while B streams. */
static int64_t stream_columns(int64_t rows, int64_t panel, const rung_processor *cpu)
{
    return max64(cpu->l2_bytes / 4 / (4 * rows) / panel, 8) * panel;
}

/* Plans with one group: a tile takes all columns, so each element of A is read once. Where the hardware follows A's
 * rows they are read in runs as long as L2 has room for their part of B. Elsewhere the next tile's rows are asked for.
 */
static void one_group(gemm_plan *plan, const rung_cpu_args *p, int vectors)
{
    enum { ROWS_MOST = 12 }; /* streams that the hardware's prefetchers still follow */
    int64_t rows = rows_in_place(p);
    plan->most = vectors;
    plan->rows_most = (int)min64(p->kernel->max_rows[vectors - 1], rows ? min64(rows, ROWS_MOST) : ROWS_MOST);
    plan->mc = plan->rows_most;
    int64_t longest = p->cpu->l2_bytes / 2 / (4 * vectors * p->kernel->vl);
    plan->kc = even_block(p->k, p->cpu->follows_rows ? longest : 256, 8);
    plan->fetch = !p->cpu->follows_rows;
}

/* Chooses blocks with both operands packed. Each pass over C costs page walks where its rows lie far apart, so k is cut
 * as seldom as L2 allows: a panel of B takes a fifth of it, a block of A a quarter, the slab of B a share of L3, and a
 * larger one where L3 is far, for which A is packed again. Few rows pass over C in little time, so their blocks are
 * small. */
static void deep_blocks(gemm_plan *plan, const rung_cpu_args *p)
{
    int64_t panel = panel_columns(p->kernel);
    int64_t deepest = panel > 32 ? 1024 : 512; /* narrow panels gain nothing, and long sums err more */
    int few = p->m <= 2 * FEW && !p->in_order && plan->path != PATH_LONG_K;
    int64_t kc = few ? 256 : max64(min64(p->cpu->l2_bytes / 5 / (4 * panel), deepest), 256);
    plan->kc = even_block(p->k, kc, 8);
    plan->mc = max64(p->cpu->l2_bytes / 4 / (4 * plan->kc) / p->kernel->mr, 1) * p->kernel->mr;
    int64_t slab = p->cpu->far_l3 ? p->cpu->l3_bytes / 2 : min64(p->cpu->l3_bytes / 4, 4 << 20);
    plan->nc = max64(slab / (4 * plan->kc) / panel, 1) * panel;
    plan->chunk = CHUNK_BYTES / (4 * plan->kc);
    if (p->m <= 2 * FEW)
        plan->split_m = 0;
    plan->mc = even_block(p->m, plan->mc, p->kernel->mr);
    plan->nc = even_block(p->n, plan->nc, panel);
}

/* Returns what dot products of so many rows ask for early. Rows from L3 of a middling length leave the hardware's
 * prefetchers no time to follow them; of longer ones the next do not fit L1 beside those at work. */
int rung_gemm_dot_asks(const rung_cpu_args *p, int64_t rows)
{
    enum { NEXT_LEAST = 128, NEXT_MOST = 512 };
    if (rows * p->k * 4 > p->cpu->l3_bytes / 4)
        return RUNG_DOT_ASKS_ALONG;
    int is_middling = p->k >= NEXT_LEAST && p->k <= NEXT_MOST;
    return is_middling && rows * p->k * 4 > p->cpu->l2_bytes ? RUNG_DOT_ASKS_NEXT : RUNG_DOT_ASKS_NOTHING;
}

/* Returns whether vectors half as long take less time. Of rows that begin anywhere every vector of a whole line crosses
 * into the next line, of those half as long every second one. One or two columns have little else to do than to read
 * these rows, which costs less where vectors of a line are loaded two at a time, as where three of half a line are.
 * From L3 more columns gain too, and from memory rows are asked for, and none does. All of the product is asked about,
 * not a thread's part of it: the bits are those of one length of vectors. */
static int wants_narrow_dots(int asks, int64_t columns, int64_t k, const rung_processor *cpu)
{
    enum { FEW_COLUMNS = 2, STEPS_OF_TWO_LINES = 48 };
    int takes_lines = cpu->three_loads && k >= STEPS_OF_TWO_LINES && asks == RUNG_DOT_ASKS_NOTHING;
    if (asks == RUNG_DOT_ASKS_ALONG || takes_lines)
        return 0;
    return asks == RUNG_DOT_ASKS_NEXT ? columns != FEW_COLUMNS : columns <= FEW_COLUMNS;
}

static void direct_blocks(gemm_plan *plan, const rung_cpu_args *p)
{
    plan->last = last_as_dots(p);
    plan->most = vectors_in_place(p->kernel, p->m, p->n - plan->last);
    if (run_steps(p)) {
        plan->kc = even_block(p->k, min64(plan->kc, run_steps(p)), 8);
        plan->apart = p->beta != 0.0f; /* a large C would be rounded once a run */
    }
    plan->asks_b = choose_asks(p);
    plan->four_sums = wants_four_sums(p);
}

/* Chooses pieces of k whose C stays in L1 or L2. A is read in place, once for each group of columns; so is B where its
 * rows lie well for the tiles, and where C is small. With both in place nothing waits for packing. The widest tiles
 * have the fewest rows, so that rows of A that collide stay in L1 while their lines are used up. */
static void long_blocks(gemm_plan *plan, const rung_cpu_args *p)
{
    enum { KC_IN_PLACE = 1024, IN_PLACE_MOST = 64 };
    plan->parts = max64(1, min64(LONG_K_PARTS, p->k / (plan->transposed ? TRANSPOSED_PART_LEAST : LONG_K_PART_LEAST)));
    if (!plan->transposed && is_close(p) && !wants_packed_b(p)) {
        plan->inner = PATH_DIRECT;
        direct_blocks(plan, p);
        return;
    }
    if (plan->transposed || has_close_rows_b(p)) {
        plan->inner = PATH_DIRECT;
        plan->most = RUNG_TILE_WIDE_VECTORS;
        plan->kc = even_block(p->k, KC_IN_PLACE, 8);
        return;
    }
    if (p->m > IN_PLACE_MOST || p->n > IN_PLACE_MOST || rows_collide(p)) {
        plan->inner = PATH_PACKED;
        deep_blocks(plan, p);
        return;
    }
    plan->inner = p->trans_b || has_narrow_tiles(p) ? PATH_PACK_B : PATH_DIRECT;
    plan->mc = p->m;
    plan->nc = p->n;
    plan->kc = even_block(p->k, KC_IN_PLACE, 8);
}

/* Chooses blocks that write C along its rows, while B stays in L2. */
static void outer_blocks(gemm_plan *plan, const rung_cpu_args *p)
{
    int64_t panel = panel_columns(p->kernel);
    plan->split_m = 1;
    plan->mc = plan->rows_most = p->kernel->mr;
    plan->kc = p->k;
    plan->nc = even_block(p->n, max64(p->cpu->l2_bytes / 2 / (4 * p->k) / panel, 1) * panel, panel);
}

/* Returns how many of the last columns go as dot products where a transposed B is packed for the others. They read A
 * again, which from memory takes longer than empty lanes. */
static int last_beside_packed(const rung_cpu_args *p)
{
    enum { L3_SHARE = 8 };
    return p->trans_b && a_bytes(p) <= p->cpu->l3_bytes / L3_SHARE ? last_as_dots(p) : 0;
}

static void pack_b_blocks(gemm_plan *plan, const rung_cpu_args *p)
{
    enum { ONE_GROUP_ROWS = 4 }; /* lower tiles read B more often than two groups read A */
    /* Low tiles of a transposed A take little of each line. The second group finds so many rows of so many steps in L1.
     */
    enum { TURNED_PANELS = 4, TURNED_STEPS = 256 };
    enum { IN_TURN_L1_PARTS = 4 };
    const rung_cpu_kernel *kernel = p->kernel;
    if (p->n > 2 * FEW) {
        int64_t panel = panel_columns(kernel);
        plan->nc = even_block(p->n, max64(p->cpu->l2_bytes / 2 / (4 * plan->kc) / panel, 1) * panel, panel);
        plan->mc = max64(p->cpu->l2_bytes / 4 / (4 * plan->kc) / kernel->mr, 1) * kernel->mr;
        return;
    }
    plan->nc = p->n;
    plan->split_m = 1;
    plan->mc = max64(p->cpu->l1_bytes / IN_TURN_L1_PARTS / (4 * min64(plan->kc, p->k)) / kernel->mr, 1) * kernel->mr;
    plan->last = p->n <= FEW ? last_beside_packed(p) : 0;
    int64_t vectors = divide_up(p->n - plan->last, kernel->vl);
    if (p->trans_a && vectors > kernel->nv && vectors <= RUNG_TILE_WIDE_VECTORS && has_narrow_tiles(p)) {
        plan->mc = TURNED_PANELS * kernel->mr;
        plan->kc = even_block(p->k, TURNED_STEPS, 8);
    } else if (vectors > 0 && vectors <= RUNG_TILE_WIDE_VECTORS && kernel->max_rows[vectors - 1] >= ONE_GROUP_ROWS) {
        one_group(plan, p, (int)vectors);
    }
}

gemm_plan rung_gemm_plan(const rung_cpu_args *p)
{
    const rung_cpu_kernel *kernel = p->kernel;
    int64_t panel = panel_columns(kernel);
    gemm_plan plan = {.most = kernel->nv, .split_m = p->m >= p->n, .parts = 1};
    plan.path = choose_path(p);
    /* A panel of B takes an eighth of L2. */
    plan.kc = even_block(p->k, max64(min64(p->cpu->l2_bytes / 8 / (4 * panel), 512), 256), 8);
    switch (plan.path) {
    case PATH_TINY: break;
    case PATH_SHORT_ROWS: plan.split_m = 1; break;
    case PATH_DIRECT: direct_blocks(&plan, p); break;
    case PATH_PAST: plan.nc = max64(min64(p->cpu->l2_bytes / 4 / (4 * p->k), PAST_COLUMNS) / panel, 1) * panel; break;
    case PATH_RANK:
        plan.split_m = p->m >= ROWS_TO_SHARE;
        plan.nc = rank_columns(p);
        break;
    case PATH_LONG_K:
        plan.transposed = is_better_transposed(p);
        long_blocks(&plan, p);
        break;
    case PATH_PACKED: deep_blocks(&plan, p); break;
    case PATH_OUTER: outer_blocks(&plan, p); break;
    case PATH_PACK_B: pack_b_blocks(&plan, p); break;
    case PATH_DOT:
        plan.of_b = dot_side(p) == SIDE_B;
        plan.split_m = !plan.of_b;
        plan.narrow = plan.of_b ? wants_narrow_dots(rung_gemm_dot_asks(p, p->n), p->m, p->k, p->cpu)
                                : wants_narrow_dots(rung_gemm_dot_asks(p, p->m), p->n, p->k, p->cpu);
        break;
    case PATH_STREAM:
        plan.split_m = 0;
        plan.nc = stream_columns(p->m, panel, p->cpu);
        if (p->n <= STREAM_PARTS_COLUMNS)
            plan.parts = max64(1, min64(STREAM_PARTS, p->k / STREAM_PART_LEAST));
        break;
    case PATH_TRANSPOSED:
        plan.of_b = transposed_side(p) == SIDE_B;
        plan.split_m = !plan.of_b;
        plan.mc = plan.rows_most = kernel->mr;
        plan.nc = stream_columns(p->n, panel, p->cpu);
        plan.inner = wants_runs_of_a(p) || a_bytes(p) <= p->cpu->l2_bytes / 2 ? PATH_DIRECT : PATH_STREAM;
        if (!plan.of_b && wants_runs_of_a(p))
            plan.kc = even_block(p->k, RUN_STEPS, 8);
        if (plan.inner == PATH_DIRECT) {
            rung_cpu_args t = transposed(p);
            plan.asks_b = wants_runs_of_a(p) && has_narrow_tiles(p) ? ASKS_AFTER : choose_asks(&t);
            plan.four_sums = wants_four_sums(&t);
            plan.most = vectors_in_place(kernel, t.m, min64(t.n, rung_gemm_transposed_strip(p)));
        }
        if (plan.of_b) {
            rung_cpu_args t = transposed(p);
            plan.last = last_beside_packed(&t);
        }
        break;
    }
    return plan;
}

/* Returns the floats of a strip of the result and of what the path that computes it needs. */
static int64_t transposed_floats(const rung_cpu_args *p, const gemm_plan *plan)
{
    int64_t few = plan->of_b ? p->m : p->n, strip = rung_gemm_transposed_strip(p);
    int64_t panel = panel_columns(p->kernel);
    int64_t packed_b = min64(plan->kc, p->k) * round_up(few, panel);
    rung_cpu_args stream = {.kernel = p->kernel, .m = few, .n = strip};
    int64_t sums = rung_gemm_stream_a_floats(&stream) + few * rung_gemm_stream_ld(&stream, plan);
    int64_t rows = p->k <= RUNG_RANK_STEPS ? rung_gemm_rank_floats(p, strip) : 0;
    return rung_gemm_transposed_floats(p, plan) + max64(max64(packed_b, sums), rows);
}

static int64_t path_floats(const rung_cpu_args *p, const gemm_plan *plan, gemm_path path, int64_t columns)
{
    int64_t kc = min64(plan->kc, p->k), panel = panel_columns(p->kernel), floats = 0;
    switch (path) {
    case PATH_TINY:
    case PATH_SHORT_ROWS: return 0;
    case PATH_DIRECT:
        floats = rung_gemm_last_floats(p, plan->last);
        return plan->apart ? round_up(floats, LINE_FLOATS) + p->m * rung_gemm_apart_ld(columns) : floats;
    case PATH_LONG_K: return path_floats(p, plan, plan->inner, columns);
    case PATH_STREAM: floats = rung_gemm_stream_a_floats(p) + p->m * rung_gemm_stream_ld(p, plan); break;
    case PATH_RANK: floats = rung_gemm_rank_floats(p, min64(plan->nc, columns)); break;
    case PATH_PAST:
        floats = p->k * rung_gemm_past_ld(p, plan) + (p->trans_a ? p->m * round_up(p->k, p->kernel->vl) : 0);
        break;
    case PATH_OUTER:
    case PATH_PACK_B: floats = kc * min64(round_up(plan->nc, panel), round_up(columns, panel)); break;
    case PATH_DOT: floats = round_up(p->k, p->kernel->vl) * (plan->of_b ? p->m : p->n); break;
    case PATH_TRANSPOSED: floats = transposed_floats(p, plan); break;
    case PATH_PACKED:
        floats = rung_gemm_packed_a_floats(p, plan) + kc * min64(plan->nc, round_up(columns, panel));
        break;
    }
    return floats + 2 * RUNG_PACK_SLACK; /* of two operands that are packed */
}

int64_t rung_gemm_workspace(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    return path_floats(p, plan, plan->path, columns);
}
