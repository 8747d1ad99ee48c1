/* Launcher "tiles": one block a BM x BN tile of C, columns along grid x. Every plain ladder rung. */
#include "cuda/ladder/ladder.h"

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config;
    if (divide_up(p->m, kernel->bm) > 65535LL * 65535)
        return "more than 65535 * 65535 tiles along m: the grid has no room";
    if (divide_up(p->n, kernel->bn) > 2147483647)
        return "more than 2^31 - 1 tiles along n: the grid has no room";
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_args args;
    rung_args_fill(&args, p);
    /* Grid y ends at 65535: tall problems fold into z; blocks past the last row find nothing to do. */
    int64_t down = divide_up(p->m, kernel->bm), folds = divide_up(down, 65535);
    rung_grid grid = {.x = (unsigned)divide_up(p->n, kernel->bn),
                      .y = (unsigned)divide_up(down, folds),
                      .z = (unsigned)folds,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes};
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_tiles = {.name = "tiles", .estimate = estimate, .run = run};
