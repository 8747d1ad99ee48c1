/* Launcher "lone": FP32 tiles of one warp each, fed by bulk tensor copies (families/lone/kernel.inc), or of four warps,
 * two at a time a block (families/pairs/kernel.inc). Decides whether the warps of a block share a tile's k or have
 * tiles of their own, over how many blocks, and what that should cost. */
#include "cuda/driver/device.h"
#include "cuda/families/lone/args.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/row_copy.h"
#include "cuda/families/pairs/shifted.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = 1 << 30, MAX_TICKETS = RUNG_TICKET_BYTES / 4, PARTITIONS = 4 };

/* Microseconds, and bytes a microsecond; fitted to timings on an H200 (docs/performance-log.md, "the planner"). */
static const double launch_us = 1.99, copying_launch_us = 1.22, meet_us = 4.22, finish_us = 2.09, part_rate = 0.065e6;
/* Tiles whose lanes take slices of k: their launch; adding a cluster's halves. */
static const double slicing_straddling = 2.49, slicing_launch_us = 2.05, cluster_us = 0.16;
/* What warps take longer than bulk copies to write C; a pair's first operands and last results; what a tile takes
 * longer that has a multiprocessor for itself. */
static const double shifted_writes = 1.31, pair_us = 2.65, alone_share = 0.025;
static const double straddle_share = 0.020; /* uneven stretches */
/* A step of a warp that has its partition for itself; the end of a tile without a result, of one stored in columns. */
static const double lonely = 1.12, empty_end = 0.73, odd_end = 0.36, strided_end = 0.84;
/* A sector that an operand's step brings in takes cycles; rows at odd multiples of 16 bytes take more of them. */
static const double sector_cycles = 3.55, straddling = 1.71;

typedef struct lone_traits {
    const char *name;
    double share;      /* of the FFMA peak while multiplying */
    double end_us;     /* a warp's time to store a tile of its own; of a pair, what ends a tile in neither's shadow */
    double along_k[3]; /* what operands with k innermost add: A, B, both */
    int whole_steps;   /* the last step is multiplied whole even where half of it holds no k */
} lone_traits;

static const lone_traits traits[] = {
    {"sm90_lonewarp_f32_8x128x16_s3", 0.950, 0.93, {0.04, 0.52, 0.51}, 0},
    {"sm90_lonewarp_f32_16x128x16_s3", 0.889, 1.60, {0.08, 0.03, 0.10}, 0},
    {"sm90_lonewarp_f32_128x16x16_s3", 0.856, 4.26, {-0.01, 0.04, 0.05}, 0},
    {"sm90_lonewarp_f32_32x128x16_s2", 0.842, 2.63, {0.01, 0.05, 0.10}, 1},
    {"sm90_lonewarp_f32_48x64x16_s3", 0.845, 2.52, {0.04, 0.05, 0.11}, 0},
    {"sm90_lonewarp_f32_64x48x16_s3", 0.826, 3.56, {-0.02, 0.04, 0.08}, 0},
    {"sm90_lonewarp_f32_96x32x16_s2", 0.845, 3.10, {0.04, 0.03, 0.11}, 0},
    {"sm90_lonewarp_f32_32x32x16_s6", 0.691, 1.04, {0.03, -0.03, 0.09}, 0},
    {"sm90_lonewarp_f32_64x64x16_s3", 0.814, 3.24, {0.00, 0.07, 0.11}, 1},
    {"sm90_lonewarp_f32_16x64x16_s3", 0.950, 0.00, {-0.02, 0.14, 0.30}, 0},
    {"sm90_lonewarp_f32_64x16x16_s3", 0.809, 0.00, {0.00, 0.70, 0.26}, 0},
    {"sm90_lonewarp_f32_32x64x16_s3", 0.890, 0.00, {0.02, 0.18, 0.29}, 0},
    {"sm90_lonewarp_f32_64x32x16_s3", 0.886, 0.00, {0.02, 0.20, 0.32}, 0},
    {"sm90_lonewarp_f32_32x32x32_s3", 0.728, 0.00, {0.01, 0.06, 0.23}, 0},
    {"sm90_lonecopy_f32_48x64x16_s3", 0.642, 1.80, {0.05, 0.07, 0.10}, 1},
    {"sm90_lonecopy_f32_40x64x16_s3", 0.574, 1.47, {0.06, 0.10, 0.10}, 1},
    {"sm90_lonefour_f32_48x64x16_s3", 0.653, 1.88, {0.05, 0.00, 0.00}, 0},
    {"sm90_lonefour_f32_40x64x16_s3", 0.648, 1.74, {0.06, 0.00, 0.00}, 0},
    {"sm90_lonefour_f32_32x64x16_s3", 0.644, 1.18, {0.07, 0.00, 0.00}, 0},
    {"sm90_lonecopy_f32_32x64x16_s3", 0.627, 1.64, {0.07, 0.11, 0.19}, 0},
    {"sm90_lonecopy_f32_32x32x16_s4", 0.511, 1.36, {0.08, 0.06, 0.13}, 0},
    {"sm90_lonecopy_f32_16x96x16_s3", 0.471, 1.42, {0.03, 0.19, 0.19}, 0},
    {"sm90_tmapair_f32_128x128x16_s4", 0.847, 0.85, {0.00, 0.00, 0.00}, 0},
    {"sm90_tmapair_f32_64x256x16_s4", 0.849, 0.84, {0.01, 0.00, 0.00}, 0},
    {"sm90_tmapair_f32_256x64x16_s4", 0.847, 0.92, {0.01, 0.00, 0.00}, 0},
    {"sm90_tmashift_f32_128x128x16_s2", 0.800, 2.29, {0.04, 0.03, 0.02}, 0},
    {"sm90_tmashift_f32_64x256x16_s2", 0.741, 2.60, {0.03, -0.01, 0.00}, 0},
    {"sm90_tmashift_f32_256x64x16_s2", 0.724, 2.35, {-0.02, 0.00, -0.03}, 0},
};

