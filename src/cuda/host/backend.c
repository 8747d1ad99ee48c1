/* The CUDA backend: answers the core's table of functions for one GPU and one stream. */
#include "core/peel.h"
#include "core/plan.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/accurate/recall.h"
#include "cuda/driver/chain.h"
#include "cuda/driver/recorded.h"
#include "cuda/ladder/reduce.h"
#include "cuda/host/staging.h"
#include "cuda/host/workspace_limit.h"

#include <stdio.h>
#include <stdlib.h>

static rung_status cuda_open(const rung_config *config, void **state)
{
    rung_gpu *gpu;
    RUNG_TRY(rung_gpu_get(config->device == RUNG_DEVICE_BEST ? 0 : config->device, &gpu));
    if (config->device == RUNG_DEVICE_BEST && rung_gpu_machine(gpu)->arch < 80)
        return rung_fail(RUNG_NO_DEVICE,
                         "GPU %s is of compute capability 7.5, which only the first rungs run on: name "
                         "it by its number for these",
                         rung_gpu_machine(gpu)->name);
    rung_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a GPU context (%zu bytes)", sizeof *cuda);
    cuda->driver = rung_gpu_driver(gpu);
    cuda->gpu = gpu;
    cuda->machine = rung_gpu_machine(gpu);
    cuda->index = config->device == RUNG_DEVICE_BEST ? 0 : config->device;
    cuda->config = *config;
    snprintf(cuda->identity, sizeof cuda->identity, "%s, driver %d", cuda->machine->name,
             cuda->machine->driver_version);
    *state = cuda;
    return RUNG_SUCCESS;
}

static rung_status cuda_configure(void *state, const rung_config *config)
{
    rung_cuda *cuda = state;
    cuda->config = *config;
    return RUNG_SUCCESS;
}

static int cuda_threads(const void *state)
{
    (void)state;
    return 0;
}

static int cuda_device(const void *state)
{
    return ((const rung_cuda *)state)->index;
}

static const char *cuda_identity(const void *state)
{
    return ((const rung_cuda *)state)->identity;
}

static const char *cuda_unusable(void *state, const rung_kernel *kernel)
{
    return rung_gpu_unusable(((rung_cuda *)state)->machine, kernel);
}

static const char *cuda_estimate(void *state, const rung_kernel *kernel, const rung_problem *problem,
                                 rung_choice *choice)
{
    rung_cuda *cuda = state;
    const rung_launcher *launcher = rung_launcher_of(kernel);
    return launcher ? launcher->estimate(cuda->machine, &cuda->config, kernel, problem, choice)
                    : "its row names no launcher that there is (.launch)";
}

static void cuda_floors_us(void *state, const rung_kernel *const *kernels, int count, const rung_problem *problem,
                           double *us)
{
    const rung_machine *machine = ((rung_cuda *)state)->machine;
    const rung_launcher *launcher = NULL;
    for (int i = 0; i < count; i++) {
        if (i == 0 || kernels[i]->launch != kernels[i - 1]->launch) /* a family's kernels stand side by side */
            launcher = rung_launcher_of(kernels[i]);
        us[i] = launcher && launcher->floor_us ? launcher->floor_us(machine, kernels[i], problem) : 0.0;
    }
}

/* A call changes this of its thread, and puts it back. */
typedef struct entered {
    int pushed;  /* the primary context is current for the call: before, another one was, or none */
    int foreign; /* that one is of the same GPU, and what the program allocates lies in it */
    rung_thread_mode mode;
} entered;

/* Makes the primary context current. Programs on the runtime API have it current already. */
static rung_status enter(rung_cuda *cuda, entered *before)
{
    CUcontext current = NULL, mine = rung_gpu_context(cuda->gpu);
    *before = (entered){.pushed = 0};
    CU_TRY(cuda->driver, context_current(&current));
    if (current == mine)
        return RUNG_SUCCESS;
    CUdevice device;
    if (current)
        before->foreign = cuda->driver->context_device(&device) == CUDA_SUCCESS && device == cuda->index;
    CU_TRY(cuda->driver, context_push(mine));
    before->pushed = 1;
    return RUNG_SUCCESS;
}

/* Does what enter() does, for calls that allocate or wait. */
static rung_status enter_to_wait(rung_cuda *cuda, entered *before)
{
    RUNG_TRY(enter(cuda, before));
    before->mode = rung_driver_relax(cuda->driver);
    return RUNG_SUCCESS;
}

static void leave(rung_cuda *cuda, const entered *before)
{
    CUcontext popped;
    rung_driver_put_back(cuda->driver, before->mode);
    if (before->pushed)
        cuda->driver->context_pop(&popped);
}

