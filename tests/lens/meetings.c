/* How threads meet under the lens: named barriers, warp operations and mbarriers, in programs that a seed draws, with
 * threads that take turns by chance. Nobody goes on before all whom it waits for have come, everybody does then, and
 * each takes along what those whom it met have written. The scheduler and the clocks of threads stand here as a few
 * lines. */
#include "lens.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { THREADS = 128, ROUNDS = 6, MOST = 12, STACK = 64 * 1024, PROGRAMS = 400 };

/* One block of 80 threads, or a cluster of two of 64. */
static int threads, block_threads;

void rung_lens_bar_sync(int id, int count), rung_lens_bar_arrive(int id, int count);
uint64_t rung_lens_exchange(const char *what, uint32_t mask, uint64_t value, int from_lane);
uint32_t rung_lens_ballot(const char *what, uint32_t mask, int predicate);
void rung_lens_syncwarp(uint32_t mask);
void rung_lens_mbarrier_init(const void *object, uint32_t count);
void rung_lens_mbarrier_publish(void);
void rung_lens_mbarrier_arrive(const void *object, int64_t transaction_bytes);
void rung_lens_mbarrier_wait(const void *object, unsigned parity);
int rung_lens_mbarrier_test(const void *object, unsigned parity);
void rung_lens_mbarrier_arrive_cluster(const void *object, uint32_t rank);

/* ---- programs: rounds of meetings, with a barrier of all threads after each ---- */

typedef enum kind { NAMED, EXCHANGE, BALLOT, SYNCWARP, MBARRIER, KINDS } kind;
typedef enum part { APART, WAITS, ARRIVES } part; /* ARRIVES: it comes and does not wait */

typedef struct meeting {
    kind kind;
    int id, count;            /* of a barrier: who is expected */
    int block;                /* whose mbarrier it is */
    int64_t announced, bytes; /* MBARRIER: what a copy brings, and of that what has not come */
    part part[THREADS];
    int came, waiters, passed;
    uint32_t mask; /* of a warp */
    uint64_t value[32];
} meeting;

static meeting meetings[ROUNDS][MOST];
static int counts[ROUNDS], all_came[ROUNDS][2]; /* before a round and after it */
static uint64_t mbarriers[MOST];
static int now_round[THREADS];
static const meeting *comes_to[THREADS];
static const char *program;

static uint64_t dice;

static int below(int count)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)count);
}

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("FAILED: program %s, thread %d, round %d: ", program, lens_now.current,
           lens_now.current < 0 ? -1 : now_round[lens_now.current]);
    vprintf(format, list);
    puts("");
    va_end(list);
    exit(1);
}

static int parts_of(const meeting *m, part which)
{
    int count = 0;
    for (int t = 0; t < THREADS; t++)
        count += m->part[t] == which;
    return count;
}

/* At half of the barriers all who come wait. Two of these may have one number at a time, if their counts differ. */
static void draw_named(meeting *m, int number, const meeting *before)
{
    const int all_wait = below(2), block = below(threads / block_threads);
    const int shares = all_wait && before && before->kind == NAMED && before->id == number &&
                       parts_of(before, ARRIVES) == 0 && below(2);
    m->id = shares ? before->id : number + 1;
    for (int t = block * block_threads; t < (block + 1) * block_threads; t++)
        if (!shares || before->part[t] == APART)
            m->part[t] = below(3) == 0 ? APART : all_wait || below(2) ? WAITS : ARRIVES;
}

static void draw_warp(meeting *m)
{
    const int warp = below((threads + 31) / 32);
    do {
        m->mask = (uint32_t)below(1 << 16) << 16 | (uint32_t)below(1 << 16);
        m->mask = below(3) ? m->mask : UINT32_MAX;
        for (int lane = 0; lane < 32; lane++)
            if (warp * 32 + lane < threads)
                m->part[warp * 32 + lane] = m->mask >> lane & 1 ? WAITS : APART;
    } while (parts_of(m, WAITS) == 0);
    for (int lane = 0; lane < 32; lane++)
        m->value[lane] = ((uint64_t)below(1 << 30) << 20) + (uint64_t)lane;
}

static void draw_mbarrier(meeting *m)
{
    m->block = below(threads / block_threads);
    for (int t = 0; t < threads; t++) /* other blocks do not wait */
        m->part[t] = t / block_threads == m->block ? (part)below(3) : below(2) ? ARRIVES : APART;
    m->part[m->block * block_threads] = WAITS; /* it announces what a copy brings */
    m->announced = m->bytes = below(2) ? 16 * (1 + below(100)) : 0;
}

