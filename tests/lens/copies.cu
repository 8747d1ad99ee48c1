/* Asynchronous copies of one warp in patterns whose sectors and passes were counted on an H200 by Nsight Compute:
 * the comment after each says "sectors passes" as counted there. Rows of A are 4096 bytes apart (k = 1024). */
#include "device/args.h"
#include "device/async.h"

RUNG_DEVICE float element(const float *row, const float *b, int64_t k, int64_t ldb)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < k; i++)
        sum = fmaf(row[i], b[i * ldb], sum);
    return sum;
}

RUNG_KERNEL(32) copies(const __grid_constant__ rung_args g)
{
    __shared__ __align__(1024) char s[4224];
    const char *a = (const char *)g.a;
    int t = threadIdx.x;
#define COPY16(to, from) rung_async_copy16((float *)(s + (to)), (const float *)(a + (from)))
#define COPY4(to, from) rung_async_copy4((float *)(s + (to)), (const float *)(a + (from)))
#define NEXT rung_async_commit(), rung_async_wait(0), __syncthreads()
    COPY16(t * 16, t * 16); /* 16 4 */
    NEXT;
    COPY16(t * 16, t / 4 * 4096 + t % 4 * 16); /* 16 8 */
    NEXT;
    COPY16(t / 4 * 80 + t % 4 * 16, t / 4 * 4096 + t % 4 * 16); /* 20 15 */
    NEXT;
    COPY16(t / 8 * 144 + t % 8 * 16, t / 8 * 4096 + t % 8 * 16); /* 18 10 */
    NEXT;
    COPY16(t / 16 * 272 + t % 16 * 16, t / 16 * 4096 + t % 16 * 16); /* 18 8 */
    NEXT;
    COPY16(t * 16, t / 2 * 4096 + t % 2 * 16); /* 16 16 */
    NEXT;
    COPY16(t * 16, t * 4096); /* 32 32 */
    NEXT;
    COPY16(t * 16, t * 16 + 16); /* 20 12 */
    NEXT;
    COPY16(t * 16, t * 16 + 64); /* 16 8 */
    NEXT;
    COPY16(t * 16 + 64, t * 16); /* 16 8 */
    NEXT;
    COPY16(t * 128, t * 16); /* 32 32 */
    NEXT;
    COPY16(t * 16, t / 6 * 4096 + t % 6 * 16); /* 16 8 */
    NEXT;
    COPY16(t / 4 * 64 + t % 4 * 16 + t / 8 * 16 % 64, t / 4 * 4096 + t % 4 * 16); /* 20 15 */
    NEXT;
    COPY4(t * 4, t * 4); /* 4 1 */
    NEXT;
    COPY4(t * 4, t * 4 + 16); /* 5 1 */
    NEXT;
    COPY4(t * 4, t / 8 * 4096 + t % 8 * 4); /* 4 4 */
    NEXT;
    COPY4(t % 8 * 528 + t / 8 * 4, t / 8 * 4096 + t % 8 * 4); /* 4 4 */
    NEXT;
    COPY4(t * 4, t / 16 * 4096 + t % 16 * 4); /* 4 2 */
    NEXT;
    COPY4(t * 4, t / 4 * 4096 + t % 4 * 4); /* 8 8 */
    NEXT;
    COPY4(t * 8, t * 4); /* 4 2 */
    NEXT;
    COPY4(t * 128, t * 4); /* 4 32 */
    NEXT;
    COPY4(t * 4, t * 4096); /* 32 32 */
    NEXT;
    for (int e = t; e < 32 * 32; e += 32) { /* and the product that the lens checks */
        int64_t row = rung_block_row() * 32 + e / 32, column = (int64_t)blockIdx.x * 32 + e % 32;
        if (row < g.m && column < g.n) {
            float *c = g.c + row * g.ldc + column;
            *c = rung_blend(&g, element(g.a + row * g.lda, g.b + column, g.k, g.ldb), c);
        }
    }
}
