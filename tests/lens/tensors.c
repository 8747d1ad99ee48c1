/* The lens's copy engine against the rule, element by element: drawn tensors of two or three dimensions, boxes at and
 * beyond their edges, each swizzle. What arrives, what is written, which elements are looked up as somebody's, and what
 * is told of bytes, sectors, reads and barriers. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 4000, GLOBAL_BYTES = 1 << 16, SHARED_BYTES = 1 << 15, BASE = 4096, MOST_CHECKS = 64 };

void rung_lens_tensor_load(void *shared, const void *map, const int at[5], const void *mbarrier);
void rung_lens_tensor_store(const void *map, const void *shared, const int at[5]);
void rung_lens_tensor_stores_read(void);
void rung_lens_bulk_load(void *shared, const void *global, int bytes, const void *mbarrier, uint32_t mask);
uint32_t rung_lens_shared_offset(const void *at);

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((state >> 33) % below);
}

/* ---- the parts of the lens that the engine tells ---- */

bool lens_findings_fail;

static _Alignas(128) unsigned char memory[GLOBAL_BYTES], shared[3][SHARED_BYTES];

static struct told {
    struct check {
        uintptr_t at;
        unsigned bytes;
        bool write;
    } check[MOST_CHECKS];
    int checks, misaligned;
    double bytes[2], sectors[2];          /* global, shared */
    int64_t written[3], arrived[3], read; /* in each block, by barrier and by the engine; published reads */
    int64_t engine_bytes, done, stored;   /* stored: published writes */
} told;

void lens_check_global(uintptr_t pc, uintptr_t address, unsigned bytes, bool write)
{
    (void)pc;
    if (told.checks < MOST_CHECKS)
        told.check[told.checks++] = (struct check){address, bytes, write};
}

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    (void)pc, (void)format;
    told.misaligned += fault == RUNG_LENS_MISALIGNED;
}

void lens_abandon(void)
{
    exit(3); /* no bulk copy here is misaligned */
}

void lens_bulk(uintptr_t pc, rung_lens_space space, rung_lens_kind kind, const void *at, double bytes, double sectors)
{
    (void)pc, (void)kind, (void)at;
    told.bytes[space != RUNG_LENS_GLOBAL] += bytes;
    told.sectors[space != RUNG_LENS_GLOBAL] += sectors;
}

void lens_shadow_bulk(uintptr_t pc, unsigned rank, uint32_t offset, unsigned bytes, int agent)
{
    (void)pc, (void)agent;
    told.written[rank] += offset == BASE ? bytes : 0;
}

void lens_shadow_engine_read(uintptr_t pc, uint32_t offset, unsigned bytes, lens_engine engine)
{
    (void)pc;
    told.engine_bytes += offset == BASE && engine == LENS_BULK_STORE ? bytes : 0;
}

uint32_t lens_engine_stamp(lens_engine engine)
{
    return engine == LENS_BULK_STORE ? 17 : 0;
}

void lens_engine_done(lens_engine engine, uint32_t stamp)
{
    told.done += engine == LENS_BULK_STORE && stamp == 17;
}

void lens_publish_read(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc, (void)address;
    told.read += bytes;
}

void lens_publish_write(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc, (void)address;
    told.stored += bytes;
}

unsigned char *lens_image(unsigned rank)
{
    return shared[rank];
}

const void *lens_mbarrier_key(const void *object, unsigned rank)
{
    return (const char *)object + rank;
}

void lens_mbarrier_complete(uintptr_t pc, const void *key, int64_t bytes, int agent)
{
    (void)pc, (void)agent;
    told.arrived[(const unsigned char *)key - shared[0]] += bytes;
}

uint32_t rung_lens_shared_offset(const void *at)
{
    return (uint32_t)((const unsigned char *)at - shared[0]);
}

/* ---- the rule ---- */

static int wrong;

static void expect(int trial, const char *what, double is, double should_be)
{
    if (is != should_be && wrong++ < 10)
        printf("trial %d: %s: %.0f, should be %.0f\n", trial, what, is, should_be);
}

typedef struct trial {
    int number;
    lens_map map;
    int at[5];
    uint32_t row_bytes, rows;
} trial;