static void draw(void)
{
    memset(meetings, 0, sizeof meetings);
    for (int r = 0; r < ROUNDS; r++) {
        counts[r] = 1 + below(MOST);
        for (int i = 0; i < counts[r]; i++) {
            meeting *m = &meetings[r][i];
            const meeting *before = i > 0 ? m - 1 : NULL;
            m->kind = (kind)below(KINDS);
            if (m->kind == NAMED)
                draw_named(m, i, before);
            else if (m->kind == MBARRIER)
                draw_mbarrier(m);
            else
                draw_warp(m);
            m->waiters = parts_of(m, WAITS);
            m->count = m->waiters + parts_of(m, ARRIVES);
            if (m->count == 0 || (before && m->kind == NAMED && before->id == m->id && before->count == m->count))
                i--, memset(m, 0, sizeof *m);
        }
        memset(all_came[r], 0, sizeof all_came[r]);
    }
}

/* ---- the scheduler, and what threads know of each other ---- */

static ucontext_t scheduler, fibers[THREADS];
static unsigned char stacks[THREADS][STACK];
static bool knows[THREADS][THREADS]; /* [t][u]: what u wrote before the round's meeting, t may read */

void lens_wait(lens_state state)
{
    const int me = lens_now.current;
    lens_now.thread[me].state = state;
    swapcontext(&fibers[me], &scheduler);
}

void lens_look(uintptr_t pc)
{
    (void)pc;
    lens_wait(LENS_READY);
}

void lens_abandon(void)
{
    wrong("the launch is abandoned");
}

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    (void)fault, (void)pc;
    wrong("a finding: %s", format);
}

/* Whoever meets is ordered, and nobody else. */
static void learn_all(const bool member[THREADS])
{
    const meeting *m = comes_to[lens_now.current];
    for (int t = 0; t < THREADS; t++)
        if (member[t] != (m->part[t] != APART))
            wrong("thread %d %s a meeting that it %s", t, member[t] ? "is ordered by" : "misses",
                  member[t] ? "has no part in" : "is at");
    bool all[THREADS] = {false};
    for (int t = 0; t < THREADS; t++)
        for (int u = 0; u < THREADS && member[t]; u++)
            all[u] |= knows[t][u];
    for (int t = 0; t < THREADS; t++)
        for (int u = 0; u < THREADS && member[t]; u++)
            knows[t][u] |= all[u];
}

void lens_order_some(const bool *member, unsigned count)
{
    if (count != lens_now.threads)
        wrong("a barrier orders %u threads, of %d", count, threads);
    learn_all(member);
}

void lens_order_warp(int warp, uint32_t mask)
{
    bool member[THREADS] = {false};
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            member[warp * 32 + lane] = true;
    learn_all(member);
}

uint32_t *lens_order_new(void)
{
    return calloc(THREADS, sizeof(uint32_t));
}

void lens_order_clear(uint32_t *carried)
{
    memset(carried, 0, THREADS * sizeof *carried);
}

void lens_order_copy(uint32_t *to, const uint32_t *from)
{
    memcpy(to, from, THREADS * sizeof *to);
}

void lens_order_release(uint32_t *carried)
{
    for (int u = 0; u < THREADS; u++)
        carried[u] |= knows[lens_now.current][u];
}

void lens_order_acquire(const uint32_t *carried)
{
    for (int u = 0; u < THREADS; u++)
        knows[lens_now.current][u] |= carried[u] != 0;
}

void lens_order_release_agent(uint32_t *carried, int agent)
{
    (void)carried, (void)agent;
}

/* What meetings have no use for. */
bool lens_order_knows(int thread, uint32_t clock)
{
    (void)thread, (void)clock;
    return true;
}
uint32_t lens_order_now(void)
{
    return 0;
}
void lens_shadow_mbarrier(uintptr_t pc, uint32_t offset)
{
    (void)pc, (void)offset;
}
double lens_shuffles;
float lens_poison;
void lens_access(uintptr_t pc, const void *at, unsigned log2_bytes, rung_lens_kind access)
{
    (void)pc, (void)at, (void)log2_bytes, (void)access;
}
void lens_check_global(uintptr_t pc, uintptr_t address, unsigned bytes, bool write)
{
    (void)pc, (void)address, (void)bytes, (void)write;
}
void lens_cluster_note_read(uintptr_t pc, unsigned rank)
{
    (void)pc, (void)rank;
}
unsigned char *lens_image(unsigned rank)
{
    (void)rank;
    return NULL;
}
void lens_log(uintptr_t pc, uint64_t where)
{
    (void)pc, (void)where;
}
void lens_order_fence(void)
{
}
void lens_publish_read(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc, (void)address, (void)bytes;
}
void lens_shadow_async(uint32_t offset, unsigned bytes)
{
    (void)offset, (void)bytes;
}
void lens_shadow_fence(void)
{
}
void lens_shadow_landed(uint32_t offset, unsigned bytes)
{
    (void)offset, (void)bytes;
}
void lens_shadow_shared(uintptr_t pc, uint32_t offset, unsigned bytes, bool write)
{
    (void)pc, (void)offset, (void)bytes, (void)write;
}
bool lens_shadow_value(uintptr_t pc, uint32_t offset, unsigned bytes)
{
    (void)pc, (void)offset, (void)bytes;
    return true;
}
const char *lens_where_shared(uint32_t offset, char *text, size_t text_bytes)
{
    (void)offset, (void)text_bytes;
    return text;
}

