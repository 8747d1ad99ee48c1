/* What CUDA C allows and the host's compiler does otherwise: nothing may be found. C's library fills and copies shared
 * memory, halves of words are volatile, two dynamic arrays are one, a function has shared memory of its own, and there
 * are more than seventy variables. */
#include "device/args.h"

#define ONE(name)                                                                                                      \
    __shared__ volatile int name[1];                                                                                   \
    if (threadIdx.x == 0)                                                                                              \
        name[0] = 0;
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)

static __device__ float *room(void)
{
    __shared__ float words[128];
    return words;
}

RUNG_KERNEL(256) others_ways(const __grid_constant__ rung_args g)
{
    extern __shared__ float floats[];
    extern __shared__ unsigned numbers[];
    __shared__ volatile short halves[256];
    __shared__ float filled[75], copied[75];
    int64_t row = rung_block_row() * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    const unsigned count = g.k < 75 ? (unsigned)g.k : 75;
    float *words = room();
    TEN(a) TEN(b) TEN(c) TEN(d) TEN(e) TEN(f) TEN(h) halves[threadIdx.x] = 1;
    floats[threadIdx.x] = 1.0f;
    if (threadIdx.x < 128)
        words[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0)
        memset(filled, 0, sizeof filled);
    __syncthreads();
    if (threadIdx.x == 32)
        memcpy(copied, filled, sizeof filled[0] * count);
    __syncthreads();
    if (row >= g.m || column >= g.n)
        return;
    float acc = copied[threadIdx.x % count];
    if (numbers[255 - threadIdx.x] != 0x3f800000u || halves[255 - threadIdx.x] != 1 || words[threadIdx.x / 2] != 1.0f)
        acc = 1e9f;
    for (int64_t i = 0; i < g.k; i++)
        acc = fmaf(g.a[row * g.lda + i], g.b[i * g.ldb + column], acc);
    g.c[row * g.ldc + column] = acc;
}
