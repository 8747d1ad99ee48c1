/* What a product costs in medium tiles, and how it runs: over how many blocks the k of its tiles is spread, and which
 * operands are copied first, since the copy engine cannot read their rows. */
#include "cuda/families/medium/medium.h"
#include "cuda/families/medium/args.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/row_copy.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>
#include <string.h>

RUNG_TILE_TABLE medium_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/medium/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(medium, "alone_us full_us tile_us again_us finish_us part_us uneven_us")

const medium_tile *medium_tile_of(const rung_kernel *kernel)
{
    return RUNG_FIND_TILE(table, kernel);
}

/* Fitted to timings on an H200 (docs/costs.md). */
static const double launch_us = 3.27, cluster_us = 0.89, apart_us = 2.08;
static const double marked_factor =
    1.02; /* on a kernel of marked blocks, so that the same kernel without marks is preferred */
static const double scattered_us =
    2.62; /* so long take 128 threads to store 64 x 64 results to rows at odd addresses */
/* So long they take to add 64 x 64 results that C holds to theirs; at odd addresses storing hides the most of it. */
static const double old_us = 1.3, odd_old_us = 0.4;

enum { SHORT_K = 128 };

const medium_tile *medium_marked_tile(int b_k_innermost)
{
    const medium_tile *t = table;
    while (!t->marked || t->large_loop == b_k_innermost)
        t++;
    return t;
}

int medium_refuses_sums(const rung_problem *p)
{
    return !p->trans_a && p->trans_b && p->k < SHORT_K;
}

/* Returns how many times as long steps take by the forms of the operands, as the tile reads them, which decide how
 * often FFMAs meet busy register ports. */
static double form_factor(const medium_tile *t, const rung_problem *p)
{
    static const double factor[] = {1.0, 1.01, 0.98, 1.04}; /* NN NT TN TT */
    return factor[2 * (p->trans_a != 0) + (p->trans_b && !t->large_loop)];
}

/* Returns how many of a block's groups share `steps`, at least four each (families/medium/kernel.inc). */
static int64_t groups_at_work(const medium_tile *t, int64_t steps)
{
    int64_t groups = 1;
    while (groups < t->groups && steps >= 8 * groups)
        groups *= 2;
    return groups;
}

/* Returns the time of one block's `steps` of a tile, with this many blocks on the busiest multiprocessor. */
static double item_us(const medium_tile *t, const medium_plan *s, int64_t steps, int64_t blocks)
{
    int64_t groups = groups_at_work(t, steps);
    int alone = blocks < t->resident || (t->resident == 1 && groups < t->groups);
    return (double)divide_up(steps, groups) * (alone ? t->cost.alone_us : t->cost.full_us) * s->factor +
           t->cost.tile_us + s->end_us;
}

/* Returns the time of a tile done whole by a block while another streams `share` steps beside it. */
static double beside_us(const medium_tile *t, const medium_plan *s, int64_t steps, int64_t share)
{
    int64_t groups = groups_at_work(t, steps), all = divide_up(steps, groups),
            both = min64(divide_up(share, groups), all);
    return ((double)both * t->cost.full_us + (double)(all - both) * t->cost.alone_us) * s->factor + t->cost.tile_us +
           s->end_us;
}

/* Considers a plan: `whole` tiles are done by one block each, the others are cut along k over the last `streamers`
 * blocks. Where the whole ones leave some blocks without a tile in the last round, those are the streamers:
 * multiprocessors have one of each kind. */
