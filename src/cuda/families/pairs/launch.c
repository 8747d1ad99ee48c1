/* Pairs: a block has two tiles of four warps at a time, so that one stores its results while the other multiplies. Here
 * is what a product costs so, and its launch. Operands and tiles are described as a lone warp's are. */
#include "cuda/families/lone/lone.h"
#include "cuda/families/pairs/shifted.h"
#include "cuda/host/boxes.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"

#include <math.h>
#include <string.h>

typedef struct pairs_tile {
    RUNG_TILE_HEAD;
    int shifted;
    struct {
        double share, end_us, a_k_innermost, b_k_innermost, both_k_innermost;
    } cost;
} pairs_tile;

RUNG_TILE_TABLE pairs_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/pairs/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(pairs, "share end_us a_k_innermost b_k_innermost both_k_innermost")

/* Fitted to timings on an H200. Microseconds: a launch; a block's first operands and last results, which lie in
 * nobody's shadow. */
static const double launch_us = 1.99, pair_us = 2.65, shifted_pair_us = 3.91;
/* A shifted tile takes so much longer where rows of C are aligned. And so much where it alone reads lines of a long
 * operand with k innermost; tiles beside it find these in the second level of cache and wait less. */
static const double shifted_aligned_us = 0.83, first_us = 0.80;
/* The time to write C, whose rows are aligned, counts so many times where warps write it and not bulk copies. A tile
 * that has a multiprocessor for itself takes this share longer. */
static const double shifted_writes = 1.31, alone_share = 0.025;
/* It counts so many times again where C's rows begin within a sector of 32 bytes: each 32 columns of a bulk copy then
 * share two sectors with their neighbours, and the stores of warps fewer. */
static const double split_sectors = 1.35, shifted_split_sectors = 1.15;
/* A tile of 128 x 128 results that reads C takes so much longer, and so much where C's rows lie at odd addresses. */
static const double beta_us = 2.2, odd_beta_us = 3.0, shifted_odd_beta_us = 4.0;

/* Decides which operands are copied first. Returns NULL, or why the product cannot run so. */
static const char *plan_operands(const rung_machine *machine, const rung_config *config, const pairs_tile *t,
                                 const rung_problem *p, pairs_plan *s)
{
    const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
    if (p->k == 0)
        return NULL;
    if (t->shifted) {
        const char *reason = rung_shifted_refuses(&a, p->batch);
        return reason ? reason : rung_shifted_refuses(&b, p->batch);
    }
    s->copy_a = !a.readable;
    s->copy_b = !b.readable;
    s->copy_bytes = rung_operand_copy_bytes(&a, p) + rung_operand_copy_bytes(&b, p);
    return rung_operand_copies_refuse(machine, config, p, &a, &b);
}

/* Returns how much longer a shifted tile takes than one of a pair. */
static double shifted_us(const rung_kernel *kernel, const rung_problem *p)
{
    const int64_t beside = !p->trans_a && p->m > p->n  ? divide_up(p->n, kernel->bn)
                           : p->trans_b && p->n > p->m ? divide_up(p->m, kernel->bm)
                                                       : INT64_MAX;
    return (p->align_c >= 16 ? shifted_aligned_us : 0.0) + (p->batch == 1 ? first_us / (double)beside : 0.0);
}

