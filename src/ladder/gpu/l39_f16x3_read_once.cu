/* l39_f16x3_read_once: a split that gets each element from memory once. A cluster of up to eight blocks has 32 lines:
 * each block looks at its part of k, the blocks tell each other the largest elements through their shared memory, and
 * split what their threads still have in registers. Changed from l37_f16x3_guarded, whose split looks at all of k
 * twice, with 512 threads for 32 lines; l38's way to hide the split cost more. The product is l37's. Limits: of a k
 * over 2048 a part is read again, from L2 mostly; whole tiles: the last round may leave SMs idle. */
#include "device/images.h"
#include "device/ptx.h"
#include "device/tile.h"

#include <cuda_fp16.h>

enum { BM = IMAGE_TILE, BN = IMAGE_TILE, STAGES = 6, CONSUMERS = 256, THREADS = CONSUMERS + 128, SUMS = IMAGE_SUMS };
enum {
    CLUSTER = 2,
    A_BYTES = BM * 128,
    B_BYTES = BN * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    HALF_BYTES = B_BYTES / CLUSTER
};
enum { LEAST_K = 64, MOST_DOUBTFUL = 64 };
enum { SPLIT_THREADS = 256, SPLIT_WARPS = SPLIT_THREADS / 32, SPLIT_BLOCKS = 3, MOST_CLUSTER = 8 };
enum { PIECE = 256, VALUES = PIECE * IMAGE_LINES / SPLIT_THREADS, TURNED = IMAGE_LINES * 128 };

/* ---- the split ---- */

/* The power of two that brings a line's largest magnitude to [2^14, 2^15). */
RUNG_DEVICE int scale_of(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int exponent = largest >= 0x00800000u ? (int)(largest >> 23) - 127 : -118 - __clz((int)largest);
    return 14 - exponent;
}

#define SMALL 0x1p-24f /* sums of magnitudes are kept so much smaller: they must not overflow */

/* A block has pieces of 32 lines by 256 of k, 32 values a thread, all of one line. Where lines lie along k (A), a warp
 * has 4 lines, and eight lanes share each, four values side by side at a time. Where they lie across (B), a lane has a
 * line, and a warp 32 of k. */
RUNG_DEVICE int line_of(const bool along)
{
    return along ? threadIdx.x / 8 : threadIdx.x % 32;
}

/* Which of the piece's k the thread's i-th value is. */
RUNG_DEVICE int k_of(const bool along, int i)
{
    return along ? i / 4 * 32 + threadIdx.x % 8 * 4 + i % 4 : threadIdx.x / 32 * 32 + i;
}

/* Outside the matrix there are zeros. */
RUNG_DEVICE void load_piece(float v[VALUES], const image_operand *o, int64_t first, int piece, const bool along)
{
    int64_t k = (int64_t)piece * PIECE;
    const float *from = o->x + (first + line_of(along)) * o->line_step + (k + k_of(along, 0)) * o->k_step;
    if (first + IMAGE_LINES <= o->lines && k + PIECE <= o->k &&
        (!along || (o->line_step % 4 == 0 && ((uintptr_t)o->x & 15) == 0))) {
#pragma unroll
        for (int i = 0; i < VALUES; i += along ? 4 : 1, from += along ? 32 : o->k_step)
            if (along)
                *(float4 *)&v[i] = *(const float4 *)from;
            else
                v[i] = *from;
    } else {
        int count = first + line_of(along) < o->lines ? (int)min(o->k - k, (int64_t)PIECE) : 0; /* along k */
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            v[i] = k_of(along, i) < count ? from[(k_of(along, i) - k_of(along, 0)) * o->k_step] : 0.0f;
    }
}

/* What is known of 32 lines. */
typedef struct {
    unsigned largest[IMAGE_LINES]; /* magnitudes, as bits */
    float sum[IMAGE_LINES];        /* of magnitudes */
} seen;

RUNG_DEVICE void look(const float v[VALUES], unsigned *most, float *sum)
{
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        *most = max(*most, __float_as_uint(fabsf(v[i])));
        *sum += fabsf(v[i]) * SMALL;
    }
}

/* A thread brings what it has seen of its line, and a lane gets what the whole cluster has seen of the line of its
 * number: from its block's warps, then from all blocks. Sums in the same order, always: the same bits every time. */
