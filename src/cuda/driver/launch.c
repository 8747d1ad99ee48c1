/* Every launcher uses this: it fills the argument struct from a problem, and launches. */
#include "cuda/driver/chain.h"
#include "cuda/driver/recorded.h"

#include <string.h>

void rung_args_fill(rung_args *args, const rung_problem *p)
{
    memset(args, 0, sizeof *args);
    args->a = p->a;
    args->b = p->b;
    args->c = p->c;
    args->m = p->m;
    args->n = p->n;
    args->k = p->k;
    args->lda = p->lda;
    args->ldb = p->ldb;
    args->ldc = p->ldc;
    args->alpha = p->alpha;
    args->beta = p->beta;
    args->trans_a = p->trans_a;
    args->trans_b = p->trans_b;
    args->batch = p->batch;
    args->stride_a = p->stride_a;
    args->stride_b = p->stride_b;
    args->stride_c = p->stride_c;
    args->a_array = p->a_array;
    args->b_array = p->b_array;
    args->c_array = p->c_array;
    args->alpha_device = p->alpha_device;
    args->beta_device = p->beta_device;
    args->bias = p->bias;
    args->bias_kind = p->bias_kind;
    args->activation = p->activation;
    args->split_k = 1;
}

int rung_is_capturing(const rung_cuda *cuda)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuda->driver->stream_capturing(cuda->config.stream, &capture) == CUDA_SUCCESS &&
           capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

rung_next_start rung_next_starts(rung_cuda *cuda, const rung_choice *choice, double short_us, double long_us)
{
    if (rung_is_capturing(cuda))
        return RUNG_NEXT_AT_ONCE;
    return choice->cost_us < short_us  ? RUNG_NEXT_BEFORE_END
           : choice->cost_us < long_us ? RUNG_NEXT_AT_ONCE
                                       : RUNG_NEXT_AFTER_END;
}

int rung_asks(const rung_cuda *cuda, const rung_args *args, int64_t blocks, int64_t resident)
{
    enum { MOST_THAT_ASK = 7 }; /* halves of a block on each multiprocessor */
    const int64_t room = resident < MOST_THAT_ASK ? resident : MOST_THAT_ASK;
    return cuda->machine->arch == 90 && args->next_start == RUNG_NEXT_AT_ONCE && !args->a_array && !args->marks &&
           2 * blocks <= room * cuda->machine->sms;
}

static char *append(char *to, const char *text)
{
    size_t bytes = strlen(text);
    memcpy(to, text, bytes + 1);
    return to + bytes;
}

enum { FORMS = 4, NO_FORM = FORMS, FORM_NAMES };

/* Finds a function among those that the context has launched: rung_gpu_function() takes a lock that all threads share
 * and compares names, a fortieth of the time of the shortest calls. */
static rung_status function_of(rung_cuda *cuda, const rung_kernel *kernel, int form, const char *end,
                               rung_function *function)
{
    static const char *const forms[FORM_NAMES] = {"_nn", "_nt", "_tn", "_tt", ""};
    const size_t at = (uintptr_t)kernel / sizeof *kernel * FORM_NAMES + (size_t)form;
    rung_known_function *known = &cuda->known_functions[at % RUNG_KNOWN_FUNCTIONS];
    if (known->kernel != kernel || known->form != form || known->end != end) {
        char symbol[96];
        rung_function found;
        append(append(append(symbol, kernel->name), forms[form]), end);
        RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &found));
        *known = (rung_known_function){kernel, end, form, found};
    }
    *function = known->function;
    return RUNG_SUCCESS;
}

rung_status rung_form_function(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const char *end,
                               rung_function *function)
{
    return function_of(cuda, kernel, 2 * (p->trans_a != 0) + (p->trans_b != 0), end, function);
}

rung_status rung_kernel_function(rung_cuda *cuda, const rung_kernel *kernel, rung_function *function)
{
    return function_of(cuda, kernel, NO_FORM, "", function);
}

/* Returns whether a launch may overlap. Kernels have the call that this needs in their sm_90 code only; capturing it
 * takes CUDA 12.3. */
static int may_overlap(const rung_cuda *cuda, const rung_grid *grid)
{
    return grid->overlaps && cuda->machine->arch == 90 && cuda->machine->driver_version >= 12030;
}

static unsigned or_one(unsigned blocks)
{
    return blocks ? blocks : 1;
}