static void cuda_close(void *state)
{
    rung_cuda *cuda = state;
    entered before;
    if (enter_to_wait(cuda, &before) == RUNG_SUCCESS) {
        rung_staging_close(cuda);
        rung_workspace_close(cuda);
        rung_guard_counts_close(cuda);
        rung_recall_close(cuda);
        rung_chain_close(cuda);
        rung_recorded_close(cuda);
        leave(cuda, &before);
    }
    free(cuda);
}

/* Returns whether a plan asks for too much: the context's workspace limit may have become less than what the plan
 * object was made with. A rung of the ladder runs by its name, and takes what it needs where no limit is set. */
static int asks_too_much(const rung_cuda *cuda, const rung_choice *choice)
{
    return (cuda->config.workspace_limit_bytes || choice->kernel->role == RUNG_PRODUCTION) &&
           !rung_workspace_allows(&cuda->config, rung_choice_workspace_bytes(choice));
}

/* Lends the launch its workspace, or leaves all to a launcher that has a run() of its own. */
static rung_status run_kernel(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem)
{
    const rung_launcher *launcher = rung_launcher_of(choice->kernel);
    void *workspace;
    if (launcher->run)
        return launcher->run(cuda, choice, problem);
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &workspace));
    rung_status status = launcher->launch(cuda, choice, problem, workspace);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

/* Where there is no memory for the chosen kernel's workspace, or for its code, the best one runs that needs an eighth
 * of the workspace, else the best that needs none; but not where a launch may have written C, which would then be
 * scaled twice. */
static rung_status run_one(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem)
{
    const int64_t less[] = {choice->workspace_bytes / 8, -1}, limit = cuda->config.workspace_limit_bytes;
    const uint64_t writes = cuda->writes;
    const int is_main = cuda->ran == choice->kernel; /* not what was cut off of a C */
    rung_status status = run_kernel(cuda, choice, problem);
    cuda->keep = NULL; /* another choice's launch is not this one's */
    for (int i = 0; i < 2 && status == RUNG_OUT_OF_MEMORY && cuda->writes == writes && choice->workspace_bytes > 8;
         i++) {
        rung_choice again;
        cuda->config.workspace_limit_bytes = less[i];
        rung_status found = rung_decide(&rung_cuda_backend, cuda, problem, &again);
        cuda->config.workspace_limit_bytes = limit;
        if (found != RUNG_SUCCESS)
            continue;
        if (is_main)
            cuda->ran = again.kernel;
        status = run_kernel(cuda, &again, problem);
    }
    return status;
}

static rung_status run_on_device(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem)
{
    rung_choice again;
    if (asks_too_much(cuda, choice)) {
        RUNG_TRY(rung_decide(&rung_cuda_backend, cuda, problem, &again));
        choice = &again;
        cuda->ran = again.kernel;
    }
    if (!choice->cut_m)
        return run_one(cuda, choice, problem);
    for (int i = RUNG_PART_MAIN; i < RUNG_PARTS; i++) {
        rung_problem product;
        rung_choice its;
        if (rung_peeled(problem, choice, (rung_part)i, &product, &its))
            RUNG_TRY(run_one(cuda, &its, &product));
    }
    return RUNG_SUCCESS;
}

/* Queues the launch that the last run of this choice and problem kept, else keeps the one of this run. */
static rung_status run_again(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem, rung_rerun *rerun)
{
    void *workspace;
    if (asks_too_much(cuda, choice) || choice->cut_m || (rerun->ready && rung_is_capturing(cuda)))
        return run_on_device(cuda, choice, problem);
    if (rerun->ready && rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &workspace) == RUNG_SUCCESS) {
        rung_status status = rung_launch_again(cuda, rerun, problem, workspace);
        rung_workspace_put_with_tickets(cuda, workspace);
        return status;
    }
    rerun->ready = 0;
    cuda->keep = rerun;
    cuda->keep_of = problem;
    rung_status status = run_on_device(cuda, choice, problem);
    cuda->keep = NULL;
    return status;
}

static rung_status run_staged(rung_cuda *cuda, const rung_choice *choice, const rung_problem *problem)
{
    rung_thread_mode mode = rung_driver_relax(cuda->driver);
    rung_status status = rung_run_staged(cuda, choice, problem, run_on_device);
    rung_driver_put_back(cuda->driver, mode);
    return status;
}

