/* l40_f16x3_whole_tiles: a tile that lies inside C is written by code of its own. Whether it does, whether alpha, beta
 * and the alignment allow pairs, and whether results are doubtful is asked once a tile; before, each pair of results
 * asked. Changed from l39_f16x3_read_once, whose split it uses. Limits: whole tiles: the last round may leave SMs idle.
 */
#include "device/images.h"
#include "device/ptx.h"
#include "device/tile.h"

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum {
    CLUSTER = 2,
    A_BYTES = BM * 128,
    B_BYTES = BN * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    HALF_BYTES = B_BYTES / CLUSTER
};
enum { LEAST_K = 64, MOST_DOUBTFUL = 64 };

/* ---- the guard ---- */

RUNG_DEVICE rung_image_group joined(const rung_image_group *of)
{
    rung_image_group all = of[0];
    for (int i = 1; i < IMAGE_TILE / IMAGE_LINES; i++) {
        all.largest_bits = max(all.largest_bits, of[i].largest_bits);
        all.peak = fmaxf(all.peak, of[i].peak);
    }
    return all;
}

/* Whether the halves are good enough for the tile of block `rank` of the cluster. */
RUNG_DEVICE bool is_safe(const rung_image_args *p, int64_t row, int64_t column, int rank)
{
    rung_image_group a = joined(p->a_group + (row * CLUSTER + rank) * (BM / IMAGE_LINES));
    rung_image_group b = joined(p->b_group + column * (BN / IMAGE_LINES));
    int log2_k = 32 - __clz((int)min(p->g.k, (int64_t)INT32_MAX));
    bool finite = max(a.largest_bits, b.largest_bits) < 0x7f800000u;
    bool inside = (int)(a.largest_bits >> 23) + (int)(b.largest_bits >> 23) - 254 + 2 + log2_k <= 127;
    bool many = a.peak * b.peak * 2.0f * p->g.k <= 1.0f; /* terms that are like the largest one: two at least */
    return p->g.k >= LEAST_K && finite && inside && many;
}

/* The cluster multiplies when one of its tiles is safe: its blocks fetch B together. */
RUNG_DEVICE bool is_multiplied(const rung_image_args *p, int64_t row, int64_t column)
{
    bool any = false;
    for (int rank = 0; rank < CLUSTER; rank++)
        any |= is_safe(p, row, column, rank);
    return any;
}

/* A tile that is not safe, in FP32: 8 of k at a time through shared memory, 8 x 8 results a thread. */
RUNG_DEVICE void strict_tile(const rung_args *g, int64_t row0, int64_t column0)
{
    enum { K = 8, T = 8 };
    __shared__ __align__(16) float a_tile[K][BM + 4], b_tile[K][BN];
    int t = threadIdx.x, y = t / 16 * T, x = t % 16 * 4; /* columns x to x + 3, and 64 further on */
    float acc[T][T] = {{0.0f}};
#pragma unroll 1
    for (int64_t k = 0; k < g->k; k += K) {
        ptx_bar_sync(1, CONSUMERS);
#pragma unroll
        for (int i = t; i < BM * K; i += CONSUMERS) {
            int64_t row = row0 + i / K, at = k + i % K, k_b = k + i / BN, column = column0 + i % BN;
            a_tile[i % K][i / K] = row < g->m && at < g->k ? g->a[row * g->lda + at] : 0.0f;
            b_tile[i / BN][i % BN] = k_b < g->k && column < g->n ? g->b[k_b * g->ldb + column] : 0.0f;
        }
        ptx_bar_sync(1, CONSUMERS);
#pragma unroll
        for (int kk = 0; kk < K; kk++) {
            float a[T], b[T];
#pragma unroll
            for (int i = 0; i < T; i += 4) {
                rung_get4(&a[i], &a_tile[kk][y + i]);
                rung_get4(&b[i], &b_tile[kk][x + i * 16]);
            }
#pragma unroll
            for (int i = 0; i < T; i++)
#pragma unroll
                for (int j = 0; j < T; j++)
                    acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
        for (int j = 0; j < T; j += 4)
            rung_write4(g, row0 + y + i, column0 + x + j * 16,
                        make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]), false);
}

