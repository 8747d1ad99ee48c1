/* What families whose kernels index with 32-bit numbers, and cut k in parts, refuse alike. */
#ifndef RUNG_CUDA_PARTS_H
#define RUNG_CUDA_PARTS_H

#include "cuda/host/workspace_limit.h"

enum { RUNG_MOST_SIZE = 1 << 30, RUNG_MOST_TICKETS = RUNG_TICKET_BYTES / 4 };

/* Returns NULL when every size and leading dimension is below 2^30, else why not. */
static inline const char *rung_refuse_sizes(const rung_problem *p)
{
    if (p->m >= RUNG_MOST_SIZE || p->n >= RUNG_MOST_SIZE || p->k >= RUNG_MOST_SIZE)
        return "a dimension is 2^30 or more";
    if (p->lda >= RUNG_MOST_SIZE || p->ldb >= RUNG_MOST_SIZE)
        return "a leading dimension is 2^30 or more";
    return NULL;
}

/* Returns NULL when so many tiles can have `parts` parts of k, whose sums take `sums_bytes` in memory, else why not. */
static inline const char *rung_refuse_parts(const rung_config *config, int64_t tiles, int64_t parts, int64_t sums_bytes)
{
    if (tiles * parts > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    if (parts == 1)
        return NULL;
    if (!rung_workspace_allows(config, sums_bytes))
        return "partial sums do not fit the context's workspace limit";
    if (2 * tiles > RUNG_MOST_TICKETS)
        return "too many tiles to count partial sums";
    return NULL;
}

#endif
