/* What the lens does with each load and store of a kernel, as the compiler's hooks tell of them: how many bytes,
 * whether it is a load or a store, and whom it concerns by where it lies: shared memory, global memory, the kernel's
 * constants, or the thread's own stack. The rest of the lens stands here as a few lines that note what they are told.
 */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned char *lens_stacks;
size_t lens_stacks_bytes;

/* ---- what was told ---- */

typedef struct told {
    int shared, value, atomics, checks, published, flags, reads, logs; /* how often */
    uint64_t at;
    unsigned bytes;
    int write;      /* -1: nobody said */
    uint64_t entry; /* in the log, the last one */
} told;

static told now;

static void note(uint64_t at, unsigned bytes, int write)
{
    now.at = at, now.bytes = bytes, now.write = write;
}

void lens_shadow_shared(uintptr_t pc, uint32_t offset, unsigned bytes, bool write)
{
    (void)pc;
    now.shared++;
    note(offset, bytes, write);
}

void lens_shadow_atomic(uintptr_t pc, uint32_t offset, unsigned bytes)
{
    (void)pc;
    now.atomics++;
    note(offset, bytes, -1);
}

void lens_check_global(uintptr_t pc, uintptr_t address, unsigned bytes, bool write)
{
    (void)pc;
    now.checks++;
    note(address, bytes, write);
}

static void expect_same(uintptr_t address, unsigned bytes)
{
    if (address != now.at || bytes != now.bytes) {
        printf("FAILED: what is published is not what was checked: %u bytes, not %u\n", bytes, now.bytes);
        exit(1);
    }
}

void lens_publish_write(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc;
    now.published++;
    expect_same(address, bytes);
}

void lens_publish_flag(uintptr_t address, unsigned bytes)
{
    now.flags++;
    expect_same(address, bytes);
}

void lens_publish_atomic(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc;
    now.atomics++;
    expect_same(address, bytes);
}

void lens_publish_read(uintptr_t pc, uintptr_t address, unsigned bytes)
{
    (void)pc;
    now.reads++;
    expect_same(address, bytes);
}

void lens_log(uintptr_t pc, uint64_t where)
{
    (void)pc;
    now.logs++;
    now.entry = where;
}

/* ---- the hooks ---- */

#define EACH(X)                                                                                                        \
    X(read1, 1, 0, 0)                                                                                                  \
    X(read2, 2, 0, 0)                                                                                                  \
    X(read4, 4, 0, 0)                                                                                                  \
    X(read8, 8, 0, 0)                                                                                                  \
    X(read16, 16, 0, 0)                                                                                                \
    X(write1, 1, 1, 0)                                                                                                 \
    X(write2, 2, 1, 0)                                                                                                 \
    X(write4, 4, 1, 0)                                                                                                 \
    X(write8, 8, 1, 0)                                                                                                 \
    X(write16, 16, 1, 0)                                                                                               \
    X(unaligned_read2, 2, 0, 0)                                                                                        \
    X(unaligned_read4, 4, 0, 0)                                                                                        \
    X(unaligned_read8, 8, 0, 0)                                                                                        \
    X(unaligned_read16, 16, 0, 0)                                                                                      \
    X(unaligned_write2, 2, 1, 0)                                                                                       \
    X(unaligned_write4, 4, 1, 0)                                                                                       \
    X(unaligned_write8, 8, 1, 0)                                                                                       \
    X(unaligned_write16, 16, 1, 0)                                                                                     \
    X(volatile_read1, 1, 0, 1)                                                                                         \
    X(volatile_read2, 2, 0, 1)                                                                                         \
    X(volatile_read4, 4, 0, 1)                                                                                         \
    X(volatile_read8, 8, 0, 1)                                                                                         \
    X(volatile_read16, 16, 0, 1)                                                                                       \
    X(volatile_write1, 1, 1, 1)                                                                                        \
    X(volatile_write2, 2, 1, 1)                                                                                        \
    X(volatile_write4, 4, 1, 1)                                                                                        \
    X(volatile_write8, 8, 1, 1)                                                                                        \
    X(volatile_write16, 16, 1, 1)

#define X(name, bytes, write, is_flag) void __tsan_##name(const void *at);
EACH(X)
#undef X
void __tsan_read_range(const void *at, size_t bytes);
void __tsan_write_range(const void *at, size_t bytes);
void *rung_lens_memset(void *at, int value, size_t bytes);
void *rung_lens_memmove(void *to, const void *from, size_t bytes);

static const struct hook {
    const char *name;
    void (*call)(const void *at);
    unsigned bytes;
    int write, is_flag;
} hooks[] = {
#define X(name, bytes, write, is_flag) {#name, __tsan_##name, bytes, write, is_flag},
    EACH(X)
#undef X
};

static const char *what = "";

static void expect(const char *name, int64_t is, int64_t should_be)
{
    if (is == should_be)
        return;
    printf("FAILED: %s: %s is %lld, not %lld\n", what, name, (long long)is, (long long)should_be);
    exit(1);
}

static void expect_nothing(void)
{
    static const told nothing;
    expect("what is told", memcmp(&now, &nothing, sizeof now), 0);
}

