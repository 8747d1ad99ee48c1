/* What blocks of a launch tell each other through global memory. Blocks run one after another, so a later one always
 * finds what an earlier one wrote; on a GPU it does where the writer has fenced (__threadfence, or a release) before it
 * said so by an atomic or a volatile store, at least once all threads that wrote have met the one that says so. Data
 * read, or written over, without that are a finding; so is what one block reads and a later one writes. Atomics are
 * ordered among themselves, and with nothing else: one says so, and what it leaves is data to all others. That the
 * reader fences, too, is not looked for. Blocks that all write the same say so by volatile stores. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_WORDS = 1024, PAGE_BYTES = 4 * PAGE_WORDS };

/* An access, by the serial number of its block and the clock of its thread. */
typedef struct access {
    uint32_t block; /* 0: none */
    uint32_t clock;
    uint16_t thread;
    uint8_t bytes; /* which of the word's: blocks may have bytes side by side */
} access;

typedef struct word {
    access write; /* the last one, but for flags */
    access plain; /* the last one that was no atomic */
    access read;  /* one after that, by a load, where something else of the page was written before */
} word;

typedef struct page {
    uintptr_t number;
    word words[PAGE_WORDS];
} page;

typedef struct teller { /* a block of this launch */
    unsigned index[3];
    uint32_t *published; /* for each thread the clock up to which others may read what it wrote; NULL: nothing yet */
} teller;

static page *last;   /* the page that was asked for last */
static page **table; /* by the page's number, open addressing; a power of two */
static size_t table_room, page_count;
static teller *tellers; /* by serial numbers, from 1 on */
static size_t teller_room;
static uint32_t now;

static void forget(void)
{
    for (size_t i = 0; i < table_room; i++)
        free(table[i]);
    if (table)
        memset(table, 0, table_room * sizeof *table);
    for (uint32_t i = 1; i <= now; i++)
        free(tellers[i].published);
    last = NULL;
    page_count = now = 0;
}

void lens_publish_begin(void)
{
    forget();
}

void lens_publish_block(void)
{
    if (++now >= teller_room) {
        teller_room = teller_room ? teller_room * 2 : 64;
        tellers = realloc(tellers, teller_room * sizeof *tellers);
        if (!tellers)
            abort();
    }
    tellers[now] = (teller){.index = {lens_now.index[0], lens_now.index[1], lens_now.index[2]}};
}

static page **slot_of(uintptr_t number)
{
    size_t at = (number * 0x9e3779b97f4a7c15ull) >> 20;
    while (table[at % table_room] && table[at % table_room]->number != number)
        at++;
    return &table[at % table_room];
}

static void grow(void)
{
    page **old = table;
    size_t room = table_room;
    table_room = room ? 2 * room : 1024;
    table = calloc(table_room, sizeof *table);
    if (!table)
        abort();
    for (size_t i = 0; i < room; i++)
        if (old[i])
            *slot_of(old[i]->number) = old[i];
    free(old);
}

static page *page_of(uintptr_t address, bool make)
{
    uintptr_t number = address / PAGE_BYTES;
    if (page_count == 0 && !make)
        return NULL;
    if (last && last->number == number)
        return last;
    if (2 * page_count >= table_room)
        grow();
    page **slot = slot_of(number);
    if (!*slot && make) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            abort();
        (*slot)->number = number;
        page_count++;
    }
    return *slot ? (last = *slot) : NULL;
}

static word *word_at(uintptr_t address, bool make)
{
    page *p = page_of(address, make);
    return p ? &p->words[address / 4 % PAGE_WORDS] : NULL;
}

/* Returns which bytes of the word at `at` an access has, bit 0 for the first. */
static uint8_t bytes_of(uintptr_t at, uintptr_t address, unsigned bytes)
{
    unsigned from = address > at ? (unsigned)(address - at) : 0,
             to = address + bytes < at + 4 ? (unsigned)(address + bytes - at) : 4;
    return (uint8_t)((1u << to) - (1u << from));
}

/* Returns whether the running block knows of an access: its own, or one that was fenced before something told of it. */
static bool is_known(const access *a)
{
    const teller *t = &tellers[a->block];
    return a->block == 0 || a->block == now || (t->published && a->clock <= t->published[a->thread]);
}

static access access_now(uint8_t bytes)
{
    return (access){now, lens_order_now(), (uint16_t)lens_now.current, bytes};
}

/* Says that an access of some of a word's bytes meets one of another block; returns whether it does. */
static bool meets(uintptr_t pc, uintptr_t at, const char *does, const access *other, uint8_t bytes, const char *did)
{
    if (!(other->bytes & bytes) || is_known(other))
        return false;
    char name[32], block[48];
    int64_t row, column;
    const unsigned char *start = lens_memory_name(at, name, sizeof name, &row, &column);
    const unsigned *index = tellers[other->block].index;
    snprintf(block, sizeof block, index[1] || index[2] ? "(%u,%u,%u)" : "%u", index[0], index[1], index[2]);
    lens_find(RUNG_LENS_RACE, pc, "%s byte %lld of %s, which block %s %s", does, (long long)(at - (uintptr_t)start),
              name, block, did);
    return true;
}

static const char unfenced[] = "wrote: no __threadfence stands between that and what tells of it",
                  wrote_too[] = "wrote too: nothing says which of them comes first",
                  read_it[] = "read: nothing says which of them comes first";

void lens_publish_write(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    for (uintptr_t at = address & ~(uintptr_t)3; at < address + bytes; at += 4) {
        word *w = word_at(at, true);
        const uint8_t mask = bytes_of(at, address, bytes);
        if (!meets(pc, at, "writes", &w->write, mask, wrote_too))
            meets(pc, at, "writes", &w->read, mask, read_it);
        w->write = w->plain = access_now(mask);
        w->read.bytes = 0;
    }
}

/* Says what the running thread's block has fenced so far. */
static void tell(void)
{
    if (!lens_order_has_fenced())
        return;
    teller *me = &tellers[now];
    if (!me->published && !(me->published = calloc(lens_now.threads, sizeof *me->published)))
        abort();
    lens_order_publish(me->published);
}

void lens_publish_flag(uintptr_t address, unsigned bytes)
{
    for (uintptr_t at = address & ~(uintptr_t)3; at < address + bytes; at += 4) {
        word *w = word_at(at, false);
        if (w)
            *w = (word){.write.block = 0};
    }
    tell();
}

void lens_publish_atomic(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    for (uintptr_t at = address & ~(uintptr_t)3; at < address + bytes; at += 4) {
        word *w = word_at(at, true);
        if (!meets(pc, at, "updates", &w->plain, 15, unfenced))
            meets(pc, at, "updates", &w->read, 15, read_it);
        w->write = access_now(15);
    }
    tell();
}

void lens_publish_read(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    for (uintptr_t at = address & ~(uintptr_t)3; at < address + bytes; at += 4) {
        word *w = word_at(at, false);
        if (!w) {
            at |= PAGE_BYTES - 4; /* nor has anybody written the rest of its page */
            continue;
        }
        const uint8_t mask = bytes_of(at, address, bytes);
        if (meets(pc, at, "reads", &w->write, mask, unfenced))
            return;
        if (!w->read.bytes || is_known(&w->read)) /* of two blocks' the first is kept: who writes comes later */
            w->read = access_now(mask);
    }
}
