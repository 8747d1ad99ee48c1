/* What is known of each 4-byte word of shared memory: who wrote it, who read it, and whether the one can know of the
 * other. Vector clocks keep the order between threads: a thread has a clock that advances at each release. A block-wide
 * barrier is one snapshot of all clocks; warps, named barriers and mbarriers join the clocks that they carry. Bulk
 * copies write as agents of their own, known only to those who waited for the mbarrier; bulk stores and tensor cores
 * read as agents, known to those who waited for them. Between a thread's write and an agent's access stands a fence
 * (fence.proxy.async) of the writer, or of the one who starts the access and knows of the write; whoever else may fence
 * is not looked for. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Agents come first, as a small block needs few of them. Warps far apart share one: then a wait of the one counts for
 * the other, and something may go unseen. */
enum {
    COPIES = 64,
    STORES = 4,
    PRODUCTS = 16,
    AGENTS = COPIES + STORES + PRODUCTS,
    CLOCKS = AGENTS + LENS_MOST_THREADS
};

typedef struct word {
    uint32_t block; /* the serial number of the block that touched it last */
    uint32_t write_clock, plain_clock, read_clock, other_clock, far_clock, atomic_clock, far_atomic_clock;
    /* plain: of the last write that was no atomic; other: who read before the last reader; far: the last one of another
     * warp before it. So with atomics: who wrote before the last one, and who of another warp. */
    uint16_t writer, plain_writer, reader, other_reader, far_reader, atomic_writer, far_atomic_writer;
    uint8_t written, read; /* masks of bytes: written so far, read since the last write */
    uint8_t last_write;    /* the bytes of the last write, */
    uint8_t plain_write;   /* and of the last one that was no atomic */
    uint8_t pending;       /* a cp.async into it is under way */
} word;

static word *words;
static size_t word_count;
static uint32_t block_serial;
static uint32_t clocks[CLOCKS], snapshot[CLOCKS];
static uint32_t (*rows)[CLOCKS]; /* rows[t][w] is the latest clock of w that t knows of, beyond the snapshot */
static unsigned char *row_used;
static uint32_t common[LENS_WARPS][CLOCKS]; /* what all lanes of a warp know, beyond the snapshot */
static bool common_used[LENS_WARPS];
typedef struct fences {
    uint32_t *at; /* the clock of its thread at each, ascending */
    size_t count, room;
} fences;
typedef struct fence_kind {
    fences of[LENS_MOST_THREADS];
    uint32_t (*known)[CLOCKS]; /* what a thread knew of others at its last fence */
    bool used;                 /* in this block */
} fence_kind;
static fence_kind proxy_fences, gpu_fences; /* fence.proxy.async; __threadfence */
static unsigned clock_count;                /* how many are in use: those of the agents and of this block's threads */

static unsigned clock_of(unsigned thread)
{
    return AGENTS + thread;
}

static unsigned warp_of(unsigned clock)
{
    return (clock - AGENTS) / 32;
}

/* Lanes of a warp may know of each other where nobody else does. */
static bool same_warp(unsigned a, unsigned b)
{
    return a >= AGENTS && b >= AGENTS && warp_of(a) == warp_of(b);
}

static unsigned my_clock(void)
{
    return clock_of((unsigned)lens_now.current);
}

static unsigned agent_clock(int agent)
{
    return (unsigned)agent % COPIES;
}

static unsigned engine_clock(lens_engine engine)
{
    unsigned warp = (unsigned)lens_now.current / 32;
    return engine == LENS_BULK_STORE ? COPIES + warp % STORES : COPIES + STORES + warp % PRODUCTS;
}

void lens_shadow_begin(size_t shared_bytes)
{
    size_t need = shared_bytes / 4 + 8;
    if (need > word_count) {
        free(words);
        words = calloc(need, sizeof *words);
        word_count = words ? need : 0;
    }
    if (!rows)
        rows = malloc(CLOCKS * sizeof *rows);
    if (!row_used)
        row_used = calloc(CLOCKS, 1);
    if (!words || !rows || !row_used)
        abort();
}

