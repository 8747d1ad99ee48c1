/* c02_loop_order: the k loop moves out of the innermost place, so that the inner loop walks rows of B and C.
 * Changed from c01_naive: one line. Neighbouring results come from neighbouring addresses: cache lines are used whole
 * and the compiler can compute four results at once. */
#include "ladder/cpu/start.h"

rung_status c02_loop_order(const void *arguments);

/* lesson */
rung_status c02_loop_order(const void *arguments)
{
    const rung_cpu_args *g = arguments;
    start_from_beta(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t p = 0; p < g->k; p++) {
            float a = g->alpha * g->a[i * g->lda + p];
            const float *b = &g->b[p * g->ldb];
            float *c = &g->c[i * g->ldc];
            for (int64_t j = 0; j < g->n; j++)
                c[j] += a * b[j];
        }
    return RUNG_SUCCESS;
}
/* /lesson */
