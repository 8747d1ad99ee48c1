/* A context: one backend's state and its settings. */
#ifndef RUNG_CORE_CONTEXT_H
#define RUNG_CORE_CONTEXT_H

#include "core/again.h"
#include "core/plan.h"
#include "core/recent.h"
#include "core/tuned.h"

struct rung_context {
    const rung_backend *backend;
    void *state;
    rung_config config;
    const rung_kernel *last;  /* what answered the last product */
    int half_done;            /* it failed after it may have written C */
    const rung_kernel *plain; /* what answers plain ones without a plan; NULL: nothing does */
    rung_tuned tuned;
    rung_scope scope; /* what its plans depend on beside their shapes */
    /* The product of the last call, once it has come twice in a row, and how it runs. A setting that changes forgets
     * it. */
    rung_again again;
    rung_choice again_choice;
    int64_t last_sides[3]; /* m, n and k of the last call */
};

struct rung_plan {
    rung_context *context;
    rung_problem problem; /* the shape it was made for */
    rung_choice choice;
    rung_gemm made_from; /* what that shape came from */
    rung_again again;    /* the last run */
    int small;           /* the context's way of small products answers it */
    int forced;          /* by name */
    int nothing;         /* the shape needs no work */
};

/* Finds the plan for a shape among the recent ones, or decides it now. */
rung_status rung_context_choose(rung_context *context, const rung_problem *problem, rung_choice *choice);

/* Does what rung_gemm_run does, with a result that does not depend on how C is divided: an element's bits follow from
 * k, alpha, beta and its row of op(A) and column of op(B), whatever m and n are. */
rung_status rung_gemm_run_in_order(rung_context *context, const rung_gemm *gemm);

/* Called after a change of what plans depend on: settings, or the table of tuned shapes. */
void rung_context_rescope(rung_context *context);

#endif
