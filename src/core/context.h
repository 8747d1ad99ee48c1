/* A context: one backend's state, its settings, and the plans of recent shapes. */
#ifndef RUNG_CORE_CONTEXT_H
#define RUNG_CORE_CONTEXT_H

#include "core/plan.h"
#include "core/tuned.h"

enum { RUNG_RECENT_PLANS = 256 };

typedef struct rung_recent {
    rung_problem shape; /* its first half; batch 0: empty */
    rung_choice choice;
} rung_recent;

struct rung_context {
    const rung_backend *backend;
    void *state;
    rung_config config;
    const rung_kernel *last;  /* what answered the last product */
    const rung_kernel *small; /* what answers small ones without a plan; NULL: nothing does */
    rung_tuned tuned;
    rung_recent recent[RUNG_RECENT_PLANS];
};

struct rung_plan {
    rung_context *context;
    rung_problem problem; /* the shape it was made for */
    rung_choice choice;
    rung_gemm made_from; /* what that shape came from */
    int small;           /* the context's way of small products answers it */
    int forced;          /* by name */
    int nothing;         /* the shape needs no work */
};

/* The plan for a shape, from the recent ones or decided now. */
rung_status rung_context_choose(rung_context *context, const rung_problem *problem, rung_choice *choice);

/* rung_gemm_run with a result that does not depend on how C is divided: an element's bits follow from k, alpha, beta
 * and its row of op(A) and column of op(B), whatever m and n are. */
rung_status rung_gemm_run_in_order(rung_context *context, const rung_gemm *gemm);

/* After a change that plans depend on and their key does not hold. */
void rung_context_forget_plans(rung_context *context);

#endif
