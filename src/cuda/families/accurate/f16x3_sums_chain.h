/* f16x3_sums_chain.h: consume() without promotion: one wgmma chain over all of k, which drifts (a ladder rung).
 * Included by f16x3_product.h, whose ring and macros it uses. */

RUNG_DEVICE void consume(ring *r, int group, int blocks, float *sum)
{
    float cor[ACC];
    uint64_t a, b;
    int i, k, at;

#pragma unroll 1
    for (k = 0; k < blocks; k++) {
        at = r->stage;
        ptx_hold(sum, ACC);
        ptx_hold(cor, ACC);
        stage_take(r, group, &a, &b);
        PTX_WGMMA_F16_N128(sum, a, b, k > 0);
        PTX_WGMMA_F16_N128(sum, a + 2, b + 2, 1);
        PTX_WGMMA_F16_N128(cor, a + 4, b, k > 0);
        PTX_WGMMA_F16_N128(cor, a, b + 4, 1);
        PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
        PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(sum, ACC);
        ptx_hold(cor, ACC);
        stage_release(r->empty, at);
    }
#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}
