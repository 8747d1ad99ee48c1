/* multiply() of the fp16x3 product: it adds hi*hi to sums in FP32 registers every 64 along k. kernel.inc includes this
 * file, which uses its ring and macros. */

/* Adds both corrections of one stage: lo*hi and hi*lo. */
RUNG_DEVICE void corrections(float *d, uint64_t a, uint64_t b, int keep)
{
    PTX_WGMMA_F16_N128(d, a + 4, b, keep);
    PTX_WGMMA_F16_N128(d, a, b + 4, 1);
    PTX_WGMMA_F16_N128(d, a + 6, b + 2, 1);
    PTX_WGMMA_F16_N128(d, a + 2, b + 6, 1);
}

RUNG_DEVICE void leading(float *d, uint64_t a, uint64_t b, int keep)
{
    PTX_WGMMA_F16_N128(d, a, b, keep);
    PTX_WGMMA_F16_N128(d, a + 2, b + 2, 1);
}

/* Computes the sums of one segment. Corrections have an accumulator of their own: their truncation is 2^-11 smaller.
 * While a chain of 64 along k is added to the sum, the matrix unit works on the chain's corrections. */
RUNG_DEVICE void multiply(ring *r, int group, int blocks, float *sum)
{
    float acc[ACC], cor[ACC];
    uint64_t a0, b0, a1, b1;
    int i, k, before = -1, at;

#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (k = 0; k < blocks; k += 2) {
        at = r->stage;
        ptx_hold(acc, ACC);
        stage_take(r, group, &a0, &b0);
        leading(acc, a0, b0, 0);
        stage_take(r, group, &a1, &b1);
        leading(acc, a1, b1, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* for the corrections of the chain before */
        if (before >= 0) {
            stage_release(r->empty, before);
            stage_release(r->empty, before + 1 == STAGES ? 0 : before + 1);
        }
        before = at;
        ptx_wgmma_fence();
        corrections(cor, a0, b0, k > 0);
        corrections(cor, a1, b1, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* for this chain */
        ptx_hold(acc, ACC);
#pragma unroll
        for (i = 0; i < ACC; i++)
            sum[i] += acc[i];
    }
    PTX_WGMMA_WAIT(0);
    ptx_hold(cor, ACC);
    stage_release(r->empty, before);
    stage_release(r->empty, before + 1 == STAGES ? 0 : before + 1);
#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}
