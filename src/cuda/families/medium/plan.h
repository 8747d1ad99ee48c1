/* How a product runs in medium tiles: over how many blocks the k of its tiles is spread, what is copied first. */
#ifndef RUNG_MEDIUM_PLAN_H
#define RUNG_MEDIUM_PLAN_H

#include <stdint.h>

typedef struct medium_plan {
    int copy_a, copy_b; /* first, as the copy engine cannot read them */
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int64_t grid, streamers; /* blocks, and the last of them, which stream */
    double few_parts;        /* so many parts of a tile one block adds alone; more are added by several */
    int cluster;             /* blocks that share a tile as a cluster; 0: none do */
    int unlike;              /* some blocks have more to do than others */
    double factor;           /* on a step's time */
    double end_us;           /* what the end of a tile takes beyond its row's cost */
    int64_t bytes_a, bytes_b, bytes_partials; /* workspace, in this order */
    double cost_us;
} medium_plan;

#endif
