/* Operands with k innermost that are turned before a product which reads them with k outermost (device/turn.h). */
#ifndef RUNG_CUDA_TURN_H
#define RUNG_CUDA_TURN_H

#include "cuda/driver/device.h"
#include "cuda/device/turn.h"

/* Returns the time in which so many bytes of an operand are turned beside other work; and that of a launch that does
 * it, 0 for none. */
static inline double rung_turned_us(const rung_machine *machine, int64_t bytes)
{
    const double bytes_per_us = 3.6e6; /* read and written bytes both count */
    return 2.0 * (double)bytes / (bytes_per_us * machine->memory_speed);
}

static inline double rung_turn_us(const rung_machine *machine, int64_t bytes)
{
    const double start_us = 2.72;
    return bytes ? start_us + rung_turned_us(machine, bytes) : 0.0;
}

/* Turns `batch` matrices as `turn` describes. With class_rows each class of k gets so many rows, else 0. */
rung_status rung_turn_run(rung_cuda *cuda, const rung_turn_args *turn, int64_t batch);

#endif
