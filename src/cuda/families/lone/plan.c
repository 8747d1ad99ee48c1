/* What a product costs by lone warps, and how it runs: whether the warps of a block share a tile's k or have tiles of
 * their own, over how many blocks. */
#include "cuda/families/lone/lone.h"
#include "cuda/families/lone/tile.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>
#include <string.h>

enum { MAX_TICKETS = RUNG_TICKET_BYTES / 4, PARTITIONS = 4, WARPS_A_PARTITION = LONE_WARPS / PARTITIONS };

/* Microseconds, and bytes a microsecond; fitted to timings on an H200 (docs/costs.md). */
static const double launch_us = 1.99, copying_launch_us = 1.22, meet_us = 4.22, finish_us = 2.09, part_rate = 0.065e6;
/* For tiles whose lanes take slices of k: what `straddling` is there (below), what their launch takes, and what adding
 * a cluster's halves takes. */
static const double slicing_straddling = 2.49, slicing_launch_us = 2.05, cluster_us = 0.16;
static const double straddle_share = 0.020; /* uneven shares of steps add this */
/* A step of a warp that has its partition for itself takes so many times as long. The end of a tile takes this share of
 * its time even without a result inside C; rows of C at odd addresses, and stores down columns, add these shares. */
static const double lonely = 1.12, empty_end = 0.73, odd_end = 0.36, strided_end = 0.84;
/* One product's tiles in several rounds take so much of a round longer, as warps go on to their next tiles at times of
 * their own. In batches nothing of the kind shows. */
static const double late_warps = 0.10;
/* A multiprocessor takes so much longer for each result that C's old value goes into, and where old values are asked
 * for one by one: a large tile's, of whose rows few are asked for at a time, so much more for each 1536 results beyond
 * 2560; and one of more than 64 columns so much at least. A tile of 4096 results that a block has together takes so
 * much longer, and at odd addresses. */
static const double first_old_us = 0.4, first_general_old_us = 1.2;
static const double old_us = 0.00005, general_old_us = 0.00015, large_old_us = 0.00047, wide_old_us = 0.00026;
enum { WIDE = 64 };
static const double shared_old_us = 0.5, odd_shared_old_us = 3.0;
/* Each sector that a step brings in takes so many cycles; rows at odd multiples of 16 bytes take more sectors. */
static const double sector_cycles = 3.55, straddling = 1.71;

RUNG_TILE_TABLE lone_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/lone/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(lone, "share end_us a_k_innermost b_k_innermost both_k_innermost")

const lone_tile *lone_tile_of(const rung_kernel *kernel)
{
    return RUNG_FIND_TILE(table, kernel);
}

/* Where each warp takes every fourth k, a tile has FEWER columns less than BN, so that they all come wherever rows
 * start.
 */
enum { FEWER = 4 };

/* Returns whether half of a warp's lanes take other k than the others: the warps of such tiles always share k. */
static int slices(const rung_kernel *kernel)
{
    return kernel->bm / kernel->tm * (kernel->bn / kernel->tn) == 16;
}

const char *lone_refuse(const rung_problem *p, int64_t tiles_of_one, int64_t steps)
{
    if (p->m >= LONE_MOST || p->n >= LONE_MOST || p->k >= LONE_MOST || p->lda >= LONE_MOST || p->ldb >= LONE_MOST)
        return "a dimension or leading dimension is 2^30 or more";
    if (tiles_of_one >= LONE_MOST / p->batch || tiles_of_one * p->batch * steps >= LONE_MOST)
        return "too many tiles for 32-bit counters";
    return NULL;
}

/* Decides which operands are copied first. Returns NULL, or why the product cannot run so. */
static const char *plan_operands(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, lone_plan *s)
{
    const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
    if (lone_tile_of(kernel)->copied)
        return NULL;
    s->copy_a = !a.readable;
    s->copy_b = !b.readable;
    s->copy_bytes = rung_operand_copy_bytes(&a, p) + rung_operand_copy_bytes(&b, p);
    return rung_operand_copies_refuse(machine, config, p, &a, &b);
}

