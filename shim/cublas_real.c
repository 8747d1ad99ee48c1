/* Finds the real cuBLAS functions. PyTorch loads its cuBLAS privately, where RTLD_NEXT does not look: hence the names.
 */
#define _GNU_SOURCE
#include "cublas_real.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const blas_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", NULL};
static const char *const lt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so",
                                       NULL};

static void *in_library(const char *const *names, int flags, const char *symbol)
{
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | flags);
        void *found = library ? dlsym(library, symbol) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* Finds a function in the library that RUNG_CUBLAS names, or in the folder. Where there is none it says so, once: calls
 * that are handed on fail then, which not every program looks at. */
static void *in_named(const char *named, const char *const *names, const char *symbol)
{
    static atomic_int told;
    void *library = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    for (int i = 0; names[i] && !library; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", named, names[i]);
        library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
    if (!library && !atomic_exchange(&told, 1))
        fprintf(
            stderr,
            "librung_cublas.so: RUNG_CUBLAS is '%s', which is neither cuBLAS nor its folder: what Rung does not answer "
            "fails\n",
            named);
    return library ? dlsym(library, symbol) : NULL;
}

void *rung_real(const char *symbol)
{
    const char *const *names = strncmp(symbol, "cublasLt", 8) == 0 ? lt_names : blas_names;
    const char *named = getenv("RUNG_CUBLAS"); /* tests, and programs with a cuBLAS in an unusual place */
    if (named && *named)
        return in_named(named, names, symbol);
    void *found = dlsym(RTLD_NEXT, symbol);
    if (found)
        return found;
    found = in_library(names, RTLD_NOLOAD, symbol);
    return found ? found : in_library(names, 0, symbol);
}
