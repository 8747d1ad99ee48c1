/* Launcher "warp": FP32 tiles of medium size that bulk copies fill, operands in the order they lie. Decides over how
 * many blocks the tiles' k is spread and what that costs; copies operands whose rows the copy engine cannot read. */
#include "cuda/driver/device.h"
#include "cuda/families/medium/args.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/row_copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fitted to timings on an H200 (docs/performance-log.md, "the planner"). */
static const double launch_us = 3.27, cluster_us = 0.89, apart_us = 2.08;
static const double scattered_us = 2.62; /* for 64 x 64 results by 128 threads to rows at odd addresses */

typedef struct warp_traits {
    const char *name;
    int groups, resident;      /* of warps that share k, in a block; blocks on a multiprocessor */
    double alone_us, full_us;  /* a step with one block on the multiprocessor, and with `resident`, at 1.98 GHz */
    double tile_us, again_us;  /* end of a tile; before a block's next one */
    double finish_us, part_us; /* meeting of a tile's parts, and each of them while one block adds them all */
    double uneven_us;          /* blocks that stream parts of two tiles */
    int no_clusters;
} warp_traits;

static const warp_traits traits[] = {
    {"sm90_tmawarp_f32_128x128x16_s6", 1, 2, 1.45, 2.71, 2.83, 2.79, 0.00, 1.20, 3.75, 0},
    {"sm90_tmawarp_f32_64x64x64_s3", 4, 2, 1.47, 2.63, 0.69, 1.99, 4.06, 0.06, 10.61, 0},
    {"sm90_tmaslice_f32_64x64x16_s2", 4, 2, 1.31, 2.52, 0.45, 1.09, 5.36, 0.04, 9.59, 1},
    {"sm90_tmawarp_f32_64x64x128_s3", 8, 1, 1.50, 2.61, 0.79, 2.35, 4.52, 0.04, 10.06, 0},
    {"sm90_tmawarp_f32_64x128x32_s4", 2, 2, 1.50, 2.72, 1.47, 2.35, 0.52, 0.74, 8.77, 0},
    {"sm90_tmawarp_f32_128x64x32_s4", 2, 2, 1.51, 2.72, 1.49, 2.34, 0.52, 0.71, 8.28, 0},
};

/* Both operands with k innermost are multiplied with neighbouring k exchanged; sums this short must not show it. */
enum { SHORT_K = 128 };

typedef struct warp_plan {
    rung_operand a, b;
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int64_t grid, streamers;                  /* blocks, and the last of them, which stream */
    double few_parts;                         /* of a tile: more are added by several blocks */
    int cluster;                              /* blocks that share a tile as a cluster; 0: none do */
    int unlike;                               /* not all blocks have as much to do */
    double factor;                            /* on a step's time */
    double end_us;                            /* a tile's, beyond its traits' */
    int64_t bytes_a, bytes_b, bytes_partials; /* workspace, in this order */
    double cost_us;
} warp_plan;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const warp_traits *traits_of(const rung_kernel *kernel)
{
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
        if (strcmp(traits[i].name, kernel->name) == 0)
            return &traits[i];
    return NULL;
}

/* Steps take longer where one operand lies with k innermost and the other does not, or both do: register ports. */
static double form_factor(const rung_problem *p)
{
    static const double factor[] = {1.0, 1.01, 0.98, 1.04}; /* NN NT TN TT */
    return factor[2 * (p->trans_a != 0) + (p->trans_b != 0)];
}

/* How many of a block's groups share `steps`: at least four each (families/medium/kernel.inc). */
static int64_t groups_at_work(const warp_traits *t, int64_t steps)
{
    int64_t groups = 1;
    while (groups < t->groups && steps >= 8 * groups)
        groups *= 2;
    return groups;
}

/* One block's `steps` of a tile, with this many blocks on the busiest multiprocessor. */
static double item_us(const warp_traits *t, const warp_plan *s, int64_t steps, int64_t blocks)
{
    int64_t groups = groups_at_work(t, steps);
    int alone = blocks < t->resident || (t->resident == 1 && groups < t->groups);
    return (double)ceil_div(steps, groups) * (alone ? t->alone_us : t->full_us) * s->factor + t->tile_us + s->end_us;
}

/* A tile done whole by a block that another streams `share` steps beside. */
static double beside_us(const warp_traits *t, const warp_plan *s, int64_t steps, int64_t share)
{
    int64_t groups = groups_at_work(t, steps), all = ceil_div(steps, groups),
            both = min64(ceil_div(share, groups), all);
    return ((double)both * t->full_us + (double)(all - both) * t->alone_us) * s->factor + t->tile_us + s->end_us;
}

