/* Memory that lives longer than what is queued, cleared now. It is cleared on a stream of its own: the caller's may be
 * recording a graph, which would then clear it at every launch. */
#include "cuda/driver/driver.h"

/* Returns in *call which of the driver's calls failed. */
static CUresult clear(const rung_driver *d, CUdeviceptr at, size_t bytes, const char **call)
{
    CUstream stream;
    *call = "cuStreamCreateWithPriority";
    CUresult result = d->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        return result;
    *call = "cuMemsetD32Async";
    result = d->set_32(at, 0, bytes / sizeof(uint32_t), stream);
    if (result == CUDA_SUCCESS) {
        *call = "cuStreamSynchronize";
        result = d->stream_synchronize(stream);
    }
    d->stream_destroy(stream);
    return result;
}

CUresult rung_driver_clear(const rung_driver *d, CUdeviceptr at, size_t bytes)
{
    const char *call;
    return clear(d, at, bytes, &call);
}

CUresult rung_driver_alloc_zeros(const rung_driver *d, CUdeviceptr *at, size_t bytes, const char **call)
{
    *call = "cuMemAlloc";
    CUresult result = d->memory_alloc(at, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = clear(d, *at, bytes, call);
    if (result != CUDA_SUCCESS)
        d->memory_free(*at);
    return result;
}
