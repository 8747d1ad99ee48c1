/* Launcher "accurate": products of operands that are split (fp16x3, with a guard) or rounded (TF32) into images first,
 * on workspace that never exceeds the context's limit: larger products go in panels. Where no workspace is to be had,
 * the best strict kernel runs instead. */
#include "core/plan.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/accurate/recall.h"
#include "cuda/driver/chain.h"
#include "cuda/device/f16x3.h"
#include "cuda/host/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CLUSTER = 2,
    MIN_K = 64,      /* with fewer k two halves err more than FP32 does: docs/numerics.md */
    ALIGN = 1024,    /* bytes: wgmma's swizzle asks an image to begin at a multiple of it */
    BAND = 8,        /* cluster tiles of m walked together */
    MAX_SPLIT = 8,   /* so many blocks at most of a cluster that splits lines across k */
    FEW_BLOCKS = 16, /* with fewer blocks of C, those that are safe are always multiplied on tensor cores */
};

/* Words that are zero between products: how many blocks of a look have looked, what it decided, whether it refused all
 * blocks of C; whether any line is wild. */
enum { ARRIVED, DECIDED, REFUSED, WILD, WORDS };

/* So many terms at least must carry a sum (docs/numerics.md). */
static const float min_terms = 2.0f;

/* Large tiles compute a product that is refused as a whole where they are predicted to take less than so much of the
 * marked tiles' time: they are a launch more, also for products that are not refused. */
static const double large_factor = 0.97;

/* Measured on one H200 (docs/costs.md). */
static const double launches_us = 11.5, tile_us = 4.0, chain_us = 1.08, tf32_chain_us = 0.75, cut_us = 2.0,
                    part_us = 1.0, split_bytes_us = 3.3e6,
                    ragged_us = 2.5; /* tiles at C's edges, and lines that do not fill their pieces */

/* Lines along k that are longer than what a block's threads keep are read twice, few blocks at a time. One such block
 * reads so many bytes a microsecond. */
static const double long_line_rate = 18e3;

/* So much longer takes the end of a tile that reads C. */
static const double beta_us = 2.5;

/* So much longer takes the end of a tile where rows of C lie at odd addresses: of one that is done whole, of one that
 * is cut; and of any tile where they lie at multiples of 8 bytes and not of 16. */
static const double odd_end_us = 4.0, odd_cut_us = 3.0, half_odd_end_us = 2.0;

static int64_t take(int64_t *at, int64_t bytes)
{
    int64_t here = *at;
    *at = rung_round_up(here + bytes, ALIGN);
    return here;
}

static int64_t blocks_a_turn(int64_t lines_pad, int64_t k_blocks, int sms)
{
    return rung_max64(1, rung_min64(8, lines_pad / F16X3_COLS * k_blocks / (16 * sms)));
}

/* Returns the blocks of a cluster that splits lines across k: as many as give each warp one piece, which it keeps. */
static int split_cluster(int64_t k_pad)
{
    int cluster = 1;
    while (cluster < MAX_SPLIT && k_pad > F16X3_KB * (F16X3_THREADS / 32) * cluster)
        cluster *= 2;
    return cluster;
}

/* Returns the number of threads that share a line, as a power of two. A thread keeps 32 values of its line in
 * registers. Where so few threads a line would not fill the chip, more share one, up to a warp. Where bits may depend
 * on k alone it is always a warp at least, since the number of threads decides in which order a line's magnitudes are
 * added. */
static int line_bits(int64_t k, int64_t lines, int sms, int in_order)
{
    int bits = 3;
    while (F16X3_THREADS >> bits > 1 && k > 32 << bits)
        bits++;
    while (bits < 5 && (in_order || lines << bits < (int64_t)sms * 3 * F16X3_THREADS))
        bits++;
    return bits;
}

