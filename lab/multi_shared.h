/* What both ways to measure a distributed product share: scattered operands, and such that are made in parts. */
#ifndef LAB_MULTI_SHARED_H
#define LAB_MULTI_SHARED_H

#include "lab/shape.h"
#include "rung_multi.h"

enum { LAB_MULTI_RANKS = 64 };

/* A product's operands on ranks: what each matrix is, and its parts in the memory of the ranks that this process holds.
 */
typedef struct lab_distributed {
    rung_multi *multi;
    const lab_shape *shape;
    rung_matrix desc[3]; /* A, B, C */
    float *part[3][LAB_MULTI_RANKS];
} lab_distributed;

/* Describes the matrices in blocks of `block` (0: one a rank) on the grid, and allocates the parts. */
rung_status lab_distributed_open(lab_distributed *d, int rows, int cols, int64_t block);
void lab_distributed_close(lab_distributed *d);
rung_status lab_distributed_multiply(lab_distributed *d);

/* Returns a number of repeats for which there is room. */
int lab_multi_repeats(int asked);

#endif
