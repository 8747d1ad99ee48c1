/* device/tma.h under the lens: it has the same structs, and the same calls answered by the lens's mbarriers and copy
 * engine. */
#ifndef RUNG_LENS_DEVICE_TMA_H
#define RUNG_LENS_DEVICE_TMA_H

#include "device/async.h"
#undef __CUDACC__ /* without it the original gives its structs alone */
#include "../../../cuda/device/tma.h"
#define __CUDACC__ 1

RUNG_DEVICE void rung_barrier_init(uint64_t *barrier, int arrivals)
{
    rung_lens_mbarrier_init(barrier, (uint32_t)arrivals);
}

RUNG_DEVICE void rung_barrier_publish(void)
{
    rung_lens_mbarrier_publish();
}

RUNG_DEVICE void rung_barrier_arrive(uint64_t *barrier)
{
    rung_lens_mbarrier_arrive(barrier, 0);
}

RUNG_DEVICE void rung_barrier_expect(uint64_t *barrier, int bytes)
{
    rung_lens_mbarrier_arrive(barrier, bytes);
}

RUNG_DEVICE void rung_barrier_wait(uint64_t *barrier, uint32_t parity)
{
    rung_lens_mbarrier_wait(barrier, parity);
}

RUNG_DEVICE void rung_barrier_arrive_after_copies(uint64_t *barrier)
{
    rung_lens_cp_async_wait(-1);
    rung_lens_mbarrier_arrive(barrier, 0);
}

RUNG_DEVICE void rung_tensor_copy(void *shared, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
    int at[5] = {x, y, 0, 0, 0};
    rung_lens_tensor_load(shared, map, at, barrier);
}

#define rung_registers_grow(n)
#define rung_registers_shrink(n)

#endif
