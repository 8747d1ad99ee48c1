/* How a product runs on tensor cores: in panels that fit the workspace. */
#ifndef RUNG_ACCURATE_PLAN_H
#define RUNG_ACCURATE_PLAN_H

#include "cuda/families/large/plan.h"
#include "rung_catalog.h"

#include <stdint.h>

/* Where everything lies in the workspace of one panel, in bytes from its start; what has to be zero may lie elsewhere.
 */
typedef struct accurate_layout {
    int64_t m_pad, n_pad, k_pad, tiles_m, tiles_n, blocks;
    int64_t zero_bytes, zero_words; /* the first so many bytes must be zero; what lies behind 16 zero_words of them
                                       becomes zero again by itself */
    int64_t line[2], group[2], ready, words, tickets, marks, list, seen, partial, image[2], bytes;
    int64_t sums; /* partial sums of large tiles that compute what is refused as a whole */
} accurate_layout;

typedef struct accurate_plan {
    int64_t m, n, k; /* of the largest panel */
    int32_t kept;    /* the operand whose image stays while all panels of the other one pass: 0 A, 1 B */
    accurate_layout w;
    int64_t least_safe;       /* where the guard allows fewer blocks than this, it refuses them too */
    const rung_kernel *large; /* computes C where all blocks are refused; NULL: marked tiles do */
    large_plan large_plan;
} accurate_plan;

/* Say whether an operand of the product is turned for large tiles, which may compute the transposed product. */
static inline int accurate_turns_a(const large_plan *s)
{
    return s->transposed ? s->turn_b : s->turn_a;
}

static inline int accurate_turns_b(const large_plan *s)
{
    return s->transposed ? s->turn_a : s->turn_b;
}

#endif
