/* Runs a planned accurate product: splits the operands (fp16x3, with a guard) or rounds them (TF32) into images, panel
 * by panel, multiplies them on tensor cores, and has strict tiles compute what the guard refuses. */
#include "core/divide.h"
#include "cuda/device/f16x3.h"
#include "cuda/driver/chain.h"
#include "cuda/driver/recorded.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/accurate/panels.h"
#include "cuda/families/accurate/recall.h"
#include "cuda/host/row_copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BAND = 8,      /* cluster tiles of m walked together */
    MAX_SPLIT = 8, /* so many blocks at most of a cluster that splits lines across k */
};

/* So many terms at least must carry a sum (docs/numerics.md). */
static const float min_terms = 2.0f;

static int64_t blocks_a_turn(int64_t lines_pad, int64_t k_blocks, int sms)
{
    return max64(1, min64(8, lines_pad / F16X3_COLS * k_blocks / (16 * sms)));
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

/* This is the memory of one product. */
typedef struct places {
    char *memory, *zeros;
    int kept;        /* the zeros are there already, and the launch leaves zeros */
    int recording;   /* the stream records a graph, which keeps the zeros */
    int first, last; /* of the panels that share the image of the plan's kept operand */
    int64_t other;   /* where the zeros of the other operand, and of the product, begin */
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
    o->wild = (uint32_t *)(at.zeros + w->words) + ACCURATE_WILD;
    /* Any two lines below these limits make a safe block: the guard's rules, with both lines alike. */
    o->tame_peak = (float)(0.999 / sqrt(min_terms * (double)k));
    o->wild_bits = (uint32_t)((127 + 254 - 2 - log2_above(k)) / 2 + 1) << 23;
    if (at.recalled.record)
        o->witness = at.recalled.witness + (which ? 2 * divide_up(p->m, F16X3_BM) : 0);
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
                      .threads = F16X3_THREADS,
                      .cluster = across ? (unsigned)s->cluster : 1,
                      .argument_bytes = (unsigned)argument_bytes,
                      .prepares = 1};
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &function));
    return rung_launch(cuda, &function, &grid, s);
}

static int64_t pack_blocks(const f16x3_operand *o)
{
    return o->k_innermost ? o->row_groups * 8 : turn_blocks(o);
}

/* Returns the word that says, after a look, that all blocks are refused; NULL where there is none. */
static uint32_t *refused_word(const accurate_layout *w, places at)
{
    return at.recalled.may_look ? (uint32_t *)(at.zeros + w->words) + ACCURATE_REFUSED : NULL;
}

/* Splits the operands of a product that is one panel, over so many blocks, where it does not look at them first and
 * need not split them. */
static rung_status split_or_look(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                 const accurate_plan *part, const accurate_layout *w, places at,
                                 const f16x3_split_args *split, int64_t blocks)
{
    uint32_t *words = (uint32_t *)(at.zeros + w->words);
    f16x3_look_args s = {.split = *split,
                         .rows = (int32_t)divide_up(p->m, F16X3_BM),
                         .columns = (int32_t)divide_up(p->n, F16X3_BM),
                         .any = (int32_t)w->blocks,
                         .least_safe = (int32_t)part->least_safe,
                         .min_terms = min_terms,
                         .seen = (f16x3_seen *)(at.memory + w->seen),
                         .marks = (uint8_t *)(at.memory + w->marks),
                         .arrived = words + ACCURATE_ARRIVED,
                         .decided = words + ACCURATE_DECIDED,
                         .refused = words + ACCURATE_REFUSED,
                         .recalled = at.recalled.record,
                         .told = at.recalled.told};
    s.blocks = (int32_t)round_up(2 * (s.rows + s.columns), split->cluster);
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
    return at.recalled.may_look ? split_or_look(cuda, kernel, p, part, w, at, &s, blocks)
                                : launch_split(cuda, kernel, "f16x3_split", blocks, &s, sizeof s);
}

