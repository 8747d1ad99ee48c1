/* What a product costs in small tiles, and in how many parts its k is cut. The cost is a small model of one
 * multiprocessor's share of the work: docs/costs.md. */
#include "cuda/families/small/small.h"
#include "cuda/families/small/tile.h"
#include "core/divide.h"
#include "cuda/host/memory_cost.h"
#include "cuda/host/parts.h"

#include <math.h>

/* Times in microseconds, rates in bytes a microsecond. */
static const double launch_us = 1.61, brief_launch_us = 1.05, finish_us = 2.74, reduce_rate = 0.055e6,
                    partial_rate = 5.84e6;
/* One block adds parts of k that are no more float4 than tile.inc says: so long until it does, and so long a load of a
 * thread. */
enum { ADDED_BY_ONE = 6144 };
static const double one_finish_us = 1.69, one_load_us = 0.065;
/* A step of whole products of a batch takes at least so long, since their threads wait for its copies; and so much more
 * for each row of the tile that is copied 16 bytes at a time, 4 bytes at a time. */
static const double batch_wait_us = 0.75, batch_row_us = 0.014, batch_odd_row_us = 0.05;
/* The bytes of C count so many times where its rows lie at odd addresses. */
static const double odd_rows = 2.52;
/* In a crowd a load of a thread that adds parts of k takes so long; so much of its blocks' starts and ends shows in
 * the only round. */
static const double crowd_load_us = 0.025, only_round = 0.50;
/* Where up to so many blocks of a crowd share a multiprocessor and rows of C are aligned, all end at a time, and the
 * blocks of a second round come to lie three and none instead of two and two. From one and a half rounds on, as long as
 * two are not full, multiplying takes so many times as long. */
enum { IN_STEP = 3 };
static const double in_step = 1.2;
/* A round of a crowd's blocks takes so much longer in a batch, whose matrices have no operand in common: no block finds
 * in the second level of cache what another one has read. */
static const double batch_round_us = 0.10;
/* On a multiprocessor that has several blocks of a brief tile each block beyond the first takes so much longer for each
 * k, but in a batch: all blocks read the same rows of one operand. */
static const double brief_k_us = 0.004;
/* Where a multiprocessor's warps are no multiple of its four partitions some partitions have one warp less than the
 * busiest. This share of what they could multiply meanwhile is lost. */
enum { PARTITIONS = 4 };
static const double idle_partitions = 0.90;
/* The blocks of a round end at about the same time, so those that are left come to lie two and none instead of one and
 * one: the busiest multiprocessor has this share of the room that an even spread would leave it. Brief tiles' blocks
 * end too soon for that to show. */
static const double uneven_last = 0.5;
/* Where C is read, the first of what it holds is waited for so long; and a multiprocessor takes so much longer for each
 * result, and for one of a brief tile. */
static const double first_old_us = 0.36, old_us = 0.00008, brief_old_us = 0.00002;
/* At odd addresses so much for the root of their number, and for each. */
static const double odd_root_old_us = 0.0186, odd_old_us = 0.000029;
/* Small matrices of a batch fill a brief tile better than others. That pays up to so many k and rounds of blocks. */
enum { BRIEF_BATCH_K = 64, BRIEF_BATCH_ROUNDS = 8 };
static const double turned =
    0.058; /* share that an operand adds which is turned while it is copied 4 bytes at a time */

RUNG_TILE_TABLE small_tile table[] = {
#define RUNG_TILE(name_, ...) {.name = #name_, __VA_ARGS__},
#include "cuda/families/small/tiles.inc"
#undef RUNG_TILE
};
RUNG_TILE_COSTS(small, "share alone block_us odd_end odd_address a_k_innermost b_k_innermost both_k_innermost")

const small_tile *small_tile_of(const rung_kernel *kernel)
{
    return RUNG_FIND_TILE(table, kernel);
}

const small_tile *small_marked_tile(void)
{
    const small_tile *t = table;
    while (!t->in_order)
        t++;
    return t;
}

int small_is_aligned(const rung_problem *p)
{
    return !p->arrays && p->align_a >= 16 && p->align_b >= 16;
}

/* Returns the floats of one operand in a stage. Operands with k innermost stay so, but where one lies at odd addresses
 * they are turned. */
