/* Launchers of the shape kernels: "shapes" (tiles of one size, any part of k), "shapes_small" (several matrices a
 * block) and "shapes_vector" (m = 1 or n = 1). Costs come from a small model of one multiprocessor's share of the work;
 * its constants were fitted on an H200 (docs/performance-log.md, "shapes"). */
#include "cuda/families/accurate/accurate.h"
#include "cuda/driver/device.h"
#include "cuda/families/small/crowd_args.h"
#include "cuda/host/memory_cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = 1 << 30, MAX_TICKETS = RUNG_TICKET_BYTES / 4 };

/* Microseconds, and bytes a microsecond. */
static const double launch_us = 1.61, finish_us = 2.74, reduce_rate = 0.055e6, partial_rate = 5.84e6;
/* Rows of C at odd addresses: their bytes count so many times; a crowd's, that are stored a line a warp. */
static const double odd_rows = 2.52, odd_lines = 1.44;
/* A crowd: a load of a thread that adds parts of k; of its blocks' starts and ends, what shows in the last round. */
static const double crowd_load_us = 0.08, last_round = 0.80;
static const double vector_block_us = 0.60; /* a vector kernel's block, however little it does */
static const double turned = 0.058;         /* what an operand adds that is turned while it is copied */

typedef struct tile_traits {
    const char *name;
    int slices, resident; /* slices of k in a block; blocks an SM that the registers allow */
    double share;         /* of the FFMA peak, were there nothing to wait for */
    double alone;         /* blocks that would keep an SM as long as waiting does */
    double block_us;      /* a block's start and end when the SM is full */
    double unaligned;     /* what each operand that takes 4-byte copies adds */
    double along_k[3];    /* what aligned operands with k innermost add: A, B, both */
} tile_traits;

static const tile_traits traits[] = {
    {"sm90_cpasync_f32_8x128x64_s3", 8, 2, 0.273, 0.65, 0.00, 0.08, {-0.02, -0.02, -0.06}},
    {"sm80_cpasync_f32_16x128x64_s3", 4, 2, 0.460, 0.85, 0.92, 0.05, {-0.04, -0.08, -0.09}},
    {"sm90_cpasync_f32_64x128x32_s3", 2, 2, 0.742, 0.89, 2.53, 0.02, {0.04, 0.30, 0.36}},
    {"sm80_cpasync_f32_64x128x16_s4", 1, 3, 0.738, 1.27, 2.37, 0.04, {0.06, 0.26, 0.41}},
    {"sm90_cpasync_f32_64x256x16_s3", 1, 2, 0.808, 1.12, 3.29, 0.05, {0.07, 0.32, 0.45}},
    {"sm80_cpasync_f32_128x128x16_s4", 1, 2, 0.796, 0.92, 3.43, 0.03, {0.07, 0.33, 0.43}},
    {"sm90_cpasync_f32_128x8x64_s3", 8, 2, 0.336, 0.85, 2.30, 0.04, {0.04, 0.03, 0.02}},
    {"sm80_cpasync_f32_128x16x32_s4", 4, 2, 0.445, 0.90, 1.62, 0.00, {0.00, 0.06, 0.01}},
    {"sm90_cpasync_f32_128x48x16_s4", 1, 4, 0.599, 1.82, 3.40, 0.18, {0.07, 0.25, 0.30}},
    {"sm80_cpasync_f32_128x64x16_s4", 1, 3, 0.731, 1.18, 2.42, 0.03, {0.06, 0.26, 0.40}},
    {"sm80_cpasync_f32_64x64x32_s3", 2, 3, 0.681, 1.09, 2.56, 0.03, {0.01, 0.21, 0.32}},
    {"sm90_cpasync_f32_64x64x16_s3", 1, 6, 0.666, 2.98, 2.28, 0.02, {0.00, 0.21, 0.33}},
    {"sm80_cpasync_f32_32x64x32_s4", 2, 3, 0.597, 1.17, 1.49, 0.06, {0.01, -0.01, -0.01}},
    {"sm90_cpasync_f32_64x32x32_s4", 2, 3, 0.603, 1.16, 1.51, 0.07, {0.07, 0.08, 0.09}},
    {"sm80_cpasync_f32_32x32x64_s4", 4, 2, 0.470, 0.75, 1.27, 0.04, {-0.03, -0.04, -0.04}},
    {"sm90_cpasync_f32_32x32x32_s4", 2, 5, 0.465, 1.48, 1.62, 0.04, {0.01, 0.02, 0.01}},
    {"sm80_cpasync_f32_16x16x128_s4", 16, 2, 0.281, 0.74, 1.01, 0.00, {-0.07, -0.07, -0.14}},
    {"sm90_cpasync_f32_48x48x16_s3", 2, 2, 0.417, 1.02, 1.01, 0.12, {0.06, 0.12, 0.06}},
    {"sm90_cpasync_f32_32x128x16_s2", 1, 5, 0.607, 1.88, 1.65, 0.07, {0.11, 0.23, 0.33}},
    {"sm90_cpasync_f32_128x32x16_s2", 1, 5, 0.589, 1.74, 2.02, 0.00, {0.08, 0.19, 0.24}},
    {"sm90_cpasync_f32_64x128x16_s2", 1, 4, 0.950, 4.33, 3.22, 0.05, {0.06, 0.32, 0.39}},
    {"sm90_crowd_f32_64x64x8_s4", 1, 4, 0.677, 1.61, 2.10, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_128x64x8_s4", 1, 3, 0.766, 1.43, 2.98, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_64x128x8_s4", 1, 3, 0.760, 1.51, 3.50, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_64x32x8_s4", 1, 8, 0.574, 3.35, 1.95, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_32x64x8_s4", 1, 8, 0.568, 3.48, 2.01, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_32x32x8_s4", 1, 16, 0.512, 7.40, 1.95, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_128x32x8_s4", 1, 4, 0.643, 1.74, 2.40, 0.00, {0.00, 0.00, 0.00}},
    {"sm90_crowd_f32_32x128x8_s4", 1, 4, 0.624, 1.60, 2.15, 0.00, {0.00, 0.00, 0.00}},
};

