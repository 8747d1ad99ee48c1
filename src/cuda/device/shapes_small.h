/* Small products, PER_BLOCK matrices a block: EDGE x EDGE results each (m, n <= EDGE), TM x TN a thread. Each matrix's
 * threads load and compute their own tile; k in steps of EDGE. Many blocks an SM keep enough bytes in flight. */
#define TROWS (EDGE / TM)
#define TCOLS (EDGE / TN)
#define TPS (TROWS * TCOLS)
#define THREADS (TPS * PER_BLOCK)
#define A_FLOATS (TILE_FLOATS(EDGE, EDGE, A_KC) + 4)
#define B_FLOATS (TILE_FLOATS(EDGE, EDGE, B_KC) + 4)

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) KERNEL(const __grid_constant__ rung_args p)
{
    __shared__ __align__(16) float smem[PER_BLOCK * (A_FLOATS + B_FLOATS)];
    const int which = threadIdx.x / TPS, t = threadIdx.x % TPS, zigzag = TPS >= 16;
    /* Lanes in Z order, as in the tile kernels. */
    const int tx = zigzag ? t % 2 + t / 4 % (TCOLS / 2) * 2 : t % TCOLS;
    const int ty = zigzag ? t / 2 % 2 + t / 4 / (TCOLS / 2) * 2 : t / TCOLS;
    const long long batch = (long long)blockIdx.x * PER_BLOCK + which;
    const int live = batch < p.batch, m = (int)p.m, n = (int)p.n;
    rung_after_earlier_kernels();
    const float alpha = p.alpha_device ? *p.alpha_device : p.alpha;
    const float beta = p.beta_device ? *p.beta_device : p.beta;
    const long long at = live ? batch : 0;
    const float *a = p.a_array ? p.a_array[at] : p.a + at * p.stride_a;
    const float *b = p.b_array ? p.b_array[at] : p.b + at * p.stride_b;
    float *c = p.c_array ? p.c_array[at] : p.c + at * p.stride_c;
    const int vec_a = ALIGNED || aligned16(a, p.lda), vec_b = ALIGNED || aligned16(b, p.ldb),
              vec_c = aligned16(c, p.ldc);
    float *as = smem + which * (A_FLOATS + B_FLOATS), *bs = as + A_FLOATS;
    int k_left = live && alpha != 0.0f ? (int)p.k : 0;

    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;

    for (int k0 = 0; k0 < (int)p.k; k0 += EDGE) {
        if (k_left > 0) {
            load_tile(rung_shared_address(as), a, (unsigned)p.lda, m, k_left, vec_a, t, EDGE, EDGE, TPS, A_KC);
            load_tile(rung_shared_address(bs), b, (unsigned)p.ldb, n, k_left, vec_b, t, EDGE, EDGE, TPS, B_KC);
        }
        rung_async_commit();
        rung_async_wait(0);
        if (TPS > 32)
            __syncthreads();
        else
            __syncwarp();
        if (k_left > 0) {
#pragma unroll 2
            for (int k = 0; k < EDGE; k += 4) {
                float af[4][TM], bf[4][TN];
                fragment(af[0], as + (A_KC ? ty * (EDGE + 4) + k : k * EDGE + ty * 4), TM, TROWS, EDGE, EDGE, 4, A_KC);
                fragment(bf[0], bs + (B_KC ? tx * (EDGE + 4) + k : k * EDGE + tx * 4), TN, TCOLS, EDGE, EDGE, 4, B_KC);
                multiply(acc[0], af[0], bf[0], TM, TN, 4);
            }
        }
        if (k0 + EDGE < (int)p.k) {
            if (TPS > 32)
                __syncthreads();
            else
                __syncwarp();
        }
        a += A_KC ? EDGE : EDGE * p.lda, b += B_KC ? EDGE : EDGE * p.ldb, k_left -= EDGE;
    }
    rung_next_kernel_may_start();
    if (!live)
        return;
    if (vec_c && beta == 0.0f && !p.bias_kind && !p.activation && m == EDGE && n == EDGE) {
        c += ty * 4 * p.ldc + tx * 4;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *(float4 *)(c + (i / 4 * TROWS * 4 + i % 4) * p.ldc + j * TCOLS) =
                    make_float4(alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(&p, c, vec_c, alpha, beta, (i / 4 * TROWS + ty) * 4 + i % 4, (j / 4 * TCOLS + tx) * 4,
                   make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
}
#undef KERNEL
#undef A_KC
#undef B_KC
#undef ALIGNED
