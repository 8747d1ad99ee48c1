/* What a product costs in large tiles, and how it runs: what is packed first, how many tiles one block does whole and
 * how many are streamed along k over all blocks. */
#include "cuda/families/large/large.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/workspace_limit.h"

#include <math.h>
#include <string.h>

RUNG_TILE_TABLE large_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/large/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(large, "step_cycles")

const large_tile *large_tile_of(const rung_kernel *kernel)
{
    return RUNG_FIND_TILE(table, kernel);
}

const char *large_tile_name(int i)
{
    return i < (int)(sizeof table / sizeof *table) ? table[i].name : NULL;
}

/* Fitted to timings on an H200 (docs/costs.md); the clock and the SM count come from the
 * machine. */
static const double launch_us = 4.88; /* start and end of the kernel */
/* The end of a tile takes so long: with 16-byte stores; in lines at any address; in lines down the columns of a C that
 * is stored the other way round; bias or an activation add so much, and old results of C without them so much. */
static const double end_us = 4.48, scattered_end_us = 5.31, transposed_end_us = 5.11, more_end_us = 3.00,
                    old_end_us = 6.7;
/* Where four blocks or more share a tile: they leave sums and meet; each part beyond 32 adds; blocks have parts of two
 * tiles. Where fewer than four share it: they leave sums. */
static const double meet_us = 5.46, more_parts_us = 0.58, straddle_us = 7.03, leave_us = 7.75;
/* With classes of k: a small operand is turned, and parts that start apart are added. */
static const double class_turn_us = 4.5, class_meet_us = 11;
/* The copying warps take so many cycles of a step from the multiplying ones: in each step, and for each of their
 * copies, with k outermost and innermost. */
static const double copy_cycles = 14.72, copy_row_cycles = 4.90, copy_line_cycles = 40.1;
static const double write_bytes_per_us = 4.47e6;

/* Predicts the time with `streamed` tiles cut along k over `grid` blocks, and the others done whole. */
static double wave_cost_us(const large_plan *s, int64_t streamed, int64_t grid, double step_us, double tile_us)
{
    int64_t rounds = divide_up(s->tiles - streamed, grid);
    double us = (double)rounds * ((double)s->steps * step_us + tile_us);
    if (streamed) {
        const double parts = (double)grid / (double)streamed;
        us += (double)divide_up(streamed * s->steps, grid) * step_us + tile_us;
        if (parts < 4)
            us += leave_us;
        else
            us += meet_us + fmax(parts / 32 - 1, 0) * more_parts_us + (grid % streamed ? straddle_us : 0);
    }
    return us;
}

static void plan_tiles(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, large_plan *s)
{
    double step_us = large_tile_of(kernel)->cost.step_cycles / (machine->clock_ghz * 1e3);
    double tile_us = s->transposed ? transposed_end_us : p->align_c >= 16 && p->n % 4 == 0 ? end_us : scattered_end_us;
    if (p->bias_kind || p->activation)
        tile_us += more_end_us;
    else if (!p->beta_zero)
        tile_us += old_end_us;
    /* All blocks end their tiles at the same time, so what L2 does not hold is written while nothing is multiplied. */
    if (4.0 * (double)p->m * (double)p->n * (double)p->batch > (double)machine->l2_bytes)
        tile_us =
            fmax(tile_us, 4.0 * kernel->bm * kernel->bn * machine->sms / (write_bytes_per_us * machine->memory_speed));
    s->tile_rows = kernel->bm;
    s->tile_cols = kernel->bn;
    s->tiles_m = divide_up(p->m, kernel->bm);
    s->tiles_n = divide_up(p->n, kernel->bn);
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    s->steps = divide_up(p->k, kernel->bk);
    /* No block has fewer than eight steps. */
    int64_t most = min64(machine->sms, s->tiles * s->steps / 8);
    most = most < 1 ? 1 : most;
    /* The plans: all tiles whole; those of the last round cut over all blocks; of the last two; all, in equal parts. */
    int64_t rest = s->tiles % most, even = most / s->tiles * s->tiles;
    const int64_t streamed[4] = {0, rest, s->tiles > most ? rest + most : 0, s->tiles};
    const int64_t grids[4] = {min64(most, s->tiles), most, most, even};
    s->grid = (int)grids[0];
    s->whole_tiles = s->tiles;
    s->cost_us = wave_cost_us(s, 0, s->grid, step_us, tile_us);
    for (int i = 1; i < 4; i++) {
        if (p->in_order || !rest || grids[i] < 2 || streamed[i] == 0 || streamed[i] * s->steps < 4 * grids[i])
            continue;
        double us = wave_cost_us(s, streamed[i], grids[i], step_us, tile_us);
        if (us < s->cost_us) {
            s->cost_us = us;
            s->whole_tiles = s->tiles - streamed[i];
            s->grid = (int)grids[i];
        }
    }
    s->bytes_partials = s->whole_tiles < s->tiles ? (int64_t)s->grid * 2 * kernel->bm * kernel->bn * 4 : 0;
}