static const tile_traits *traits_of(const rung_kernel *kernel)
{
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
        if (strcmp(traits[i].name, kernel->name) == 0)
            return &traits[i];
    return NULL;
}

static int is_crowd(const rung_kernel *kernel)
{
    return strcmp(kernel->launch, "shapes_crowd") == 0;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static const char *refuse_sizes(const rung_problem *p)
{
    if (p->m >= MAX_SIZE || p->n >= MAX_SIZE || p->k >= MAX_SIZE)
        return "a dimension is 2^30 or more";
    if (p->lda >= MAX_SIZE || p->ldb >= MAX_SIZE)
        return "a leading dimension is 2^30 or more";
    return NULL;
}

static int is_aligned(const rung_problem *p)
{
    return !p->arrays && p->align_a >= 16 && p->align_b >= 16;
}

/* What device/shapes.h lays out: row padding in k-contiguous tiles, and a shift between quarters at depth 16; with an
 * operand at odd addresses rows of k, padded where they are turned. */
static int tile_floats(int extent, int depth, int k_contiguous, int aligned)
{
    if (!aligned)
        return (extent + (k_contiguous ? 4 : 0)) * depth;
    int quarter = extent / 4 * (depth + 4), shift = depth == 16 && quarter % 32 == 0 ? 16 : 0;
    return k_contiguous ? 3 * (quarter + shift) + quarter : extent * depth;
}

static int shared_bytes(const rung_kernel *kernel, int slices, const rung_problem *p, int64_t blocks_of_k)
{
    int crowd = is_crowd(kernel); /* copies 4 bytes at a time always, fills all its stages, pads its results */
    int aligned = !crowd && is_aligned(p), stage = tile_floats(kernel->bm, kernel->bk, !p->trans_a, aligned) +
                                                   tile_floats(kernel->bn, kernel->bk, p->trans_b, aligned);
    int64_t stages = !crowd && blocks_of_k + 1 < kernel->stages ? blocks_of_k + 1 : kernel->stages;
    int64_t floats = stages * stage,
            results = (int64_t)slices * kernel->bm * kernel->bn * (crowd ? RUNG_CROWD_PITCH : 32) / 32;
    return (int)(4 * (floats > results ? floats : results));
}

static int64_t tiles_of(const rung_kernel *kernel, const rung_problem *p)
{
    return ceil_div(p->m, kernel->bm) * ceil_div(p->n, kernel->bn) * p->batch;
}

/* Time of the blocks on the busiest SM: full rounds of `resident` blocks, then what is left. */
static double rounds_us(const tile_traits *t, double blocks, int sms, int resident, double block_work_us,
                        double last_us)
{
    double a_round = (double)sms * resident, full = floor(blocks / a_round),
           left = ceil((blocks - full * a_round) / sms);
    double last = left > 0 ? rung_overlapped(left, t->alone) * block_work_us + last_us * left / resident : 0.0;
    return full * (rung_overlapped(resident, t->alone) * block_work_us + t->block_us) + last;
}

/* Blocks that a multiprocessor holds at once. */
static int resident_of(const rung_kernel *kernel, const tile_traits *t, const rung_problem *p)
{
    int fit = 233472 / (shared_bytes(kernel, t->slices, p, kernel->stages) + 1024);
    return fit < 1 ? 1 : fit < t->resident ? fit : t->resident;
}

static double tile_cost_us(const rung_machine *machine, const rung_kernel *kernel, const tile_traits *t,
                           const rung_problem *p, int64_t tiles, int64_t parts)
{
    double blocks = (double)tiles * (double)parts;
    int64_t steps = ceil_div(ceil_div(p->k, kernel->bk), parts);
    double depth = (double)steps * kernel->bk, tile_bytes = 4.0 * kernel->bm * kernel->bn;
    int unaligned = (p->align_a < 16) + (p->align_b < 16), resident = resident_of(kernel, t, p);
    double along_k =
        is_crowd(kernel) || !is_aligned(p) ? turned * (!p->trans_a + p->trans_b) : rung_along_k(p, t->along_k);
    double share = t->share / (1.0 + t->unaligned * unaligned) / (1.0 + along_k);
    double work = kernel->bm * kernel->bn * depth / (128e3 * machine->clock_ghz * share);
    double compute =
        rounds_us(t, blocks, machine->sms, resident, work, t->block_us * (is_crowd(kernel) ? last_round : 1.0));
    double read = rung_read_us(p);
    double write = rung_write_us(p, is_crowd(kernel) ? odd_lines : odd_rows, kernel->bn),
           rounds = ceil(blocks / ((double)machine->sms * resident));
    /* The first operands and the last results are in nobody's shadow. */
    double first = fmin(1.0, (double)kernel->stages / ((double)steps * rounds));
    compute += read * first + write / rounds;
    double cost = launch_us + fmax(compute, read + write);
    if (parts > 1) {
        double chunks = fmin(fmin(32.0, (double)parts), tile_bytes / 256.0); /* added side by side: device/meeting.h */
        if (is_crowd(kernel)) { /* few threads add: loads of a thread, one by one */
            double vectors = tile_bytes / 16.0, each = vectors / kernel->threads * (double)parts;
            cost += crowd_load_us * (each <= RUNG_CROWD_LOADS ? each : each / chunks);
        }
        cost += finish_us + (double)parts / chunks * tile_bytes / reduce_rate + blocks * tile_bytes / partial_rate;
    }
    return cost;
}

/* NULL when this many parts of k can be had. */
static const char *refuse_parts(const rung_config *config, const rung_kernel *kernel, int64_t tiles, int64_t parts,
                                int64_t *workspace_bytes)
{
    *workspace_bytes = 0;
    if (tiles * parts > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    if (parts == 1)
        return NULL;
    int64_t bytes = tiles * parts * kernel->bm * kernel->bn * 4, limit = config->workspace_limit_bytes;
    if (limit < 0 || bytes + RUNG_TICKET_BYTES > (limit ? limit : (int64_t)4 << 30))
        return "partial sums do not fit the context's workspace limit";
    if (2 * tiles > MAX_TICKETS)
        return "too many tiles to count partial sums";
    *workspace_bytes = bytes;
    return NULL;
}

/* Each slice and part rounds its first product, a chain of FMAs only one. Where few terms are not zero (a tenth of 64)
 * the worst of 256 x 256 results then errs 1.07 times what is promised; of fewer results the worst is less bad. */
static int may_cut(const rung_problem *p)
{
    enum { SHORT_K = 128, MANY_RESULTS = 128 * 128 };
    return p->k >= SHORT_K || p->m * p->n <= MANY_RESULTS / p->batch;
}

static const int16_t part_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 18, 22, 33, 44, 66, 88, 132, 198, 264};

static const char *tile_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, rung_choice *choice)
{
    const tile_traits *t = traits_of(kernel);
    if (!t)
        return "its launcher has no traits for it";
    const char *reason = refuse_sizes(p);
    if (reason)
        return reason;
    if (t->slices > 1 && !may_cut(p))
        return "k is too short to be added in slices";
    int64_t tiles = tiles_of(kernel, p), steps = ceil_div(p->k, kernel->bk);
    choice->cost_us = HUGE_VAL;
    for (size_t i = 0; i < sizeof part_counts / sizeof *part_counts; i++) {
        int64_t parts = part_counts[i], bytes = 0;
        /* Parts whose blocks do not run side by side would be added by the last one alone. */
        if (parts > 1 && (p->in_order || !may_cut(p) || parts > steps ||
                          tiles * parts > (int64_t)machine->sms * resident_of(kernel, t, p)))
            break;
        if (steps > 0)
            parts = ceil_div(steps, ceil_div(steps, parts)); /* no part without work */
        const char *refusal = refuse_parts(config, kernel, tiles, parts, &bytes);
        if (refusal && i == 0)
            return refusal;
        double cost = refusal ? HUGE_VAL : tile_cost_us(machine, kernel, t, p, tiles, parts);
        if (cost < choice->cost_us) {
            choice->cost_us = cost;
            choice->split_k = (int32_t)parts;
            choice->workspace_bytes = bytes;
        }
    }
    snprintf(choice->note, sizeof choice->note, "%lld tiles, %d parts of k", (long long)tiles, (int)choice->split_k);
    return NULL;
}

