/* The guard's counters: three words of device memory that live as long as the context. */
#include "cuda/families/accurate/accurate.h"

#include <string.h>

rung_status rung_guard_counts_at(rung_cuda *cuda, unsigned long long **counts)
{
    if (!cuda->guard_counts) {
        CUdeviceptr at = 0;
        const char *call;
        rung_thread_mode mode = rung_driver_relax(cuda->driver);
        CUresult result = rung_driver_alloc_zeros(cuda->driver, &at, 3 * sizeof **counts, &call);
        rung_driver_put_back(cuda->driver, mode);
        if (result != CUDA_SUCCESS)
            return rung_driver_fail(cuda->driver, result, call);
        cuda->guard_counts = (void *)(uintptr_t)at;
    }
    *counts = cuda->guard_counts;
    return RUNG_SUCCESS;
}

rung_status rung_guard_counts_read(rung_cuda *cuda, rung_guard_counts *counts)
{
    /* Where the wait fails the copy may come when this has returned: it must not find another call's variables here. */
    static _Thread_local unsigned long long values[3];
    memset(values, 0, sizeof values);
    if (cuda->guard_counts) {
        rung_wait_for_all(cuda); /* products may have been queued on other streams than the last one */
        CU_TRY(cuda->driver,
               copy_to_host(values, rung_device_address(cuda->guard_counts), sizeof values, cuda->config.stream));
        CU_TRY(cuda->driver, stream_synchronize(cuda->config.stream));
    }
    counts->blocks = (int64_t)values[0];
    counts->strict_blocks = (int64_t)values[1];
    counts->strict_elements = (int64_t)values[2];
    return RUNG_SUCCESS;
}

void rung_guard_counts_close(rung_cuda *cuda)
{
    if (cuda->guard_counts)
        cuda->driver->memory_free(rung_device_address(cuda->guard_counts));
}
