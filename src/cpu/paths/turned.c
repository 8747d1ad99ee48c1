/* A transposed B of few steps is turned as it is loaded: a vector of its columns stays in registers while the few rows
 * pass, and C is written by columns. Small products come here without a plan. */
#include "cpu/paths/paths.h"

/* Eight steps go at a time, for as many columns as L1 keeps until the next steps. */
void rung_turned_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    (void)plan, (void)workspace;
    enum { COLUMNS = 256 };
    rung_rank_args x;
    x.m = p->m;
    x.a_row = p->trans_a ? 1 : p->lda;
    x.a_step = p->trans_a ? p->lda : 1;
    x.ldb = p->ldb;
    x.ldc = p->ldc;
    x.alpha = p->alpha;
    int64_t columns = p->k > RUNG_TURNED_STEPS ? COLUMNS : p->n;
    for (int64_t j = 0; j < p->n; j += columns) {
        x.n = min64(columns, p->n - j);
        x.c = p->c + j;
        x.beta = p->beta;
        for (int64_t step = 0, steps; step < p->k; step += steps, x.beta = 1.0f) {
            int64_t left = p->k - step; /* a single step has no function */
            steps = left == RUNG_TURNED_STEPS + 1 ? RUNG_TURNED_STEPS - 1 : min64(left, RUNG_TURNED_STEPS);
            x.a = a_at(p, 0, step);
            x.b = b_at(p, step, j);
            p->kernel->turned[steps - 1](&x);
        }
    }
}

static int holds(const rung_cpu_args *p)
{
    return is_turned(p);
}

static void plan_turned(const rung_cpu_args *p, gemm_plan *plan)
{
    (void)p;
    plan->path = PATH_TURNED;
    plan->split_m = 0;
}

const gemm_rule rung_rule_turned = {"is_turned", holds, plan_turned};