static void consider(const rung_machine *machine, const medium_tile *t, medium_plan *s, int64_t grid, int64_t whole,
                     int64_t streamers, int64_t steps)
{
    int64_t streamed = s->tiles - whole, blocks = divide_up(grid, machine->sms);
    if (whole < 0)
        return;
    int cluster = 0;
    int64_t beside = streamed && streamers < grid ? whole % grid : 0;
    double rounds = (double)divide_up(whole - beside, grid);
    double us = rounds * (item_us(t, s, steps, blocks) + t->cost.again_us) - (streamed ? 0.0 : t->cost.again_us);
    if (streamed) {
        int even = streamers % streamed == 0 && steps % (streamers / streamed) == 0;
        int64_t share = divide_up(streamed * steps, streamers);
        if (share < (even ? 4 : 8) * t->groups)
            return;
        /* Two parts are a cluster. Clusters of four and eight were measured: not all that there is room for run at
         * once.
         */
        cluster = even && !whole && streamers == 2 * streamed && !t->large_loop ? 2 : 0;
        double meeting = t->cost.finish_us +
                         t->cost.part_us * rung_lesser((double)streamers / (double)streamed, s->few_parts) +
                         (even ? 0.0 : t->cost.uneven_us);
        double cut = item_us(t, s, share, beside ? blocks : divide_up(streamers, machine->sms)) +
                     (cluster ? cluster_us : meeting);
        us += (beside ? rung_longer(cut, beside_us(t, s, steps, share)) : cut) + (streamers < grid ? apart_us : 0.0);
    }
    us *= RUNG_COSTS_GHZ / machine->clock_ghz;
    if (us < s->cost_us) {
        s->cost_us = us;
        s->grid = grid;
        s->streamers = streamers;
        s->cluster = cluster;
        s->unlike = streamed && streamers < grid;
        s->whole_tiles = whole;
        s->steps = steps;
    }
}

/* Considers equal parts of each of the tiles that are not done whole, one a block. Steps beyond k, which read zeros,
 * make them equal. */
static void consider_parts(const rung_machine *machine, const medium_tile *t, medium_plan *s, int64_t grid,
                           int64_t whole, int64_t parts, int64_t steps)
{
    int64_t streamers = parts * (s->tiles - whole);
    consider(machine, t, s, grid ? grid : streamers, whole, streamers, divide_up(steps, parts) * parts);
}

static void plan_spread(const rung_machine *machine, const medium_tile *t, int may_stream, int64_t steps,
                        medium_plan *s)
{
    int64_t sms = machine->sms, slots = sms * t->resident, all = min64(slots, s->tiles);
    s->cost_us = HUGE_VAL;
    consider(machine, t, s, all, s->tiles, all, steps);
    if (!may_stream || !steps)
        return;
    int64_t rest = s->tiles % slots, rounds = s->tiles - rest;
    if (rest) {
        consider(machine, t, s, slots, rounds, slots, steps);
        consider(machine, t, s, slots, rounds - slots, slots, steps);
    }
    /* After full rounds, the rest goes in parts to as many blocks as that takes; or there is a round of one tile a
     * multiprocessor, and beside it what is left then. */
    for (int64_t parts = 2; rounds && rest && parts * rest <= slots; parts++)
        consider_parts(machine, t, s, slots, rounds, parts, steps);
    int64_t beside = t->resident == 2 ? rest - sms : 0;
    if (beside > 0)
        consider(machine, t, s, slots, rounds + sms, sms, steps);
    for (int64_t parts = 2; beside > 0 && parts * beside <= sms; parts++)
        consider_parts(machine, t, s, rounds ? slots : sms + parts * beside, rounds + sms, parts, steps);
    int64_t most = min64(slots / s->tiles, steps), once = sms / s->tiles;
    for (int64_t parts = 2; parts <= most; parts += parts < 16 ? 1 : parts / 8)
        consider_parts(machine, t, s, 0, 0, parts, steps);
    if (most > 16)
        consider_parts(machine, t, s, 0, 0, most, steps);
    if (once > 16 && once <= most)
        consider_parts(machine, t, s, 0, 0, once, steps);
}

