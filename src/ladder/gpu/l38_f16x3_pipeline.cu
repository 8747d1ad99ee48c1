/* l38_f16x3_pipeline: one kernel splits and multiplies: three warps of each block split pieces of A and B for
 * everybody, in the order in which the tiles need them, while the other warps already multiply what is there. Changed
 * from l37_f16x3_guarded: a line has a scale for each 64 of k, not one for all of k. So a piece can be split alone,
 * after one look; the scale comes along with the stage, and promotion multiplies by it. Pieces are dealt out by a
 * counter, so whoever waits for a piece waits for a warp that runs. The guard judges a tile after the product, from
 * what came along. Limits: a tile that is refused was multiplied for nothing; a small kernel clears the counters first.
 */
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
enum { LEAST_K = 64, MOST_DOUBTFUL = 64, CHUNK = 64, PIECES = BM / IMAGE_LINES, GROUP = 24 };

/* What goes with 64 of k of a panel of 128 lines. */
typedef struct {
    float factor[BM];  /* 2^-scale, 0 for zeros, NaN where the halves have no range for it */
    float largest[BM]; /* magnitude */
    float sum[BM];     /* of magnitudes */
    float tiny[BM];    /* how many elements lost bits */
} record;

enum { RECORDS_AT = STAGES * STAGE_BYTES, RECORDS_BYTES = 2 * sizeof(record) }; /* one pair for two stages */

/* ---- the split ---- */

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
RUNG_DEVICE record *record_at(const rung_image_args *p, int64_t panel, int64_t chunk)
{
    return (record *)p->records + panel * chunks(p) + chunk;
}

RUNG_DEVICE uint32_t *pieces_done(const rung_image_args *p, int64_t panel, int64_t chunk)
{
    return p->tickets + 1 + panel * chunks(p) + chunk;
}

/* The n-th panel that the tiles need: A's first band, then B, then the rest of A. */
RUNG_DEVICE int64_t panel_in_order(const rung_image_args *p, int64_t n)
{
    int64_t first = min(panels_a(p), (int64_t)8 * CLUSTER), of_b = panels(p) - panels_a(p);
    if (n < first)
        return n;
    return n < first + of_b ? panels_a(p) + n - first : n - of_b;
}

/* lesson scale */
/* 2^scale brings a chunk's largest magnitude to [2^14, 2^15). Outside 2^-60 to 2^60, and of Inf and NaN, the factor
 * back is NaN: whatever it touches is seen at the end of the tile. */
RUNG_DEVICE float scale_of(float largest, float *factor)
{
    int exponent = (int)(__float_as_uint(largest) >> 23) - 127;
    *factor = 0.0f;
    if (largest == 0.0f)
        return 1.0f;
    *factor = __int_as_float((exponent - 14 + 127) << 23);
    if (exponent < -60 || exponent > 60) {
        *factor = __int_as_float(0x7fc00000);
        return 1.0f;
    }
    return __int_as_float((14 - exponent + 127) << 23);
}
/* /lesson */

/* Eight values of a line: a unit of hi and a unit of lo. Returns how many of them lost bits. */
RUNG_DEVICE int split8(const image_operand *o, int64_t kb, int64_t line, int unit, const float v[8], float scale)
{
    uint32_t hi[4], lo[4];
    int tiny = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float x = v[2 * i] * scale, y = v[2 * i + 1] * scale;
        hi[i] = ptx_round_halves(x, y);
        float rest_x = x - __half2float(__ushort_as_half((unsigned short)hi[i]));
        float rest_y = y - __half2float(__ushort_as_half((unsigned short)(hi[i] >> 16)));
        lo[i] = ptx_round_halves(rest_x * 2048.0f, rest_y * 2048.0f);
        tiny += (x != 0.0f && fabsf(x) < 0x1p-13f) + (y != 0.0f && fabsf(y) < 0x1p-13f);
    }
    *(uint4 *)image_unit(o, kb, line, unit) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    *(uint4 *)image_unit(o, kb, line, unit + 4) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    return tiny;
}

RUNG_DEVICE void add_to(float v[8], float *largest, float *sum)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        *largest = fabsf(v[i]) > *largest || v[i] != v[i] ? fabsf(v[i]) : *largest; /* NaN stays */
        *sum += fabsf(v[i]);
    }
}