static double cost_us(const rung_machine *machine, const rung_kernel *kernel, const pairs_tile *t,
                      const rung_problem *p, const pairs_plan *s)
{
    double longer = rung_k_innermost(p, t->cost.a_k_innermost, t->cost.b_k_innermost, t->cost.both_k_innermost);
    double cycles = (kernel->tm * kernel->tn * kernel->bk / t->cost.share + 60.0) * (1.0 + longer);
    double tile_us = (double)s->steps * (cycles / (machine->clock_ghz * 1e3)) + t->cost.end_us;
    if (t->shifted)
        tile_us += shifted_us(kernel, p);
    if (!p->beta_zero)
        tile_us += (p->align_c >= 16 ? beta_us
                    : t->shifted     ? shifted_odd_beta_us
                                     : odd_beta_us) *
                   kernel->bm * kernel->bn / 16384.0;
    int64_t most = divide_up(s->tiles, machine->sms); /* tiles of the busiest multiprocessor */
    double times = 1.0;                               /* C's bytes count so */
    if (p->align_c >= 16)
        times = (t->shifted ? shifted_writes : 1.0) * (p->ldc % 8 == 0 ? 1.0
                                                       : t->shifted    ? shifted_split_sectors
                                                                       : split_sectors);
    const rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
    /* What bulk copies write goes as slowly as what memory reads. */
    const double slower = t->shifted ? 1.0 : rung_write_speed(machine) / machine->memory_speed;
    double memory = rung_read_us(machine, p) + rung_write_us(machine, p, scattered, kernel->bn) * times * slower;
    return launch_us + (t->shifted ? shifted_pair_us : pair_us) +
           rung_longer(((double)most + (most % 2 ? alone_share : 0.0)) * tile_us, memory) +
           (s->copy_bytes ? rung_operand_copies_us(machine, &a, &b, p) : 0.0);
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    const pairs_tile *t = RUNG_FIND_TILE(table, kernel);
    pairs_plan s;
    memset(&s, 0, sizeof s);
    const char *reason = lone_refuse(p, 1, 1);
    if (!reason && !rung_rows_in_reach(p->m, p->ldc, p->batch, p->stride_c))
        reason = "results lie farther apart than the copy engine reaches";
    if (!reason)
        reason = plan_operands(machine, config, t, p, &s);
    if (reason)
        return reason;
    s.tiles_m = divide_up(p->m, kernel->bm);
    s.tiles_n = divide_up(p->n, kernel->bn);
    s.tiles = s.tiles_m * s.tiles_n * p->batch;
    s.steps = p->k > 0 ? divide_up(p->k, kernel->bk) : 1;
    reason = lone_refuse(p, s.tiles_m * s.tiles_n, s.steps);
    if (reason)
        return reason;
    s.grid = (int)min64(machine->sms, s.tiles);
    choice->plan.pairs = s;
    choice->cost_us = cost_us(machine, kernel, t, p, &s);
    choice->workspace_bytes = s.copy_bytes;
    rung_note(choice, "%lld tile%s, four warps each, %d block%s%s", (long long)s.tiles, rung_plural(s.tiles), s.grid,
              rung_plural(s.grid), s.copy_bytes ? ", operands copied" : "");
    return NULL;
}

/* Returns the cost of all but the operands' copies. */
static double floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    pairs_plan s = {.copy_bytes = 0};
    s.tiles = divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn) * p->batch;
    s.steps = p->k > 0 ? divide_up(p->k, kernel->bk) : 1;
    return cost_us(machine, kernel, RUNG_FIND_TILE(table, kernel), p, &s);
}

/* Describes C in boxes of 32 x 32. */
static rung_status describe_results(rung_cuda *cuda, const rung_problem *p, CUtensorMap *map)
{
    rung_boxes boxes = {.at = p->c,
                        .size = {p->n, p->m, p->batch},
                        .ld = p->ldc,
                        .stride = p->stride_c,
                        .box = {32, 32},
                        .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                        .promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE};
    return rung_boxes_describe(cuda, &boxes, map);
}

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    const rung_kernel *kernel = choice->kernel;
    const pairs_plan *s = &choice->plan.pairs;
    const pairs_tile *t = RUNG_FIND_TILE(table, kernel);
    rung_function function;
    rung_lone_args args;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    lone_args_fill(&args, p, s->tiles_m, s->tiles_n, s->steps);
    args.g.workspace = workspace;
    args.c_boxes = !t->shifted && p->align_c >= 16 && p->n % 4 == 0;
    rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
    if (p->k > 0 && t->shifted) {
        RUNG_TRY(rung_shifted_describe(cuda, &a, p->batch, kernel->bm, !p->trans_a, &args.a_odd));
        RUNG_TRY(rung_shifted_describe(cuda, &b, p->batch, kernel->bn, p->trans_b, &args.b_odd));
    } else if (p->k > 0) {
        a.readable = !s->copy_a;
        b.readable = !s->copy_b;
        RUNG_TRY(rung_operands_copy(cuda, p, &a, &b, workspace));
        RUNG_TRY(lone_describe(cuda, &a, p->batch, kernel->bm, kernel->bk, !p->trans_a, &args.a_map));
        RUNG_TRY(lone_describe(cuda, &b, p->batch, kernel->bn, kernel->bk, p->trans_b, &args.b_map));
    }
    if (args.c_boxes)
        RUNG_TRY(describe_results(cuda, p, &args.c_map));
    rung_grid grid = {.x = (unsigned)s->grid,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_pairs = {
    .name = "pairs",
    .estimate = estimate,
    .floor_us = floor_us,
    .launch = launch,
};