/* Lays the workspace out. Of what is zero between launches, that of the kept operand comes first. */
static accurate_layout lay_out(const rung_kernel *kernel, int64_t m, int64_t n, int64_t k, int kept, int sms)
{
    accurate_layout w = {.m_pad = rung_round_up(m, F16X3_BM * CLUSTER),
                         .n_pad = rung_round_up(n, kernel->bn),
                         .k_pad = rung_round_up(k, 2 * F16X3_KB)};
    int64_t lines[2] = {w.m_pad, w.n_pad}, at = 0;
    w.tiles_m = w.m_pad / (F16X3_BM * CLUSTER);
    w.tiles_n = w.n_pad / kernel->bn;
    w.blocks = w.tiles_m * CLUSTER * w.tiles_n;
    for (int turn = 0; turn < 2; turn++) {
        int i = turn ? 1 - kept : kept;
        w.line[i] = take(&at, lines[i] * (int64_t)sizeof(f16x3_line));
        w.group[i] = take(&at, lines[i] / F16X3_GROUP * (int64_t)sizeof(f16x3_group));
    }
    w.ready = take(&at, sms * 4);
    w.words = take(&at, WORDS * 4);
    w.zero_words = at / 16;
    w.tickets = take(&at, rung_marked_blocks_ticket_bytes(sms));
    w.zero_bytes = at;
    w.marks = take(&at, w.blocks + 2);
    w.list = take(&at, w.blocks * 4);
    w.seen = take(&at, F16X3_WITNESSES * (int64_t)sizeof(f16x3_seen));
    w.partial = take(&at, rung_max64((int64_t)sms * F16X3_BM * kernel->bn * 4, rung_marked_blocks_partial_bytes(sms)));
    for (int i = 0; i < 2; i++)
        w.image[i] = take(&at, lines[i] * w.k_pad * 4);
    w.bytes = at;
    return w;
}

/* The tiles of the last round, which is not full, may be cut along k: more clusters take part then, but one has to add
 * the parts. */
typedef struct cut {
    int64_t tiles, clusters; /* so many tiles are cut, over so many clusters; 0 and 1: none */
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
    /* With more parts a chain is shorter and more is to be added: this number makes the sum of both least. */
    double parts =
        rung_longer(1.0, rung_lesser(sqrt((double)chains * chain / part_us), (double)clusters / (double)rest));
    int64_t sharing = rung_min64(clusters, (int64_t)(parts * (double)rest));
    parts = (double)sharing / (double)rest;
    double us = full_waves + (double)chains / parts * chain + tile_us + cut_us + ceil(parts) * part_us;
    return sharing > rest && us < c.us ? (cut){rest, sharing, us} : c;
}

