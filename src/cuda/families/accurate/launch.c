/* Launcher "accurate": products of operands that are split (fp16x3, with a guard) or rounded (TF32) into images first,
 * on workspace that never exceeds the context's limit: larger products go in panels of C. Where no workspace is to be
 * had, the best strict kernel runs instead. */
#include "core/plan.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/driver/chain.h"
#include "cuda/device/f16x3.h"

#include <math.h>
#include <string.h>

enum {
    CLUSTER = 2,
    MIN_K = 64,    /* below, two halves err more than FP32 does: docs/numerics.md */
    ALIGN = 1024,  /* bytes: what wgmma's swizzle asks of an image */
    BAND = 8,      /* cluster tiles of m walked together */
    MAX_SPLIT = 8, /* blocks of a cluster that splits lines across k */
};

/* Least number of terms that must carry a sum (docs/numerics.md). */
static const float min_terms = 2.0f;

/* Measured on one H200 (docs/costs.md). */
static const double launches_us = 10.0, tile_us = 4.0, chain_us = 1.08, tf32_chain_us = 0.75, cut_us = 2.0,
                    part_us = 1.0, split_bytes_us = 3.3e6,
                    ragged_us =
                        4.0; /* tiles at C's edges, lines that are no whole pieces: 1000 takes that longer than 1024 */

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

