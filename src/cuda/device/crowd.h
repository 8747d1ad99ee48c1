/* Operands at any address by a crowd of small blocks: BM x BN results, 8 x TN a thread, few registers and stages of 8
 * k, so that many blocks share a multiprocessor and one's start, waits and end lie in the others' shadow. Copied 4
 * bytes at a time, k outermost in shared memory whatever the order outside; what is outside the matrix is filled with
 * zeros. Included under macros: KERNEL A_KC B_KC (k contiguous), and the sizes BM BN TN STAGES MIN_BLOCKS; once for
 * each kernel. */
#define TM 8
#define BK 8
#define SLICES 1
#define TROWS (BM / TM)
#define TCOLS (BN / TN)
#define THREADS (TROWS * TCOLS)
#define PITCH_A (A_KC ? TURNED_PITCH(BM) : BM)
#define PITCH_B (B_KC ? TURNED_PITCH(BN) : BN)
#define A_FLOATS (BK * PITCH_A)
#define STAGE_FLOATS (A_FLOATS + BK * PITCH_B)
#define TILE_VECTORS (BM * BN / 4)
#define ADDED_BY_ONE (RUNG_CROWD_LOADS * THREADS)

#if TROWS % 4 || TCOLS % 8 || THREADS % BM && THREADS > BM || THREADS % BN && THREADS > BN
#error "warps of 4 x 8 threads do not tile the block, or threads its copies"
#endif

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) KERNEL(const __grid_constant__ rung_args p)
{
    extern __shared__ __align__(16) float smem[];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    enum { slice = 0 };
    /* 4 x 8 lanes in Z order: neighbours share a row or a column, which halves the cycles of shared loads. */
    const int tx = warp % (TCOLS / 8) * 8 + lane % 2 + lane / 4 % 4 * 2;
    const int ty = warp / (TCOLS / 8) * 4 + lane / 2 % 2 + lane / 16 * 2;

    crowd_place at = crowd_place_of(&p, BM, BN);
    rung_after_earlier_kernels();
    if (p.split_k > 1 && tid == 0)
        meeting_begin(tickets_of(&p) + (size_t)at.which * 2);

    const int k = (int)p.k, k_per_part = ((k + BK - 1) / BK + p.split_k - 1) / p.split_k * BK,
              k0 = (int)at.part * k_per_part;
    const float scale = p.alpha_device ? *p.alpha_device : p.alpha;
    int k_left = scale == 0.0f || k0 >= k ? 0 : min(k - k0, k_per_part);
    const int blocks = (k_left + BK - 1) / BK;
    crowd_lines la = crowd_start(p.a_array ? p.a_array[at.batch] : p.a + at.batch * p.stride_a, p.lda, at.row0,
                                 (int)p.m, k0, tid, BM, A_KC);
    crowd_lines lb = crowd_start(p.b_array ? p.b_array[at.batch] : p.b + at.batch * p.stride_b, p.ldb, at.col0,
                                 (int)p.n, k0, tid, BN, B_KC);
    const rung_shared_at ring = rung_shared_address(smem);
    rung_shared_at fill = ring;
#define COPY_A()                                                                                                       \
    do {                                                                                                               \
        if (k_left > 0)                                                                                                \
            crowd_copy(&la, fill, p.lda, k_left, tid, BM, THREADS, A_KC);                                              \
    } while (0)
#define COPY_B()                                                                                                       \
    do {                                                                                                               \
        if (k_left > 0)                                                                                                \
            crowd_copy(&lb, fill + A_FLOATS * 4, p.ldb, k_left, tid, BN, THREADS, B_KC);                               \
        rung_async_commit();                                                                                           \
        k_left -= BK;                                                                                                  \
        fill = fill + STAGE_FLOATS * 4 == ring + STAGES * STAGE_FLOATS * 4 ? ring : fill + STAGE_FLOATS * 4;           \
    } while (0)
#define LOAD_FRAGMENTS(q)                                                                                              \
    do {                                                                                                               \
        fragment(a[(q) % 2], stage + (q)*PITCH_A + ty * 4, TM, TROWS, PITCH_A, BK, 1, 0);                              \
        fragment(b[(q) % 2], stage + A_FLOATS + (q)*PITCH_B + tx * 4, TN, TCOLS, PITCH_B, BK, 1, 0);                   \
    } while (0)

    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;

#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++) {
        COPY_A();
        COPY_B();
    }
    const float *stage = smem;
    float a[2][TM], b[2][TN];
    rung_async_wait(STAGES - 2);
    __syncthreads();
    LOAD_FRAGMENTS(0);
    /* Each k is read into registers while the one before is multiplied. What is copied goes where
     * the stage before lay. */
#pragma unroll 1
    for (int left = blocks; left > 0; left--) {
#pragma unroll
        for (int q = 0; q < BK; q++) {
            if (q + 1 < BK) {
                LOAD_FRAGMENTS(q + 1);
            } else { /* this stage is in registers: on to the next */
                rung_async_wait(STAGES - 2);
                __syncthreads();
                stage = stage == smem + (STAGES - 1) * STAGE_FLOATS ? smem : stage + STAGE_FLOATS;
                LOAD_FRAGMENTS(0);
            }
            if (q == 0)
                COPY_A();
            if (q == BK / 2)
                COPY_B();
            multiply(acc[0], a[q % 2], b[q % 2], TM, TN, 1);
        }
    }
    rung_async_wait(0);
    rung_next_kernel_may_start();

    /* All that only the end needs is found out again, not kept in registers. */
    at = crowd_place_of(&p, BM, BN);
    const unsigned parts = p.split_k, part = at.part, which = at.which;
    const int row0 = at.row0, col0 = at.col0, rows = (int)p.m - row0, cols = (int)p.n - col0;
    const float alpha = p.alpha_device ? *p.alpha_device : p.alpha;
    const float beta = p.beta_device ? *p.beta_device : p.beta;
    float *c = p.c_array ? p.c_array[at.batch] : p.c + at.batch * p.stride_c;
    const int vec_c = aligned16(c, p.ldc);
    if (!vec_c && beta == 0.0f && !p.bias_kind && !p.activation && parts == 1) {
        __syncthreads(); /* nobody copies or reads any more */
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int from_row = ty / 4 * 16, from_col = j * TCOLS + tx / 8 * 32;
            crowd_store(acc[0] + j, TN, smem + warp * (32 * RUNG_CROWD_PITCH),
                        c + (row0 + from_row) * p.ldc + col0 + from_col, p.ldc, rows - from_row, cols - from_col,
                        BM / 2, alpha, ty % 4, tx % 8, lane);
        }
        return;
    }
#include "device/shapes_end.inc"
}
#undef COPY_A
#undef COPY_B
#undef LOAD_FRAGMENTS
#undef KERNEL
#undef A_KC
#undef B_KC
#undef TM
#undef BK
#undef SLICES
#undef TROWS
#undef TCOLS
#undef THREADS
#undef PITCH_A
#undef PITCH_B
#undef A_FLOATS
#undef STAGE_FLOATS
#undef TILE_VECTORS
#undef ADDED_BY_ONE
