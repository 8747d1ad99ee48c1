/* Contexts: which backend, its settings, and the plan of a product (core/recent.h remembers those of recent shapes). */
#include "core/context.h"
#include "core/peel.h"
#include "core/status.h"
#include "core/wrote.h"

#include <stdlib.h>
#include <string.h>

void rung_config_init(rung_config *config)
{
    memset(config, 0, sizeof *config);
    config->device = RUNG_DEVICE_BEST;
}

static rung_status check_config(const rung_config *config)
{
    if (config->device < RUNG_DEVICE_BEST)
        return rung_fail(RUNG_INVALID_ARGUMENT, "device is %d: RUNG_DEVICE_BEST, RUNG_DEVICE_CPU or a GPU's number",
                         config->device);
    if (config->threads < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "threads is %d: it must not be negative", config->threads);
    if (config->threads > RUNG_MOST_THREADS)
        return rung_fail(RUNG_INVALID_ARGUMENT, "threads is %d: at most %d", config->threads, RUNG_MOST_THREADS);
    if (config->math < RUNG_STRICT || config->math > RUNG_FAST)
        return rung_fail(RUNG_INVALID_ARGUMENT, "math is %d: strict (0), accurate (1) or fast (2)", config->math);
    if (config->pointers < RUNG_POINTERS_AUTO || config->pointers > RUNG_POINTERS_HOST)
        return rung_fail(RUNG_INVALID_ARGUMENT, "pointers is %d: auto (0), device (1) or host (2)", config->pointers);
    return RUNG_SUCCESS;
}

static rung_status open_backend(rung_context *context)
{
    rung_config *config = &context->config;
    if (config->device != RUNG_DEVICE_CPU) {
        context->backend = &rung_cuda_backend;
        rung_status status = rung_cuda_backend.open(config, &context->state);
        if (status == RUNG_SUCCESS || config->device != RUNG_DEVICE_BEST)
            return status;
    }
    context->backend = &rung_cpu_backend;
    return rung_cpu_backend.open(config, &context->state);
}

static rung_status create(rung_context **out, const rung_config *given, const void *caller)
{
    if (!out)
        return rung_fail(RUNG_INVALID_ARGUMENT, "rung_context_create was given NULL for the result");
    *out = NULL;
    rung_config config;
    rung_config_init(&config);
    if (given)
        config = *given;
    RUNG_TRY(check_config(&config));
    rung_context *context = calloc(1, sizeof *context);
    if (!context)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a context (%zu bytes)", sizeof *context);
    context->config = config;
    rung_status status = open_backend(context);
    if (status != RUNG_SUCCESS) {
        free(context);
        return status;
    }
    if (context->backend->made_by)
        context->backend->made_by(context->state, caller);
    context->plain = context->backend->plain_kernel ? context->backend->plain_kernel(context->state) : NULL;
    if (context->backend->identity)
        rung_tuned_load(&context->tuned, context->backend->identity(context->state));
    rung_context_rescope(context);
    *out = context;
    return RUNG_SUCCESS;
}

rung_status rung_context_create(rung_context **context, const rung_config *config)
{
    rung_attempt_begin(); /* without a GPU the best device is the CPU */
    return rung_attempt_end(create(context, config, __builtin_return_address(0)));
}

void rung_context_destroy(rung_context *context)
{
    if (!context)
        return;
    context->backend->close(context->state);
    rung_tuned_free(&context->tuned);
    free(context);
}

static rung_status reconfigure(rung_context *context, const rung_config *config)
{
    RUNG_TRY(check_config(config));
    context->again.span_c = 0;
    RUNG_TRY(context->backend->configure(context->state, config));
    context->config = *config;
    return RUNG_SUCCESS;
}

/* Sets what recent plans depend on. Every table of tuned shapes that is not empty, and every change of one, has a
 * number of its own. */
void rung_context_rescope(rung_context *context)
{
    static int64_t tables;
    rung_scope *scope = &context->scope;
    context->again.span_c = 0;
    memset(scope, 0, sizeof *scope); /* padding too: scopes are compared by their bytes */
    scope->backend = context->backend;
    scope->workspace_limit_bytes = context->config.workspace_limit_bytes;
    scope->plain = context->plain;
    scope->device = context->backend->device(context->state);
    scope->tuned = context->tuned.count ? __atomic_add_fetch(&tables, 1, __ATOMIC_RELAXED) : 0;
}