RUNG_DEVICE void meet(unsigned *most, float *sum, int cluster, const bool along)
{
    enum { UNITS = sizeof(seen) / 16 };
    __shared__ __align__(16) seen of_warp[SPLIT_WARPS], mine, all[MOST_CLUSTER];
    int t = threadIdx.x, lane = t % 32;
    for (int i = along ? 4 : 0; i > 0; i >>= 1) { /* lanes that share the line */
        *most = max(*most, __shfl_xor_sync(~0u, *most, i));
        *sum += __shfl_xor_sync(~0u, *sum, i);
    }
    if (!along || t % 8 == 0) {
        of_warp[t / 32].largest[line_of(along)] = *most;
        of_warp[t / 32].sum[line_of(along)] = *sum;
    }
    __syncthreads();
    if (t < 32) {
        *most = 0, *sum = 0.0f;
        for (int i = along ? lane / 4 : 0; i < (along ? lane / 4 + 1 : SPLIT_WARPS); i++) {
            *most = max(*most, of_warp[i].largest[lane]);
            *sum += of_warp[i].sum[lane];
        }
        mine.largest[lane] = *most;
        mine.sum[lane] = *sum;
    }
    /* lesson meet */
    ptx_cluster_sync(); /* every block has its part */
    for (int i = t; i < cluster * UNITS; i += SPLIT_THREADS)
        ((float4 *)&all[i / UNITS])[i % UNITS] = ptx_cluster_load4(ptx_smem((float4 *)&mine + i % UNITS), i / UNITS);
    ptx_cluster_leave(); /* this block needs the others no more */
    __syncthreads();
    *most = 0, *sum = 0.0f;
    for (int i = 0; i < cluster; i++) {
        *most = max(*most, all[i].largest[lane]);
        *sum += all[i].sum[lane];
    }
    /* /lesson */
}

/* A warp, a lane a line: the record of each line, and of all 32. */
RUNG_DEVICE void report(const image_operand *o, int64_t first, unsigned largest, float sum)
{
    int lane = threadIdx.x % 32;
    float peak = largest ? __uint_as_float(largest) * SMALL / sum : 0.0f; /* 1 is one element alone, 1/k all alike */
    if (!(peak <= 1.5f))
        peak = 2.0f; /* sums too small to tell, Inf or NaN: refused */
    o->line[first + lane] = (rung_image_line){scale_of(largest), 0.0f};
    for (int i = 16; i > 0; i >>= 1) {
        largest = max(largest, __shfl_xor_sync(~0u, largest, i));
        peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, i));
    }
    if (lane == 0)
        o->group[first / IMAGE_LINES] = (rung_image_group){largest, peak};
}

/* Two values, x = (hi + lo 2^-11) 2^-scale; counts those of which lo lost bits: below 2^-27 of the largest. */
RUNG_DEVICE void split2(const float *x, int scale, uint32_t *hi, uint32_t *lo, unsigned *tiny)
{
    float s1 = __int_as_float((scale / 2 + 127) << 23), s2 = __int_as_float((scale - scale / 2 + 127) << 23);
    float v = x[0] * s1 * s2, w = x[1] * s1 * s2; /* two factors: one alone could leave the exponent range */
    *hi = ptx_round_halves(v, w);
    float rest_v = v - __half2float(__ushort_as_half((unsigned short)*hi));
    float rest_w = w - __half2float(__ushort_as_half((unsigned short)(*hi >> 16)));
    *lo = ptx_round_halves(rest_v * 2048.0f, rest_w * 2048.0f);
    *tiny += (x[0] != 0.0f && fabsf(v) < 0x1p-13f) + (x[1] != 0.0f && fabsf(w) < 0x1p-13f);
}

/* A piece of lines along k: eight lanes write the 64 bytes of a line's hi side by side, then those of its lo. */
RUNG_DEVICE void split_along(const image_operand *o, int64_t line, int kb, int k_blocks, const float v[VALUES],
                             int scale, unsigned *tiny)
{
    int unit = threadIdx.x % 8 / 2, half = threadIdx.x % 2 * 8;
#pragma unroll
    for (int i = 0; i < PIECE / IMAGE_KB; i++) {
        uint2 hi, lo;
        split2(&v[i * 4], scale, &hi.x, &lo.x, tiny);
        split2(&v[i * 4 + 2], scale, &hi.y, &lo.y, tiny);
        if (kb + i < k_blocks) {
            *(uint2 *)(image_unit(o, kb + i, line, unit) + half) = hi;
            *(uint2 *)(image_unit(o, kb + i, line, unit + 4) + half) = lo;
        }
    }
}

/* A warp's part of a piece of lines across k, 32 of k: a lane has a line, and 32 lanes would write to 32 rows of the
 * image. They turn the part in shared memory and write its 4096 bytes one after the other. */
