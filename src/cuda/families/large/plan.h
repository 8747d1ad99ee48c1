/* How a product runs in large tiles: what is packed first, how many tiles one block does whole and how many are
 * streamed along k over all blocks. */
#ifndef RUNG_LARGE_PLAN_H
#define RUNG_LARGE_PLAN_H

#include <stdint.h>

typedef struct large_plan {
    int transposed;     /* C^T = B^T A^T is made instead */
    int pack_a, pack_b; /* copied first: turned, unless k lies as the kernel reads it */
    int turn_a, turn_b;
    int copied; /* 'a' or 'b': 4 bytes a lane as it is needed; 0: neither */
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int grid;
    int64_t tile_rows, tile_cols; /* stored of a tile */
    int64_t class_steps;          /* k is cut in four classes, k % 4, each streamed by blocks of its own; or 0 */
    int64_t bytes_a, bytes_b, bytes_partials; /* workspace, in this order */
    double cost_us;
} large_plan;

#endif
