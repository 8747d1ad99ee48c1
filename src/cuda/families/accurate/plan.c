/* What an accurate product costs, and how it runs: in which panels, how many tiles are cut along k, and what becomes of
 * what the guard refuses. Workspace never exceeds the context's limit. */
#include "cuda/device/f16x3.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/accurate/panels.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/row_copy.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>

enum {
    MIN_K = 64,      /* with fewer k two halves err more than FP32 does: docs/numerics.md */
    ALIGN = 1024,    /* bytes: wgmma's swizzle asks an image to begin at a multiple of it */
    FEW_BLOCKS = 16, /* with fewer blocks of C, those that are safe are always multiplied on tensor cores */
};

/* Large tiles compute a product that is refused as a whole where they are predicted to take less than so much of the
 * marked tiles' time: they are a launch more, also for products that are not refused. */
static const double large_factor = 0.97;

/* Measured on one H200 (docs/costs.md). */
static const double launches_us = 8.5, tile_us = 2.0, chain_us = 1.08, tf32_chain_us = 0.75, cut_us = 2.0,
                    part_us = 1.0, split_bytes_us = 3.3e6,
                    ragged_us = 2.5; /* tiles at C's edges, and lines that do not fill their pieces */

/* Lines along k that are longer than what a block's threads keep are read twice, few blocks at a time. One such block
 * reads so many bytes a microsecond. */
static const double long_line_rate = 18e3;

/* So much a product has to gain over strict tiles, and such a share of the split's time: where the guard refuses it, it
 * takes the split and up to three times as much longer than they do. */
static const double refused_us = 6.0, refused_share = 0.1;

/* With one chain a product takes so much longer, with more of them a share: little hides its first tile's beginning. */
static const double short_us = 17.0;

/* So much longer takes the end of a tile that reads C. */
static const double beta_us = 4.5;

/* So much longer takes the end of a tile that is stored a line at a time; where more than alpha is asked for and rows
 * of C lie at odd addresses, of one that is done whole and of one that is cut; and of any tile where they then lie at
 * multiples of 8 bytes and not of 16. */
static const double line_end_us = 1.2, odd_end_us = 7.0, odd_cut_us = 6.0, half_odd_end_us = 2.0;

static int64_t take(int64_t *at, int64_t bytes)
{
    int64_t here = *at;
    *at = round_up(here + bytes, ALIGN);
    return here;
}

accurate_layout accurate_lay_out(const rung_kernel *kernel, int64_t m, int64_t n, int64_t k, int kept, int sms)
{
    accurate_layout w = {.m_pad = round_up(m, F16X3_BM * ACCURATE_CLUSTER),
                         .n_pad = round_up(n, kernel->bn),
                         .k_pad = round_up(k, 2 * F16X3_KB)};
    int64_t lines[2] = {w.m_pad, w.n_pad}, at = 0;
    w.tiles_m = w.m_pad / (F16X3_BM * ACCURATE_CLUSTER);
    w.tiles_n = w.n_pad / kernel->bn;
    w.blocks = w.tiles_m * ACCURATE_CLUSTER * w.tiles_n;
    for (int turn = 0; turn < 2; turn++) {
        int i = turn ? 1 - kept : kept;
        w.line[i] = take(&at, lines[i] * (int64_t)sizeof(f16x3_line));
        w.group[i] = take(&at, lines[i] / F16X3_GROUP * (int64_t)sizeof(f16x3_group));
    }
    w.ready = take(&at, sms * 4);
    w.words = take(&at, ACCURATE_WORDS * 4);
    w.zero_words = at / 16;
    w.tickets = take(&at, rung_marked_blocks_ticket_bytes(sms));
    w.zero_bytes = at;
    w.marks = take(&at, w.blocks + 2);
    w.list = take(&at, w.blocks * 4);
    w.seen = take(&at, F16X3_WITNESSES * (int64_t)sizeof(f16x3_seen));
    w.partial = take(&at, max64((int64_t)sms * F16X3_BM * kernel->bn * 4, rung_marked_blocks_partial_bytes(sms)));
    for (int i = 0; i < 2; i++)
        w.image[i] = take(&at, lines[i] * w.k_pad * 4);
    w.bytes = at;
    return w;
}