/* ---- a thread's life ---- */

/* The thread has waited: everybody has come, and what they wrote may be read. */
static void pass(meeting *m, const char *what)
{
    const int me = lens_now.current;
    if (m->came != m->count)
        wrong("%s %d lets it pass when %d of %d have come", what, m->id, m->came, m->count);
    for (int u = 0; u < THREADS; u++)
        if (m->part[u] != APART && !knows[me][u])
            wrong("%s %d does not bring along what thread %d wrote", what, m->id, u);
    m->passed++;
}

static void take_part(meeting *m, const void *bar)
{
    const int me = lens_now.current, lane = me % 32, from = (int)(m->value[lane] >> 21 & 31);
    int came = 0, votes = 0, passed = 0;
    if (m->part[me] == APART)
        return;
    m->came++;
    comes_to[me] = m;
    switch (m->kind) {
    case NAMED:
        if (m->part[me] == ARRIVES) {
            rung_lens_bar_arrive(m->id, m->count);
            return;
        }
        rung_lens_bar_sync(m->id, m->count);
        pass(m, "barrier");
        return;
    case EXCHANGE: {
        const uint64_t got = rung_lens_exchange("exchange", m->mask, m->value[lane], from);
        const int there = m->mask >> from & 1 && me - lane + from < threads;
        if (there && got != m->value[from])
            wrong("lane %d's value did not arrive", from);
        if (!there && got != UINT64_MAX)
            wrong("lane %d, which has not come, brought a value", from);
        pass(m, "exchange");
        return;
    }
    case BALLOT: {
        const uint32_t got = rung_lens_ballot("vote", m->mask, (int)(m->value[lane] >> 25 & 1));
        for (int i = 0; i < 32; i++)
            if (m->mask >> i & 1 && me - lane + i < threads) {
                came++;
                votes |= (int)(m->value[i] >> 25 & 1) << i;
            }
        if (got != (uint32_t)votes || came != m->count)
            wrong("the vote is %08x, not %08x", got, (unsigned)votes);
        pass(m, "vote");
        return;
    }
    case SYNCWARP:
        rung_lens_syncwarp(m->mask);
        pass(m, "warp");
        return;
    default:
        if (me / block_threads != m->block) {
            rung_lens_mbarrier_arrive_cluster(bar, (uint32_t)m->block);
            return;
        }
        rung_lens_mbarrier_arrive(bar, me % block_threads == 0 ? m->announced : 0);
        if (m->part[me] == ARRIVES)
            return;
        while (!passed && below(3)) { /* it looks, and waits where it has not seen that all is there */
            passed = rung_lens_mbarrier_test(bar, 0);
            if (!passed && m->came == m->count && !m->bytes)
                wrong("a look at an mbarrier says that it has not passed, and all have come");
            if (!passed)
                lens_look(0);
        }
        if (!passed)
            rung_lens_mbarrier_wait(bar, 0);
        if (m->bytes)
            wrong("an mbarrier lets it pass though %lld bytes have not come", (long long)m->bytes);
        pass(m, "mbarrier");
    }
}

/* One thread of each block makes its mbarriers of a round anew. At the same place another block has one that nobody
 * comes to. */
static void make_mbarriers(int round)
{
    for (int i = 0; i < counts[round]; i++) {
        const meeting *m = &meetings[round][i];
        if (m->kind == MBARRIER)
            rung_lens_mbarrier_init(&mbarriers[i], m->block == (int)lens_now.rank ? (uint32_t)m->count : THREADS + 1);
    }
    rung_lens_mbarrier_publish();
}

