/* l31_tf32x3: FP32's accuracy from TF32 pieces: x = hi + lo, and three products, hi * hi, hi * lo and lo * hi.
 * Changed from l30_tf32: what rounding to hi took is rounded again and kept as lo: 22 bits in all. lo * lo is left out,
 * it is below the last bit. Small products go first, because the tensor core cuts off what is small against its sum.
 * Inf and NaN have no lo, and must meet nothing but hi: a third image has hi without them.
 * Limits: three times the products and the stores of l30_tf32; and TF32 has half the rate of fp16. */
#include "device/args.h"
#include "device/ptx.h"

enum { BM = 128, BN = 128, BK = 32, THREADS = 256, SUMS = BN / 2 };
enum {
    PART_BYTES = 128 * 128,
    IMAGES = 3,
    QUADS = 128 * BK / 4 / THREADS
}; /* fours along k that a thread loads of A and B */

/* lesson layout */
/* Where the four values at (line, k) start in an image: a row of 128 bytes a line, 4 bytes a value. */
RUNG_DEVICE int image_at(int line, int k)
{
    int byte = k * 4;
    return line * 128 + (byte / 16 ^ line % 8) * 16 + byte % 16;
}
/* /lesson */

RUNG_DEVICE void store_part(char *at, float4 v)
{
    *(float4 *)at = v;
}

/* lesson split */
/* Takes a part of *x: rounded to 11 bits; *x is what is left, exactly. */
RUNG_DEVICE float split_once(float *x)
{
    float part = __uint_as_float(ptx_round_tf32(*x));
    *x -= part;
    return part;
}

/* The leading part. Rounding must not make Inf of a finite value, and what is not finite has no further parts. */
RUNG_DEVICE float split_first(float *x)
{
    float whole = *x, part = split_once(x);
    if (isinf(part) && !isinf(whole)) {
        part = copysignf(__uint_as_float(0x7f7fe000u), whole);
        *x = whole - part;
    }
    if (!isfinite(part))
        *x = 0.0f;
    return part;
}
/* /lesson */

RUNG_DEVICE float finite_or_zero(float x)
{
    return isfinite(x) ? x : 0.0f;
}

/* Image 0 has the leading parts; image 1 too, but without Inf and NaN, which would meet signs and zeros in the other
 * products that the operands do not have; then the further parts. */
RUNG_DEVICE void store_quad(char *image, int line, int k, float4 v)
{
    float4 p = make_float4(split_first(&v.x), split_first(&v.y), split_first(&v.z), split_first(&v.w));
    char *at = image + image_at(line, k);
    store_part(at, p);
    p = make_float4(finite_or_zero(p.x), finite_or_zero(p.y), finite_or_zero(p.z), finite_or_zero(p.w));
    store_part(at + PART_BYTES, p);
#pragma unroll
    for (int part = 2; part < IMAGES; part++) {
        p = make_float4(split_once(&v.x), split_once(&v.y), split_once(&v.z), split_once(&v.w));
        store_part(at + part * PART_BYTES, p);
    }
}

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

/* Descriptors count in 16 bytes. */
RUNG_DEVICE uint64_t part(uint64_t images, int i)
{
    return images + i * (PART_BYTES / 16);
}

/* lesson multiply */
/* All products of one step, the smallest first; hi * hi of all its k last: sums are cut off against the largest so far.
 */
RUNG_DEVICE void multiply(float acc[SUMS], uint32_t a_image, uint32_t b_image)
{
    uint64_t a = ptx_wgmma_desc_k128(a_image), b = ptx_wgmma_desc_k128(b_image);
#pragma unroll
    for (int unit = 0; unit < 8; unit += 2) {
        PTX_WGMMA_TF32_N128(acc, part(a, 2) + unit, part(b, 1) + unit, unit > 0);
        PTX_WGMMA_TF32_N128(acc, part(a, 1) + unit, part(b, 2) + unit, 1);
    }
#pragma unroll
    for (int unit = 0; unit < 8; unit += 2)
        PTX_WGMMA_TF32_N128(acc, part(a, 0) + unit, part(b, 0) + unit, 1);
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

RUNG_KERNEL(THREADS, 1) l31_tf32x3(const __grid_constant__ rung_args g)
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
    /* lesson loop */
#pragma unroll 1
    for (int64_t k = 0; k < g.k; k += BK) {
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
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i];
    }
    /* /lesson */
    write_tile(&g, sum, row0 + warp * 16 + lane / 4, col0 + lane % 4 * 2);
}
