/* Arguments of the matrix-vector kernels that bulk copies feed (families/vector/ring.inc), shared by host and device.
 */
#ifndef RUNG_DEVICE_VECTOR_ARGS_H
#define RUNG_DEVICE_VECTOR_ARGS_H

#include "cuda/device/args.h"

#include <cuda.h>

typedef struct rung_vector_args {
    CUtensorMap a_map; /* the third dimension is the batch */
    rung_args args;
} rung_vector_args;

#endif
