/* Hardware counters of GPU kernels through Nsight Compute's ncu, beside what the lens predicts for the same launch. */
#ifndef LAB_PROFILE_H
#define LAB_PROFILE_H

#include "lab/lens.h"

typedef struct lab_counter {
    const char *key; /* ours, short */
    const char *ncu; /* Nsight Compute's name */
    const char *what;
    int predicted; /* the lens has a figure for it */
    int decimals;
    const char *meaning; /* a sentence for the reader; NULL: the name says it */
} lab_counter;
extern const lab_counter lab_counters[]; /* ends with a NULL key */
enum { LAB_COUNTERS = 64 };

typedef struct lab_profile {
    char kernel[96];
    double measured[LAB_COUNTERS]; /* NaN: no figure */
    double predicted[LAB_COUNTERS];
    double longest_us; /* of the launch whose percentages stand in `measured` */
} lab_profile;

/* Returns where ncu is; NULL where it is not found. */
const char *lab_ncu_path(void);
/* Runs `command` (words ending with NULL) under ncu and fills a profile for each launch it saw whose name is one of
 * kernels; others are added up under the kernel they came after. RUNG_MISSING_LIBRARY: no ncu. RUNG_UNSUPPORTED: the
 * counters are not to be had here, with the reason and what to do about it. */
rung_status lab_ncu_run(char *const *command, lab_profile *profiles, int count);
/* Does the same from lines that `rung profile -o` wrote, for products of this size; with m and k 0 for sums of n
 * floats. It says how many kernels it found. */
rung_status lab_counters_read(const char *path, int64_t m, int64_t n, int64_t k, lab_profile *profiles, int count,
                              int *found);
/* Reads fields of a kernel's last line at this size from a file of counts (results/ladder-cpu-counts.jsonl). */
rung_status lab_counts_read(const char *path, const char *kernel, int64_t m, int64_t n, int64_t k,
                            const char *const *keys, int count, double *values);
/* Fills in the lens's figures for the kernel's last run (lab_lens_run). */
void lab_profile_predict(lab_profile *profile);
int lab_counter_index(const char *key);

#endif
