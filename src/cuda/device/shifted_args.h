/* An operand whose rows lie at any address, as device/shifted.h reads it; shared by host and device. */
#ifndef RUNG_DEVICE_SHIFTED_ARGS_H
#define RUNG_DEVICE_SHIFTED_ARGS_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/device/shifted_room.h"

/* A row is what lies in one piece: all of a k, or, with k innermost, one row of A or column of B. */
typedef struct rung_shifted {
    CUtensorMap of[4];          /* map i holds the rows with r % 4 = i */
    int32_t origin, ld, stride; /* floats: from the maps' start to the operand, from row to row, from batch to batch */
} rung_shifted;

#endif