static const char *plan(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                        const rung_problem *p, medium_plan *s)
{
    const medium_tile *t = medium_tile_of(kernel);
    memset(s, 0, sizeof *s);
    if (p->m >= INT32_MAX - 65536 || p->n >= INT32_MAX - 65536 || p->k >= INT32_MAX - 65536)
        return "a size close to 2^31 or over it";
    if (!t->large_loop && medium_refuses_sums(p))
        return "k is innermost in both operands and short";
    int64_t steps = divide_up(p->k, MEDIUM_BK);
    s->factor = form_factor(t, p);
    s->end_us = (p->align_c >= 16 ? 0.0 : scattered_us) + (p->beta_zero ? 0.0 : p->align_c >= 16 ? old_us : odd_old_us);
    s->end_us *= kernel->bm * kernel->bn / (4096.0 * kernel->threads / 128.0);
    const rung_operand a = rung_operand_a(p), b = medium_operand_b(t, p);
    s->few_parts = 4.0 * MEDIUM_FEW / ((double)kernel->bm * kernel->bn);
    s->tiles_m = divide_up(p->m, kernel->bm);
    s->tiles_n = divide_up(p->n, kernel->bn);
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    if (s->tiles >= INT32_MAX / MEDIUM_GROUP_M || s->tiles * (2 * steps + 1) >= INT32_MAX)
        return "too many tiles for 32-bit counters";
    s->bytes_a = rung_operand_copy_bytes(&a, p);
    s->bytes_b = rung_operand_copy_bytes(&b, p);
    s->copy_a = s->bytes_a > 0;
    s->copy_b = s->bytes_b > 0;
    const char *reason = rung_operand_copies_refuse(machine, config, p, &a, &b);
    if (reason)
        return reason;
    int64_t partials = (int64_t)machine->sms * t->resident * kernel->bm * kernel->bn * 8;
    int may_stream = rung_workspace_allows(config, s->bytes_a + s->bytes_b + partials);
    plan_spread(machine, t, may_stream, steps, s);
    if (s->whole_tiles < s->tiles && !s->cluster)
        s->bytes_partials = s->streamers * kernel->bm * kernel->bn * 8;
    s->cost_us = launch_us + rung_overlapped(s->cost_us, rung_memory_us(machine, p, kernel->bn));
    s->cost_us += rung_operand_copies_us(machine, &a, &b, p);
    if (t->marked)
        s->cost_us *= marked_factor;
    return NULL;
}

/* The least time there can be: every multiprocessor multiplies all the time and ends one tile. A kernel of marked
 * blocks never comes first: the same without marks costs less. */
double medium_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const medium_tile *t = medium_tile_of(kernel);
    if (t->marked)
        return HUGE_VAL;
    const rung_operand a = rung_operand_a(p), b = medium_operand_b(t, p);
    int64_t tiles = divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn) * p->batch,
            steps = divide_up(p->k, MEDIUM_BK);
    /* A block that has the multiprocessor for itself, with all its groups at work, or half of them at most. */
    double lone_us = t->resident == 1 ? 2.0 * t->cost.alone_us : t->cost.alone_us,
           step_us = rung_lesser(t->cost.full_us / t->resident, lone_us) / t->groups * form_factor(t, p),
           products = ((double)(tiles * steps) / machine->sms * step_us + t->cost.tile_us) * RUNG_COSTS_GHZ /
                      machine->clock_ghz;
    return launch_us + rung_overlapped_floor(products, rung_memory_us(machine, p, kernel->bn)) +
           rung_operand_copies_us(machine, &a, &b, p);
}

const char *medium_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    medium_plan s;
    const char *reason = plan(machine, config, kernel, p, &s);
    if (reason)
        return reason;
    choice->plan.medium = s;
    choice->cost_us = s.cost_us;
    choice->workspace_bytes = s.bytes_a + s.bytes_b + s.bytes_partials;
    rung_note(choice, "%lld tile%s, %lld of them cut over %lld block%s%s%s", (long long)s.tiles, rung_plural(s.tiles),
              (long long)(s.tiles - s.whole_tiles), (long long)s.streamers, rung_plural(s.streamers),
              s.bytes_a ? ", A packed" : "",
              !s.bytes_b                                         ? ""
              : medium_tile_of(kernel)->large_loop && p->trans_b ? ", B turned"
                                                                 : ", B packed");
    return NULL;
}
