/* Launchers "ladder_tma", "ladder_persistent", "ladder_searched", "ladder_banks", "ladder_ordered",
 * "ladder_stream_k" and "ladder_one_kernel": rungs fed by
 * bulk tensor copies. The copy engine wants rows that start on 16 bytes: other operands are first copied to workspace
 * (l21_tma_pack). */
#include "cuda/ladder/ladder.h"
#include "cuda/device/tma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BK = 32 };

/* The tiles of l23_searched, and what one step of BK costs when the SM is full of them: found by timing each tile,
 * see docs/ladder/l23_searched.md. */
typedef struct searched_tile {
    const char *symbol, *label;
    int bm, bn, stages, blocks, threads;
    double step_ns, tile_ns;
} searched_tile;

static const searched_tile searched[] = {
    {"l23_searched", "128x256", 128, 256, 4, 1, 384, 5650, 3000},
    {"l23_searched_256x128", "256x128", 256, 128, 4, 1, 384, 5640, 3000},
    {"l23_searched_128x128", "128x128", 128, 128, 3, 2, 256, 5720, 3000},
    {"l23_searched_64x256", "64x256", 64, 256, 2, 2, 256, 5770, 3000},
    {"l23_searched_64x128", "64x128", 64, 128, 4, 2, 96, 5640, 2000},
    {"l23_searched_64x64", "64x64", 64, 64, 3, 4, 64, 5620, 2000},
};
enum { SEARCHED = sizeof searched / sizeof searched[0] };

static int aligned(const float *x, int64_t ld)
{
    return (uintptr_t)x % 16 == 0 && ld % 4 == 0;
}

static int64_t packed_bytes(int64_t rows, int64_t columns)
{
    return (rows * round_up(columns, 4) * (int64_t)sizeof(float) + 127) / 128 * 128;
}

/* Returns the workspace for the operands that have to be copied to aligned rows. */
static int64_t workspace_bytes(const rung_problem *p)
{
    if (p->k == 0)
        return 0;
    return (aligned(p->a, p->lda) ? 0 : packed_bytes(p->m, p->k)) +
           (aligned(p->b, p->ldb) ? 0 : packed_bytes(p->k, p->n));
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config, (void)kernel;
    const int64_t most = 2147483647 - 256;
    if (p->m > most || p->n > most || p->k > most)
        return "a size of 2^31 or more: coordinates of tensor copies are 32-bit";
    if (p->lda >= (int64_t)1 << 38 || p->ldb >= (int64_t)1 << 38)
        return "rows 2^40 bytes apart or more: out of reach of a tensor map";
    choice->workspace_bytes = workspace_bytes(p);
    choice->cost_us = rung_ladder_cost_us(machine, p);
    return NULL;
}

