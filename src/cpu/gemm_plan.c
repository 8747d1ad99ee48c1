/* Which path a product takes, and its block sizes: from the shape, the tile and the cache sizes. */
#include "cpu/gemm.h"

/* The smallest block that needs no more blocks than `largest` would: 1000 by 256 gives 4 x 250, not 3 x 256 + 232. */
static int64_t even_block(int64_t size, int64_t largest, int64_t unit)
{
    return round_up(divide_up(size, divide_up(size, largest)), unit);
}

enum {
    FEW = 32,          /* rows or columns that make a product skinny */
    KC_IN_PLACE = 128, /* its B, 64 columns wide, stays in L1 */
    LONG_K_PARTS = 8,
    LONG_K_PART_LEAST = 1024,
    STREAM_ROWS = 16, /* at most: with more, packing B costs less than passing C again and again */
    STREAM_PARTS = 4,
    STREAM_PART_LEAST = 512,
    STREAM_PARTS_COLUMNS = 16384, /* at most: beyond, columns are enough to share out */
};

/* C larger than the caches, written once after little work: written past the caches where its rows allow that. */
static int should_stream(const gemm_product *p, const rung_caches *caches)
{
    int64_t vector_bytes = (int64_t)p->x->vl * 4;
    return p->beta == 0.0f && p->k <= 64 && p->m * p->n * 4 > caches->l3_bytes / 2 && (uintptr_t)p->c % 64 == 0 &&
           p->ldc * 4 % 64 == 0 && vector_bytes >= 32;
}

static int is_dot(const gemm_product *p, gemm_plan *d)
{
    if (!p->trans_a && p->n <= RUNG_DOT_MAX_COLS && (p->trans_b || (p->k >= 64 && p->m >= 16)))
        return 1;
    d->of_b = p->trans_b && p->m <= RUNG_DOT_MAX_COLS;
    return d->of_b;
}

static gemm_path choose_path(const gemm_product *p, gemm_plan *d, const rung_caches *caches)
{
    int64_t a_bytes = p->m * p->k * 4, b_bytes = p->k * p->n * 4;
    if (p->in_order)
        return PATH_PACKED;
    if (is_tiny(p))
        return PATH_DIRECT;
    if (is_dot(p, d))
        return PATH_DOT;
    d->of_b = p->trans_b && p->m <= FEW && p->n > 4 * FEW;
    if (d->of_b || (p->trans_a && p->n <= FEW && p->m > 4 * FEW))
        return PATH_SWAPPED;
    if (!p->trans_b && b_bytes <= caches->l2_bytes / 2 && a_bytes <= caches->l2_bytes / 2)
        return PATH_DIRECT;
    if (p->m * p->n <= 256 * 256 && p->k >= 4096 && p->k >= 16 * (p->m > p->n ? p->m : p->n))
        return PATH_LONG_K;
    if (!p->trans_b && p->m <= STREAM_ROWS)
        return PATH_STREAM;
    if (p->n <= 2 * FEW || (a_bytes <= caches->l2_bytes / 2 && p->n <= 256))
        return PATH_PACK_B;
    return PATH_PACKED;
}

/* The columns of C that stay in a quarter of L2 while B streams. */
static int64_t stream_columns(int64_t rows, int64_t panel, const rung_caches *caches)
{
    return max64(caches->l2_bytes / 4 / (4 * rows) / panel, 8) * panel;
}

/* All columns in one tile: each element of A is read once. */
static void one_group(gemm_plan *d, int64_t n, int64_t k, const rung_cpu_kernel *x)
{
    d->most = (int)divide_up(n, x->vl);
    d->mc = min64(x->max_rows[d->most - 1], 12); /* more rows than an L1 set has ways would collide */
    d->kc = even_block(k, 256, 8);
    d->fetch = 1;
}

/* Each pass over C costs page walks where its rows lie far apart, so k is cut as seldom as L2 allows: a panel of B
 * takes a fifth of it, a block of A a quarter, the slab of B a share of L3. Few rows pass C cheaply: small blocks. */