static int64_t parts_of(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

/* Returns how long all panels of a plan take. */
typedef struct panels {
    int64_t count;
    double split_us, us; /* the split, and all of it */
    cut last;
} panels;

static panels cost_panels(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                          const accurate_plan *part)
{
    const accurate_layout *w = &part->w;
    const int64_t rows = parts_of(p->m, part->m), columns = parts_of(p->n, part->n), depths = parts_of(p->k, part->k);
    /* Every element of A and B is read, and written as two halves; for lines across k that takes half as long again. */
    const double depth = (double)depths * (double)w->k_pad, a_passes = part->kept ? (double)columns : 1.0,
                 b_passes = part->kept ? 1.0 : (double)rows, m = (double)p->m * a_passes, n = (double)p->n * b_passes;
    const double bytes = (m + n) * depth * 8.0 + 4.0 * (double)p->k * ((p->trans_a ? m : 0) + (p->trans_b ? 0 : n));
    const double along = (p->trans_a ? 0 : m) + (p->trans_b ? n : 0), slots = 3.0 * machine->sms,
                 again_us = w->k_pad > 32 * F16X3_THREADS ? ceil(along / slots) * depth * 12.0 / long_line_rate : 0.0;
    const cut last = choose_cut(w, kernel, machine->sms / CLUSTER, p->in_order);
    const int64_t whole_rounds = parts_of(w->tiles_m * w->tiles_n - last.tiles, machine->sms / CLUSTER);
    const double odd = p->align_c >= 16  ? 0.0
                       : p->align_c >= 8 ? half_odd_end_us * (double)(whole_rounds + (last.tiles != 0))
                                         : odd_end_us * (double)whole_rounds + (last.tiles ? odd_cut_us : 0.0);
    const double reading = p->beta_zero && depths == 1 ? 0.0 : beta_us * (double)(whole_rounds + (last.tiles != 0));
    const int ragged = p->m != w->m_pad || p->n != w->n_pad || p->k != w->k_pad;
    panels s = {.count = rows * columns * depths, .split_us = bytes / split_bytes_us + again_us, .last = last};
    s.us = (double)s.count * (launches_us + last.us + odd + reading + (ragged ? ragged_us : 0.0)) + s.split_us +
           (double)(depths - 1) * 8.0 * (double)p->m * (double)p->n / write_rate; /* C is read and written again */
    return s;
}

/* Makes a plan with the kept operand in `parts`, and as much of the other one as there is room for; m is 0 where there
 * is no room. */
static accurate_plan panel_of(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, int kept,
                              int64_t parts, int64_t k, int64_t limit)
{
    const int64_t units[2] = {F16X3_BM * CLUSTER, kernel->bn}, sizes[2] = {p->m, p->n};
    const int other = 1 - kept;
    int64_t of[2];
    of[kept] = rung_min64(rung_round_up(parts_of(sizes[kept], parts), units[kept]), sizes[kept]);
    of[other] = units[other];
    accurate_layout w = lay_out(kernel, of[0], of[1], k, kept, machine->sms);
    if (w.bytes > limit)
        return (accurate_plan){0};
    /* A line of the other operand takes its image, what is known of it, and its blocks' marks. */
    const int64_t line_bytes = w.k_pad * 4 + (int64_t)sizeof(f16x3_line) + 64 + of[kept] / units[kept];
    of[other] += (limit - w.bytes) / line_bytes / units[other] * units[other];
    for (;; of[other] -= units[other]) {
        /* The panels are equal. */
        int64_t size = parts_of(sizes[other], parts_of(sizes[other], of[other]));
        size = rung_min64(rung_round_up(size, units[other]), sizes[other]);
        int64_t m = kept ? size : of[0], n = kept ? of[1] : size;
        w = lay_out(kernel, m, n, k, kept, machine->sms);
        if (w.bytes <= limit)
            return (accurate_plan){.m = m, .n = n, .k = k, .kept = kept, .w = w};
    }
}

enum { SHORT_PANEL = 1024, MOST_DEPTHS = 16 };

/* Chooses the cheapest panels whose workspace fits: of C, of k, or both. Sums that are added up in C are rounded there,
 * so k stays whole where bits may depend on k alone, and where beta is not known here. */
static accurate_plan choose_panel(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                  int64_t limit)
{
    accurate_plan best = {.m = p->m, .n = p->n, .k = p->k, .w = lay_out(kernel, p->m, p->n, p->k, 0, machine->sms)};
    double best_us = HUGE_VAL;
    if (best.w.bytes <= limit)
        return best;
    best.m = 0;
    for (int64_t depths = 1; depths <= MOST_DEPTHS; depths++) {
        const int64_t k = depths == 1 ? p->k : rung_round_up(parts_of(p->k, depths), 2 * F16X3_KB);
        if (depths > 1 && (p->in_order || p->device_scalars || k < SHORT_PANEL))
            break;
        for (int kept = 0; kept < 2; kept++) {
            const int64_t unit = kept ? kernel->bn : F16X3_BM * CLUSTER,
                          most_parts = parts_of(kept ? p->n : p->m, unit);
            for (int64_t parts = 1; parts <= most_parts; parts += 1 + parts / 8) {
                accurate_plan plan = panel_of(machine, kernel, p, kept, parts, k, limit);
                double us = plan.m ? cost_panels(machine, kernel, p, &plan).us : HUGE_VAL;
                if (us < best_us) {
                    best = plan;
                    best_us = us;
                } else if (plan.m && us > 2 * best_us) {
                    break;
                }
            }
        }
    }
    return best;
}

/* Returns what a panel may take. Where the context sets no limit that is less than a product may borrow, since memory
 * of the pool beyond what is kept is given back after the product (driver/gpu.c). Pointer arrays do not go in panels.
 */
static int64_t limit_of(const rung_config *config, const rung_problem *p)
{
    const int64_t panel_bytes = (int64_t)512 << 20;
    return config->workspace_limit_bytes || p->arrays ? rung_workspace_limit(config) : panel_bytes;
}

/* Returns whether what the guard says of this product is worth recalling: a product of one panel, where both kernels
 * see all of both operands, and each block of lines has room for its witnesses. */
static int may_look(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part)
{
    return kernel->arith != RUNG_TF32 && p->batch == 1 && !p->arrays && part->m == p->m && part->n == p->n &&
           part->k == p->k && p->k <= F16X3_LOOK_K &&
           2 * (parts_of(p->m, F16X3_BM) + parts_of(p->n, F16X3_BM)) <= F16X3_WITNESSES;
}

/* Returns how many safe blocks are worth to split the operands and to multiply on tensor cores, where strict tiles
 * would take `strict_us` for all blocks: with fewer, those too are left to strict tiles. Safe blocks are thought to be
 * spread over C, so that each is the only one of its cluster's tile. */
static int64_t least_safe_of(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part,
                             double split_us, double strict_us, int64_t clusters)
{
    const int64_t blocks = parts_of(part->m, F16X3_BM) * parts_of(part->n, F16X3_BM),
                  chains = part->w.k_pad / (2 * F16X3_KB);
    const double round_us = (double)chains * chain_us_of(kernel) + tile_us, block_us = strict_us / (double)blocks;
    if (blocks < FEW_BLOCKS || p->in_order || isinf(strict_us))
        return 1;
    for (int64_t rounds = 1; (rounds - 1) * clusters < blocks; rounds++) {
        const double safe = (launches_us + split_us + (double)rounds * round_us) / block_us;
        if (safe <= (double)(rounds * clusters))
            return rung_max64((int64_t)ceil(safe), (rounds - 1) * clusters + 1);
    }
    return blocks;
}

/* Decides what becomes of products that the guard refuses, all or for the most part. */
static void plan_refused(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                         const rung_problem *p, double split_us, accurate_plan *part)
{
    rung_problem q = *p;
    double us, large_us = HUGE_VAL;
    part->least_safe = 1;
    if (kernel->arith == RUNG_TF32 || p->arrays)
        return;
    q.m = part->m, q.n = part->n, q.k = part->k;
    q.batch = 1;
    us = rung_marked_blocks_us(machine, config, &q);
    if (q.m == p->m && q.n == p->n && q.k == p->k && !p->in_order && p->align_a >= 16 && p->align_b >= 16)
        part->large = rung_refused_large_plan(machine, config, &q, &part->large_plan, &large_us);
    if (!(large_us < large_factor * us) || part->large_plan.bytes_partials > part->w.bytes - part->w.image[0])
        part->large = NULL;
    part->least_safe = least_safe_of(kernel, p, part, may_look(kernel, p, part) ? split_us : 0.0,
                                     part->large ? large_us : us, machine->sms / CLUSTER);
}

static const char *accurate_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                     const rung_problem *p, rung_choice *choice)
{
    if (machine->sms < CLUSTER)
        return "needs a cluster of two SMs";
    if (!rung_workspace_limit(config))
        return "needs workspace, and the context allows none";
    if (kernel->arith != RUNG_TF32 && p->k < MIN_K)
        return "k is too short: two halves would err more than FP32";
    if (p->k == 0)
        return "nothing to multiply: k or alpha is 0";
    const char *refusal = rung_marked_tiles_refuse(p);
    if (refusal)
        return refusal;
    accurate_plan part = choose_panel(machine, kernel, p, limit_of(config, p));
    if (!part.m)
        return "no panel of C fits the context's workspace limit";
    if (p->arrays && (part.m < p->m || part.n < p->n || part.k < p->k))
        return "pointer arrays do not go in panels, and the workspace limit asks for them";
    panels s = cost_panels(machine, kernel, p, &part);
    choice->cost_us = (double)p->batch * s.us;
    rung_note(choice, "split %.0f us, product %.0f us; %lld panels of %lld tiles, %lld cut along k", s.split_us,
              s.last.us, (long long)s.count, (long long)(part.w.tiles_m * part.w.tiles_n), (long long)s.last.tiles);
    plan_refused(machine, config, kernel, p, s.split_us / (double)s.count, &part);
    choice->plan.accurate = part;
    choice->workspace_bytes = part.w.bytes;
    return NULL;
}

