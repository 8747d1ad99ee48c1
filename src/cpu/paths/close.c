/* Both operands fit half of L2. They stay where they are, unless narrow tiles gain from a packed B; a long k is cut,
 * and its pieces stay in place. */
#include "cpu/paths/paths.h"

/* Returns true where tiles read both operands from L2 as they lie. */
static int is_close(const rung_cpu_args *p)
{
    return !p->trans_b && b_bytes(p) <= p->cpu->l2_bytes / 2 && a_bytes(p) <= p->cpu->l2_bytes / 2 &&
           !is_row_that_streams(p) && !is_few_rows_apart(p) && !rung_wants_packed_a(p);
}

static void plan_close(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { LONG_K_LEAST = 2048 };
    if (rung_wants_packed_b(p)) {
        rung_plan_pack_b(p, plan);
        return;
    }
    rung_plan_in_place(p, plan);
    if (rung_is_long_k_of(p, LONG_K_LEAST)) {
        plan->path = PATH_LONG_K;
        plan->inner = PATH_DIRECT;
        plan->parts = rung_long_k_parts(p->k);
    }
}

const gemm_rule rung_rule_close = {"is_close", is_close, plan_close};
