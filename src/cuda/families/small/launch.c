/* Runs a planned product in small tiles, and the tiles of a product that accurate mode has marked. */
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/small/small.h"
#include "core/divide.h"
#include "cuda/host/parts.h"

#include <math.h>

/* Returns whether a crowd takes between a half and three quarters of the room. In a graph blocks of the next kernel
 * then take what is left before this one ends, and come to lie unevenly: on some multiprocessors as many as fit, on
 * others half. Below that they all find a place, above it hardly any. */
static int leaves_uneven_room(const rung_cuda *cuda, const small_tile *t, const rung_grid *grid, int64_t blocks)
{
    const int64_t each = divide_up(blocks, cuda->machine->sms);
    return grid->may_crowd && each >= RUNG_MANY_BLOCKS && 2 * each > t->resident && 4 * each <= 3 * t->resident;
}

static rung_status launch_tiles(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, uint8_t *marks,
                                void *zero, int64_t zero_words)
{
    const rung_kernel *kernel = choice->kernel;
    const small_tile *t = small_tile_of(kernel);
    rung_function function;
    int crowd = t->crowd;
    RUNG_TRY(rung_form_function(cuda, kernel, p, crowd || small_is_aligned(p) ? "" : "_u", &function));
    rung_args args;
    rung_args_fill(&args, p);
    args.split_k = choice->parts;
    args.next_start = (int32_t)rung_next_starts(cuda, choice, 2.8, crowd ? 8.0 : INFINITY);
    args.marks = marks;
    args.zero = zero;
    args.zero_words = zero_words;
    int64_t tiles = small_tiles(kernel, p), steps = divide_up(divide_up(p->k, kernel->bk), choice->parts);
    args.asks = rung_asks(cuda, &args, tiles * choice->parts, t->resident);
    rung_grid grid = {.x = (unsigned)(tiles * choice->parts),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)small_shared_bytes(kernel, t, p, steps),
                      .overlaps = !marks,
                      .argument_bytes = sizeof args,
                      .may_crowd = crowd && (!p->trans_a || p->trans_b),
                      .beside_next = t->brief && args.next_start == RUNG_NEXT_AT_ONCE,
                      .repeats = !marks};
    if (args.next_start == RUNG_NEXT_AT_ONCE && leaves_uneven_room(cuda, t, &grid, tiles * choice->parts))
        args.next_start = RUNG_NEXT_AFTER_END;
    if (crowd) {
        grid.x = (unsigned)(tiles / p->batch), grid.y = (unsigned)choice->parts, grid.z = (unsigned)p->batch;
    } else if (t->brief) {
        grid.x = (unsigned)divide_up(p->n, kernel->bn), grid.y = (unsigned)divide_up(p->m, kernel->bm);
        grid.z = (unsigned)p->batch;
    }
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.workspace);
    return status;
}

const char *rung_marked_tiles_refuse(const rung_problem *p)
{
    return rung_refuse_sizes(p);
}

rung_status rung_marked_tiles_run(rung_cuda *cuda, const rung_problem *p, const rung_marked *w)
{
    static const rung_kernel *found; /* every accurate product asks for it */
    rung_choice choice = {.kernel = __atomic_load_n(&found, __ATOMIC_RELAXED), .parts = 1};
    if (!choice.kernel) {
        choice.kernel = rung_kernel_find(small_marked_tile()->name);
        __atomic_store_n(&found, choice.kernel, __ATOMIC_RELAXED);
    }
    return launch_tiles(cuda, &choice, p, w->marks, w->zero, w->zero_words);
}

static rung_status batch_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, p, small_is_aligned(p) ? "" : "_u", &function));
    rung_args args;
    rung_args_fill(&args, p);
    rung_grid grid = {.x = (unsigned)divide_up(p->batch, small_matrices_a_block(kernel)),
                      .threads = (unsigned)kernel->threads,
                      .overlaps = 1,
                      .repeats = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return small_tile_of(choice->kernel)->batch ? batch_run(cuda, choice, p)
                                                : launch_tiles(cuda, choice, p, NULL, NULL, 0);
}

const rung_launcher rung_launch_small = {
    .name = "small",
    .estimate = small_estimate,
    .floor_us = small_floor_us,
    .run = run,
};