static trial draw_trial(int number)
{
    trial t = {.number = number, .rows = 1};
    lens_map *m = &t.map;
    m->rank = (uint8_t)(2 + draw(2));
    m->element_bytes = draw(2) ? 4 : 2;
    m->swizzle = (uint8_t)draw(4);
    m->address = memory + 1024 + 16 * draw(4);
    m->strides[0] = m->element_bytes;
    for (int i = 0; i < m->rank; i++) {
        m->dims[i] = 1 + draw(i ? 6 : 70);
        m->box[i] = i ? 1 + draw(4) : (16u << draw(3)) / m->element_bytes;
        t.at[i] = (int)draw((uint32_t)m->dims[i] + 4) - 2;
        if (i == 0 && draw(3) == 0)
            t.at[i] -= 16 / m->element_bytes;
        if (i)
            m->strides[i] = (m->strides[i - 1] * m->dims[i - 1] + 15 + 16 * draw(2)) & ~15ull;
        t.rows *= i ? m->box[i] : 1;
    }
    int unit = 16 / m->element_bytes;
    if (draw(4))
        t.at[0] = t.at[0] / unit * unit; /* as the engine wants it */
    t.row_bytes = m->box[0] * m->element_bytes;
    return t;
}

/* Returns where an element of the box lies in global memory; NULL: outside the tensor. */
static unsigned char *element(const trial *t, uint32_t row, uint32_t x)
{
    unsigned char *p = t->map.address;
    int64_t place = t->at[0] + (int64_t)x;
    if (place < 0 || place >= (int64_t)t->map.dims[0])
        return NULL;
    p += place * t->map.element_bytes;
    for (int i = 1; i < t->map.rank; row /= t->map.box[i], i++) {
        place = t->at[i] + (int64_t)(row % t->map.box[i]);
        if (place < 0 || place >= (int64_t)t->map.dims[i])
            return NULL;
        p += place * (int64_t)t->map.strides[i];
    }
    return p;
}

/* A 128-byte line has eight units; with a swizzle of 128, 64 or 32 bytes a unit's number is taken xor the last three,
 * two or one bits of the line's. */
static unsigned char *in_shared(const trial *t, uint32_t row, uint32_t x)
{
    uint32_t offset = BASE + row * t->row_bytes + x * t->map.element_bytes, line = offset / 128, unit = offset / 16 % 8;
    unit ^= line % (1u << t->map.swizzle);
    return shared[0] + line * 128 + unit * 16 + offset % 16;
}

/* What the rule says of a box: bytes and sectors inside, and the ends of each row that is there. */
typedef struct seen {
    double bytes, sectors;
    struct check check[MOST_CHECKS];
    int checks;
} seen;

static void see_row(const trial *t, uint32_t row, bool write, seen *s)
{
    unsigned char *first = NULL, *last = NULL;
    uint32_t last_x = 0;
    for (uint32_t x = 0; x < t->map.box[0]; x++)
        if (element(t, row, x)) {
            first = first ? first : element(t, row, x);
            last = element(t, row, last_x = x);
        }
    if (!first)
        return;
    uintptr_t low = (uintptr_t)first, end = (uintptr_t)last + t->map.element_bytes;
    if (write) /* whole units are written, counted from the box's edge, but nothing beyond the box */
        while (((last_x + 1) * t->map.element_bytes + (end - (uintptr_t)last - t->map.element_bytes)) % 16 != 0)
            end++;
    s->bytes += (double)(end - low);
    s->sectors += (double)((end - 1) / 32 - low / 32 + 1);
    const uintptr_t ends[2] = {low, end - 4};
    for (int i = 0; i < 2; i++)
        s->check[s->checks++] = !write && lens_findings_fail ? (struct check){ends[i] & ~(uintptr_t)15, 16, write}
                                                             : (struct check){ends[i], 4, write};
}

static void expect_told(const trial *t, bool write)
{
    seen s = {.bytes = 0};
    for (uint32_t row = 0; row < t->rows; row++)
        see_row(t, row, write, &s);
    expect(t->number, "bytes of global memory", told.bytes[0], s.bytes);
    expect(t->number, "sectors", told.sectors[0], s.sectors);
    expect(t->number, "places that are looked up", told.checks, s.checks);
    for (int i = 0; i < s.checks && i < told.checks; i++) {
        expect(t->number, "the place of a row's end", (double)(told.check[i].at - (uintptr_t)memory),
               (double)(s.check[i].at - (uintptr_t)memory));
        expect(t->number, "its bytes", told.check[i].bytes, s.check[i].bytes);
        expect(t->number, "a write", told.check[i].write, write);
    }
}

static void fill(unsigned char *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(1 + (i * 7 + seed) % 255);
}

