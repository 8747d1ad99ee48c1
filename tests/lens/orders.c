/* Who may know of whose accesses to shared memory, in programs that a seed draws, against the same asked in another
 * way: every access has a number within its thread or engine, and each thread holds how many of each other's it has
 * been told of. Threads meet by blocks, warps and some of them, tell by mbarriers, fence and read by engines. What the
 * lens finds, and whom it names, is what follows. */
#include "lens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRAMS = 300,
    STEPS = 600,
    MOST_THREADS = 544,
    BYTES = 64, /* of shared memory, a block's */
    WORDS = BYTES / 4,
    BLOCKS = 2,
    COPIES = 6, /* agents of bulk copies; after them the engines of bulk stores and of products, which warps far apart
                   share */
    STORES = 4,
    PRODUCTS = 16,
    AGENTS = COPIES + STORES + PRODUCTS,
    ALL = AGENTS + MOST_THREADS,
    CARRIED = 4,
    STAMPS = 8,
    WRITES = 24
};

static uint64_t dice;
static int program, step;

static int below(int count)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)count);
}

/* ---- what the rest of the lens would do ---- */

bool lens_findings_fail;
static int found, found_kind;
static char found_text[256];
static jmp_buf abandoned;

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    va_list list;
    (void)pc;
    found++;
    found_kind = (int)fault;
    va_start(list, format);
    vsnprintf(found_text, sizeof found_text, format, list);
    va_end(list);
}

void lens_abandon(void)
{
    longjmp(abandoned, 1);
}

const char *lens_where_shared(uint32_t offset, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "byte %u", offset);
    return text;
}

/* Two variables, and nothing behind them. */
static const lens_array arrays[2] = {{"first", "", 0, 40, false}, {"second", "", 40, BYTES - 40, false}};

const lens_array *lens_array_at(const lens_module *module, uint32_t offset)
{
    (void)module;
    return offset < 40 ? &arrays[0] : offset < BYTES ? &arrays[1] : NULL;
}

/* ---- the model: thread t has number AGENTS + t ---- */

typedef struct access {
    int who, number;
} access;

typedef struct word {
    access write, plain, read, other; /* number 0: none; plain: the last write that was no atomic */
    access far, atomic, far_atomic;   /* far: of another warp; atomic: before the last write, which is one, too */
    unsigned written, read_bytes, last_bytes; /* last_bytes: of the last writer since it last told anybody anything */
    unsigned plain_bytes;                     /* the same, as they were at the last write that was no atomic */
    int told_before, pending;
} word;

static int threads, blocks;
static int count[ALL], tells[ALL], told[ALL][ALL], carried[CARRIED][ALL];
typedef struct fences {
    int number[STEPS], count; /* of the thread's fences */
    int known[ALL];           /* what it knew at the last one */
} fences;
static fences proxy_fences[MOST_THREADS], gpu_fences[MOST_THREADS];
static word words[BLOCKS][WORDS];
static int me; /* the running thread */

static int knows(int who, access of)
{
    return who == of.who || told[who][of.who] >= of.number;
}

static int same_warp(int a, int b)
{
    return a >= AGENTS && b >= AGENTS && (a - AGENTS) / 32 == (b - AGENTS) / 32;
}

/* Returns the write of a word that nobody has told the running thread of; number 0 where there is none. */
static access unknown_write(const word *w)
{
    const access all[] = {w->write, w->atomic, w->far_atomic};
    for (int i = 0; i < 3; i++)
        if (all[i].number && !knows(AGENTS + me, all[i]))
            return all[i];
    return (access){0, 0};
}

