/* What accurate mode needs beside its launcher: counters of how often the guard stepped in, and strict tiles. */
#ifndef RUNG_CUDA_ACCURATE_H
#define RUNG_CUDA_ACCURATE_H

#include "cuda/device/f16x3.h"
#include "cuda/driver/device.h"
#include "cuda/families/large/plan.h"

/* Returns the context's counters in device memory: blocks seen, blocks and single elements that the guard took. */
rung_status rung_guard_counts_at(rung_cuda *cuda, unsigned long long **counts);
/* Reads the counters. It waits for the context's stream. */
rung_status rung_guard_counts_read(rung_cuda *cuda, rung_guard_counts *counts);
void rung_guard_counts_close(rung_cuda *cuda);

/* What strict arithmetic needs for the 128 x 128 blocks of one product that are marked. All of it lies in device
 * memory. */
typedef struct rung_marked {
    uint8_t *marks;           /* one byte for each block, row by row, */
    const uint8_t *any;       /* and one more that says whether any block is marked */
    const uint8_t *all;       /* and one that says whether the guard refused all of them at once */
    int elsewhere;            /* large tiles compute C then, */
    int turned;               /* from operands that were turned into the room for copies */
    int32_t *list;            /* room for a number for each block */
    float *partials;          /* of rung_marked_blocks_partial_bytes */
    uint32_t *tickets;        /* of rung_marked_blocks_ticket_bytes, zero before and after */
    void *zero;               /* set to zero here for the next product, */
    int64_t zero_words;       /* so many times 16 bytes */
    float *copies[2];         /* room for copies of A and B (rung_row_copy_ld); NULL: none */
    f16x3_recalled *recalled; /* where to say whether all blocks were marked (recall.h); NULL: nobody asks */
    uint64_t number;          /* of this product there */
    volatile uint32_t *told;  /* and in host memory; NULL: the host does not ask */
} rung_marked;

/* Medium tiles compute the marked blocks. Where the copy engine cannot read the operands, there must be room for copies
 * that it can read; they are made where any block is marked, and take the operands' places in `p`. Sizes are not asked
 * about again: the plan has refused those of 2^30 and more, and a copy has no more pieces than 32 bits count, since it
 * has the room of an image, which would have 2^39 bytes then. */
int rung_marked_blocks_fit(const rung_problem *p, const rung_marked *w);
rung_status rung_marked_copies_run(rung_cuda *cuda, const rung_marked *w, rung_problem *p);
int64_t rung_marked_blocks_partial_bytes(int sms);
int64_t rung_marked_blocks_ticket_bytes(int sms);
rung_status rung_marked_blocks_run(rung_cuda *cuda, const rung_problem *p, const rung_marked *w);

/* Predicts how long medium tiles take to compute all blocks of a product; infinitely long where they cannot. */
double rung_marked_blocks_us(const rung_machine *machine, const rung_config *config, const rung_problem *p);

/* Plans large tiles for products of which all blocks are refused, that read both operands as they lie or, if `turns` is
 * set, one of them turned, or both. Returns the kernel with the least time, and that time; NULL where none can. */
const rung_kernel *rung_refused_large_plan(const rung_machine *machine, const rung_config *config,
                                           const rung_problem *p, int turns, large_plan *plan, double *us);
/* Computes C where the guard refuses all blocks, from operands that are turned already where the plan turns them. This
 * launch may run beside the product's. There is room for plan->bytes_partials, and the tickets are as
 * those of rung_marked. */
rung_status rung_refused_large_run(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                   const large_plan *plan, const f16x3_guard *guard, rung_chain_order order,
                                   float *partials, uint32_t *tickets);

/* Computes the marked blocks in small tiles, whatever the operands. */
rung_status rung_marked_tiles_run(rung_cuda *cuda, const rung_problem *p, const rung_marked *w);
/* Returns NULL, or why these kernels cannot take the product. */
const char *rung_marked_tiles_refuse(const rung_problem *p);

#endif