/* This is the memory of one product. */
typedef struct places {
    char *memory, *zeros;
    int kept;        /* the zeros are there already, and the launch leaves zeros */
    int first, last; /* of the panels that share the image of the plan's kept operand */
    int64_t other;   /* where the zeros of the other operand, and of the product, begin */
    int look;        /* the operands are looked at first */
    rung_recall_place recalled;
} places;

/* Returns the least power of two above k, as its logarithm. */
static int log2_above(int64_t k)
{
    int log2 = 0;
    while (k >> log2)
        log2++;
    return log2;
}

static void fill_operand(f16x3_operand *o, const accurate_layout *w, places at, int which, const rung_problem *p,
                         int sms)
{
    const int64_t pad = which ? w->n_pad : w->m_pad, lines = which ? p->n : p->m, k = p->k;
    o->x = which ? p->b : p->a;
    o->x_array = which ? p->b_array : p->a_array;
    o->ld = which ? p->ldb : p->lda;
    o->k_innermost = which ? p->trans_b : !p->trans_a;
    o->lines = (int32_t)lines;
    o->k = (int32_t)k;
    o->k_blocks = (int32_t)(w->k_pad / F16X3_KB);
    o->row_groups = pad / 8;
    o->image = at.memory + w->image[which];
    o->line = (f16x3_line *)(at.zeros + w->line[which]);
    o->group = (f16x3_group *)(at.zeros + w->group[which]);
    o->turn_blocks = (int32_t)blocks_a_turn(pad, o->k_blocks, sms);
    o->line_bits = line_bits(k, lines, sms, p->in_order);
    o->wild = (uint32_t *)(at.zeros + w->words) + WILD;
    /* Any two lines below these limits make a safe block: the guard's rules, with both lines alike. */
    o->tame_peak = (float)(0.999 / sqrt(min_terms * (double)k));
    o->wild_bits = (uint32_t)((127 + 254 - 2 - log2_above(k)) / 2 + 1) << 23;
    if (at.recalled.witness)
        o->witness = at.recalled.witness + (which ? 2 * parts_of(p->m, F16X3_BM) : 0);
    o->number = at.recalled.number;
}

