/* What families whose kernels index with 32-bit numbers, and cut k in parts, refuse alike. */
#ifndef RUNG_CUDA_PARTS_H
#define RUNG_CUDA_PARTS_H

#include "cuda/driver/device.h"

/* Returns NULL when every size and leading dimension is below 2^30, else why not. */
const char *rung_refuse_sizes(const rung_problem *p);
/* Returns NULL when so many tiles can have `parts` parts of k, whose sums take `sums_bytes` in memory, else why not. */
const char *rung_refuse_parts(const rung_config *config, int64_t tiles, int64_t parts, int64_t sums_bytes);

#endif
