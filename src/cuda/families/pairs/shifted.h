/* Operands whose rows lie at any address, described to kernels that shift (device/shifted.h). */
#ifndef RUNG_CUDA_SHIFTED_H
#define RUNG_CUDA_SHIFTED_H

#include "cuda/driver/device.h"
#include "cuda/device/shifted_args.h"
#include "cuda/host/row_copy.h"

/* Returns why the operand cannot be read so; NULL where it can. */
const char *rung_shifted_refuses(const rung_operand *o, int64_t batch);

/* Describes the operand for stages of 16 k of `extent` rows of A or columns of B. */
rung_status rung_shifted_describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int extent, int k_innermost,
                                  rung_shifted *x);

#endif
