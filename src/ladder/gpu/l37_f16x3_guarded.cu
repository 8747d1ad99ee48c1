/* l37_f16x3_guarded: a guard decides for each tile, on the device, whether the halves are good enough; if not, the tile
 * is FP32. Changed from l36_f16x3_overlapped: the split also keeps, for 32 lines, their largest element and the largest
 * share that one element has in the sum of its line. From these the product judges a tile before it multiplies: Inf and
 * NaN, sums that could overflow, and sums of so few terms that one product's error would show, go to plain FMAs, 8 x 8
 * results a thread. Elements that lost bits are judged by the result, as before. Nothing is sent to the host: a
 * captured graph decides anew at each launch. Limits: whole tiles, no part of k is cut: the last round may leave SMs
 * idle. */
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

/* ---- the split ---- */

/* The power of two that brings a line's largest magnitude to [2^14, 2^15). */
RUNG_DEVICE int scale_of(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int exponent = largest >= 0x00800000u ? (int)(largest >> 23) - 127 : -118 - __clz((int)largest);
    return 14 - exponent;
}

/* Two values, x = (hi + lo 2^-11) 2^-scale; counts those of which lo lost bits: below 2^-27 of the largest. */
RUNG_DEVICE void split2(const float *x, float s1, float s2, uint32_t *hi, uint32_t *lo, unsigned *tiny)
{
    float v = x[0] * s1 * s2, w = x[1] * s1 * s2; /* two factors: one alone could leave the exponent range */
    *hi = ptx_round_halves(v, w);
    float rest_v = v - __half2float(__ushort_as_half((unsigned short)*hi));
    float rest_w = w - __half2float(__ushort_as_half((unsigned short)(*hi >> 16)));
    *lo = ptx_round_halves(rest_v * 2048.0f, rest_w * 2048.0f);
    *tiny += (x[0] != 0.0f && fabsf(v) < 0x1p-13f) + (x[1] != 0.0f && fabsf(w) < 0x1p-13f);
}

#define SMALL 0x1p-24f /* sums of magnitudes are kept so much smaller: they must not overflow */

/* lesson records */
/* A warp, a lane a line: the record of each line, and of all 32. Sums are added in a fixed order: the same bits every
 * time. */
RUNG_DEVICE void report(const image_operand *o, int64_t first, unsigned largest, unsigned tiny, const float *sums)
{
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int i = 0; i < IMAGE_THREADS / IMAGE_LINES; i++)
        sum += sums[i * IMAGE_LINES];
    float peak = largest ? __uint_as_float(largest) * SMALL / sum : 0.0f; /* 1 is one element alone, 1/k all alike */
    if (!(peak <= 1.5f))
        peak = 2.0f; /* sums too small to tell, Inf or NaN: refused */
    o->line[first + lane] = (rung_image_line){scale_of(largest), 2.0f * tiny};
    for (int i = 16; i > 0; i >>= 1) {
        largest = max(largest, __shfl_xor_sync(~0u, largest, i));
        peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, i));
    }
    if (lane == 0)
        o->group[first / IMAGE_LINES] = (rung_image_group){largest, peak};
}
/* /lesson */

/* 32 lines a block: a look for largest elements and sums, then a second one that splits, from the end. */
RUNG_KERNEL(IMAGE_THREADS) l37_f16x3_guarded_split(const __grid_constant__ rung_image_args p)
{
    enum { SHARERS = IMAGE_THREADS / IMAGE_LINES }; /* threads that share a line */
    __shared__ unsigned largest[IMAGE_LINES], tiny[IMAGE_LINES];
    __shared__ float sums[SHARERS][IMAGE_LINES];
    int64_t first;
    image_operand o = image_operand_of(&p, &first);
    int t = threadIdx.x, line = o.k_step == 1 ? t / 4 % 32 : t % 32, unit = o.k_step == 1 ? t % 4 : t / 32 % 4;
    float v[8], sum = 0.0f;
    unsigned most = 0, lost = 0;
    if (t < IMAGE_LINES)
        largest[t] = tiny[t] = 0;
    __syncthreads();
#pragma unroll 2
    for (int64_t kb = t / 128; kb < p.k_blocks; kb += IMAGE_THREADS / 128) {
        image_load8(v, &o, first + line, kb * IMAGE_KB + unit * 8);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            most = max(most, __float_as_uint(fabsf(v[i])));
            sum += fabsf(v[i]) * SMALL;
        }
    }
    atomicMax(&largest[line], most);
    sums[t / 128 * 4 + unit][line] = sum;
    __syncthreads();
    int scale = scale_of(largest[line]);
    float s1 = __int_as_float((scale / 2 + 127) << 23), s2 = __int_as_float((scale - scale / 2 + 127) << 23);
#pragma unroll 2
    for (int64_t kb = p.k_blocks - 1 - t / 128; kb >= 0; kb -= IMAGE_THREADS / 128) {
        uint32_t hi[4], lo[4];
        image_load8(v, &o, first + line, kb * IMAGE_KB + unit * 8);
#pragma unroll
        for (int i = 0; i < 4; i++)
            split2(&v[2 * i], s1, s2, &hi[i], &lo[i], &lost);
        *(uint4 *)image_unit(&o, kb, first + line, unit) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        *(uint4 *)image_unit(&o, kb, first + line, unit + 4) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
    atomicAdd(&tiny[line], lost);
    __syncthreads();
    if (t < IMAGE_LINES)
        report(&o, first, largest[t], tiny[t], &sums[0][t]);
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

/* lesson guard */
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
/* /lesson */

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

/* lesson pair */
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
/* /lesson */

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

/* lesson overlap */
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
        if (multiplied)
            consume(p, &r, group, sum);
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

RUNG_KERNEL(THREADS, 1) l37_f16x3_guarded(const __grid_constant__ rung_image_args p)
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