static const lone_traits *traits_of(const rung_kernel *kernel)
{
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
        if (strcmp(traits[i].name, kernel->name) == 0)
            return &traits[i];
    return NULL;
}

typedef struct lone_plan {
    int64_t tiles_m, tiles_n, tiles, steps;
    int together, grid, cluster, tickets;
    rung_operand a, b;
    double step_us;
    int64_t copy_bytes, workspace_bytes; /* the latter of partial tiles, which lie before the copies of operands */
    double cost_us;
} lone_plan;

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Copies rows at any address and shifts them in shared memory. */
static int shifts(const rung_kernel *kernel)
{
    return strncmp(kernel->name, "sm90_tmashift", 13) == 0;
}

/* Each warp takes every fourth k, whose rows of B start alike; of a tile's columns all but FEWER, wherever they start.
 */
enum { FEWER = 4 };
static int in_fourths(const rung_kernel *kernel)
{
    return strncmp(kernel->name, "sm90_lonefour", 13) == 0;
}

/* Copies rows at any address, 4 bytes a lane. */
static int copies_itself(const rung_kernel *kernel)
{
    return strncmp(kernel->name, "sm90_lonecopy", 13) == 0 || in_fourths(kernel);
}

/* Tiles of four warps, two at a time; the last one of an odd number has a multiprocessor for itself. */
static int in_pairs(const rung_kernel *kernel)
{
    return kernel->wm < kernel->bm || kernel->wn < kernel->bn;
}

/* Half of a warp's lanes take other k than the others: such tiles' warps always share k. */
static int slices(const rung_kernel *kernel)
{
    return kernel->bm / kernel->tm * (kernel->bn / kernel->tn) == 16 && !in_pairs(kernel);
}

/* Operands as the kernel gets them, or why it cannot. */
static const char *plan_operands(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, lone_plan *s)
{
    s->a = rung_operand_a(p);
    s->b = rung_operand_b(p);
    s->a.readable |= p->align_a >= 16 && p->stride_a == 0;
    s->b.readable |= p->align_b >= 16 && p->stride_b == 0;
    if (p->k == 0 || copies_itself(kernel))
        return NULL;
    if (shifts(kernel)) {
        const char *reason = rung_shifted_refuses(&s->a, p->batch);
        return reason ? reason : rung_shifted_refuses(&s->b, p->batch);
    }
    s->copy_bytes = rung_operand_copy_bytes(&s->a, p) + rung_operand_copy_bytes(&s->b, p);
    return rung_operand_copies_refuse(machine, config, p, &s->a, &s->b);
}

