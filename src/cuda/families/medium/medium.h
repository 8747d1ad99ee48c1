/* What plan and launch of the medium tiles share. */
#ifndef RUNG_MEDIUM_MEDIUM_H
#define RUNG_MEDIUM_MEDIUM_H

#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "cuda/host/row_copy.h"

typedef struct medium_tile {
    RUNG_TILE_HEAD;
    int marked, groups, resident, large_loop;
    struct {
        double alone_us, full_us, tile_us, again_us, finish_us, part_us, uneven_us;
    } cost;
} medium_tile;

const medium_tile *medium_tile_of(const rung_kernel *kernel);
/* Returns the tile for marked blocks, with B's k innermost or outermost. */
const medium_tile *medium_marked_tile(int b_k_innermost);
/* Returns whether these kernels must not add the sums: with k innermost in both operands they exchange neighbouring k,
 * which sums this short would show. */
int medium_refuses_sums(const rung_problem *p);

/* Returns B as the tile is to find it: one that reads B with k outermost has another one turned first. */
static inline rung_operand medium_operand_b(const medium_tile *t, const rung_problem *p)
{
    rung_operand b = rung_operand_b(p);
    b.turned = t->large_loop && p->trans_b && p->k;
    return b;
}

double medium_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p);
const char *medium_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice);

#endif