/* Predicts what the warps that copy an operand take from those that multiply. */
static double copied_cost_us(const rung_kernel *kernel, char which, double products_us)
{
    const int along = which == 'a' && large_tile_of(kernel)->a_k_innermost,
              width = which == 'a' ? kernel->bm : kernel->bn;
    const double copies = width * kernel->bk / 32 / 4; /* of a warp in a step */
    const double cycles = copy_cycles + copies * (along ? copy_line_cycles : copy_row_cycles);
    return products_us * cycles / large_tile_of(kernel)->cost.step_cycles;
}

enum {
    CLASS_STEPS = 8, /* of a block, at least */
    SHORTER = 4      /* so many rows or columns less has a tile whose rows start anywhere */
};

/* Tries classes of k. Rows k, k + 4, k + 8 ... start alike whatever the leading dimension. Where k is cut anyway, each
 * block takes one of the four classes: the copy engine can read its rows from the multiple of 16 bytes before them on.
 * The parts of a tile then start up to three columns (rows of A) apart, which is put right when they are added. An
 * operand with k innermost is turned. Where both operands lie at odd addresses, one may be packed, so that tiles need
 * not be shorter both ways. */
static void try_classes(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, int pack_a,
                        int pack_b, large_plan *least)
{
    large_plan plan = {.turn_a = !p->trans_a, .turn_b = p->trans_b, .pack_a = pack_a, .pack_b = pack_b}, *s = &plan;
    s->bytes_a = pack_a ? rung_row_copy_ld(p->m) * large_class_rows(p) * LARGE_CLASSES * 4 : 0;
    s->bytes_b = pack_b ? rung_row_copy_ld(p->n) * large_class_rows(p) * LARGE_CLASSES * 4 : 0;
    /* Rows of a class lie LARGE_CLASSES rows apart. */
    if ((!pack_a && p->lda > rung_rows_reach / LARGE_CLASSES) || (!pack_b && p->ldb > rung_rows_reach / LARGE_CLASSES))
        return;
    if (s->bytes_a + s->bytes_b > machine->memory_bytes / 4 ||
        (pack_a && !s->turn_a && rung_row_copy_refuses(p->m, p->k)) ||
        (pack_b && !s->turn_b && rung_row_copy_refuses(p->n, p->k)))
        return;
    s->tile_rows = kernel->bm - (!pack_a && p->align_a < 16 ? SHORTER : 0);
    s->tile_cols = kernel->bn - (!pack_b && p->align_b < 16 ? SHORTER : 0);
    s->tiles_m = divide_up(p->m, s->tile_rows);
    s->tiles_n = divide_up(p->n, s->tile_cols);
    s->tiles = s->tiles_m * s->tiles_n;
    s->class_steps = divide_up(p->k - large_class_tail(kernel, p), LARGE_CLASSES * kernel->bk);
    s->steps = s->class_steps * LARGE_CLASSES;
    const int64_t pieces =
        min64(machine->sms / LARGE_CLASSES / s->tiles, s->class_steps / CLASS_STEPS); /* for each class */
    if (pieces < 1 || s->tiles * s->steps >= INT32_MAX)
        return;
    s->grid = (int)(s->tiles * pieces * LARGE_CLASSES);
    s->bytes_partials = (int64_t)s->grid * 2 * kernel->bm * kernel->bn * 4;
    const double step_us = large_tile_of(kernel)->cost.step_cycles / (machine->clock_ghz * 1e3);
    const int64_t turned = (s->turn_a ? s->bytes_a : 0) + (s->turn_b ? s->bytes_b : 0);
    s->cost_us = launch_us + (s->turn_a + s->turn_b) * class_turn_us + rung_turned_us(machine, turned) +
                 rung_row_copy_us(machine, s->bytes_a + s->bytes_b - turned) + end_us + class_meet_us +
                 (double)divide_up(s->class_steps, pieces) * step_us +
                 fmax((double)pieces * LARGE_CLASSES / 32 - 1, 0) * more_parts_us;
    if (s->cost_us < least->cost_us)
        *least = *s;
}

