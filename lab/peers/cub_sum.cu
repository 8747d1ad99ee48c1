/* CUB's DeviceReduce::Sum behind a C call, as the peer of the reduce ladder. CUB is a C++ template library, so this one
 * file is C++; it is built on request (target rung_lab_cub) into a library of its own that `rung reduce` opens. */
#include <cub/device/device_reduce.cuh>

#include <cstddef>
#include <cstdint>

/* With workspace NULL only *bytes is set. 0: success, else a cudaError_t. */
extern "C" int rung_cub_sum(void *workspace, size_t *bytes, const float *x, float *result, int64_t n, void *stream)
{
    return cub::DeviceReduce::Sum(workspace, *bytes, x, result, n, static_cast<cudaStream_t>(stream));
}