static int64_t split_blocks(const f16x3_operand *o, int cluster)
{
    if (o->k_innermost)
        return (o->row_groups * 8 << o->line_bits) / F16X3_THREADS;
    return o->row_groups * 8 / F16X3_LINES * cluster;
}

static int64_t turn_blocks(const f16x3_operand *o)
{
    return o->row_groups / (F16X3_COLS / 8) * ((o->k_blocks + o->turn_blocks - 1) / o->turn_blocks);
}

/* Launches a kernel that splits, or a pass beside it. Its argument begins with `s`. */
static rung_status launch_split(rung_cuda *cuda, const rung_kernel *kernel, const char *symbol, int64_t blocks,
                                const f16x3_split_args *s, size_t argument_bytes)
{
    int across = s->cluster && !(s->a.k_innermost && s->b.k_innermost);
    rung_function function;
    rung_grid grid = {.x = (unsigned)blocks,
                      .y = 1,
                      .z = 1,
                      .threads = F16X3_THREADS,
                      .cluster = across ? (unsigned)s->cluster : 1,
                      .argument_bytes = (unsigned)argument_bytes};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &function));
    return rung_launch(cuda, &function, &grid, s);
}

static int64_t pack_blocks(const f16x3_operand *o)
{
    return o->k_innermost ? o->row_groups * 8 : turn_blocks(o);
}

/* Returns the word that says, after a look, that all blocks are refused; NULL without a look. */
static uint32_t *refused_word(const accurate_layout *w, places at)
{
    return at.look ? (uint32_t *)(at.zeros + w->words) + REFUSED : NULL;
}

