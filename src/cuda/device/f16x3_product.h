/* f16x3_product.h: the fp16x3 product, persistent and warp-specialised; included under F16X3_NAME, _BN, _STAGES,
 * _CLUSTER, and F16X3_SUMS where the sums are made another way (consume). Contract: split images (f16x3.h) padded to
 * whole cluster tiles; C of any size and leading dimension. One thread fills a ring of stages by bulk copies; two
 * warpgroups own 64 rows each. The hi*hi sums of 64 along k start from zero and are added into FP32 registers: wgmma
 * truncates its sums, and a long chain would drift. Limits: blocks that the rules refuse are marked and left alone,
 * byte for byte: strict tiles follow. */
#ifndef RUNG_DEVICE_F16X3_PRODUCT_H
#define RUNG_DEVICE_F16X3_PRODUCT_H

#include "device/f16x3_rules.h"
#include "device/ptx.h"

enum {
    BM = F16X3_BM,
    BN = F16X3_BN,
    ACC = BN / 2, /* sums a thread: 64 x BN over 128 threads */
    STAGES = F16X3_STAGES,
    CLUSTER = F16X3_CLUSTER,
    A_BYTES = BM * 128,
    B_BYTES = BN * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    CONSUMER_THREADS = 256,
    THREADS = CONSUMER_THREADS + 128,
};

/* A run of k blocks of one tile. */
typedef struct {
    int tile, k0, k1;
} segment;

typedef struct {
    int unit, unit_end, tile;
} cursor;

typedef struct {
    uint32_t full, empty, data;
    int stage;
    uint32_t parity;
} ring;

/* What the ends of a tile need, fetched by the producer while the tile before is computed. */
typedef struct {
    f16x3_line a[BM], b[BN];
    int verdict, pad[3];
} header;

enum { HEADERS = 2 };

/* A ring of headers: same barriers, two slots. */
typedef struct {
    uint32_t full, empty;
    header *slot;
    int at;
    uint32_t parity;
} headers;

RUNG_DEVICE int share_begin(const f16x3_args *g, int cluster)
{
    int64_t units = (int64_t)g->split_tiles * (g->k_blocks / 2);
    return (int)(units * min(cluster, g->split_clusters) / g->split_clusters);
}

RUNG_DEVICE cursor cursor_begin(const f16x3_args *g, int cluster)
{
    cursor c = {share_begin(g, cluster), share_begin(g, cluster + 1), g->split_tiles + cluster};
    return c;
}

/* First this cluster's even share of the tiles cut along k, from its end down: the cluster that has the end of a tile
 * finishes it, and waits only for clusters that were started before it. Then whole tiles. */
RUNG_DEVICE int cursor_next(const f16x3_args *g, int clusters, cursor *c, segment *s)
{
    int chains = g->k_blocks / 2, start;
    if (c->unit < c->unit_end) {
        s->tile = (c->unit_end - 1) / chains;
        start = max(s->tile * chains, c->unit);
        s->k0 = (start - s->tile * chains) * 2;
        s->k1 = (c->unit_end - s->tile * chains) * 2;
        c->unit_end = start;
        return 1;
    }
    s->tile = c->tile;
    s->k0 = 0;
    s->k1 = g->k_blocks;
    c->tile += clusters;
    return s->tile < g->tiles_m * g->tiles_n;
}

RUNG_DEVICE void ring_advance(ring *r)
{
    if (++r->stage == STAGES) {
        r->stage = 0;
        r->parity ^= 1;
    }
}

RUNG_DEVICE void headers_advance(headers *h)
{
    h->at ^= 1;
    h->parity ^= h->at == 0;
}

/* Announces a tile; says whether it is to be computed. */
RUNG_DEVICE int produce_header(const f16x3_args *g, headers *h, int block_m, int tm, int tn)
{
    header *to = &h->slot[h->at];
    uint32_t full = h->full + h->at * 8;
    int verdict = f16x3_verdict(g, block_m, tm, tn, CLUSTER, BN);
    ptx_mbar_wait(h->empty + h->at * 8, h->parity ^ 1);
    to->verdict = verdict;
    ptx_mbar_arrive_tx(full, sizeof to->a + sizeof to->b);
    ptx_bulk_load(ptx_smem(to->a), g->a_line + (int64_t)block_m * BM, sizeof to->a, full);
    ptx_bulk_load(ptx_smem(to->b), g->b_line + (int64_t)tn * BN, sizeof to->b, full);
    headers_advance(h);
    return verdict & F16X3_RUN;
}