static double start_us(const rung_kernel *kernel)
{
    return copies_itself(kernel) ? copying_launch_us : slices(kernel) ? slicing_launch_us : launch_us;
}

static double write_us(const rung_kernel *kernel, const rung_problem *p)
{
    return rung_write_us(p, copies_itself(kernel) ? part_lines : scattered, kernel->bn);
}

/* Time to read the operands. Tiles follow each other along n: where they are more than what runs at once, and L2 does
 * not hold B, later rows of tiles read B again. */
static double read_us(const rung_machine *machine, const rung_problem *p, const lone_plan *s, double at_once)
{
    double b_bytes = 4.0 * (double)p->k * (double)p->n, l2_bytes = (double)machine->l2_bytes;
    double passes = fmin((double)s->tiles_m, fmax(1.0, (double)(s->tiles_m * s->tiles_n) / at_once));
    double missed = b_bytes * b_bytes / (b_bytes * b_bytes + l2_bytes * l2_bytes);
    return rung_read_us(p) + (passes - 1.0) * missed * b_bytes * (p->stride_b ? (double)p->batch : 1.0) / read_rate;
}

/* Sectors of 32 bytes that a step of `rows` rows or columns takes up. */
static double sectors(const rung_operand *o, int rows, int depth, int k_innermost, double straddle)
{
    double more = o->readable && o->ld % 8 ? straddle : 0.0; /* copies start with a sector */
    return k_innermost ? rows * (depth / 8.0 + more) : depth * (rows / 8.0 + more);
}

/* A step along k of one tile, on one of a multiprocessor's four partitions. */
static double step_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, const lone_plan *s)
{
    const lone_traits *t = traits_of(kernel);
    double ffma = kernel->tm * kernel->tn * kernel->bk / (slices(kernel) ? 2.0 : 1.0);
    double cycles = (ffma / t->share + 60.0) * (1.0 + rung_along_k(p, t->along_k));
    double straddle = slices(kernel) ? slicing_straddling : straddling;
    if (!copies_itself(kernel) && !in_pairs(kernel))
        cycles =
            rung_overlapped(cycles, sector_cycles * (sectors(&s->a, kernel->bm, kernel->bk, !p->trans_a, straddle) +
                                                     sectors(&s->b, kernel->bn, kernel->bk, p->trans_b, straddle)));
    return cycles / (machine->clock_ghz * 1e3);
}

/* A warp's time to store a tile of its own. */
static double end_us(const rung_kernel *kernel, const rung_problem *p, const lone_plan *s)
{
    double results = (double)p->m * (double)p->n * (double)p->batch;
    double filled = results / ((double)s->tiles * kernel->bm * kernel->bn);
    int strided = p->trans_b && !copies_itself(kernel) && kernel->bn / kernel->tn > 4;
    return traits_of(kernel)->end_us * (empty_end + (1.0 - empty_end) * filled) * (strided ? 1.0 + strided_end : 1.0) *
           (p->align_c < 16 ? 1.0 + odd_end : 1.0);
}

static void plan_apart(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, lone_plan *s)
{
    int64_t most = ceil_div(s->tiles, machine->sms), rest = most % RUNG_LONE_WARPS,
            rounds = ceil_div(most, RUNG_LONE_WARPS);
    /* The second half of the last step is left out where it holds no k. */
    double steps =
        (double)s->steps -
        (!traits_of(kernel)->whole_steps && p->k > 0 && (p->k - 1) % RUNG_LONE_BK < RUNG_LONE_BK / 2 ? 0.5 : 0.0);
    double tile_us = steps * s->step_us, end = end_us(kernel, p, s);
    double round_us = tile_us * RUNG_LONE_WARPS / PARTITIONS + end;
    double compute = (double)(most / RUNG_LONE_WARPS) * round_us;
    if (rest)
        compute += rest <= PARTITIONS ? tile_us * lonely + end : round_us;
    double read = read_us(machine, p, s, (double)machine->sms * RUNG_LONE_WARPS), write = write_us(kernel, p);
    /* The first operands and the last results are in nobody's shadow. */
    double first = fmin(1.0, (double)kernel->stages / (double)(rounds * s->steps));
    compute += read * first + write / (double)rounds;
    s->together = 0;
    s->grid = (int)min64(machine->sms, s->tiles);
    s->workspace_bytes = 0;
    s->cost_us = start_us(kernel) + rung_overlapped(compute, read + write);
}

