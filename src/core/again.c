/* Keeps the call before: see again.h. */
#include "core/again.h"

/* Returns the bytes from the first float of a batch of matrices to behind the last, where strides are not negative. */
static int64_t span_of(int64_t lines, int64_t length, int64_t ld, int64_t batch, int64_t stride)
{
    return ((lines - 1) * ld + length + (batch - 1) * stride) * (int64_t)sizeof(float);
}

void rung_again_keep(rung_again *again, const rung_gemm *gemm, const rung_problem *p)
{
    again->span_c = 0;
    again->rerun.ready = 0;
    if (p->arrays || p->k == 0 || (p->stride_a | p->stride_b | p->stride_c) < 0)
        return;
    again->gemm = *gemm;
    again->problem = *p;
    again->span_a = span_of(p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda, p->batch, p->stride_a);
    again->span_b = span_of(p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb, p->batch, p->stride_b);
    again->span_c = span_of(p->m, p->n, p->ldc, p->batch, p->stride_c);
    again->span_bias = span_of(1, rung_bias_length(p), 0, 1, 0);
}