static int operand_floats(int extent, int depth, int k_innermost, int aligned)
{
    if (!k_innermost)
        return extent * depth;
    return aligned ? INNERMOST_FLOATS(extent, depth) : TURNED_FLOATS(extent, depth);
}

int small_shared_bytes(const rung_kernel *kernel, const small_tile *t, const rung_problem *p, int64_t steps)
{
    /* A crowd always copies 4 bytes at a time, fills all its stages and pads its results. */
    int aligned = !t->crowd && small_is_aligned(p),
        stage = operand_floats(kernel->bm, kernel->bk, !p->trans_a, aligned) +
                operand_floats(kernel->bn, kernel->bk, p->trans_b, aligned);
    if (t->brief) /* all of k is there at once, and results leave from registers */
        return (int)(4 * steps * stage);
    int64_t stages = !t->crowd && steps + 1 < kernel->stages ? steps + 1 : kernel->stages, floats = stages * stage,
            sums = (int64_t)t->slices * kernel->bm * kernel->bn * (t->crowd ? SMALL_CROWD_PITCH : 32) / 32;
    return (int)(4 * (floats > sums ? floats : sums));
}

int64_t small_tiles(const rung_kernel *kernel, const rung_problem *p)
{
    return divide_up(p->m, kernel->bm) * divide_up(p->n, kernel->bn) * p->batch;
}

/* Returns how many blocks that fill all partitions take as long as these blocks of one multiprocessor. */
static double filling_blocks(const rung_kernel *kernel, double blocks)
{
    const double partitions_a_block = kernel->threads / 32.0 / PARTITIONS,
                 filled = rung_whole_up(blocks * partitions_a_block) / partitions_a_block;
    return blocks + idle_partitions * (filled - blocks);
}

/* Returns the time of the blocks on the busiest multiprocessor: full rounds of `resident` blocks, then what is left. */
static double rounds_us(const rung_kernel *kernel, const small_tile *t, double blocks, int sms, int resident,
                        double block_work_us, double odd_end)
{
    const double block_us = t->cost.block_us * (1.0 + odd_end);
    double a_round = (double)sms * resident, full = rung_whole(blocks / a_round),
           left = rung_whole_up((blocks - full * a_round) / sms);
    if (full > 0 && left > 0 && !t->brief)
        left += uneven_last * (resident - left);
    double last = left > 0 ? rung_overlapped(filling_blocks(kernel, left), t->cost.alone) * block_work_us +
                                 block_us * left / resident
                           : 0.0;
    return full * (rung_overlapped(resident, t->cost.alone) * block_work_us + block_us) + last;
}

/* Returns how many starts and ends of a crowd's blocks show, in so many rounds: one a round, of a round that is not
 * full the square root of its share, and half where there is no other round. */
static double crowd_ends(double rounds)
{
    const double full = rung_whole(rounds);
    return rounds > 1.0 ? full + sqrt(rounds - full) : only_round * sqrt(rounds);
}

/* Does the same for a crowd. Its blocks do not go in step: where one has ended the next one starts. So all of them
 * multiply in a row, and only once nobody multiplies beside the one that waits. What rows of C at odd addresses add is
 * in nobody's shadow: every block's counts. */
static double crowd_us(const rung_kernel *kernel, const small_tile *t, double blocks, int sms, int resident,
                       double block_work_us, double odd_end)
{
    const double busiest = rung_whole_up(blocks / sms), full = rung_whole(busiest / resident) * resident;
    const int uneven =
        resident <= IN_STEP && odd_end == 0.0 && 2.0 * blocks > 3.0 * sms * resident && busiest < 2.0 * resident;
    return rung_overlapped(full + filling_blocks(kernel, busiest - full), t->cost.alone) * block_work_us *
               (uneven ? in_step : 1.0) +
           t->cost.block_us * (crowd_ends(busiest / resident) + odd_end * busiest / resident);
}

/* Returns how many blocks a multiprocessor holds at once. */
static int resident_of(const rung_kernel *kernel, const small_tile *t, const rung_problem *p)
{
    const int64_t stages = t->brief ? divide_up(p->k, kernel->bk) : kernel->stages;
    int fit = 233472 / (small_shared_bytes(kernel, t, p, stages) + 1024);
    return fit < 1 ? 1 : fit < t->resident ? fit : t->resident;
}

