/* A program that has loaded cuBLAS, and a plugin linked against it, before the drop-in comes: rung_cublas_enable puts
 * it in front of the plugin's calls and of the addresses that it takes, in memory that relocation has made read-only
 * too, and leaves all other functions and cuBLAS itself as they are. usage: program_enable PLUGIN LIBRUNG_CUBLAS
 * CUBLAS. Prints the number of slots changed; exits with 1 and a sentence where one is not as it must be. Where a page
 * cannot be made writable that is told, whatever follows, and may be tried again. */
#define _GNU_SOURCE
#include "fake_cublas.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int enable_function(void);
typedef void *address_function(void);
typedef int call_function(fake_handle *);

static void *need(void *found, const char *what)
{
    if (found)
        return found;
    printf("there is no %s: %s\n", what, dlerror());
    exit(1);
}

static int failed;
static int locked; /* so many calls of mprotect() fail */

/* The drop-in's, too: this program's functions come first. */
__attribute__((visibility("default"))) int mprotect(void *at, size_t bytes, int protection)
{
    if (locked > 0) {
        locked--;
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mprotect, at, bytes, protection);
}

/* A function's address must lie in the library of this name. */
static void expect(const char *what, const void *address, const char *library)
{
    Dl_info owner;
    const char *name = dladdr(address, &owner) ? strrchr(owner.dli_fname, '/') : NULL;
    if (name && strncmp(name + 1, library, strlen(library)) == 0)
        return;
    failed = 1;
    printf("%s is of %s, not of %s\n", what, name ? name + 1 : "nobody", library);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    void *plugin = need(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), argv[1]);
    address_function *taken = (address_function *)need(dlsym(plugin, "plugin_address"), "plugin_address"),
                     *other = (address_function *)need(dlsym(plugin, "plugin_other"), "plugin_other");
    call_function *call = (call_function *)need(dlsym(plugin, "plugin_call"), "plugin_call");
    fake_handle handle = {0};
    expect("before, the address", taken(), "libcublas.so");
    void *shim = need(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL), argv[2]);
    enable_function *enable = (enable_function *)need(dlsym(shim, "rung_cublas_enable"), "rung_cublas_enable");
    const int before = call(&handle);
    locked = 1; /* the first slot's page, not the second's */
    const int half = enable(), changed = enable();
    dlclose(shim); /* the slots still point into it */
    const int after = call(&handle), again = enable();
    expect("then, the address", taken(), "librung_cublas.so");
    expect("another function's address", other(), "libcublas.so");
    expect("cuBLAS's own", need(dlsym(dlopen(argv[3], RTLD_NOW | RTLD_NOLOAD), "cublasSgemm_v2"), "cuBLAS"),
           "libcublas.so");
    if (before != 100 || after != 100 || again != 0) {
        failed = 1;
        printf("calls answered %d and %d, not 100 as cuBLAS does; %d slots changed when nothing was left\n", before,
               after, again);
    }
    if (locked || half != -1) {
        failed = 1;
        printf("%d slots changed, although one could not be\n", half);
    }
    printf("%d slot changed then\n", changed);
    return failed;
}
