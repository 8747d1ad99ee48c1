/* l30_tf32: the same product by wgmma. Four warps together multiply 64 x 128 by 8 of k in one instruction, which reads
 * both operands from shared memory by itself: no fragments, no loads into registers. Changed from l30_tf32_mma: tiles
 * lie in the order that wgmma reads: along k, in rows of 128 bytes, units of 16 bytes at unit ^ (row % 8). It runs
 * beside the warps that started it: the next tile travels meanwhile. Every step's sums go to FP32. Limits: one tile in
 * shared memory, so rounding, storing and multiplying take turns; 11 bits: errs some thousand u. */
#include "device/args.h"
#include "device/ptx.h"

enum { BM = 128, BN = 128, BK = 32, THREADS = 256, SUMS = BN / 2 };
enum {
    PART_BYTES = 128 * 128,
    IMAGES = 1,
    QUADS = 128 * BK / 4 / THREADS
}; /* fours along k that a thread loads of A and B */

/* lesson layout */
/* Where the four values at (line, k) start in an image: a row of 128 bytes a line, 4 bytes a value. */
RUNG_DEVICE int image_at(int line, int k)
{
    int byte = k * 4;
    return line * 128 + (byte / 16 ^ line % 8) * 16 + byte % 16;
}

/* To nearest: the tensor core would truncate. The largest floats stay finite. */
RUNG_DEVICE float rounded(float x)
{
    float y = __uint_as_float(ptx_round_tf32(x));
    return isinf(y) && !isinf(x) ? copysignf(__uint_as_float(0x7f7fe000u), x) : y;
}

RUNG_DEVICE void store_quad(char *image, int line, int k, float4 v)
{
    *(float4 *)(image + image_at(line, k)) = make_float4(rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w));
}
/* /lesson */

RUNG_DEVICE float4 load_a(const rung_args *g, int64_t row, int64_t k)
{
    const float *a = g->a + row * g->lda + k;
    float4 v = make_float4(0, 0, 0, 0);
    if (row < g->m) {
        v.x = k < g->k ? a[0] : 0.0f;
        v.y = k + 1 < g->k ? a[1] : 0.0f;
        v.z = k + 2 < g->k ? a[2] : 0.0f;
        v.w = k + 3 < g->k ? a[3] : 0.0f;
    }
    return v;
}

RUNG_DEVICE float4 load_b(const rung_args *g, int64_t k, int64_t col)
{
    const float *b = g->b + k * g->ldb + col;
    float4 v = make_float4(0, 0, 0, 0);
    if (col < g->n) {
        v.x = k < g->k ? b[0] : 0.0f;
        v.y = k + 1 < g->k ? b[g->ldb] : 0.0f;
        v.z = k + 2 < g->k ? b[2 * g->ldb] : 0.0f;
        v.w = k + 3 < g->k ? b[3 * g->ldb] : 0.0f;
    }
    return v;
}

/* lesson multiply */
/* acc (64 x 128 of this warpgroup) = A B over 32 of k: four instructions, 8 of k each, which is 2 units of 16 bytes. */
RUNG_DEVICE void multiply(float acc[SUMS], uint32_t a_image, uint32_t b_image)
{
    uint64_t a = ptx_wgmma_desc_k128(a_image), b = ptx_wgmma_desc_k128(b_image); /* where, and in which order */
#pragma unroll
    for (int unit = 0; unit < 8; unit += 2)
        PTX_WGMMA_TF32_N128(acc, a + unit, b + unit, unit > 0);
}
/* /lesson */

/* A thread has rows row and row + 8, and of each 8 columns two. */
RUNG_DEVICE void write_tile(const rung_args *g, const float *sum, int64_t row, int64_t col)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        int64_t r = row + i / 2 % 2 * 8, c = col + i / 4 * 8 + i % 2;
        if (r < g->m && c < g->n)
            g->c[r * g->ldc + c] = rung_blend(g, sum[i], &g->c[r * g->ldc + c]);
    }
}

RUNG_KERNEL(THREADS, 1) l30_tf32(const __grid_constant__ rung_args g)
{
    extern __shared__ __align__(1024) char images[];
    char *a_image = images, *b_image = images + IMAGES * PART_BYTES;
    int t = threadIdx.x, warp = t / 32, lane = t % 32, group = __shfl_sync(~0u, t / 128, 0);
    int64_t row0 = rung_block_row() * BM, col0 = blockIdx.x * (int64_t)BN;
    float4 next_a[QUADS], next_b[QUADS];
    float acc[SUMS], sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        int q = t + i * THREADS;
        next_a[i] = load_a(&g, row0 + q / (BK / 4), q % (BK / 4) * 4);
        next_b[i] = load_b(&g, q / 128 * 4, col0 + q % 128);
    }
#pragma unroll 1
    for (int64_t k = 0; k < g.k; k += BK) {
        /* lesson loop */
        __syncthreads(); /* everybody's products of the step before are done */
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            int q = t + i * THREADS;
            store_quad(a_image, q / (BK / 4), q % (BK / 4) * 4, next_a[i]);
            store_quad(b_image, q % 128, q / 128 * 4, next_b[i]);
        }
        ptx_async_fence(); /* what was stored is there for the tensor cores */
        __syncthreads();
        ptx_hold(acc, SUMS);
        ptx_wgmma_fence();
        multiply(acc, ptx_smem(a_image) + group * 64 * 128, ptx_smem(b_image));
        ptx_wgmma_commit();
#pragma unroll
        for (int i = 0; i < QUADS; i++) { /* the next tile travels meanwhile */
            int q = t + i * THREADS;
            next_a[i] = load_a(&g, row0 + q / (BK / 4), k + BK + q % (BK / 4) * 4);
            next_b[i] = load_b(&g, k + BK + q / 128 * 4, col0 + q % 128);
        }
        PTX_WGMMA_WAIT(0);
        ptx_hold(acc, SUMS);
        /* /lesson */
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i];
    }
    write_tile(&g, sum, row0 + warp * 16 + lane / 4, col0 + lane % 4 * 2);
}
