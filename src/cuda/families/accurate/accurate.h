/* What accurate mode needs beside its launcher: counters of how often the guard stepped in, and strict tiles. */
#ifndef RUNG_CUDA_ACCURATE_H
#define RUNG_CUDA_ACCURATE_H

#include "cuda/driver/device.h"

/* The context's counters in device memory: blocks seen, blocks and single elements that the guard took. */
rung_status rung_guard_counts_at(rung_cuda *cuda, unsigned long long **counts);
/* Waits for the context's stream. */
rung_status rung_guard_counts_read(rung_cuda *cuda, rung_guard_counts *counts);
void rung_guard_counts_close(rung_cuda *cuda);

/* Strict arithmetic for the 128 x 128 blocks of one product that are marked in device memory, a byte a block. With
 * zero_words, marks and that many times 16 bytes from `zero` are zero afterwards. */
rung_status rung_marked_tiles_run(rung_cuda *cuda, const rung_problem *p, uint8_t *marks, void *zero,
                                  int64_t zero_words);
/* NULL, or why these kernels cannot take the product. */
const char *rung_marked_tiles_refuse(const rung_problem *p);

#endif