static void plan_pairs(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, lone_plan *s)
{
    double tile_us = (double)s->steps * s->step_us + traits_of(kernel)->end_us;
    int64_t most = ceil_div(s->tiles, machine->sms);
    s->together = 0;
    s->grid = (int)min64(machine->sms, s->tiles);
    s->workspace_bytes = 0;
    double memory = rung_read_us(p) + rung_write_us(p, scattered, kernel->bn) * (shifts(kernel) ? shifted_writes : 1.0);
    s->cost_us = launch_us + pair_us + fmax(((double)most + (most % 2 ? alone_share : 0.0)) * tile_us, memory);
}

/* Each tile's two halves of k to a cluster of two blocks. */
static int as_cluster(const rung_kernel *kernel, const lone_plan *s, int64_t grid)
{
    return slices(kernel) && grid == 2 * s->tiles;
}

static double together_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                          const lone_plan *s, int64_t grid)
{
    double tile_bytes = 4.0 * kernel->bm * kernel->bn;
    int64_t total = s->tiles * s->steps, steps = ceil_div(ceil_div(total, grid), RUNG_LONE_WARPS);
    int ends = (int)ceil_div(s->tiles, grid) + (s->tiles % grid && grid % s->tiles);
    double compute = (double)steps * s->step_us * RUNG_LONE_WARPS / PARTITIONS;
    if (s->tiles % grid && grid % s->tiles) /* stretches that straddle tiles fill and drain their rings twice */
        compute = compute * (1.0 + straddle_share) + 1.0;
    /* Blocks whose stretches straddle tiles are at different k: none shares what another reads. */
    int straddle = s->tiles % grid && grid % s->tiles;
    double read = read_us(machine, p, s, straddle ? 1.0 : (double)grid), write = write_us(kernel, p);
    compute += read * fmin(1.0, (double)kernel->stages / (double)steps) + write / ends;
    double cost =
        start_us(kernel) + rung_overlapped(compute, read + write) + ends * meet_us * sqrt(tile_bytes / 16384.0);
    if (as_cluster(kernel, s, grid))
        return cost + cluster_us;
    if (total % grid || total / grid % s->steps) { /* tiles are cut */
        double parts = (double)grid / (double)s->tiles, added = parts > 16.0 ? 2.0 * sqrt(parts) : parts;
        cost += finish_us + added * tile_bytes / part_rate;
    }
    return cost;
}

/* Tries `grid` blocks; keeps it when it is the cheapest so far. */
static void try_together(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                         const rung_problem *p, int64_t grid, lone_plan *s)
{
    int64_t total = s->tiles * s->steps, limit = config->workspace_limit_bytes;
    if (grid < 1 || grid > machine->sms || grid > total)
        return;
    double cost = together_us(machine, kernel, p, s, grid);
    if (cost >= s->cost_us)
        return;
    int whole = total % grid == 0 && total / grid % s->steps == 0;
    int cluster = as_cluster(kernel, s, grid);
    int64_t bytes = whole || cluster ? 0 : 2 * grid * kernel->bm * kernel->bn * 4;
    int tickets = 4 + (int)sqrt((double)ceil_div(grid, s->tiles) + 1.0);
    if (bytes && (limit < 0 || bytes + s->copy_bytes + RUNG_TICKET_BYTES > (limit ? limit : (int64_t)4 << 30) ||
                  s->tiles * tickets > MAX_TICKETS))
        return;
    s->together = 1;
    s->cluster = cluster ? 2 : 0;
    s->grid = (int)grid;
    s->tickets = tickets;
    s->workspace_bytes = bytes;
    s->cost_us = cost;
}

/* `settled`: what settled_of() an earlier plan of the same problem was, which this one then follows; 0: no such plan.
 */