static void plan_classes(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, large_plan *s)
{
    const int odd_a = p->trans_a && p->align_a < 16, odd_b = !p->trans_b && p->align_b < 16;
    if (large_tile_of(kernel)->a_k_innermost || p->batch != 1 || p->in_order ||
        p->k < LARGE_CLASSES * CLASS_STEPS * kernel->bk)
        return;
    if (odd_a && odd_b)
        try_classes(machine, kernel, p, 0, 0, s);
    if (odd_b)
        try_classes(machine, kernel, p, !p->trans_a || odd_a, 0, s);
    if (odd_a)
        try_classes(machine, kernel, p, 0, p->trans_b || odd_b, s);
}

/* Decides which operands are copied first, and whether one is copied as it is needed. */
static const char *plan_operands(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                 large_plan *s)
{
    const int along = large_tile_of(kernel)->a_k_innermost, a_readable = rung_operand_a(p).readable,
              b_readable = rung_operand_b(p).readable;
    s->turn_a = p->k && !along && !p->trans_a;
    s->turn_b = p->k && p->trans_b;
    const int odd_a = p->k && !s->turn_a && !a_readable, odd_b = p->k && !s->turn_b && !b_readable;
    /* Rows of the operands as the kernel reads them. */
    const int64_t rows_a = along ? p->m : p->k, inner_a = along ? p->k : p->m, limit = machine->memory_bytes / 4;
    const int64_t bytes_a = rung_row_copy_ld(inner_a) * rows_a * p->batch * 4,
                  bytes_b = rung_row_copy_ld(p->n) * p->k * p->batch * 4;
    const char *reason = "the packed copy would take over a quarter of the GPU's memory";
    double least = INFINITY;
    static const char choices[3] = {0, 'a', 'b'};
    for (const char *at = choices; at < choices + 3; at++) {
        if ((*at == 'a' && !odd_a) || (*at == 'b' && !odd_b))
            continue;
        const int pack_a = s->turn_a || (odd_a && *at != 'a'), pack_b = s->turn_b || (odd_b && *at != 'b');
        const int64_t to_a = pack_a ? bytes_a : 0, to_b = pack_b ? bytes_b : 0;
        if (to_a + to_b > limit)
            continue;
        const char *refusal = pack_a && !s->turn_a ? rung_row_copy_refuses(inner_a, rows_a * p->batch) : NULL;
        if (!refusal && pack_b && !s->turn_b)
            refusal = rung_row_copy_refuses(p->n, p->k * p->batch);
        const double us = rung_turn_us(machine, s->turn_a ? to_a : 0) + rung_turn_us(machine, s->turn_b ? to_b : 0) +
                          rung_row_copy_us(machine, (s->turn_a ? 0 : to_a) + (s->turn_b ? 0 : to_b)) +
                          (*at ? copied_cost_us(kernel, *at, s->cost_us) : 0);
        if (refusal || us >= least) {
            reason = refusal && isinf(least) ? refusal : reason;
            continue;
        }
        least = us;
        s->copied = *at;
        s->pack_a = pack_a;
        s->pack_b = pack_b;
        s->bytes_a = to_a;
        s->bytes_b = to_b;
    }
    s->cost_us += launch_us + least;
    return isinf(least) ? reason : NULL;
}