RUNG_DEVICE void keep_record(record *to, int at, float factor, float largest, float sum, int tiny)
{
    to->factor[at] = factor;
    to->largest[at] = factor == factor ? largest : __int_as_float(0x7f800000);
    to->sum[at] = sum;
    to->tiny[at] = tiny;
}

/* 32 lines of A by 64 of k: eight lanes a line, four lines at a time. */
RUNG_DEVICE void split_along(const rung_image_args *p, int64_t panel, int64_t chunk, int piece)
{
    enum { AHEAD = 2 };
    image_operand o = {p->g.a, p->g.lda, 1, p->g.m, p->g.k, p->a, NULL, NULL, p->a_lines};
    int lane = threadIdx.x % 32, eighth = lane % 8;
#pragma unroll 1
    for (int i = 0; i < IMAGE_LINES / 4; i += AHEAD) {
        float v[AHEAD][8];
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            image_load8(v[a], &o, panel * BM + piece * IMAGE_LINES + (i + a) * 4 + lane / 8,
                        chunk * CHUNK + eighth * 8);
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            int at = piece * IMAGE_LINES + (i + a) * 4 + lane / 8;
            float largest = 0.0f, sum = 0.0f, factor;
            add_to(v[a], &largest, &sum);
            for (int from = 1; from < 8; from *= 2) {
                float other = __shfl_xor_sync(~0u, largest, from);
                largest = other > largest || other != other ? other : largest;
                sum += __shfl_xor_sync(~0u, sum, from);
            }
            float scale = scale_of(largest, &factor);
            int tiny = split8(&o, chunk * 2 + eighth / 4, panel * BM + at, eighth % 4, v[a], scale);
            for (int from = 1; from < 8; from *= 2)
                tiny += __shfl_xor_sync(~0u, tiny, from);
            if (eighth == 0)
                keep_record(record_at(p, panel, chunk), at, factor, largest, sum, tiny);
        }
    }
}

/* 32 columns of B by 64 of k: a lane a column. The second look finds the values in L1. */
RUNG_DEVICE void split_across(const rung_image_args *p, int64_t panel, int64_t chunk, int piece)
{
    image_operand o = {p->g.b, 1, p->g.ldb, p->g.n, p->g.k, p->b, NULL, NULL, p->b_lines};
    int at = piece * IMAGE_LINES + threadIdx.x % 32, tiny = 0;
    int64_t line = (panel - panels_a(p)) * BN + at;
    float v[4][8], largest = 0.0f, sum = 0.0f, factor;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int u = 0; u < 4; u++)
            image_load8(v[u], &o, line, chunk * CHUNK + half * 32 + u * 8);
#pragma unroll
        for (int u = 0; u < 4; u++)
            add_to(v[u], &largest, &sum);
    }
    float scale = scale_of(largest, &factor);
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int u = 0; u < 4; u++)
            image_load8(v[u], &o, line, chunk * CHUNK + half * 32 + u * 8);
#pragma unroll
        for (int u = 0; u < 4; u++)
            tiny += split8(&o, chunk * 2 + half, line, u, v[u], scale);
    }
    keep_record(record_at(p, panel, chunk), at, factor, largest, sum, tiny);
}

/* lesson pieces */
/* A warp: takes pieces until there are none. In a group of panels the chunks come in the order of k: all tiles of a
 * round start at once, and want the beginnings of their panels first. */
RUNG_DEVICE void split_pieces(const rung_image_args *p)
{
    int64_t all = panels(p) * chunks(p) * PIECES;
    int lane = threadIdx.x % 32;
    for (;;) {
        int64_t next = lane == 0 ? atomicAdd(p->tickets, 1u) : 0;
        next = __shfl_sync(~0u, next, 0);
        if (next >= all)
            return;
        int64_t group = next / (GROUP * chunks(p) * PIECES), inside = next - group * GROUP * chunks(p) * PIECES;
        int64_t height = min((int64_t)GROUP, panels(p) - group * GROUP);
        int64_t chunk = inside / (height * PIECES), panel = panel_in_order(p, group * GROUP + inside / PIECES % height);
        if (panel < panels_a(p))
            split_along(p, panel, chunk, (int)(inside % PIECES));
        else
            split_across(p, panel, chunk, (int)(inside % PIECES));
        image_publish(); /* what this lane wrote, also for the copy engine */
        __syncwarp();
        if (lane == 0)
            atomicAdd(pieces_done(p, panel, chunk), 1u);
    }
}
/* /lesson */

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

