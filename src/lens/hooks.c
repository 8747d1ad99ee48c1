/* The compiler's instrumentation (-fsanitize=thread) calls this at each load and store; so do the lens's own accesses.
 */
#include "lens.h"

#include <string.h>

#define PC ((uintptr_t)__builtin_return_address(0))

/* Returns whether it is a constant, or another variable, of the kernel's file. */
static bool is_of_file(uintptr_t address)
{
    return address - lens_module_now->base < lens_module_now->end - lens_module_now->base;
}

__attribute__((noinline)) void lens_access(uintptr_t pc, const void *at, unsigned log2_bytes, rung_lens_kind kind)
{
    uintptr_t address = (uintptr_t)at;
    if (lens_now.current < 0 || lens_in_stacks(address))
        return; /* these are registers and local arrays */
    uintptr_t offset = address - (uintptr_t)lens_module_now->shared;
    bool write = kind == RUNG_LENS_STORE;
    if (offset < lens_module_now->shared_bytes) {
        if (kind == RUNG_LENS_ATOMIC)
            lens_shadow_atomic(pc, (uint32_t)offset, 1u << log2_bytes);
        else
            lens_shadow_shared(pc, (uint32_t)offset, 1u << log2_bytes, write);
    } else if (is_of_file(address)) {
        return;
    } else {
        lens_check_global(pc, address, 1u << log2_bytes, write || kind == RUNG_LENS_ATOMIC);
        if (kind == RUNG_LENS_ATOMIC)
            lens_publish_atomic(pc, address, 1u << log2_bytes);
        else if (write)
            lens_publish_write(pc, address, 1u << log2_bytes);
        else
            lens_publish_read(pc, address, 1u << log2_bytes);
    }
    lens_log(pc, lens_pack(at, log2_bytes, kind));
}

#define HOOK(name, log2_bytes, kind)                                                                                   \
    RUNG_LENS_API void __tsan_##name(const void *at);                                                                  \
    void __tsan_##name(const void *at)                                                                                 \
    {                                                                                                                  \
        if (!lens_in_stacks((uintptr_t)at)) /* most are local arrays */                                                \
            lens_access(PC, at, log2_bytes, kind);                                                                     \
    }

HOOK(read1, 0, RUNG_LENS_LOAD)
HOOK(read2, 1, RUNG_LENS_LOAD)
HOOK(read4, 2, RUNG_LENS_LOAD)
HOOK(read8, 3, RUNG_LENS_LOAD)
HOOK(read16, 4, RUNG_LENS_LOAD)
HOOK(write1, 0, RUNG_LENS_STORE)
HOOK(write2, 1, RUNG_LENS_STORE)
HOOK(write4, 2, RUNG_LENS_STORE)
HOOK(write8, 3, RUNG_LENS_STORE)
HOOK(write16, 4, RUNG_LENS_STORE)

/* A volatile access is a look at what others say, or says it. */
static void access_flag(uintptr_t pc, const void *at, unsigned log2_bytes, rung_lens_kind kind)
{
    bool shared = (uintptr_t)at - (uintptr_t)lens_module_now->shared < lens_module_now->shared_bytes;
    if (lens_in_stacks((uintptr_t)at))
        return;
    if (shared || lens_now.current < 0 || is_of_file((uintptr_t)at)) {
        lens_access(pc, at, log2_bytes, kind);
        return;
    }
    lens_check_global(pc, (uintptr_t)at, 1u << log2_bytes, kind == RUNG_LENS_STORE);
    if (kind == RUNG_LENS_STORE)
        lens_publish_flag((uintptr_t)at, 1u << log2_bytes);
    lens_log(pc, lens_pack(at, log2_bytes, kind));
}

#define FLAG_HOOK(name, log2_bytes, kind)                                                                              \
    RUNG_LENS_API void __tsan_##name(const void *at);                                                                  \
    void __tsan_##name(const void *at)                                                                                 \
    {                                                                                                                  \
        access_flag(PC, at, log2_bytes, kind);                                                                         \
    }

FLAG_HOOK(volatile_read1, 0, RUNG_LENS_LOAD)
FLAG_HOOK(volatile_read2, 1, RUNG_LENS_LOAD)
FLAG_HOOK(volatile_read4, 2, RUNG_LENS_LOAD)
FLAG_HOOK(volatile_read8, 3, RUNG_LENS_LOAD)
FLAG_HOOK(volatile_read16, 4, RUNG_LENS_LOAD)
FLAG_HOOK(volatile_write1, 0, RUNG_LENS_STORE)
FLAG_HOOK(volatile_write2, 1, RUNG_LENS_STORE)
FLAG_HOOK(volatile_write4, 2, RUNG_LENS_STORE)
FLAG_HOOK(volatile_write8, 3, RUNG_LENS_STORE)
FLAG_HOOK(volatile_write16, 4, RUNG_LENS_STORE)

static void range(uintptr_t pc, const char *at, size_t bytes, rung_lens_kind kind)
{
    for (size_t done = 0; done < bytes;) {
        unsigned log2 = 4;
        while ((bytes - done) < (1u << log2) || ((uintptr_t)(at + done) & ((1u << log2) - 1)))
            log2--;
        lens_access(pc, at + done, log2, kind);
        done += 1u << log2;
    }
}

RUNG_LENS_API void __tsan_read_range(const void *at, size_t bytes);
RUNG_LENS_API void __tsan_write_range(const void *at, size_t bytes);
RUNG_LENS_API void __tsan_init(void);

void __tsan_read_range(const void *at, size_t bytes)
{
    range(PC, at, bytes, RUNG_LENS_LOAD);
}

void __tsan_write_range(const void *at, size_t bytes)
{
    range(PC, at, bytes, RUNG_LENS_STORE);
}

void __tsan_init(void)
{
}

/* What a kernel fills or copies by a call of C's library is seen as well. */
RUNG_LENS_API void *rung_lens_memset(void *at, int value, size_t bytes);
RUNG_LENS_API void *rung_lens_memmove(void *to, const void *from, size_t bytes);

void *rung_lens_memset(void *at, int value, size_t bytes)
{
    range(PC, at, bytes, RUNG_LENS_STORE);
    return memset(at, value, bytes);
}

void *rung_lens_memmove(void *to, const void *from, size_t bytes)
{
    range(PC, from, bytes, RUNG_LENS_LOAD);
    range(PC, to, bytes, RUNG_LENS_STORE);
    return memmove(to, from, bytes);
}

HOOK(unaligned_read2, 1, RUNG_LENS_LOAD)
HOOK(unaligned_read4, 2, RUNG_LENS_LOAD)
HOOK(unaligned_read8, 3, RUNG_LENS_LOAD)
HOOK(unaligned_read16, 4, RUNG_LENS_LOAD)
HOOK(unaligned_write2, 1, RUNG_LENS_STORE)
HOOK(unaligned_write4, 2, RUNG_LENS_STORE)
HOOK(unaligned_write8, 3, RUNG_LENS_STORE)
HOOK(unaligned_write16, 4, RUNG_LENS_STORE)
