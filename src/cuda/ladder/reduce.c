/* Sums of long vectors on the GPU: launches a kernel of the reduce ladder; the last rung is the one the library takes.
 */
#include "cuda/ladder/reduce.h"
#include "cuda/device/reduce_args.h"

#include <string.h>

enum { LARGEST_GRID = 2147483647, LONG_SUM = 1 << 29, MOST_PARTIALS = 16384 };

static const char best[] = "r06_vector_one_launch";

static int64_t pieces(int64_t n, int64_t piece)
{
    return n > 0 ? (n + piece - 1) / piece : 1;
}

static rung_status launch(rung_cuda *cuda, const rung_kernel *kernel, const rung_function *function, int64_t blocks,
                          const rung_reduce_args *args)
{
    if (blocks > LARGEST_GRID)
        return rung_fail(RUNG_UNSUPPORTED, "%s: %lld elements need more blocks than a grid has room for", kernel->name,
                         (long long)args->n);
    rung_grid grid = {.x = (unsigned)blocks, .threads = (unsigned)kernel->threads};
    return rung_launch(cuda, function, &grid, args);
}

/* r01: clears the result, then everybody adds to it. */
static rung_status run_atomics(rung_cuda *cuda, const rung_kernel *kernel, const rung_function *function,
                               rung_reduce_args *args)
{
    int64_t blocks = pieces(args->n, kernel->bm);
    CU_TRY(cuda->driver, set_32(rung_device_address(args->out), 0, 1, cuda->config.stream));
    return launch(cuda, kernel, function, blocks < LARGEST_GRID ? blocks : LARGEST_GRID, args);
}

/* r02 to r05: launches again on the blocks' results until one is left. Even launches write the first half of `sums`. */
static rung_status run_levels(rung_cuda *cuda, const rung_kernel *kernel, const rung_function *function,
                              rung_reduce_args *args, int64_t most_blocks)
{
    float *result = args->out;
    int64_t blocks = pieces(args->n, kernel->bm);
    blocks = blocks < most_blocks ? blocks : most_blocks;
    void *sums;
    RUNG_TRY(rung_workspace_get(cuda, 2 * blocks * (int64_t)sizeof(float), &sums));
    int64_t half = blocks;
    rung_status status = RUNG_SUCCESS;
    for (int level = 0; status == RUNG_SUCCESS; level++) {
        args->out = blocks == 1 ? result : (float *)sums + level % 2 * half;
        status = launch(cuda, kernel, function, blocks, args);
        if (blocks == 1)
            break;
        args->x = args->out;
        args->n = blocks;
        blocks = pieces(blocks, kernel->bm);
    }
    rung_workspace_put(cuda, sums);
    return status;
}

/* r06: one launch; the ticket is a counter before the workspace, which holds the blocks' sums. */
static rung_status run_ticket(rung_cuda *cuda, const rung_kernel *kernel, const rung_function *function,
                              rung_reduce_args *args)
{
    void *partials;
    /* Blocks side by side keep neighbouring memory in use, which is best until the sum is so long that the slowest
     * block is waited for: then many shares, each long enough for what a block costs. */
    int64_t blocks = pieces(args->n, (int64_t)kernel->threads * 4), most = (int64_t)cuda->machine->sms * 2;
    if (args->n >= LONG_SUM) {
        most = (int64_t)cuda->machine->sms * 64;
        args->share = pieces(args->n / 4, most < MOST_PARTIALS ? most : MOST_PARTIALS);
    }
    most = most < MOST_PARTIALS ? most : MOST_PARTIALS;
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, MOST_PARTIALS * (int64_t)sizeof(float), &partials));
    args->ticket = (unsigned *)((char *)partials - RUNG_TICKET_BYTES);
    args->partials = partials;
    rung_status status = launch(cuda, kernel, function, blocks < most ? blocks : most, args);
    rung_workspace_put_with_tickets(cuda, partials);
    return status;
}

rung_status rung_reduce_run(rung_cuda *cuda, const rung_kernel *kernel, int64_t n, const float *x, float *result)
{
    rung_function function;
    rung_reduce_args args = {.x = x, .out = result, .n = n};
    kernel = kernel ? kernel : rung_kernel_find(best);
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    if (strcmp(kernel->launch, "reduce_atomics") == 0)
        return run_atomics(cuda, kernel, &function, &args);
    if (strcmp(kernel->launch, "reduce_levels") == 0)
        return run_levels(cuda, kernel, &function, &args, LARGEST_GRID);
    if (strcmp(kernel->launch, "reduce_two") == 0)
        return run_levels(cuda, kernel, &function, &args, (int64_t)cuda->machine->sms * 8);
    return run_ticket(cuda, kernel, &function, &args);
}
