/* A matrix times a vector (m = 1 or n = 1): in how many parts k is cut, what that costs, and the launch. Memory
 * decides: every element of the matrix is read once. */
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "cuda/families/vector/args.h"
#include "cuda/families/vector/tile.h"
#include "cuda/host/boxes.h"
#include "cuda/host/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/parts.h"
#include "cuda/host/row_copy.h"

#include <math.h>

enum { MAX_SIZE = 1 << 30, MAX_PARTS = 66, MANY_PARTS = 64, SHARED_BYTES = 233472 /* of a multiprocessor */ };

typedef struct vector_tile {
    RUNG_TILE_HEAD;
    int k_innermost, apart, bulk, dealt, warps, resident;
    struct {
        double bytes_per_us, block_us, round_us;
    } cost;
} vector_tile;

RUNG_TILE_TABLE vector_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/vector/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(vector, "bytes_per_us block_us round_us")

/* A launch with its first and last block takes so many microseconds. A warp whose threads copy 16 bytes at a time takes
 * in so many bytes a microsecond. All are fitted to timings on an H200 (results/times-vectors-h200.jsonl). */
static const double launch_us = 2.1, warp_rate = 5e3;
/* With stages, where lines of the matrix do not begin at multiples of 16 bytes, floats come one by one. A round of
 * blocks takes so long, and a microsecond more for so many lines of k by sixteen warps. Fewer warps get so much less of
 * memory's rate. */
static const double odd_staged_factor = 0.85, odd_few_factor = 1.25, odd_block_us = 1.2, odd_lines_per_us = 120.0,
                    few_lines_per_us = 80.0;
/* The second level of cache gives so many bytes a microsecond. */
static const double l2_rate = 5.5e6;
/* With bulk copies a launch, a round of blocks, and the meeting of parts take so long; and a multiprocessor takes in so
 * many bytes a microsecond with one block, with two, with two beside others that have one, and while a ring fills for
 * the first time. */
static const double bulk_launch_us = 1.3, bulk_round_us = 1.2, bulk_meet_us = 2.0, one_rate = 0.034e6,
                    two_rate = 0.036e6, some_two_rate = 0.044e6, filling_rate = 0.12e6;

/* Returns whether the matrix is A. The vector kernels see a matrix of `rows` rows: A where n = 1, B's transpose where m
 * = 1.
 */
static int is_vector_of_rows(const rung_problem *p)
{
    return p->n == 1;
}

static int k_is_innermost(const rung_problem *p)
{
    return is_vector_of_rows(p) ? !p->trans_a : p->trans_b;
}

/* Returns how far one element of the vector lies from the next, in elements. */
static int64_t vector_step(const rung_problem *p)
{
    return is_vector_of_rows(p) ? (p->trans_b ? 1 : p->ldb) : p->trans_a ? p->lda : 1;
}

static int64_t vector_tiles(const rung_kernel *kernel, const rung_problem *p)
{
    const int64_t rows = is_vector_of_rows(p) ? p->m : p->n, ld = is_vector_of_rows(p) ? p->lda : p->ldb;
    return VECTOR_TILES_OF(rows, ld, kernel->bm, k_is_innermost(p)) * p->batch;
}

/* Returns the factor on memory's time of a kernel without stages. Three blocks a multiprocessor keep enough bytes under
 * way, in the last round two fifths of them do (1000 x 500000 in two parts, 100 x 500000 in 19). */
static double unstaged_factor(double blocks, double slots)
{
    const double full = floor(blocks / slots) * slots, rest = blocks - full;
    if (full == 0.0)
        return slots / blocks;
    return (full + (rest > 0.0 ? rung_longer(rest, 0.4 * slots) : 0.0)) / blocks;
}

/* Returns the microseconds between the launch and the meeting of parts. `memory` is what the matrix takes at memory's
 * rate. */
static double plain_busy_us(const rung_kernel *kernel, double memory, double blocks, double sms, int64_t lines,
                            int aligned)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    const double slots = t->resident * sms, rounds_us = t->cost.round_us * blocks / slots;
    if (t->k_innermost)
        return rounds_us + rung_longer(memory * unstaged_factor(blocks, slots), t->cost.block_us * blocks / sms);
    if (aligned)
        return rounds_us +
               rung_longer(memory, ceil(blocks / slots) * 4.0 * kernel->bm * (double)lines / (warp_rate * t->warps));
    if (t->warps < 16)
        return rung_longer(memory * odd_few_factor, (double)lines / few_lines_per_us) +
               odd_block_us * ceil(blocks / slots);
    return rung_longer(memory * odd_staged_factor,
                       ceil(blocks / slots) * (odd_block_us + (double)lines / odd_lines_per_us));
}

/* Returns the microseconds between launch and meeting where the vector's elements lie apart. Each four rows take a
 * cycle of a multiprocessor for every line that a load of a warp touches. And each block has the elements' sectors from
 * the second level anew; the closer they lie the more of them its neighbours have left in the first. Where rows are
 * innermost a warp reads one element at a time anyway. */
