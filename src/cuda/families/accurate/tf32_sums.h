/* multiply() of the one-pass TF32 product: a row of the image is 32 values rounded to TF32. While one warpgroup adds
 * its chain of 64 along k to the FP32 sums, the matrix unit works for the other. kernel.inc includes this file, which
 * uses its ring and macros. */

RUNG_DEVICE void tf32_stage(float *d, uint64_t a, uint64_t b, int keep)
{
    PTX_WGMMA_TF32_N128(d, a, b, keep);
    PTX_WGMMA_TF32_N128(d, a + 2, b + 2, 1);
    PTX_WGMMA_TF32_N128(d, a + 4, b + 4, 1);
    PTX_WGMMA_TF32_N128(d, a + 6, b + 6, 1);
}

RUNG_DEVICE void multiply(ring *r, int group, int blocks, float *sum)
{
    float acc[ACC];
    uint64_t a, b;
    int i, k, at;

#pragma unroll
    for (i = 0; i < ACC; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (k = 0; k < blocks; k += 2) {
        at = r->stage;
        ptx_hold(acc, ACC);
        stage_take(r, group, &a, &b);
        tf32_stage(acc, a, b, 0);
        stage_take(r, group, &a, &b);
        tf32_stage(acc, a, b, 1);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(0);
        ptx_hold(acc, ACC);
        stage_release(r->empty, at);
        stage_release(r->empty, at + 1 == STAGES ? 0 : at + 1);
#pragma unroll
        for (i = 0; i < ACC; i++)
            sum[i] += acc[i];
    }
}