/* Looks at the operands of a product that is one panel before it splits them, over so many blocks. */
static rung_status look(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part,
                        const accurate_layout *w, places at, const f16x3_split_args *split, int64_t blocks)
{
    uint32_t *words = (uint32_t *)(at.zeros + w->words);
    f16x3_look_args s = {.split = *split,
                         .rows = (int32_t)parts_of(p->m, F16X3_BM),
                         .columns = (int32_t)parts_of(p->n, F16X3_BM),
                         .any = (int32_t)w->blocks,
                         .least_safe = (int32_t)part->least_safe,
                         .min_terms = min_terms,
                         .seen = (f16x3_seen *)(at.memory + w->seen),
                         .marks = (uint8_t *)(at.memory + w->marks),
                         .arrived = words + ARRIVED,
                         .decided = words + DECIDED,
                         .refused = words + REFUSED,
                         .last = at.recalled.last,
                         .told = at.recalled.told,
                         .in_vain = at.recalled.in_vain};
    s.blocks = (int32_t)rung_round_up(2 * (s.rows + s.columns), split->cluster);
    RUNG_TRY(rung_guard_counts_at(cuda, &s.counts));
    return launch_split(cuda, kernel, "f16x3_look", s.blocks + blocks, &s.split, sizeof s);
}

/* Splits the operands of a panel: the kept one for the first of the panels that share its image, the other one for
 * each. */
static rung_status split(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part,
                         const accurate_layout *w, places at, int entry)
{
    const int kept = part->kept;
    const int64_t from = at.first ? 0 : at.other;
    f16x3_split_args s = {.entry = entry,
                          .zero = at.zeros + from,
                          .zero_words = at.kept ? 0 : (w->zero_bytes - from) / 16,
                          .marks = (void *)(at.memory + w->marks),
                          .mark_words = (w->blocks + 2 + 15) / 16};
    int sms = cuda->machine->sms;
    fill_operand(&s.a, w, at, 0, p, sms);
    fill_operand(&s.b, w, at, 1, p, sms);
    const int with_a = at.first || kept == 1, with_b = at.first || kept == 0;
    if (kernel->arith == RUNG_TF32) {
        s.a_blocks = with_a ? (int32_t)pack_blocks(&s.a) : 0;
        return launch_split(cuda, kernel, "tf32_pack", s.a_blocks + (with_b ? pack_blocks(&s.b) : 0), &s, sizeof s);
    }
    if (s.zero_words)
        RUNG_TRY(launch_split(cuda, kernel, "f16x3_clear", (s.zero_words + F16X3_THREADS - 1) / F16X3_THREADS, &s,
                              sizeof s));
    s.cluster = split_cluster(w->k_pad);
    s.a_blocks = with_a ? (int32_t)split_blocks(&s.a, s.cluster) : 0;
    const int64_t blocks = s.a_blocks + (with_b ? split_blocks(&s.b, s.cluster) : 0);
    return at.look ? look(cuda, kernel, p, part, w, at, &s, blocks)
                   : launch_split(cuda, kernel, "f16x3_split", blocks, &s, sizeof s);
}

static int64_t blocks_of(int64_t m, int64_t n)
{
    return parts_of(m, F16X3_BM) * parts_of(n, F16X3_BM);
}

static f16x3_guard guard_of(const rung_problem *p, const accurate_plan *part, const accurate_layout *w, places at)
{
    return (f16x3_guard){
        .a = (const f16x3_group *)(at.zeros + w->group[0]),
        .b = (const f16x3_group *)(at.zeros + w->group[1]),
        .wild = (const uint32_t *)(at.zeros + w->words) + WILD,
        .refused = refused_word(w, at),
        .rows = (int32_t)parts_of(p->m, F16X3_BM),
        .columns = (int32_t)parts_of(p->n, F16X3_BM),
        .k = (int32_t)p->k,
        .least_safe = (int32_t)rung_max64(1, part->least_safe * blocks_of(p->m, p->n) / blocks_of(part->m, part->n)),
        .min_terms = min_terms};
}