RUNG_DEVICE void produce(const f16x3_args *g, ring r, headers h, uint32_t rank, int cluster, int clusters)
{
    cursor c = cursor_begin(g, cluster);
    segment s;
    int tm, tn, kb;
    while (cursor_next(g, clusters, &c, &s)) {
        f16x3_tile(g, s.tile, &tm, &tn);
        if (!produce_header(g, &h, tm * CLUSTER + rank, tm, tn))
            continue;
        int64_t a_step = g->a_row_groups * 1024, b_step = g->b_row_groups * 1024;
        const char *a = g->a_image + ((int64_t)tm * CLUSTER + rank) * A_BYTES + s.k0 * a_step;
        const char *b = g->b_image + (int64_t)tn * B_BYTES + rank * (B_BYTES / CLUSTER) + s.k0 * b_step;
        for (kb = s.k0; kb < s.k1; kb++) {
            uint32_t to = r.data + r.stage * STAGE_BYTES, full = r.full + r.stage * 8;
            ptx_mbar_wait(r.empty + r.stage * 8, r.parity ^ 1);
            ptx_mbar_arrive_tx(full, STAGE_BYTES);
            ptx_bulk_load(to, a, A_BYTES, full);
            to += A_BYTES + rank * (B_BYTES / CLUSTER);
            if (CLUSTER == 1)
                ptx_bulk_load(to, b, B_BYTES, full);
            else
                ptx_bulk_load_multicast(to, b, B_BYTES / CLUSTER, full, (1 << CLUSTER) - 1);
            a += a_step;
            b += b_step;
            ring_advance(&r);
        }
    }
}

RUNG_DEVICE void stage_release(uint32_t empty, int stage)
{
    int lane = threadIdx.x % 32;
    if (CLUSTER == 1) {
        if (lane == 0)
            ptx_mbar_arrive(empty + stage * 8);
    } else if (lane < CLUSTER) {
        ptx_mbar_arrive_cluster(empty + stage * 8, lane);
    }
}

/* Waits for the next stage and hands out its operands. */
RUNG_DEVICE void stage_take(ring *r, int group, uint64_t *a, uint64_t *b)
{
    uint32_t at = r->data + r->stage * STAGE_BYTES;
    ptx_mbar_wait(r->full + r->stage * 8, r->parity);
    *a = ptx_wgmma_desc_k128(at + group * 64 * 128);
    *b = ptx_wgmma_desc_k128(at + A_BYTES);
    ring_advance(r);
    ptx_wgmma_fence();
}

/* How the sums of one segment come about, consume(): 0 production's, 1 one chain without promotion, 2 TF32, 3 plain
 * promotion. */
#ifndef F16X3_SUMS
#define F16X3_SUMS 0
#endif
#if F16X3_SUMS == 0
#include "device/f16x3_sums.h"
#elif F16X3_SUMS == 1
#include "device/f16x3_sums_chain.h"
#elif F16X3_SUMS == 3
#include "device/f16x3_sums_plain.h"
#else
#include "device/tf32_sums.h"
#endif

/* Sums of a part that another cluster finishes. */
RUNG_DEVICE void leave_partial(const f16x3_args *g, const float *sum, int t)
{
    float *out = g->partial + (int64_t)blockIdx.x * BM * BN + t;
    int i;
#pragma unroll
    for (i = 0; i < ACC; i++)
        __stcg(out + i * CONSUMER_THREADS, sum[i]);
    __threadfence();
    ptx_bar_sync(1, CONSUMER_THREADS);
    if (t == 0)
        ptx_store_release(&g->ready[blockIdx.x], 1);
}

/* Adds the parts of a cut tile, from the end of k down: always the same clusters, always the same order. */
RUNG_DEVICE void add_partials(const f16x3_args *g, const segment *s, uint32_t rank, int cluster, float *sum, int t)
{
    int begin = s->tile * (g->k_blocks / 2), i;
    do {
        cluster--;
        int block = cluster * CLUSTER + rank;
        const float *in = g->partial + (int64_t)block * BM * BN + t;
        while (ptx_load_acquire(&g->ready[block]) == 0)
            __nanosleep(20);
#pragma unroll
        for (i = 0; i < ACC; i++)
            sum[i] += __ldcg(in + i * CONSUMER_THREADS);
    } while (share_begin(g, cluster) > begin);
}