/* Few enough doubtful results are computed one by one; of this block's threads, all together. */
RUNG_DEVICE bool are_few(uint64_t doubtful)
{
    __shared__ int count;
    ptx_bar_sync(1, CONSUMERS);
    if (threadIdx.x == 0)
        count = 0;
    ptx_bar_sync(1, CONSUMERS);
    if (doubtful)
        atomicAdd(&count, __popcll(doubtful));
    ptx_bar_sync(1, CONSUMERS);
    return count <= MOST_DOUBTFUL;
}

/* ---- the product ---- */

typedef struct {
    uint32_t full, empty, data; /* shared addresses */
    int stage;
    uint32_t parity;
} ring;

RUNG_DEVICE void advance(ring *r)
{
    r->stage = r->stage + 1 == STAGES ? 0 : r->stage + 1;
    r->parity ^= r->stage == 0;
}

/* One thread: its own tile of A, and its half of the cluster's tile of B for both blocks. Tiles are counted in
 * clusters. */
RUNG_DEVICE void produce(const rung_image_args *p, ring r, uint32_t rank)
{
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        if (!is_multiplied(p, row, column))
            continue;
        const char *a = p->a + (row * CLUSTER + rank) * A_BYTES, *b = p->b + column * B_BYTES + rank * HALF_BYTES;
        for (int64_t kb = 0; kb < p->k_blocks; kb++) {
            uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
            ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1); /* both blocks' warps have left this stage */
            ptx_mbar_arrive_tx(full, STAGE_BYTES);
            ptx_bulk_load(to, a, A_BYTES, full);
            ptx_bulk_load_multicast(to + A_BYTES + rank * HALF_BYTES, b, HALF_BYTES, full, (1 << CLUSTER) - 1);
            a += p->a_lines * 128;
            b += p->b_lines * 128;
            advance(&r);
        }
    }
}

/* This warp is done with two stages: both blocks of the cluster are told, for each fills halves of the other's. */
RUNG_DEVICE void release_two(const ring *r, int stage)
{
    int lane = threadIdx.x % 32, next = stage + 1 == STAGES ? 0 : stage + 1;
    if (lane < CLUSTER) {
        ptx_mbar_arrive_cluster(r->empty + stage * 8, lane);
        ptx_mbar_arrive_cluster(r->empty + next * 8, lane);
    }
}

/* Waits for the next stage and hands out its operands. */
RUNG_DEVICE void take(ring *r, int group, uint64_t *a, uint64_t *b)
{
    uint32_t at = r->data + r->stage * STAGE_BYTES;
    ptx_mbar_wait(r->full + r->stage * 8, r->parity);
    *a = ptx_wgmma_desc_k128(at + group * 64 * 128);
    *b = ptx_wgmma_desc_k128(at + A_BYTES);
    advance(r);
    ptx_wgmma_fence();
}

RUNG_DEVICE void leading(float acc[SUMS], uint64_t a, uint64_t b, bool keep)
{
    PTX_WGMMA_F16_N128(acc, a, b, keep);
    PTX_WGMMA_F16_N128(acc, a + 2, b + 2, 1);
}

RUNG_DEVICE void corrections(float cor[SUMS], uint64_t a, uint64_t b, bool keep)
{
    PTX_WGMMA_F16_N128(cor, a + 4, b, keep);
    PTX_WGMMA_F16_N128(cor, a, b + 4, 1);
    PTX_WGMMA_F16_N128(cor, a + 6, b + 2, 1);
    PTX_WGMMA_F16_N128(cor, a + 2, b + 6, 1);
}

RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, float sum[SUMS])
{
    float acc[SUMS], cor[SUMS];
    uint64_t a0, b0, a1, b1;
    int before = -1;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb += 2) {
        int first = r->stage;
        ptx_hold(acc, SUMS);
        take(r, group, &a0, &b0);
        leading(acc, a0, b0, false);
        take(r, group, &a1, &b1);
        leading(acc, a1, b1, true);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* all but the newest group: the corrections of the chain before are done */
        if (before >= 0)
            release_two(r, before);
        before = first;
        ptx_wgmma_fence();
        corrections(cor, a0, b0, kb > 0);
        corrections(cor, a1, b1, true);
        ptx_wgmma_commit();
        PTX_WGMMA_WAIT(1); /* this chain; its corrections go on below */
        ptx_hold(acc, SUMS);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] += acc[i];
    }
    PTX_WGMMA_WAIT(0);
    ptx_hold(cor, SUMS);
    release_two(r, before);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = fmaf(cor[i], 0x1p-11f, sum[i]);
}

