/* Memory that lives longer than what is queued, cleared now. It is cleared on a stream of its own: the caller's may be
 * recording a graph, which would then clear it at every launch. */
#include "cuda/driver/driver.h"

CUresult rung_driver_clear(const rung_driver *d, CUdeviceptr at, size_t bytes)
{
    CUstream stream;
    CUresult result = d->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = d->set_32(at, 0, bytes / sizeof(uint32_t), stream);
    if (result == CUDA_SUCCESS)
        result = d->stream_synchronize(stream);
    d->stream_destroy(stream);
    return result;
}

CUresult rung_driver_alloc_zeros(const rung_driver *d, CUdeviceptr *at, size_t bytes)
{
    CUresult result = d->memory_alloc(at, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = rung_driver_clear(d, *at, bytes);
    if (result != CUDA_SUCCESS)
        d->memory_free(*at);
    return result;
}
