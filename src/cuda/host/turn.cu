/* Operands with k innermost, turned before a product that reads them with k outermost (device/turn.h). */
#include "device/f16x3_turn.h"
#include "device/turn.h"

RUNG_KERNEL(RUNG_TURN_THREADS, 6) turn_operand(const __grid_constant__ rung_turn_args p)
{
    rung_after_earlier_kernels();
    turn(&p, 0);
}

/* Puts all k of a class, k % 4, together. */
RUNG_KERNEL(RUNG_TURN_THREADS, 6) turn_classes(const __grid_constant__ rung_turn_args p)
{
    rung_after_earlier_kernels();
    rung_next_kernel_may_start();
    turn(&p, 1);
}