static double start_us(const rung_kernel *kernel)
{
    return lone_tile_of(kernel)->copied ? copying_launch_us : slices(kernel) ? slicing_launch_us : launch_us;
}

static double write_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    return rung_write_us(machine, p, lone_tile_of(kernel)->copied ? part_lines : scattered, kernel->bn);
}

/* Returns the time to read the operands. Tiles follow each other along n: where there are more than run at once, and L2
 * does not hold B, later rows of tiles read B again. */
static double read_us(const rung_machine *machine, const rung_problem *p, const lone_plan *s, double at_once)
{
    double b_bytes = 4.0 * (double)p->k * (double)p->n, l2_bytes = (double)machine->l2_bytes;
    double passes = rung_lesser((double)s->tiles_m, rung_longer(1.0, (double)(s->tiles_m * s->tiles_n) / at_once));
    double missed = b_bytes * b_bytes / (b_bytes * b_bytes + l2_bytes * l2_bytes);
    return rung_tiles_read_us(machine, p) + (passes - 1.0) * missed * b_bytes * (p->stride_b ? (double)p->batch : 1.0) /
                                                (read_rate * machine->memory_speed);
}

/* Returns how many sectors of 32 bytes a step of `rows` rows or columns touches. */
static double sectors(const rung_operand *o, int rows, int depth, int k_innermost, double straddle)
{
    double more = o->readable && o->ld % 8 ? straddle : 0.0; /* such copies do not start with a sector */
    return k_innermost ? rows * (depth / 8.0 + more) : depth * (rows / 8.0 + more);
}

/* Returns the cycles of one tile's step along k whose operands are there. */
static double multiply_cycles(const rung_kernel *kernel, const rung_problem *p)
{
    const lone_tile *t = lone_tile_of(kernel);
    double ffma = kernel->tm * kernel->tn * kernel->bk / (slices(kernel) ? 2.0 : 1.0);
    return (ffma / t->cost.share + 60.0) *
           (1.0 + rung_k_innermost(p, t->cost.a_k_innermost, t->cost.b_k_innermost, t->cost.both_k_innermost));
}

/* Returns the time of one tile's step along k, on one of a multiprocessor's four partitions. */
static double step_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const lone_tile *t = lone_tile_of(kernel);
    const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
    double cycles = multiply_cycles(kernel, p);
    double straddle = slices(kernel) ? slicing_straddling : straddling;
    if (!t->copied)
        cycles = rung_overlapped(cycles, sector_cycles * (sectors(&a, kernel->bm, kernel->bk, !p->trans_a, straddle) +
                                                          sectors(&b, kernel->bn, kernel->bk, p->trans_b, straddle)));
    return cycles / (machine->clock_ghz * 1e3);
}

/* Returns a warp's time to store a tile of its own. */
static double end_us(const rung_kernel *kernel, const rung_problem *p, const lone_plan *s)
{
    const lone_tile *t = lone_tile_of(kernel);
    double results = (double)p->m * (double)p->n * (double)p->batch;
    double filled = results / ((double)s->tiles * kernel->bm * kernel->bn);
    int strided = p->trans_b && !t->copied && kernel->bn / kernel->tn > 4;
    return t->cost.end_us * (empty_end + (1.0 - empty_end) * filled) * (strided ? 1.0 + strided_end : 1.0) *
           (p->align_c < 16 ? 1.0 + odd_end : 1.0);
}

/* Returns what reading old results takes where a warp's tiles are its own (end.inc). */
static double read_old_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const int strided = p->trans_b && !lone_tile_of(kernel)->copied && kernel->bn / kernel->tn > 4;
    const double larger = rung_longer(0.0, (kernel->bm * kernel->bn - 2560) / 1536.0);
    const double general = rung_longer(kernel->bn > WIDE ? wide_old_us : 0.0, general_old_us + large_old_us * larger);
    const int one_by_one = p->align_c < 16 || strided || p->bias_kind || p->activation;
    const double results = (double)(p->m * p->n) * (double)p->batch / machine->sms;
    return p->beta_zero ? 0.0 : one_by_one ? first_general_old_us + general * results : first_old_us + old_us * results;
}