static void expect_entry(const void *at, unsigned bytes, rung_lens_kind kind)
{
    expect("entries of the log", now.logs, 1);
    expect("the log's address", (int64_t)lens_address(now.entry), (int64_t)(uintptr_t)at);
    expect("the log's bytes", lens_bytes(now.entry), bytes);
    expect("the log's kind", lens_kind(now.entry), kind);
}

static void call(const struct hook *h, const void *at)
{
    memset(&now, 0, sizeof now);
    what = h->name;
    h->call(at);
}

static void by_kind_of_memory(lens_module *module, unsigned char *global)
{
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        const struct hook *h = &hooks[i];
        const rung_lens_kind kind = h->write ? RUNG_LENS_STORE : RUNG_LENS_LOAD;
        const size_t last = module->shared_bytes - 16;
        call(h, module->shared + last); /* a word of shared memory, the last one */
        expect("accesses to shared memory", now.shared, 1);
        expect("its offset", (int64_t)now.at, (int64_t)last);
        expect("its bytes", now.bytes, h->bytes);
        expect("a store", now.write, h->write);
        expect("checks of global memory", now.checks + now.published + now.reads + now.flags, 0);
        expect_entry(module->shared + last, h->bytes, kind);

        call(h, global);
        expect("checks of global memory", now.checks, 1);
        expect("its bytes", now.bytes, h->bytes);
        expect("a store", now.write, h->write);
        expect("published stores", now.published, h->write && !h->is_flag);
        expect("flags", now.flags, h->write && h->is_flag);
        expect("published loads", now.reads, !h->write && !h->is_flag);
        expect("accesses to shared memory", now.shared, 0);
        expect_entry(global, h->bytes, kind);

        call(h, lens_stacks);
        expect_nothing();
        call(h, lens_stacks + lens_stacks_bytes - 16);
        expect_nothing();
        if (!h->is_flag) { /* a kernel's constants, the first and the last */
            call(h, (void *)module->base);
            expect_nothing();
            call(h, (void *)(module->end - 16));
            expect_nothing();
        }
        lens_now.current = -1; /* the scheduler's own */
        call(h, global);
        expect_nothing();
        lens_now.current = 0;
    }
}

static void by_kind_of_access(unsigned char *shared, unsigned char *global)
{
    what = "an atomic on shared memory";
    memset(&now, 0, sizeof now);
    lens_access(1, shared + 8, 2, RUNG_LENS_ATOMIC);
    expect("atomics", now.atomics, 1);
    expect("its offset", (int64_t)now.at, 8);
    expect("its bytes", now.bytes, 4);
    expect_entry(shared + 8, 4, RUNG_LENS_ATOMIC);
    what = "an atomic on global memory";
    memset(&now, 0, sizeof now);
    lens_access(1, global, 3, RUNG_LENS_ATOMIC);
    expect("atomics", now.atomics, 1);
    expect("a store", now.write, 1);
    expect("its bytes", now.bytes, 8);
    expect("others", now.published + now.reads + now.flags + now.shared, 0);
    expect_entry(global, 8, RUNG_LENS_ATOMIC);
}

/* A range is cut into aligned accesses, which cover it once. */
static void ranges(unsigned char *global)
{
    for (unsigned from = 0; from < 16; from++)
        for (unsigned bytes = 0; bytes < 70; bytes++) {
            memset(&now, 0, sizeof now);
            what = "a range";
            (bytes % 2 ? __tsan_write_range : __tsan_read_range)(global + from, bytes);
            int least = 0;
            for (unsigned at = from, step; at < from + bytes; at += step, least++)
                for (step = 16; at % step || at + step > from + bytes;)
                    step /= 2;
            expect("accesses", now.logs, least);
            expect("checks", now.checks, least);
            expect("stores", now.published, bytes % 2 ? least : 0);
            if (bytes)
                expect("the end", (int64_t)(now.at + now.bytes), (int64_t)(uintptr_t)(global + from + bytes));
        }
}

/* What C's library fills and copies is told as the compiler's ranges are. */
static void c_library(unsigned char *global)
{
    memset(&now, 0, sizeof now);
    what = "memset";
    if (rung_lens_memset(global, 7, 40) != global || global[39] != 7)
        expect("what it does", 0, 1);
    expect("stores", now.published, 3);
    expect("the end", (int64_t)(now.at + now.bytes), (int64_t)(uintptr_t)(global + 40));
    memset(&now, 0, sizeof now);
    what = "memmove";
    global[0] = 5;
    if (rung_lens_memmove(global + 8, global, 24) != global + 8 || global[8] != 5 || global[16] != 7)
        expect("what it does", 0, 1);
    expect("loads", now.reads, 2);
    expect("stores", now.published, 2);
    expect("the end", (int64_t)(now.at + now.bytes), (int64_t)(uintptr_t)(global + 32));
}

int main(void)
{
    static _Alignas(16) unsigned char shared[256], global[256], constants[256], stacks[256];
    static lens_module module = {.shared = shared, .shared_bytes = sizeof shared};
    module.base = (uintptr_t)constants;
    module.end = module.base + sizeof constants;
    lens_stacks = stacks;
    lens_stacks_bytes = sizeof stacks;
    lens_module_now = &module;
    lens_now.current = 0;
    by_kind_of_memory(&module, global + 64);
    by_kind_of_access(shared, global);
    ranges(global + 64);
    c_library(global + 64);
    puts("ok");
    return 0;
}