static void deep_blocks(gemm_plan *d, const gemm_product *p, const rung_caches *caches)
{
    int64_t panel = (int64_t)p->x->nv * p->x->vl;
    int64_t deepest = panel > 32 ? 1024 : 512; /* narrow panels gain nothing, and long sums err more */
    int few = p->m <= 2 * FEW && !p->in_order;
    int64_t kc = few ? 256 : max64(min64(caches->l2_bytes / 5 / (4 * panel), deepest), 256);
    d->kc = even_block(p->k, kc, 8);
    d->mc = max64(caches->l2_bytes / 4 / (4 * d->kc) / p->x->mr, 1) * p->x->mr;
    d->nc = max64(min64(caches->l3_bytes / 4, 4 << 20) / (4 * d->kc) / panel, 1) * panel;
}

gemm_plan rung_gemm_plan(const gemm_product *p, const rung_caches *caches)
{
    const rung_cpu_kernel *x = p->x;
    int64_t panel = (int64_t)x->nv * x->vl;
    gemm_plan d = {.most = x->nv, .split_m = p->m >= p->n, .parts = 1};
    d.path = choose_path(p, &d, caches);
    /* A panel of B takes an eighth of L2, a block of A half, the packed B a share of L3. */
    int64_t kc = max64(min64(caches->l2_bytes / 8 / (4 * panel), 512), 256);
    d.kc = even_block(p->k, kc, 8);
    d.mc = max64(caches->l2_bytes / 2 / (4 * d.kc) / x->mr, 1) * x->mr;
    d.nc = max64(min64(caches->l3_bytes / 4, 4 << 20) / (4 * d.kc) / panel, 1) * panel;
    switch (d.path) {
    case PATH_DIRECT: d.stream = should_stream(p, caches) && d.kc >= p->k; break;
    case PATH_LONG_K:
        d.parts = max64(1, min64(LONG_K_PARTS, p->k / LONG_K_PART_LEAST));
        d.in_place = p->trans_a && !p->trans_b && p->n <= x->vl * RUNG_TILE_MAX_VECTORS;
        if (d.in_place) {
            one_group(&d, p->n, p->k, x);
            d.kc = KC_IN_PLACE;
            break;
        }
        /* fall through */
    case PATH_PACKED:
        deep_blocks(&d, p, caches);
        if (p->m <= 2 * FEW)
            d.split_m = 0;
        d.mc = even_block(p->m, d.mc, x->mr);
        d.nc = even_block(p->n, d.nc, panel);
        d.stream = should_stream(p, caches) && d.kc >= p->k;
        break;
    case PATH_PACK_B:
        d.split_m = 1;
        d.mc = x->mr;
        if (p->n <= x->vl * RUNG_TILE_MAX_VECTORS)
            one_group(&d, p->n, p->k, x);
        break;
    case PATH_DOT: d.split_m = !d.of_b; break;
    case PATH_STREAM:
        d.split_m = 0;
        d.nc = stream_columns(p->m, panel, caches);
        if (p->n <= STREAM_PARTS_COLUMNS)
            d.parts = max64(1, min64(STREAM_PARTS, p->k / STREAM_PART_LEAST));
        break;
    case PATH_SWAPPED:
        d.split_m = !d.of_b;
        d.mc = x->mr;
        d.nc = stream_columns(p->n, panel, caches);
        break;
    }
    return d;
}

int64_t rung_gemm_workspace(const gemm_product *p, const gemm_plan *d, int64_t columns)
{
    int64_t kc = min64(d->kc, p->k), panel = (int64_t)p->x->nv * p->x->vl, floats = 0;
    switch (d->path) {
    case PATH_DIRECT:
    case PATH_STREAM: return 0;
    case PATH_PACK_B: floats = kc * round_up(columns, panel); break;
    case PATH_DOT: floats = round_up(p->k, p->x->vl) * (d->of_b ? p->m : p->n); break;
    case PATH_SWAPPED:
        floats = RUNG_SWAP_STRIP * min64(p->m, p->n) + kc * round_up(min64(p->m, p->n), panel) + 16;
        break;
    case PATH_PACKED:
    case PATH_LONG_K: floats = rung_gemm_packed_a_floats(p, d) + kc * min64(d->nc, round_up(columns, panel)); break;
    }
    return floats + 2 * RUNG_PACK_SLACK;
}