/* `whole` tiles done by one block each, the others in `steps` cut along k over the last `streamers` blocks. Where the
 * whole ones leave some blocks without a tile in the last round, those are the streamers: multiprocessors have one of
 * each. */
static void consider(const rung_machine *machine, const warp_traits *t, warp_plan *s, int64_t grid, int64_t whole,
                     int64_t streamers, int64_t steps)
{
    int64_t streamed = s->tiles - whole, blocks = ceil_div(grid, machine->sms);
    if (grid < 1 || whole < 0)
        return;
    int cluster = 0;
    int64_t beside = streamed && streamers < grid ? whole % grid : 0;
    double rounds = (double)ceil_div(whole - beside, grid);
    double us = rounds * (item_us(t, s, steps, blocks) + t->again_us) - (streamed ? 0.0 : t->again_us);
    if (streamed) {
        int even = streamers % streamed == 0 && steps % (streamers / streamed) == 0;
        int64_t share = ceil_div(streamed * steps, streamers);
        if (share < (even ? 4 : 8) * t->groups)
            return;
        /* Two parts are a cluster. Measured: of clusters of four and eight not all that there is room for run at once.
         */
        cluster = even && !whole && streamers == 2 * streamed && !t->no_clusters ? 2 : 0;
        double meeting = t->finish_us + t->part_us * fmin((double)streamers / (double)streamed, s->few_parts) +
                         (even ? 0.0 : t->uneven_us);
        double cut = item_us(t, s, share, beside ? blocks : ceil_div(streamers, machine->sms)) +
                     (cluster ? cluster_us : meeting);
        us += (beside ? fmax(cut, beside_us(t, s, steps, share)) : cut) + (streamers < grid ? apart_us : 0.0);
    }
    us *= 1.98 / machine->clock_ghz;
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

/* As many parts of each of the tiles that are not done whole, on as many blocks: steps beyond k, which read zeros, make
 * them equal. */
static void consider_parts(const rung_machine *machine, const warp_traits *t, warp_plan *s, int64_t grid, int64_t whole,
                           int64_t parts, int64_t steps)
{
    int64_t streamers = parts * (s->tiles - whole);
    consider(machine, t, s, grid ? grid : streamers, whole, streamers, ceil_div(steps, parts) * parts);
}

static void plan_spread(const rung_machine *machine, const warp_traits *t, int may_stream, int64_t steps, warp_plan *s)
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
    /* After full rounds, the rest in parts, as many blocks as that takes; or a round of one tile a multiprocessor, and
     * beside it the rest of the rest. */
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
                        const rung_problem *p, warp_plan *s)
{
    const warp_traits *t = traits_of(kernel);
    memset(s, 0, sizeof *s);
    if (!t)
        return "its launcher has no traits for it";
    if (p->m >= INT32_MAX - 65536 || p->n >= INT32_MAX - 65536 || p->k >= INT32_MAX - 65536)
        return "a size close to 2^31 or over it";
    if (!p->trans_a && p->trans_b && p->k < SHORT_K)
        return "k is innermost in both operands and short";
    int64_t steps = ceil_div(p->k, RUNG_WARP_BK);
    s->factor = form_factor(p);
    s->end_us = p->align_c >= 16 ? 0.0 : scattered_us * kernel->bm * kernel->bn / (4096.0 * kernel->threads / 128.0);
    s->a = rung_operand_a(p);
    s->b = rung_operand_b(p);
    s->few_parts = 4.0 * RUNG_WARP_FEW / ((double)kernel->bm * kernel->bn);
    s->tiles_m = ceil_div(p->m, kernel->bm);
    s->tiles_n = ceil_div(p->n, kernel->bn);
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    if (s->tiles >= INT32_MAX / RUNG_WARP_GROUP_M || s->tiles * (2 * steps + 1) >= INT32_MAX)
        return "too many tiles for 32-bit counters";
    s->bytes_a = rung_operand_copy_bytes(&s->a, p);
    s->bytes_b = rung_operand_copy_bytes(&s->b, p);
    const char *reason = rung_operand_copies_refuse(machine, config, p, &s->a, &s->b);
    if (reason)
        return reason;
    int64_t limit = config->workspace_limit_bytes;
    int64_t partials = (int64_t)machine->sms * t->resident * kernel->bm * kernel->bn * 8;
    int may_stream =
        limit >= 0 && s->bytes_a + s->bytes_b + partials + RUNG_TICKET_BYTES <= (limit ? limit : INT64_MAX);
    plan_spread(machine, t, may_stream, steps, s);
    if (s->whole_tiles < s->tiles && !s->cluster)
        s->bytes_partials = s->streamers * kernel->bm * kernel->bn * 8;
    s->cost_us = launch_us + rung_overlapped(s->cost_us, rung_memory_us(p, kernel->bn));
    s->cost_us += rung_row_copy_us(s->bytes_a + s->bytes_b);
    return NULL;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    warp_plan s;
    const char *reason = plan(machine, config, kernel, p, &s);
    if (reason)
        return reason;
    choice->cost_us = s.cost_us;
    choice->workspace_bytes = s.bytes_a + s.bytes_b + s.bytes_partials;
    snprintf(choice->note, sizeof choice->note, "%lld tiles, %lld of them cut over %lld blocks%s%s", (long long)s.tiles,
             (long long)(s.tiles - s.whole_tiles), (long long)s.streamers, s.bytes_a ? ", A packed" : "",
             s.bytes_b ? ", B packed" : "");
    return NULL;
}