static void plan_apart(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, lone_plan *s)
{
    const lone_tile *t = lone_tile_of(kernel);
    int64_t most = divide_up(s->tiles, machine->sms), rest = most % LONE_WARPS, rounds = divide_up(most, LONE_WARPS);
    /* The second half of the last step is left out where it holds no k. */
    double steps =
        (double)s->steps - (!t->whole_steps && p->k > 0 && (p->k - 1) % kernel->bk < kernel->bk / 2 ? 0.5 : 0.0);
    double tile_us = steps * s->step_us, end = end_us(kernel, p, s);
    double round_us = tile_us * LONE_WARPS / PARTITIONS + end;
    double compute = (double)(most / LONE_WARPS) * round_us;
    if (rest)
        compute += rest <= PARTITIONS ? tile_us * lonely + end : round_us;
    if (rounds > 1 && p->batch == 1)
        compute += late_warps * round_us;
    double read = read_us(machine, p, s, (double)machine->sms * LONE_WARPS), write = write_us(machine, kernel, p);
    /* The first operands and the last results are in nobody's shadow: as long on any chip (docs/costs.md). */
    double first = rung_lesser(1.0, (double)kernel->stages / (double)(rounds * s->steps));
    compute += read * first * machine->memory_speed + write * rung_write_speed(machine) / (double)rounds +
               read_old_us(machine, kernel, p);
    s->together = 0;
    s->grid = (int)min64(machine->sms, s->tiles);
    s->parts_bytes = 0;
    s->cost_us = start_us(kernel) + rung_overlapped(compute, read + write);
}

/* Gives each tile's two halves of k to a cluster of two blocks. Returns 0 where it cannot. */
static int as_cluster(const rung_kernel *kernel, const lone_plan *s, int64_t grid)
{
    return slices(kernel) && grid == 2 * s->tiles;
}

enum { MANY_PARTS = 16 }; /* more are not added one by one */

/* Returns the steps of the busiest partition, where all warps of a block share k. A warp takes every eighth step, and a
 * partition has two warps. Where the block's steps leave a rest of four or fewer, no partition has more than one of
 * these: it takes that one by itself. */
static double partition_steps(const lone_plan *s, int64_t grid)
{
    const int64_t share = divide_up(s->tiles * s->steps, grid), rest = share % LONE_WARPS;
    return (double)(share / LONE_WARPS * WARPS_A_PARTITION) + (rest > PARTITIONS ? (double)WARPS_A_PARTITION
                                                               : rest > 0        ? lonely
                                                                                 : 0.0);
}

static double together_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                          const lone_plan *s, int64_t grid)
{
    double tile_bytes = 4.0 * kernel->bm * kernel->bn;
    int64_t total = s->tiles * s->steps;
    const double steps = partition_steps(s, grid);
    int ends = (int)divide_up(s->tiles, grid) + (s->tiles % grid && grid % s->tiles);
    double compute = steps * s->step_us;
    if (s->tiles % grid && grid % s->tiles) /* a share that has parts of two tiles fills and drains its rings twice */
        compute = compute * (1.0 + straddle_share) + 1.0;
    /* Blocks whose shares have parts of two tiles are at different k: none uses what another reads. */
    int straddle = s->tiles % grid && grid % s->tiles;
    double read = read_us(machine, p, s, straddle ? 1.0 : (double)grid), write = write_us(machine, kernel, p);
    compute += read * machine->memory_speed * rung_lesser(1.0, (double)(kernel->stages * WARPS_A_PARTITION) / steps) +
               write * rung_write_speed(machine) / ends;
    double cost =
        start_us(kernel) + rung_overlapped(compute, read + write) + ends * meet_us * sqrt(tile_bytes / 16384.0);
    if (!p->beta_zero)
        cost += ends * (p->align_c < 16 ? odd_shared_old_us : shared_old_us) * tile_bytes / 16384.0;
    if (as_cluster(kernel, s, grid))
        return cost + cluster_us;
    if (total % grid || total / grid % s->steps) { /* tiles are cut */
        double parts = (double)grid / (double)s->tiles, added = parts > MANY_PARTS ? 2.0 * sqrt(parts) : parts;
        cost += finish_us + added * tile_bytes / part_rate;
    }
    return cost;
}