/* 2^e by two exact factors: together the scales can leave the exponent range where the result does not. */
RUNG_DEVICE float unscale(float v, int e)
{
    int e1;
    e = max(-250, min(e, 254));
    e1 = e >> 1;
    return v * __int_as_float((e1 + 127) << 23) * __int_as_float((e - e1 + 127) << 23);
}

/* True where the tiny elements of the two lines could matter: nobody knows how much the sum's terms cancel, but their
 * magnitudes add up to at least |sum|. */
#define DOUBTFUL(v, row, col) (fabsf(v) < 2.0f * ((row).tiny + (col).tiny))

RUNG_DEVICE uint64_t find_doubtful(const f16x3_args *g, const header *h, const float *sum, int row_in, int col_in,
                                   int row0, int col0)
{
    uint64_t found = 0;
    int j, e;
#pragma unroll
    for (j = 0; j < BN / 8; j++)
#pragma unroll
        for (e = 0; e < 4; e++) {
            int row = (e >> 1) * 8, col = j * 8 + (e & 1);
            int doubtful = DOUBTFUL(sum[j * 4 + e], h->a[row_in + row], h->b[col_in + col]) && row0 + row < g->g.m &&
                           col0 + col < g->g.n;
            found |= (uint64_t)doubtful << (j * 4 + e);
        }
    return found;
}

/* True when this block's doubtful elements are few enough to be settled one by one. */
RUNG_DEVICE int few_doubtful(int mine, int t)
{
    __shared__ int count;
    int few;
    ptx_bar_sync(1, CONSUMER_THREADS);
    if (t == 0)
        count = 0;
    ptx_bar_sync(1, CONSUMER_THREADS);
    if (mine)
        atomicAdd(&count, mine);
    ptx_bar_sync(1, CONSUMER_THREADS);
    few = count <= F16X3_FIX_MAX;
    return few;
}

/* One element by FP32 multiply-adds: a warp, in 32 interleaved sums. */
RUNG_DEVICE float strict_element(const f16x3_args *f, int64_t row, int64_t col)
{
    const rung_args *g = &f->g;
    const float *a = g->a_array ? g->a_array[f->entry] : g->a, *b = g->b_array ? g->b_array[f->entry] : g->b;
    int64_t step_a = g->trans_a ? g->lda : 1, step_b = g->trans_b ? 1 : g->ldb, k;
    float sum = 0.0f;
    int i;
    a += g->trans_a ? row : row * g->lda;
    b += g->trans_b ? col * g->ldb : col;
#pragma unroll 1
    for (k = threadIdx.x % 32; k < g->k; k += 32)
        sum = fmaf(a[k * step_a], b[k * step_b], sum);
#pragma unroll 1
    for (i = 16; i > 0; i >>= 1)
        sum += __shfl_xor_sync(~0u, sum, i);
    return sum;
}

/* The doubtful elements of a warp, the bits of `doubtful` in each lane, computed strictly and stored. */
RUNG_DEVICE void settle_doubtful(const f16x3_args *g, uint64_t doubtful, int row0, int col0, float alpha, float beta,
                                 float *base)
{
    f16x3_ending end = f16x3_ending_of(&g->g);
    int lane = threadIdx.x % 32, owner;
#pragma unroll 1
    for (owner = 0; owner < 32; owner++) {
        uint64_t bits = __shfl_sync(~0u, doubtful, owner);
        int row = __shfl_sync(~0u, row0, owner), col = __shfl_sync(~0u, col0, owner);
#pragma unroll 1
        for (; bits; bits &= bits - 1) {
            int i = __ffsll(bits) - 1, r = row + (i >> 1 & 1) * 8, c = col + i / 4 * 8 + (i & 1);
            float sum = strict_element(g, r, c), *to = base + r * g->g.ldc + c;
            if (lane == owner) {
                float bias = f16x3_bias(&end, 1, r, g->g.m) + f16x3_bias(&end, 2, c, g->g.n);
                *to = f16x3_end(f16x3_finish(sum, alpha, beta, to), bias, end.least);
                if (g->counts)
                    atomicAdd(&g->counts[2], 1ull);
            }
        }
    }
}

