/* The entry points: a call is validate, quick return, choose, run. */
#include "core/context.h"
#include "core/overlap.h"
#include "core/plain.h"
#include "core/status.h"
#include "core/validate.h"

#include <stdlib.h>
#include <string.h>

void rung_gemm_init(rung_gemm *gemm)
{
    memset(gemm, 0, sizeof *gemm);
    gemm->batch = 1;
    gemm->alpha = 1.0f;
}

/* Runs a product as planned. Where the GPU has no memory left for that, another kernel may run. */
static rung_status run_choice(rung_context *context, const rung_choice *choice, const rung_problem *problem,
                              rung_rerun *rerun)
{
    context->last = choice->kernel;
    rung_status status = context->backend->run(context->state, choice, problem, rerun);
    if (context->backend->ran)
        context->last = context->backend->ran(context->state);
    context->half_done = status != RUNG_SUCCESS && context->backend->wrote && context->backend->wrote(context->state);
    return status;
}

static rung_status run_small(rung_context *context, const rung_kernel *kernel, const rung_plain *small)
{
    context->last = kernel;
    return context->backend->run_small(context->state, small);
}

static rung_status run_plain(rung_context *context, const rung_kernel *kernel, const rung_plain *plain)
{
    if (rung_is_small_shape(plain))
        return run_small(context, kernel, plain);
    context->last = kernel;
    return context->backend->run_plain(context->state, plain);
}

rung_status rung_small_run(rung_context *context, const rung_plain *small)
{
    return context->plain ? run_small(context, context->plain, small) : RUNG_UNSUPPORTED;
}

/* Refuses a result that lies on an operand, and what is NULL in arrays that the CPU can read. */
static rung_status check_memory(const rung_context *context, const rung_problem *problem, const rung_gemm *gemm)
{
    RUNG_TRY(rung_refuse_overlap(problem, gemm));
    int can_look = problem->arrays && context->backend->id == RUNG_BACKEND_CPU;
    return can_look ? rung_refuse_null_elements(problem, gemm) : RUNG_SUCCESS;
}

/* Keeps a product that has come twice in a row: where it takes turns with others, keeping costs more than it saves. */
static void keep_repeated(rung_context *context, const rung_gemm *gemm, const rung_problem *problem,
                          const rung_choice *choice)
{
    int64_t *last = context->last_sides;
    if (last[0] == gemm->m && last[1] == gemm->n && last[2] == gemm->k) {
        rung_again_keep(&context->again, gemm, problem);
        context->again_choice = *choice;
    }
    last[0] = gemm->m, last[1] = gemm->n, last[2] = gemm->k;
}

static rung_status run_planned(rung_context *context, const rung_gemm *gemm, int in_order)
{
    if (!context || !gemm)
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", context ? "gemm" : "context");
    context->half_done = 0; /* who is refused has written nothing */
    if (!in_order && rung_again_fits(&context->again, gemm))
        return run_choice(context, &context->again_choice, &context->again.problem, &context->again.rerun);
    rung_problem problem;
    memset(&problem, 0, sizeof problem); /* padding too: plans are looked up by their bytes */
    int nothing;
    RUNG_TRY(rung_validate(gemm, context->config.math, &problem, &nothing));
    if (nothing) {
        context->last = NULL;
        return RUNG_SUCCESS;
    }
    RUNG_TRY(check_memory(context, &problem, gemm));
    problem.in_order = in_order;
    rung_choice choice;
    RUNG_TRY(rung_context_choose(context, &problem, &choice));
    if (!in_order && !context->plain)
        keep_repeated(context, gemm, &problem, &choice);
    return run_choice(context, &choice, &problem, NULL);
}

rung_status rung_gemm_run(rung_context *context, const rung_gemm *gemm)
{
    rung_plain plain;
    if (context && gemm && context->plain && rung_plain_of_gemm(&plain, gemm))
        return run_plain(context, context->plain, &plain);
    rung_attempt_begin();
    return rung_attempt_end(run_planned(context, gemm, 0));
}

rung_status rung_gemm_run_in_order(rung_context *context, const rung_gemm *gemm)
{
    rung_attempt_begin();
    return rung_attempt_end(run_planned(context, gemm, 1));
}