static double chain_us_of(const rung_kernel *kernel)
{
    return kernel->arith == RUNG_TF32 ? tf32_chain_us : chain_us;
}

/* Returns how long `rest` tiles of so many chains take that are cut evenly over `sharing` clusters. */
static double cut_tiles_us(int64_t rest, int64_t sharing, double chains_us)
{
    const double parts = (double)sharing / (double)rest;
    return chains_us / parts + tile_us + cut_us + ceil(parts) * part_us;
}

accurate_cut accurate_choose_cut(const accurate_layout *w, const rung_kernel *kernel, int64_t clusters, int in_order)
{
    int64_t tiles = w->tiles_m * w->tiles_n, chains = w->k_pad / (2 * F16X3_KB), rest = tiles % clusters;
    double chains_us = (double)chains * chain_us_of(kernel), whole = chains_us + tile_us;
    double full_waves = (double)(tiles / clusters) * whole;
    accurate_cut c = {0, 1, full_waves + (rest ? whole : 0)};
    if (!rest || in_order)
        return c;
    /* With more parts a chain is shorter and more is to be added: this number makes the sum of both least. */
    double parts = rung_longer(1.0, rung_lesser(sqrt(chains_us / part_us), (double)clusters / (double)rest));
    /* Where it is whole no cluster has parts of two tiles. */
    const int64_t most = min64(clusters, (int64_t)(parts * (double)rest)), sharing[2] = {most, most / rest * rest};
    for (int i = 0; i < 2; i++) {
        const double us = full_waves + cut_tiles_us(rest, sharing[i], chains_us);
        if (sharing[i] > rest && us < c.us)
            c = (accurate_cut){rest, sharing[i], us};
    }
    return c;
}

/* How long all panels of a plan take. */
typedef struct panels {
    int64_t count;
    double split_us, us; /* the split, and all of it */
    accurate_cut last;
} panels;

static panels cost_panels(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                          const accurate_plan *part)
{
    const accurate_layout *w = &part->w;
    const int64_t rows = divide_up(p->m, part->m), columns = divide_up(p->n, part->n),
                  depths = divide_up(p->k, part->k);
    /* Every element of A and B is read, and written as two halves; for lines across k that takes half as long again. */
    const double depth = (double)depths * (double)w->k_pad, a_passes = part->kept ? (double)columns : 1.0,
                 b_passes = part->kept ? 1.0 : (double)rows, m = (double)p->m * a_passes, n = (double)p->n * b_passes;
    const double bytes = (m + n) * depth * 8.0 + 4.0 * (double)p->k * ((p->trans_a ? m : 0) + (p->trans_b ? 0 : n));
    const double along = (p->trans_a ? 0 : m) + (p->trans_b ? n : 0), slots = 3.0 * machine->sms,
                 again_us = w->k_pad > 32 * F16X3_THREADS ? ceil(along / slots) * depth * 12.0 / long_line_rate : 0.0;
    const accurate_cut last = accurate_choose_cut(w, kernel, machine->sms / ACCURATE_CLUSTER, p->in_order);
    const int64_t whole_rounds = divide_up(w->tiles_m * w->tiles_n - last.tiles, machine->sms / ACCURATE_CLUSTER);
    const double rounds = (double)(whole_rounds + (last.tiles != 0));
    const double odd = accurate_only_alpha(p) && depths == 1 ? (accurate_stores_lines(p) ? line_end_us * rounds : 0.0)
                       : p->align_c >= 16                    ? 0.0
                       : p->align_c >= 8                     ? half_odd_end_us * rounds
                                         : odd_end_us * (double)whole_rounds + (last.tiles ? odd_cut_us : 0.0);
    const double reading = p->beta_zero && depths == 1 ? 0.0 : beta_us * rounds;
    const int ragged = p->m != w->m_pad || p->n != w->n_pad || p->k != w->k_pad;
    panels s = {.count = rows * columns * depths, .split_us = bytes / split_bytes_us + again_us, .last = last};
    s.us = (double)s.count * (launches_us + last.us + odd + reading + (ragged ? ragged_us : 0.0) +
                              short_us * 2.0 * F16X3_KB / (double)w->k_pad) +
           s.split_us +
           (double)(depths - 1) * 8.0 * (double)p->m * (double)p->n / write_rate; /* C is read and written again */
    return s;
}

