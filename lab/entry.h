/* Other doors of the library than rung_plan_run, so that verify and fuzz judge what programs call: the BLAS drop-in,
 * the cuBLAS drop-in, ranks. */
#ifndef LAB_ENTRY_H
#define LAB_ENTRY_H

#include "lab/place.h"

typedef struct lab_entry lab_entry;
struct lab_entry {
    rung_status (*run)(lab_entry *entry, const rung_gemm *gemm);
    void (*close)(lab_entry *entry);
    lab_place *place;
    void *state;
    uint64_t calls;
};

/* Each needs its drop-in beside librung.so. RUNG_MISSING_LIBRARY: it is not there, or there is no cuBLAS. */
rung_status lab_entry_open_blas(lab_entry *entry, lab_place *place, rung_math math);
rung_status lab_entry_open_cublas(lab_entry *entry, lab_place *place, rung_math math);
rung_status lab_entry_open_ranks(lab_entry *entry, lab_place *place, rung_math math);
void lab_entry_close(lab_entry *entry);

/* Opens a library that lies beside librung.so. */
rung_status lab_entry_library(const char *file, void **library);

#endif
