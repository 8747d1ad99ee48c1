/* Launchers "ladder_images", "ladder_l34_images", "ladder_l34_images_paired" and "ladder_images_paired": rungs on
 * tensor cores whose operands are first laid out for wgmma (device/images.h), by the rung's own kernel NAME_split or by
 * l34's. Blocks are persistent; paired ones are clusters of two, which share each tile of B. */
#include "cuda/device/images.h"
#include "cuda/driver/device.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 1024 };

static int64_t padded(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

static int64_t take(int64_t *at, int64_t bytes)
{
    int64_t here = *at;
    *at = padded(here + bytes, ALIGN);
    return here;
}

/* Where everything lies in the workspace; the images' part of the arguments, relative to `memory`. */
static int64_t lay_out(rung_image_args *p, const rung_problem *problem, int cluster, char *memory)
{
    int64_t at = 0;
    p->a_lines = padded(problem->m, (int64_t)IMAGE_TILE * cluster);
    p->b_lines = padded(problem->n, IMAGE_TILE);
    p->k_blocks = padded(problem->k > 0 ? problem->k : 1, 2 * IMAGE_KB) / IMAGE_KB;
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

static const char *estimate_for(const rung_machine *machine, const rung_problem *p, int cluster, rung_choice *choice)
{
    rung_image_args layout;
    if ((padded(p->m, (int64_t)IMAGE_TILE * cluster) + padded(p->n, IMAGE_TILE)) / IMAGE_LINES > 2147483647)
        return "more lines than the grid has room for";
    choice->workspace_bytes = lay_out(&layout, p, cluster, (char *)0);
    choice->cost_us = 2.0 * (double)p->m * (double)p->n * (double)p->k / (machine->sms * 256e3 * machine->clock_ghz);
    return NULL;
}

static rung_status run_for(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem,
                           const char *split_by, int cluster, int all)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function split, product;
    rung_image_args p = {0};
    char symbol[128];
    void *workspace;
    snprintf(symbol, sizeof symbol, "%s_split", split_by);
    RUNG_TRY(rung_gpu_function(cuda->gpu, split_by, symbol, &split));
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &product));
    RUNG_TRY(rung_workspace_get(cuda, choice->workspace_bytes, &workspace));
    rung_args_fill(&p.g, problem);
    lay_out(&p, problem, cluster, workspace);
    rung_grid grid = {.x = (unsigned)((p.a_lines + p.b_lines) / IMAGE_LINES), .y = 1, .z = 1, .threads = IMAGE_THREADS};
    rung_status status = rung_launch(cuda, &split, &grid, &p);
    int64_t tiles = p.a_lines / IMAGE_TILE * (p.b_lines / IMAGE_TILE), room = cuda->machine->sms / cluster * cluster;
    grid = (rung_grid){.x = (unsigned)(tiles < room && !all ? tiles : room),
                       .y = 1,
                       .z = 1,
                       .threads = (unsigned)kernel->threads,
                       .shared_bytes = (unsigned)kernel->shared_bytes,
                       .cluster = cluster > 1 ? (unsigned)cluster : 0};
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
    return run_for(cuda, choice, p, choice->kernel->name, 1, 0);
}

static rung_status run_l34(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, "l34_f16x3_chain", 1, 0);
}

static rung_status run_l34_paired(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, "l34_f16x3_chain", 2, 0);
}

static rung_status run_own_paired(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, choice->kernel->name, 2, 0);
}

/* A block on every multiprocessor: those without a tile split. */
static rung_status run_pipeline(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_for(cuda, choice, p, choice->kernel->name, 2, 1);
}

const rung_launcher rung_launch_ladder_images = {"ladder_images", estimate, run_own, NULL};
const rung_launcher rung_launch_ladder_l34_images = {"ladder_l34_images", estimate, run_l34, NULL};
const rung_launcher rung_launch_ladder_l34_images_paired = {"ladder_l34_images_paired", estimate_paired, run_l34_paired,
                                                            NULL};
const rung_launcher rung_launch_ladder_images_paired = {"ladder_images_paired", estimate_paired, run_own_paired, NULL};
const rung_launcher rung_launch_ladder_pipeline = {"ladder_pipeline", estimate_paired, run_pipeline, NULL};