/* Returns how much shared memory a block asks for. Blocks that come while the kernel before them ends crowd on the
 * multiprocessors that are free first, which then take twice the time (704 x 704 x 704: 28 us instead of 20). So a
 * block asks for so much shared memory that no multiprocessor has room for more of them than its share. What it asks
 * for is missing from the first level of cache. */
static unsigned shared_for_a_fair_share(const rung_machine *machine, const rung_function *function,
                                        const rung_grid *grid)
{
    enum { MULTIPROCESSOR = 228 * 1024, SYSTEM = 1024, UNIT = 128 }; /* bytes: in all, a block's beyond its own */
    int64_t blocks = (int64_t)grid->x * or_one(grid->y) * or_one(grid->z),
            share = (blocks + machine->sms - 1) / machine->sms;
    if (grid->beside_next)
        share *= 2;
    int64_t bytes = MULTIPROCESSOR / (share + 1) - SYSTEM - function->shared_bytes;
    bytes = (bytes / UNIT + 1) * UNIT; /* share + 1 blocks do not fit */
    int64_t most = machine->shared_per_block_bytes - function->shared_bytes;
    if (grid->may_crowd && share >= RUNG_MANY_BLOCKS)
        return grid->shared_bytes;
    return bytes > grid->shared_bytes && bytes <= most ? (unsigned)bytes : grid->shared_bytes;
}

_Static_assert(sizeof(rung_kept_launch) <= sizeof((rung_rerun *)0)->kept, "a kept launch finds room");

/* Keeps a launch for the next run. One of a graph is another one than in a stream. */
static void keep(rung_cuda *cuda, const rung_function *function, const CUlaunchConfig *config, const rung_args *args)
{
    rung_kept_launch *kept = (void *)cuda->keep->kept;
    const rung_problem *p = cuda->keep_of;
    const int swapped = args->a == p->b && args->b == p->a;
    if (p->a == p->b || rung_is_capturing(cuda) || (!swapped && (args->a != p->a || args->b != p->b)))
        return;
    kept->function = function->function;
    kept->config = *config;
    memcpy(kept->attributes, config->attrs, config->numAttrs * sizeof *config->attrs);
    kept->args = *args;
    kept->swapped = swapped;
    cuda->keep->ready = 1;
}

rung_status rung_launch_again(rung_cuda *cuda, rung_rerun *rerun, const rung_problem *problem, void *workspace)
{
    rung_kept_launch *kept = (void *)rerun->kept;
    void *parameters[] = {&kept->args};
    kept->args.a = kept->swapped ? problem->b : problem->a;
    kept->args.b = kept->swapped ? problem->a : problem->b;
    kept->args.c = problem->c;
    kept->args.workspace = workspace;
    kept->config.hStream = cuda->config.stream;
    kept->config.attrs = kept->attributes;
    CU_TRY(cuda->driver, launch(&kept->config, kept->function, parameters, NULL));
    cuda->writes++;
    return RUNG_SUCCESS;
}

rung_status rung_launch(rung_cuda *cuda, const rung_function *function, const rung_grid *grid, const void *argument)
{
    CUlaunchAttribute attributes[2];
    const unsigned blocks[] = {grid->x, or_one(grid->y), or_one(grid->z)};
    CUlaunchConfig config = rung_launch_config(cuda->config.stream, blocks, grid->threads, grid->shared_bytes);
    config.attrs = attributes;
    rung_launch_in_clusters(&config, attributes, grid->cluster);
    int moved;
    RUNG_TRY(rung_recorded_before(cuda, grid->order, &moved));
    if (!moved && may_overlap(cuda, grid)) {
        CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
        memset(attribute, 0, sizeof *attribute);
        attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute->value.programmaticStreamSerializationAllowed = 1;
        config.sharedMemBytes = shared_for_a_fair_share(cuda->machine, function, grid);
    }
    if (rung_chain_add(cuda, &config, function->function, argument, grid->argument_bytes, grid->order))
        return RUNG_SUCCESS;
    RUNG_TRY(rung_chain_end(cuda, 1));
    void *parameters[] = {(void *)(uintptr_t)argument};
    CU_TRY(cuda->driver, launch(&config, function->function, parameters, NULL));
    RUNG_TRY(rung_recorded_after(cuda));
    cuda->writes += !grid->prepares;
    if (cuda->keep && grid->repeats)
        keep(cuda, function, &config, argument);
    return RUNG_SUCCESS;
}
