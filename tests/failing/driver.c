/* The lens as a driver of which the FAILING_DRIVER-th call fails, as one of a GPU does after a kernel's fault. A call
 * counts when it is the first or the second from its place in the code. What failed, and how many calls counted, is
 * told in the file FAILING_SAYS. */
#define _GNU_SOURCE
#include "cuda/driver/driver.h"
#include "sites.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef long call(long, long, long, long, long, long, long, long, long, long, long, long);

/* Returns whether this call is the one that fails. Names of errors, which tell of it, do not. */
static int fails(const char *name, const void *at)
{
    const char *number = getenv("FAILING_DRIVER");
    if (strncmp(name, "cuGetError", 10) == 0)
        return 0;
    return is_turn(name, (uintptr_t)at, number ? atol(number) : 0);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAILING_SAYS");
    char text[128];
    int length = snprintf(text, sizeof text, "%s %ld 0\n", failed, counted);
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0 && write(file, text, (size_t)length) == length)
        close(file);
}

/* All arguments are numbers and addresses: twelve hold those of any call. */
#define X(name, symbol, signature)                                                                                     \
    __attribute__((visibility("default"))) call failing_##name __asm__(symbol);                                        \
    long failing_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k,        \
                        long l)                                                                                        \
    {                                                                                                                  \
        call *next = (call *)(uintptr_t)dlsym(RTLD_NEXT, symbol);                                                      \
        if (fails(symbol, __builtin_return_address(0)))                                                                \
            return CUDA_ERROR_LAUNCH_FAILED;                                                                           \
        return next ? next(a, b, c, d, e, f, g, h, i, j, k, l) : CUDA_ERROR_NOT_FOUND;                                 \
    }
RUNG_DRIVER_CALLS(X)