static const char *crowd_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    if (p->batch > UINT16_MAX)
        return "more than 65535 matrices: the grid has no room";
    return tile_estimate(machine, config, kernel, p, choice);
}

static rung_status launch_tiles(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, uint8_t *marks,
                                void *zero, int64_t zero_words)
{
    const rung_kernel *kernel = choice->kernel;
    const tile_traits *t = traits_of(kernel);
    rung_function function;
    int crowd = is_crowd(kernel);
    RUNG_TRY(rung_form_function(cuda, kernel, p, crowd || is_aligned(p) ? "" : "_u", &function));
    rung_args args;
    rung_args_fill(&args, p);
    args.split_k = choice->split_k;
    args.marks = marks;
    args.zero = zero;
    args.zero_words = zero_words;
    int64_t tiles = tiles_of(kernel, p), steps = ceil_div(ceil_div(p->k, kernel->bk), choice->split_k);
    rung_grid grid = {.x = (unsigned)(crowd ? tiles / p->batch : tiles * choice->split_k),
                      .y = crowd ? (unsigned)choice->split_k : 1,
                      .z = crowd ? (unsigned)p->batch : 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)shared_bytes(kernel, t->slices, p, steps),
                      .overlaps = !marks,
                      .argument_bytes = sizeof args};
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.workspace);
    return status;
}