/* The times that do not depend on the number of blocks that share k. */
typedef struct sharing {
    double memory_us,
        meeting_us;  /* at least: for operands and results, and for a tile's parts that meet within a block */
    double limit_us; /* what costs more need not be known exactly */
} sharing;

static sharing sharing_of(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                          double limit_us)
{
    return (sharing){rung_tiles_read_us(machine, p) + write_us(machine, kernel, p),
                     start_us(kernel) + meet_us * sqrt(4.0 * kernel->bm * kernel->bn / 16384.0), limit_us};
}

/* Tries `grid` blocks; keeps it when it is the cheapest so far. */
static void try_together(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                         const rung_problem *p, const sharing *of, int64_t grid, lone_plan *s)
{
    int64_t total = s->tiles * s->steps;
    if (grid < 1 || grid > machine->sms || grid > total)
        return;
    const double compute_us = partition_steps(s, grid) * s->step_us;
    if (of->meeting_us + rung_longer(compute_us, of->memory_us) > rung_no_more_than(s->cost_us, of->limit_us))
        return;
    double cost = together_us(machine, kernel, p, s, grid);
    if (cost >= s->cost_us)
        return;
    int whole = total % grid == 0 && total / grid % s->steps == 0;
    int cluster = as_cluster(kernel, s, grid);
    int64_t bytes = whole || cluster ? 0 : 2 * grid * kernel->bm * kernel->bn * 4;
    int tickets = 4 + (int)sqrt((double)divide_up(grid, s->tiles) + 1.0);
    if (bytes && (!rung_workspace_allows(config, bytes + s->copy_bytes) || s->tiles * tickets > MAX_TICKETS))
        return;
    s->together = 1;
    s->cluster = cluster ? 2 : 0;
    s->grid = (int)grid;
    s->tickets = tickets;
    s->parts_bytes = bytes;
    s->cost_us = cost;
}

static const char *plan(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                        const rung_problem *p, double limit_us, lone_plan *s)
{
    const lone_tile *t = lone_tile_of(kernel);
    memset(s, 0, sizeof *s);
    const char *reason = lone_refuse(p, 1, 1);
    if (!reason)
        reason = plan_operands(machine, config, kernel, p, s);
    if (reason)
        return reason;
    s->tiles_m = divide_up(p->m, kernel->bm);
    s->tiles_n = divide_up(p->n, kernel->bn - (t->fourths ? FEWER : 0));
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    s->steps = p->k > 0 ? divide_up(p->k, kernel->bk) : 1;
    if (t->fourths)
        s->steps = (s->steps + 3) / 4 * 4;
    reason = lone_refuse(p, s->tiles_m * s->tiles_n, s->steps);
    if (reason)
        return reason;
    s->step_us = step_us(machine, kernel, p);
    if (t->fourths && (p->lda >= LONE_MOST / 4 || p->ldb >= LONE_MOST / 4))
        return "a leading dimension is 2^28 or more";
    if (t->fourths && p->k < 2 * LONE_WARPS * kernel->bk) /* a sum of few terms would be rounded once more */
        return "k is too short for a block's warps to share";
    if (slices(kernel) || t->fourths)
        s->cost_us = HUGE_VAL;
    else
        plan_apart(machine, kernel, p, s);
    int64_t few = (slices(kernel) ? 4 : 2) * LONE_WARPS * 16 /
                  kernel->bk; /* each warp of a block takes 32 k at least, 64 where lanes take slices */
    if (s->tiles <= machine->sms * 8 && s->steps >= few) {
        /* More parts that leave a partition as many steps cost more, up to the number from which they are no longer
         * added one by one. */
        const sharing of = sharing_of(machine, kernel, p, limit_us);
        double last = 0.0;
        for (int64_t parts = 1; s->tiles * parts <= machine->sms; parts++) {
            const double steps = partition_steps(s, s->tiles * parts);
            if (steps != last || parts == MANY_PARTS + 1)
                try_together(machine, config, kernel, p, &of, s->tiles * parts, s);
            last = steps;
        }
        try_together(machine, config, kernel, p, &of, machine->sms, s);
    }
    if (s->cost_us == HUGE_VAL)
        return "k is too short, or tiles are too many, for a block's warps to share each";
    if (s->copy_bytes) {
        const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
        s->cost_us += rung_operand_copies_us(machine, &a, &b, p);
    }
    /* Starting while the kernel before ends pays, but for lone warps that tensor copies feed, that run long and wait
     * for memory. */
    s->overlaps =
        t->copied || s->cost_us < 16.0 || (s->together && s->cost_us > 1.65 * rung_memory_us(machine, p, kernel->bn));
    return NULL;
}