/* Returns the share of the FFMA peak that these operands allow. */
static double share_of(const small_tile *t, const rung_problem *p)
{
    int odd = (p->align_a < 16) + (p->align_b < 16);
    double longer = !t->crowd && !small_is_aligned(p)
                        ? turned * (!p->trans_a + p->trans_b)
                        : rung_k_innermost(p, t->cost.a_k_innermost, t->cost.b_k_innermost, t->cost.both_k_innermost);
    return t->cost.share / (1.0 + t->cost.odd_address * odd) / (1.0 + longer);
}

/* Returns the time of a block's step along k, if it were alone on a multiprocessor that never waits. */
static double step_us_of(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                         const rung_problem *p)
{
    return kernel->bm * kernel->bn * kernel->bk / (128e3 * machine->clock_ghz * share_of(t, p));
}

static double write_us_of(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                          const rung_problem *p)
{
    return t->crowd ? rung_write_lines_us(machine, p, kernel->bn) : rung_write_us(machine, p, odd_rows, kernel->bn);
}

/* Returns how much longer ends take that read C. */
static double old_us_of(const rung_machine *machine, const small_tile *t, const rung_problem *p)
{
    const double results = (double)(p->m * p->n) * (double)p->batch / machine->sms;
    if (p->beta_zero)
        return 0.0;
    if (!t->brief && p->align_c < 16)
        return first_old_us + odd_root_old_us * sqrt(results) + odd_old_us * results;
    return first_old_us + (t->brief ? brief_old_us : old_us) * results;
}

/* What is the same for all numbers of parts. */
typedef struct small_work {
    int64_t tiles, steps;
    int resident, odd_c, batch;
    double old_us, step_us, read, write;
    double first, last; /* to read and write, while nothing else takes place: as long on any chip, since it is memory's
                           latency that counts */
} small_work;

static small_work work_of(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                          const rung_problem *p)
{
    small_work w = {
        .tiles = small_tiles(kernel, p),
        .steps = divide_up(p->k, kernel->bk),
        .resident = resident_of(kernel, t, p),
        .odd_c = p->align_c < 16,
        .batch = p->batch != 1,
        .old_us = old_us_of(machine, t, p),
        .step_us = step_us_of(machine, kernel, t, p),
        .read = rung_tiles_read_us(machine, p),
        .write = write_us_of(machine, kernel, t, p),
    };
    w.first = w.read * machine->memory_speed;
    w.last = w.write * rung_write_speed(machine);
    return w;
}

/* Returns what the meeting of parts takes at least. It grows with their number. */
static double least_meeting_us(const rung_kernel *kernel, const small_tile *t, int64_t tiles, int64_t parts)
{
    const double tile_bytes = 4.0 * kernel->bm * kernel->bn,
                 least = t->crowd ? finish_us + tile_bytes / reduce_rate : one_finish_us;
    return least + (double)(tiles * parts) * tile_bytes / partial_rate;
}

/* Returns what the meeting of parts takes. Blocks that share a tile's k leave them in memory, and one of these blocks
 * or several add them. */
static double meeting_us(const rung_kernel *kernel, const small_tile *t, int64_t tiles, int64_t parts, int at_once)
{
    const double tile_bytes = 4.0 * kernel->bm * kernel->bn, vectors = tile_bytes / 16.0,
                 written = (double)(tiles * parts) * tile_bytes / partial_rate;
    /* Chunks are added side by side where all blocks run at once, else one after the other (device/parts.h). Loads are
     * those of a thread, if one block adds. */
    const double chunks = at_once ? rung_lesser(rung_lesser(32.0, (double)parts), vectors / 16.0) : 1.0,
                 loads = vectors / kernel->threads * (double)parts,
                 several = finish_us + (double)parts / chunks * tile_bytes / reduce_rate + written;
    if (t->crowd) /* few threads add: a thread's loads count one by one */
        return several + crowd_load_us * (loads <= SMALL_CROWD_LOADS ? loads : loads / chunks);
    return vectors * (double)parts <= ADDED_BY_ONE ? one_finish_us + one_load_us * loads + written : several;
}

