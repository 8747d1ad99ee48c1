/* Where products run and are checked: the CPU's memory or one GPU's, behind the same few calls. One thread a place. */
#ifndef LAB_PLACE_H
#define LAB_PLACE_H

#include "lab/device/lab_shared.h"
#include "lab/error.h"
#include "rung_tools.h"

enum { LAB_FILL, LAB_REFERENCE, LAB_COMPARE, LAB_UNTOUCHED, LAB_HASH, LAB_SUM, LAB_KERNELS };

typedef struct lab_place {
    int device;        /* RUNG_DEVICE_CPU or the GPU's number */
    rung_tools *tools; /* NULL on the CPU */
    int host_checks;   /* the CPU makes the checks: on the CPU, and under the lens, where GPU memory is the CPU's */
    void *module, *functions[LAB_KERNELS];
    lab_tally *tally;    /* in the place's memory */
    int threads;         /* of the library's CPU products, and of the lab's own checks */
    int64_t cache_bytes; /* last level: operands rotate over more than this */
    char name[128];
} lab_place;

/* Opens a place. device is RUNG_DEVICE_BEST, RUNG_DEVICE_CPU or a GPU's number; threads 0 leaves the choice to the
 * library. */
rung_status lab_place_open(lab_place *place, int device, int threads);
void lab_place_close(lab_place *place);
/* Makes a context of the library on this place, on the place's stream. */
rung_status lab_place_context(const lab_place *place, rung_math math, rung_context **context);

/* Gives memory that grows and is used again. */
typedef struct lab_buffer {
    void *at;
    size_t bytes;
} lab_buffer;
int lab_memory_lacks(int64_t bytes); /* whether the host has not that much left to give */
rung_status lab_buffer_reserve(lab_place *place, lab_buffer *buffer, int64_t bytes);
void lab_buffer_free(lab_place *place, lab_buffer *buffer);

rung_status lab_upload(lab_place *place, void *to, const void *host, size_t bytes);
rung_status lab_download(lab_place *place, void *host, const void *from, size_t bytes);
rung_status lab_copy(lab_place *place, void *to, const void *from, size_t bytes);
rung_status lab_pattern(lab_place *place, void *at, uint32_t pattern, size_t words);
rung_status lab_wait(lab_place *place);

#endif