static void try_load(const trial *t)
{
    fill(memory, sizeof memory, 3);
    memset(shared[0], 0, SHARED_BYTES);
    memset(&told, 0, sizeof told);
    lens_now.rank = 0;
    rung_lens_tensor_load(shared[0] + BASE, &t->map, t->at, shared[0]);
    static const unsigned char zeros[4];
    for (uint32_t row = 0; row < t->rows; row++)
        for (uint32_t x = 0; x < t->map.box[0]; x++) {
            const unsigned char *from = element(t, row, x);
            expect(t->number, "an element that is not the tensor's, nor zero outside",
                   memcmp(in_shared(t, row, x), from ? from : zeros, t->map.element_bytes) != 0, 0);
        }
    expect_told(t, false);
    const double all = t->rows * t->row_bytes;
    expect(t->number, "bytes of shared memory", told.bytes[1], all);
    expect(t->number, "sectors of shared memory", told.sectors[1], 0);
    expect(t->number, "bytes noted as written", (double)told.written[0], all);
    expect(t->number, "bytes that the barrier waits for", (double)told.arrived[0], all);
    expect(t->number, "misaligned", told.misaligned, t->at[0] * t->map.element_bytes % 16 != 0);
}

static void try_store(const trial *t)
{
    static unsigned char want[GLOBAL_BYTES];
    fill(memory, sizeof memory, 3);
    memcpy(want, memory, sizeof want);
    fill(shared[0], SHARED_BYTES, 91);
    memset(&told, 0, sizeof told);
    for (uint32_t row = 0; row < t->rows; row++)
        for (uint32_t x = 0; x < t->map.box[0]; x++) {
            unsigned char *to = element(t, row, x);
            const int beyond = !to && x > 0 && element(t, row, x - x % (16 / t->map.element_bytes));
            if (beyond) /* the rest of a unit of which the first element is there */
                to = element(t, row, x - x % (16 / t->map.element_bytes)) +
                     x % (16 / t->map.element_bytes) * t->map.element_bytes;
            if (to)
                memcpy(want + (to - memory), in_shared(t, row, x), t->map.element_bytes);
        }
    lens_now.current = 0;
    rung_lens_tensor_store(&t->map, shared[0] + BASE, t->at);
    expect(t->number, "memory after a store", memcmp(memory, want, sizeof want) != 0, 0);
    expect_told(t, true);
    expect(t->number, "bytes that other blocks may not write", (double)told.stored, told.bytes[0]);
    expect(t->number, "bytes that the engine reads", (double)told.engine_bytes, t->rows * t->row_bytes);
    rung_lens_tensor_stores_read();
    rung_lens_tensor_stores_read(); /* once is enough */
    expect(t->number, "stores that are waited for", (double)told.done, 1);
}

static void try_bulk(int number)
{
    const int bytes = 16 * (1 + (int)draw(8));
    const unsigned blocks = 1 + draw(3);
    const uint32_t mask = draw(2) ? draw(1u << blocks) : 0;
    const unsigned char *from = memory + 16 * draw(64);
    fill(memory, sizeof memory, 5);
    memset(shared, 0, sizeof shared);
    memset(&told, 0, sizeof told);
    lens_now.cluster = blocks;
    lens_now.rank = draw(blocks);
    rung_lens_bulk_load(shared[0] + BASE, from, bytes, shared[0], mask);
    for (unsigned rank = 0; rank < 3; rank++) {
        const int gets = mask ? (int)(mask >> rank & 1) : rank == lens_now.rank;
        expect(number, "a block that has the copy", memcmp(shared[rank] + BASE, from, (size_t)bytes) == 0, gets);
        expect(number, "nothing behind it", shared[rank][BASE + bytes], 0);
        expect(number, "bytes noted in a block", (double)told.written[rank], gets * bytes);
        expect(number, "bytes at a block's barrier", (double)told.arrived[rank], gets * bytes);
    }
    expect(number, "places looked up", told.checks, 2);
    expect(number, "the first", (double)(told.check[0].at - (uintptr_t)from), 0);
    expect(number, "the last", (double)(told.check[1].at - (uintptr_t)from), bytes - 4);
    expect(number, "bytes read of what others publish", (double)told.read, bytes);
    expect(number, "sectors of a copy", told.sectors[0],
           (double)(((uintptr_t)from + (unsigned)bytes - 1) / 32 - (uintptr_t)from / 32 + 1));
}

int main(void)
{
    static lens_module module;
    module.shared = shared[0];
    module.shared_bytes = SHARED_BYTES;
    lens_module_now = &module;
    for (int i = 0; i < TRIALS; i++) {
        const trial t = draw_trial(i);
        lens_findings_fail = draw(2);
        try_load(&t);
        if (t.at[0] * t.map.element_bytes % 16 == 0)
            try_store(&t);
        try_bulk(i);
    }
    printf("%d tensors, boxes and copies, %d differences\n", TRIALS, wrong);
    return wrong != 0;
}
