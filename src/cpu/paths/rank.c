/* C written row by row: k is so short that C is all the work. */
#include "cpu/paths/paths.h"

enum { ROWS_TO_SHARE = 32 }; /* at least, that threads cut by rows: cut by columns, each row has a line of two */

/* Returns true where more steps than is_rank() takes are written by rows: C is far larger than L2, and L1 holds B, so
 * that C is written in one run from its first row to its last. Where stores wait for lines that nobody asked for, rows
 * ask for them early enough, so that a smaller C pays too. Narrow tiles in turn are faster. */
static int is_narrow_rank(const rung_cpu_args *p)
{
    enum { STEPS_OF_LINES = 9 };
    if (has_narrow_tiles(p) || p->n < RANK_VECTORS_LEAST * p->kernel->vl || p->n > rank_columns(p) ||
        rows_push_out_b(p))
        return 0;
    if (p->cpu->stores_wait)
        return p->k <= STEPS_OF_LINES && c_bytes(p) > p->cpu->l2_bytes / 8;
    return p->k <= RUNG_RANK_STEPS && c_bytes(p) > FAR_FROM_L2 * p->cpu->l2_bytes;
}

static void plan_rank(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->path = PATH_RANK;
    plan->split_m = p->m >= ROWS_TO_SHARE;
    plan->nc = rank_columns(p);
}

const gemm_rule rung_rule_rank = {"is_rank", is_rank, plan_rank};
const gemm_rule rung_rule_narrow_rank = {"is_narrow_rank", is_narrow_rank, plan_rank};

int64_t rung_rank_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    return rung_gemm_rank_floats(p, min64(plan->nc, columns)) + 2 * RUNG_PACK_SLACK;
}

void rung_rank_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    rung_gemm_rank(p, plan->nc, workspace);
}

/* Runs a product whose k is so short that C is all the work. Its rows are written one after the other, as many columns
 * at a time as have their part of B in L1. Many rows have B copied, so that no vector of it lies in two lines. */
void rung_gemm_rank(const rung_cpu_args *p, int64_t nc, float *workspace)
{
    enum { ROWS_TO_COPY = 64 };
    const rung_cpu_kernel *kernel = p->kernel;
    int group = 2 * kernel->vl;
    int in_place = !p->trans_b && (b_has_whole_lines(p) || p->m < ROWS_TO_COPY);
    rung_rank_args rank = {.m = p->m,
                           .k = p->k,
                           .a = p->a,
                           .a_row = p->trans_a ? 1 : p->lda,
                           .a_step = p->trans_a ? p->lda : 1,
                           .ldb = in_place ? p->ldb : group,
                           .b_group = in_place ? group : group * p->k,
                           .ldc = p->ldc,
                           .alpha = p->alpha,
                           .beta = p->beta,
                           .ask_c = asks_for_rows(p)};
    for (int64_t j = 0; j < p->n; j += nc) {
        rank.n = min64(nc, p->n - j);
        rank.c = p->c + j;
        rank.b = in_place ? b_at(p, 0, j) : workspace;
        if (!in_place)
            (p->trans_b ? narrow_of(kernel)->pack_by_row : kernel->pack_by_k)(workspace, b_at(p, 0, j), p->ldb, rank.n,
                                                                              p->k, group);
        kernel->rank[p->k - 1](&rank);
    }
}
