/* Cut along k: pieces of a long k beside a small C, each of which takes a path of its own (gemm_parts.c runs them). */
#include "cpu/paths/paths.h"

enum { KC_IN_PLACE = 1024 };
enum { SMALL_C = 256 * 256 }; /* elements, at most: adding pieces of it takes little time */

/* Returns true where k is cut into pieces that are computed apart. Tiles narrower than a line pack B for that; so few
 * rows that B passes once are better off without, and so are those beside a B whose rows lie close. */
int rung_is_long_k_of(const rung_cpu_args *p, int64_t least)
{
    enum { LONG_K_TIMES = 16, ROWS_IN_PASSING = 8 };
    if (has_narrow_tiles(p) && !p->trans_a && rung_is_few_rows_close(p))
        return 0;
    if (!p->trans_b && p->m <= ROWS_IN_PASSING && !rung_has_close_rows_b(p))
        return 0;
    return p->m * p->n <= SMALL_C && p->k >= least && p->k >= LONG_K_TIMES * max64(p->m, p->n);
}

/* Returns true where both operands lie well for tiles in place once they are exchanged, and C is small, so that turning
 * it costs little. */
static int is_better_transposed(const rung_cpu_args *p)
{
    enum { K_LEAST = 1024, K_TIMES = 16 };
    rung_cpu_args t = transposed(p);
    return p->trans_a && p->trans_b && rung_has_close_rows_b(&t) && p->m * p->n <= SMALL_C && p->k >= K_LEAST &&
           p->k >= K_TIMES * max64(p->m, p->n);
}

static int is_long_k(const rung_cpu_args *p)
{
    enum { LONG_K_LEAST = 4096 };
    return rung_is_long_k_of(p, LONG_K_LEAST);
}

/* Returns in how many pieces of so many steps at least k is cut: a power of two, so that two or four threads have as
 * many each. */
static int64_t parts_of(int64_t k, int64_t least)
{
    enum { PARTS_MOST = 8 };
    int64_t parts = 1;
    while (parts < PARTS_MOST && k >= 2 * parts * least)
        parts *= 2;
    return parts;
}

int64_t rung_long_k_parts(int64_t k)
{
    enum { PART_LEAST = 1024 };
    return parts_of(k, PART_LEAST);
}

/* With both operands in place nothing waits for packing. The widest tiles have the fewest rows, so that rows of A that
 * collide stay in L1 while their lines are used up. */
static void in_place(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->inner = PATH_DIRECT;
    plan->most = RUNG_TILE_WIDE_VECTORS;
    plan->kc = even_block(p->k, KC_IN_PLACE, 8);
}

/* Plans pieces of k whose C stays in L1 or L2. A is read in place, once for each group of columns; so is B where its
 * rows lie well for the tiles, and where C is small. */
static void plan_long_k(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { IN_PLACE_MOST = 64 };
    plan->path = PATH_LONG_K;
    plan->parts = rung_long_k_parts(p->k);
    if (rung_has_close_rows_b(p)) {
        in_place(p, plan);
        return;
    }
    int packs_columns = sums_as_lines(p) && !p->trans_a && p->n <= IN_PLACE_MOST;
    if (rows_collide(p) || (!packs_columns && max64(p->m, p->n) > IN_PLACE_MOST)) {
        plan->inner = PATH_PACKED;
        rung_packed_blocks(p, plan);
        return;
    }
    if (packs_columns) { /* any number of rows reads few columns in place, once they are packed */
        rung_plan_pack_b(p, plan);
        plan->path = PATH_LONG_K;
        plan->inner = PATH_PACK_B;
        return;
    }
    plan->inner = p->trans_b || has_narrow_tiles(p) ? PATH_PACK_B : PATH_DIRECT;
    plan->mc = p->m;
    plan->nc = p->n;
    plan->kc = even_block(p->k, KC_IN_PLACE, 8);
}

static void plan_better_transposed(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { PART_LEAST = 512 };
    plan->path = PATH_LONG_K;
    plan->transposed = 1;
    plan->parts = parts_of(p->k, PART_LEAST);
    in_place(p, plan);
}

/* Returns true where a small C is the sum of a long k of steps that lie side by side in both operands: runs of them
 * pass through L1 once, for all tiles. Vectors across two lines make that slower, the more of them there are. */
static int is_long_k_in_runs(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 2000, WORK_LEAST = 300000, LEAST = 5, MOST = 112, MOST_ACROSS_LINES = 4096, LD_MOST = 511 };
    if (!sums_as_lines(p) || p->cpu->three_loads || !p->trans_a || p->trans_b || p->k < STEPS_LEAST ||
        min64(p->m, p->n) < LEAST || max64(p->m, p->n) > MOST || max64(p->lda, p->ldb) > LD_MOST)
        return 0;
    return p->m * p->n * p->k >= WORK_LEAST && (p->m * p->n <= MOST_ACROSS_LINES || b_has_whole_vectors(p));
}

/* Returns how many steps pass through L1 at a time. Where vectors are halved tiles wait for nothing from L2. */
static int64_t run_of_long_k(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 64, STEPS_MOST = 512 };
    if (halves_vectors(p))
        return KC_IN_PLACE;
    int64_t fit = p->cpu->l1_bytes * 3 / 4 / (4 * (p->lda + p->ldb));
    return max64(STEPS_LEAST, min64(fit, STEPS_MOST));
}

/* The side that fills its vectors better makes the columns. */
static void plan_long_k_in_runs(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { PART_LEAST = 512 };
    const int64_t vl = p->kernel->vl;
    const rung_cpu_args t = transposed(p);
    plan->transposed = divide_up(p->m, vl) * p->n < divide_up(p->n, vl) * p->m;
    const rung_cpu_args *inner = plan->transposed ? &t : p;
    plan->path = PATH_LONG_K;
    plan->inner = PATH_DIRECT;
    plan->parts = parts_of(p->k, PART_LEAST);
    plan->kc = even_block(p->k, run_of_long_k(p), 8);
    plan->most = vectors_in_place(p->kernel, inner->m, inner->n);
    plan->four_sums = wants_four_sums(inner);
}

const gemm_rule rung_rule_long_k_in_runs = {"is_long_k_in_runs", is_long_k_in_runs, plan_long_k_in_runs};
const gemm_rule rung_rule_better_transposed = {"is_better_transposed", is_better_transposed, plan_better_transposed};
const gemm_rule rung_rule_long_k = {"is_long_k", is_long_k, plan_long_k};