static rung_status pack(rung_cuda *cuda, const float **x, int64_t *ld, int64_t rows, int64_t columns, char **workspace)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "l21_tma", "l21_tma_pack", &function));
    rung_pack_args args = {.from = *x,
                           .to = (float *)*workspace,
                           .rows = rows,
                           .columns = columns,
                           .from_ld = *ld,
                           .to_ld = round_up(columns, 4)};
    int64_t blocks = divide_up(rows * columns, 256 * 8);
    rung_grid grid = {.x = (unsigned)(blocks < 65536 ? blocks : 65536), .threads = 256};
    *workspace += packed_bytes(rows, columns);
    *x = args.to;
    *ld = args.to_ld;
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status map(rung_cuda *cuda, CUtensorMap *to, const float *x, int64_t ld, int64_t rows, int64_t columns,
                       int box_rows, int box_columns, CUtensorMapSwizzle swizzle)
{
    cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)ld * sizeof(float)};
    cuuint32_t box[2] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows}, steps[2] = {1, 1};
    CU_TRY(cuda->driver, tensor_map(to, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)x, sizes, strides, box,
                                    steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

/* Packs what has to be packed and describes the operands to the copy engine; with bm = 0 B alone. */
static rung_status prepare(rung_cuda *cuda, rung_tma_args *args, const rung_problem *p, int bm, int bn, int bk,
                           char *workspace)
{
    memset(args, 0, sizeof *args);
    rung_args *g = &args->g;
    rung_args_fill(g, p);
    if (p->k == 0)
        return RUNG_SUCCESS;
    if (bm > 0 && !aligned(g->a, g->lda))
        RUNG_TRY(pack(cuda, &g->a, &g->lda, p->m, p->k, &workspace));
    if (!aligned(g->b, g->ldb))
        RUNG_TRY(pack(cuda, &g->b, &g->ldb, p->k, p->n, &workspace));
    if (bm > 0)
        RUNG_TRY(map(cuda, &args->a, g->a, g->lda, p->m, p->k, bm, bk,
                     bk == BK ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B));
    return map(cuda, &args->b, g->b, g->ldb, p->k, p->n, bk, bn, CU_TENSOR_MAP_SWIZZLE_NONE);
}

/* Returns how many blocks a persistent kernel keeps on an SM; 0: one block a tile. */
static rung_status run_tile(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, const char *symbol,
                            int bm, int bn, int stages, int blocks, int threads)
{
    rung_function function;
    rung_tma_args args;
    void *workspace;
    int shared_bytes = stages * ((bm + bn) * BK * (int)sizeof(float) + 2 * (int)sizeof(uint64_t));
    int64_t down = divide_up(p->m, bm), across = divide_up(p->n, bn), resident = (int64_t)cuda->machine->sms * blocks;
    int64_t folds = divide_up(down, 65535);
    rung_grid grid = {.x = (unsigned)across,
                      .y = (unsigned)divide_up(down, folds),
                      .z = (unsigned)folds,
                      .threads = (unsigned)threads,
                      .shared_bytes = (unsigned)shared_bytes};
    if (blocks > 0) {
        grid.x = (unsigned)(down * across < resident ? down * across : resident);
        grid.y = grid.z = 1;
    }
    RUNG_TRY(rung_gpu_function(cuda->gpu, choice->kernel->name, symbol, &function));
    RUNG_TRY(rung_workspace_get(cuda, workspace_bytes(p), &workspace));
    rung_status status = prepare(cuda, &args, p, bm, bn, BK, workspace);
    if (status == RUNG_SUCCESS)
        status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put(cuda, workspace);
    return status;
}

static rung_status run_tma(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *k = choice->kernel;
    return run_tile(cuda, choice, p, k->name, k->bm, k->bn, k->stages, 0, k->threads);
}

static rung_status run_persistent(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *k = choice->kernel;
    return run_tile(cuda, choice, p, k->name, k->bm, k->bn, k->stages, 1, k->threads);
}

static double predict_us(const rung_machine *machine, const searched_tile *t, const rung_problem *p)
{
    int64_t all = divide_up(p->m, t->bm) * divide_up(p->n, t->bn);
    int64_t resident = (int64_t)machine->sms * t->blocks, rest = all % resident;
    /* The last round may leave places on the SMs empty: what is there then runs faster. */
    double rounds = (double)(all / resident) + (double)divide_up(rest, machine->sms) / t->blocks;
    return rounds * (t->tile_ns + t->step_ns * (double)divide_up(p->k, BK)) * 1e-3;
}

/* RUNG_SEARCH_TILE=64x64 forces a tile: that is how the search times each. */
static const char *estimate_searched(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                     const rung_problem *p, rung_choice *choice)
{
    const char *named = getenv("RUNG_SEARCH_TILE"), *forced = named && *named ? named : NULL;
    const char *reason = estimate(machine, config, kernel, p, choice);
    static _Thread_local char unknown[128];
    int found = 0;
    choice->cost_us = 1e300;
    for (int i = 0; i < SEARCHED; i++) {
        double us = predict_us(machine, &searched[i], p);
        if (us < choice->cost_us && (!forced || strcmp(forced, searched[i].label) == 0)) {
            choice->cost_us = us;
            choice->plan.searched = i;
            found = 1;
        }
    }
    if (!found) {
        snprintf(unknown, sizeof unknown,
                 "RUNG_SEARCH_TILE is '%.24s': 128x256, 256x128, 128x128, 64x256, 64x128 and 64x64 are its tiles",
                 forced);
        return unknown;
    }
    rung_note(choice, "tile %s", searched[choice->plan.searched].label);
    return reason;
}

static rung_status run_searched(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const searched_tile *t = &searched[choice->plan.searched];
    return run_tile(cuda, choice, p, t->symbol, t->bm, t->bn, t->stages, t->blocks, t->threads);
}

/* Persistent, with the shared memory that its row asks for; `bm` 0: the kernel fetches A by itself. */
static rung_status run_row(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, int bm)
{
    const rung_kernel *k = choice->kernel;
    rung_function function;
    rung_tma_args args;
    void *workspace;
    int64_t all = divide_up(p->m, k->bm) * divide_up(p->n, k->bn), resident = cuda->machine->sms;
    rung_grid grid = {.x = (unsigned)(all < resident ? all : resident),
                      .threads = (unsigned)k->threads,
                      .shared_bytes = (unsigned)k->shared_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, k->name, k->name, &function));
    RUNG_TRY(rung_workspace_get(cuda, workspace_bytes(p), &workspace));
    rung_status status = prepare(cuda, &args, p, bm, k->bn, k->bk, workspace);
    if (status == RUNG_SUCCESS)
        status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put(cuda, workspace);
    return status;
}

