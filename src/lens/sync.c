/* What threads do together: barriers, warp operations, atomics, asynchronous copies. Kernels call it by the names in
 * cuda/rung_lens_cuda.h. Each call blocks the fiber that makes it until the others have come. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PC ((uintptr_t)__builtin_return_address(0))

typedef struct warp_meeting {
    uint32_t mask, arrived; /* the lanes that should come, and those that did; 0: nobody meets here */
    const char *what;       /* the operation that they meet at */
} warp_meeting;

enum { WARP_MEETINGS = 32 }; /* of one warp, under way at once: a lane is at one of them */
static warp_meeting meetings[LENS_WARPS][WARP_MEETINGS];
static uint64_t values[LENS_WARPS][32]; /* what each lane has brought to the meeting that it is at */
#define BROUGHT_BY_NOBODY UINT64_MAX    /* what a lane gets that asks for another's outside the mask: as a float NaN */

typedef struct mbarrier {
    const void *object;
    uint32_t expected, pending;
    int64_t transaction_bytes;
    unsigned phase;
    int maker;              /* the thread that initialised it, */
    uint32_t made;          /* by that thread's clock */
    bool published;         /* and fenced that, so that the copy engine and other blocks know it */
    uintptr_t copy_pc;      /* starts the last copy that nobody has waited for; 0: there is none */
    unsigned copy_phase;    /* in which that arrives */
    int copy_thread;        /* which has started it */
    uint32_t *carried;      /* what those carry who have arrived in this phase */
    uint32_t *carried_past; /* what those of the last complete phase carried */
} mbarrier;

enum { MOST_MBARRIERS = 256 };
static mbarrier mbarriers[MOST_MBARRIERS];
static int mbarrier_count;

/* How many threads of each block of the cluster are at a named barrier, at least: who looks at all of them counts anew.
 */
static int at_named[LENS_MOST_BLOCKS][LENS_NAMED_BARRIERS];

void lens_sync_begin(unsigned threads)
{
    (void)threads;
    memset(meetings, 0, sizeof meetings);
    memset(values, 0, sizeof values);
    memset(at_named, 0, sizeof at_named);
    mbarrier_count = 0;
}

/* ---- barriers of a block ---- */

RUNG_LENS_API void __syncthreads(void);
RUNG_LENS_API void rung_lens_bar_check(int id, int count);
RUNG_LENS_API void rung_lens_bar_sync(int id, int count);
RUNG_LENS_API void rung_lens_bar_arrive(int id, int count);
RUNG_LENS_API int rung_lens_syncthreads_count(int predicate);

void __syncthreads(void)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->wait_pc = PC;
    me->barrier_id = 0;
    me->barrier_count = 0;
    me->predicate = 0;
    lens_wait(LENS_AT_BARRIER);
}

void rung_lens_bar_check(int id, int count)
{
    if (id >= 0 && id < LENS_NAMED_BARRIERS && count > 0 && count % 32 == 0)
        return;
    lens_find(RUNG_LENS_TRAP, PC,
              "comes to barrier %d for %d threads: a block has barriers 0 to %d, which count whole warps of 32", id,
              count, LENS_NAMED_BARRIERS - 1);
    lens_abandon();
}

static void open_named(int id, int count)
{
    static bool member[LENS_MOST_THREADS];
    int arrived = 0, here = 0, *at = &at_named[lens_rank_of(lens_now.current)][id];
    unsigned from = lens_rank_of(lens_now.current) * lens_now.block_threads, to = from + lens_now.block_threads;
    if (++*at < count)
        return;
    memset(member, 0, sizeof member);
    for (unsigned i = from; i < to; i++) {
        const lens_thread *t = &lens_now.thread[i];
        bool waits = t->state == LENS_AT_BARRIER && t->barrier_count > 0 && t->barrier_id == id;
        member[i] = (waits && t->barrier_count == count) || (t->arrived_at & 1u << id);
        here += waits || member[i];
        arrived += member[i];
    }
    *at = here - (arrived < count ? 0 : arrived);
    if (arrived < count)
        return;
    lens_order_some(member, lens_now.threads);
    for (unsigned i = from; i < to; i++) {
        lens_thread *t = &lens_now.thread[i];
        t->arrived_at &= ~(1u << id);
        if (t->state == LENS_AT_BARRIER && t->barrier_count == count && t->barrier_id == id)
            t->state = LENS_READY;
    }
}