void lens_shadow_block(unsigned threads)
{
    block_serial++;
    clock_count = AGENTS + threads;
    for (unsigned i = 0; i < clock_count; i++) {
        clocks[i] = 1;
        snapshot[i] = 0;
    }
    memset(row_used, 0, clock_count);
    memset(common_used, 0, sizeof common_used);
    for (unsigned i = 0; i < threads; i++)
        proxy_fences.of[i].count = gpu_fences.of[i].count = 0;
    proxy_fences.used = gpu_fences.used = false;
}

static uint32_t *row_of(unsigned t)
{
    if (!row_used[t]) {
        memset(rows[t], 0, clock_count * sizeof rows[t][0]);
        row_used[t] = 1;
    }
    return rows[t];
}

static bool knows(unsigned t, unsigned other, uint32_t clock)
{
    return t == other || clock <= snapshot[other] || (common_used[warp_of(t)] && clock <= common[warp_of(t)][other]) ||
           (row_used[t] && clock <= rows[t][other]);
}

static void join(uint32_t *into, const uint32_t *from)
{
    for (unsigned i = 0; i < clock_count; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

/* Returns the first of the members behind those of the first one's warp. Members are in ascending order. */
static unsigned end_of_warp(const unsigned *members, unsigned first, unsigned count)
{
    unsigned end = first + 1;
    while (end < count && warp_of(members[end]) == warp_of(members[first]))
        end++;
    return end;
}

/* Lets these members, all of one warp, know from now on what `joined` holds, which is all that each of them knew. */
static void teach(const unsigned *members, unsigned count, const uint32_t *joined)
{
    unsigned warp = warp_of(members[0]), lanes = lens_now.threads - warp * 32;
    bool whole = count == (lanes < 32 ? lanes : 32);
    if (whole)
        memcpy(common[warp], joined, clock_count * sizeof *joined);
    common_used[warp] |= whole;
    for (unsigned i = 0; i < count; i++) {
        if (!whole)
            memcpy(rows[members[i]], joined, clock_count * sizeof *joined);
        row_used[members[i]] = !whole;
    }
}

static void order(const unsigned *members, unsigned count)
{
    static uint32_t joined[CLOCKS];
    memset(joined, 0, clock_count * sizeof *joined);
    for (unsigned i = 0; i < count; i = end_of_warp(members, i, count))
        if (common_used[warp_of(members[i])])
            join(joined, common[warp_of(members[i])]);
    for (unsigned i = 0; i < count; i++)
        if (row_used[members[i]])
            join(joined, rows[members[i]]);
    for (unsigned i = 0; i < count; i++)
        joined[members[i]] = clocks[members[i]]++;
    for (unsigned i = 0; i < count;) {
        unsigned end = end_of_warp(members, i, count);
        teach(members + i, end - i, joined);
        i = end;
    }
}

/* Lets all know what a thread has learnt of agents. */
static void publish_agents(const uint32_t *known)
{
    for (unsigned a = 0; a < AGENTS; a++)
        snapshot[a] = known[a] > snapshot[a] ? known[a] : snapshot[a];
}

void lens_order_block(unsigned from, unsigned to)
{
    static unsigned members[LENS_MOST_THREADS];
    if (to - from < lens_now.threads) { /* it is one block of a cluster */
        for (unsigned i = from; i < to; i++)
            members[i - from] = clock_of(i);
        order(members, to - from);
        return;
    }
    for (unsigned i = clock_of(from); i < clock_of(to); i++)
        snapshot[i] = clocks[i]++;
    for (unsigned i = clock_of(from); i < clock_of(to); i++)
        if (row_used[i])
            publish_agents(rows[i]);
    for (unsigned warp = 0; warp < LENS_WARPS; warp++)
        if (common_used[warp])
            publish_agents(common[warp]);
    memset(row_used, 0, clock_count);
    memset(common_used, 0, sizeof common_used);
}

void lens_order_warp(int warp, uint32_t mask)
{
    unsigned members[32], count = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        members[count++] = clock_of((unsigned)warp * 32 + (unsigned)__builtin_ctz(left));
    order(members, count);
}

void lens_order_some(const bool *member, unsigned threads)
{
    static unsigned members[LENS_MOST_THREADS];
    unsigned count = 0;
    for (unsigned i = 0; i < threads; i++)
        if (member[i])
            members[count++] = clock_of(i);
    order(members, count);
}

uint32_t *lens_order_new(void)
{
    return calloc(CLOCKS, sizeof(uint32_t));
}

void lens_order_clear(uint32_t *carried)
{
    memset(carried, 0, clock_count * sizeof *carried);
}

void lens_order_copy(uint32_t *to, const uint32_t *from)
{
    memcpy(to, from, clock_count * sizeof *to);
}

static void know_all_of(unsigned me, uint32_t *into)
{
    if (row_used[me])
        join(into, rows[me]);
    if (common_used[warp_of(me)])
        join(into, common[warp_of(me)]);
    join(into, snapshot);
}

void lens_order_release(uint32_t *carried)
{
    unsigned me = my_clock();
    know_all_of(me, carried);
    carried[me] = clocks[me]++;
}

void lens_order_acquire(const uint32_t *carried)
{
    join(row_of(my_clock()), carried);
}

void lens_order_release_agent(uint32_t *carried, int agent)
{
    unsigned me = agent_clock(agent);
    carried[me] = clocks[me]++;
}

/* ---- fences ---- */

static void fence(fence_kind *kind)
{
    unsigned me = my_clock();
    fences *mine = &kind->of[lens_now.current];
    if (!kind->known)
        kind->known = malloc(LENS_MOST_THREADS * sizeof *kind->known);
    if (mine->count == mine->room) {
        mine->room = mine->room ? mine->room * 2 : 16;
        mine->at = realloc(mine->at, mine->room * sizeof *mine->at);
    }
    if (!mine->at || !kind->known)
        abort();
    if (mine->count == 0)
        memset(kind->known[lens_now.current], 0, clock_count * sizeof kind->known[0][0]);
    mine->at[mine->count++] = clocks[me]++;
    know_all_of(me, kind->known[lens_now.current]);
    kind->used = true;
}

void lens_shadow_fence(void)
{
    fence(&proxy_fences);
}

void lens_order_fence(void)
{
    fence(&gpu_fences);
}

/* Returns the place of a thread's first fence at or behind a clock; their count where there is none. */
static size_t first_fence(const fences *theirs, uint32_t clock)
{
    size_t low = 0, high = theirs->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (theirs->at[middle] < clock)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether a fence stands between what `writer` wrote at its clock and what thread `me` starts now. */
static bool passed_fence(unsigned me, unsigned writer, uint32_t clock)
{
    const fences *theirs = &proxy_fences.of[writer - AGENTS];
    size_t at = first_fence(theirs, clock);
    if (at < theirs->count && knows(me, writer, theirs->at[at]))
        return true;
    return proxy_fences.of[me - AGENTS].count > 0 && clock <= proxy_fences.known[me - AGENTS][writer];
}

uint32_t lens_order_now(void)
{
    return clocks[my_clock()];
}

bool lens_order_knows(int thread, uint32_t clock)
{
    return knows(my_clock(), clock_of((unsigned)thread), clock);
}

bool lens_order_has_fenced(void)
{
    return gpu_fences.used;
}

void lens_order_publish(uint32_t *published)
{
    unsigned me = my_clock();
    for (unsigned i = 0; i < lens_now.threads; i++) {
        const fences *theirs = &gpu_fences.of[i];
        uint32_t known = gpu_fences.of[lens_now.current].count ? gpu_fences.known[lens_now.current][clock_of(i)] : 0;
        for (size_t at = theirs->count; at > 0 && theirs->at[at - 1] > known; at--)
            if (knows(me, clock_of(i), theirs->at[at - 1]))
                known = theirs->at[at - 1];
        published[i] = known > published[i] ? known : published[i];
    }
}

/* ---- what engines read by themselves ---- */

uint32_t lens_engine_stamp(lens_engine engine)
{
    return clocks[engine_clock(engine)]++;
}

void lens_engine_done(lens_engine engine, uint32_t stamp)
{
    uint32_t *known = &row_of(my_clock())[engine_clock(engine)];
    *known = stamp > *known ? stamp : *known;
}

/* ---- words ---- */

static word *word_in(unsigned rank, uint32_t offset)
{
    word *w = &words[(rank * lens_module_now->shared_bytes + offset) / 4];
    if (w->block != block_serial) {
        memset(w, 0, sizeof *w);
        w->block = block_serial;
    }
    return w;
}

static word *word_at(uint32_t offset)
{
    return word_in(lens_now.rank, offset);
}

static unsigned byte_mask(uint32_t word_offset, uint32_t from, uint32_t to)
{
    unsigned low = from > word_offset ? from - word_offset : 0, high = to < word_offset + 4 ? to - word_offset : 4;
    return ((1u << high) - 1) & ~((1u << low) - 1);
}

static void describe_thread(unsigned who, char *text, size_t bytes)
{
    unsigned thread = who - AGENTS;
    if (who >= COPIES && who < AGENTS)
        snprintf(text, bytes, who < COPIES + STORES ? "a bulk store" : "a tensor core");
    else if (who < AGENTS)
        snprintf(text, bytes, "a bulk copy");
    else
        snprintf(text, bytes, "thread %u", thread - lens_rank_of((int)thread) * lens_now.block_threads);
}

static void race(uintptr_t pc, uint32_t offset, const char *did, unsigned other, const char *other_did)
{
    char place[128], name[32];
    describe_thread(other, name, sizeof name);
    if (other >= COPIES && other < AGENTS)
        lens_find(RUNG_LENS_RACE, pc, "%s %s, which %s may still read: nobody has waited for it", did,
                  lens_where_shared(offset, place, sizeof place), name);
    else
        lens_find(RUNG_LENS_RACE, pc, "%s %s, which %s %s with no barrier between them: a race", did,
                  lens_where_shared(offset, place, sizeof place), name, other_did);
}

/* How a word is read. Where findings fail, reading ahead is no fault as long as nobody uses what was read. It is poison
 * then, and another poison in the next launch, so that a use shows in the results. */
typedef enum reading {
    READ_BULK,   /* into an engine, which uses all of it */
    READ_MEMORY, /* the value is what memory holds: poison where it was never written */
    READ_VALUE,  /* the lens gives the value: poison also where it may not have come yet */
} reading;

static void check_fence(uintptr_t pc, const word *w, uint32_t offset, unsigned mask, const char *did)
{
    char place[128], name[32];
    if (!(w->last_write & mask) || w->writer < AGENTS || passed_fence(my_clock(), w->writer, w->write_clock))
        return;
    describe_thread(w->writer, name, sizeof name);
    lens_find(RUNG_LENS_RACE, pc, "%s %s, which %s wrote with no fence.proxy.async after it: this may come first", did,
              lens_where_shared(offset, place, sizeof place), name);
}

/* Finds who wrote a word, last or by an atomic before that, and is not known to have. */
static bool wrote_unknown(unsigned knower, const word *w, unsigned *who)
{
    *who = w->writer;
    if (!knows(knower, w->writer, w->write_clock))
        return true;
    *who = w->atomic_writer;
    if (w->atomic_clock && !knows(knower, w->atomic_writer, w->atomic_clock))
        return true;
    *who = w->far_atomic_writer;
    return w->far_atomic_clock && !knows(knower, w->far_atomic_writer, w->far_atomic_clock);
}

static bool too_early; /* a READ_VALUE found poison */

static void check_read(uintptr_t pc, word *w, uint32_t offset, unsigned mask, unsigned me, unsigned reader, reading how)
{
    char place[128], name[32];
    bool forgiven = how != READ_BULK && lens_findings_fail;
    bool unwritten = (w->written & mask) != mask;
    unsigned writer = 0;
    bool early = w->pending || unwritten || ((w->last_write & mask) && wrote_unknown(me, w, &writer));
    if (early && forgiven && (how == READ_VALUE || (unwritten && !w->pending)))
        too_early = true;
    else if (w->pending) {
        describe_thread(w->writer, name, sizeof name);
        lens_find(RUNG_LENS_RACE, pc,
                  "reads %s while a cp.async of %s into it is still under way: no wait before the read%s",
                  lens_where_shared(offset, place, sizeof place), name,
                  w->writer == me ? "" : ", or no barrier before the copy");
    } else if (unwritten)
        lens_find(RUNG_LENS_UNINITIALISED, pc, "reads %s, which nothing has written",
                  lens_where_shared(offset, place, sizeof place));
    else if (early)
        race(pc, offset, "reads", writer, "wrote");
    else if (how == READ_BULK)
        check_fence(pc, w, offset, mask, "reads");
    if (forgiven && how == READ_VALUE) /* maybe nobody uses it; if somebody does, the results are wrong */
        return;
    if (w->reader != reader && w->read) {
        w->other_reader = w->reader;
        w->other_clock = w->read_clock;
        if (!same_warp(w->reader, reader)) {
            w->far_reader = w->reader;
            w->far_clock = w->read_clock;
        }
    }
    w->reader = (uint16_t)reader;
    w->read_clock = clocks[reader];
    w->read |= (uint8_t)mask;
}

static void check_write(uintptr_t pc, word *w, uint32_t offset, unsigned mask, unsigned me, unsigned knower)
{
    unsigned writer = 0;
    if ((w->last_write & mask) && wrote_unknown(knower, w, &writer))
        race(pc, offset, "writes", writer, "wrote too");
    else if ((w->read & mask) && !knows(knower, w->reader, w->read_clock))
        race(pc, offset, "writes", w->reader, "read");
    else if ((w->read & mask) && w->other_clock && !knows(knower, w->other_reader, w->other_clock))
        race(pc, offset, "writes", w->other_reader, "read");
    else if ((w->read & mask) && w->far_clock && !knows(knower, w->far_reader, w->far_clock))
        race(pc, offset, "writes", w->far_reader, "read");
    w->last_write = w->plain_write =
        (uint8_t)(w->writer == me && w->write_clock == clocks[me] ? w->last_write | mask : mask);
    w->writer = w->plain_writer = (uint16_t)me;
    w->write_clock = w->plain_clock = clocks[me];
    w->written |= (uint8_t)mask;
    w->read &= (uint8_t)~mask;
    w->other_clock = w->far_clock = w->atomic_clock = w->far_atomic_clock = 0;
}

/* Returns whether a variable of this kernel holds these bytes, and reports them if not. Dynamic shared memory ends
 * where the launch said. */
static bool exists(uintptr_t pc, uint32_t offset, unsigned bytes, const char *did)
{
    const lens_array *first = lens_array_at(lens_module_now, offset);
    if (first && offset + bytes <= first->offset + first->bytes)
        return true;
    char place[128];
    if (first)
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s past the end of shared %s (%u bytes)", did, first->name,
                  first->bytes);
    else
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s %s, which no variable holds", did,
                  lens_where_shared(offset, place, sizeof place));
    return false;
}

static void look(uintptr_t pc, uint32_t offset, unsigned bytes, bool write, reading how)
{
    unsigned me = my_clock();
    if (!exists(pc, offset, bytes, write ? "writes" : "reads"))
        return;
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4) {
        word *w = word_at(at);
        unsigned mask = byte_mask(at, offset, offset + bytes);
        if (write)
            check_write(pc, w, at, mask, me, me);
        else
            check_read(pc, w, at, mask, me, me, how);
    }
}