/* All threads of a cluster meet as the scheduler lets them: here once nobody else can go on. */
static void meet_all(int *here)
{
    ++*here;
    lens_wait(LENS_AT_CLUSTER);
    if (*here != threads)
        wrong("the barrier of all lets it pass when %d have come", *here);
}

static void life(void)
{
    const int me = lens_now.current;
    for (int r = 0; r < ROUNDS; r++) {
        now_round[me] = r;
        if (me % block_threads == r)
            make_mbarriers(r);
        meet_all(&all_came[r][0]);
        memset(knows[me], 0, sizeof knows[me]);
        knows[me][me] = true;
        for (int i = 0; i < counts[r]; i++)
            take_part(&meetings[r][i], &mbarriers[i]);
        meet_all(&all_came[r][1]);
    }
    lens_wait(LENS_DONE);
}

/* A copy whose barrier all have come to ends, sooner or later. */
static void end_copies(void)
{
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < counts[r]; i++) {
            meeting *m = &meetings[r][i];
            if (m->kind == MBARRIER && m->bytes && m->came && below(4) == 0) {
                const int64_t bytes = m->bytes;
                m->bytes = 0;
                lens_mbarrier_complete(0, lens_mbarrier_key(&mbarriers[i], (unsigned)m->block), bytes, 0);
            }
        }
}

/* Runs a thread that can go on, drawn by the dice. Returns false where there is none. */
static bool run_one(void)
{
    int ready[THREADS], count = 0;
    for (int t = 0; t < threads; t++)
        if (lens_now.thread[t].state == LENS_READY)
            ready[count++] = t;
    if (count == 0)
        return false;
    lens_now.current = ready[below(count)];
    lens_now.rank = (unsigned)(lens_now.current / block_threads);
    swapcontext(&scheduler, &fibers[lens_now.current]);
    return true;
}

/* Looks after the mbarriers of a part of the threads: those of the others stay. */
static void poll(int from, int to)
{
    int waited = 0, wait = 0;
    for (int t = from; t < to; t++)
        waited += lens_now.thread[t].state == LENS_AT_MBARRIER;
    const bool some = lens_sync_poll((unsigned)from, (unsigned)to);
    for (int t = from; t < to; t++) {
        const lens_thread *x = &lens_now.thread[t];
        wait += x->state == LENS_AT_MBARRIER;
        if (x->state == LENS_AT_MBARRIER && lens_mbarrier_ready(x->wait_object, x->wait_parity))
            wrong("thread %d need not wait any longer", t);
    }
    if (some != (wait < waited))
        wrong("%d threads go on, and the answer is %d", waited - wait, some);
}

static void open_cluster(void)
{
    int waiting = 0;
    for (int t = 0; t < threads; t++)
        waiting += lens_now.thread[t].state == LENS_AT_CLUSTER;
    for (int t = 0; t < threads && waiting == threads; t++)
        lens_now.thread[t].state = LENS_READY;
}

static void run_program(void)
{
    memset(lens_now.thread, 0, sizeof lens_now.thread);
    lens_now.threads = (unsigned)threads;
    lens_now.block_threads = (unsigned)block_threads;
    lens_now.cluster = (unsigned)(threads / block_threads);
    lens_sync_begin(lens_now.threads);
    for (int t = 0; t < threads; t++) {
        getcontext(&fibers[t]);
        fibers[t].uc_stack.ss_sp = stacks[t];
        fibers[t].uc_stack.ss_size = STACK;
        makecontext(&fibers[t], life, 0);
        lens_now.thread[t].index = t;
    }
    for (int idle = 0; idle < 200; idle++) {
        while (run_one()) {
            idle = 0;
            end_copies();
            const int from = below(threads + 1);
            if (below(8) == 0)
                poll(from, from + below(threads + 1 - from));
        }
        end_copies();
        poll(0, threads);
        open_cluster();
    }
    for (int t = 0; t < threads; t++)
        if (lens_now.thread[t].state != LENS_DONE) {
            lens_now.current = t;
            wrong("it waits for ever");
        }
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < counts[r]; i++)
            if (meetings[r][i].passed != meetings[r][i].waiters)
                wrong("%d of %d have passed", meetings[r][i].passed, meetings[r][i].waiters);
}

int main(void)
{
    static lens_module module;
    lens_module_now = &module;
    for (int seed = 0; seed < PROGRAMS; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        program = text;
        dice = (uint64_t)seed;
        threads = seed % 2 ? 128 : 80;
        block_threads = seed % 2 ? 64 : 80;
        draw();
        run_program();
    }
    printf("ok: %d programs\n", PROGRAMS);
    return 0;
}