static rung_status tile_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return launch_tiles(cuda, choice, p, NULL, NULL, 0);
}

const char *rung_marked_tiles_refuse(const rung_problem *p)
{
    return refuse_sizes(p);
}

rung_status rung_marked_tiles_run(rung_cuda *cuda, const rung_problem *p, uint8_t *marks, void *zero,
                                  int64_t zero_words)
{
    static const rung_kernel *found; /* every accurate product asks for it */
    rung_choice choice = {.kernel = __atomic_load_n(&found, __ATOMIC_RELAXED), .split_k = 1};
    if (!choice.kernel) {
        choice.kernel = rung_kernel_find("sm80_cpasync_f32_128x128x16_s4");
        __atomic_store_n(&found, choice.kernel, __ATOMIC_RELAXED);
    }
    return launch_tiles(cuda, &choice, p, marks, zero, zero_words);
}

static int matrices_a_block(const rung_kernel *kernel)
{
    return kernel->threads / (kernel->bm / kernel->tm * (kernel->bn / kernel->tn));
}

static const char *small_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    (void)config;
    if (p->m > kernel->bm || p->n > kernel->bn)
        return "m or n is larger than its tile";
    const char *reason = refuse_sizes(p);
    if (reason)
        return reason;
    int64_t blocks = ceil_div(p->batch, matrices_a_block(kernel));
    if (blocks > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    /* Measured: what a block of each edge costs an SM that is full of them. */
    double block_us = kernel->bm == 8 ? 1.2 : kernel->bm == 16 ? 0.9 : 1.75;
    double filled = (double)p->m * (double)p->n / (kernel->bm * kernel->bn);
    block_us *= (0.55 + 0.5 * filled) * (is_aligned(p) ? 1.0 : 1.3);
    double steps = (double)ceil_div(p->k > 0 ? p->k : 1, kernel->bk), rounds = fmax(1.0, (double)blocks / machine->sms);
    double memory = rung_read_us(p) + rung_write_us(p, odd_rows, kernel->bn);
    choice->cost_us = launch_us + fmax(memory, rounds * steps * block_us);
    snprintf(choice->note, sizeof choice->note, "%d matrices a block", matrices_a_block(kernel));
    return NULL;
}