static const char *plan_tiles(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                              const rung_problem *p, int settled, lone_plan *s)
{
    memset(s, 0, sizeof *s);
    if (!traits_of(kernel))
        return "its launcher has no traits for it";
    if (p->m >= MAX_SIZE || p->n >= MAX_SIZE || p->k >= MAX_SIZE || p->lda >= MAX_SIZE || p->ldb >= MAX_SIZE)
        return "a dimension or leading dimension is 2^30 or more";
    const char *reason = plan_operands(machine, config, kernel, p, s);
    if (reason)
        return reason;
    s->tiles_m = ceil_div(p->m, kernel->bm);
    s->tiles_n = ceil_div(p->n, kernel->bn - (in_fourths(kernel) ? FEWER : 0));
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    s->steps = p->k > 0 ? ceil_div(p->k, kernel->bk) : 1;
    if (in_fourths(kernel))
        s->steps = (s->steps + 3) / 4 * 4;
    if (s->tiles_m * s->tiles_n >= MAX_SIZE / p->batch || s->tiles * s->steps >= MAX_SIZE)
        return "too many tiles for 32-bit counters";
    s->step_us = step_us(machine, kernel, p, s);
    if (in_pairs(kernel)) {
        plan_pairs(machine, kernel, p, s);
        return NULL;
    }
    if (in_fourths(kernel) && (p->lda >= MAX_SIZE / 4 || p->ldb >= MAX_SIZE / 4))
        return "a leading dimension is 2^28 or more";
    if (in_fourths(kernel) && p->k < 2 * RUNG_LONE_WARPS * RUNG_LONE_BK) /* sums of few terms would round once more */
        return "k is too short for a block's warps to share";
    if (slices(kernel) || in_fourths(kernel) || settled > 0)
        s->cost_us = HUGE_VAL;
    else
        plan_apart(machine, kernel, p, s);
    if (settled > 0)
        try_together(machine, config, kernel, p, settled, s);
    int64_t few = (slices(kernel) ? 4 : 2) * RUNG_LONE_WARPS * RUNG_LONE_BK / kernel->bk; /* of what a sum takes */
    if (settled == 0 && s->tiles <= machine->sms * 8 && s->steps >= few) {
        for (int64_t parts = 1; s->tiles * parts <= machine->sms; parts++)
            try_together(machine, config, kernel, p, s->tiles * parts, s);
        try_together(machine, config, kernel, p, machine->sms, s);
    }
    return s->cost_us < HUGE_VAL ? NULL : "k is too short, or tiles are too many, for a block's warps to share each";
}

static int32_t settled_of(const lone_plan *s)
{
    return s->together ? s->grid : -1;
}

static const char *plan(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                        const rung_problem *p, int settled, lone_plan *s)
{
    const char *reason = plan_tiles(machine, config, kernel, p, settled, s);
    s->cost_us += rung_row_copy_us(s->copy_bytes);
    return reason;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    lone_plan s;
    const char *reason = plan(machine, config, kernel, p, 0, &s);
    if (reason)
        return reason;
    choice->detail[0] = settled_of(&s);
    choice->cost_us = s.cost_us;
    choice->workspace_bytes = s.workspace_bytes + s.copy_bytes;
    snprintf(choice->note, sizeof choice->note, "%lld tiles, %s, %d blocks%s", (long long)s.tiles,
             in_pairs(kernel) ? "four warps each"
             : s.cluster      ? "k shared by the warps of two blocks"
             : s.together     ? "k shared by the warps of a block"
                              : "a warp each",
             s.grid, s.copy_bytes ? ", operands copied" : "");
    return NULL;
}

