/* Brings a vector's elements, which lie apart, next to each other: every block of a dot product would otherwise read a
 * whole sector for each element again. Here are the arguments and the kernel. */
#ifndef RUNG_VECTOR_GATHER_H
#define RUNG_VECTOR_GATHER_H

#include "cuda/device/args.h"

/* `count` vectors of k elements each. */
typedef struct vector_gather_args {
    const float *from;
    float *to;
    int64_t k, count, step, stride_from;
} vector_gather_args;

enum { VECTOR_GATHER_THREADS = 256 };

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(VECTOR_GATHER_THREADS)
    vector_gather(const __grid_constant__ vector_gather_args p)
{
    const int64_t i = blockIdx.x * (int64_t)VECTOR_GATHER_THREADS + threadIdx.x;
    rung_after_earlier_kernels();
    if (i < p.k * p.count)
        p.to[i] = __ldg(p.from + i / p.k * p.stride_from + i % p.k * p.step);
}
#endif

#endif
