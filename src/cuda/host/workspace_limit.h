/* How much device memory a product may borrow from its context (rung_config.workspace_limit_bytes). */
#ifndef RUNG_CUDA_WORKSPACE_LIMIT_H
#define RUNG_CUDA_WORKSPACE_LIMIT_H

#include "cuda/driver/device.h"

static inline int64_t rung_workspace_limit(const rung_config *config)
{
    const int64_t set = config->workspace_limit_bytes, unset = (int64_t)32 << 30;
    return set < 0 ? 0 : set ? set : unset;
}

/* Returns whether so many bytes may be borrowed, and the counters that lie before them. */
static inline int rung_workspace_allows(const rung_config *config, int64_t bytes)
{
    return bytes == 0 || bytes + RUNG_TICKET_BYTES <= rung_workspace_limit(config);
}

#endif
