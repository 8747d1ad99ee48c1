/* Products over several ranks, measured. Whole operands lie in one process's (pinned) host memory and are scattered
 * over the ranks or streamed from there. Random projections in FP64 check them, which costs n^2, and a hash stands for
 * the bits of C. Beside them, where they are there, stand one GPU alone and cuBLAS-XT. */
#ifndef LAB_MULTI_H
#define LAB_MULTI_H

#include "lab/shape.h"
#include "lab/stats.h"
#include "rung_multi.h"

enum { LAB_MULTI_REPEATS = 64 }; /* times that are kept, at most */

/* Operands as a whole: column-major, with leading dimensions as small as can be. On other processes than rank 0's all
 * is NULL. */
typedef struct lab_whole {
    lab_shape shape;
    float *a, *b, *c;
    int64_t lda, ldb, ldc;
    rung_multi *owner; /* whose pinned memory it is */
} lab_whole;

typedef struct lab_multi_row {
    lab_stats us;
    double error_u, bound_u; /* of the projection, in units of 2^-24 of its size; 0, 0: not looked at */
    uint64_t bits;
} lab_multi_row;

/* Makes random operands, which rank 0's process holds. */
rung_status lab_whole_new(lab_whole *whole, const lab_shape *shape, rung_multi *owner);
void lab_whole_free(lab_whole *whole);

/* Gives the grid of `ranks` whose parts of C are nearest to squares. */
void lab_multi_grid(const lab_shape *shape, int ranks, int *rows, int *cols);

/* Measures a distributed product: blocks of `block` (0: one a rank) on a grid of rows x cols. With trace it makes one
 * more call and leaves its spans in the context. */
rung_status lab_multi_distributed(rung_multi *multi, const lab_whole *whole, int rows, int cols, int64_t block,
                                  int repeats, int trace, rung_math math, lab_multi_row *row);
/* Multiplies straight from host memory, in one process. */
rung_status lab_multi_host(rung_multi *multi, const lab_whole *whole, int repeats, int trace, rung_math math,
                           lab_multi_row *row);
/* Measures a product whose operands are made in the memory of one process's ranks, each one's part by itself: they need
 * not fit one GPU, nor the host. */
rung_status lab_multi_parts(rung_multi *multi, const lab_shape *shape, int rows, int cols, int repeats, rung_math math,
                            lab_multi_row *row);
/* Measures rung_sgemm on one GPU, operands in its memory: efficiency is measured against that. */
rung_status lab_multi_one_gpu(const lab_whole *whole, rung_math math, int repeats, lab_stats *us);
/* Measures cuBLAS-XT on so many GPUs, the best of a few block sizes. The status is RUNG_MISSING_LIBRARY where there is
 * none. */
rung_status lab_multi_cublasxt(const lab_whole *whole, int gpus, int repeats, lab_stats *us, int *block);

/* Finds the largest error of C*x against op(A)*(op(B)*x), with x of random signs. A right C stays below *bound_u. */
rung_status lab_projection(const lab_whole *whole, rung_math math, double *error_u, double *bound_u);

/* Writes spans as an SVG (to a name that ends in .svg) or a Chrome trace. */
rung_status lab_timeline_write(const char *file, const rung_span *spans, int count);

/* Opens libcublas as cuBLAS's peers find it (peer_cuda.c); NULL where it is not there. */
void *lab_open_cublas(void);

#endif
