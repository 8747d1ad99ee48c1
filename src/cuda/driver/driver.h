/* The CUDA driver API, opened at run time: nothing of CUDA is linked. Only the calls that Rung uses. */
#ifndef RUNG_CUDA_DRIVER_H
#define RUNG_CUDA_DRIVER_H

#include "core/status.h"

#include <cuda.h>

/* X(name in the table, symbol in libcuda, signature) */
#define RUNG_DRIVER_CALLS(X)                                                                                           \
    X(init, "cuInit", (unsigned))                                                                                      \
    X(driver_version, "cuDriverGetVersion", (int *))                                                                   \
    X(error_name, "cuGetErrorName", (CUresult, const char **))                                                         \
    X(error_string, "cuGetErrorString", (CUresult, const char **))                                                     \
    X(device_count, "cuDeviceGetCount", (int *))                                                                       \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                                    \
    X(device_name, "cuDeviceGetName", (char *, int, CUdevice))                                                         \
    X(device_attribute, "cuDeviceGetAttribute", (int *, CUdevice_attribute, CUdevice))                                 \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *, CUdevice))                                                      \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                             \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                                     \
    X(context_push, "cuCtxPushCurrent_v2", (CUcontext))                                                                \
    X(context_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                                \
    X(peer_possible, "cuDeviceCanAccessPeer", (int *, CUdevice, CUdevice))                                             \
    X(peer_enable, "cuCtxEnablePeerAccess", (CUcontext, unsigned))                                                     \
    X(context_current, "cuCtxGetCurrent", (CUcontext *))                                                               \
    X(context_device, "cuCtxGetDevice", (CUdevice *))                                                                  \
    X(context_synchronize, "cuCtxSynchronize", (void))                                                                 \
    X(library_load, "cuLibraryLoadData",                                                                               \
      (CUlibrary *, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *, void **, unsigned))            \
    X(library_kernel, "cuLibraryGetKernel", (CUkernel *, CUlibrary, const char *))                                     \
    X(library_unload, "cuLibraryUnload", (CUlibrary))                                                                  \
    X(kernel_function, "cuKernelGetFunction", (CUfunction *, CUkernel))                                                \
    X(function_attribute, "cuFuncGetAttribute", (int *, CUfunction_attribute, CUfunction))                             \
    X(function_set, "cuFuncSetAttribute", (CUfunction, CUfunction_attribute, int))                                     \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, CUfunction, int, size_t))                      \
    X(launch, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **))                              \
    X(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                          \
    X(memory_free, "cuMemFree_v2", (CUdeviceptr))                                                                      \
    X(memory_alloc_async, "cuMemAllocAsync", (CUdeviceptr *, size_t, CUstream))                                        \
    X(memory_free_async, "cuMemFreeAsync", (CUdeviceptr, CUstream))                                                    \
    X(memory_info, "cuMemGetInfo_v2", (size_t *, size_t *))                                                            \
    X(memory_alloc_pool, "cuMemAllocFromPoolAsync", (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                   \
    X(pool_create, "cuMemPoolCreate", (CUmemoryPool *, const CUmemPoolProps *))                                        \
    X(pool_destroy, "cuMemPoolDestroy", (CUmemoryPool))                                                                \
    X(pool_set, "cuMemPoolSetAttribute", (CUmemoryPool, CUmemPool_attribute, void *))                                  \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                                       \
    X(host_free, "cuMemFreeHost", (void *))                                                                            \
    X(copy_to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                           \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))                                   \
    X(copy_on_device, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                            \
    X(copy_peer, "cuMemcpyPeerAsync", (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))              \
    X(copy_peer_3d, "cuMemcpy3DPeerAsync", (const CUDA_MEMCPY3D_PEER *, CUstream))                                     \
    X(copy_2d, "cuMemcpy2DAsync_v2", (const CUDA_MEMCPY2D *, CUstream))                                                \
    X(set_32, "cuMemsetD32Async", (CUdeviceptr, unsigned, size_t, CUstream))                                           \
    X(pointer_attribute, "cuPointerGetAttribute", (void *, CUpointer_attribute, CUdeviceptr))                          \
    X(pointer_attributes, "cuPointerGetAttributes", (unsigned, CUpointer_attribute *, void **, CUdeviceptr))           \
    X(stream_create, "cuStreamCreateWithPriority", (CUstream *, unsigned, int))                                        \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                                \
    X(stream_synchronize, "cuStreamSynchronize", (CUstream))                                                           \
    X(stream_query, "cuStreamQuery", (CUstream))                                                                       \
    X(stream_id, "cuStreamGetId", (CUstream, unsigned long long *))                                                    \
    X(stream_priority, "cuStreamGetPriority", (CUstream, int *))                                                       \
    X(stream_wait, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                                                 \
    X(stream_context, "cuStreamGetCtx", (CUstream, CUcontext *))                                                       \
    X(stream_capturing, "cuStreamIsCapturing", (CUstream, CUstreamCaptureStatus *))                                    \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode *))                                      \
    X(capture_begin, "cuStreamBeginCapture_v2", (CUstream, CUstreamCaptureMode))                                       \
    X(capture_end, "cuStreamEndCapture", (CUstream, CUgraph *))                                                        \
    X(capture_info, "cuStreamGetCaptureInfo_v2",                                                                       \
      (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *))                    \
    X(capture_order, "cuStreamUpdateCaptureDependencies", (CUstream, CUgraphNode *, size_t, unsigned))                 \
    X(user_object_create, "cuUserObjectCreate", (CUuserObject *, void *, CUhostFn, unsigned, unsigned))                \
    X(user_object_release, "cuUserObjectRelease", (CUuserObject, unsigned))                                            \
    X(graph_retain, "cuGraphRetainUserObject", (CUgraph, CUuserObject, unsigned, unsigned))                            \
    X(graph_create, "cuGraphCreate", (CUgraph *, unsigned))                                                            \
    X(graph_add_kernel, "cuGraphAddKernelNode_v2",                                                                     \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *))                          \
    X(graph_kernel_set, "cuGraphKernelNodeSetAttribute",                                                               \
      (CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue *))                                                \
    X(graph_kernel_renew, "cuGraphExecKernelNodeSetParams_v2",                                                         \
      (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *))                                                     \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long))                  \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                                          \
    X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec))                                                         \
    X(graph_destroy, "cuGraphDestroy", (CUgraph))                                                                      \
    X(event_create, "cuEventCreate", (CUevent *, unsigned))                                                            \
    X(event_destroy, "cuEventDestroy_v2", (CUevent))                                                                   \
    X(event_record, "cuEventRecord", (CUevent, CUstream))                                                              \
    X(event_synchronize, "cuEventSynchronize", (CUevent))                                                              \
    X(event_query, "cuEventQuery", (CUevent))                                                                          \
    X(event_elapsed, "cuEventElapsedTime", (float *, CUevent, CUevent))                                                \
    X(tensor_map, "cuTensorMapEncodeTiled",                                                                            \
      (CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,                 \
       const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,      \
       CUtensorMapFloatOOBfill))

