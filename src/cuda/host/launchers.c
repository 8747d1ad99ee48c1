/* These are the launchers: one a family, and those of the ladder. A row's .launch names one of them. */
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { MOST_KERNELS = 256 }; /* whose launchers are remembered */

#define RUNG_FAMILY(family) extern const rung_launcher rung_launch_##family;
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
#define RUNG_LADDER(launcher) extern const rung_launcher rung_launch_##launcher;
#include "cuda/ladder/list.inc"
#undef RUNG_LADDER

const rung_launcher *const rung_launchers[] = {
#define RUNG_FAMILY(family) &rung_launch_##family,
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
#define RUNG_LADDER(launcher) &rung_launch_##launcher,
#include "cuda/ladder/list.inc"
#undef RUNG_LADDER
    NULL,
};

const rung_launcher *rung_launcher_find(const char *name)
{
    for (int i = 0; name && rung_launchers[i]; i++)
        if (strcmp(rung_launchers[i]->name, name) == 0)
            return rung_launchers[i];
    return NULL;
}

/* The catalog's rows and their launchers. */
static struct {
    const rung_kernel *rows;
    uintptr_t bytes;
    const rung_launcher *of[MOST_KERNELS];
} known;
static pthread_once_t listed = PTHREAD_ONCE_INIT;

static void list_launchers(void)
{
    const int count = rung_kernel_count() < MOST_KERNELS ? rung_kernel_count() : MOST_KERNELS;
    known.rows = rung_kernel_at(0);
    known.bytes = (uintptr_t)count * sizeof(rung_kernel);
    for (int i = 0; i < count; i++)
        known.of[i] = rung_launcher_find(known.rows[i].launch);
}

const rung_launcher *rung_launcher_of(const rung_kernel *kernel)
{
    pthread_once(&listed, list_launchers);
    const uintptr_t at = (uintptr_t)kernel - (uintptr_t)known.rows;
    return at < known.bytes ? known.of[at / sizeof(rung_kernel)] : rung_launcher_find(kernel->launch);
}
