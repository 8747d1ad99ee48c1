/* What `rung tune` measured on this machine: for a shape, the kernel that was fastest. Kept in the user's cache folder,
 * one JSON line a shape, and valid only for the device, driver and library version that its first line names. */
#ifndef RUNG_CORE_TUNED_H
#define RUNG_CORE_TUNED_H

#include "core/problem.h"
#include "rung_catalog.h"

typedef struct rung_tuned_row {
    int64_t m, n, k, batch; /* row-major, as in rung_problem */
    int trans_a, trans_b;
    rung_math math;
    const rung_kernel *kernel;
    double us;
} rung_tuned_row;

typedef struct rung_tuned {
    rung_tuned_row *rows;
    int count, capacity;
    char path[512];
    char identity[192]; /* of the device: "NVIDIA H200, driver 13000" */
    char state[768];    /* a sentence for doctor and explain */
} rung_tuned;

/* Reads the file if there is one. A damaged or foreign file leaves the table empty and says so in `state`. */
void rung_tuned_load(rung_tuned *tuned, const char *identity);
void rung_tuned_free(rung_tuned *tuned);
const rung_tuned_row *rung_tuned_find(const rung_tuned *tuned, const rung_problem *problem);
rung_status rung_tuned_record(rung_tuned *tuned, const rung_problem *problem, const rung_kernel *kernel, double us);
rung_status rung_tuned_save(const rung_tuned *tuned);

#endif