void rung_lens_bar_sync(int id, int count)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->wait_pc = PC;
    me->barrier_id = id;
    me->barrier_count = count;
    me->state = LENS_AT_BARRIER;
    open_named(id, count);
    if (me->state == LENS_AT_BARRIER)
        lens_wait(LENS_AT_BARRIER);
}

void rung_lens_bar_arrive(int id, int count)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->arrived_at |= 1u << id;
    open_named(id, count);
}

int rung_lens_syncthreads_count(int predicate)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->wait_pc = PC;
    me->barrier_id = me->barrier_count = 0;
    me->predicate = predicate != 0;
    lens_wait(LENS_AT_BARRIER);
    return me->predicates;
}

/* ---- warp operations: every lane of the mask brings a value; when all have come, each takes the one it wants ---- */

RUNG_LENS_API uint64_t rung_lens_exchange(const char *what, uint32_t mask, uint64_t value, int from_lane);
RUNG_LENS_API uint32_t rung_lens_ballot(const char *what, uint32_t mask, int predicate);
RUNG_LENS_API void rung_lens_syncwarp(uint32_t mask);

/* Shuffles and votes are counted. Who asks for the others' presence alone is not told what they have written. */
enum asks { ASKS_PRESENCE, ASKS_NOTHING, ASKS_VALUES, ASKS_SHUFFLED };

/* Returns the meeting of these lanes of a warp, which other lanes may have come to, or the place for it. */
static warp_meeting *meeting_of(int warp, uint32_t mask)
{
    warp_meeting *place = NULL;
    for (warp_meeting *m = meetings[warp]; m < meetings[warp] + WARP_MEETINGS; m++) {
        if (m->arrived && m->mask == mask)
            return m;
        if (!m->arrived && !place)
            place = m;
    }
    return place;
}

/* Lanes may meet from different places of a kernel, but only at the same operation. */
static void meet(uintptr_t pc, const char *what, uint32_t mask, uint64_t value, enum asks asks)
{
    int index = lens_now.current, warp = index / 32, lane = index % 32;
    lens_thread *me = &lens_now.thread[index];
    uint32_t exist = lens_now.threads - (unsigned)warp * 32 >= 32
                         ? UINT32_MAX
                         : (1u << (lens_now.threads - (unsigned)warp * 32)) - 1;
    if (!(mask >> lane & 1)) {
        lens_find(RUNG_LENS_DIVERGENT_BARRIER, pc,
                  "calls a warp operation whose mask 0x%08x leaves out its own lane %d", mask, lane);
        lens_abandon();
    }
    warp_meeting *m = meeting_of(warp, mask & exist);
    if (m->arrived && strcmp(m->what, what) != 0) {
        lens_find(RUNG_LENS_DIVERGENT_BARRIER, pc,
                  "comes to %s while lanes of the same mask 0x%08x wait at %s: on a GPU nobody knows what they get",
                  what, mask, m->what);
        lens_abandon();
    }
    m->mask = mask & exist;
    m->what = what;
    values[warp][lane] = value;
    m->arrived |= 1u << lane;
    me->wait_pc = pc;
    me->warp_mask = mask;
    if (m->arrived != m->mask) {
        lens_wait(LENS_AT_WARP);
        return;
    }
    if (asks != ASKS_PRESENCE)
        lens_order_warp(warp, m->mask);
    lens_shuffles += asks == ASKS_SHUFFLED ? lens_now.weight : 0;
    m->arrived = 0;
    for (int i = 0; i < 32; i++) {
        lens_thread *t = &lens_now.thread[warp * 32 + i];
        if (!(m->mask >> i & 1))
            continue;
        if (asks > ASKS_NOTHING) {
            memcpy(t->met, values[warp], sizeof t->met);
            for (uint32_t absent = ~m->mask; absent; absent &= absent - 1)
                t->met[__builtin_ctz(absent)] = BROUGHT_BY_NOBODY;
        }
        t->state = LENS_READY;
    }
}

uint64_t rung_lens_exchange(const char *what, uint32_t mask, uint64_t value, int from_lane)
{
    meet(PC, what, mask, value, ASKS_SHUFFLED);
    return lens_now.thread[lens_now.current].met[from_lane & 31];
}