static int64_t blocks_of(int64_t m, int64_t n)
{
    return divide_up(m, F16X3_BM) * divide_up(n, F16X3_BM);
}

static f16x3_guard guard_of(const rung_problem *p, const accurate_plan *part, const accurate_layout *w, places at)
{
    return (f16x3_guard){.a = (const f16x3_group *)(at.zeros + w->group[0]),
                         .b = (const f16x3_group *)(at.zeros + w->group[1]),
                         .wild = (const uint32_t *)(at.zeros + w->words) + ACCURATE_WILD,
                         .refused = refused_word(w, at),
                         .rows = (int32_t)divide_up(p->m, F16X3_BM),
                         .columns = (int32_t)divide_up(p->n, F16X3_BM),
                         .k = (int32_t)p->k,
                         .least_safe = max64(1, part->least_safe * blocks_of(p->m, p->n) / blocks_of(part->m, part->n)),
                         .min_terms = min_terms};
}

static void fill_product(f16x3_args *g, const rung_problem *p, const accurate_plan *part, const accurate_layout *w,
                         places at, accurate_cut c, int entry)
{
    memset(g, 0, sizeof *g);
    rung_args_fill(&g->g, p);
    g->entry = entry;
    g->guard = guard_of(p, part, w, at);
    g->both_split = at.first;
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

/* Turns the operands that large tiles read turned, if the guard refuses all blocks, beside the product's launch. They
 * take the operands' places in `p`. */
static rung_status turn_operands(rung_cuda *cuda, const large_plan *large, const f16x3_guard *guard,
                                 float *const room[2], rung_problem *p)
{
    rung_operand a = rung_operand_a(p), b = rung_operand_b(p);
    f16x3_turn_args args = {.guard = *guard};
    int64_t tiles[2] = {0, 0};
    int count = 0;
    if (accurate_turns_a(large))
        args.of[count++] = rung_operand_turn_to(&a, 1, room[0]);
    if (accurate_turns_b(large))
        args.of[count++] = rung_operand_turn_to(&b, 1, room[1]);
    for (int i = 0; i < count; i++)
        tiles[i] = divide_up(args.of[i].mn, RUNG_TURN_TILE) * divide_up(args.of[i].k, RUNG_TURN_TILE);
    args.tiles_of_first = (int32_t)tiles[0];
    args.tiles = (int32_t)(tiles[0] + tiles[1]);
    p->a = a.at, p->lda = a.ld, p->trans_a |= accurate_turns_a(large);
    p->b = b.at, p->ldb = b.ld, p->trans_b &= !accurate_turns_b(large);
    p->align_a = p->align_b = 16;
    rung_function function;
    rung_grid grid = {.x = (unsigned)min64(args.tiles, RUNG_SELDOM_BLOCKS * cuda->machine->sms),
                      .threads = RUNG_TURN_THREADS,
                      .overlaps = 1,
                      .argument_bytes = sizeof args,
                      .order = RUNG_BESIDE_LAST,
                      .prepares = 1};
    RUNG_TRY(rung_gpu_function(cuda->gpu, "turn", "f16x3_turn", &function));
    return rung_launch(cuda, &function, &grid, &args);
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
                          .recalled = at.recalled.record,
                          .number = at.recalled.number,
                          .told = at.recalled.told};
    if (!rung_marked_blocks_fit(&q, &marked))
        return rung_marked_tiles_run(cuda, &q, &marked);
    const large_plan *large = &part->large_plan;
    const f16x3_guard guard = guard_of(p, part, w, at);
    float *sums = (float *)(at.memory + w->sums);
    marked.elsewhere = part->large != NULL;
    marked.turned = part->large && (large->turn_a || large->turn_b);
    if (marked.turned) {
        rung_problem turned = q;
        RUNG_TRY(turn_operands(cuda, large, &guard, copies, &turned));
        RUNG_TRY(
            rung_refused_large_run(cuda, part->large, &turned, large, &guard, RUNG_AFTER_LAST, sums, marked.tickets));
    }
    const float *a = q.a, *b = q.b;
    RUNG_TRY(rung_marked_copies_run(cuda, &marked, &q));
    if (part->large && !marked.turned)
        RUNG_TRY(rung_refused_large_run(cuda, part->large, &q, large, &guard,
                                        q.a == a && q.b == b ? RUNG_BESIDE_LAST : RUNG_AFTER_ALL, sums,
                                        marked.tickets));
    return rung_marked_blocks_run(cuda, &q, &marked);
}

