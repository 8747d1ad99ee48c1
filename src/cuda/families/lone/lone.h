/* What plan and launch of the lone warps share, and the pairs with them: the launch's arguments. */
#ifndef RUNG_LONE_LONE_H
#define RUNG_LONE_LONE_H

#include "cuda/driver/device.h"
#include "cuda/families/lone/args.h"
#include "cuda/families/tile.h"
#include "cuda/host/row_copy.h"

typedef struct lone_tile {
    RUNG_TILE_HEAD;
    int tm, tn, copied, fourths, whole_steps;
    struct {
        double share, end_us, a_k_innermost, b_k_innermost, both_k_innermost;
    } cost;
} lone_tile;

const lone_tile *lone_tile_of(const rung_kernel *kernel);

double lone_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p);
const char *lone_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                          const rung_problem *p, rung_choice *choice);

enum { LONE_MOST = 1 << 30 }; /* sizes, leading dimensions and steps are below this */

/* Returns NULL when sizes, leading dimensions and so many tiles have room in 32-bit numbers, else why not. */
const char *lone_refuse(const rung_problem *p, int64_t tiles_of_one, int64_t steps);
/* Return an operand as it lies. One that all batches share is read as one matrix. */
static inline rung_operand lone_operand_a(const rung_problem *p)
{
    rung_operand a = rung_operand_a(p);
    a.readable |= p->align_a >= 16 && p->stride_a == 0;
    return a;
}

static inline rung_operand lone_operand_b(const rung_problem *p)
{
    rung_operand b = rung_operand_b(p);
    b.readable |= p->align_b >= 16 && p->stride_b == 0;
    return b;
}

/* Fills the arguments that follow from the problem and the number of tiles and steps. */
void lone_args_fill(rung_lone_args *args, const rung_problem *p, int64_t tiles_m, int64_t tiles_n, int64_t steps);
/* Describes boxes of `extent` rows of A, or columns of B, by `depth` along k. */
rung_status lone_describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int extent, int depth, int k_innermost,
                          CUtensorMap *map);

#endif