uint32_t rung_lens_ballot(const char *what, uint32_t mask, int predicate)
{
    meet(PC, what, mask, predicate != 0, ASKS_SHUFFLED);
    const lens_thread *me = &lens_now.thread[lens_now.current];
    uint32_t votes = 0;
    for (int lane = 0; lane < 32; lane++)
        if ((mask >> lane & 1) && me->met[lane] == 1)
            votes |= 1u << lane;
    return votes;
}

/* Gives each lane of the warp what all of them bring: the operands of an instruction that a whole warp executes. */
void lens_gather(uintptr_t pc, uint64_t value, uint64_t all[32])
{
    meet(pc, "mma.sync", UINT32_MAX, value, ASKS_VALUES);
    memcpy(all, lens_now.thread[lens_now.current].met, 32 * sizeof *all);
}

/* Waits for the other lanes, as instructions do that a whole warp executes at once. */
void lens_converge(uintptr_t pc)
{
    meet(pc, "wgmma.wait_group", UINT32_MAX, 0, ASKS_PRESENCE);
}

void rung_lens_syncwarp(uint32_t mask)
{
    meet(PC, "__syncwarp", mask, 0, ASKS_NOTHING);
}

/* ---- atomics: one thread runs at a time, so they only have to be seen. Who looks at the same place again, with no
 * other access in between, waits for another thread ---- */

RUNG_LENS_API void rung_lens_atomic(const void *at, int bytes);

void rung_lens_atomic(const void *at, int bytes)
{
    const lens_thread *me = &lens_now.thread[lens_now.current];
    const lens_entry *last = me->entries ? &me->last : NULL;
    unsigned log2_bytes = (unsigned)__builtin_ctz((unsigned)bytes);
    bool again = last && last->pc == PC && last->where == lens_pack(at, log2_bytes, RUNG_LENS_ATOMIC);
    lens_now.looked = again; /* this is for a log that gives way just here */
    lens_access(PC, at, log2_bytes, RUNG_LENS_ATOMIC);
    if (again)
        lens_look(PC);
}

RUNG_LENS_API void rung_lens_threadfence(void);

void rung_lens_threadfence(void)
{
    lens_order_fence();
}

RUNG_LENS_API void rung_lens_after_earlier_kernels(void);

void rung_lens_after_earlier_kernels(void)
{
    lens_now.thread[lens_now.current].early = false;
}

RUNG_LENS_API void rung_lens_trap(const char *what);

void rung_lens_trap(const char *what)
{
    lens_find(RUNG_LENS_TRAP, PC, "%s", what);
    lens_abandon();
}

RUNG_LENS_API void rung_lens_assert_fail(const char *what, const char *file, unsigned line, const char *function);

void rung_lens_assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    (void)file, (void)line, (void)function;
    lens_find(RUNG_LENS_TRAP, PC, "fails its assert(%s)", what);
    lens_abandon();
}

RUNG_LENS_API void rung_lens_yield(void);

void rung_lens_yield(void)
{
    lens_look(PC);
}

/* ---- shared memory by number, as instructions that take 32-bit shared addresses see it ---- */

RUNG_LENS_API uint32_t rung_lens_shared_offset(const void *at);
RUNG_LENS_API void *rung_lens_shared_pointer(uint32_t offset);

uint32_t rung_lens_shared_offset(const void *at)
{
    return (uint32_t)((uintptr_t)at - (uintptr_t)lens_module_now->shared);
}

typedef struct lens_float4 {
    float x, y, z, w;
} lens_float4;

RUNG_LENS_API lens_float4 rung_lens_shared_load4(uint32_t offset);
RUNG_LENS_API float rung_lens_shared_load(uint32_t offset);

static inline __attribute__((always_inline)) bool load(uintptr_t pc, uint32_t offset, unsigned log2_bytes, void *value)
{
    const unsigned char *at = lens_module_now->shared + offset;
    lens_log(pc, lens_pack(at, log2_bytes, RUNG_LENS_LOAD));
    if (!lens_shadow_value(pc, offset, 1u << log2_bytes))
        return false;
    memcpy(value, at, (size_t)1 << log2_bytes);
    return true;
}

lens_float4 rung_lens_shared_load4(uint32_t offset)
{
    lens_float4 v;
    return load(PC, offset, 4, &v) ? v : (lens_float4){lens_poison, lens_poison, lens_poison, lens_poison};
}

