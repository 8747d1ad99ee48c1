/* Sums long vectors by one kernel of the reduce ladder, or by the library's rung_ssum; checks them against FP64 and
 * times them beside CUB where that peer was built. */
#ifndef LAB_REDUCE_H
#define LAB_REDUCE_H

#include "lab/measure.h"

typedef struct lab_reduce {
    lab_place *place;
    lab_monitor monitor;
    rung_context *context;
    lab_buffer x, results, cub_workspace;
    int (*cub)(void *workspace, size_t *bytes, const float *x, float *result, int64_t n, void *stream); /* NULL: none */
    char cub_missing[320];
    double budget_s;
} lab_reduce;

typedef struct lab_reduce_row {
    int64_t n;
    double error_u, cub_error_u; /* |s - s64| / sum |x| in u = 2^-24 */
    double bound_u;
    int same_bits;            /* ten runs gave one result */
    double us, cub_us, ratio; /* ratio: CUB's time over ours; 0: no CUB */
    double gbytes_per_s;
    int sets;
    lab_measurement time;
} lab_reduce_row;

rung_status lab_reduce_open(lab_reduce *r, lab_place *place);
void lab_reduce_close(lab_reduce *r);
/* Checks a kernel; NULL is rung_ssum. */
rung_status lab_reduce_check(lab_reduce *r, const char *kernel, int64_t n, int64_t offset, lab_data data,
                             lab_reduce_row *row);
/* Checks sizes around every power that matters, misaligned, with outliers, NaN and Inf. *why gets the first failure. */
rung_status lab_reduce_edges(lab_reduce *r, const char *kernel, int *ran, int *failed, char *why, size_t why_bytes);
rung_status lab_reduce_time(lab_reduce *r, const char *kernel, int64_t n, lab_reduce_row *row);

#endif
