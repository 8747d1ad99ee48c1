/* Matrices as the bulk copy engine sees them: boxes of a batch of matrices. */
#ifndef RUNG_CUDA_BOXES_H
#define RUNG_CUDA_BOXES_H

#include "cuda/driver/device.h"
#include "cuda/host/row_copy.h"

typedef struct rung_boxes {
    const float *at;
    int64_t size[3];    /* elements of a row, rows, matrices */
    int64_t ld, stride; /* elements from row to row, from matrix to matrix */
    int box[2];         /* elements of a row, rows */
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
} rung_boxes;

/* Describes the matrices to the copy engine. Elements of a box outside the matrix read as zero. */
rung_status rung_boxes_describe(rung_cuda *cuda, const rung_boxes *boxes, CUtensorMap *map);

#endif