/* Returns how long the busiest multiprocessor multiplies at least. */
static double least_work_us(const rung_machine *machine, const small_tile *t, const small_work *w, int64_t parts)
{
    const double blocks = (double)divide_up(w->tiles * parts, machine->sms);
    return rung_longer(blocks, t->cost.alone) * (double)divide_up(w->steps, parts) * w->step_us;
}

/* Returns what a launch takes beside its blocks' work. A brief tile computes what it can before it may begin. */
static double launch_us_of(const small_tile *t)
{
    return t->brief ? brief_launch_us : launch_us;
}

/* Returns the share of a round's operands that its first stages hold. */
static double first_of(const rung_kernel *kernel, double steps)
{
    return rung_lesser(1.0, (double)kernel->stages / steps);
}

static double tile_cost_us(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                           const small_work *w, int64_t parts)
{
    double blocks = (double)(w->tiles * parts), steps = (double)divide_up(w->steps, parts);
    double compute = (t->crowd ? crowd_us : rounds_us)(kernel, t, blocks, machine->sms, w->resident, steps * w->step_us,
                                                       w->odd_c ? t->cost.odd_end : 0.0);
    double rounds = rung_whole_up(blocks / ((double)machine->sms * w->resident));
    if (t->brief && !w->batch)
        compute += brief_k_us * steps * kernel->bk * rung_longer(0.0, blocks / machine->sms - 1.0);
    compute += (w->first * first_of(kernel, steps) + w->last) / rounds + w->old_us +
               (t->crowd && w->batch ? batch_round_us * rounds : 0.0);
    return launch_us_of(t) + (t->crowd ? rung_overlapped : rung_longer)(compute, w->read + w->write) +
           (parts > 1 ? meeting_us(kernel, t, w->tiles, parts, rounds <= 1.0) : 0.0);
}

/* Returns whether k may be cut. Each slice and part rounds its first product, a chain of FMAs only one. Where few terms
 * are not zero (a tenth of 64) the worst of 256 x 256 results then errs 1.07 times what is promised; the worst of fewer
 * results errs less. */
static int may_cut(const rung_problem *p)
{
    enum { SHORT_K = 128, MANY_RESULTS = 128 * 128 };
    return p->k >= SHORT_K || p->m * p->n <= MANY_RESULTS / p->batch;
}

/* Returns how many blocks there may be where k is cut. If a tile's blocks do not all run side by side, the last one
 * adds the parts of those that have ended. In a crowd some may be left for a second round: that takes less than what
 * one whole tile more on each multiprocessor does. With more of them it was the other way round (docs/costs.md). */
static int64_t most_cut_blocks(const small_tile *t, int64_t at_once)
{
    return t->crowd ? at_once + at_once * 2 / 5 : at_once;
}

static const int16_t part_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 18, 22, 33, 44, 66, 88, 132, 198, 264};
enum { PART_COUNTS = sizeof part_counts / sizeof *part_counts, MOST_PARTS = 264, MOST_FILLING = 5 };
/* The costs were fitted to products in those numbers of parts: in others a product is thought to take so many times as
 * long, so that none is chosen for a gain that is less than the costs err. */
static const double filling_errs = 1.01;

/* Returns the i-th number of parts to try: those above, then as many as give each multiprocessor one block, two blocks,
 * up to MOST_FILLING. Seven tiles in 33 parts are 231 blocks, two for most multiprocessors and one for the others; in
 * 37 parts all but five have two, each with a ninth less to do. */
static int64_t part_count(const rung_machine *machine, int64_t tiles, int i)
{
    return i < PART_COUNTS ? part_counts[i] : (int64_t)machine->sms * (i - PART_COUNTS + 1) / tiles;
}