static void fill_product(f16x3_args *g, const rung_problem *p, const accurate_plan *part, const accurate_layout *w,
                         places at, cut c, int entry)
{
    memset(g, 0, sizeof *g);
    rung_args_fill(&g->g, p);
    g->entry = entry;
    g->guard = guard_of(p, part, w, at);
    g->a_image = at.memory + w->image[0];
    g->b_image = at.memory + w->image[1];
    g->a_row_groups = w->m_pad / 8;
    g->b_row_groups = w->n_pad / 8;
    g->a_line = (const f16x3_line *)(at.zeros + w->line[0]);
    g->b_line = (const f16x3_line *)(at.zeros + w->line[1]);
    g->k_blocks = (int32_t)(w->k_pad / F16X3_KB);
    g->tiles_m = (int32_t)w->tiles_m;
    g->tiles_n = (int32_t)w->tiles_n;
    g->band = BAND;
    g->split_tiles = (int32_t)c.tiles;
    g->split_clusters = (int32_t)c.clusters;
    g->partial = (float *)(at.memory + w->partial);
    g->ready = (uint32_t *)(at.zeros + w->ready);
    g->marks = (uint8_t *)(at.memory + w->marks);
}

/* Computes what the product marked and left alone. */
static rung_status strict_tiles(rung_cuda *cuda, const rung_problem *p, const accurate_plan *part,
                                const accurate_layout *w, places at, int entry)
{
    rung_problem q = *p;
    if (q.arrays) {
        q.a_array += entry;
        q.b_array += entry;
        q.c_array += entry;
    }
    const int64_t from = at.last ? 0 : at.other;
    float *copies[2]; /* an image has room for its operand's copy, and nobody reads it any more; the kept operand's only
                         after the last panel */
    copies[part->kept] = at.last ? (float *)(at.memory + w->image[part->kept]) : NULL;
    copies[1 - part->kept] = (float *)(at.memory + w->image[1 - part->kept]);
    rung_marked marked = {.marks = (uint8_t *)(at.memory + w->marks),
                          .any = (uint8_t *)(at.memory + w->marks) + w->blocks,
                          .all = (uint8_t *)(at.memory + w->marks) + w->blocks + 1,
                          .list = (int32_t *)(at.memory + w->list),
                          .partials = (float *)(at.memory + w->partial),
                          .tickets = (uint32_t *)(at.zeros + w->tickets),
                          .zero = at.zeros + from,
                          .zero_words = at.kept ? w->zero_words - from / 16 : 0,
                          .copies = {copies[0], copies[1]},
                          .last = at.recalled.last,
                          .told = at.recalled.told};
    if (!rung_marked_blocks_fit(&q, &marked))
        return rung_marked_tiles_run(cuda, &q, &marked);
    if (part->large) {
        const f16x3_guard guard = guard_of(p, part, w, at);
        marked.elsewhere = 1;
        /* Where all blocks are refused nobody reads the images. */
        RUNG_TRY(rung_refused_large_run(cuda, part->large, &q, &part->large_plan, &guard,
                                        (float *)(at.memory + w->image[0]), marked.tickets));
    }
    return rung_marked_blocks_run(cuda, &q, &marked);
}

/* Returns the layout of a panel with sizes of its own, in the places of the largest panel. */
static accurate_layout layout_of(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part, int sms)
{
    accurate_layout w = part->w, own = lay_out(kernel, p->m, p->n, p->k, part->kept, sms);
    w.m_pad = own.m_pad, w.n_pad = own.n_pad, w.k_pad = own.k_pad;
    w.tiles_m = own.tiles_m, w.tiles_n = own.tiles_n, w.blocks = own.blocks;
    return w;
}

/* Launches one product that fits the workspace. */
static rung_status launch_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                const accurate_plan *part, places at, int entry)
{
    accurate_layout w = layout_of(kernel, p, part, cuda->machine->sms);
    int64_t clusters = cuda->machine->sms / CLUSTER, tiles = w.tiles_m * w.tiles_n;
    cut c = choose_cut(&w, kernel, clusters, p->in_order);
    rung_function function;
    f16x3_args g;
    RUNG_TRY(split(cuda, kernel, p, part, &w, at, entry));
    fill_product(&g, p, part, &w, at, c, entry);
    if (kernel->arith != RUNG_TF32)
        RUNG_TRY(rung_guard_counts_at(cuda, &g.counts));
    /* There are no more clusters than have a share of the cut tiles or a whole one. */
    int64_t busy = rung_min64(clusters, rung_max64(tiles - c.tiles, c.tiles ? c.clusters : 0));
    rung_grid grid = {.x = (unsigned)(busy * CLUSTER),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .cluster = CLUSTER,
                      .overlaps = 1,
                      .argument_bytes = sizeof g};
    char symbol[64]; /* the form for rows of C at odd addresses has a name of its own */
    snprintf(symbol, sizeof symbol, "%s%s", kernel->name, p->align_c < 8 ? "_u" : "");
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &function));
    RUNG_TRY(rung_launch(cuda, &function, &grid, &g));
    if (kernel->arith == RUNG_TF32)
        return RUNG_SUCCESS;
    return strict_tiles(cuda, p, part, &w, at, entry);
}