/* lesson produce */
/* A warp, whose first lane copies: as before, but only what is split; two stages at a time, with the scales of both
 * panels. */
RUNG_DEVICE void produce(const rung_image_args *p, ring r, uint32_t rank)
{
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        int64_t panel_a = row * CLUSTER + rank, panel_b = panels_a(p) + column, ready_a = 0, ready_b = 0;
        const char *a = p->a + panel_a * A_BYTES, *b = p->b + column * B_BYTES + rank * HALF_BYTES;
        for (int64_t kb = 0; kb < p->k_blocks; kb++) {
            int64_t chunk = kb / 2;
            if (chunk == ready_a)
                ready_a += ready_chunks(p, panel_a, chunk);
            if (chunk == ready_b)
                ready_b += ready_chunks(p, panel_b, chunk);
            if (threadIdx.x % 32 == 0) {
                uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
                ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1);
                ptx_mbar_arrive_tx(full, STAGE_BYTES + (kb % 2 ? 0 : RECORDS_BYTES));
                if (kb % 2 == 0) {
                    uint32_t at = r.data + RECORDS_AT + r.stage / 2 * RECORDS_BYTES;
                    ptx_bulk_load(at, record_at(p, panel_a, chunk), sizeof(record), full);
                    ptx_bulk_load(at + sizeof(record), record_at(p, panel_b, chunk), sizeof(record), full);
                }
                ptx_bulk_load(to, a + kb * p->a_lines * 128, A_BYTES, full);
                ptx_bulk_load_multicast(to + A_BYTES + rank * HALF_BYTES, b + kb * p->b_lines * 128, HALF_BYTES, full,
                                        (1 << CLUSTER) - 1);
            }
            __syncwarp();
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

/* What a thread keeps of one line of the tile. */
typedef struct {
    float largest, sum, tiny;
} seen;

RUNG_DEVICE void see(seen *of, const record *from)
{
    int t = threadIdx.x % BM;
    const record *mine = from + threadIdx.x / BM; /* A's lines, then B's */
    of->largest = fmaxf(of->largest, mine->largest[t]);
    of->sum += mine->sum[t];
    of->tiny += mine->tiny[t];
}

/* lesson promotion */
/* sum += x times what both lines' chunks were scaled by. */
RUNG_DEVICE void promote(float sum[SUMS], const float x[SUMS], const record *of, float weight)
{
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2;
    float upper = of[0].factor[row] * weight, lower = of[0].factor[row + 8] * weight;
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        float2 right = *(const float2 *)&of[1].factor[column + i * 2];
        sum[i] = fmaf(x[i], upper * right.x, sum[i]);
        sum[i + 1] = fmaf(x[i + 1], upper * right.y, sum[i + 1]);
        sum[i + 2] = fmaf(x[i + 2], lower * right.x, sum[i + 2]);
        sum[i + 3] = fmaf(x[i + 3], lower * right.y, sum[i + 3]);
    }
}

RUNG_DEVICE void consume(const rung_image_args *p, ring *r, int group, const record *records, seen *line,
                         float sum[SUMS])
{
    float acc[SUMS], cor[SUMS];
    uint64_t a0, b0, a1, b1;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (int64_t kb = 0; kb < p->k_blocks; kb += 2) {
        int first = r->stage;
        ptx_hold(acc, SUMS);
        ptx_hold(cor, SUMS);
        take(r, group, &a0, &b0);
        leading(acc, a0, b0, false);
        take(r, group, &a1, &b1);
        leading(acc, a1, b1, true);
        ptx_wgmma_commit();
        corrections(cor, a0, b0, false); /* they have this chunk's scale, and end here too */
        corrections(cor, a1, b1, true);
        ptx_wgmma_commit();
        see(line, records + first);
        PTX_WGMMA_WAIT(1);
        ptx_hold(acc, SUMS);
        promote(sum, acc, records + first, 1.0f); /* while the corrections are multiplied */
        PTX_WGMMA_WAIT(0);
        ptx_hold(cor, SUMS);
        promote(sum, cor, records + first, 0x1p-11f); /* while the other warpgroup multiplies */
        release_two(r, first);
    }
}
/* /lesson */

/* ---- the end of a tile ---- */

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