static const char *tile_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                 const rung_problem *p, rung_choice *choice)
{
    const small_tile *t = small_tile_of(kernel);
    const char *reason = rung_refuse_sizes(p);
    if (reason)
        return reason;
    if (t->slices > 1 && !may_cut(p))
        return "k is too short to be added in slices";
    const small_work w = work_of(machine, kernel, t, p);
    const int64_t tiles = w.tiles, steps = w.steps, most = most_cut_blocks(t, (int64_t)machine->sms * w.resident);
    choice->cost_us = HUGE_VAL;
    const int counts = t->brief || p->in_order || !may_cut(p) || 2 * tiles > most ? 1 : PART_COUNTS + MOST_FILLING;
    for (int i = 0; i < counts; i++) {
        const double best_us = rung_no_more_than(choice->cost_us, choice->limit_us);
        int64_t parts = part_count(machine, tiles, i), bytes = 0;
        if (i > 0 && (parts < 2 || parts > steps || parts > MOST_PARTS || tiles * parts > most))
            continue;
        if (steps > 0)
            parts = divide_up(steps, divide_up(steps, parts)); /* no part without work */
        const double meeting = parts > 1 ? least_meeting_us(kernel, t, tiles, parts) : 0.0;
        if (launch_us_of(t) + w.read + w.write + meeting > best_us)
            continue;
        if (least_work_us(machine, t, &w, parts) + launch_us_of(t) + meeting > best_us)
            continue;
        if (parts > 1)
            bytes = tiles * parts * kernel->bm * kernel->bn * 4;
        const char *refusal = rung_refuse_parts(config, tiles, parts, bytes);
        if (refusal && i == 0)
            return refusal;
        double cost = refusal ? HUGE_VAL : tile_cost_us(machine, kernel, t, &w, parts);
        if (i >= PART_COUNTS)
            cost *= filling_errs;
        if (cost < choice->cost_us) {
            choice->cost_us = cost;
            choice->parts = (int32_t)parts;
            choice->workspace_bytes = bytes;
        }
    }
    rung_note(choice, "%lld tile%s, %d part%s of k", (long long)tiles, rung_plural(tiles), (int)choice->parts,
              rung_plural(choice->parts));
    return NULL;
}

static const char *crowd_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    if (p->batch > UINT16_MAX)
        return "more than 65535 matrices: the grid has no room";
    return tile_estimate(machine, config, kernel, p, choice);
}

/* Says how a brief tile computes a product: all of its k is in shared memory at once. */
static const char *brief_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    if (p->k > kernel->bk * kernel->stages)
        return "k is longer than its stages";
    if (p->arrays)
        return "operands in pointer arrays are left to other tiles";
    if (p->batch > UINT16_MAX || divide_up(p->m, kernel->bm) > UINT16_MAX)
        return "more than 65535 matrices or rows of tiles: the grid has no room";
    const int64_t at_once = (int64_t)machine->sms * resident_of(kernel, small_tile_of(kernel), p),
                  most = p->batch > 1 && p->k <= BRIEF_BATCH_K ? BRIEF_BATCH_ROUNDS * at_once : at_once / 2;
    if (small_tiles(kernel, p) > most)
        return "its blocks take more than half of the room: they would wait in each other's way";
    return tile_estimate(machine, config, kernel, p, choice);
}

int small_matrices_a_block(const rung_kernel *kernel)
{
    return kernel->threads / (kernel->bm / kernel->tm * (kernel->bn / kernel->tn));
}

