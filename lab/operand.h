/* A stored matrix, or a batch of them, in guarded memory: everything that is not an element holds LAB_POISON. */
#ifndef LAB_OPERAND_H
#define LAB_OPERAND_H

#include "lab/check.h"

typedef struct lab_operand {
    lab_buffer memory;
    float *at; /* first element */
    int64_t lines, length, ld, stride, batch;
    int64_t first, words; /* at's position in the buffer, and the buffer's size */
} lab_operand;

/* Makes an operand: lines x length elements as stored, leading dimension length + pad. With batch > 1 entries lie
 * `stride` apart. */
rung_status lab_operand_make(lab_place *place, lab_operand *x, int64_t lines, int64_t length, int64_t pad,
                             int64_t offset, int64_t batch);
/* Returns the entry's view with (i, j) counted along its stored lines, or across them when `across`. */
lab_view lab_operand_view(const lab_operand *x, int64_t entry, int across);
void lab_operand_region(const lab_operand *x, lab_region_args *region);

#endif