/* lesson write */
/* Whether the product itself is C, stored in pairs. */
RUNG_DEVICE bool is_plain(const rung_args *g)
{
    return g->alpha == 1.0f && g->beta == 0.0f && g->ldc % 2 == 0 && ((uintptr_t)g->c & 7) == 0;
}

/* A tile inside C without a doubtful result: 32 stores a thread, and no question between them. */
RUNG_DEVICE void write_whole(const rung_args *g, const float sum[SUMS], const rung_image_line *rows,
                             const rung_image_line *columns, int64_t row, int64_t column)
{
    float *c = g->c + row * g->ldc + column;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int scale = rows[i / 2 % 2 * 8].scale, at = i / 4 * 8;
        *(float2 *)(c + i / 2 % 2 * 8 * g->ldc + at) =
            make_float2(image_unscale(sum[i], -scale - columns[at].scale),
                        image_unscale(sum[i + 1], -scale - columns[at + 1].scale));
    }
}
/* /lesson */

RUNG_DEVICE void consume_tiles(const rung_image_args *p, ring r, uint32_t rank)
{
    __shared__ rung_image_line lines[BM + BN];
    int t = threadIdx.x, lane = t % 32, group = __shfl_sync(~0u, t / 128, 0); /* the compiler is to know: one a warp */
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    float sum[SUMS];
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        bool multiplied = is_multiplied(p, row, column), safe = is_safe(p, row, column, rank);
        row = row * CLUSTER + rank;
        /* Asked for now, wanted at the end. */
        rung_image_line mine = t < BM ? p->a_line[row * BM + t] : p->b_line[column * BN + t - BM];
        uint32_t lost = p->lost[t < BM ? row * BM + t : p->a_lines + column * BN + t - BM];
        if (multiplied)
            consume(p, &r, group, sum);
        mine.doubt = 2.0f * lost;
        ptx_bar_sync(1, CONSUMERS); /* everybody has read the lines of the tile before */
        lines[t] = mine;
        ptx_bar_sync(1, CONSUMERS);
        int y = t / 32 * 16 + lane / 4, x = lane % 4 * 2;
        bool whole = (row + 1) * BM <= p->g.m && (column + 1) * BN <= p->g.n;
        uint64_t doubtful = safe ? image_doubtful(sum, &lines[y], &lines[BM + x]) : 0;
        if (!safe || !are_few(doubtful))
            strict_tile(&p->g, row * BM, column * BN);
        else if (whole && !doubtful && is_plain(&p->g))
            write_whole(&p->g, sum, &lines[y], &lines[BM + x], row * BM + y, column * BN + x);
        else
            image_write_tile(&p->g, sum, &lines[y], &lines[BM + x], row * BM + y, column * BN + x, whole, doubtful);
    }
}

RUNG_KERNEL(THREADS, 1) l40_f16x3_whole_tiles(const __grid_constant__ rung_image_args p)
{
    extern __shared__ __align__(1024) char stages[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    uint32_t rank = ptx_cluster_rank();
    ring r = {ptx_smem(full), ptx_smem(empty), ptx_smem(stages), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx_mbar_init(r.full + i * 8, 1);
            ptx_mbar_init(r.empty + i * 8, CLUSTER * CONSUMERS / 32);
        }
        ptx_mbar_init_fence();
    }
    __syncthreads();
    ptx_cluster_sync(); /* nobody signals a barrier that is not there yet */
    if (threadIdx.x < CONSUMERS) {
        PTX_REGS_MORE(232);
        consume_tiles(&p, r, rank);
    } else {
        PTX_REGS_FEWER(40);
        if (threadIdx.x == CONSUMERS)
            produce(&p, r, rank);
    }
    __syncwarp();
    ptx_cluster_sync(); /* the other block may still signal into this one */
}
