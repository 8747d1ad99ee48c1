/* Preloaded: of what the object that FEW_MEMORY_OF names allocates, the FEW_MEMORY-th fails, which is told on stderr.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static int fails(void *caller)
{
    static const char words[] = "an allocation failed\n";
    static atomic_int asked;
    const char *object = getenv("FEW_MEMORY_OF"), *number = getenv("FEW_MEMORY");
    Dl_info from;
    if (!object || !number || !dladdr(caller, &from) || !strstr(from.dli_fname, object) ||
        atomic_fetch_add(&asked, 1) + 1 != atoi(number))
        return 0;
    return write(2, words, sizeof words - 1) > 0;
}

#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

#pragma GCC visibility pop