static rung_status small_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, p, is_aligned(p) ? "" : "_u", &function));
    rung_args args;
    rung_args_fill(&args, p);
    rung_grid grid = {.x = (unsigned)ceil_div(p->batch, matrices_a_block(kernel)),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .overlaps = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

/* The vector kernels see a matrix of `rows` rows: A where n = 1, B's transpose where m = 1. */
static int is_vector_of_rows(const rung_problem *p)
{
    return p->n == 1;
}

static int k_is_contiguous(const rung_problem *p)
{
    return is_vector_of_rows(p) ? !p->trans_a : p->trans_b;
}

static int64_t vector_tiles(const rung_kernel *kernel, const rung_problem *p)
{
    return ceil_div(is_vector_of_rows(p) ? p->m : p->n, kernel->bm) * p->batch;
}

static const char *vector_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                   const rung_problem *p, rung_choice *choice)
{
    if (p->m != 1 && p->n != 1)
        return "neither m nor n is 1";
    if (k_is_contiguous(p) != (kernel->bm < 32))
        return k_is_contiguous(p) ? "k is contiguous in the matrix" : "k is not contiguous in the matrix";
    const char *reason = refuse_sizes(p);
    if (reason)
        return reason;
    int64_t tiles = vector_tiles(kernel, p), steps = ceil_div(p->k, kernel->bk);
    int aligned = (is_vector_of_rows(p) ? p->align_a : p->align_b) >= 16;
    double matrix = 4.0 * (double)p->batch * (double)(p->m * p->n) * (double)p->k;
    double memory = matrix / (kernel->stages == 1 ? 3.8e6 : 3.4e6);
    choice->cost_us = HUGE_VAL;
    for (int64_t parts = 1; parts <= 64; parts += parts < 4 ? 1 : parts / 2) {
        int64_t bytes = 0;
        if (parts > 1 && (parts > steps || tiles * parts > 9 * machine->sms))
            break;
        const char *refusal = refuse_parts(config, kernel, tiles, parts, &bytes);
        if (refusal && parts == 1)
            return refusal;
        double blocks = (double)(tiles * parts), rounds = ceil(blocks / machine->sms);
        /* Without stages three blocks an SM keep enough bytes in flight; with them one. */
        double busy = kernel->stages == 1      ? fmin(1.0, blocks / (3.0 * machine->sms))
                      : blocks <= machine->sms ? fmin(1.0, 1.15 * blocks / machine->sms)
                                               : blocks / (rounds * machine->sms);
        double cost = launch_us + 0.5 + (parts > 1 ? 1.5 + 0.02 * (double)parts : 0.0) +
                      fmax(memory / busy * (aligned ? 1.0 : 1.4), vector_block_us * blocks / machine->sms);
        if (!refusal && cost < choice->cost_us) {
            choice->cost_us = cost;
            choice->split_k = (int32_t)parts;
            choice->workspace_bytes = bytes;
        }
    }
    snprintf(choice->note, sizeof choice->note, "memory bound, %d parts of k", (int)choice->split_k);
    return NULL;
}

void rung_args_fill_vector(rung_args *args, const rung_problem *p)
{
    rung_args_fill(args, p);
    if (is_vector_of_rows(p)) {
        args->ldb = p->trans_b ? 1 : p->ldb;
        return;
    }
    args->a = p->b, args->a_array = p->b_array, args->stride_a = p->stride_b, args->lda = p->ldb;
    args->b = p->a, args->b_array = p->a_array, args->stride_b = p->stride_a, args->ldb = p->trans_a ? p->lda : 1;
    args->m = p->n, args->n = 1, args->ldc = 1;
    if (p->bias_kind)
        args->bias_kind = p->bias_kind == 1 ? 2 : 1;
}

static rung_status vector_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_args args;
    rung_args_fill_vector(&args, p);
    args.split_k = choice->split_k;
    rung_grid grid = {.x = (unsigned)(vector_tiles(kernel, p) * choice->split_k),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1};
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.workspace);
    return status;
}

const rung_launcher rung_launch_shapes = {"shapes", tile_estimate, tile_run};
const rung_launcher rung_launch_shapes_crowd = {"shapes_crowd", crowd_estimate, tile_run};
const rung_launcher rung_launch_shapes_small = {"shapes_small", small_estimate, small_run};
const rung_launcher rung_launch_shapes_vector = {"shapes_vector", vector_estimate, vector_run};
