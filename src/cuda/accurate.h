/* How often the guard of the fp16x3 method stepped in: device counters that a context keeps. */
#ifndef RUNG_CUDA_ACCURATE_H
#define RUNG_CUDA_ACCURATE_H

#include "cuda/device.h"

/* The context's counters in device memory: blocks seen, blocks and single elements that the guard took. */
rung_status rung_guard_counts_at(rung_cuda *cuda, unsigned long long **counts);
/* Waits for the context's stream. */
rung_status rung_guard_counts_read(rung_cuda *cuda, rung_guard_counts *counts);
void rung_guard_counts_close(rung_cuda *cuda);

#endif
