/* Sizes and parts of k that kernels refuse. */
#include "cuda/host/parts.h"

enum { MAX_SIZE = 1 << 30, MAX_TICKETS = RUNG_TICKET_BYTES / 4 };

const char *rung_refuse_sizes(const rung_problem *p)
{
    if (p->m >= MAX_SIZE || p->n >= MAX_SIZE || p->k >= MAX_SIZE)
        return "a dimension is 2^30 or more";
    if (p->lda >= MAX_SIZE || p->ldb >= MAX_SIZE)
        return "a leading dimension is 2^30 or more";
    return NULL;
}

const char *rung_refuse_parts(const rung_config *config, int64_t tiles, int64_t parts, int64_t sums_bytes)
{
    if (tiles * parts > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    if (parts == 1)
        return NULL;
    int64_t limit = config->workspace_limit_bytes;
    if (limit < 0 || sums_bytes + RUNG_TICKET_BYTES > (limit ? limit : (int64_t)4 << 30))
        return "partial sums do not fit the context's workspace limit";
    if (2 * tiles > MAX_TICKETS)
        return "too many tiles to count partial sums";
    return NULL;
}