/* Launches on another GPU's stream would fail one by one, some perhaps behind others that did not. */
static rung_status check_stream(rung_cuda *cuda)
{
    void *stream = cuda->config.stream;
    CUcontext its, popped;
    CUdevice device = cuda->index;
    if (stream == cuda->known_stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return RUNG_SUCCESS;
    CU_TRY(cuda->driver, stream_context(stream, &its));
    if (its != rung_gpu_context(cuda->gpu)) {
        CU_TRY(cuda->driver, context_push(its));
        CUresult result = cuda->driver->context_device(&device);
        cuda->driver->context_pop(&popped);
        if (result != CUDA_SUCCESS)
            return rung_driver_fail(cuda->driver, result, "cuCtxGetDevice");
    }
    if (device != cuda->index)
        return rung_fail(RUNG_INVALID_ARGUMENT, "the stream (%p) is one of GPU %d, the context's GPU is %d", stream,
                         (int)device, cuda->index);
    cuda->known_stream = stream;
    return RUNG_SUCCESS;
}

static rung_status refuse_foreign(const rung_cuda *cuda, const entered *before)
{
    if (before->foreign)
        return rung_fail(RUNG_UNSUPPORTED,
                         "the calling thread's CUDA context is not the primary one of GPU %d: its memory is out of "
                         "Rung's reach",
                         cuda->index);
    return RUNG_SUCCESS;
}

/* A stream is known by its address, which another GPU's stream may have since: where the driver refuses a launch, the
 * stream is asked about again. What is half done is told as it failed. */
static rung_status blame_stream(rung_cuda *cuda, rung_status status)
{
    char why[512];
    if (status != RUNG_DEVICE_ERROR || !cuda->known_stream || cuda->known_stream != cuda->config.stream ||
        cuda->writes != cuda->writes_before)
        return status;
    snprintf(why, sizeof why, "%s", rung_last_error());
    cuda->known_stream = NULL;
    return check_stream(cuda) == RUNG_INVALID_ARGUMENT ? RUNG_INVALID_ARGUMENT : rung_fail(status, "%s", why);
}

static rung_status run_entered(rung_cuda *cuda, const entered *before, const rung_choice *choice,
                               const rung_problem *problem, rung_rerun *rerun)
{
    int on_host;
    RUNG_TRY(check_stream(cuda));
    RUNG_TRY(rung_operands_where(cuda, problem, &on_host));
    if (on_host && rung_is_capturing(cuda))
        return rung_fail(RUNG_UNSUPPORTED,
                         "the stream (%p) records a graph, and operands are in host memory, which Rung copies by "
                         "itself: give operands in device memory",
                         cuda->config.stream);
    if (on_host)
        return run_staged(cuda, choice, problem);
    RUNG_TRY(refuse_foreign(cuda, before));
    return rerun ? run_again(cuda, choice, problem, rerun) : run_on_device(cuda, choice, problem);
}

static rung_status cuda_run(void *state, const rung_choice *choice, const rung_problem *problem, rung_rerun *rerun)
{
    rung_cuda *cuda = state;
    entered before;
    cuda->ran = choice->kernel;
    cuda->writes_before = cuda->writes;
    RUNG_TRY(enter(cuda, &before));
    rung_status status = run_entered(cuda, &before, choice, problem, rerun);
    status = blame_stream(cuda, status);
    leave(cuda, &before);
    return status;
}

static const rung_kernel *cuda_ran(const void *state)
{
    return ((const rung_cuda *)state)->ran;
}

static int cuda_wrote(const void *state)
{
    const rung_cuda *cuda = state;
    return cuda->writes != cuda->writes_before;
}

static rung_status cuda_ssum(void *state, int64_t n, const float *x, float *result)
{
    rung_cuda *cuda = state;
    entered before;
    RUNG_TRY(enter_to_wait(cuda, &before));
    rung_status status = check_stream(cuda);
    if (status == RUNG_SUCCESS)
        status = refuse_foreign(cuda, &before);
    if (status == RUNG_SUCCESS)
        status = rung_reduce_run(cuda, NULL, n, x, result);
    leave(cuda, &before);
    return status;
}

static rung_status cuda_synchronize(void *state)
{
    rung_cuda *cuda = state;
    entered before;
    RUNG_TRY(enter_to_wait(cuda, &before));
    CUresult result = cuda->driver->stream_synchronize(cuda->config.stream);
    leave(cuda, &before);
    return result == CUDA_SUCCESS ? RUNG_SUCCESS : rung_driver_fail(cuda->driver, result, "cuStreamSynchronize");
}

static rung_status cuda_guard_counts(void *state, rung_guard_counts *counts)
{
    rung_cuda *cuda = state;
    entered before;
    RUNG_TRY(enter_to_wait(cuda, &before));
    rung_status status = rung_guard_counts_read(cuda, counts);
    leave(cuda, &before);
    return status;
}

const rung_backend rung_cuda_backend = {
    .name = "CUDA",
    .id = RUNG_BACKEND_CUDA,
    .peels = 1,
    .predicts = 1,
    .open = cuda_open,
    .close = cuda_close,
    .configure = cuda_configure,
    .threads = cuda_threads,
    .device = cuda_device,
    .identity = cuda_identity,
    .unusable = cuda_unusable,
    .estimate = cuda_estimate,
    .floors_us = cuda_floors_us,
    .run = cuda_run,
    .ran = cuda_ran,
    .wrote = cuda_wrote,
    .ssum = cuda_ssum,
    .synchronize = cuda_synchronize,
    .guard_counts = cuda_guard_counts,
};
