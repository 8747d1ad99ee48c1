/* Launchers "ladder_lone" and "ladder_batches": rungs for small products, whose warps work alone. */
#include "cuda/ladder/ladder.h"

enum { BLOCKS_AN_SM = 2, WARPS = 8, MOST_TILES = RUNG_TICKET_BYTES / 4 };

/* Parts of k: as many as find room at once, each with a step for every warp at least; a counter for each tile. */
static int64_t choose_parts(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    int64_t all = divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn);
    int64_t parts = all > MOST_TILES ? 1 : (int64_t)machine->sms * BLOCKS_AN_SM / all;
    int64_t most = divide_up(p->k, kernel->bk) / WARPS;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

static const char *estimate_lone(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, rung_choice *choice)
{
    (void)config;
    int64_t parts = choose_parts(machine, kernel, p), across = divide_up(p->n, kernel->bn),
            down = divide_up(p->m, kernel->bm);
    if (down > 65535LL * 65535 || across * parts > 2147483647)
        return "more tiles than the grid has room for";
    choice->parts = (int32_t)parts;
    choice->workspace_bytes = parts > 1 ? parts * down * across * kernel->bm * kernel->bn * (int64_t)sizeof(float) : 0;
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

static rung_status run_lone(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    rung_args args;
    int64_t down = divide_up(p->m, kernel->bm), folds = divide_up(down, 65535);
    rung_grid grid = {.x = (unsigned)(divide_up(p->n, kernel->bn) * choice->parts),
                      .y = (unsigned)divide_up(down, folds),
                      .z = (unsigned)folds,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_args_fill(&args, p);
    args.split_k = choice->parts;
    if (args.split_k == 1)
        return rung_launch(cuda, &function, &grid, &args);
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.workspace);
    return status;
}

static const char *estimate_batches(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                    const rung_problem *p, rung_choice *choice)
{
    (void)config;
    double items = (double)divide_up(p->m, kernel->bm) * (double)divide_up(p->n, kernel->bn) * (double)p->batch;
    if (items > 2147483647.0 - 65536.0)
        return "more than 2^31 tiles in all products: they are counted in 32 bits";
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

/* A warp for each tile of each product, as far as there is room; each then takes several. */
static rung_status run_batches(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    rung_args args;
    int64_t items = divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn) * p->batch,
            blocks = divide_up(items, WARPS);
    int64_t room = (int64_t)cuda->machine->sms * BLOCKS_AN_SM;
    rung_grid grid = {.x = (unsigned)(blocks < room ? blocks : room),
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_args_fill(&args, p);
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_ladder_lone = {.name = "ladder_lone", .estimate = estimate_lone, .run = run_lone};
const rung_launcher rung_launch_ladder_batches = {
    .name = "ladder_batches", .estimate = estimate_batches, .run = run_batches};