/* The largest share of one element in its line's sum, over the tile's rows, and over its columns. */
RUNG_DEVICE float2 peaks_of(const seen *mine)
{
    __shared__ unsigned peaks[2];
    float peak = mine->largest > 0.0f ? mine->largest / mine->sum : 0.0f;
    if (!(peak <= 1.5f))
        peak = 2.0f; /* of Inf and NaN, and what is out of range: refused */
    ptx_bar_sync(1, CONSUMERS);
    if (threadIdx.x < 2)
        peaks[threadIdx.x] = 0;
    ptx_bar_sync(1, CONSUMERS);
    atomicMax(&peaks[threadIdx.x / BM], __float_as_uint(peak));
    ptx_bar_sync(1, CONSUMERS);
    return make_float2(__uint_as_float(peaks[0]), __uint_as_float(peaks[1]));
}

/* As image_doubtful: elements that lost bits err at most 2^-50 of the largest of their line, times the largest of the
 * other. */
RUNG_DEVICE uint64_t find_doubtful(const float sum[SUMS], const seen *rows, const seen *columns)
{
    uint64_t doubtful = 0;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const seen *a = &rows[i / 2 % 2 * 8], *b = &columns[i / 4 * 8 + i % 2];
        float limit = (a->tiny + b->tiny) * 0x1p-27f * a->largest * b->largest;
        doubtful |= (uint64_t) !(fabsf(sum[i]) >= limit) << i;
    }
    return doubtful;
}

RUNG_DEVICE void finish(const rung_args *g, const float sum[SUMS], const seen *lines, const rung_image_line *unscaled,
                        int64_t row, int64_t column)
{
    int lane = threadIdx.x % 32, y = threadIdx.x / 32 * 16 + lane / 4, x = lane % 4 * 2;
    float2 peaks = peaks_of(&lines[threadIdx.x]);
    bool many = peaks.x <= 1.0f && peaks.y <= 1.0f && peaks.x * peaks.y * 2.0f * g->k <= 1.0f && g->k >= LEAST_K;
    uint64_t doubtful = many ? find_doubtful(sum, &lines[y], &lines[BM + x]) : 0;
    if (many && are_few(doubtful))
        image_write_tile(g, sum, unscaled, unscaled, row + y, column + x, row + BM <= g->m && column + BN <= g->n,
                         doubtful);
    else
        strict_tile(g, row, column);
    ptx_bar_sync(1, CONSUMERS); /* `lines` are read */
}

RUNG_DEVICE void consume_tiles(const rung_image_args *p, ring r, const char *stages, uint32_t rank)
{
    __shared__ seen lines[BM + BN];
    __shared__ rung_image_line unscaled[BN];                   /* promotion has undone all scales */
    int t = threadIdx.x, group = __shfl_sync(~0u, t / 128, 0); /* the compiler is to know: one a warp */
    int64_t rows = p->a_lines / (BM * CLUSTER), columns = p->b_lines / BN, row, column;
    const record *records = (const record *)(stages + RECORDS_AT); /* the pair of stages s and s + 1 is at s */
    float sum[SUMS];
    if (t < BN)
        unscaled[t] = (rung_image_line){0, 0.0f};
    for (int64_t tile = blockIdx.x / CLUSTER; tile < rows * columns; tile += gridDim.x / CLUSTER) {
        image_place(tile, rows, columns, &row, &column);
        lines[t] = (seen){0.0f, 0.0f, 0.0f};
        consume(p, &r, group, records, &lines[t], sum);
        finish(&p->g, sum, lines, unscaled, (row * CLUSTER + rank) * BM, column * BN);
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
    if (threadIdx.x < CONSUMERS) {
        PTX_REGS_MORE(224);
        consume_tiles(&p, r, stages, rank);
    } else {
        PTX_REGS_FEWER(56);
        if (threadIdx.x < CONSUMERS + 32)
            produce(&p, r, rank);
        else
            split_pieces(&p);
    }
    __syncwarp();
    ptx_cluster_sync(); /* the other block may still signal into this one */
}

RUNG_KERNEL(IMAGE_THREADS) l38_f16x3_pipeline_split(const __grid_constant__ rung_image_args p)
{
    int64_t step = (int64_t)gridDim.x * IMAGE_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * IMAGE_THREADS + threadIdx.x; i <= panels(&p) * chunks(&p); i += step)
        p.tickets[i] = 0;
}
