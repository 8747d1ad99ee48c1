/* Operands whose rows start at odd addresses, copied to rows that do not (device/row_copy.h). */
#include "device/row_copy.h"

RUNG_KERNEL(RUNG_ROW_COPY_THREADS) row_copy_two(const __grid_constant__ rung_row_copy_args p)
{
    rung_after_earlier_kernels();
    rung_next_kernel_may_start(); /* its blocks find room as the last of these end */
    if ((p.only_if && !*p.only_if) || (p.unless && *p.unless))
        return;
#pragma unroll 1
    for (unsigned share = blockIdx.x; share < p.shares; share += gridDim.x)
        if (share < p.shares_of_first)
            row_copy(&p.of[0], share);
        else
            row_copy(&p.of[1], share - p.shares_of_first);
}