/* Boxes of one step: 16 of k by the tile's rows; k innermost swizzled, so that reading along k meets no bank twice. */
static rung_status describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int k_innermost, int extent,
                            CUtensorMap *map)
{
    cuuint64_t sizes[3] = {(cuuint64_t)o->inner, (cuuint64_t)o->outer, (cuuint64_t)batch};
    cuuint64_t strides[2] = {(cuuint64_t)o->ld * 4, (cuuint64_t)(batch > 1 ? o->stride : o->ld) * 4};
    cuuint32_t box[3] = {k_innermost ? RUNG_WARP_BK : (cuuint32_t)extent,
                         k_innermost ? (cuuint32_t)extent : RUNG_WARP_BK, 1};
    cuuint32_t unit[3] = {1, 1, 1};
    CU_TRY(cuda->driver, tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)o->at, sizes, strides,
                                    box, unit, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    k_innermost ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

static rung_status launch(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, warp_plan *s,
                          char *workspace)
{
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    int64_t streamed = (s->tiles - s->whole_tiles) * s->steps;
    rung_warp_args args = {.c = p->c,
                           .ldc = p->ldc,
                           .stride_c = p->stride_c,
                           .alpha_device = p->alpha_device,
                           .beta_device = p->beta_device,
                           .bias = p->bias,
                           .alpha = p->alpha,
                           .beta = p->beta,
                           .m = (int32_t)p->m,
                           .n = (int32_t)p->n,
                           .tiles_m = (int32_t)s->tiles_m,
                           .tiles_n = (int32_t)s->tiles_n,
                           .tiles = (int32_t)s->tiles,
                           .whole_tiles = (int32_t)s->whole_tiles,
                           .steps = (int32_t)s->steps,
                           .alone = (int32_t)(s->grid - s->streamers),
                           .share = (int32_t)(streamed / s->streamers),
                           .wider = (int32_t)(streamed % s->streamers),
                           .cluster = s->cluster,
                           .bias_kind = (int32_t)p->bias_kind,
                           .activation = (int32_t)p->activation,
                           .c_vector = p->align_c >= 16};
    if (p->k) { /* else nothing is read: any map will do */
        RUNG_TRY(rung_operands_copy(cuda, p, &s->a, &s->b, workspace));
        RUNG_TRY(describe(cuda, &s->a, p->batch, !p->trans_a, kernel->bm, &args.a_map));
        RUNG_TRY(describe(cuda, &s->b, p->batch, p->trans_b, kernel->bn, &args.b_map));
    }
    if (s->bytes_partials) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.counters = (uint32_t *)(workspace - RUNG_TICKET_BYTES);
    }
    rung_grid grid = {.x = (unsigned)s->grid,
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      /* Each multiprocessor is to have one block of each kind: none may start where a block of the
                       * kernel before has just ended, and a full grid must come in clusters. */
                      .cluster = s->unlike && s->grid % 2 == 0 ? 2 : (unsigned)s->cluster,
                      .overlaps = !s->unlike};
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    warp_plan s;
    const char *reason = plan(cuda->machine, &cuda->config, choice->kernel, p, &s);
    if (reason)
        return rung_fail(RUNG_INTERNAL, "%s: %s", choice->kernel->name, reason);
    void *workspace;
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, s.bytes_a + s.bytes_b + s.bytes_partials, &workspace));
    rung_status status = launch(cuda, choice->kernel, p, &s, workspace);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_warp = {"warp", estimate, run};
