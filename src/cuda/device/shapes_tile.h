/* A block computes one BM x BN tile over one range of k: STAGES buffers filled by asynchronous copies, SLICES groups of
 * threads that share each buffer's k range between them, TM x TN results a thread. Aligned operands keep their storage
 * order in shared memory; KSTEP values of k are read at once in either order, so nothing is transposed. Others are
 * copied 4 bytes at a time, which costs the same in any order: there k is outermost. Parts of
 * k meet in the workspace and are added in their order (device/meeting.h): same bits every time. Included under macros:
 * KERNEL A_KC B_KC (k contiguous) ALIGNED, and the sizes. */
#define TROWS (BM / TM)
#define TCOLS (BN / TN)
#define TPS (TROWS * TCOLS)
#define THREADS (TPS * SLICES)
#define A_ALONG (A_KC && ALIGNED) /* k innermost in shared memory too */
#define B_ALONG (B_KC && ALIGNED)
#define PITCH_A (A_KC && !ALIGNED ? TURNED_PITCH(BM) : BM)
#define PITCH_B (B_KC && !ALIGNED ? TURNED_PITCH(BN) : BN)
#define A_FLOATS (A_ALONG ? TILE_FLOATS(BM, BK, 1) : BK * PITCH_A)
#define B_FLOATS (B_ALONG ? TILE_FLOATS(BN, BK, 1) : BK * PITCH_B)
#define STEPS (BK / KSTEP / SLICES)
#define MOVE_A (KSTEP * SLICES * (A_ALONG ? 1 : PITCH_A))
#define MOVE_B (KSTEP * SLICES * (B_ALONG ? 1 : PITCH_B))
#define STAGE_FLOATS (A_FLOATS + B_FLOATS)
#define FITS_Y(lanes) (TROWS % ((lanes) / LANES_X) == 0 ? (lanes) / LANES_X : 0)
#define LANES_Y (FITS_Y(32) ? FITS_Y(32) : FITS_Y(16) ? FITS_Y(16) : 1)
#define LANES (LANES_X * LANES_Y)
#define TILE_VECTORS (BM * BN / 4)
#define ADDED_BY_ONE 6144 /* 96 KB */
#define HALF_X (LANES_X > 1 ? LANES_X / 2 : 1)

