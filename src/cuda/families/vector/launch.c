/* A matrix times a vector (m = 1 or n = 1): in how many parts k is cut, what that costs, and the launch. Memory
 * decides: every element of the matrix is read once. */
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "cuda/families/vector/gather.h"
#include "cuda/families/vector/tile.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/parts.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>

enum {
    MOST_PARTS = 64,
    DOT_BLOCKS = 9, /* of a multiprocessor, that share k */
    AXPY_BLOCKS = 2
};

typedef struct vector_tile {
    RUNG_TILE_HEAD;
    int k_innermost, apart, rows, steps, warps, resident;
    struct {
        double bytes_per_us, block_us, step_us;
    } cost;
} vector_tile;

RUNG_TILE_TABLE vector_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/vector/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(vector, "bytes_per_us block_us step_us")

/* Where k is innermost: a launch with its first and last block, the meeting of parts, and each sixteen of them, in
 * microseconds. All constants are fitted to timings on an H200, replayed from graphs, as launches hide the time of
 * short products (results/times-dot-h200.jsonl, times-graph-h200.jsonl). */
static const double dot_launch_us = 1.77, dot_meet_us = 1.17, dot_sixteen_us = 0.39, gather_launch_us = 1.23;
/* The same where rows are innermost; parts are added sixteen at a time. Where a multiprocessor has more than two blocks
 * memory reads in so many places that its time counts `crowded` times, and the share that the last round lacks of a
 * block for each multiprocessor counts `uneven` times besides. */
static const double axpy_launch_us = 1.26, axpy_meet_us = 0.84, axpy_sixteen_us = 0.50, crowded = 1.02;
static const double uneven = 0.7;
/* The second level of cache gives so many bytes a microsecond. */
static const double l2_rate = 5.5e6;

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

/* Returns how much longer a dot product takes whose vector is not read 16 bytes at a time, as its elements lie apart or
 * rows of the matrix start at odd addresses: each four rows take a cycle of a multiprocessor for every line that a load
 * of a warp touches, and so much of these shows beside memory's time. */
static double single_us(const rung_machine *machine, const rung_problem *p, int64_t step)
{
    const double shows = 0.35, elements = (double)p->batch * (double)(p->m * p->n) * (double)p->k,
                 cycles = elements * rung_lesser(1.0, (double)step / 8.0) / 4.0 / machine->sms;
    if (step == 1 && (is_vector_of_rows(p) ? p->align_a : p->align_b) >= 16)
        return 0.0;
    return shows * cycles / (1e3 * machine->clock_ghz);
}

/* Returns how long the second level gives the matrix, and to each block the elements' sectors anew. The closer these
 * lie the more of them a block's neighbours have left in the first level. */
static double sectors_us(const rung_kernel *kernel, const rung_problem *p, int64_t step, double matrix_bytes)
{
    const double share_of_sector = rung_lesser(1.0, (double)step / 8.0),
                 read = (double)vector_tiles(kernel, p) * (double)p->k * 32.0 * share_of_sector * share_of_sector;
    return step == 1 ? 0.0 : (read + matrix_bytes) / l2_rate;
}

/* Returns the microseconds of a product with k innermost whose blocks are a part of k for each of `tiles`: memory's
 * time, and what a warp waits for what it loads, one load after the other. */
static double dot_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, int64_t step,
                     int64_t tiles, int64_t parts, double matrix_bytes)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    const int64_t rounds = divide_up(tiles * parts, (int64_t)t->resident * machine->sms),
                  steps = divide_up(divide_up(p->k, parts), (t->apart ? 1 : t->warps) * t->steps * 128);
    const double memory = matrix_bytes / (t->cost.bytes_per_us * machine->memory_speed),
                 blocks = t->cost.block_us * (double)(tiles * parts) / machine->sms,
                 busy = rung_overlapped(rung_longer(memory, blocks), t->cost.step_us * (double)(rounds * steps));
    return dot_launch_us + (parts > 1 ? dot_meet_us + dot_sixteen_us * (double)divide_up(parts, 16) : 0.0) +
           rung_longer(busy + single_us(machine, p, step), sectors_us(kernel, p, step, matrix_bytes));
}

/* The same with rows innermost: memory's time, and what each warp waits for what it takes, one after the other. */
static double axpy_us(const rung_machine *machine, const rung_kernel *kernel, int64_t tiles, int64_t steps,
                      int64_t parts, double matrix_bytes)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    const int64_t rounds = divide_up(tiles * parts, (int64_t)t->resident * machine->sms),
                  most = rounds * divide_up(steps, parts);
    const int64_t blocks = tiles * parts, places = divide_up(blocks, machine->sms) * machine->sms;
    const double empty = 1.0 - (double)blocks / (double)places;
    const double memory = matrix_bytes / (t->cost.bytes_per_us * machine->memory_speed) *
                          (blocks > AXPY_BLOCKS * machine->sms ? crowded + uneven * empty : 1.0);
    return axpy_launch_us + (parts > 1 ? axpy_meet_us + axpy_sixteen_us * (double)divide_up(parts, 16) : 0.0) +
           rung_overlapped(memory, (double)most * t->cost.step_us);
}

/* Returns the number of vectors whose elements may be gathered first: where they lie apart, a launch before brings them
 * next to each other. */
static int64_t vectors_to_gather(const rung_kernel *kernel, const rung_problem *p)
{
    const int64_t stride = is_vector_of_rows(p) ? p->stride_b : p->stride_a;
    if (!RUNG_FIND_TILE(table, kernel)->k_innermost || vector_step(p) == 1 || p->arrays)
        return 0;
    return stride ? p->batch : 1;
}