static int64_t take(int64_t *at, int64_t bytes)
{
    int64_t here = *at;
    *at = round_up(here + bytes, ALIGN);
    return here;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t blocks_a_turn(int64_t lines_pad, int64_t k_blocks, int sms)
{
    return most(1, least(8, lines_pad / F16X3_COLS * k_blocks / (16 * sms)));
}

/* Lines across k: as many blocks as give each warp one piece, which it keeps. */
static int split_cluster(int64_t k_pad)
{
    int cluster = 1;
    while (cluster < MAX_SPLIT && k_pad > F16X3_KB * (F16X3_THREADS / 32) * cluster)
        cluster *= 2;
    return cluster;
}

/* A thread keeps 32 values of its line in registers. */
static int line_warps(int64_t k)
{
    int warps = 1;
    while (warps < 8 && k > 1024 * warps)
        warps *= 2;
    return warps;
}

static accurate_layout lay_out(const rung_kernel *kernel, int64_t m, int64_t n, int64_t k, int sms)
{
    accurate_layout w = {
        .m_pad = round_up(m, F16X3_BM * CLUSTER), .n_pad = round_up(n, kernel->bn), .k_pad = round_up(k, 2 * F16X3_KB)};
    int64_t lines[2] = {w.m_pad, w.n_pad}, at = 0;
    w.tiles_m = w.m_pad / (F16X3_BM * CLUSTER);
    w.tiles_n = w.n_pad / kernel->bn;
    w.blocks = w.tiles_m * CLUSTER * w.tiles_n;
    for (int i = 0; i < 2; i++) {
        w.line[i] = take(&at, lines[i] * (int64_t)sizeof(f16x3_line));
        w.group[i] = take(&at, lines[i] / F16X3_GROUP * (int64_t)sizeof(f16x3_group));
    }
    w.ready = take(&at, sms * 4);
    w.marks = take(&at, w.blocks);
    w.zero_bytes = at;
    w.partial = take(&at, (int64_t)sms * F16X3_BM * kernel->bn * 4);
    for (int i = 0; i < 2; i++)
        w.image[i] = take(&at, lines[i] * w.k_pad * 4);
    w.bytes = at;
    return w;
}

/* The largest panels of C whose workspace fits; m is 0 when none does. */
static accurate_plan choose_panel(const rung_kernel *kernel, int64_t m, int64_t n, int64_t k, int sms, int64_t limit)
{
    accurate_plan p = {m, n, lay_out(kernel, m, n, k, sms)};
    while (p.w.bytes > limit) {
        if (p.m >= p.n && p.m > F16X3_BM * CLUSTER)
            p.m = round_up((p.m + 1) / 2, F16X3_BM * CLUSTER);
        else if (p.n > kernel->bn)
            p.n = round_up((p.n + 1) / 2, kernel->bn);
        else if (p.m > F16X3_BM * CLUSTER)
            p.m = round_up((p.m + 1) / 2, F16X3_BM * CLUSTER);
        else
            return (accurate_plan){0};
        p.w = lay_out(kernel, p.m, p.n, k, sms);
    }
    return p;
}

/* The tiles of the last, partial wave may be cut along k: more clusters take part, but somebody adds the parts. */
typedef struct cut {
    int64_t tiles, clusters; /* 0, 1: none */
    double us;               /* of the whole launch */
} cut;

static double chain_us_of(const rung_kernel *kernel)
{
    return kernel->arith == RUNG_TF32 ? tf32_chain_us : chain_us;
}

static cut choose_cut(const accurate_layout *w, const rung_kernel *kernel, int64_t clusters, int in_order)
{
    int64_t tiles = w->tiles_m * w->tiles_n, chains = w->k_pad / (2 * F16X3_KB), rest = tiles % clusters;
    double chain = chain_us_of(kernel), whole = (double)chains * chain + tile_us;
    double full_waves = (double)(tiles / clusters) * whole;
    cut c = {0, 1, full_waves + (rest ? whole : 0)};
    if (!rest || in_order)
        return c;
    /* Parts of a tile: half as long, twice as many to add; the least sum of both. */
    double parts = fmax(1.0, fmin(sqrt((double)chains * chain / part_us), (double)clusters / (double)rest));
    int64_t sharing = least(clusters, (int64_t)(parts * (double)rest));
    parts = (double)sharing / (double)rest;
    double us = full_waves + (double)chains / parts * chain + tile_us + cut_us + ceil(parts) * part_us;
    return sharing > rest && us < c.us ? (cut){rest, sharing, us} : c;
}

static const char *accurate_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                     const rung_problem *p, rung_choice *choice)
{
    int64_t limit = config->workspace_limit_bytes;
    if (machine->sms < CLUSTER)
        return "needs a cluster of two SMs";
    if (limit < 0)
        return "needs workspace, and the context allows none";
    if (kernel->arith != RUNG_TF32 && p->k < MIN_K)
        return "k is too short: two halves would err more than FP32";
    if (p->k == 0)
        return "nothing to multiply: k or alpha is 0";
    const char *refusal = rung_marked_tiles_refuse(p);
    if (refusal)
        return refusal;
    accurate_plan part = choose_panel(kernel, p->m, p->n, p->k, machine->sms, limit ? limit : (int64_t)4 << 30);
    if (!part.m)
        return "no panel of C fits the context's workspace limit";
    if (p->arrays && (part.m < p->m || part.n < p->n))
        return "pointer arrays do not go in panels, and the workspace limit asks for them";
    accurate_layout w = part.w;
    double panels = (double)((p->m + part.m - 1) / part.m) * (double)((p->n + part.n - 1) / part.n);
    /* Every element of A and B is read, and written as two halves; across k that takes half as long again. */
    double split = (double)((part.m + part.n) * w.k_pad) * 8.0 +
                   4.0 * (double)p->k * (double)((p->trans_a ? part.m : 0) + (p->trans_b ? 0 : part.n));
    cut c = choose_cut(&w, kernel, machine->sms / CLUSTER, p->in_order);
    int ragged = p->m != w.m_pad || p->n != w.n_pad || p->k != w.k_pad;
    choice->cost_us =
        (double)p->batch * panels * (launches_us + split / split_bytes_us + c.us + (ragged ? ragged_us : 0.0));
    rung_note(choice, "split %.0f us, product %.0f us; %.0f panels of %lld tiles, %lld cut along k",
              split / split_bytes_us, c.us, panels, (long long)(w.tiles_m * w.tiles_n), (long long)c.tiles);
    choice->plan.accurate = part;
    choice->workspace_bytes = w.bytes;
    return NULL;
}

/* The memory of one product. */
typedef struct places {
    char *memory, *zeros;
    int kept; /* the zeros are zero already, and are to be left so */
} places;

static void fill_operand(f16x3_operand *o, const accurate_layout *w, places at, int which, int64_t lines, int64_t k,
                         int sms)
{
    int64_t pad = which ? w->n_pad : w->m_pad;
    o->lines = (int32_t)lines;
    o->k = (int32_t)k;
    o->k_blocks = (int32_t)(w->k_pad / F16X3_KB);
    o->row_groups = pad / 8;
    o->image = at.memory + w->image[which];
    o->line = (f16x3_line *)(at.zeros + w->line[which]);
    o->group = (f16x3_group *)(at.zeros + w->group[which]);
    o->turn_blocks = (int32_t)blocks_a_turn(pad, o->k_blocks, sms);
    o->line_warps = line_warps(k);
}