float rung_lens_shared_load(uint32_t offset)
{
    float v;
    return load(PC, offset, 2, &v) ? v : lens_poison;
}

void *rung_lens_shared_pointer(uint32_t offset)
{
    return lens_module_now->shared + offset;
}

/* ---- cp.async: the data leave global memory at once and land in shared memory when the thread waits for their group
 * ---- */

RUNG_LENS_API void rung_lens_cp_async(void *to, const void *from, int bytes, int source_bytes);
RUNG_LENS_API void rung_lens_cp_async_commit(void);
RUNG_LENS_API void rung_lens_cp_async_wait(int groups_left);

static void land(lens_copy *copy)
{
    memcpy(copy->to, copy->data, (size_t)copy->bytes);
    lens_shadow_landed(rung_lens_shared_offset(copy->to), (unsigned)copy->bytes);
}

/* Of what is read in part the first and the last float are looked up. */
static void check_source(uintptr_t pc, uintptr_t from, int source_bytes, int bytes)
{
    if (source_bytes < 0 || source_bytes > bytes) {
        lens_find(RUNG_LENS_TRAP, pc, "copies %d bytes by an asynchronous copy that has room for %d", source_bytes,
                  bytes);
        lens_abandon();
    }
    if (source_bytes == bytes)
        lens_check_global(pc, from, (unsigned)bytes, false);
    if (source_bytes == 0 || source_bytes == bytes)
        return;
    if (from % (unsigned)bytes != 0)
        lens_find(RUNG_LENS_MISALIGNED, pc, "makes a %d-byte copy from address %p, which is not a multiple of %d",
                  bytes, (void *)from, bytes);
    lens_check_global(pc, from, 4, false);
    lens_check_global(pc, from + ((unsigned)source_bytes - 1) / 4 * 4, 4, false);
}

void rung_lens_cp_async(void *to, const void *from, int bytes, int source_bytes)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    uintptr_t pc = PC;
    unsigned log2 = bytes == 16 ? 4 : bytes == 8 ? 3 : 2;
    uint32_t offset = rung_lens_shared_offset(to);
    if (me->copy_count == me->copy_capacity) {
        me->copy_capacity = me->copy_capacity ? me->copy_capacity * 2 : 64;
        me->copies = realloc(me->copies, (size_t)me->copy_capacity * sizeof *me->copies);
        if (!me->copies)
            abort();
    }
    lens_copy *copy = &me->copies[me->copy_count];
    *copy = (lens_copy){.to = to, .bytes = bytes, .group = me->open_group};
    check_source(pc, (uintptr_t)from, source_bytes, bytes);
    if (source_bytes > 0) {
        lens_publish_read(pc, (uintptr_t)from, (unsigned)source_bytes);
        memcpy(copy->data, from, (size_t)source_bytes);
    }
    lens_log(pc, lens_pack(source_bytes > 0 ? from : NULL, log2, RUNG_LENS_ASYNC));
    lens_shadow_shared(pc, offset, (unsigned)bytes, true);
    if (!lens_in_image(offset, (unsigned)bytes)) /* it has been found to be no variable's, and nothing is there */
        return;
    me->copy_count++;
    lens_shadow_async(offset, (unsigned)bytes);
    lens_log(pc, lens_pack(to, log2, RUNG_LENS_ASYNC));
}

void rung_lens_cp_async_commit(void)
{
    lens_now.thread[lens_now.current].open_group++;
}

void rung_lens_cp_async_wait(int groups_left)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    int kept = 0;
    for (int i = 0; i < me->copy_count; i++) {
        if (groups_left < 0 || me->copies[i].group < me->open_group - groups_left)
            land(&me->copies[i]);
        else
            me->copies[kept++] = me->copies[i];
    }
    me->copy_count = kept;
}

/* ---- mbarriers ---- */

RUNG_LENS_API void rung_lens_mbarrier_init(const void *object, uint32_t count);
RUNG_LENS_API void rung_lens_mbarrier_publish(void);
RUNG_LENS_API void rung_lens_async_fence(void);
RUNG_LENS_API void rung_lens_mbarrier_arrive(const void *object, int64_t transaction_bytes);
RUNG_LENS_API void rung_lens_mbarrier_wait(const void *object, unsigned parity);
RUNG_LENS_API int rung_lens_mbarrier_test(const void *object, unsigned parity);

