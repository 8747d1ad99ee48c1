/* f16x3_sums_plain.h: consume() with promotion every 64 along k, everything waited for first (a ladder rung).
 * Included by f16x3_product.h, whose ring and macros it uses. */

RUNG_DEVICE void plain_stage(float *acc, float *cor, uint64_t a, uint64_t b, int keep_acc, int keep_cor)
{
    PTX_WGMMA_F16_N128(acc, a, b, keep_acc);
    PTX_WGMMA_F16_N128(acc, a + 2, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 4, b, keep_cor);
    PTX_WGMMA_F16_N128(cor, a, b + 4, 1);
    PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
}

RUNG_DEVICE void consume(ring *r, int group, int blocks, float *sum)
{
    float acc[ACC], cor[ACC];
    uint64_t a, b;
    int i, k, at;

#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (k = 0; k < blocks; k += 2) {
        at = r->stage;
        ptx_hold(acc, ACC);
        ptx_hold(cor, ACC);
        stage_take(r, group, &a, &b);
        plain_stage(acc, cor, a, b, 0, k > 0);
        stage_take(r, group, &a, &b);
        plain_stage(acc, cor, a, b, 1, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(acc, ACC);
        ptx_hold(cor, ACC);
        stage_release(r->empty, at);
        stage_release(r->empty, at + 1 == STAGES ? 0 : at + 1);
#pragma unroll
        for (i = 0; i < ACC; i++)
            sum[i] += acc[i];
    }
#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}
