/* The launchers there are: one a family, and those of the ladder. A row's .launch names one of them. */
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"

#include <string.h>

#define RUNG_FAMILY(family) extern const rung_launcher rung_launch_##family;
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
extern const rung_launcher rung_launch_tiles;
extern const rung_launcher rung_launch_ladder_split_k;
extern const rung_launcher rung_launch_ladder_tma;
extern const rung_launcher rung_launch_ladder_persistent;
extern const rung_launcher rung_launch_ladder_searched;
extern const rung_launcher rung_launch_ladder_banks;
extern const rung_launcher rung_launch_ladder_ordered;
extern const rung_launcher rung_launch_ladder_stream_k;
extern const rung_launcher rung_launch_ladder_one_kernel;

const rung_launcher *const rung_launchers[] = {
#define RUNG_FAMILY(family) &rung_launch_##family,
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
    &rung_launch_tiles,
    &rung_launch_ladder_split_k,
    &rung_launch_ladder_tma,
    &rung_launch_ladder_persistent,
    &rung_launch_ladder_searched,
    &rung_launch_ladder_banks,
    &rung_launch_ladder_stream_k,
    &rung_launch_ladder_ordered,
    &rung_launch_ladder_one_kernel,
    NULL,
};

const rung_launcher *rung_launcher_find(const char *name)
{
    for (int i = 0; name && rung_launchers[i]; i++)
        if (strcmp(rung_launchers[i]->name, name) == 0)
            return rung_launchers[i];
    return NULL;
}

const void *rung_find_tile(const void *tiles, size_t bytes, size_t count, const char *name)
{
    const char *at = tiles;
    for (size_t i = 0; i < count; i++, at += bytes)
        if (strcmp(*(const char *const *)(const void *)at, name) == 0)
            return at;
    return NULL;
}