const void *lens_mbarrier_key(const void *object, unsigned rank)
{
    return (const void *)((uintptr_t)object | (uintptr_t)rank << 56);
}

static const void *mine(const void *object)
{
    return lens_mbarrier_key(object, lens_now.rank);
}

static mbarrier *find_mbarrier(const void *object)
{
    for (int i = 0; i < mbarrier_count; i++)
        if (mbarriers[i].object == object)
            return &mbarriers[i];
    return NULL;
}

static const char *place_of(const void *key, char *text, size_t bytes)
{
    return lens_where_shared(rung_lens_shared_offset((const void *)((uintptr_t)key & 0xffffffffffffffull)), text,
                             bytes);
}

static mbarrier *known_mbarrier(uintptr_t pc, const void *object)
{
    mbarrier *b = find_mbarrier(object);
    char place[128];
    if (!b) {
        lens_find(RUNG_LENS_UNINITIALISED, pc, "uses an mbarrier at %s that was never initialised",
                  place_of(object, place, sizeof place));
        lens_abandon();
    }
    if (!lens_order_knows(b->maker, b->made))
        lens_find(
            RUNG_LENS_RACE, pc, "uses an mbarrier at %s, which thread %d initialised with no barrier between them",
            place_of(object, place, sizeof place), b->maker - (int)(lens_rank_of(b->maker) * lens_now.block_threads));
    return b;
}

void rung_lens_mbarrier_init(const void *object, uint32_t count)
{
    lens_shadow_mbarrier(PC, rung_lens_shared_offset(object));
    object = mine(object);
    mbarrier *b = find_mbarrier(object);
    if (!b) {
        if (mbarrier_count == MOST_MBARRIERS) {
            lens_find(RUNG_LENS_TRAP, PC, "initialises more than %d mbarriers", MOST_MBARRIERS);
            lens_abandon();
        }
        b = &mbarriers[mbarrier_count++];
    }
    uint32_t *carried = b->carried ? b->carried : lens_order_new();
    uint32_t *past = b->carried_past ? b->carried_past : lens_order_new();
    if (!carried || !past)
        abort();
    lens_order_clear(carried);
    lens_order_clear(past);
    *b = (mbarrier){.object = object,
                    .expected = count,
                    .pending = count,
                    .maker = lens_now.current,
                    .made = lens_order_now(),
                    .carried = carried,
                    .carried_past = past};
}

void rung_lens_mbarrier_publish(void)
{
    for (int i = 0; i < mbarrier_count; i++)
        mbarriers[i].published |= mbarriers[i].maker == lens_now.current;
}

void rung_lens_async_fence(void)
{
    rung_lens_mbarrier_publish();
    lens_shadow_fence();
}

static void check_published(uintptr_t pc, const mbarrier *b)
{
    char place[128];
    if (!b->published)
        lens_find(RUNG_LENS_RACE, pc, "signals an mbarrier at %s, with no fence.mbarrier_init after it was initialised",
                  place_of(b->object, place, sizeof place));
}

static void settle(mbarrier *b)
{
    if (b->pending > 0 || b->transaction_bytes != 0)
        return;
    b->phase++;
    b->pending = b->expected;
    uint32_t *past = b->carried_past;
    b->carried_past = b->carried;
    b->carried = past;
    lens_order_copy(b->carried, b->carried_past);
}

static void arrive(uintptr_t pc, const void *key, int64_t transaction_bytes)
{
    mbarrier *b = known_mbarrier(pc, key);
    if (b->pending == 0) {
        lens_find(RUNG_LENS_TRAP, pc, "arrives at an mbarrier once more than its %u expected arrivals", b->expected);
        lens_abandon();
    }
    lens_order_release(b->carried);
    b->transaction_bytes += transaction_bytes;
    b->pending--;
    settle(b);
}

void rung_lens_mbarrier_arrive(const void *object, int64_t transaction_bytes)
{
    arrive(PC, mine(object), transaction_bytes);
}

RUNG_LENS_API void rung_lens_mbarrier_arrive_cluster(const void *object, uint32_t rank);

