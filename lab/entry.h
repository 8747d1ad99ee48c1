/* The library has other doors than rung_plan_run. verify and fuzz go through these too, as programs do: the BLAS
 * drop-in, the cuBLAS drop-in, ranks. */
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

/* These open the entries of a drop-in, which must lie beside librung.so. The status is RUNG_MISSING_LIBRARY where that
 * is not there, or no cuBLAS.
 */
rung_status lab_entry_open_blas(lab_entry *entry, lab_place *place, rung_math math);
rung_status lab_entry_open_cublas(lab_entry *entry, lab_place *place, rung_math math);
rung_status lab_entry_open_ranks(lab_entry *entry, lab_place *place, rung_math math);
void lab_entry_close(lab_entry *entry);

/* Opens a library that lies beside librung.so. */
rung_status lab_entry_library(const char *file, void **library);

#endif
