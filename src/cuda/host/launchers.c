/* The launchers there are. A row's .launch names one of them. */
#include "cuda/driver/device.h"

#include <string.h>

extern const rung_launcher rung_launch_accurate;
extern const rung_launcher rung_launch_strict;
extern const rung_launcher rung_launch_warp;
extern const rung_launcher rung_launch_shapes, rung_launch_shapes_crowd, rung_launch_shapes_small,
    rung_launch_shapes_vector;
extern const rung_launcher rung_launch_lone;
extern const rung_launcher rung_launch_vector;
extern const rung_launcher rung_launch_tiles;
extern const rung_launcher rung_launch_ladder_split_k;
extern const rung_launcher rung_launch_ladder_tma;
extern const rung_launcher rung_launch_ladder_persistent;
extern const rung_launcher rung_launch_ladder_searched;
extern const rung_launcher rung_launch_ladder_banks;
extern const rung_launcher rung_launch_ladder_stream_k;

const rung_launcher *const rung_launchers[] = {
    &rung_launch_accurate,
    &rung_launch_strict,
    &rung_launch_warp,
    &rung_launch_shapes,
    &rung_launch_shapes_crowd,
    &rung_launch_shapes_small,
    &rung_launch_shapes_vector,
    &rung_launch_lone,
    &rung_launch_vector,
    &rung_launch_tiles,
    &rung_launch_ladder_split_k,
    &rung_launch_ladder_tma,
    &rung_launch_ladder_persistent,
    &rung_launch_ladder_searched,
    &rung_launch_ladder_banks,
    &rung_launch_ladder_stream_k,
    NULL,
};

const rung_launcher *rung_launcher_find(const char *name)
{
    for (int i = 0; name && rung_launchers[i]; i++)
        if (strcmp(rung_launchers[i]->name, name) == 0)
            return rung_launchers[i];
    return NULL;
}