/* Boxes of `extent` rows (or columns) by `depth` along k. */
static rung_status describe(rung_cuda *cuda, const rung_operand *o, int64_t mn, int64_t k, int64_t batch, int extent,
                            int depth, int k_innermost, CUtensorMap *map)
{
    int64_t batches = o->stride ? batch : 1, apart = batches > 1 ? o->stride : o->ld;
    cuuint64_t sizes[3] = {(cuuint64_t)(k_innermost ? k : mn), (cuuint64_t)(k_innermost ? mn : k), (cuuint64_t)batches};
    cuuint64_t strides[2] = {(cuuint64_t)o->ld * 4, (cuuint64_t)apart * 4};
    cuuint32_t box[3] = {(cuuint32_t)(k_innermost ? depth : extent), (cuuint32_t)(k_innermost ? extent : depth), 1};
    cuuint32_t unit[3] = {1, 1, 1};
    CU_TRY(cuda->driver, tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)o->at, sizes, strides,
                                    box, unit, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    !k_innermost  ? CU_TENSOR_MAP_SWIZZLE_NONE
                                    : depth == 16 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                  : CU_TENSOR_MAP_SWIZZLE_128B,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

/* Boxes of 32 x 32 of C. */
static rung_status describe_results(rung_cuda *cuda, const rung_problem *p, CUtensorMap *map)
{
    cuuint64_t sizes[3] = {(cuuint64_t)p->n, (cuuint64_t)p->m, (cuuint64_t)p->batch};
    cuuint64_t strides[2] = {(cuuint64_t)p->ldc * 4, (cuuint64_t)(p->batch > 1 ? p->stride_c : p->ldc) * 4};
    cuuint32_t box[3] = {32, 32, 1}, unit[3] = {1, 1, 1};
    CU_TRY(cuda->driver, tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, p->c, sizes, strides, box, unit,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

/* Exact for what is below 2^31 (Granlund and Montgomery). */
static rung_divisor divisor(uint32_t by)
{
    uint32_t bits = 0;
    while (1ull << bits < by)
        bits++;
    return (rung_divisor){(uint32_t)((1ull << (31 + bits)) / by + 1), 31 + bits};
}

static rung_status launch(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, lone_plan *s,
                          char *workspace)
{
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    rung_lone_args args = {.by_batch = divisor((uint32_t)(s->tiles_m * s->tiles_n)),
                           .by_row = divisor((uint32_t)s->tiles_n),
                           .per_batch = (int32_t)(s->tiles_m * s->tiles_n),
                           .tiles_n = (int32_t)s->tiles_n,
                           .tiles = (int32_t)s->tiles,
                           .steps = (int32_t)s->steps,
                           .together = s->together,
                           .cluster = s->cluster,
                           .batched_a = p->stride_a != 0,
                           .batched_b = p->stride_b != 0,
                           .tickets = s->tickets,
                           .c_vector = p->align_c >= 16,
                           .c_boxes = in_pairs(kernel) && !shifts(kernel) && p->align_c >= 16 && p->n % 4 == 0};
    rung_args_fill(&args.g, p);
    args.g.workspace = workspace;
    if (p->k > 0 && shifts(kernel)) {
        RUNG_TRY(rung_shifted_describe(cuda, &s->a, p->batch, kernel->bm, !p->trans_a, &args.a_odd));
        RUNG_TRY(rung_shifted_describe(cuda, &s->b, p->batch, kernel->bn, p->trans_b, &args.b_odd));
    } else if (p->k > 0 && !copies_itself(kernel)) {
        RUNG_TRY(rung_operands_copy(cuda, p, &s->a, &s->b, workspace + s->workspace_bytes));
        RUNG_TRY(describe(cuda, &s->a, p->m, p->k, p->batch, kernel->bm, kernel->bk, !p->trans_a, &args.a_map));
        RUNG_TRY(describe(cuda, &s->b, p->n, p->k, p->batch, kernel->bn, kernel->bk, p->trans_b, &args.b_map));
    }
    if (args.c_boxes)
        RUNG_TRY(describe_results(cuda, p, &args.c_map));
    /* Started while the kernel before ends: of the lone warps that tensor copies feed, longer ones that wait
     * for memory lose by it. */
    rung_grid grid = {.x = (unsigned)s->grid,
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .cluster = (unsigned)s->cluster,
                      .overlaps = in_pairs(kernel) || copies_itself(kernel) || s->cost_us < 16.0 ||
                                  (s->together && s->cost_us > 1.65 * rung_memory_us(p, kernel->bn))};
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    lone_plan s;
    const char *reason = plan(cuda->machine, &cuda->config, choice->kernel, p, choice->detail[0], &s);
    if (reason) /* less workspace is allowed than when it was settled */
        reason = plan(cuda->machine, &cuda->config, choice->kernel, p, 0, &s);
    if (reason)
        return rung_fail(RUNG_INTERNAL, "%s: %s", choice->kernel->name, reason);
    void *workspace;
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, s.workspace_bytes + s.copy_bytes, &workspace));
    rung_status status = launch(cuda, choice->kernel, p, &s, workspace);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_lone = {"lone", estimate, run};