void rung_lens_mbarrier_arrive_cluster(const void *object, uint32_t rank)
{
    check_published(PC, known_mbarrier(PC, lens_mbarrier_key(object, rank)));
    arrive(PC, lens_mbarrier_key(object, rank), 0);
}

RUNG_LENS_API uint32_t rung_lens_cluster_rank(void);
RUNG_LENS_API void rung_lens_cluster_load(void *to, uint32_t offset, uint32_t rank, int bytes);
RUNG_LENS_API void rung_lens_cluster_sync(void);

uint32_t rung_lens_cluster_rank(void)
{
    return lens_now.rank;
}

/* Reads from another block's shared memory. */
void rung_lens_cluster_load(void *to, uint32_t offset, uint32_t rank, int bytes)
{
    if (rank >= lens_now.cluster || !lens_in_image(offset, (unsigned)bytes)) {
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, PC, "reads byte %u of the shared memory of block %u of a cluster of %u",
                  offset, rank, lens_now.cluster);
        lens_abandon();
    }
    lens_cluster_note_read(PC, rank);
    memcpy(to, lens_image(rank) + offset, (size_t)bytes);
}

void rung_lens_cluster_sync(void)
{
    lens_now.thread[lens_now.current].wait_pc = PC;
    lens_wait(LENS_AT_CLUSTER);
}

void lens_mbarrier_complete(uintptr_t pc, const void *object, int64_t bytes, int agent)
{
    mbarrier *b = known_mbarrier(pc, object);
    check_published(pc, b);
    lens_order_release_agent(b->carried, agent);
    b->transaction_bytes -= bytes;
    b->copy_pc = pc;
    b->copy_phase = b->phase;
    b->copy_thread = lens_now.current;
    settle(b);
}

/* Somebody knows that the last complete phase is. */
static void has_waited(mbarrier *b)
{
    lens_order_acquire(b->carried_past);
    if (b->copy_phase != b->phase)
        b->copy_pc = 0;
}

/* A copy that is still under way when its block ends fills what may be another one's memory by then. */
void lens_sync_end(void)
{
    for (int i = 0; i < mbarrier_count; i++) {
        if (!mbarriers[i].copy_pc)
            continue;
        lens_now.current = mbarriers[i].copy_thread;
        lens_find(RUNG_LENS_RACE, mbarriers[i].copy_pc,
                  "fills shared memory, which is another block's once this one ends: nobody waits until it has");
    }
    lens_now.current = -1;
}

/* Returns whether the phase with this parity is complete: the current phase has the other parity then. */
bool lens_mbarrier_ready(const void *object, unsigned parity)
{
    const mbarrier *b = find_mbarrier(object);
    return b && (b->phase & 1) != (parity & 1);
}

const char *lens_mbarrier_state(const void *object, char *text, size_t bytes)
{
    const mbarrier *b = find_mbarrier(object);
    if (b)
        snprintf(text, bytes, "its mbarrier still lacks %u of %u arrivals and %lld bytes", b->pending, b->expected,
                 (long long)b->transaction_bytes);
    return text;
}

void rung_lens_mbarrier_wait(const void *object, unsigned parity)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    object = mine(object);
    mbarrier *b = known_mbarrier(PC, object);
    me->wait_pc = PC;
    me->wait_object = object;
    me->wait_parity = parity;
    while (!lens_mbarrier_ready(object, parity))
        lens_wait(LENS_AT_MBARRIER);
    has_waited(b);
}

int rung_lens_mbarrier_test(const void *object, unsigned parity)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    object = mine(object);
    mbarrier *b = known_mbarrier(PC, object);
    const bool again = me->wait_pc == PC && me->wait_object == object;
    me->wait_pc = PC;
    me->wait_object = object;
    if (!lens_mbarrier_ready(object, parity) && again)
        lens_look(PC); /* it looks in a loop, and waits for another thread */
    if (!lens_mbarrier_ready(object, parity))
        return 0;
    me->wait_object = NULL;
    has_waited(b);
    return 1;
}

bool lens_sync_poll(unsigned from, unsigned to)
{
    bool ready = false;
    for (unsigned i = from; i < to; i++) {
        lens_thread *t = &lens_now.thread[i];
        if (t->state == LENS_AT_MBARRIER && lens_mbarrier_ready(t->wait_object, t->wait_parity)) {
            t->state = LENS_READY;
            ready = true;
        }
    }
    return ready;
}
