/* A program that, as JAX does, takes cuBLAS's function with dlsym. Prints the address's owner and the status.
 * usage: program_dlsym CUBLAS [apart]: in a namespace of its own
 *        program_dlsym CUBLAS NAME NAME ...: prints those of these functions that CUBLAS has, each with its owner */
#define _GNU_SOURCE
#include "fake_cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int sgemm(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *,
                  float *, int);

static int print_owners(void *library, char **names)
{
    for (; *names; names++) {
        Dl_info owner;
        void *function = dlsym(library, *names);
        if (function && dladdr(function, &owner))
            printf("%s %s\n", *names,
                   strrchr(owner.dli_fname, '/') ? strrchr(owner.dli_fname, '/') + 1 : owner.dli_fname);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3)
        return print_owners(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), argv + 2);
    void *library = argc > 2   ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL)
                    : argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)
                               : NULL;
    sgemm *function = library ? (sgemm *)dlsym(library, "cublasSgemm_v2") : NULL;
    void *untouched = library ? dlsym(library, "cublasDgemm_v2") : NULL;
    Dl_info owner, other;
    if (!function || !untouched || !dladdr((void *)function, &owner) || !dladdr(untouched, &other)) {
        puts("no cublasSgemm_v2");
        return 2;
    }
    fake_handle handle = {0};
    float x = 1.0f;
    const char *name = strrchr(owner.dli_fname, '/'), *second = strrchr(other.dli_fname, '/');
    printf("%s %s %d\n", name ? name + 1 : owner.dli_fname, second ? second + 1 : other.dli_fname,
           function(&handle, 0, 0, 1, 1, 1, &x, &x, 1, &x, 1, &x, &x, 1));
    return 0;
}
