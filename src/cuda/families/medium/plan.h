/* How a product runs in medium tiles: over how many blocks the k of its tiles is spread, what is copied first. */
#ifndef RUNG_MEDIUM_PLAN_H
#define RUNG_MEDIUM_PLAN_H

#include <stdint.h>

typedef struct medium_plan {
    int copy_a, copy_b; /* first, as the copy engine cannot read them */
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int64_t grid, streamers;                  /* blocks, and the last of them, which stream */
    double few_parts;                         /* of a tile: more are added by several blocks */
    int cluster;                              /* blocks that share a tile as a cluster; 0: none do */
    int unlike;                               /* not all blocks have as much to do */
    double factor;                            /* on a step's time */
    double end_us;                            /* a tile's, beyond its traits' */
    int64_t bytes_a, bytes_b, bytes_partials; /* workspace, in this order */
    double cost_us;
} medium_plan;

#endif