static const char *plan_as_asked(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                 int transposed, large_plan *s)
{
    memset(s, 0, sizeof *s);
    s->transposed = transposed;
    if (p->m >= INT32_MAX - 256 || p->n >= INT32_MAX - 256 || p->k >= INT32_MAX - 256)
        return "a size of 2^31 or more";
    if (large_tile_of(kernel)->a_k_innermost && p->trans_a)
        return "A lies with k outermost: another kernel reads it so";
    plan_tiles(machine, kernel, p, s);
    s->cost_us = rung_overlapped(s->cost_us, rung_memory_us(machine, p, kernel->bn));
    if (s->tiles >= INT32_MAX || s->tiles * s->steps >= INT32_MAX)
        return "too many tiles for 32-bit counters";
    const char *reason = plan_operands(machine, kernel, p, s);
    if (reason)
        s->cost_us = INFINITY;
    plan_classes(machine, kernel, p, s);
    return isinf(s->cost_us) ? reason : NULL;
}

/* Returns the product that computes C^T = B^T A^T: the same numbers, A and B exchanged. */
rung_problem large_transposed(const rung_problem *p)
{
    rung_problem t = *p;
    t.m = p->n;
    t.n = p->m;
    t.a = p->b;
    t.b = p->a;
    t.lda = p->ldb;
    t.ldb = p->lda;
    t.stride_a = p->stride_b;
    t.stride_b = p->stride_a;
    t.trans_a = !p->trans_b;
    t.trans_b = !p->trans_a;
    t.align_a = p->align_b;
    t.align_b = p->align_a;
    t.bias_kind = p->bias_kind == RUNG_BIAS_PER_ROW      ? RUNG_BIAS_PER_COLUMN
                  : p->bias_kind == RUNG_BIAS_PER_COLUMN ? RUNG_BIAS_PER_ROW
                                                         : RUNG_NO_BIAS;
    return t;
}

/* Plans a product. A kernel that reads A along k may as well read B so, for C^T. */
static const char *plan(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, large_plan *s)
{
    const char *reason = plan_as_asked(machine, kernel, p, 0, s);
    if (!large_tile_of(kernel)->a_k_innermost || !p->trans_b)
        return reason;
    rung_problem t = large_transposed(p);
    large_plan other;
    if (!plan_as_asked(machine, kernel, &t, 1, &other) && (reason || other.cost_us < s->cost_us)) {
        *s = other;
        return NULL;
    }
    return reason;
}

/* The least time there can be: every multiprocessor multiplies all the time and ends one tile, and operands lie as the
 * kernel wants them. */
double large_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const large_tile *t = large_tile_of(kernel);
    if (t->a_k_innermost && p->trans_a && !p->trans_b)
        return INFINITY; /* neither operand lies as the kernel reads it */
    /* C^T may be planned too; and parts of k that start apart leave up to LARGE_MOST_TAIL of it to the end. */
    int64_t tiles = divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn);
    if (t->a_k_innermost && p->trans_b)
        tiles = min64(tiles, divide_up(p->m, kernel->bn) * divide_up(p->n, kernel->bm));
    int64_t steps = divide_up(p->k - large_class_tail(kernel, p), kernel->bk);
    double step_us = t->cost.step_cycles / (machine->clock_ghz * 1e3);
    return launch_us + end_us + (double)(tiles * p->batch * steps) / machine->sms * step_us;
}

const char *large_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                           const rung_problem *p, rung_choice *choice)
{
    large_plan s;
    const char *reason = plan(machine, kernel, p, &s);
    if (reason)
        return reason;
    choice->workspace_bytes = s.bytes_a + s.bytes_b + s.bytes_partials;
    if (!rung_workspace_allows(config, choice->workspace_bytes))
        return "packed operands and partial sums do not fit the context's workspace limit";
    choice->plan.large = s;
    choice->cost_us = s.cost_us;
    const int copied_a = s.copied == (s.transposed ? 'b' : 'a'), copied_b = s.copied == (s.transposed ? 'a' : 'b');
    const int pack_a = s.transposed ? s.pack_b : s.pack_a, pack_b = s.transposed ? s.pack_a : s.pack_b;
    rung_note(choice, "%lld tile%s, %lld of them %s over %d block%s%s%s", (long long)s.tiles, rung_plural(s.tiles),
              (long long)(s.tiles - s.whole_tiles), s.class_steps ? "by k % 4" : "streamed", s.grid,
              rung_plural(s.grid),
              pack_a     ? ", A packed"
              : copied_a ? ", A copied as needed"
                         : "",
              pack_b     ? ", B packed"
              : copied_b ? ", B copied as needed"
                         : "");
    return NULL;
}