#if TCOLS % LANES_X || TPS % LANES || STEPS % 2 || BK % (4 * SLICES)
#error "the lanes do not tile the thread grid, or the steps do not fill the stage"
#endif

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) KERNEL(const __grid_constant__ rung_args p)
{
    extern __shared__ __align__(16) float smem[];
    const int tid = threadIdx.x, slice = tid / TPS, t = tid % TPS;
    const int lane = t % LANES, warp = t / LANES;
    /* Lanes in Z order: neighbours i, i^1 share a row and i, i^2 a column, so the 16-byte shared loads of both operands
     * merge two lanes' requests and take half the cycles. */
    const int zigzag = LANES_X > 1 && LANES_Y > 1;
    const int lx = zigzag ? lane % 2 + lane / 4 % (HALF_X)*2 : lane % LANES_X;
    const int ly = zigzag ? lane / 2 % 2 + lane / 4 / (HALF_X)*2 : lane / LANES_X;
    const int tx = warp % (TCOLS / LANES_X) * LANES_X + lx;
    const int ty = warp / (TCOLS / LANES_X) * LANES_Y + ly;

    /* Blocks: batch, then part of k, then tile. */
    const int m = (int)p.m, n = (int)p.n, tiles_n = (n + BN - 1) / BN;
    const unsigned tiles = (unsigned)((m + BM - 1) / BM) * tiles_n, parts = p.split_k;
    const unsigned tile = blockIdx.x % tiles, part = blockIdx.x / tiles % parts, batch = blockIdx.x / tiles / parts;
    const unsigned which = batch * tiles + tile;
    const int row0 = (int)(tile / tiles_n) * BM, col0 = (int)(tile % tiles_n) * BN;
    rung_after_earlier_kernels();
    if (parts > 1 && tid == 0)
        meeting_begin(tickets_of(&p) + (size_t)which * 2);
    if (BM * BN == 128 * 128 && p.marks && !take_mark(&p, tile, THREADS)) /* only the largest tile is ever marked */
        return;

    const float alpha = p.alpha_device ? *p.alpha_device : p.alpha;
    const float beta = p.beta_device ? *p.beta_device : p.beta;
    const float *a = p.a_array ? p.a_array[batch] : p.a + batch * p.stride_a;
    const float *b = p.b_array ? p.b_array[batch] : p.b + batch * p.stride_b;
    float *c = p.c_array ? p.c_array[batch] : p.c + batch * p.stride_c;
    const int vec_a = ALIGNED || aligned16(a, p.lda), vec_b = ALIGNED || aligned16(b, p.ldb),
              vec_c = aligned16(c, p.ldc);

    const int k = (int)p.k, k_per_part = ((k + BK - 1) / BK + (int)parts - 1) / (int)parts * BK,
              k0 = (int)part * k_per_part;
    int k_left = alpha == 0.0f || k0 >= k ? 0 : min(k - k0, k_per_part);
    a += A_KC ? row0 * p.lda + k0 : k0 * p.lda + row0;
    b += B_KC ? col0 * p.ldb + k0 : k0 * p.ldb + col0;
    const long long step_a = A_KC ? BK : BK * p.lda, step_b = B_KC ? BK : BK * p.ldb;
    const int rows = m - row0, cols = n - col0;
    const int blocks = (k_left + BK - 1) / BK;

    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;

    tile_reader ra = reader_start(a, p.lda, rows, tid, BM, BK, THREADS, A_KC);
    tile_reader rb = reader_start(b, p.ldb, cols, tid, BN, BK, THREADS, B_KC);

#define LOAD_STAGE(s)                                                                                                  \
    do {                                                                                                               \
        rung_shared_at to = rung_shared_address(smem + (s)*STAGE_FLOATS);                                              \
        unsigned lda = p.lda, ldb = p.ldb;                                                                             \
        asm volatile("" : "+r"(lda), "+r"(ldb)); /* keeps row offsets from being hoisted into registers */             \
        if (ALIGNED || (vec_a && !A_KC))                                                                               \
            reader_copy(&ra, to, lda, k_left, tid, BM, BK, THREADS, A_KC);                                             \
        else if (A_KC)                                                                                                 \
            load_turned(to, a, lda, rows, k_left, tid, BM, BK, THREADS);                                               \
        else                                                                                                           \
            load_across(to, a, lda, rows, k_left, tid, BM, BK, THREADS);                                               \
        to += A_FLOATS * 4;                                                                                            \
        if (ALIGNED || (vec_b && !B_KC))                                                                               \
            reader_copy(&rb, to, ldb, k_left, tid, BN, BK, THREADS, B_KC);                                             \
        else if (B_KC)                                                                                                 \
            load_turned(to, b, ldb, cols, k_left, tid, BN, BK, THREADS);                                               \
        else                                                                                                           \
            load_across(to, b, ldb, cols, k_left, tid, BN, BK, THREADS);                                               \
        a += step_a, b += step_b, ra.from += step_a, rb.from += step_b, k_left -= BK;                                  \
    } while (0)
#define LOAD_FRAGMENTS(f, at_a, at_b)                                                                                  \
    do {                                                                                                               \
        fragment(af[f][0], (at_a), TM, TROWS, PITCH_A, BK, KSTEP, A_ALONG);                                            \
        fragment(bf[f][0], (at_b), TN, TCOLS, PITCH_B, BK, KSTEP, B_ALONG);                                            \
    } while (0)
#define MULTIPLY(f) multiply(acc[0], af[f][0], bf[f][0], TM, TN, KSTEP)

#pragma unroll 1
    for (int s = 0; s < STAGES; s++) {
        if (s < blocks)
            LOAD_STAGE(s);
        rung_async_commit();
    }
    rung_async_wait(STAGES - 1);
    __syncthreads();
    int read = 0;
    const int thread_a = A_ALONG ? ty * (BK + 4) + slice * KSTEP : slice * KSTEP * PITCH_A + ty * 4;
    const int thread_b = A_FLOATS + (B_ALONG ? tx * (BK + 4) + slice * KSTEP : slice * KSTEP * PITCH_B + tx * 4);
    const float *at_a = smem + thread_a, *at_b = smem + thread_b;
    float af[2][KSTEP][TM], bf[2][KSTEP][TN];
    if (blocks > 0)
        LOAD_FRAGMENTS(0, at_a, at_b);
        /* Two steps of k a turn, each read into registers while the one before is multiplied; kept short for the
         * instruction cache. */
#pragma unroll 1
    for (int left = blocks * (STEPS / 2), turn = STEPS / 2; left > 0; left--) {
        LOAD_FRAGMENTS(1, at_a + MOVE_A, at_b + MOVE_B);
        MULTIPLY(0);
        at_a += 2 * MOVE_A, at_b += 2 * MOVE_B;
        if (--turn == 0) { /* this stage is in registers: refill it, and read on in the next */
            turn = STEPS / 2;
            rung_async_wait(STAGES - 2);
            __syncthreads();
            if (k_left > 0)
                LOAD_STAGE(read);
            rung_async_commit();
            read = read + 1 == STAGES ? 0 : read + 1;
            at_a = smem + read * STAGE_FLOATS + thread_a, at_b = smem + read * STAGE_FLOATS + thread_b;
        }
        LOAD_FRAGMENTS(0, at_a, at_b);
        MULTIPLY(1);
    }
    rung_async_wait(0);
    rung_next_kernel_may_start();

#include "device/shapes_end.inc"
}
#undef LOAD_STAGE
#undef LOAD_FRAGMENTS
#undef MULTIPLY
#undef KERNEL
#undef A_KC
#undef B_KC
#undef ALIGNED
