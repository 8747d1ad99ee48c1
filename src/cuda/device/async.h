/* Copies from global to shared memory that the thread does not wait for (cp.async, sm_80).
 * A thread's copies since the last commit form a group; groups finish in order. After waiting, a barrier makes the
 * copies of the other threads visible.
 */
#ifndef RUNG_DEVICE_ASYNC_H
#define RUNG_DEVICE_ASYNC_H

#include "args.h"

#ifdef __CUDACC__

/* Copies 16 bytes past the L1 cache. Both addresses are multiples of 16. */
RUNG_DEVICE void rung_async_copy16(float *shared, const float *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

/* Copies 4 bytes. */
RUNG_DEVICE void rung_async_copy4(float *shared, const float *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

/* Copies 4 bytes. Where `exists` is false it writes 0.0f and reads nothing. */
RUNG_DEVICE void rung_async_copy4_or_zero(float *shared, const float *global, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"(exists ? 4 : 0)
                 : "memory");
}

/* An address in shared memory to compute with; what is added to it counts bytes. */
typedef uint32_t rung_shared_at;

RUNG_DEVICE rung_shared_at rung_shared_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* Copies `bytes` (0 to 16, or 0 and 4) and fills the rest of the 16 (or 4) with zeros; fetches whole L2 lines. */
RUNG_DEVICE void rung_async_put16(rung_shared_at to, const float *global, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
}

RUNG_DEVICE void rung_async_put4(rung_shared_at to, const float *global, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes));
}

/* Copies 4 bytes, or writes zeros without reading; fetches whole L2 lines. */
RUNG_DEVICE void rung_async_put4_if(rung_shared_at to, const float *global, bool exists)
{
    asm volatile("{ .reg .pred none;\n"
                 "setp.eq.s32 none, %2, 0;\n"
                 "cp.async.ca.shared.global.L2::128B [%0], [%1], 4, none; }" ::"r"(to),
                 "l"(global), "r"((int)exists));
}

/* Asks the second level of cache for the line at an address. Nothing is read: what an earlier kernel still writes there
 * is what a later load finds. So this may come before rung_after_earlier_kernels(). */
RUNG_DEVICE void rung_ask_for_line(const float *global)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

/* Return their argument, computed here: the compiler would else compute behind a wait what it can know before. */
RUNG_DEVICE const float *rung_known_address(const float *x)
{
    asm volatile("" : "+l"(x));
    return x;
}

RUNG_DEVICE int rung_known_number(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

RUNG_DEVICE void rung_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` (a constant) of this thread's groups are under way. */
#define rung_async_wait(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#endif
#endif