static rung_status check_given(const void *given, const char *name)
{
    return given ? RUNG_SUCCESS : rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", name);
}

rung_status rung_context_set_math(rung_context *context, rung_math math)
{
    RUNG_TRY(check_given(context, "context"));
    if (math == context->config.math) /* set before every product by some callers */
        return RUNG_SUCCESS;
    rung_config config = context->config;
    config.math = math;
    return reconfigure(context, &config); /* math is part of a problem, and so of a recent plan's key */
}

rung_status rung_context_set_threads(rung_context *context, int threads)
{
    RUNG_TRY(check_given(context, "context"));
    rung_config config = context->config;
    config.threads = threads;
    RUNG_TRY(reconfigure(context, &config));
    rung_context_rescope(context);
    return RUNG_SUCCESS;
}

rung_status rung_context_set_stream(rung_context *context, void *stream)
{
    RUNG_TRY(check_given(context, "context"));
    if (stream == context->config.stream)
        return RUNG_SUCCESS;
    rung_config config = context->config;
    config.stream = stream;
    return reconfigure(context, &config);
}

rung_status rung_context_set_pointers(rung_context *context, rung_pointers pointers)
{
    RUNG_TRY(check_given(context, "context"));
    rung_config config = context->config;
    config.pointers = pointers;
    return reconfigure(context, &config);
}

rung_status rung_context_set_workspace_limit(rung_context *context, int64_t bytes)
{
    RUNG_TRY(check_given(context, "context"));
    rung_config config = context->config;
    config.workspace_limit_bytes = bytes;
    RUNG_TRY(reconfigure(context, &config));
    rung_context_rescope(context);
    return RUNG_SUCCESS;
}

int rung_context_device(const rung_context *context)
{
    return context ? context->backend->device(context->state) : RUNG_DEVICE_CPU;
}

int rung_context_threads(const rung_context *context)
{
    return context ? context->backend->threads(context->state) : 0;
}

rung_math rung_context_math(const rung_context *context)
{
    return context ? context->config.math : RUNG_STRICT;
}

const char *rung_last_kernel(const rung_context *context)
{
    return context && context->last ? context->last->name : NULL;
}

int rung_context_wrote(const rung_context *context)
{
    return context->half_done;
}

rung_status rung_context_synchronize(rung_context *context)
{
    RUNG_TRY(check_given(context, "context"));
    return context->backend->synchronize(context->state);
}

rung_status rung_context_guard_counts(rung_context *context, rung_guard_counts *counts)
{
    RUNG_TRY(check_given(context, "context"));
    RUNG_TRY(check_given(counts, "counts"));
    *counts = (rung_guard_counts){0, 0, 0};
    return context->backend->guard_counts ? context->backend->guard_counts(context->state, counts) : RUNG_SUCCESS;
}

const char *rung_kernel_unusable(rung_context *context, const rung_kernel *kernel)
{
    if (kernel->backend != context->backend->id)
        return context->backend->id == RUNG_BACKEND_CPU ? "a GPU kernel" : "a CPU kernel";
    return context->backend->unusable(context->state, kernel);
}

/* Decides how a shape runs: a tuned one by what was fastest here, as long as that kernel takes these operands. */
static rung_status decide(rung_context *context, const rung_problem *problem, rung_choice *choice)
{
    const rung_tuned_row *row = problem->in_order ? NULL : rung_tuned_find(&context->tuned, problem);
    if (row && row->kernel->role == RUNG_PRODUCTION && !rung_refuse_math(row->kernel, problem->math) &&
        rung_decide_kernel(context->backend, context->state, problem, row->kernel->name, choice) == RUNG_SUCCESS)
        return RUNG_SUCCESS;
    RUNG_TRY(rung_decide(context->backend, context->state, problem, choice));
    rung_peel(context->backend, context->state, problem, choice);
    return RUNG_SUCCESS;
}

rung_status rung_context_choose(rung_context *context, const rung_problem *problem, rung_choice *choice)
{
    /* They are not the context's alone (rung_process_set_threads). */
    context->scope.threads = context->backend->threads(context->state);
    const rung_choice *recent = rung_recent_find(&context->scope, problem);
    if (recent) {
        *choice = *recent;
        return RUNG_SUCCESS;
    }
    RUNG_TRY(decide(context, problem, choice));
    rung_recent_remember(&context->scope, problem, choice);
    return RUNG_SUCCESS;
}
