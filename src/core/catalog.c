/* The catalog, put together from the rows that stand beside the kernels. */
#include "rung_catalog.h"
#include "tile_rows.h"

#include <string.h>

/* CPU kernels are ordinary functions: declare them all, then list them. */
#define RUNG_CPU(id, ...) rung_status id(const void *args);
#define RUNG_CUDA(id, arch_, ...)
#include "core/all_rows.inc"
#undef RUNG_CPU
#undef RUNG_CUDA

static const rung_kernel rows[] = {
#define RUNG_CPU(id, ...)                                                                                              \
    {.name = #id, .file = RUNG_FILE(#id), .backend = RUNG_BACKEND_CPU, .cpu_entry = id, __VA_ARGS__},
#define RUNG_CUDA(id, arch_, ...)                                                                                      \
    {.name = #id, .file = RUNG_FILE(#id), .backend = RUNG_BACKEND_CUDA, .arch = arch_, __VA_ARGS__},
#include "core/all_rows.inc"
#undef RUNG_CPU
#undef RUNG_CUDA
};

#include "tile_checks.inc"

int rung_kernel_count(void)
{
    return (int)(sizeof rows / sizeof rows[0]);
}

const rung_kernel *rung_kernel_at(int index)
{
    return index >= 0 && index < rung_kernel_count() ? &rows[index] : NULL;
}

const rung_kernel *rung_kernel_find(const char *name)
{
    for (int i = 0; i < rung_kernel_count(); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}
