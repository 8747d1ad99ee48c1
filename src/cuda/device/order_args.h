/* The tiles of a product and how they are spread, as device/order.h reads it; shared by host and device. */
#ifndef RUNG_DEVICE_ORDER_ARGS_H
#define RUNG_DEVICE_ORDER_ARGS_H

#include <stdint.h>

typedef struct rung_order {
    int32_t tiles_m, tiles_n;   /* rows and columns of tiles of one matrix */
    int32_t tiles, whole_tiles; /* of all batches; done by one block each. The others are streamed along k */
    int32_t steps;              /* along k, of one tile */
} rung_order;

#endif
