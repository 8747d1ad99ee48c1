/* device/async.h under the lens: it has the same calls; copies land when their group is waited for. */
#ifndef RUNG_DEVICE_ASYNC_H
#define RUNG_DEVICE_ASYNC_H

#include "device/args.h"

RUNG_DEVICE void rung_async_copy16(float *shared, const float *global)
{
    rung_lens_cp_async(shared, global, 16, 16);
}

RUNG_DEVICE void rung_async_copy4(float *shared, const float *global, bool exists = true)
{
    rung_lens_cp_async(shared, global, 4, exists ? 4 : 0);
}

RUNG_DEVICE void rung_async_copy4_or_zero(float *shared, const float *global, bool exists)
{
    rung_lens_cp_async(shared, global, 4, exists ? 4 : 0);
}

typedef uintptr_t rung_shared_at;

RUNG_DEVICE rung_shared_at rung_shared_address(const void *shared)
{
    return (uintptr_t)shared;
}

RUNG_DEVICE void rung_async_put16(rung_shared_at to, const float *global, int bytes)
{
    rung_lens_cp_async((float *)to, global, 16, bytes);
}

RUNG_DEVICE void rung_async_put4(rung_shared_at to, const float *global, int bytes)
{
    rung_lens_cp_async((float *)to, global, 4, bytes);
}

RUNG_DEVICE void rung_async_put4_if(rung_shared_at to, const float *global, bool exists)
{
    rung_lens_cp_async((float *)to, global, 4, exists ? 4 : 0);
}

RUNG_DEVICE void rung_ask_for_line(const float *)
{
}

RUNG_DEVICE const float *rung_known_address(const float *x)
{
    return x;
}

RUNG_DEVICE int rung_known_number(int x)
{
    return x;
}

RUNG_DEVICE void rung_async_commit(void)
{
    rung_lens_cp_async_commit();
}

#define rung_async_wait(pending) rung_lens_cp_async_wait(pending)

#endif
