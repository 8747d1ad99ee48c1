/* Runs a launch: blocks one after another, the threads of a block as fibers that take turns at barriers.
 * A lane that computes too long between two barriers, and memory that is not there, end the launch with a finding. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lens.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

typedef struct lens_uint3 {
    unsigned x, y, z;
} lens_uint3;

/* Kernels read these; they are set before each fiber runs. */
RUNG_LENS_API lens_uint3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- watching over lanes that never come back and addresses that do not exist ---- */

static volatile sig_atomic_t ticks_without;
static uint64_t turns_seen, progress_seen;
static int patience_ticks;
static const char has_looked[] = "has looked for %.3g seconds for what no thread does: an endless loop";
static const char still_runs[] =
    "still runs after %.3g seconds of computing without reaching a barrier or its end: an endless loop";

/* Only a fiber can be left for the scheduler. Where the signal catches the scheduler itself, which turns to a fiber
 * just then, it goes on: the place that it would come back to is not written yet. */
static bool on_a_fiber(void *context)
{
    const ucontext_t *machine = context;
    return lens_now.current >= 0 && lens_in_stacks((uintptr_t)machine->uc_mcontext.gregs[REG_RSP]);
}

static uintptr_t where_was_it(void *context)
{
    const ucontext_t *machine = context;
    uintptr_t pc = (uintptr_t)machine->uc_mcontext.gregs[REG_RIP];
    if (pc >= lens_module_now->base && pc < lens_module_now->end)
        return pc + 1; /* lines are looked up one byte before, as for return addresses */
    const lens_thread *me = &lens_now.thread[lens_now.current];
    return me->entries ? me->last.pc : 0;
}

static void on_tick(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)info;
    bool turns = turns_seen != lens_now.turns; /* lanes that take turns look for news, and run_thread watches them */
    turns_seen = lens_now.turns;
    if (progress_seen != lens_now.progress) {
        progress_seen = lens_now.progress;
        ticks_without = 0;
        return;
    }
    if (++ticks_without < patience_ticks || turns || !on_a_fiber(context))
        return;
    lens_find(RUNG_LENS_ENDLESS, where_was_it(context), still_runs, patience_ticks * 0.25);
    lens_abandon();
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    if (!on_a_fiber(context)) {
        signal(signal_number, SIG_DFL);
        return;
    }
    if (signal_number == SIGFPE)
        lens_find(
            RUNG_LENS_TRAP, where_was_it(context),
            "divides a whole number by zero, or by -1 where the result is too large: a GPU gives any number there");
    else if (lens_below_stack((uintptr_t)info->si_addr))
        lens_find(RUNG_LENS_TRAP, where_was_it(context),
                  "needs more than %d KiB for its local arrays and calls, which is all that the lens has for a thread",
                  (LENS_STACK_BYTES - LENS_STACK_FENCE_BYTES) / 1024);
    else
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, where_was_it(context), "touches address %p, where nothing is",
                  info->si_addr);
    lens_abandon();
}

static struct sigaction old_tick, old_segv, old_bus, old_fpe;
static unsigned char fault_stack[32768];

