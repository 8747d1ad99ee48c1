/* l38_f16x3_pipeline: split and product in one pipeline: all warps split what the first round of tiles needs, then
 * three warps of each block split the rest, in the order in which tiles need it, while the others multiply. Changed
 * from l37_f16x3_guarded: the kernel before the product (NAME_split, as its launcher calls it) only looks: it finds the
 * lines' scales and what the guard needs, and writes no images. Pieces are dealt out by a counter, so whoever waits for
 * one waits for a warp that runs. Limits: both operands are read twice; the first round waits for its pieces. */
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
enum { CHUNK = 64, PIECES = BM / IMAGE_LINES, AHEAD = 2 };
enum { FIRST = 26, GROUP = 8 }; /* panels that are split together: those of the first round, then of the next ones */

RUNG_DEVICE int64_t chunks(const rung_image_args *p)
{
    return p->k_blocks / 2;
}

RUNG_DEVICE int64_t panels_a(const rung_image_args *p)
{
    return p->a_lines / BM;
}

RUNG_DEVICE int64_t panels(const rung_image_args *p)
{
    return panels_a(p) + p->b_lines / BN;
}

/* Panels count A's first, then B's. */
RUNG_DEVICE uint32_t *pieces_done(const rung_image_args *p, int64_t panel, int64_t chunk)
{
    return p->tickets + IMAGE_COUNTERS + panel * chunks(p) + chunk;
}

/* ---- the look, a kernel of its own ---- */

/* The power of two that brings a line's largest magnitude to [2^14, 2^15). */
RUNG_DEVICE int scale_of(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int exponent = largest >= 0x00800000u ? (int)(largest >> 23) - 127 : -118 - __clz((int)largest);
    return 14 - exponent;
}

#define SMALL 0x1p-24f /* sums of magnitudes are kept so much smaller: they must not overflow */

/* A warp, a lane a line: the record of each line, and of all 32. Sums are added in a fixed order: the same bits every
 * time. */
RUNG_DEVICE void report(const image_operand *o, int64_t first, unsigned largest, const float *sums)
{
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int i = 0; i < IMAGE_THREADS / IMAGE_LINES; i++)
        sum += sums[i * IMAGE_LINES];
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

/* 32 lines a block, from the end of k: what was read last, L2 may still have when the pieces are split. */
RUNG_KERNEL(IMAGE_THREADS) l38_f16x3_pipeline_split(const __grid_constant__ rung_image_args p)
{
    enum {
        SHARERS = IMAGE_THREADS / IMAGE_LINES,
        STEP = IMAGE_THREADS / 128,
        LOOK = 4
    }; /* threads that share a line */
    __shared__ unsigned largest[IMAGE_LINES];
    __shared__ float sums[SHARERS][IMAGE_LINES];
    int64_t first, all = (int64_t)gridDim.x * IMAGE_THREADS, at = (int64_t)blockIdx.x * IMAGE_THREADS + threadIdx.x;
    image_operand o = image_operand_of(&p, &first);
    int t = threadIdx.x, line = o.k_step == 1 ? t / 4 % 32 : t % 32, unit = o.k_step == 1 ? t % 4 : t / 32 % 4;
    float v[LOOK][8], sum = 0.0f;
    unsigned most = 0;
    for (int64_t i = at; i < panels(&p) * chunks(&p) + IMAGE_COUNTERS; i += all)
        p.tickets[i] = 0;
    for (int64_t i = at; i < p.a_lines + p.b_lines; i += all)
        p.lost[i] = 0;
    if (t < IMAGE_LINES)
        largest[t] = 0;
    __syncthreads();
/* lesson look */
#pragma unroll 1
    for (int64_t kb = p.k_blocks - 1 - t / 128; kb >= 0; kb -= LOOK * STEP) {
#pragma unroll
        for (int a = 0; a < LOOK; a++) /* all on their way before the first is looked at; zeros before the beginning */
            image_load8(v[a], &o, kb < a * STEP ? o.lines : first + line, (kb - a * STEP) * IMAGE_KB + unit * 8);
#pragma unroll
        for (int a = 0; a < LOOK; a++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                most = max(most, __float_as_uint(fabsf(v[a][i])));
                sum += fabsf(v[a][i]) * SMALL;
            }
    }
    /* /lesson */
    atomicMax(&largest[line], most);
    sums[t / 128 * 4 + unit][line] = sum;
    __syncthreads();
    if (t < IMAGE_LINES)
        report(&o, first, largest[t], &sums[0][t]);
}

/* ---- the split, three warps of each block of the product ---- */

