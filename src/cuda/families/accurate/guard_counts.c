/* The guard's counters: three words of device memory that live as long as the context. */
#include "cuda/families/accurate/accurate.h"

/* Clears the new counters on a stream of its own: the context's may be recording a graph, which would then clear them
 * at every launch. */
static rung_status make_counters(rung_cuda *cuda, CUdeviceptr *at)
{
    const rung_driver *d = cuda->driver;
    CUstream stream;
    CU_TRY(d, stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    CUresult result = d->memory_alloc(at, 3 * sizeof(unsigned long long));
    if (result == CUDA_SUCCESS)
        result = d->set_32(*at, 0, 6, stream);
    if (result == CUDA_SUCCESS)
        result = d->stream_synchronize(stream);
    d->stream_destroy(stream);
    if (result != CUDA_SUCCESS && *at)
        d->memory_free(*at);
    return result == CUDA_SUCCESS ? RUNG_SUCCESS : rung_driver_fail(d, result, "cuMemAlloc");
}

rung_status rung_guard_counts_at(rung_cuda *cuda, unsigned long long **counts)
{
    if (!cuda->guard_counts) {
        CUdeviceptr at = 0;
        rung_thread_mode mode = rung_driver_relax(cuda->driver);
        rung_status status = make_counters(cuda, &at);
        rung_driver_put_back(cuda->driver, mode);
        RUNG_TRY(status);
        cuda->guard_counts = (void *)(uintptr_t)at;
    }
    *counts = cuda->guard_counts;
    return RUNG_SUCCESS;
}

rung_status rung_guard_counts_read(rung_cuda *cuda, rung_guard_counts *counts)
{
    unsigned long long values[3] = {0, 0, 0};
    if (cuda->guard_counts) {
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