/* Returns the layout of a panel with sizes of its own, in the places of the largest panel. */
static accurate_layout layout_of(const rung_kernel *kernel, const rung_problem *p, const accurate_plan *part, int sms)
{
    accurate_layout w = part->w, own = accurate_lay_out(kernel, p->m, p->n, p->k, part->kept, sms);
    w.m_pad = own.m_pad, w.n_pad = own.n_pad, w.k_pad = own.k_pad;
    w.tiles_m = own.tiles_m, w.tiles_n = own.tiles_n, w.blocks = own.blocks;
    return w;
}

/* Launches one product that fits the workspace. */
static rung_status launch_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                const accurate_plan *part, places at, int entry)
{
    accurate_layout w = layout_of(kernel, p, part, cuda->machine->sms);
    int64_t clusters = cuda->machine->sms / ACCURATE_CLUSTER, tiles = w.tiles_m * w.tiles_n;
    accurate_cut c = accurate_choose_cut(&w, kernel, clusters, p->in_order);
    rung_function function;
    f16x3_args g;
    RUNG_TRY(split(cuda, kernel, p, part, &w, at, entry));
    fill_product(&g, p, part, &w, at, c, entry);
    if (kernel->arith != RUNG_TF32)
        RUNG_TRY(rung_guard_counts_at(cuda, &g.counts));
    /* There are no more clusters than have a share of the cut tiles or a whole one. */
    int64_t busy = min64(clusters, max64(tiles - c.tiles, c.tiles ? c.clusters : 0));
    rung_grid grid = {.x = (unsigned)(busy * ACCURATE_CLUSTER),
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .cluster = ACCURATE_CLUSTER,
                      .overlaps = 1,
                      .argument_bytes = sizeof g};
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s", kernel->name, accurate_stores_lines(p) ? "_u" : "");
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, symbol, &function));
    RUNG_TRY(rung_launch(cuda, &function, &grid, &g));
    if (kernel->arith == RUNG_TF32)
        return RUNG_SUCCESS;
    return strict_tiles(cuda, p, part, &w, at, entry);
}

/* Runs a panel. A graph that the stream records takes the launches one by one, and so does a stream without kept zeros.
 */
static rung_status run_panel(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                             const accurate_plan *part, places at, int entry)
{
    if (at.recording)
        rung_recorded_begin(cuda);
    else if (at.kept)
        rung_chain_begin(cuda);
    rung_status status = launch_panel(cuda, kernel, p, part, at, entry);
    rung_status queued = rung_chain_end(cuda, status == RUNG_SUCCESS), recorded = rung_recorded_end(cuda);
    if (status != RUNG_SUCCESS)
        return status;
    return queued == RUNG_SUCCESS ? recorded : queued;
}

/* Returns the product of one panel, of C from (i, j) on and of k from l on. Later panels of k add to what earlier ones
 * left in C. */
static rung_problem panel_at(const rung_problem *p, const accurate_plan *part, int entry, int64_t i, int64_t j,
                             int64_t l)
{
    rung_problem q = *p;
    q.m = min64(part->m, p->m - i);
    q.n = min64(part->n, p->n - j);
    q.k = min64(part->k, p->k - l);
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
    places at = {.memory = memory,
                 .zeros = zeros ? zeros : memory,
                 .kept = zeros != NULL,
                 .recording = zeros && rung_graph_memory_lent(cuda, zeros)};
    if (at.kept && accurate_may_look(choice->kernel, p, part))
        at.recalled = rung_recall(cuda, p, zeros);
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
