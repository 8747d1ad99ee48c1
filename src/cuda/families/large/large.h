/* What plan and launch of the large tiles share. */
#ifndef RUNG_LARGE_LARGE_H
#define RUNG_LARGE_LARGE_H

#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "core/divide.h"
#include "cuda/host/row_copy.h"

typedef struct large_tile {
    RUNG_TILE_HEAD;
    int a_k_innermost;
    struct {
        double step_cycles;
    } cost;
} large_tile;

const large_tile *large_tile_of(const rung_kernel *kernel);
/* Returns the name of the i-th tile; NULL behind the last. */
const char *large_tile_name(int i);

enum {
    LARGE_CLASSES = 4,  /* classes of k: k % 4 */
    LARGE_MOST_TAIL = 4 /* so many k at most are left to the end, where the parts are added */
};

/* Returns what k holds beyond whole steps of all classes, where that is little. */
static inline int64_t large_class_tail(const rung_kernel *kernel, const rung_problem *p)
{
    const int64_t tail = p->k % (LARGE_CLASSES * kernel->bk);
    return tail <= LARGE_MOST_TAIL ? tail : 0;
}

static inline int64_t large_class_rows(const rung_problem *p)
{
    return divide_up(p->k, LARGE_CLASSES);
}

/* Returns the product that computes C^T = B^T A^T: the same numbers, A and B exchanged. */
rung_problem large_transposed(const rung_problem *p);

double large_floor_us(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p);
const char *large_estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                           const rung_problem *p, rung_choice *choice);

#endif