RUNG_DEVICE void split_across(const image_operand *o, int64_t first, int kb, const float v[VALUES], int scale,
                              unsigned *tiny)
{
    __shared__ uint4 turned[SPLIT_WARPS][TURNED / 16];
    int lane = threadIdx.x % 32;
    uint4 *row = &turned[threadIdx.x / 32][lane * 8], *to = (uint4 *)(o->image + (kb * o->padded + first) * 128);
    __syncwarp(); /* what was there is read */
#pragma unroll
    for (int unit = 0; unit < 4; unit++) {
        uint4 hi, lo;
        split2(&v[unit * 8], scale, &hi.x, &lo.x, tiny);
        split2(&v[unit * 8 + 2], scale, &hi.y, &lo.y, tiny);
        split2(&v[unit * 8 + 4], scale, &hi.z, &lo.z, tiny);
        split2(&v[unit * 8 + 6], scale, &hi.w, &lo.w, tiny);
        row[unit ^ lane % 8] = hi;
        row[(unit + 4) ^ lane % 8] = lo;
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < TURNED / 16; i += 32)
        to[i] = turned[threadIdx.x / 32][i];
}

RUNG_DEVICE void split_piece(const image_operand *o, int64_t first, int piece, int k_blocks, const float v[VALUES],
                             int scale, unsigned *tiny, const bool along)
{
    int kb = piece * (PIECE / IMAGE_KB) + (along ? 0 : threadIdx.x / 32);
    if (along)
        split_along(o, first + line_of(along), kb, k_blocks, v, scale, tiny);
    else if (kb < k_blocks)
        split_across(o, first, kb, v, scale, tiny);
}

/* A cluster: 32 lines. Its blocks have the pieces along k in turn. What a block looks at last is still in its threads'
 * registers when the scale is known; pieces before that, of a k over 2048, are read again, and L2 may have them. */
RUNG_DEVICE void split_lines(const rung_image_args *p, const image_operand *o, int64_t first, const bool along)
{
    __shared__ unsigned lost[IMAGE_LINES];
    int lane = threadIdx.x % 32, rank = (int)ptx_cluster_rank(), cluster = (int)p->cluster;
    int pieces = (int)(p->k_blocks + PIECE / IMAGE_KB - 1) / (PIECE / IMAGE_KB), i;
    float v[VALUES], sum = 0.0f;
    unsigned most = 0, tiny = 0;
    /* lesson split */
#pragma unroll 1
    for (i = rank + (pieces - 1 - rank) / cluster * cluster; i >= rank; i -= cluster) {
        load_piece(v, o, first, i, along);
        look(v, &most, &sum);
    }
    if (threadIdx.x < IMAGE_LINES) {
        lost[lane] = 0;
        if (rank == 0)
            o->lost[first + lane] = 0; /* others of the cluster add to it after they have met */
    }
    meet(&most, &sum, cluster, along);
    if (rank == 0 && threadIdx.x < IMAGE_LINES)
        report(o, first, most, sum);
    int scale = __shfl_sync(~0u, scale_of(most), line_of(along));
#pragma unroll 1
    for (i = rank; i < pieces; i += cluster) {
        if (i > rank)
            load_piece(v, o, first, i, along);
        split_piece(o, first, i, (int)p->k_blocks, v, scale, &tiny, along);
    }
    /* /lesson */
    if (tiny)
        atomicAdd(&lost[line_of(along)], tiny);
    __syncthreads();
    if (threadIdx.x < IMAGE_LINES && lost[lane])
        atomicAdd(&o->lost[first + lane], lost[lane]);
    ptx_cluster_await(); /* what others read of this block's shared memory is read */
}

RUNG_KERNEL(SPLIT_THREADS, SPLIT_BLOCKS) l39_f16x3_read_once_split(const __grid_constant__ rung_image_args p)
{
    int64_t first = blockIdx.x / p.cluster * IMAGE_LINES;
    if (first < p.a_lines) {
        image_operand a = image_operand_a(&p);
        split_lines(&p, &a, first, true);
    } else {
        image_operand b = image_operand_b(&p);
        split_lines(&p, &b, first - p.a_lines, false);
    }
}

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
        if (safe && are_few(doubtful))
            image_write_tile(&p->g, sum, &lines[y], &lines[BM + x], row * BM + y, column * BN + x, whole, doubtful);
        else
            strict_tile(&p->g, row * BM, column * BN);
    }
}

RUNG_KERNEL(THREADS, 1) l39_f16x3_read_once(const __grid_constant__ rung_image_args p)
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
