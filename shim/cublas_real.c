/* Finds the real cuBLAS functions. PyTorch loads its cuBLAS privately, where RTLD_NEXT does not look: hence the names.
 */
#define _GNU_SOURCE
#include "cublas_real.h"

#include <dlfcn.h>
#include <stddef.h>
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

void *rung_real(const char *symbol)
{
    const char *named = getenv("RUNG_CUBLAS"); /* tests, and programs with a cuBLAS in an unusual place */
    if (named && *named) {
        void *library = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
        return library ? dlsym(library, symbol) : NULL;
    }
    void *found = dlsym(RTLD_NEXT, symbol);
    if (found)
        return found;
    const char *const *names = strncmp(symbol, "cublasLt", 8) == 0 ? lt_names : blas_names;
    found = in_library(names, RTLD_NOLOAD, symbol);
    return found ? found : in_library(names, 0, symbol);
}
