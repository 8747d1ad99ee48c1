/* Launchers "ladder_images", "ladder_l34_images", "ladder_l34_images_paired", "ladder_images_paired",
 * "ladder_pipeline", "ladder_read_once" and "ladder_l39_images": rungs on tensor cores whose operands are first laid
 * out for wgmma (device/images.h), by the rung's own kernel NAME_split, by l34's or by l39's. Blocks are persistent;
 * paired ones are clusters of two, which share each tile of B. */
#include "cuda/device/images.h"
#include "cuda/ladder/ladder.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 1024, MOST_CLUSTER = 8 };

/* How a rung's two kernels are launched. */
typedef struct style {
    const char *split_by; /* whose kernel splits; NULL: the rung's own */
    int cluster;          /* blocks that share each tile of B */
    int all;              /* a block on every multiprocessor, also where there are fewer tiles */
    int split_threads;    /* 0: IMAGE_THREADS, a block for 32 lines; others: a cluster for 32 lines */
} style;

static int64_t take(int64_t *at, int64_t bytes)
{
    int64_t here = *at;
    *at = round_up(here + bytes, ALIGN);
    return here;
}

/* Where everything lies in the workspace; the images' part of the arguments, relative to `memory`. */
static int64_t lay_out(rung_image_args *p, const rung_problem *problem, int cluster, char *memory)
{
    int64_t at = 0;
    p->a_lines = round_up(problem->m, (int64_t)IMAGE_TILE * cluster);
    p->b_lines = round_up(problem->n, IMAGE_TILE);
    p->k_blocks = round_up(problem->k > 0 ? problem->k : 1, 2 * IMAGE_KB) / IMAGE_KB;
    p->a = memory + take(&at, p->a_lines * p->k_blocks * 128);
    p->b = memory + take(&at, p->b_lines * p->k_blocks * 128);
    p->a_line = (rung_image_line *)(memory + take(&at, p->a_lines * (int64_t)sizeof(rung_image_line)));
    p->b_line = (rung_image_line *)(memory + take(&at, p->b_lines * (int64_t)sizeof(rung_image_line)));
    p->a_group = (rung_image_group *)(memory + take(&at, p->a_lines / IMAGE_LINES * (int64_t)sizeof(rung_image_group)));
    p->b_group = (rung_image_group *)(memory + take(&at, p->b_lines / IMAGE_LINES * (int64_t)sizeof(rung_image_group)));
    int64_t pieces = (p->a_lines + p->b_lines) / IMAGE_TILE * (p->k_blocks / 2);
    p->tickets = (uint32_t *)(memory + take(&at, (IMAGE_COUNTERS + pieces) * (int64_t)sizeof(uint32_t)));
    p->lost = (uint32_t *)(memory + take(&at, (p->a_lines + p->b_lines) * (int64_t)sizeof(uint32_t)));
    return at;
}

/* As many blocks as give each warp 32 of k, up to what a cluster can have. */
static int64_t split_cluster(int64_t k_blocks, int threads)
{
    int64_t cluster = 1;
    while (cluster < MOST_CLUSTER && k_blocks > threads / 32 * cluster)
        cluster *= 2;
    return cluster;
}

static const char *estimate_for(const rung_machine *machine, const rung_problem *p, int cluster, rung_choice *choice)
{
    rung_image_args layout;
    if ((round_up(p->m, (int64_t)IMAGE_TILE * cluster) + round_up(p->n, IMAGE_TILE)) / IMAGE_LINES >
        2147483647 / MOST_CLUSTER)
        return "more lines than the grid has room for";
    choice->workspace_bytes = lay_out(&layout, p, cluster, (char *)0);
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

static rung_status run_for(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem, style by)
{
    const rung_kernel *kernel = choice->kernel;
    const char *split_by = by.split_by ? by.split_by : kernel->name;
    rung_function split, product;
    rung_image_args p = {0};
    char symbol[128];
    void *workspace;
    snprintf(symbol, sizeof symbol, "%s_split", split_by);
    RUNG_TRY(rung_gpu_function(cuda->gpu, split_by, symbol, &split));
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &product));
    RUNG_TRY(rung_workspace_get(cuda, choice->workspace_bytes, &workspace));
    rung_args_fill(&p.g, problem);
    lay_out(&p, problem, by.cluster, workspace);
    p.cluster = by.split_threads ? split_cluster(p.k_blocks, by.split_threads) : 1;
    rung_grid grid = {.x = (unsigned)((p.a_lines + p.b_lines) / IMAGE_LINES * p.cluster),
                      .threads = (unsigned)(by.split_threads ? by.split_threads : IMAGE_THREADS),
                      .cluster = p.cluster > 1 ? (unsigned)p.cluster : 0};
    rung_status status = rung_launch(cuda, &split, &grid, &p);
    int64_t tiles = p.a_lines / IMAGE_TILE * (p.b_lines / IMAGE_TILE),
            room = cuda->machine->sms / by.cluster * by.cluster;
    grid = (rung_grid){.x = (unsigned)(tiles < room && !by.all ? tiles : room),
                       .threads = (unsigned)kernel->threads,
                       .shared_bytes = (unsigned)kernel->shared_bytes,
                       .cluster = by.cluster > 1 ? (unsigned)by.cluster : 0};
    if (status == RUNG_SUCCESS)
        status = rung_launch(cuda, &product, &grid, &p);
    rung_workspace_put(cuda, workspace);
    return status;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config, (void)kernel;
    return estimate_for(machine, p, 1, choice);
}

static const char *estimate_paired(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                   const rung_problem *p, rung_choice *choice)
{
    (void)config, (void)kernel;
    return machine->sms < 2 ? "needs a cluster of two SMs" : estimate_for(machine, p, 2, choice);
}

static rung_status run_own(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.cluster = 1});
}

static rung_status run_l34(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.split_by = "l34_f16x3_chain", .cluster = 1});
}

static rung_status run_l34_paired(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.split_by = "l34_f16x3_chain", .cluster = 2});
}

static rung_status run_own_paired(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.cluster = 2});
}

/* A block on every multiprocessor: those without a tile split. */
static rung_status run_pipeline(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.cluster = 2, .all = 1});
}

static rung_status run_read_once(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.cluster = 2, .split_threads = 256});
}

static rung_status run_l39(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, (style){.split_by = "l39_f16x3_read_once", .cluster = 2, .split_threads = 256});
}

const rung_launcher rung_launch_ladder_images = {.name = "ladder_images", .estimate = estimate, .run = run_own};
const rung_launcher rung_launch_ladder_l34_images = {.name = "ladder_l34_images", .estimate = estimate, .run = run_l34};
const rung_launcher rung_launch_ladder_l34_images_paired = {
    .name = "ladder_l34_images_paired", .estimate = estimate_paired, .run = run_l34_paired};
const rung_launcher rung_launch_ladder_images_paired = {
    .name = "ladder_images_paired", .estimate = estimate_paired, .run = run_own_paired};
const rung_launcher rung_launch_ladder_pipeline = {
    .name = "ladder_pipeline", .estimate = estimate_paired, .run = run_pipeline};
const rung_launcher rung_launch_ladder_read_once = {
    .name = "ladder_read_once", .estimate = estimate_paired, .run = run_read_once};
const rung_launcher rung_launch_ladder_l39_images = {
    .name = "ladder_l39_images", .estimate = estimate_paired, .run = run_l39};