/* The second look at a stored tile, for the activation that is too long for unrolled stores. */
RUNG_DEVICE void store_gelu(const f16x3_args *g, int row0, int col0, float *base)
{
    int i;
#pragma unroll 1
    for (i = 0; i < ACC; i++) {
        int row = row0 + (i >> 1 & 1) * 8, col = col0 + i / 4 * 8 + (i & 1);
        if (row < g->g.m && col < g->g.n) {
            float *c = base + row * g->g.ldc + col;
            *c = f16x3_gelu(*c);
        }
    }
}

/* The block is left alone, to be computed strictly. */
RUNG_DEVICE void mark(const f16x3_args *g, int tile)
{
    g->marks[tile] = 1;
    if (g->counts)
        atomicAdd(&g->counts[1], 1ull);
}

/* alpha A B from the sums, in place. */
RUNG_DEVICE void unscale_tile(const header *hd, float *sum, float alpha, int row_in, int col_in)
{
    int j, e;
#pragma unroll
    for (j = 0; j < BN / 8; j++)
#pragma unroll
        for (e = 0; e < 4; e++) {
            int scale = hd->a[row_in + (e >> 1) * 8].scale + hd->b[col_in + j * 8 + (e & 1)].scale;
            sum[j * 4 + e] = f16x3_finish(unscale(sum[j * 4 + e], -scale), alpha, 0.0f, NULL);
        }
}

/* Every element of a whole tile, two at a time. */
RUNG_DEVICE void store_whole(const f16x3_args *g, const float *sum, float beta, int row0, int col0, float *base)
{
    f16x3_ending end = f16x3_ending_of(&g->g);
    float row_bias[2] = {f16x3_bias(&end, 1, row0, g->g.m), f16x3_bias(&end, 1, row0 + 8, g->g.m)};
    float *c = base + row0 * g->g.ldc + col0;
    int j, h;
#pragma unroll
    for (j = 0; j < BN / 8; j++) {
        float x = f16x3_bias(&end, 2, col0 + j * 8, g->g.n), y = f16x3_bias(&end, 2, col0 + j * 8 + 1, g->g.n);
#pragma unroll
        for (h = 0; h < 2; h++) {
            float2 *at = (float2 *)(c + h * 8 * g->g.ldc + j * 8),
                   v = make_float2(sum[j * 4 + h * 2], sum[j * 4 + h * 2 + 1]);
            if (beta != 0.0f) {
                float2 old = *at;
                v = make_float2(fmaf(beta, old.x, v.x), fmaf(beta, old.y, v.y));
            }
            *at = make_float2(f16x3_end(v.x, row_bias[h] + x, end.least), f16x3_end(v.y, row_bias[h] + y, end.least));
        }
    }
}

/* What lies inside C and is not doubtful, one at a time. */
RUNG_DEVICE void store_edge(const f16x3_args *g, const float *sum, float beta, int row0, int col0, float *base,
                            uint64_t doubtful)
{
    f16x3_ending end = f16x3_ending_of(&g->g);
    int j, e;
#pragma unroll
    for (j = 0; j < BN / 8; j++)
#pragma unroll
        for (e = 0; e < 4; e++) {
            int row = row0 + (e >> 1) * 8, col = col0 + j * 8 + (e & 1);
            if (row < g->g.m && col < g->g.n && !(doubtful >> (j * 4 + e) & 1)) {
                float *c = base + row * g->g.ldc + col;
                float bias = f16x3_bias(&end, 1, row, g->g.m) + f16x3_bias(&end, 2, col, g->g.n);
                *c = f16x3_end(f16x3_finish(sum[j * 4 + e], 1.0f, beta, c), bias, end.least);
            }
        }
}