static void take(int *into, const int *from)
{
    for (int i = 0; i < ALL; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

/* What a thread may tell: all that it knows and all that it did. */
static void tell(int who, int *into)
{
    tells[who]++;
    take(into, told[who]);
    into[who] = count[who];
}

static void meet(const int *members, int number)
{
    static int all[ALL];
    memset(all, 0, sizeof all);
    for (int i = 0; i < number; i++)
        tell(AGENTS + members[i], all);
    for (int i = 0; i < number; i++)
        take(told[AGENTS + members[i]], all);
}

/* Returns whether a fence stands between a thread's write and what the running thread does now: one of the writer's, of
 * which it knows, or its own, when it knew of the write. */
static int is_fenced(const fences *all, access write)
{
    const fences *theirs = &all[write.who - AGENTS];
    for (int i = 0; i < theirs->count; i++)
        if (theirs->number[i] >= write.number && knows(AGENTS + me, (access){write.who, theirs->number[i]}))
            return 1;
    return all[me].count > 0 && all[me].known[write.who] >= write.number;
}

static void model_fence(fences *mine)
{
    mine->number[mine->count++] = ++count[AGENTS + me];
    tells[AGENTS + me]++;
    take(mine->known, told[AGENTS + me]);
}

/* What is expected of an access: a finding of this kind, and whom it names; -1: none. */
typedef struct answer {
    int kind, who, early, findings;
} answer;

static void expect(answer *a, int kind, int who)
{
    a->findings++;
    a->kind = kind;
    a->who = who;
}

static void expect_fenced(answer *a, const word *w, unsigned mask)
{
    if ((w->last_bytes & mask) && w->write.who >= AGENTS && !is_fenced(proxy_fences, w->write))
        expect(a, RUNG_LENS_RACE, w->write.who);
}

static void model_read(answer *a, word *w, unsigned mask, int reader, int is_engine, int by_value)
{
    const int forgiven = !is_engine && lens_findings_fail;
    const int unwritten = (w->written & mask) != mask;
    const int unknown = (w->last_bytes & mask) && unknown_write(w).number;
    if (forgiven && (w->pending || unwritten || unknown) && (by_value || (unwritten && !w->pending)))
        a->early = 1;
    else if (w->pending)
        expect(a, RUNG_LENS_RACE, -1);
    else if (unwritten)
        expect(a, RUNG_LENS_UNINITIALISED, -1);
    else if (unknown)
        expect(a, RUNG_LENS_RACE, unknown_write(w).who);
    else if (is_engine)
        expect_fenced(a, w, mask);
    if (forgiven && by_value)
        return;
    if (w->read_bytes && w->read.who != reader)
        w->other = w->read;
    if (w->read_bytes && w->read.who != reader && !same_warp(w->read.who, reader))
        w->far = w->read;
    w->read = (access){reader, count[reader]};
    w->read_bytes |= mask;
}

static void model_write(answer *a, word *w, unsigned mask, int writer)
{
    if ((w->last_bytes & mask) && unknown_write(w).number)
        expect(a, RUNG_LENS_RACE, unknown_write(w).who);
    else if ((w->read_bytes & mask) && !knows(AGENTS + me, w->read))
        expect(a, RUNG_LENS_RACE, w->read.who);
    else if ((w->read_bytes & mask) && w->other.number && !knows(AGENTS + me, w->other))
        expect(a, RUNG_LENS_RACE, w->other.who);
    else if ((w->read_bytes & mask) && w->far.number && !knows(AGENTS + me, w->far))
        expect(a, RUNG_LENS_RACE, w->far.who);
    w->last_bytes = w->write.who == writer && w->told_before == tells[writer] ? w->last_bytes | mask : mask;
    w->plain_bytes = w->last_bytes;
    w->write = w->plain = (access){writer, count[writer]};
    w->told_before = tells[writer];
    w->written |= mask;
    w->read_bytes &= ~mask;
    w->other.number = w->far.number = w->atomic.number = w->far_atomic.number = 0;
}

static void model_atomic(answer *a, word *w, unsigned mask)
{
    if ((w->written & mask) != mask)
        expect(a, RUNG_LENS_UNINITIALISED, -1);
    else if ((w->plain_bytes & mask) && !knows(AGENTS + me, w->plain))
        expect(a, RUNG_LENS_RACE, w->plain.who);
    else if ((w->read_bytes & mask) && !knows(AGENTS + me, w->read))
        expect(a, RUNG_LENS_RACE, w->read.who);
    else if ((w->read_bytes & mask) && w->other.number && !knows(AGENTS + me, w->other))
        expect(a, RUNG_LENS_RACE, w->other.who);
    else if ((w->read_bytes & mask) && w->far.number && !knows(AGENTS + me, w->far))
        expect(a, RUNG_LENS_RACE, w->far.who);
    if ((w->last_bytes & mask) && w->write.who != AGENTS + me) {
        w->atomic = w->write;
        if (!same_warp(w->write.who, AGENTS + me))
            w->far_atomic = w->write;
    }
    w->last_bytes = w->write.who == AGENTS + me && w->told_before == tells[AGENTS + me] ? w->last_bytes | mask : mask;
    w->write = (access){AGENTS + me, count[AGENTS + me]};
    w->told_before = tells[AGENTS + me];
}

/* ---- steps of a program ---- */

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("FAILED: program %d, step %d: ", program, step);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
    exit(1);
}

static void judge(const char *what, const answer *a)
{
    char name[64] = "";
    if (found != a->findings)
        wrong("%s by thread %d: %d findings, not %d (%s; of kind %d with %d)", what, me, found, a->findings,
              found ? found_text : "none", a->kind, a->who);
    if (!found || a->findings > 1) /* of several the last one's text alone is here */
        return;
    if (found_kind != a->kind)
        wrong("%s by thread %d: a finding of kind %d, not %d (%s)", what, me, found_kind, a->kind, found_text);
    if (a->who >= AGENTS) {
        const int thread = a->who - AGENTS;
        snprintf(name, sizeof name, ", which thread %d ", thread % (threads / blocks));
    } else if (a->who >= 0)
        snprintf(name, sizeof name, "%s",
                 a->who < COPIES            ? ", which a bulk copy "
                 : a->who < COPIES + STORES ? ", which a bulk store "
                                            : ", which a tensor core ");
    if (name[0] && !strstr(found_text, name))
        wrong("%s by thread %d: '%s' is not said in '%s'", what, me, name, found_text);
}

static void run_as(int thread)
{
    me = thread;
    lens_now.current = thread;
    lens_now.rank = lens_rank_of(thread);
}

static int own_engine(lens_engine engine)
{
    return engine == LENS_TENSOR_CORE ? COPIES + STORES + me / 32 % PRODUCTS : COPIES + me / 32 % STORES;
}

static void access_memory(void)
{
    typedef enum kind { READ, VALUE, WRITE, ATOMIC, BULK, ENGINE, KINDS } kind;
    static const char *const names[KINDS] = {"a read",    "a read of a value", "a write",
                                             "an atomic", "a bulk copy",       "an engine's read"};
    const kind what = (kind)below(KINDS);
    const int size = what == BULK || what == ENGINE ? 16 : what == ATOMIC ? 2 << below(3) : 1 << below(5);
    const int offset = below(BYTES / size + 1) * size; /* the last one lies behind all variables */
    const lens_array *in = lens_array_at(NULL, (uint32_t)offset);
    const unsigned rank = what == BULK && blocks > 1 ? (unsigned)below(blocks) : lens_now.rank;
    const int agent = below(COPIES);
    const lens_engine engine = below(2) ? LENS_BULK_STORE : LENS_TENSOR_CORE;
    const int who = what == BULK ? agent : what == ENGINE ? own_engine(engine) : AGENTS + me;
    answer a = {.who = -1};
    int is_early = 0;
    if (!in || offset + size > (int)(in->offset + in->bytes))
        expect(&a, RUNG_LENS_OUT_OF_BOUNDS, -1);
    else {
        count[who]++;
        for (int at = offset & ~3; at < offset + size; at += 4) {
            const unsigned mask = size < 4 ? ((1u << size) - 1) << offset % 4 : 15;
            word *w = &words[rank][at / 4];
            if (what == ATOMIC)
                model_atomic(&a, w, mask);
            else if (what == WRITE || what == BULK) {
                if (what == BULK)
                    expect_fenced(&a, w, mask);
                model_write(&a, w, mask, who);
            } else
                model_read(&a, w, mask, who, what == ENGINE, what == VALUE);
        }
    }
    found = 0;
    if (what == ATOMIC)
        lens_shadow_atomic(0, (uint32_t)offset, (unsigned)size);
    else if (what == BULK)
        lens_shadow_bulk(0, rank, (uint32_t)offset, (unsigned)size,
                         agent + 64 * below(2)); /* agents far apart share one */
    else if (what == ENGINE)
        lens_shadow_engine_read(0, (uint32_t)offset, (unsigned)size, engine);
    else if (what == VALUE)
        is_early = !lens_shadow_value(0, (uint32_t)offset, (unsigned)size);
    else
        lens_shadow_shared(0, (uint32_t)offset, (unsigned)size, what == WRITE);
    judge(names[what], &a);
    if (what == VALUE && is_early != a.early)
        wrong("a read of a value by thread %d: %s, which it is%s", me, is_early ? "too early" : "not too early",
              a.early ? "" : " not");
}

static void copy_asynchronously(void)
{
    const int at = below(WORDS), lands = below(2);
    word *w = &words[lens_now.rank][at];
    w->pending = !lands;
    if (lands && w->write.number && w->write.who == AGENTS + me) { /* it is written now */
        w->write.number = ++count[AGENTS + me];
        w->told_before = tells[AGENTS + me];
    }
    if (lands && w->plain.number && w->plain.who == AGENTS + me)
        w->plain.number = ++count[AGENTS + me];
    (lands ? lens_shadow_landed : lens_shadow_async)((uint32_t)at * 4, 4);
}

static void access_misaligned(void)
{
    const int size = 2 << below(4);
    const volatile int is_atomic = size >= 4 && below(2);
    const uint32_t at = (uint32_t)(below(BYTES / size) * size + 1 + below(size - 1));
    found = 0;
    if (!setjmp(abandoned)) {
        if (is_atomic)
            lens_shadow_atomic(0, at, (unsigned)size);
        else
            lens_shadow_shared(0, at, (unsigned)size, below(2));
        wrong("a misaligned access of %d bytes goes on", size);
    }
    if (found != 1 || found_kind != RUNG_LENS_MISALIGNED)
        wrong("a misaligned access of %d bytes is none", size);
}

static void meet_somehow(void)
{
    int members[MOST_THREADS], number = 0;
    bool is_member[LENS_MOST_THREADS] = {false};
    const int how = below(4), warp = below((threads + 31) / 32),
              lanes = threads - warp * 32 < 32 ? threads - warp * 32 : 32;
    const int own = threads / blocks, block = below(blocks);
    const int few = below(4) == 0; /* a lane or two, alone */
    uint32_t mask = few ? 1u << below(32) | 1u << below(32) : below(2) ? ~0u : (uint32_t)below(1 << 30) * 5u | 1u;
    mask &= lanes < 32 ? (1u << lanes) - 1 : ~0u;
    for (int i = 0; i < threads; i++) {
        is_member[i] = how == 0 || (how == 1 && i / own == block) ||
                       (how == 2 && i / 32 == warp && mask >> i % 32 & 1) ||
                       (how == 3 && below(few ? threads : 3) == 0);
        if (is_member[i])
            members[number++] = i;
    }
    if (number == 0)
        return;
    meet(members, number);
    if (how == 0)
        lens_order_block(0, (unsigned)threads);
    else if (how == 1)
        lens_order_block((unsigned)(block * own), (unsigned)((block + 1) * own));
    else if (how == 2)
        lens_order_warp(warp, mask);
    else
        lens_order_some(is_member, (unsigned)threads);
}

static uint32_t *carriers[CARRIED];

static void tell_by_mbarrier(void)
{
    const int which = below(CARRIED), agent = below(COPIES);
    switch (below(5)) {
    case 0: lens_order_release(carriers[which]), tell(AGENTS + me, carried[which]); break;
    case 1:
        lens_order_release_agent(carriers[which], agent), carried[which][agent] = count[agent], tells[agent]++;
        break;
    case 2:
        if (below(4))
            break;
        lens_order_clear(carriers[which]), memset(carried[which], 0, sizeof carried[which]);
        break;
    case 3:
        lens_order_copy(carriers[which], carriers[(which + 1) % CARRIED]);
        memcpy(carried[which], carried[(which + 1) % CARRIED], sizeof carried[which]);
        break;
    default: lens_order_acquire(carriers[which]), take(told[AGENTS + me], carried[which]); break;
    }
}

static struct stamp {
    uint32_t its;
    int owner, engine, number;
} stamps[STAMPS];

static void wait_for_engines(void)
{
    struct stamp *s = &stamps[below(STAMPS)];
    const lens_engine engine = below(2) ? LENS_BULK_STORE : LENS_TENSOR_CORE;
    if (s->its && s->owner / 32 == me / 32 && below(2)) {
        const int which = own_engine((lens_engine)s->engine);
        lens_engine_done((lens_engine)s->engine, s->its);
        if (told[AGENTS + me][which] < s->number)
            told[AGENTS + me][which] = s->number;
        return;
    }
    *s = (struct stamp){lens_engine_stamp(engine), me, (int)engine, count[own_engine(engine)]};
    tells[own_engine(engine)]++;
}

/* ---- fences, and what they let others read ---- */

static struct remembered {
    access write;
    uint32_t clock; /* the lens's */
} writes[WRITES];

static void fence_or_publish(void)
{
    static uint32_t published[LENS_MOST_THREADS];
    const int what = below(4);
    if (what == 0) {
        model_fence(&proxy_fences[me]);
        lens_shadow_fence();
    } else if (what == 1) {
        model_fence(&gpu_fences[me]);
        lens_order_fence();
    } else if (what == 2) {
        writes[below(WRITES)] = (struct remembered){{AGENTS + me, ++count[AGENTS + me]}, lens_order_now()};
    } else {
        int any = 0;
        for (int t = 0; t < threads; t++)
            any |= gpu_fences[t].count > 0;
        if (lens_order_has_fenced() != (any != 0))
            wrong("somebody has fenced: %d", any);
        memset(published, 0, sizeof published);
        lens_order_publish(published);
        for (int i = 0; i < WRITES; i++) {
            const access w = writes[i].write;
            if (!w.number)
                continue;
            const int t = w.who - AGENTS;
            const int may = is_fenced(gpu_fences, w);
            if ((writes[i].clock <= published[t]) < may)
                wrong("what thread %d wrote and somebody fenced is not published by thread %d", t, me);
            if ((writes[i].clock <= published[t]) > may)
                wrong("what thread %d wrote is published by thread %d, and nobody fenced", t, me);
        }
    }
}

/* A thread tells, or an agent does, and goes on: who hears of it knows nothing of what came later. */
static void tell_and_go_on(void)
{
    enum { ACCESSES = 3 };
    const int which = below(CARRIED), agent = below(2) ? below(COPIES) : -1;
    if (agent < 0)
        lens_order_release(carriers[which]), tell(AGENTS + me, carried[which]);
    else
        lens_order_release_agent(carriers[which], agent), carried[which][agent] = count[agent], tells[agent]++;
    for (int i = 0; i < ACCESSES; i++)
        access_memory();
    run_as(below(threads));
    lens_order_acquire(carriers[which]), take(told[AGENTS + me], carried[which]);
    for (int i = 0; i < ACCESSES; i++)
        access_memory();
}

static void run_block(void)
{
    memset(count, 0, sizeof count), memset(tells, 0, sizeof tells), memset(told, 0, sizeof told),
        memset(carried, 0, sizeof carried);
    memset(proxy_fences, 0, sizeof proxy_fences), memset(gpu_fences, 0, sizeof gpu_fences);
    memset(words, 0, sizeof words), memset(stamps, 0, sizeof stamps), memset(writes, 0, sizeof writes);
    lens_now.threads = (unsigned)threads, lens_now.cluster = (unsigned)blocks;
    lens_now.block_threads = (unsigned)(threads / blocks);
    lens_shadow_block((unsigned)threads);
    for (int i = 0; i < CARRIED; i++)
        lens_order_clear(carriers[i]);
    for (step = 0; step < STEPS; step++) {
        const int what = below(16);
        run_as(below(below(4) ? threads : threads < 3 ? threads : 3)); /* some are busier */
        if (what < 9)
            access_memory();
        else if (what < 11)
            meet_somehow();
        else if (what == 11)
            tell_by_mbarrier();
        else if (what == 12)
            wait_for_engines();
        else if (what == 13)
            fence_or_publish();
        else if (what == 14)
            copy_asynchronously();
        else if (below(8) == 0)
            access_misaligned();
        else
            tell_and_go_on();
    }
}

int main(void)
{
    static unsigned char shared[BYTES];
    static lens_module module = {.shared = shared, .shared_bytes = BYTES};
    static const struct {
        int threads, blocks;
    } shapes[] = {{64, 1}, {80, 1}, {96, 1}, {64, 2}, {96, 2}, {1, 1}, {33, 1}, {544, 1}};
    lens_module_now = &module;
    lens_shadow_begin(BYTES);
    for (int i = 0; i < CARRIED; i++)
        if (!(carriers[i] = lens_order_new()))
            return 1;
    for (program = 0; program < PROGRAMS; program++) {
        dice = (uint64_t)program * 77 + 5;
        threads = shapes[program % 8].threads, blocks = shapes[program % 8].blocks;
        lens_findings_fail = below(2);
        lens_shadow_begin((size_t)(BYTES * blocks));
        run_block();
    }
    puts("ok");
    return 0;
}