/* The n-th panel that the tiles need: A's first band, then B, then the rest of A. */
RUNG_DEVICE int64_t panel_in_order(const rung_image_args *p, int64_t n)
{
    int64_t first = min(panels_a(p), (int64_t)8 * CLUSTER), of_b = panels(p) - panels_a(p);
    if (n < first)
        return n;
    return n < first + of_b ? panels_a(p) + n - first : n - of_b;
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

/* Eight values along k of one line, scaled and split, to their unit of the image. */
RUNG_DEVICE void split8(const image_operand *o, int64_t chunk, int64_t line, int eighth, const float v[8], int scale,
                        uint32_t *lost)
{
    float s1 = __int_as_float((scale / 2 + 127) << 23), s2 = __int_as_float((scale - scale / 2 + 127) << 23);
    uint32_t hi[4], lo[4], tiny = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        split2(&v[2 * i], s1, s2, &hi[i], &lo[i], &tiny);
    char *to = image_unit(o, chunk * 2 + eighth / 4, line, eighth % 4);
    *(uint4 *)to = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    *(uint4 *)((uintptr_t)to ^ 64) = make_uint4(lo[0], lo[1], lo[2], lo[3]); /* four units further on */
    if (tiny)
        atomicAdd(&lost[line], tiny);
}

/* A warp: 32 lines of A by 64 of k; eight lanes share a line's 256 bytes. */
RUNG_DEVICE void split_along(const rung_image_args *p, int64_t chunk, int64_t first)
{
    image_operand o = {p->g.a, p->g.lda, 1, p->g.m, p->g.k, p->a, p->a_line, NULL, p->a_lines};
    int eighth = threadIdx.x % 8;
    int64_t k = chunk * CHUNK + eighth * 8, line = first + threadIdx.x % 32 / 8;
    bool plain = first + IMAGE_LINES <= o.lines && (chunk + 1) * CHUNK <= o.k && o.line_step % 4 == 0 &&
                 ((uintptr_t)o.x & 15) == 0;
    const float *from = o.x + line * o.line_step + k;
#pragma unroll 1
    for (int i = 0; i < IMAGE_LINES / 4; i += AHEAD) {
        float v[AHEAD][8];
        int scale[AHEAD];
#pragma unroll
        for (int n = 0; n < AHEAD; n++, from += 4 * o.line_step) { /* all on their way before the first is split */
            scale[n] = o.line[line + n * 4].scale;
            if (plain) {
                *(float4 *)v[n] = *(const float4 *)from;
                *(float4 *)(v[n] + 4) = *(const float4 *)(from + 4);
            } else {
                image_load8(v[n], &o, line + n * 4, k);
            }
        }
#pragma unroll
        for (int n = 0; n < AHEAD; n++, line += 4)
            split8(&o, chunk, line, eighth, v[n], scale[n], p->lost);
    }
}

/* A warp: 32 columns of B by 64 of k: eight columns at a time, four lanes each, so that rows are read and units written
 * in whole sectors. */
RUNG_DEVICE void split_across(const rung_image_args *p, int64_t chunk, int64_t first)
{
    image_operand o = {p->g.b, 1, p->g.ldb, p->g.n, p->g.k, p->b, p->b_line, NULL, p->b_lines};
    int lane = threadIdx.x % 32;
    bool plain = first + IMAGE_LINES <= o.lines && (chunk + 1) * CHUNK <= o.k;
#pragma unroll 1
    for (int i = 0; i < IMAGE_LINES / 8; i++) {
        float v[2][8];
        int64_t line = first + i * 8 + lane % 8;
        const float *from = o.x + (chunk * CHUNK + lane / 8 * 8) * o.k_step + line;
        int scale = o.line[line].scale;
#pragma unroll
        for (int half = 0; half < 2; half++, from += 24 * o.k_step) /* all on their way before the first is split */
            if (plain) {
#pragma unroll
                for (int j = 0; j < 8; j++, from += o.k_step)
                    v[half][j] = *from;
            } else {
                image_load8(v[half], &o, line, chunk * CHUNK + half * 32 + lane / 8 * 8);
                from += 8 * o.k_step;
            }
#pragma unroll
        for (int half = 0; half < 2; half++)
            split8(&o, chunk, line, half * 4 + lane / 8, v[half], scale, p->lost + p->a_lines);
    }
}

/* What is split before anything is multiplied: the panels of the first round of tiles. */
RUNG_DEVICE int64_t first_panels(const rung_image_args *p)
{
    return min(panels(p), (int64_t)FIRST);
}

/* lesson pieces */
/* A warp: splits the n-th piece. In a group of panels the chunks come in the order of k: all tiles of a round start at
 * once, and want the beginnings of their panels first. */
RUNG_DEVICE void split_piece(const rung_image_args *p, int64_t n)
{
    int64_t first = first_panels(p) * chunks(p) * PIECES, from = 0, height = first_panels(p);
    if (n >= first) {
        int64_t group = (n - first) / (GROUP * chunks(p) * PIECES);
        from = first_panels(p) + group * GROUP;
        height = min((int64_t)GROUP, panels(p) - from);
        n -= first + group * GROUP * chunks(p) * PIECES;
    }
    int64_t chunk = n / (height * PIECES), panel = panel_in_order(p, from + n / PIECES % height);
    int64_t line = n % PIECES * IMAGE_LINES;
    if (panel < panels_a(p))
        split_along(p, chunk, panel * BM + line);
    else
        split_across(p, chunk, (panel - panels_a(p)) * BN + line);
    image_publish(); /* what this lane wrote, also for the copy engine */
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        atomicAdd(pieces_done(p, panel, chunk), 1u);
}
/* /lesson */

/* A warp: takes pieces `from` to `end` by a counter until there are none; the next is asked for while one is split. */
RUNG_DEVICE void split_pieces(const rung_image_args *p, uint32_t *counter, int64_t from, int64_t end)
{
    int lane = threadIdx.x % 32;
    uint32_t next = lane == 0 ? atomicAdd(counter, 1u) : 0;
    for (;;) {
        int64_t n = from + __shfl_sync(~0u, next, 0);
        if (n >= end)
            return;
        if (lane == 0)
            next = atomicAdd(counter, 1u);
        split_piece(p, n);
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

/* A warp: how many of the next 32 chunks of a panel are split; one at least, if it has to wait. */
RUNG_DEVICE int64_t ready_chunks(const rung_image_args *p, int64_t panel, int64_t from)
{
    int lane = threadIdx.x % 32;
    unsigned ready = 0;
    while (!(ready & 1)) {
        bool done = from + lane < chunks(p) && ptx_load_acquire(pieces_done(p, panel, from + lane)) == PIECES;
        ready = __ballot_sync(~0u, done);
        if (!(ready & 1))
            __nanosleep(100);
    }
    image_acquire();
    return ready == ~0u ? 32 : __ffs(~ready) - 1;
}

/* A warp, whose first lane copies: as before, but only what is split. */
RUNG_DEVICE void produce(const rung_image_args *p, ring r, uint32_t rank)
{
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        if (!is_multiplied(p, row, column))
            continue;
        int64_t panel_a = row * CLUSTER + rank, panel_b = panels_a(p) + column, ready_a = 0, ready_b = 0;
        const char *a = p->a + panel_a * A_BYTES, *b = p->b + column * B_BYTES + rank * HALF_BYTES;
        /* lesson produce */
        for (int64_t kb = 0; kb < p->k_blocks; kb++) {
            if (kb / 2 == ready_a)
                ready_a += ready_chunks(p, panel_a, kb / 2);
            if (kb / 2 == ready_b)
                ready_b += ready_chunks(p, panel_b, kb / 2);
            if (threadIdx.x % 32 == 0) {
                uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
                ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1);
                ptx_mbar_arrive_tx(full, STAGE_BYTES);
                ptx_bulk_load(to, a + kb * p->a_lines * 128, A_BYTES, full);
                ptx_bulk_load_multicast(to + A_BYTES + rank * HALF_BYTES, b + kb * p->b_lines * 128, HALF_BYTES, full,
                                        (1 << CLUSTER) - 1);
            }
            __syncwarp();
            advance(&r);
        }
        /* /lesson */
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
        if (multiplied)
            consume(p, &r, group, sum);
        mine.doubt = 2.0f * __ldcg(p->lost + (t < BM ? row * BM + t : p->a_lines + column * BN + t - BM));
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

RUNG_KERNEL(THREADS, 1) l38_f16x3_pipeline(const __grid_constant__ rung_image_args p)
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
    int64_t first = first_panels(&p) * chunks(&p) * PIECES;
    split_pieces(&p, p.tickets, 0, first); /* all warps */
    __syncwarp();
    if (threadIdx.x < CONSUMERS) {
        PTX_REGS_MORE(224);
        consume_tiles(&p, r, rank);
    } else {
        PTX_REGS_FEWER(56);
        if (threadIdx.x < CONSUMERS + 32)
            produce(&p, r, rank);
        else
            split_pieces(&p, p.tickets + 1, first, panels(&p) * chunks(&p) * PIECES);
    }
    __syncwarp();
    ptx_cluster_sync(); /* the other block may still signal into this one */
}