RUNG_DEVICE void store_tile(const f16x3_args *g, const header *hd, float *sum, int block_m, int tn, int t)
{
    int lane = t % 32, tile = block_m * g->tiles_n + tn;
    int row_in = t / 32 * 16 + lane / 4, col_in = lane % 4 * 2, row0 = block_m * BM + row_in, col0 = tn * BN + col_in;
    float alpha = g->g.alpha_device ? *g->g.alpha_device : g->g.alpha;
    float beta = g->g.beta_device ? *g->g.beta_device : g->g.beta, *base = f16x3_c(g);
    int whole = (block_m + 1) * (int64_t)BM <= g->g.m && (tn + 1) * (int64_t)BN <= g->g.n;
    int pairs = ((g->g.ldc & 1) | (int)((uintptr_t)base >> 2 & 1)) == 0;
    uint64_t doubtful = 0;

    if (hd->verdict & F16X3_TINY) {
        doubtful = find_doubtful(g, hd, sum, row_in, col_in, row0, col0);
        if (!few_doubtful(__popcll(doubtful), t)) {
            if (t == 0)
                mark(g, tile);
            return;
        }
        __syncwarp();
        settle_doubtful(g, doubtful, row0, col0, alpha, beta, base);
    }
    unscale_tile(hd, sum, alpha, row_in, col_in);
    if (whole && pairs && !doubtful)
        store_whole(g, sum, beta, row0, col0, base);
    else
        store_edge(g, sum, beta, row0, col0, base, doubtful);
    if (g->g.activation == 2)
        store_gelu(g, row0, col0, base);
}

RUNG_DEVICE void consume_all(const f16x3_args *g, ring r, headers h, uint32_t rank, int cluster, int clusters)
{
    int t = threadIdx.x - 128, group = __shfl_sync(~0u, t / 128, 0), tm, tn;
    cursor c = cursor_begin(g, cluster);
    segment s;
    float sum[ACC];
    if (g->counts && blockIdx.x == 0 && t == 0)
        atomicAdd(&g->counts[0], (unsigned long long)((g->g.m + BM - 1) / BM) * g->tiles_n);
    while (cursor_next(g, clusters, &c, &s)) {
        const header *hd = &h.slot[h.at];
        ptx_mbar_wait(h.full + h.at * 8, h.parity);
        f16x3_tile(g, s.tile, &tm, &tn);
        int tile = (tm * CLUSTER + (int)rank) * g->tiles_n + tn;
        if (!(hd->verdict & F16X3_SAFE) && s.k1 == g->k_blocks && t == 0)
            mark(g, tile);
        if (hd->verdict & F16X3_RUN) {
            consume(&r, group, s.k1 - s.k0, sum);
            if (s.k1 < g->k_blocks) {
                leave_partial(g, sum, t);
            } else {
                if (s.k0 > 0)
                    add_partials(g, &s, rank, cluster, sum, t);
                if (hd->verdict & F16X3_SAFE)
                    store_tile(g, hd, sum, tm * CLUSTER + rank, tn, t);
            }
        }
        /* By all: a thread's store, not the copy engine's, takes the verdict's place. */
        ptx_mbar_arrive(h.empty + h.at * 8);
        headers_advance(&h);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) F16X3_NAME(const __grid_constant__ f16x3_args g)
{
    extern __shared__ __align__(1024) char smem[];
    __shared__ __align__(16) header slots[HEADERS];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES], header_full[HEADERS], header_empty[HEADERS];
    ring r = {ptx_smem(full), ptx_smem(empty), ptx_smem(smem), 0, 0};
    headers h = {ptx_smem(header_full), ptx_smem(header_empty), slots, 0, 0};
    uint32_t rank = CLUSTER == 1 ? 0 : ptx_cluster_rank();
    int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, i;

    if (threadIdx.x == 0) {
        for (i = 0; i < STAGES; i++) {
            ptx_mbar_init(r.full + i * 8, 1);
            ptx_mbar_init(r.empty + i * 8, CLUSTER * CONSUMER_THREADS / 32);
        }
        for (i = 0; i < HEADERS; i++) {
            ptx_mbar_init(h.full + i * 8, 1);
            ptx_mbar_init(h.empty + i * 8, CONSUMER_THREADS);
        }
        ptx_mbar_init_fence();
    }
    __syncthreads();
    if (CLUSTER > 1)
        ptx_cluster_sync();
    if (__shfl_sync(~0u, threadIdx.x / 128, 0) == 0) {
        PTX_REGS_FEWER(40);
        if (threadIdx.x == 0)
            produce(&g, r, h, rank, cluster, clusters);
    } else {
        PTX_REGS_MORE(232);
        consume_all(&g, r, h, rank, cluster, clusters);
    }
    __syncwarp();
    if (CLUSTER > 1) /* the other block may still signal into this one */
        ptx_cluster_sync();
}

#endif