/* The least time there can be: every multiprocessor multiplies all the time, and no step waits for its operands. */
double lone_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const lone_tile *t = lone_tile_of(kernel);
    const int sliced = slices(kernel);
    const int64_t tiles =
                      divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn - (t->fourths ? FEWER : 0)) * p->batch,
                  steps = p->k > 0 ? divide_up(p->k, kernel->bk) : 1, most = divide_up(tiles, machine->sms);
    const double step = multiply_cycles(kernel, p) / (machine->clock_ghz * 1e3 * PARTITIONS),
                 read = rung_tiles_read_us(machine, p), write = write_us(machine, kernel, p), memory = read + write,
                 whole = (double)(most * steps) * step, cut = (double)(tiles * steps) / machine->sms * step,
                 tile_bytes = 4.0 * kernel->bm * kernel->bn, meeting = meet_us * sqrt(tile_bytes / 16384.0),
                 /* The halves of a cluster meet within it, other parts in memory. */
        parts_us = sliced ? cluster_us : finish_us + 2.0 * tile_bytes / part_rate;
    double us = rung_lesser((double)most * meeting + rung_overlapped_floor(whole, memory),
                            meeting + rung_overlapped_floor(cut, memory) + parts_us);
    if (!sliced && !t->fourths) { /* plan_apart() */
        const double rounds = (double)divide_up(most, LONE_WARPS),
                     apart = (double)most * ((double)steps - 0.5) * step + rounds * t->cost.end_us * empty_end +
                             read * machine->memory_speed *
                                 rung_lesser(1.0, (double)kernel->stages / (rounds * (double)steps)) +
                             write * rung_write_speed(machine) / rounds;
        us = rung_lesser(us, rung_overlapped_floor(apart, memory));
    }
    if (p->k > 0 && !t->copied) {
        const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
        us += rung_operand_copies_us(machine, &a, &b, p);
    }
    return start_us(kernel) + us;
}

const char *lone_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                          const rung_problem *p, rung_choice *choice)
{
    lone_plan s;
    const char *reason = plan(machine, config, kernel, p, choice->limit_us, &s);
    if (reason)
        return reason;
    choice->plan.lone = s;
    choice->cost_us = s.cost_us;
    choice->workspace_bytes = s.parts_bytes + s.copy_bytes;
    rung_note(choice, "%lld tile%s, %s, %d block%s%s", (long long)s.tiles, rung_plural(s.tiles),
              s.cluster    ? "k shared by the warps of two blocks"
              : s.together ? "k shared by the warps of a block"
                           : "a warp each",
              s.grid, rung_plural(s.grid), s.copy_bytes ? ", operands copied" : "");
    return NULL;
}