rung_status rung_sgemm(rung_context *context, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                       int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                       int64_t ldb, float beta, float *c, int64_t ldc)
{
    rung_plain plain;
    int is_plain = 0;
    if (context && context->plain) /* each layout by itself: nothing is exchanged then, only read from another place */
        is_plain =
            layout == RUNG_COL_MAJOR
                ? rung_plain_of(&plain, RUNG_COL_MAJOR, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
                : rung_plain_of(&plain, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (is_plain)
        return run_plain(context, context->plain, &plain);
    return rung_sgemm_strided_batched(context, layout, trans_a, trans_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c,
                                      ldc, 0, 1);
}

rung_status rung_sgemm_strided_batched(rung_context *context, rung_layout layout, rung_transpose trans_a,
                                       rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                       const float *a, int64_t lda, int64_t stride_a, const float *b, int64_t ldb,
                                       int64_t stride_b, float beta, float *c, int64_t ldc, int64_t stride_c,
                                       int64_t batch)
{
    rung_gemm gemm = {.layout = layout,
                      .trans_a = trans_a,
                      .trans_b = trans_b,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = b,
                      .c = c,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .batch = batch,
                      .stride_a = stride_a,
                      .stride_b = stride_b,
                      .stride_c = stride_c,
                      .alpha = alpha,
                      .beta = beta};
    return rung_gemm_run(context, &gemm);
}

rung_status rung_sgemm_batched(rung_context *context, rung_layout layout, rung_transpose trans_a,
                               rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                               const float *const *a, int64_t lda, const float *const *b, int64_t ldb, float beta,
                               float *const *c, int64_t ldc, int64_t batch)
{
    rung_gemm gemm = {.layout = layout,
                      .trans_a = trans_a,
                      .trans_b = trans_b,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a_array = a,
                      .b_array = b,
                      .c_array = c,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .batch = batch,
                      .alpha = alpha,
                      .beta = beta};
    return rung_gemm_run(context, &gemm);
}

rung_status rung_ssum(rung_context *context, int64_t n, const float *x, float *result)
{
    if (!context)
        return rung_fail(RUNG_INVALID_ARGUMENT, "context is NULL");
    if (n < 0)
        return rung_fail(RUNG_INVALID_ARGUMENT, "n is %lld: it must not be negative", (long long)n);
    if (!result || (n > 0 && !x))
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", result ? "x" : "result");
    return context->backend->ssum(context->state, n, x, result);
}

static rung_status plan_create(rung_plan **out, rung_context *context, const rung_gemm *gemm, const char *kernel)
{
    if (!out || !context || !gemm)
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", !out ? "plan" : !context ? "context" : "gemm");
    *out = NULL;
    rung_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a plan (%zu bytes)", sizeof *plan);
    plan->context = context;
    plan->made_from = *gemm;
    plan->forced = kernel != NULL;
    rung_status status;
    RUNG_TRY_OUT(rung_validate(gemm, context->config.math, &plan->problem, &plan->nothing));
    if (plan->nothing && kernel && !rung_kernel_find(kernel))
        RUNG_TRY_OUT(rung_fail(RUNG_INVALID_ARGUMENT, "no kernel is called '%s'", kernel));
    if (!plan->nothing && kernel)
        RUNG_TRY_OUT(rung_decide_kernel(context->backend, context->state, &plan->problem, kernel, &plan->choice));
    if (!plan->nothing && !kernel)
        RUNG_TRY_OUT(rung_context_choose(context, &plan->problem, &plan->choice));
    rung_plain plain;
    rung_plain_fill(&plain, gemm->layout, gemm->trans_a, gemm->trans_b, gemm->m, gemm->n, gemm->k, gemm->alpha, gemm->a,
                    gemm->lda, gemm->b, gemm->ldb, gemm->beta, gemm->c, gemm->ldc);
    plan->small = context->plain && plan->choice.kernel == context->plain && rung_is_sound_shape(&plain) &&
                  rung_is_small_shape(&plain);
    *out = plan;
    return RUNG_SUCCESS;
out:
    free(plan);
    return status;
}

rung_status rung_plan_create(rung_plan **plan, rung_context *context, const rung_gemm *gemm)
{
    rung_attempt_begin();
    return rung_attempt_end(plan_create(plan, context, gemm, NULL));
}

rung_status rung_plan_create_kernel(rung_plan **plan, rung_context *context, const rung_gemm *gemm, const char *kernel)
{
    if (!kernel)
        return rung_fail(RUNG_INVALID_ARGUMENT, "kernel is NULL");
    rung_attempt_begin();
    return rung_attempt_end(plan_create(plan, context, gemm, kernel));
}

/* Returns whether the plan fits the call. Alignment may only be better than what the plan was made for. Whether beta is
 * 0 decided what is fastest, and nothing else: it may be another one now. */
static int same_shape(const rung_problem *made, const rung_problem *now)
{
    rung_problem other = *now;
    if (other.align_a < made->align_a || other.align_b < made->align_b || other.align_c < made->align_c)
        return 0;
    other.align_a = made->align_a;
    other.align_b = made->align_b;
    other.align_c = made->align_c;
    other.beta_zero = made->beta_zero;
    if (other.k == 0) /* alpha = 0: any plan of the shape scales C */
        other.k = made->k;
    return memcmp(&other, made, offsetof(rung_problem, a)) == 0;
}

/* Returns whether the call may go the way of small products: only where the plan's kernel would answer there too. Its
 * numbers are those of the plan, which were judged when that was made. */
static int is_small_way(const rung_plan *plan, const rung_gemm *g, rung_plain *plain)
{
    const rung_gemm *made = &plan->made_from;
    if (!plan->small || g->m != made->m || g->n != made->n || g->k != made->k || g->layout != made->layout ||
        g->trans_a != made->trans_a || g->trans_b != made->trans_b || g->lda != made->lda || g->ldb != made->ldb ||
        g->ldc != made->ldc || !rung_asks_for_one(g))
        return 0;
    rung_plain_fill(plain, g->layout, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b, g->ldb,
                    g->beta, g->c, g->ldc);
    return rung_is_sound_call(plain);
}

/* Plans anew for an alpha of 0: by the plan's kernel where that was named and takes such a product. */
static rung_status choose_scaling(const rung_plan *plan, const rung_problem *problem, rung_choice *choice)
{
    rung_context *context = plan->context;
    if (plan->forced && rung_decide_kernel(context->backend, context->state, problem, plan->choice.kernel->name,
                                           choice) == RUNG_SUCCESS)
        return RUNG_SUCCESS;
    return rung_context_choose(context, problem, choice);
}

static rung_status run_plan(rung_plan *plan, const rung_gemm *gemm)
{
    if (!plan || !gemm)
        return rung_fail(RUNG_INVALID_ARGUMENT, "%s is NULL", plan ? "gemm" : "plan");
    if (rung_again_fits(&plan->again, gemm))
        return run_choice(plan->context, &plan->choice, &plan->again.problem, &plan->again.rerun);
    rung_problem problem;
    memset(&problem, 0, sizeof problem);
    int nothing;
    RUNG_TRY(rung_validate(gemm, plan->problem.math, &problem, &nothing));
    if (nothing) {
        plan->context->last = NULL;
        return RUNG_SUCCESS;
    }
    if (plan->nothing || !same_shape(&plan->problem, &problem))
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "the product (row-major %lldx%lldx%lld) is not of the shape, strides, "
                         "alignment or kind this plan was made for (%lldx%lldx%lld)",
                         (long long)problem.m, (long long)problem.n, (long long)problem.k, (long long)plan->problem.m,
                         (long long)plan->problem.n, (long long)plan->problem.k);
    RUNG_TRY(check_memory(plan->context, &problem, gemm));
    if (problem.k == 0 && plan->problem.k > 0) { /* the plan counts on operands that are not read now */
        rung_choice scaling;
        RUNG_TRY(choose_scaling(plan, &problem, &scaling));
        return run_choice(plan->context, &scaling, &problem, NULL);
    }
    rung_again_keep(&plan->again, gemm, &problem);
    return run_choice(plan->context, &plan->choice, &problem, NULL);
}

rung_status rung_plan_run(rung_plan *plan, const rung_gemm *gemm)
{
    rung_plain plain;
    if (plan && gemm && is_small_way(plan, gemm, &plain))
        return run_small(plan->context, plan->choice.kernel, &plain);
    rung_attempt_begin();
    return rung_attempt_end(run_plan(plan, gemm));
}

const char *rung_plan_kernel(const rung_plan *plan)
{
    if (!plan)
        return NULL;
    return plan->nothing ? "none: nothing to do" : plan->choice.kernel->name;
}

int64_t rung_plan_workspace_bytes(const rung_plan *plan)
{
    return plan ? rung_choice_workspace_bytes(&plan->choice) : 0;
}

void rung_plan_destroy(rung_plan *plan)
{
    free(plan);
}