static double gather_us(double elements)
{
    const double apart_rate = 0.1e6; /* elements a microsecond, each of a sector of its own */
    return gather_launch_us + elements / apart_rate;
}

/* Chooses the cheapest number of parts. Returns why there is none, or NULL. */
static const char *choose_parts(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                const rung_problem *p, int64_t gathered, rung_choice *choice)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    const int64_t tiles = vector_tiles(kernel, p), steps = divide_up(p->k, kernel->bk),
                  gather_bytes = gathered * p->k * 4;
    const double matrix = 4.0 * (double)p->batch * (double)(p->m * p->n) * (double)p->k,
                 first_us = gathered ? gather_us((double)(gathered * p->k)) : 0.0;
    for (int64_t parts = 1; parts <= MOST_PARTS; parts += 1 + parts / 8) {
        if (parts > 1 &&
            (parts > steps || tiles * parts > (t->k_innermost ? DOT_BLOCKS : AXPY_BLOCKS) * (int64_t)machine->sms))
            break;
        const int64_t bytes = parts > 1 ? tiles * parts * kernel->bm * 4 : 0;
        const char *refusal = rung_refuse_parts(config, tiles, parts, bytes + gather_bytes);
        if (refusal && parts == 1)
            return refusal;
        const double cost = t->k_innermost
                                ? dot_us(machine, kernel, p, gathered ? 1 : vector_step(p), tiles, parts, matrix)
                                : axpy_us(machine, kernel, tiles, steps, parts, matrix);
        if (!refusal && first_us + cost < choice->cost_us) {
            choice->cost_us = first_us + cost;
            choice->parts = (int32_t)parts;
            choice->workspace_bytes = bytes + gather_bytes;
            choice->plan.vector = (vector_plan){bytes, gather_bytes};
        }
    }
    return NULL;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    if (p->m != 1 && p->n != 1)
        return "neither m nor n is 1";
    if (k_is_innermost(p) != (RUNG_FIND_TILE(table, kernel)->k_innermost))
        return k_is_innermost(p) ? "k is innermost in the matrix" : "k is not innermost in the matrix";
    const char *reason = rung_refuse_sizes(p);
    if (reason)
        return reason;
    choice->cost_us = HUGE_VAL;
    reason = choose_parts(machine, config, kernel, p, 0, choice);
    if (reason)
        return reason;
    const int64_t gathered = vectors_to_gather(kernel, p);
    if (gathered && rung_workspace_allows(config, gathered * p->k * 4))
        choose_parts(machine, config, kernel, p, gathered, choice);
    rung_note(choice, "memory bound, %d part%s of k%s", (int)choice->parts, rung_plural(choice->parts),
              choice->plan.vector.gather_bytes ? ", the vector gathered first" : "");
    return NULL;
}

/* Fills the arguments with the matrix as A, whichever side it is on: m = 1 or n = 1. */
static void fill_args(rung_args *args, const rung_problem *p)
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

/* Brings the vector's elements next to each other, and has the product read them there. */
static rung_status gather(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, float *to, rung_args *args)
{
    vector_gather_args g = {.from = args->b,
                            .to = to,
                            .k = p->k,
                            .count = vectors_to_gather(kernel, p),
                            .step = args->ldb,
                            .stride_from = args->stride_b};
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, "vector_gather", &function));
    rung_grid grid = {.x = (unsigned)divide_up(g.k * g.count, VECTOR_GATHER_THREADS),
                      .threads = VECTOR_GATHER_THREADS,
                      .overlaps = 1,
                      .argument_bytes = sizeof g,
                      .prepares = 1};
    args->b = to;
    args->ldb = 1;
    args->stride_b = g.count > 1 ? p->k : 0;
    return rung_launch(cuda, &function, &grid, &g);
}

/* Returns when the next kernel starts. Blocks of a long product that wait beside those of another one take their places
 * unevenly. */
static rung_next_start next_starts(rung_cuda *cuda, const rung_choice *choice)
{
    const double short_us = 2.8, long_us = 5.0;
    return choice->cost_us < long_us ? rung_next_starts(cuda, choice, short_us, long_us) : RUNG_NEXT_AFTER_END;
}

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    rung_args args;
    fill_args(&args, p);
    args.split_k = choice->parts;
    args.next_start = (int32_t)next_starts(cuda, choice);
    args.workspace = workspace;
    if (choice->plan.vector.gather_bytes)
        RUNG_TRY(gather(cuda, kernel, p, (float *)(workspace + choice->plan.vector.parts_bytes), &args));
    RUNG_TRY(rung_kernel_function(cuda, kernel, &function));
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    const int64_t blocks = vector_tiles(kernel, p) * choice->parts;
    /* Warps with rows of their own ask for so many lines that it takes up to twice the time. */
    args.asks = !t->apart && rung_asks(cuda, &args, blocks, t->resident);
    rung_grid grid = {.x = (unsigned)blocks,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1,
                      .repeats = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

static double floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const vector_tile *t = RUNG_FIND_TILE(table, kernel);
    if ((p->m != 1 && p->n != 1) || k_is_innermost(p) != t->k_innermost)
        return INFINITY;
    return (t->k_innermost ? dot_launch_us : axpy_launch_us) + 4.0 * (double)p->batch * (double)(p->m * p->n) *
                                                                   (double)p->k /
                                                                   (t->cost.bytes_per_us * machine->memory_speed);
}

const rung_launcher rung_launch_vector = {
    .name = "vector",
    .estimate = estimate,
    .floor_us = floor_us,
    .launch = launch,
};