static rung_status run_banks(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_row(cuda, choice, p, 0);
}

static rung_status run_ordered(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    return run_row(cuda, choice, p, choice->kernel->bm);
}

/* Two kept pieces a block, then the operands that have to be copied. */
static int64_t pieces_bytes(const rung_machine *machine, const rung_kernel *k)
{
    return (int64_t)machine->sms * 2 * k->bm * k->bn * (int64_t)sizeof(float);
}

static const char *estimate_stream_k(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                     const rung_problem *p, rung_choice *choice)
{
    const char *reason = estimate(machine, config, kernel, p, choice);
    choice->workspace_bytes += pieces_bytes(machine, kernel);
    return reason;
}

/* As many blocks as SMs, but none with less than eight steps of k. */
static rung_status run_stream_k(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *k = choice->kernel;
    rung_function parts, finish;
    rung_tma_args args;
    void *workspace;
    int64_t all = divide_up(p->m, k->bm) * divide_up(p->n, k->bn), most = divide_up(all * divide_up(p->k, BK), 8);
    int64_t blocks = most < cuda->machine->sms ? most : cuda->machine->sms;
    blocks = blocks > 0 ? blocks : 1;
    rung_grid grid = {
        .x = (unsigned)blocks, .threads = (unsigned)k->threads, .shared_bytes = (unsigned)k->shared_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, k->name, k->name, &parts));
    RUNG_TRY(rung_gpu_function(cuda->gpu, k->name, "l25_stream_k_finish", &finish));
    RUNG_TRY(rung_workspace_get(cuda, choice->workspace_bytes, &workspace));
    rung_status status = prepare(cuda, &args, p, 0, k->bn, k->bk, (char *)workspace + pieces_bytes(cuda->machine, k));
    args.g.workspace = workspace;
    args.g.split_k = (int32_t)blocks;
    if (status == RUNG_SUCCESS)
        status = rung_launch(cuda, &parts, &grid, &args);
    if (status == RUNG_SUCCESS && p->k > 0 && all % blocks != 0) {
        int64_t rounds = all / blocks, whole = rounds > 1 ? (rounds - 1) * blocks : 0;
        grid = (rung_grid){.x = (unsigned)(all - whole), .y = (unsigned)(k->bm * k->bn / 1024), .z = 1, .threads = 256};
        status = rung_launch(cuda, &finish, &grid, &args);
    }
    rung_workspace_put(cuda, workspace);
    return status;
}

/* As many blocks as SMs, or as tiles where that leaves few SMs out; none with less than eight steps of k. */
static rung_status run_one_kernel(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *k = choice->kernel;
    rung_function function;
    rung_tma_args args;
    void *workspace;
    int64_t all = divide_up(p->m, k->bm) * divide_up(p->n, k->bn), most = divide_up(all * divide_up(p->k, k->bk), 8);
    int64_t blocks = most < cuda->machine->sms ? most : cuda->machine->sms;
    if (blocks < 1 || (all <= blocks && all * 10 >= blocks * 9))
        blocks = all;
    rung_grid grid = {
        .x = (unsigned)blocks, .threads = (unsigned)k->threads, .shared_bytes = (unsigned)k->shared_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, k->name, k->name, &function));
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &workspace));
    rung_status status =
        prepare(cuda, &args, p, k->bm, k->bn, k->bk, (char *)workspace + pieces_bytes(cuda->machine, k));
    args.g.workspace = workspace;
    if (status == RUNG_SUCCESS)
        status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_ladder_tma = {.name = "ladder_tma", .estimate = estimate, .run = run_tma};
const rung_launcher rung_launch_ladder_persistent = {
    .name = "ladder_persistent", .estimate = estimate, .run = run_persistent};
const rung_launcher rung_launch_ladder_searched = {
    .name = "ladder_searched", .estimate = estimate_searched, .run = run_searched};
const rung_launcher rung_launch_ladder_banks = {.name = "ladder_banks", .estimate = estimate, .run = run_banks};
const rung_launcher rung_launch_ladder_ordered = {.name = "ladder_ordered", .estimate = estimate, .run = run_ordered};
const rung_launcher rung_launch_ladder_stream_k = {
    .name = "ladder_stream_k", .estimate = estimate_stream_k, .run = run_stream_k};
const rung_launcher rung_launch_ladder_one_kernel = {
    .name = "ladder_one_kernel", .estimate = estimate_stream_k, .run = run_one_kernel};
