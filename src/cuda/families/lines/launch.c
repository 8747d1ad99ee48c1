/* Products of a short k, line by line (kernel.inc): what one costs, and its launch. Memory decides: C is written once,
 * in whole lines wherever its rows begin. */
#include "cuda/families/lines/tile.h"
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/parts.h"

#include <math.h>

typedef struct lines_tile {
    RUNG_TILE_HEAD;
    int resident;
    struct {
        double share, block_us, end_us, a_k_innermost, b_k_innermost, both_k_innermost;
    } cost;
} lines_tile;

RUNG_TILE_TABLE lines_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/lines/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(lines, "share block_us end_us a_k_innermost b_k_innermost both_k_innermost")

/* Fitted to timings on an H200, in microseconds: a launch; what each row adds whose ends share lines with nobody, since
 * memory takes parts of a line badly. C's bytes count so many times, and so many where its rows begin within a line. A
 * multiprocessor is as long busy with `alone` blocks as waiting takes: where it has one block, nothing hides that. */
/* Where C is read, the first of its old results are waited for so long, and a tile of 128 x 128 takes so much longer.
 * What half of L2 does not hold of it counts so many times again. */
static const double first_old_us = 3.2, tile_old_us = 0.6, old_again = 0.62;
static const double alone = 1.0, launch_us = 2.03, gap_us = 0.138e-3, writes = 1.132, split_lines = 1.151;

static int64_t tiles_of(const rung_kernel *kernel, const rung_problem *p)
{
    return divide_up(p->m, kernel->bm) * divide_up(p->n + LINES_LINE - 1, kernel->bn) * p->batch;
}

static int64_t longest_k(const rung_kernel *kernel)
{
    return (int64_t)kernel->bk * kernel->stages;
}

/* Says whether results wait in shared memory: a bias and an activation are applied to one after the other. */
static int keeps_results(const rung_problem *p)
{
    return p->bias_kind || p->activation;
}

static int shared_bytes(const rung_kernel *kernel, const rung_problem *p)
{
    return (int)p->k * LINES_BYTES_OF_K(kernel->bm, kernel->bn) +
           (keeps_results(p) ? LINES_KEPT_BYTES(kernel->bm, kernel->bn) : 0);
}

static double cost_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const lines_tile *t = RUNG_FIND_TILE(table, kernel);
    const double rounds = (double)divide_up(tiles_of(kernel, p), machine->sms), rows = (double)(p->m * p->batch),
                 longer = rung_k_innermost(p, t->cost.a_k_innermost, t->cost.b_k_innermost, t->cost.both_k_innermost),
                 multiply_us = kernel->bm * kernel->bn * (double)p->k / (128e3 * machine->clock_ghz * t->cost.share) *
                               (1.0 + longer),
                 write_us = 4.0 * rows * (double)p->n * (p->ldc % LINES_LINE ? split_lines : writes) /
                                (write_rate * rung_write_speed(machine)) +
                            (p->ldc > p->n ? gap_us * rows : 0.0);
    const double old_us = p->beta_zero ? 0.0 : tile_old_us * kernel->bm * kernel->bn / 16384.0;
    const double beyond = 4.0 * rows * (double)p->n - (double)machine->l2_bytes / 2.0;
    const double old_again_us =
        p->beta_zero || beyond < 0.0 ? 0.0 : old_again * beyond / (read_rate * machine->memory_speed);
    return launch_us + t->cost.block_us + (p->beta_zero ? 0.0 : first_old_us) +
           rung_overlapped(rung_overlapped(rounds, alone) * (multiply_us + t->cost.end_us + old_us),
                           rung_read_us(machine, p) + write_us + old_again_us);
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config;
    const char *reason = rung_refuse_sizes(p);
    if (reason)
        return reason;
    if (p->k > longest_k(kernel))
        return "k is longer than a block holds at once";
    if (tiles_of(kernel, p) > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    choice->cost_us = cost_us(machine, kernel, p);
    rung_note(choice, "%lld tile%s, lines of 128 bytes", (long long)tiles_of(kernel, p),
              rung_plural(tiles_of(kernel, p)));
    return NULL;
}

static double floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    return p->k > longest_k(kernel) ? INFINITY : cost_us(machine, kernel, p);
}

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    (void)workspace;
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    rung_args args;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    rung_args_fill(&args, p);
    rung_grid grid = {.x = (unsigned)tiles_of(kernel, p),
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)shared_bytes(kernel, p),
                      .overlaps = 1,
                      .repeats = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_lines = {
    .name = "lines",
    .estimate = estimate,
    .floor_us = floor_us,
    .launch = launch,
};
