/* Launcher "ladder_split_k": tiles times parts of k, then a second kernel that adds the parts in order. */
#include "cuda/ladder/ladder.h"

enum { BLOCKS_AN_SM = 3, LEAST_STEPS = 8, FINISH_RESULTS = 32 };

/* Enough parts to give every SM its blocks, each part long enough to pay for its trip through workspace. */
static int64_t choose_parts(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    int64_t places = (int64_t)machine->sms * BLOCKS_AN_SM;
    int64_t parts = places / (divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn));
    int64_t most = divide_up(p->k, kernel->bk) / LEAST_STEPS;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config;
    int64_t parts = choose_parts(machine, kernel, p);
    if (divide_up(p->m, kernel->bm) > 65535LL * 65535 || divide_up(p->n, kernel->bn) * parts > 2147483647)
        return "more tiles than the grid has room for";
    choice->parts = (int32_t)parts;
    choice->workspace_bytes = parts * p->m * p->n * (int64_t)sizeof(float);
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function parts, finish;
    rung_args args;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &parts));
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, "l19_split_k_finish", &finish));
    rung_args_fill(&args, p);
    args.split_k = choice->parts;
    RUNG_TRY(rung_workspace_get(cuda, choice->workspace_bytes, &args.workspace));

    int64_t down = divide_up(p->m, kernel->bm), folds = divide_up(down, 65535),
            groups = divide_up(p->m * p->n, FINISH_RESULTS);
    rung_grid grid = {.x = (unsigned)(divide_up(p->n, kernel->bn) * choice->parts),
                      .y = (unsigned)divide_up(down, folds),
                      .z = (unsigned)folds,
                      .threads = (unsigned)kernel->threads};
    rung_status status = rung_launch(cuda, &parts, &grid, &args);
    if (status == RUNG_SUCCESS) {
        grid = (rung_grid){.x = (unsigned)(groups < 65536 ? groups : 65536), .threads = 256};
        status = rung_launch(cuda, &finish, &grid, &args);
    }
    rung_workspace_put(cuda, args.workspace);
    return status;
}

const rung_launcher rung_launch_ladder_split_k = {.name = "ladder_split_k", .estimate = estimate, .run = run};
