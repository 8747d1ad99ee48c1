/* Asks the loader for the folder of librung.so. */
#define _GNU_SOURCE /* dladdr */
#include "lab/library.h"
#include "rung.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lab_library_folder(char *folder, size_t bytes)
{
    Dl_info info;
    char path[PATH_MAX];
    int found = dladdr((void *)(uintptr_t)rung_version, &info) && realpath(info.dli_fname, path);
    char *slash = found ? strrchr(path, '/') : NULL;
    if (slash && (size_t)(slash - path) < bytes) {
        *slash = 0;
        strcpy(folder, path);
        return 1;
    }
    snprintf(folder, bytes, ".");
    return 0;
}

const char *lab_named(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}
