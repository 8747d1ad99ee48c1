/* The lab's checks on the CPU: the same results as lab/device/lab_kernels.cu, with threads where the work is worth it.
 */
#ifndef LAB_HOST_H
#define LAB_HOST_H

#include "lab/device/lab_shared.h"
#include "rung.h"

void lab_host_fill(const lab_fill_args *args, int threads);
rung_status lab_host_reference(const lab_reference_args *args, int threads);
void lab_host_compare(const lab_compare_args *args);
void lab_host_untouched(const lab_region_args *args);
void lab_host_hash(const lab_region_args *args);
void lab_host_sum(const float *x, int64_t n, lab_tally *tally);

/* Calls work(state, first, end) over [0, count) in parts, on so many threads. */
void lab_parallel(int threads, int64_t count, void (*work)(void *state, int64_t first, int64_t end), void *state);

#endif