static int64_t split_blocks(const f16x3_operand *o, int cluster)
{
    if (o->k_innermost)
        return o->row_groups * o->line_warps; /* eight warps a block, padded lines in eights */
    return o->row_groups * 8 / F16X3_LINES * cluster;
}

static int64_t turn_blocks(const f16x3_operand *o)
{
    return o->row_groups / (F16X3_COLS / 8) * ((o->k_blocks + o->turn_blocks - 1) / o->turn_blocks);
}

static rung_status launch_split(rung_cuda *cuda, const rung_kernel *kernel, const char *symbol, int64_t blocks,
                                const f16x3_split_args *s)
{
    int across = s->cluster && !(s->a.k_innermost && s->b.k_innermost);
    rung_function function;
    rung_grid grid = {.x = (unsigned)blocks,
                      .y = 1,
                      .z = 1,
                      .threads = F16X3_THREADS,
                      .cluster = across ? (unsigned)s->cluster : 1,
                      .argument_bytes = sizeof *s};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &function));
    return rung_launch(cuda, &function, &grid, s);
}

static int64_t pack_blocks(const f16x3_operand *o)
{
    return o->k_innermost ? o->row_groups * 8 : turn_blocks(o);
}

static rung_status split(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const accurate_layout *w,
                         places at, int entry)
{
    f16x3_split_args s = {.entry = entry, .zero = at.zeros, .zero_words = at.kept ? 0 : w->zero_bytes / 16};
    int sms = cuda->machine->sms;
    fill_operand(&s.a, w, at, 0, p->m, p->k, sms);
    fill_operand(&s.b, w, at, 1, p->n, p->k, sms);
    s.a.x = p->a;
    s.b.x = p->b;
    s.a.x_array = p->a_array;
    s.b.x_array = p->b_array;
    s.a.ld = p->lda;
    s.b.ld = p->ldb;
    s.a.k_innermost = !p->trans_a;
    s.b.k_innermost = p->trans_b;
    if (kernel->arith == RUNG_TF32) {
        s.a_blocks = (int32_t)pack_blocks(&s.a);
        return launch_split(cuda, kernel, "tf32_pack", s.a_blocks + pack_blocks(&s.b), &s);
    }
    if (s.zero_words)
        RUNG_TRY(launch_split(cuda, kernel, "f16x3_clear", (s.zero_words + F16X3_THREADS - 1) / F16X3_THREADS, &s));
    s.cluster = split_cluster(w->k_pad);
    s.a_blocks = (int32_t)split_blocks(&s.a, s.cluster);
    return launch_split(cuda, kernel, "f16x3_split", s.a_blocks + split_blocks(&s.b, s.cluster), &s);
}

static void fill_product(f16x3_args *g, const rung_problem *p, const accurate_layout *w, places at, cut c, int entry)
{
    memset(g, 0, sizeof *g);
    rung_args_fill(&g->g, p);
    g->entry = entry;
    g->min_terms = min_terms;
    g->a_image = at.memory + w->image[0];
    g->b_image = at.memory + w->image[1];
    g->a_row_groups = w->m_pad / 8;
    g->b_row_groups = w->n_pad / 8;
    g->a_line = (const f16x3_line *)(at.zeros + w->line[0]);
    g->b_line = (const f16x3_line *)(at.zeros + w->line[1]);
    g->a_group = (const f16x3_group *)(at.zeros + w->group[0]);
    g->b_group = (const f16x3_group *)(at.zeros + w->group[1]);
    g->k_blocks = (int32_t)(w->k_pad / F16X3_KB);
    g->tiles_m = (int32_t)w->tiles_m;
    g->tiles_n = (int32_t)w->tiles_n;
    g->band = BAND;
    g->split_tiles = (int32_t)c.tiles;
    g->split_clusters = (int32_t)c.clusters;
    g->partial = (float *)(at.memory + w->partial);
    g->ready = (uint32_t *)(at.zeros + w->ready);
    g->marks = (uint8_t *)(at.zeros + w->marks);
}