static void check_alignment(uintptr_t pc, uint32_t offset, unsigned bytes)
{
    if (offset % bytes == 0)
        return;
    lens_find(RUNG_LENS_MISALIGNED, pc, "makes a %u-byte access to shared byte %u, which is not a multiple of %u",
              bytes, offset, bytes);
    lens_abandon();
}

void lens_shadow_shared(uintptr_t pc, uint32_t offset, unsigned bytes, bool write)
{
    check_alignment(pc, offset, bytes);
    look(pc, offset, bytes, write, READ_MEMORY);
}

/* Atomics are ordered among themselves, and with nothing else: whoever wrote or read the word otherwise must be known
 * to each of them. */
void lens_shadow_atomic(uintptr_t pc, uint32_t offset, unsigned bytes)
{
    unsigned me = my_clock();
    check_alignment(pc, offset, bytes);
    if (!exists(pc, offset, bytes, "updates"))
        return;
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4) {
        word *w = word_at(at);
        const unsigned mask = byte_mask(at, offset, offset + bytes);
        char place[128];
        if ((w->written & mask) != mask)
            lens_find(RUNG_LENS_UNINITIALISED, pc, "updates %s, which nothing has written",
                      lens_where_shared(at, place, sizeof place));
        else if ((w->plain_write & mask) && !knows(me, w->plain_writer, w->plain_clock))
            race(pc, at, "updates", w->plain_writer, "wrote");
        else if ((w->read & mask) && !knows(me, w->reader, w->read_clock))
            race(pc, at, "updates", w->reader, "read");
        else if ((w->read & mask) && w->other_clock && !knows(me, w->other_reader, w->other_clock))
            race(pc, at, "updates", w->other_reader, "read");
        else if ((w->read & mask) && w->far_clock && !knows(me, w->far_reader, w->far_clock))
            race(pc, at, "updates", w->far_reader, "read");
        if ((w->last_write & mask) && w->writer != me) {
            w->atomic_writer = w->writer;
            w->atomic_clock = w->write_clock;
            if (!same_warp(w->writer, me)) {
                w->far_atomic_writer = w->writer;
                w->far_atomic_clock = w->write_clock;
            }
        }
        w->last_write = (uint8_t)(w->writer == me && w->write_clock == clocks[me] ? w->last_write | mask : mask);
        w->writer = (uint16_t)me;
        w->write_clock = clocks[me];
    }
}

