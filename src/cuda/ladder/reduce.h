/* Sums of long vectors on the GPU. */
#ifndef RUNG_CUDA_REDUCE_H
#define RUNG_CUDA_REDUCE_H

#include "cuda/driver/device.h"

/* kernel NULL: the best for this n. x and result are device memory; result is written in stream order. */
rung_status rung_reduce_run(rung_cuda *cuda, const rung_kernel *kernel, int64_t n, const float *x, float *result);

#endif
