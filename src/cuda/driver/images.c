/* Finds and opens the module that holds the device code for a chip. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "cuda/driver/images.h"

#include "rung_tools.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the module for a chip. Machine code for Hopper runs on Hopper only. Turing has the ladder's first rungs. The
 * module of all other chips has machine code for 8.x, and PTX for later ones. */
static const char *module_name(int arch)
{
    if (arch == 75)
        return "librung_sm_75.so";
    return arch == 90 ? "librung_sm_90a.so" : "librung_sm_80.so";
}

static void module_path(const char *name, char *path, size_t bytes)
{
    Dl_info info;
    const char *folder = getenv("RUNG_DEVICE_IMAGES");
    const char *slash = NULL;
    if (folder && !*folder)
        folder = NULL;
    if (!folder && dladdr((void *)(uintptr_t)rung_images_open, &info) && info.dli_fname)
        slash = strrchr(info.dli_fname, '/');
    if (folder)
        snprintf(path, bytes, "%s/%s", folder, name);
    else if (slash)
        snprintf(path, bytes, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
    else
        snprintf(path, bytes, "%s", name);
}

rung_status rung_images_open(int arch, const char *gpu_name, void **images)
{
    char path[1024];
    const char *name = module_name(arch);
    module_path(name, path, sizeof path);
    *images = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*images)
        return rung_fail(RUNG_NO_DEVICE,
                         "%s (compute capability %d.%d) is there, but Rung's device code for it is not: %s; build it "
                         "with RUNG_CUDA_ARCHS=%s (./dev setup --cuda installs a compiler)",
                         gpu_name, arch / 10, arch % 10, dlerror(), arch == 75 ? "75" : "native or all");
    return RUNG_SUCCESS;
}

rung_status rung_images_find(void *images, const char *stem, const void **image)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, "rung_image_%s", stem);
    *image = dlsym(images, symbol);
    if (!*image)
        return rung_fail(RUNG_INTERNAL, "the device code holds no %s: it was built from other sources", symbol);
    return RUNG_SUCCESS;
}

const char *rung_images_table(void *images)
{
    return dlsym(images, "rung_resources");
}

const char *rung_tools_resources(int arch)
{
    char path[1024];
    module_path(module_name(arch), path, sizeof path);
    void *images = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays open: the text is in it */
    return images ? rung_images_table(images) : NULL;
}