void lens_shadow_mbarrier(uintptr_t pc, uint32_t offset)
{
    enum { BYTES = 8 };
    check_alignment(pc, offset, BYTES);
    exists(pc, offset, BYTES, "reaches with an mbarrier");
}

void lens_shadow_async(uint32_t offset, unsigned bytes)
{
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4)
        word_at(at)->pending = 1;
}

/* Now they are written, not when the copy was started: a barrier in between has told nobody of them. */
void lens_shadow_landed(uint32_t offset, unsigned bytes)
{
    const unsigned me = my_clock();
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4) {
        word *w = word_at(at);
        w->pending = 0;
        if (w->writer == me)
            w->write_clock = clocks[me];
        if (w->plain_writer == me)
            w->plain_clock = clocks[me];
    }
}

void lens_shadow_bulk(uintptr_t pc, unsigned rank, uint32_t offset, unsigned bytes, int agent)
{
    unsigned me = agent_clock(agent);
    if (!exists(pc, offset, bytes, "fills"))
        return;
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4) {
        word *w = word_in(rank, at);
        unsigned mask = byte_mask(at, offset, offset + bytes);
        check_fence(pc, w, at, mask, "fills");
        check_write(pc, w, at, mask, me, my_clock());
    }
}

void lens_shadow_engine_read(uintptr_t pc, uint32_t offset, unsigned bytes, lens_engine engine)
{
    if (!exists(pc, offset, bytes, "reads"))
        return;
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4)
        check_read(pc, word_at(at), at, byte_mask(at, offset, offset + bytes), my_clock(), engine_clock(engine),
                   READ_BULK);
}

bool lens_shadow_value(uintptr_t pc, uint32_t offset, unsigned bytes)
{
    too_early = false;
    look(pc, offset, bytes, false, READ_VALUE);
    return !too_early;
}
