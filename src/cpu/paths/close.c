/* Both operands fit half of L2, or an L3 at hand beside a small C. They stay where they are, unless narrow tiles gain
 * from a packed B; a long k is cut, and its pieces stay in place. */
#include "cpu/paths/paths.h"

/* Returns true where tiles read both operands from L2 as they lie. */
static int is_close(const rung_cpu_args *p)
{
    return !p->trans_b && b_bytes(p) <= p->cpu->l2_bytes / 2 && a_bytes(p) <= p->cpu->l2_bytes / 2 &&
           !is_row_that_streams(p) && !is_few_rows_apart(p) && !rung_wants_packed_a(p);
}

/* Returns true where both come from an L3 at hand, and C is so small that packing them takes longer than waiting. A
 * tile of vectors that take two passes each gives its lines time to come. Panels wait less where there is much of B. */
static int is_near(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 32, ROWS_MOST = 384, COLUMNS_MOST = 300, STEPS_LEAST = 256 };
    enum { L2_PARTS = 6, L2_PARTS_OF_PANELS = 2 };
    int64_t most = p->cpu->l2_bytes * (rung_is_by_panels(p) ? L2_PARTS_OF_PANELS : L2_PARTS);
    return halves_vectors(p) && !p->trans_b && p->k >= STEPS_LEAST && p->m >= ROWS_LEAST && p->m <= ROWS_MOST &&
           p->n <= COLUMNS_MOST && a_bytes(p) + b_bytes(p) <= most;
}

static void plan_in_place(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { LONG_K_LEAST = 2048 };
    rung_plan_in_place(p, plan);
    if (rung_is_long_k_of(p, LONG_K_LEAST)) {
        plan->path = PATH_LONG_K;
        plan->inner = PATH_DIRECT;
        plan->parts = rung_long_k_parts(p->k);
    }
}

static void plan_close(const rung_cpu_args *p, gemm_plan *plan)
{
    if (rung_wants_packed_b(p))
        rung_plan_pack_b(p, plan);
    else
        plan_in_place(p, plan);
}

const gemm_rule rung_rule_near = {"is_near", is_near, plan_in_place};
const gemm_rule rung_rule_close = {"is_close", is_close, plan_close};