static double apart_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, double busy_us)
{
    const double share_of_sector = rung_lesser(1.0, (double)vector_step(p) / 8.0),
                 elements = (double)p->batch * (double)(p->m * p->n) * (double)p->k,
                 cycles = elements * (share_of_sector / 4.0 + 1.0 / 32.0) / machine->sms,
                 read = (double)vector_tiles(kernel, p) * (double)p->k * 32.0 * share_of_sector * share_of_sector;
    if (!k_is_innermost(p) || vector_step(p) == 1)
        return busy_us;
    return rung_longer(rung_overlapped(busy_us, cycles / (1e3 * machine->clock_ghz)),
                       (read + 4.0 * elements) / l2_rate);
}

static const char *plain_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    if (p->m != 1 && p->n != 1)
        return "neither m nor n is 1";
    if (k_is_innermost(p) != (t->k_innermost))
        return k_is_innermost(p) ? "k is innermost in the matrix" : "k is not innermost in the matrix";
    const char *reason = rung_refuse_sizes(p);
    if (reason)
        return reason;
    int64_t tiles = vector_tiles(kernel, p), steps = rung_ceil_div(p->k, kernel->bk);
    int aligned = (is_vector_of_rows(p) ? p->align_a : p->align_b) >= 16;
    double matrix = 4.0 * (double)p->batch * (double)(p->m * p->n) * (double)p->k;
    double memory = matrix / t->cost.bytes_per_us;
    choice->cost_us = HUGE_VAL;
    for (int64_t parts = 1; parts <= MANY_PARTS; parts += 1 + parts / 8) {
        int64_t bytes = 0;
        if (parts > 1 && (parts > steps || tiles * parts > 9 * machine->sms))
            break;
        if (parts > 1)
            bytes = tiles * parts * kernel->bm * kernel->bn * 4;
        const char *refusal = rung_refuse_parts(config, tiles, parts, bytes);
        if (refusal && parts == 1)
            return refusal;
        double blocks = (double)(tiles * parts);
        int64_t lines = rung_ceil_div(steps, parts) * kernel->bk;
        double meet = parts > 1 ? 1.5 + 0.02 * (double)parts : 0.0;
        double busy = plain_busy_us(kernel, memory, blocks, machine->sms, lines, aligned);
        double cost = launch_us + meet + apart_us(machine, kernel, p, busy);
        if (!refusal && cost < choice->cost_us) {
            choice->cost_us = cost;
            choice->parts = (int32_t)parts;
            choice->workspace_bytes = bytes;
        }
    }
    rung_note(choice, "memory bound, %d parts of k", (int)choice->parts);
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
        args->bias_kind = p->bias_kind == RUNG_BIAS_PER_ROW ? RUNG_BIAS_PER_COLUMN : RUNG_BIAS_PER_ROW;
}