static const char *batch_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                                  const rung_problem *p, rung_choice *choice)
{
    (void)config;
    if (p->m > kernel->bm || p->n > kernel->bn)
        return "m or n is larger than its tile";
    const char *reason = rung_refuse_sizes(p);
    if (reason)
        return reason;
    int64_t blocks = divide_up(p->batch, small_matrices_a_block(kernel));
    if (blocks > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    const int aligned = small_is_aligned(p);
    const double filled = (double)p->m * (double)p->n / (kernel->bm * kernel->bn),
                 wait_us = batch_wait_us + kernel->bm * (aligned ? batch_row_us : batch_odd_row_us),
                 block_us = small_tile_of(kernel)->cost.block_us * (0.55 + 0.5 * filled) * (aligned ? 1.0 : 1.3),
                 rounds = (double)divide_up(blocks, machine->sms);
    const double steps = (double)divide_up(p->k > 0 ? p->k : 1, kernel->bk),
                 memory = rung_read_us(machine, p) + rung_write_us(machine, p, odd_rows, kernel->bn);
    choice->cost_us = launch_us + rung_longer(memory, steps * rung_longer(rounds * block_us, wait_us));
    rung_note(choice, small_matrices_a_block(kernel) == 1 ? "%d matrix a block" : "%d matrices a block",
              small_matrices_a_block(kernel));
    return NULL;
}

/* What is the same for all ways in which a floor may be reached. */
typedef struct small_floor {
    int64_t tiles, steps, at_once;
    double work_us, old, memory, first, last; /* as small_work has them */
} small_floor;

static small_floor floor_of(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                            const rung_problem *p)
{
    const int64_t steps = divide_up(p->k, kernel->bk);
    const double read = rung_tiles_read_us(machine, p), write = write_us_of(machine, kernel, t, p);
    return (small_floor){.tiles = small_tiles(kernel, p),
                         .steps = steps,
                         .at_once = (int64_t)machine->sms * t->resident,
                         .work_us = (double)steps * step_us_of(machine, kernel, t, p),
                         .old = old_us_of(machine, t, p),
                         .memory = read + write,
                         .first = read * machine->memory_speed,
                         .last = write * rung_write_speed(machine)};
}

/* The least time there can be: every multiprocessor multiplies all the time; whole tiles come in rounds, parts of tiles
 * meet; and nothing takes place beside the first operands and the last results. */
static double tile_floor_us(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                            const rung_problem *p)
{
    const small_floor f = floor_of(machine, kernel, t, p);
    const double busiest = (double)divide_up(f.tiles, machine->sms), end_us = t->cost.block_us / t->resident,
                 /* There are at most `busiest` rounds. */
        whole = rung_longer(busiest, t->cost.alone) * f.work_us + busiest * end_us + f.old + f.last / busiest +
                f.first * first_of(kernel, (double)f.steps) / busiest;
    if (t->brief || p->in_order || !may_cut(p) || 2 * f.tiles > f.at_once)
        return launch_us_of(t) + rung_longer(f.memory, whole);
    /* Parts all run at once, each of half the steps at most. */
    const double shared = (double)f.tiles / machine->sms * f.work_us + end_us + f.old + f.last +
                          f.first * first_of(kernel, (double)(f.steps + 1) / 2.0);
    return launch_us + rung_lesser(rung_longer(f.memory, whole),
                                   rung_longer(f.memory, shared) + least_meeting_us(kernel, t, f.tiles, 2));
}

/* The same for a crowd, whose parts may also take a second round. */
static double crowd_floor_us(const rung_machine *machine, const rung_kernel *kernel, const small_tile *t,
                             const rung_problem *p)
{
    const small_floor f = floor_of(machine, kernel, t, p);
    const double filled = (double)f.tiles / (double)f.at_once, even = filled * t->resident,
                 rounds = rung_whole_up(filled), block_us = t->cost.block_us;
    double least = rung_longer(f.memory, rung_longer(rung_whole_up(even), t->cost.alone) * f.work_us +
                                             block_us * crowd_ends(filled) + f.old + f.last / rounds +
                                             f.first * first_of(kernel, (double)f.steps) / rounds);
    if (!p->in_order && may_cut(p) && 2 * f.tiles <= f.at_once)
        least = rung_lesser(least, rung_longer(f.memory, even * f.work_us + block_us * crowd_ends(2.0 * filled) +
                                                             f.old + f.last +
                                                             f.first * first_of(kernel, (double)(f.steps + 1) / 2.0)) +
                                       least_meeting_us(kernel, t, f.tiles, 2));
    if (!p->in_order && may_cut(p) && 2 * f.tiles <= most_cut_blocks(t, f.at_once))
        least = rung_lesser(least,
                            rung_longer(f.memory, even * f.work_us + block_us + f.old + f.last / 2.0 +
                                                      f.first * first_of(kernel, (double)(f.steps + 1) / 2.0) / 2.0) +
                                least_meeting_us(kernel, t, f.tiles, 2));
    return launch_us + least;
}

double small_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p)
{
    const small_tile *t = small_tile_of(kernel);
    if (t->batch)
        return p->m > kernel->bm || p->n > kernel->bn ? INFINITY : launch_us;
    if (t->brief && p->k > kernel->bk * kernel->stages)
        return INFINITY;
    return (t->crowd ? crowd_floor_us : tile_floor_us)(machine, kernel, t, p);
}

const char *small_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                           const rung_problem *p, rung_choice *choice)
{
    const small_tile *t = small_tile_of(kernel);
    return (t->crowd   ? crowd_estimate
            : t->brief ? brief_estimate
            : t->batch ? batch_estimate
                       : tile_estimate)(machine, config, kernel, p, choice);
}
