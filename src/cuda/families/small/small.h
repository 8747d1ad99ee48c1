/* What plan and launch of the small tiles share. */
#ifndef RUNG_SMALL_SMALL_H
#define RUNG_SMALL_SMALL_H

#include "cuda/driver/device.h"
#include "cuda/families/tile.h"

typedef struct small_tile {
    RUNG_TILE_HEAD;
    int crowd, brief, batch, tm, tn, slices, k_at_once, lanes_x, resident, in_order, last_loop, pairs, less_optimized;
    struct {
        double share, alone, block_us, odd_end, odd_address, a_k_innermost, b_k_innermost, both_k_innermost;
    } cost;
} small_tile;

const small_tile *small_tile_of(const rung_kernel *kernel);
/* Returns the tile that is as large as the blocks that accurate mode marks. It adds up each element in the order of k.
 */
const small_tile *small_marked_tile(void);

/* Returns whether both operands can be copied 16 bytes at a time. */
int small_is_aligned(const rung_problem *p);
/* Returns the dynamic shared memory of a block that has so many steps of k. */
int small_shared_bytes(const rung_kernel *kernel, const small_tile *t, const rung_problem *p, int64_t steps);
int64_t small_tiles(const rung_kernel *kernel, const rung_problem *p);
int small_matrices_a_block(const rung_kernel *kernel);

double small_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p);
const char *small_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                           const rung_problem *p, rung_choice *choice);

#endif
