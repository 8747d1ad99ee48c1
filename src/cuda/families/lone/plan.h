/* How a product runs by lone warps: whether the warps of a block share a tile's k or have tiles of their own, over how
 * many blocks. */
#ifndef RUNG_LONE_PLAN_H
#define RUNG_LONE_PLAN_H

#include <stdint.h>

typedef struct lone_plan {
    int64_t tiles_m, tiles_n, tiles, steps;
    int together, grid, cluster, tickets;
    int copy_a, copy_b; /* first, as the copy engine cannot read them */
    int overlaps;       /* may start while the kernel before it ends */
    double step_us;
    int64_t copy_bytes, parts_bytes; /* workspace: the parts of tiles first, then the copies of operands */
    double cost_us;
} lone_plan;

#endif
