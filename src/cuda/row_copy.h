/* Copies of operands that the bulk copy engine cannot read as they lie (device/row_copy.h). */
#ifndef RUNG_CUDA_ROW_COPY_H
#define RUNG_CUDA_ROW_COPY_H

#include "cuda/device.h"
#include "cuda/device/row_copy.h"

/* The copy engine reads rows that start at multiples of 16 bytes, and batches a positive multiple of that apart. */
int rung_rows_readable(int align, int64_t batch, int64_t stride);
/* Elements from one row of a copy to the next: rows start with a sector, long ones with a line. */
int64_t rung_row_copy_ld(int64_t inner);
/* NULL when `rows` rows of `inner` elements, all matrices counted, are few enough. */
const char *rung_row_copy_refuses(int64_t inner, int64_t rows);
/* Time of a launch that copies so many bytes, both operands counted; 0 for none. */
double rung_row_copy_us(int64_t bytes);
/* Copies one operand or, where the second's `from` is set, two; and may start while the kernel before it ends. */
rung_status rung_row_copy_run(rung_cuda *cuda, const rung_row_copy *first, const rung_row_copy *second);

#endif