static void watch_begin(void)
{
    const double patience = lens_options.patience_seconds > 0 ? lens_options.patience_seconds : 10, most = 1e9;
    patience_ticks = patience < 0.25 ? 1 : patience < most / 4 ? (int)(patience * 4) : (int)most;
    ticks_without = 0;
    stack_t alternate = {.ss_sp = fault_stack, .ss_size = sizeof fault_stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    sigaction(SIGVTALRM, &action, &old_tick);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    sigaction(SIGFPE, &action, &old_fpe);
    struct itimerval every = {.it_interval = {.tv_usec = 250000}, .it_value = {.tv_usec = 250000}};
    setitimer(ITIMER_VIRTUAL, &every, NULL);
}

static void watch_end(void)
{
    struct itimerval none = {0};
    setitimer(ITIMER_VIRTUAL, &none, NULL);
    sigaction(SIGVTALRM, &old_tick, NULL);
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    sigaction(SIGFPE, &old_fpe, NULL);
}

/* ---- one block ---- */

static void run_thread(int index)
{
    unsigned rank = lens_rank_of(index);
    lens_cluster_enter(rank);
    lens_now.current = index;
    lens_now.turns++;
    lens_now.looked = false;
    threadIdx.x = (unsigned)index - rank * lens_now.block_threads;
    blockIdx.x = lens_now.index[0] + rank;
    lens_switch(&lens_now.scheduler_sp, lens_now.thread[index].sp);
    if (lens_now.looked && ticks_without >= patience_ticks) {
        const lens_thread *t = &lens_now.thread[index];
        lens_find(RUNG_LENS_ENDLESS, t->wait_pc, t->full_logs > LENS_MANY_LOGS ? still_runs : has_looked,
                  patience_ticks * 0.25);
        lens_now.abandoned = true;
    }
    lens_now.current = -1;
    lens_now.progress += !lens_now.looked;
}

/* Lets each lane of a warp that can run have a turn. Returns whether one could. */
static bool run_warp(unsigned warp)
{
    bool ran = false, full = false;
    unsigned end = warp * 32 + 32 < lens_now.threads ? warp * 32 + 32 : lens_now.threads;
    for (unsigned i = warp * 32; i < end && !lens_now.abandoned; i++) {
        if (lens_now.thread[i].state == LENS_READY) {
            run_thread((int)i);
            ran = true;
        }
        full |= lens_now.thread[i].entries >= LENS_LOG_TURN;
    }
    if (full)
        lens_flush_warp((int)warp);
    return ran;
}

/* Runs a warp until its lanes wait for other warps, or only look for what these do. */
static bool run_ahead(unsigned warp)
{
    bool ran = false;
    unsigned end = warp * 32 + 32 < lens_now.threads ? warp * 32 + 32 : lens_now.threads;
    for (;;) {
        const uint64_t before = lens_now.progress;
        bool now = run_warp(warp);
        ran |= now;
        if (!now || lens_now.abandoned || lens_now.progress == before)
            return ran;
        lens_sync_poll(warp * 32, end);
    }
}

static bool take_turns(lens_pace pace)
{
    bool ran = false;
    unsigned warps = (lens_now.threads + 31) / 32;
    for (unsigned i = 0; i < warps && !lens_now.abandoned; i++)
        ran |= pace == LENS_IN_TURN ? run_warp(i) : run_ahead(pace == LENS_FIRST_AHEAD ? i : warps - 1 - i);
    return ran;
}

static void flush_all(void)
{
    for (unsigned warp = 0; warp * 32 < lens_now.threads; warp++)
        lens_flush_warp((int)warp);
}

static bool same_line(uintptr_t a, uintptr_t b)
{
    if (a == b)
        return true;
    uintptr_t pcs[2] = {a, b};
    char files[2][256];
    int lines[2];
    lens_lines(lens_module_now, pcs, 2, files, lines);
    return lines[0] > 0 && lines[0] == lines[1] && strcmp(files[0], files[1]) == 0;
}

static int line_of(uintptr_t pc)
{
    char file[1][256];
    int line;
    lens_lines(lens_module_now, &pc, 1, file, &line);
    return line;
}

/* Checks that it is one and the same barrier, where all that still run in a block are at block-wide barriers. */
static void check_barrier(unsigned from, unsigned to, int first, int waiting, int done)
{
    const lens_thread *leader = &lens_now.thread[first];
    for (unsigned i = from; i < to; i++) {
        const lens_thread *t = &lens_now.thread[i];
        if (t->state != LENS_AT_BARRIER || same_line(t->wait_pc, leader->wait_pc))
            continue;
        lens_now.current = (int)i;
        lens_find(RUNG_LENS_DIVERGENT_BARRIER, t->wait_pc,
                  "waits at this barrier while thread %d waits at the one on line %d: a divergent barrier",
                  first - (int)from, line_of(leader->wait_pc));
        lens_now.current = -1;
        return;
    }
    if (done == 0)
        return;
    lens_now.current = first;
    lens_find(RUNG_LENS_DIVERGENT_BARRIER, leader->wait_pc,
              "waits with %d others at a barrier that %d threads of the block never reach: they have returned",
              waiting - 1, done);
    lens_now.current = -1;
}

static void report_stuck(void)
{
    for (unsigned i = 0; i < lens_now.threads; i++) {
        const lens_thread *t = &lens_now.thread[i];
        char text[128];
        if (t->state == LENS_READY || t->state == LENS_DONE)
            continue;
        lens_now.current = (int)i;
        if (t->state == LENS_AT_WARP)
            lens_find(RUNG_LENS_DEADLOCK, t->wait_pc,
                      "waits for lanes of mask 0x%08x that never come to this warp operation", t->warp_mask);
        else if (t->state == LENS_AT_MBARRIER)
            lens_find(RUNG_LENS_DEADLOCK, t->wait_pc, "waits for ever: %s",
                      lens_mbarrier_state(t->wait_object, text, sizeof text));
        else if (t->state == LENS_AT_CLUSTER)
            lens_find(RUNG_LENS_DEADLOCK, t->wait_pc,
                      "waits for ever at a cluster barrier: not all of its threads come");
        else
            lens_find(t->barrier_count ? RUNG_LENS_DEADLOCK : RUNG_LENS_DIVERGENT_BARRIER, t->wait_pc,
                      "waits for ever at barrier %d: not all of its threads come", t->barrier_id);
        lens_now.current = -1;
    }
}

/* Opens the barrier of one block when all that still run are at it. */
static bool open_barrier(unsigned from, unsigned to, double *barriers)
{
    int waiting = 0, done = 0, first = -1, predicates = 0;
    for (unsigned i = from; i < to; i++) {
        const lens_thread *t = &lens_now.thread[i];
        if (t->state == LENS_DONE) {
            done++;
        } else if (t->state == LENS_AT_BARRIER && t->barrier_count == 0) {
            waiting++;
            predicates += t->predicate;
            first = first < 0 ? (int)i : first;
        } else {
            return false;
        }
    }
    if (waiting == 0)
        return false;
    check_barrier(from, to, first, waiting, done);
    *barriers += lens_now.weight;
    for (unsigned warp = from / 32; warp * 32 < to; warp++)
        lens_flush_warp((int)warp);
    lens_order_block(from, to);
    for (unsigned i = from; i < to; i++)
        if (lens_now.thread[i].state == LENS_AT_BARRIER) {
            lens_now.thread[i].predicates = predicates;
            lens_now.thread[i].state = LENS_READY;
        }
    return true;
}

static bool open_cluster_barrier(void)
{
    int waiting = 0;
    for (unsigned i = 0; i < lens_now.threads; i++) {
        if (lens_now.thread[i].state != LENS_AT_CLUSTER && lens_now.thread[i].state != LENS_DONE)
            return false;
        waiting += lens_now.thread[i].state == LENS_AT_CLUSTER;
    }
    if (waiting == 0)
        return false;
    lens_cluster_meets();
    flush_all();
    lens_order_block(0, lens_now.threads);
    for (unsigned i = 0; i < lens_now.threads; i++)
        if (lens_now.thread[i].state == LENS_AT_CLUSTER)
            lens_now.thread[i].state = LENS_READY;
    return true;
}

/* Opens the barriers that can be opened. A block's barrier opens while others of its cluster run: they may wait, in a
 * loop, for what comes after it. */
static bool open_barriers(double *barriers)
{
    bool opened = false;
    for (unsigned from = 0; from < lens_now.threads; from += lens_now.block_threads)
        opened |= open_barrier(from, from + lens_now.block_threads, barriers);
    return opened || open_cluster_barrier();
}

/* Ends a block in which nobody can run, now or later: all are done, or some will wait for ever. */
static void end_block(void)
{
    bool all_done = true;
    for (unsigned i = 0; i < lens_now.threads; i++)
        all_done &= lens_now.thread[i].state == LENS_DONE;
    if (all_done) {
        lens_sync_end();
        return;
    }
    report_stuck();
    lens_now.abandoned = true;
}

static void run_block(const lens_launch_config *config, double *barriers)
{
    lens_shadow_block(lens_now.threads);
    lens_publish_block();
    lens_cluster_poison(config->finite_poison);
    lens_sync_begin(lens_now.threads);
    for (unsigned i = 0; i < lens_now.threads; i++) {
        lens_thread *t = &lens_now.thread[i];
        t->sp = lens_fiber_prepare(t->stack, LENS_STACK_BYTES, config->entry, config->argument, config->argument_bytes);
        t->state = LENS_READY;
        t->entries = 0;
        t->full_logs = 0;
        t->copy_count = t->open_group = 0;
        t->store_pc = 0;
        t->product_groups = 0;
        t->early = config->overlaps;
        t->arrived_at = 0;
    }
    while (!lens_now.abandoned) {
        bool ran = take_turns(config->pace);
        if (lens_now.abandoned)
            break;
        bool woken = lens_sync_poll(0, lens_now.threads), opened = open_barriers(barriers);
        if (!ran && !woken && !opened) {
            end_block();
            break;
        }
    }
    lens_cluster_ends();
    flush_all();
}

/* ---- the grid: blocks are of four kinds: inside, last along x, last along y, both ---- */

typedef struct kind_of_block {
    int64_t total, chosen, seen, run;
} kind_of_block;

static int kind_of(const unsigned grid[3], unsigned x, unsigned y)
{
    return (x == grid[0] - 1) | (y == grid[1] - 1) << 1;
}

static void count_kinds(const unsigned grid[3], kind_of_block kinds[4])
{
    int64_t inner_x = (int64_t)grid[0] - 1, inner_y = (int64_t)grid[1] - 1, z = grid[2];
    memset(kinds, 0, 4 * sizeof *kinds);
    kinds[0].total = inner_x * inner_y * z;
    kinds[1].total = inner_y * z;
    kinds[2].total = inner_x * z;
    kinds[3].total = z;
    for (int i = 0; i < 4; i++) {
        int64_t most = lens_options.max_blocks;
        kinds[i].chosen = most > 0 && kinds[i].total > most ? most : kinds[i].total;
    }
}

/* Returns whether the `seen`-th block of a kind runs: it does when it is one of `chosen` spread evenly over `total`. */
static bool is_chosen(const kind_of_block *kind)
{
    return kind->seen * kind->chosen / kind->total != (kind->seen + 1) * kind->chosen / kind->total;
}

static int64_t run_grid(const lens_launch_config *config, double *barriers, unsigned picture[3])
{
    kind_of_block kinds[4];
    const unsigned grid[3] = {config->grid[0] / config->cluster, config->grid[1], config->grid[2]}; /* in clusters */
    count_kinds(grid, kinds);
    int picture_kind = kinds[0].total ? 0 : kinds[2].total ? 2 : kinds[1].total ? 1 : 3;
    int64_t run = 0;
    bool pictured = false;
    for (unsigned z = 0; z < grid[2] && !lens_now.abandoned; z++)
        for (unsigned y = 0; y < grid[1] && !lens_now.abandoned; y++)
            for (unsigned x = 0; x < grid[0] && !lens_now.abandoned; x++) {
                int which = kind_of(grid, x, y);
                kind_of_block *kind = &kinds[which];
                bool chosen = is_chosen(kind);
                kind->seen++;
                if (!chosen)
                    continue;
                lens_now.weight = (double)kind->total / (double)kind->chosen;
                lens_now.index[0] = blockIdx.x = x * config->cluster;
                lens_now.index[1] = blockIdx.y = y;
                lens_now.index[2] = blockIdx.z = z;
                lens_now.sampled = !pictured && which == picture_kind && kind->run >= (kind->chosen - 1) / 2;
                if (lens_now.sampled) {
                    pictured = true;
                    memcpy(picture, lens_now.index, sizeof lens_now.index);
                }
                kind->run++;
                run += config->cluster;
                run_block(config, barriers);
            }
    return run;
}

/* ---- launches that have run; lines are looked up when somebody asks ---- */

typedef struct launch_record {
    rung_lens_launch launch;
    lens_module *module;
    uintptr_t *site_pcs, *finding_pcs;
    bool resolved;
} launch_record;

static launch_record *records;
static int record_count;

static void keep(const launch_record *record)
{
    launch_record *more = realloc(records, (size_t)(record_count + 1) * sizeof *records);
    if (!more)
        return;
    records = more;
    records[record_count++] = *record;
}

int rung_lens_launch_count(void)
{
    return record_count;
}

static void resolve_findings(launch_record *record)
{
    int count = record->launch.finding_count;
    rung_lens_finding *findings = (rung_lens_finding *)(uintptr_t)record->launch.findings;
    char(*files)[256] = malloc((size_t)count * sizeof *files);
    int *lines = malloc((size_t)count * sizeof *lines);
    if (files && lines) {
        lens_lines(record->module, record->finding_pcs, count, files, lines);
        for (int i = 0; i < count; i++) {
            memcpy(findings[i].file, files[i], sizeof files[i]);
            findings[i].line = lines[i];
            lens_finding_compose(&findings[i]);
        }
    }
    free(files);
    free(lines);
}

const rung_lens_launch *rung_lens_launch_at(int index)
{
    if (index < 0 || index >= record_count)
        return NULL;
    launch_record *record = &records[index];
    if (!record->resolved) {
        resolve_findings(record);
        lens_sites_resolve(&record->launch, record->module, record->site_pcs);
        record->resolved = true;
    }
    return &record->launch;
}

void rung_lens_reset(void)
{
    for (int i = 0; i < record_count; i++) {
        free((void *)(uintptr_t)records[i].launch.sites);
        free((void *)(uintptr_t)records[i].launch.findings);
        free((void *)(uintptr_t)records[i].launch.owners);
        free(records[i].site_pcs);
        free(records[i].finding_pcs);
    }
    record_count = 0;
    lens_memory_reset();
}

void rung_lens_configure(const rung_lens_options *options)
{
    lens_options = *options;
    lens_counting = true;
}

int rung_lens_version(void)
{
    return RUNG_LENS_VERSION;
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int lens_run(const lens_launch_config *config)
{
    if (lens_stacks_make() != 0)
        return -1;
    double begin = now_seconds();
    launch_record record = {.module = config->module};
    rung_lens_launch launch = {.threads = config->threads,
                               .cluster = config->cluster,
                               .static_shared_bytes = (int)lens_static_bytes(config->module, config->symbol),
                               .dynamic_shared_bytes = (int)config->dynamic_shared_bytes};
    strncpy(launch.kernel, config->symbol, sizeof launch.kernel - 1);
    memcpy(launch.grid, config->grid, sizeof launch.grid);
    launch.blocks = (int64_t)config->grid[0] * config->grid[1] * config->grid[2];
    gridDim = (lens_uint3){config->grid[0], config->grid[1], config->grid[2]};
    blockDim = (lens_uint3){config->threads, 1, 1};
    threadIdx = (lens_uint3){0, 0, 0};
    lens_now.block_threads = config->threads;
    lens_now.cluster = config->cluster;
    lens_now.threads = config->threads * config->cluster;
    lens_now.rank = 0;
    lens_now.abandoned = false;
    lens_now.current = -1;
    lens_module_enter(config->module, config->dynamic_shared_bytes);
    lens_shadow_begin(config->module->shared_bytes * config->cluster);
    if (lens_cluster_begin(config->cluster) != 0)
        return -1;
    lens_findings_begin();
    lens_sites_begin();
    lens_publish_begin();
    watch_begin();
    launch.blocks_run = run_grid(config, &launch.barriers, launch.owner_block);
    watch_end();
    lens_findings_end(&launch, &record.finding_pcs);
    lens_sites_end(&launch, &record.site_pcs);
    launch.seconds = now_seconds() - begin;
    record.launch = launch;
    keep(&record);
    return lens_now.abandoned ? -1 : 0;
}
