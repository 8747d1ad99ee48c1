/* The tuning calls of rung_tools.h. */
#include "core/context.h"
#include "core/status.h"
#include "core/validate.h"
#include "rung_tools.h"

#include <stdlib.h>
#include <string.h>

static rung_status shape_of(const rung_context *context, const rung_gemm *gemm, rung_problem *problem)
{
    int nothing;
    memset(problem, 0, sizeof *problem);
    RUNG_TRY(rung_validate(gemm, context->config.math, problem, &nothing));
    if (nothing)
        return rung_fail(RUNG_INVALID_ARGUMENT, "a product with nothing to do cannot be tuned");
    return RUNG_SUCCESS;
}

rung_status rung_tune_record(rung_context *context, const rung_gemm *gemm, const char *kernel, double us)
{
    rung_problem problem;
    RUNG_TRY(shape_of(context, gemm, &problem));
    if (!context->backend->identity)
        return rung_fail(RUNG_UNSUPPORTED, "the %s backend has nothing to tune", context->backend->name);
    rung_choice choice;
    RUNG_TRY(rung_decide_kernel(context->backend, context->state, &problem, kernel, &choice));
    if (choice.kernel->role != RUNG_PRODUCTION)
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is no production kernel", kernel);
    RUNG_TRY(rung_tuned_record(&context->tuned, &problem, choice.kernel, us));
    rung_context_rescope(context);
    return RUNG_SUCCESS;
}

rung_status rung_tune_save(rung_context *context)
{
    return rung_tuned_save(&context->tuned);
}

const char *rung_tune_path(const rung_context *context)
{
    return context->tuned.path;
}

const char *rung_tune_state(const rung_context *context)
{
    return context->backend->identity ? context->tuned.state : "this backend is not tuned by shape";
}

int rung_tune_candidates(rung_context *context, const rung_gemm *gemm, const char **kernels, int capacity)
{
    rung_problem problem;
    rung_candidate *ranked = calloc(RUNG_PLAN_CANDIDATES, sizeof *ranked);
    int written = 0;
    if (ranked && shape_of(context, gemm, &problem) == RUNG_SUCCESS) {
        int count = rung_rank(context->backend, context->state, &problem, ranked, RUNG_PLAN_CANDIDATES);
        for (int i = 0; i < count && written < capacity && !ranked[i].refusal; i++)
            kernels[written++] = ranked[i].choice.kernel->name;
    }
    free(ranked);
    return written;
}