typedef struct rung_driver {
#define X(name, symbol, signature) CUresult(CUDAAPI *name) signature;
    RUNG_DRIVER_CALLS(X)
#undef X
    /* libcuda has no such function. A stand-in that has it, like the lens, finds kernel files by name and needs no
     * images; NULL: images are needed. */
    CUresult(CUDAAPI *library_named)(CUlibrary *library, const char *stem);
} rung_driver;

/* Opens libcuda once for the process and initialises it; any thread. RUNG_LIBCUDA names another file (tests). A forked
 * process whose parent has done so has no driver. */
rung_status rung_driver_open(const rung_driver **driver);

/* Makes a status of a driver's error, with a sentence such as "cuMemAlloc failed:
 * CUDA_ERROR_OUT_OF_MEMORY (out of memory)". */
rung_status rung_driver_fail(const rung_driver *driver, CUresult result, const char *call);

/* Puts the thread into relaxed mode, for work that has to do with no graph; what it returns puts the thread back.
 * Without that, a thread that allocates, loads or waits ends another thread's recording of a graph in global mode. It
 * costs two calls of the driver, so it does not stand around launches. */
typedef struct rung_thread_mode {
    int changed;
    CUstreamCaptureMode before;
} rung_thread_mode;

rung_thread_mode rung_driver_relax(const rung_driver *driver);
void rung_driver_put_back(const rung_driver *driver, rung_thread_mode mode);

/* Clears device memory that nothing queued uses, and waits for that; the thread is in relaxed mode (zeroed.c). */
CUresult rung_driver_clear(const rung_driver *driver, CUdeviceptr at, size_t bytes);
/* Allocates device memory that is zero. Where that fails, *call names the driver's call that did. */
CUresult rung_driver_alloc_zeros(const rung_driver *driver, CUdeviceptr *at, size_t bytes, const char **call);

/* Says where device memory lies that the host knows by a pointer. */
static inline CUdeviceptr rung_device_address(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

/* Describes a launch of blocks of so many threads along x. Attributes are the caller's. */
static inline CUlaunchConfig rung_launch_config(CUstream stream, const unsigned grid[3], unsigned threads,
                                                unsigned shared_bytes)
{
    return (CUlaunchConfig){.gridDimX = grid[0],
                            .gridDimY = grid[1],
                            .gridDimZ = grid[2],
                            .blockDimX = threads,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .sharedMemBytes = shared_bytes,
                            .hStream = stream};
}

/* CU_TRY(d, launch(...)) calls d->launch and forwards a failure with the driver's name of the call. */
#define CU_TRY(driver, call)                                                                                           \
    do {                                                                                                               \
        CUresult result_ = (driver)->call;                                                                             \
        if (result_ != CUDA_SUCCESS)                                                                                   \
            return rung_driver_fail((driver), result_, #call);                                                         \
    } while (0)
#define CU_TRY_OUT(driver, call)                                                                                       \
    do {                                                                                                               \
        CUresult result_ = (driver)->call;                                                                             \
        if (result_ != CUDA_SUCCESS) {                                                                                 \
            status = rung_driver_fail((driver), result_, #call);                                                       \
            goto out;                                                                                                  \
        }                                                                                                              \
    } while (0)

#endif