static rung_status plain_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_args args;
    rung_args_fill_vector(&args, p);
    args.split_k = choice->parts;
    rung_grid grid = {.x = (unsigned)(vector_tiles(kernel, p) * choice->parts),
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

/* The matrix of the product: A where n = 1, B where m = 1. Its rows are innermost. */
typedef struct vector_matrix {
    const float *at;
    int64_t rows, ld, stride;
    int readable;
} vector_matrix;

static vector_matrix matrix_of(const rung_problem *p)
{
    vector_matrix a = {p->a, p->m, p->lda, p->stride_a, rung_rows_readable(p->align_a, p->batch, p->stride_a)};
    vector_matrix b = {p->b, p->n, p->ldb, p->stride_b, rung_rows_readable(p->align_b, p->batch, p->stride_b)};
    return p->n == 1 ? a : b;
}

/* Returns the workspace of blocks that share groups of rows: each may leave two parts. */
static int64_t bulk_parts_bytes(const rung_kernel *kernel, int64_t groups, int64_t blocks)
{
    return groups % blocks ? 2 * blocks * kernel->bm * 4 : 0;
}

/* Returns whether groups of rows may be shared: their sums have room, and there are counters enough. */
static int bulk_may_share(const rung_config *config, int64_t groups, int64_t bytes)
{
    const int64_t limit = config->workspace_limit_bytes;
    return limit >= 0 && bytes + RUNG_TICKET_BYTES <= (limit ? limit : INT64_MAX) && groups <= RUNG_MOST_TICKETS;
}

/* Returns the microseconds of all rounds of blocks with so many bytes each. */
static double bulk_busy_us(int64_t blocks, double bytes, double ring, int64_t slots, int64_t sms)
{
    const double first = rung_lesser(bytes, ring);
    if (blocks <= sms)
        return bulk_round_us + first / filling_rate + (bytes - first) / one_rate;
    const double full = (double)(blocks / slots) * (bulk_round_us + bytes * ((double)slots / (double)sms) / two_rate);
    const int64_t rest = blocks % slots;
    return full + (rest == 0     ? 0.0
                   : rest <= sms ? bulk_round_us + bytes / one_rate
                                 : bulk_round_us + 2.0 * bytes / (blocks < slots ? some_two_rate : two_rate));
}

/* Returns how many blocks all multiprocessors hold at once. */
static int64_t bulk_slots(const rung_machine *machine, const rung_kernel *kernel)
{
    return (int64_t)machine->sms * (SHARED_BYTES / (kernel->shared_bytes + 1024));
}

/* Returns the k that one bulk copy brings. */
static int64_t copy_k(const rung_kernel *kernel)
{
    return VECTOR_BOX / kernel->bm;
}

/* Takes so many blocks, if they are predicted to take less time than those of the choice so far. */
static void bulk_consider(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                          int64_t groups, double bytes, int64_t blocks, rung_choice *choice)
{
    const int64_t slots = bulk_slots(machine, kernel), partials = bulk_parts_bytes(kernel, groups, blocks);
    if (partials && !bulk_may_share(config, groups, partials))
        return;
    const double busy = bulk_busy_us(blocks, bytes / (double)blocks, (double)kernel->shared_bytes, slots, machine->sms),
                 cost = bulk_launch_us + (partials ? bulk_meet_us : 0.0) +
                        rung_longer(bytes / RUNG_FIND_TILE(table, kernel)->cost.bytes_per_us, busy);
    if (cost >= choice->cost_us)
        return;
    choice->cost_us = cost;
    choice->plan.vector.blocks = (int)blocks;
    choice->workspace_bytes = partials;
}

static const char *bulk_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, rung_choice *choice)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    if (p->m != 1 && p->n != 1)
        return "neither m nor n is 1";
    if (p->n == 1 ? !p->trans_a : p->trans_b)
        return "k is innermost in the matrix";
    if (p->m >= MAX_SIZE || p->n >= MAX_SIZE || p->k >= MAX_SIZE)
        return "a dimension is 2^30 or more";
    vector_matrix a = matrix_of(p);
    if (a.ld >= MAX_SIZE)
        return "a leading dimension is 2^30 or more";
    if (!a.readable)
        return "rows of the matrix do not start at multiples of 16 bytes";
    int64_t groups = rung_ceil_div(a.rows, kernel->bm) * p->batch, steps = rung_ceil_div(p->k, kernel->bk),
            slots = bulk_slots(machine, kernel);
    if (groups > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    const double bytes = 4.0 * (double)p->batch * (double)a.rows * (double)p->k;
    choice->cost_us = HUGE_VAL;
    for (int64_t parts = 1; parts <= MAX_PARTS; parts++) {
        const int64_t blocks = groups * parts;
        if (parts > 1 && (blocks > slots || steps < 2 * parts))
            break;
        bulk_consider(machine, config, kernel, groups, bytes, blocks, choice);
    }
    if (t->dealt && steps * groups >= 2 * slots) {
        bulk_consider(machine, config, kernel, groups, bytes, machine->sms, choice);
        bulk_consider(machine, config, kernel, groups, bytes, slots, choice);
    }
    rung_note(choice, "memory bound, %lld groups of rows dealt to %d blocks", (long long)groups,
              choice->plan.vector.blocks);
    return NULL;
}

static rung_status bulk_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    vector_matrix a = matrix_of(p);
    rung_vector_args args = {.args = {.k = 0}};
    rung_args_fill_vector(&args.args, p);
    if (p->k) { /* else nothing is read */
        rung_boxes boxes = {.at = a.at,
                            .size = {a.rows, p->k, p->batch},
                            .ld = a.ld,
                            .stride = a.stride,
                            .box = {kernel->bm, copy_k(kernel)},
                            .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                            /* With L2 fetching 256 bytes at a time it was 8% slower. */
                            .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B};
        RUNG_TRY(rung_boxes_describe(cuda, &boxes, &args.a_map));
    }
    rung_grid grid = {.x = (unsigned)choice->plan.vector.blocks,
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1};
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.args.workspace);
    return status;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    return (t->bulk ? bulk_estimate : plain_estimate)(machine, config, kernel, p, choice);
}

static double floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    (void)machine;
    if ((p->m != 1 && p->n != 1) || k_is_innermost(p) != t->k_innermost)
        return INFINITY;
    const double least_factor = t->k_innermost || t->bulk ? 1.0 : odd_staged_factor;
    return rung_lesser(launch_us, bulk_launch_us) +
           least_factor * 4.0 * (double)p->batch * (double)(p->m * p->n) * (double)p->k / t->cost.bytes_per_us;
}

static void floors_us(const rung_machine *machine, const rung_kernel *const *kernels, int count, const rung_problem *p,
                      double *us)
{
    for (int i = 0; i < count; i++)
        us[i] = floor_us(machine, kernels[i], p);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const vector_tile *t = RUNG_FIND_TILE(table, choice->kernel);
    return (t->bulk ? bulk_run : plain_run)(cuda, choice, p);
}

const rung_launcher rung_launch_vector = {"vector", estimate, run, floors_us};