/* What the product marked and left alone. */
static rung_status strict_tiles(rung_cuda *cuda, const rung_problem *p, const accurate_layout *w, places at, int entry)
{
    rung_problem q = *p;
    if (q.arrays) {
        q.a_array += entry;
        q.b_array += entry;
        q.c_array += entry;
    }
    return rung_marked_tiles_run(cuda, &q, (uint8_t *)(at.zeros + w->marks), at.zeros, at.kept ? w->marks / 16 : 0);
}

/* One product that fits the workspace. */
static rung_status launch_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                const accurate_plan *part, places at, int entry)
{
    int is_largest = p->m == part->m && p->n == part->n;
    accurate_layout w = is_largest ? part->w : lay_out(kernel, p->m, p->n, p->k, cuda->machine->sms);
    int64_t clusters = cuda->machine->sms / CLUSTER, tiles = w.tiles_m * w.tiles_n;
    cut c = choose_cut(&w, kernel, clusters, p->in_order);
    rung_function function;
    f16x3_args g;
    RUNG_TRY(split(cuda, kernel, p, &w, at, entry));
    fill_product(&g, p, &w, at, c, entry);
    if (kernel->arith != RUNG_TF32)
        RUNG_TRY(rung_guard_counts_at(cuda, &g.counts));
    /* No more clusters than have a share of the cut tiles or a whole one. */
    int64_t busy = least(clusters, most(tiles - c.tiles, c.tiles ? c.clusters : 0));
    rung_grid grid = {.x = (unsigned)(busy * CLUSTER),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .cluster = CLUSTER,
                      .argument_bytes = sizeof g};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    RUNG_TRY(rung_launch(cuda, &function, &grid, &g));
    if (kernel->arith == RUNG_TF32)
        return RUNG_SUCCESS;
    return strict_tiles(cuda, p, &w, at, entry);
}

/* Where the stream is recording, there are no kept zeros, and the recorded graph takes the launches one by one. */
static rung_status run_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                             const accurate_plan *part, places at, int entry)
{
    if (at.kept)
        rung_chain_begin(cuda);
    rung_status status = launch_panel(cuda, kernel, p, part, at, entry);
    rung_status queued = rung_chain_end(cuda, status == RUNG_SUCCESS);
    return status == RUNG_SUCCESS ? queued : status;
}

static rung_status run_entry(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                             const accurate_plan *part, places at, int entry)
{
    for (int64_t i = 0; i < p->m; i += part->m)
        for (int64_t j = 0; j < p->n; j += part->n) {
            rung_problem q = *p;
            q.m = least(part->m, p->m - i);
            q.n = least(part->n, p->n - j);
            q.batch = 1;
            if (!p->arrays) {
                q.a += entry * p->stride_a + (p->trans_a ? i : i * p->lda);
                q.b += entry * p->stride_b + (p->trans_b ? j * p->ldb : j);
                q.c += entry * p->stride_c + i * p->ldc + j;
            }
            if (p->bias_kind)
                q.bias += p->bias_kind == RUNG_BIAS_PER_ROW ? i : j;
            RUNG_TRY(run_panel(cuda, kernel, &q, part, at, entry));
        }
    return RUNG_SUCCESS;
}

static rung_status run_strict(rung_cuda *cuda, const rung_problem *p)
{
    rung_problem q = *p;
    rung_choice choice;
    q.math = RUNG_STRICT;
    RUNG_TRY(rung_decide(&rung_cuda_backend, cuda, &q, &choice));
    return rung_launcher_of(choice.kernel)->run(cuda, &choice, &q);
}

static rung_status accurate_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const accurate_plan *part = &choice->plan.accurate;
    int64_t zero_bytes = choice->kernel->arith == RUNG_TF32 ? 0 : part->w.zero_bytes;
    void *memory, *zeros;
    rung_status status = rung_workspace_get_with_zeros(cuda, choice->workspace_bytes, zero_bytes, &memory, &zeros);
    if (status == RUNG_OUT_OF_MEMORY)
        return run_strict(cuda, p);
    places at = {.memory = memory, .zeros = zeros ? zeros : memory, .kept = zeros != NULL};
    for (int64_t entry = 0; status == RUNG_SUCCESS && entry < p->batch; entry++)
        status = run_entry(cuda, choice->kernel, p, part, at, (int)entry);
    rung_workspace_put_with_zeros(cuda, memory, zeros, status == RUNG_SUCCESS);
    return status;
}

const rung_launcher rung_launch_accurate = {"accurate", accurate_estimate, accurate_run, NULL};