/* Runs a panel. Where the stream is recording there are no kept zeros, and the recorded graph takes the launches one by
 * one. */
static rung_status run_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                             const accurate_plan *part, places at, int entry)
{
    if (at.kept)
        rung_chain_begin(cuda);
    rung_status status = launch_panel(cuda, kernel, p, part, at, entry);
    rung_status queued = rung_chain_end(cuda, status == RUNG_SUCCESS);
    return status == RUNG_SUCCESS ? queued : status;
}

/* Returns the product of one panel, of C from (i, j) on and of k from l on. Later panels of k add to what earlier ones
 * left in C. */
static rung_problem panel_at(const rung_problem *p, const accurate_plan *part, int entry, int64_t i, int64_t j,
                             int64_t l)
{
    rung_problem q = *p;
    q.m = rung_min64(part->m, p->m - i);
    q.n = rung_min64(part->n, p->n - j);
    q.k = rung_min64(part->k, p->k - l);
    q.batch = 1;
    if (!p->arrays) {
        q.a += entry * p->stride_a + (p->trans_a ? i + l * p->lda : i * p->lda + l);
        q.b += entry * p->stride_b + (p->trans_b ? j * p->ldb + l : j + l * p->ldb);
        q.c += entry * p->stride_c + i * p->ldc + j;
    }
    if (p->bias_kind)
        q.bias += p->bias_kind == RUNG_BIAS_PER_ROW ? i : j;
    if (l > 0) {
        q.beta = 1.0f;
        q.beta_zero = 0;
    }
    if (l + q.k < p->k) {
        q.bias_kind = RUNG_NO_BIAS;
        q.activation = RUNG_IDENTITY;
    }
    return q;
}

static rung_status run_entry(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                             const accurate_plan *part, places at, int entry)
{
    const int64_t sizes[2] = {p->m, p->n}, steps[2] = {part->m, part->n};
    const int kept = part->kept, other = 1 - kept;
    int64_t from[2];
    at.other = part->w.line[other];
    for (int64_t l = 0; l < p->k; l += part->k)
        for (from[kept] = 0; from[kept] < sizes[kept]; from[kept] += steps[kept])
            for (from[other] = 0; from[other] < sizes[other]; from[other] += steps[other]) {
                rung_problem q = panel_at(p, part, entry, from[0], from[1], l);
                at.first = from[other] == 0;
                at.last = from[other] + steps[other] >= sizes[other];
                RUNG_TRY(run_panel(cuda, kernel, &q, part, at, entry));
            }
    return RUNG_SUCCESS;
}

static rung_status accurate_run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const accurate_plan *part = &choice->plan.accurate;
    int64_t zero_bytes = choice->kernel->arith == RUNG_TF32 ? 0 : part->w.zero_bytes;
    void *memory, *zeros;
    rung_status status = rung_workspace_get_with_zeros(cuda, choice->workspace_bytes, zero_bytes, &memory, &zeros);
    if (status != RUNG_SUCCESS)
        return status;
    places at = {.memory = memory, .zeros = zeros ? zeros : memory, .kept = zeros != NULL};
    if (at.kept && may_look(choice->kernel, p, part))
        at.look = rung_recall(cuda, p, &at.recalled);
    for (int64_t entry = 0; status == RUNG_SUCCESS && entry < p->batch; entry++)
        status = run_entry(cuda, choice->kernel, p, part, at, (int)entry);
    rung_workspace_put_with_zeros(cuda, memory, zeros, status == RUNG_SUCCESS);
    return status;
}

const rung_launcher rung_launch_accurate = {
    .name = "accurate",
    .estimate = accurate_estimate,
    .run = accurate_run,
};