/* Makes a plan with the kept operand in `parts`, and as much of the other one as there is room for; m is 0 where there
 * is no room. */
static accurate_plan panel_of(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, int kept,
                              int64_t parts, int64_t k, int64_t limit)
{
    const int64_t units[2] = {F16X3_BM * ACCURATE_CLUSTER, kernel->bn}, sizes[2] = {p->m, p->n};
    const int other = 1 - kept;
    int64_t of[2];
    of[kept] = min64(round_up(divide_up(sizes[kept], parts), units[kept]), sizes[kept]);
    of[other] = units[other];
    accurate_layout w = accurate_lay_out(kernel, of[0], of[1], k, kept, machine->sms);
    if (w.bytes > limit)
        return (accurate_plan){0};
    /* A line of the other operand takes its image, what is known of it, and its blocks' marks. */
    const int64_t line_bytes = w.k_pad * 4 + (int64_t)sizeof(f16x3_line) + 64 + of[kept] / units[kept];
    of[other] += (limit - w.bytes) / line_bytes / units[other] * units[other];
    for (;; of[other] -= units[other]) {
        /* The panels are equal. */
        int64_t size = divide_up(sizes[other], divide_up(sizes[other], of[other]));
        size = min64(round_up(size, units[other]), sizes[other]);
        int64_t m = kept ? size : of[0], n = kept ? of[1] : size;
        w = accurate_lay_out(kernel, m, n, k, kept, machine->sms);
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
    accurate_plan best = {
        .m = p->m, .n = p->n, .k = p->k, .w = accurate_lay_out(kernel, p->m, p->n, p->k, 0, machine->sms)};
    double best_us = HUGE_VAL;
    if (best.w.bytes <= limit)
        return best;
    best.m = 0;
    for (int64_t depths = 1; depths <= MOST_DEPTHS; depths++) {
        const int64_t k = depths == 1 ? p->k : round_up(divide_up(p->k, depths), 2 * F16X3_KB);
        if (depths > 1 && (p->in_order || p->device_scalars || k < SHORT_PANEL))
            break;
        for (int kept = 0; kept < 2; kept++) {
            const int64_t unit = kept ? kernel->bn : F16X3_BM * ACCURATE_CLUSTER,
                          most_parts = divide_up(kept ? p->n : p->m, unit);
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
    return config->workspace_limit_bytes || p->arrays ? rung_workspace_limit(config) - RUNG_TICKET_BYTES : panel_bytes;
}

int accurate_may_look(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part)
{
    return kernel->arith != RUNG_TF32 && p->batch == 1 && !p->arrays && part->m == p->m && part->n == p->n &&
           part->k == p->k && p->k <= F16X3_LOOK_K &&
           2 * (divide_up(p->m, F16X3_BM) + divide_up(p->n, F16X3_BM)) <= F16X3_WITNESSES;
}

/* Returns how many safe blocks are worth to split the operands and to multiply on tensor cores, where strict tiles
 * would take `strict_us` for all blocks: with fewer, those too are left to strict tiles. It is never more than there
 * are blocks: where all may be safe, a look knows of no line that would make the guard count them. Safe blocks are
 * thought to be spread over C, so that each is the only one of its cluster's tile. */
static int64_t least_safe_of(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part,
                             double split_us, double strict_us, int64_t clusters)
{
    const int64_t blocks = divide_up(part->m, F16X3_BM) * divide_up(part->n, F16X3_BM),
                  chains = part->w.k_pad / (2 * F16X3_KB);
    const double round_us = (double)chains * chain_us_of(kernel) + tile_us, block_us = strict_us / (double)blocks;
    if (blocks < FEW_BLOCKS || p->in_order || isinf(strict_us))
        return 1;
    for (int64_t rounds = 1; (rounds - 1) * clusters < blocks; rounds++) {
        const double safe = (launches_us + split_us + (double)rounds * round_us) / block_us;
        if (safe <= (double)(rounds * clusters))
            return min64(blocks, max64((int64_t)ceil(safe), (rounds - 1) * clusters + 1));
    }
    return blocks;
}

/* Returns the product as it is once operands at odd addresses are copied. */
static rung_problem once_copied(const rung_problem *p, const rung_operand *a, const rung_operand *b)
{
    rung_problem q = *p;
    q.lda = a->readable ? p->lda : rung_row_copy_ld(a->inner);
    q.ldb = b->readable ? p->ldb : rung_row_copy_ld(b->inner);
    q.align_a = q.align_b = 16;
    return q;
}

/* Finds room for the partial sums of large tiles. Nobody reads the images then: where neither copies nor turned
 * operands lie there, the sums do. Returns whether all of it fits. */
static int place_sums(const large_plan *large, int copies, int64_t limit, accurate_layout *w)
{
    const int in_a = copies || accurate_turns_a(large), in_b = copies || accurate_turns_b(large);
    const int64_t from = w->image[in_a ? 1 : 0], to = in_a && in_b ? from : in_b ? w->image[1] : w->bytes;
    w->sums = from;
    if (large->bytes_partials > to - from)
        w->sums = take(&w->bytes, large->bytes_partials);
    return w->bytes <= limit;
}

/* Plans large tiles for what is refused as a whole, where they are faster than the marked tiles, which take `us`. These
 * have copies of operands at odd addresses, and the large tiles read them too. Where k is innermost in both operands
 * they read at least one turned. Returns the time. */
static double plan_large(const rung_machine *machine, const rung_config *config, const rung_problem *p, double us,
                         int64_t limit, accurate_plan *part)
{
    const rung_operand a = rung_operand_a(p), b = rung_operand_b(p);
    const int turns = !p->trans_a && p->trans_b, copies = !turns && !(a.readable && b.readable);
    const rung_problem q = turns ? *p : once_copied(p, &a, &b);
    accurate_layout w = part->w;
    large_plan plan;
    double large_us;
    const rung_kernel *kernel = rung_refused_large_plan(machine, config, &q, turns, &plan, &large_us);
    if (copies)
        large_us += rung_operand_copies_us(machine, &a, &b, p);
    if (!kernel || !(large_us < large_factor * us) || !place_sums(&plan, copies, limit, &w))
        return us;
    part->w = w;
    part->large = kernel;
    part->large_plan = plan;
    return large_us;
}

/* Decides what becomes of products that the guard refuses, all or for the most part. */
static void plan_refused(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                         const rung_problem *p, double split_us, accurate_plan *part)
{
    rung_problem q = *p;
    part->least_safe = 1;
    if (kernel->arith == RUNG_TF32 || p->arrays)
        return;
    q.m = part->m, q.n = part->n, q.k = part->k;
    q.batch = 1;
    double us = rung_marked_blocks_us(machine, config, &q);
    if (q.m == p->m && q.n == p->n && q.k == p->k && !p->in_order)
        us = plan_large(machine, config, &q, us, limit_of(config, p), part);
    part->least_safe = least_safe_of(kernel, p, part, accurate_may_look(kernel, p, part) ? split_us : 0.0, us,
                                     machine->sms / ACCURATE_CLUSTER);
}

const char *accurate_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                              const rung_problem *p, rung_choice *choice)
{
    if (machine->sms < ACCURATE_CLUSTER)
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
    choice->cost_us =
        (double)p->batch * (s.us + (kernel->arith == RUNG_TF32 ? 0.0 : refused_us + refused_share * s.split_us));
    rung_note(choice, "split %.0f us, product %.0f us; %lld panel%s of %lld tile%s, %lld cut along k", s.split_us,
              s.last.us, (long long)s.count, rung_plural(s.count), (long long)(part.w.tiles_m * part.w.tiles_n),
              rung_plural(part.w.tiles_m * part.w.tiles_n), (long long)s.last.tiles);
    plan_refused(machine, config, kernel, p, s.split_us / (double)s.count, &part);
    choice->plan.accurate = part;
    choice->workspace_bytes = part.w.bytes;
    return NULL;
}
