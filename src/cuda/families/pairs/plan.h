/* How a product runs in pairs of tiles. */
#ifndef RUNG_PAIRS_PLAN_H
#define RUNG_PAIRS_PLAN_H

#include <stdint.h>

typedef struct pairs_plan {
    int64_t tiles_m, tiles_n, tiles, steps;
    int grid;
    int copy_a, copy_b; /* first, as the copy engine cannot read them */
    int64_t copy_bytes; /* workspace of those */
} pairs_plan;

#endif
