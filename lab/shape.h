/* Shapes to measure, column-major as in BLAS: lines "NT m n k [batch] [pad=P]" of a file, or
 * MxNxK[:NT][xBATCH][+PAD] with N or T for A and for B. The pad is added to every leading dimension. */
#ifndef LAB_SHAPE_H
#define LAB_SHAPE_H

#include "lab/error.h"

typedef struct lab_shape {
    rung_transpose trans_a, trans_b;
    int64_t m, n, k, batch, pad;
} lab_shape;

typedef struct lab_shapes {
    lab_shape *list; /* freed by the caller */
    int count, capacity;
} lab_shapes;

enum { LAB_SHAPE_TEXT = 96 };

/* Checks the sizes of every verb: the status is RUNG_INVALID_ARGUMENT where they are negative or an operand of them
 * would span more than 2^62 bytes, so that nothing computed from them overflows. */
rung_status lab_sizes_check(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t pad);
/* These read shapes. The status is RUNG_INVALID_ARGUMENT, with the word or line in the sentence, where that cannot be
 * read. */
rung_status lab_shape_parse(const char *word, lab_shape *shape);
rung_status lab_shapes_read(const char *file, lab_shapes *shapes); /* appends */
rung_status lab_shapes_add(lab_shapes *shapes, const lab_shape *shape);
/* Makes the shape's product in a layout, its operands end to end but for the pad. Addresses stay unset. */
void lab_shape_gemm(const lab_shape *shape, rung_layout layout, int64_t pad, rung_gemm *gemm);
void lab_shape_print(const lab_shape *shape, char text[LAB_SHAPE_TEXT]);
double lab_shape_flops(const lab_shape *shape);
double lab_shape_bytes(const lab_shape *shape); /* A and B read once, C written once */

#endif
