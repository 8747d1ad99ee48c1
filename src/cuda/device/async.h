/* Copies from global to shared memory that the thread does not wait for (cp.async, sm_80).
 * A thread's copies since the last commit form a group; groups finish in order. After waiting, a barrier makes the
 * copies of the other threads visible.
 */
#ifndef RUNG_DEVICE_ASYNC_H
#define RUNG_DEVICE_ASYNC_H

#include "args.h"

#ifdef __CUDACC__

/* 16 bytes, both ends aligned to 16, past the L1 cache. */
RUNG_DEVICE void rung_async_copy16(float *shared, const float *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

/* 4 bytes. */
RUNG_DEVICE void rung_async_copy4(float *shared, const float *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

/* 4 bytes; writes 0.0f without reading where `exists` is false. */
RUNG_DEVICE void rung_async_copy4_or_zero(float *shared, const float *global, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"(exists ? 4 : 0)
                 : "memory");
}

RUNG_DEVICE void rung_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most `pending` (a constant) of this thread's groups are under way. */
#define rung_async_wait(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#endif
#endif
