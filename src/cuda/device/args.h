/* The one argument struct of every GEMM kernel, shared by host and device, and the few helpers a kernel's ends need.
 * Row-major: C is m x n; A is m x k, or stored k x m when trans_a; B is k x n, or stored n x k when trans_b.
 * A kernel takes it by value: `RUNG_KERNEL(256) l10_thread_tile_8x8(const __grid_constant__ rung_args g)`. */
#ifndef RUNG_DEVICE_ARGS_H
#define RUNG_DEVICE_ARGS_H

#include <stdint.h>

enum { RUNG_TICKET_BYTES = 65536 }; /* of counters, before a workspace that was asked for with tickets */

/* When the next kernel's blocks may come, if there is room: once each block of this one begins its end, when all blocks
 * have ended, or as soon as all of them run and wait for their first operands. */
typedef enum rung_next_start { RUNG_NEXT_BEFORE_END, RUNG_NEXT_AFTER_END, RUNG_NEXT_AT_ONCE } rung_next_start;

typedef struct rung_args {
    const float *a, *b;
    float *c;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    float alpha, beta;
    int32_t trans_a, trans_b;
    /* Only production kernels read what follows. */
    int64_t batch;
    int64_t stride_a, stride_b, stride_c;
    const float *const *a_array;
    const float *const *b_array;
    float *const *c_array;
    const float *alpha_device, *beta_device;
    const float *bias;
    int32_t bias_kind;  /* rung_bias: 0 none, 1 per row, 2 per column */
    int32_t activation; /* rung_activation: 0 identity, 1 relu, 2 gelu */
    void *workspace;    /* partial sums, tickets, split operands: the launcher's layout */
    int32_t split_k;    /* parts along k; 1: none */
    int32_t next_start; /* rung_next_start, for kernels that know several */
    int32_t asks;       /* all blocks run at once and come early: while they wait
                           for the kernel before this one they ask for their operands */
    /* One byte a tile, row by row, for kernels that can leave tiles out: they compute only marked ones. NULL: all. */
    uint8_t *marks;
    void *zero;         /* with marks: what the kernel sets to zero for the next product, */
    int64_t zero_words; /* so many times 16 bytes, and the marks themselves; 0: nothing */
} rung_args;

#ifdef __CUDACC__

/* RUNG_KERNEL(threads of a block) or RUNG_KERNEL(threads of a block, blocks an SM should hold at least) */
#define RUNG_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#define RUNG_DEVICE static __device__ __forceinline__

/* A kernel that is launched to overlap (rung_grid.overlaps) starts while the one before it ends, and waits here until
 * all that came before is complete. Every thread calls it before it touches global memory. */
RUNG_DEVICE void rung_after_earlier_kernels(void)
{
#if defined(RUNG_LENS)
    rung_lens_after_earlier_kernels();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Once every block has called this or ended, the next kernel's blocks may take the room that is left. Kernels whose
 * blocks have a multiprocessor for themselves call it at once, and copies of operands do; medium tiles call it before a
 * block's last tile ends. Of kernels whose many blocks share a multiprocessor short ones call it at their end, and
 * those in a captured graph at once: the next blocks then start sooner, but go where room is. After a kernel that does
 * not call it they find an empty chip and spread evenly. */
RUNG_DEVICE void rung_next_kernel_may_start(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && !defined(RUNG_LENS)
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Kernels that know several moments for the next one's start call this at each, with its name. */
RUNG_DEVICE void rung_next_kernel_may_start_now(const rung_args *g, rung_next_start moment)
{
    if (g->next_start == (int32_t)moment)
        rung_next_kernel_may_start();
}

/* Returns this block's place down C, in tiles. Launchers fold what is over the limit of grid y into z. */
RUNG_DEVICE int64_t rung_block_row(void)
{
    return (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
}

/* Returns alpha acc + beta C. With beta = 0 it does not read C: a NaN there has to vanish. */
RUNG_DEVICE float rung_blend(const rung_args *g, float acc, const float *c)
{
    float value = g->alpha * acc;
    if (g->beta != 0.0f)
        value = fmaf(g->beta, *c, value);
    return value;
}

#endif
#endif
