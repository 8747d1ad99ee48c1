/* The CUDA driver API as far as Rung's backend uses it, answered by the lens. Its device has host memory for memory,
 * and a launch has run to its end before it returns. Streams and events exist in name only; graphs are refused. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lens.h"

#include "cuda/device/reduce_args.h"

#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct lens_function {
    lens_module *module;
    void (*entry)(void);
    char symbol[96];
    int max_dynamic_bytes;
    unsigned launches;
} lens_function;

typedef struct lens_event {
    struct timespec at;
} lens_event;

enum { MOST_FUNCTIONS = 512, DEVICE_MEMORY_GIB = 4 };

static lens_function functions[MOST_FUNCTIONS];
static int function_count;
enum { MOST_CONTEXTS = 16 };
static _Thread_local CUcontext contexts[MOST_CONTEXTS]; /* of this thread: the last one is current */
static _Thread_local int context_count;
static int the_context, the_pool, the_stream;

/* ---- device and context ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    const char *named = getenv("RUNG_LENS_DRIVER");
    *version = named && atoi(named) > 0 ? atoi(named) : 13000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **name)
{
    *name = result == CUDA_SUCCESS                 ? "CUDA_SUCCESS"
            : result == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_NOT_FOUND       ? "CUDA_ERROR_NOT_FOUND"
            : result == CUDA_ERROR_NOT_SUPPORTED   ? "CUDA_ERROR_NOT_SUPPORTED"
            : result == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
            : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                   : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

static char reason[640] = "";

EXPORT CUresult cuGetErrorString(CUresult result, const char **text)
{
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "the lens has no memory for it"
            : reason[0]                        ? reason
                                               : "under the lens";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int index)
{
    *device = index;
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)bytes, "the lens (CUDA C on the CPU)");
    return CUDA_SUCCESS;
}

static int claimed_sms(void)
{
    const char *named = getenv("RUNG_LENS_SMS");
    int sms = lens_options.sms > 0 ? lens_options.sms : named ? atoi(named) : 0;
    return sms > 0 ? sms : 132;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = claimed_sms(); break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = LENS_MOST_SHARED_BYTES; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 60 << 20; break;
    default: *value = 0; break;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)DEVICE_MEMORY_GIB << 30;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&the_context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (context_count == MOST_CONTEXTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    contexts[context_count++] = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (context_count == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = contexts[--context_count];
    return CUDA_SUCCESS;
}

/* There is one device, so it has no peers. */
EXPORT CUresult cuDeviceCanAccessPeer(int *possible, CUdevice device, CUdevice peer)
{
    (void)device, (void)peer;
    *possible = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    (void)peer, (void)flags;
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = context_count ? contexts[context_count - 1] : NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return context_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

/* ---- kernels: the library asks for them by the name of their file and loads no image ---- */

typedef struct lens_library {
    char stem[96];
    lens_module *own; /* that an image named */
} lens_library;

CUresult rung_library_named(CUlibrary *library, const char *stem);

EXPORT CUresult rung_library_named(CUlibrary *library, const char *stem)
{
    lens_library *named = calloc(1, sizeof *named);
    if (!named)
        return CUDA_ERROR_OUT_OF_MEMORY;
    snprintf(named->stem, sizeof named->stem, "%s", stem);
    *library = (CUlibrary)named;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
                                  unsigned jits, CUlibraryOption *options, void **values, unsigned count)
{
    static const char named[] = "lens object ";
    (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
    /* Such a line is what a stand-in for nvcc writes: where the object lies that lens_cc.sh made. */
    if (strncmp(code, named, strlen(named)) == 0) {
        char path[600];
        const char *at = (const char *)code + strlen(named);
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\n"), at);
        lens_module *own = lens_module_open(path, path, reason, sizeof reason);
        if (!own || rung_library_named(library, own->stem) != CUDA_SUCCESS)
            return CUDA_ERROR_NOT_FOUND;
        ((lens_library *)*library)->own = own;
        return CUDA_SUCCESS;
    }
    snprintf(reason, sizeof reason, "the lens runs sources, not images");
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    free(library);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    const lens_library *l = (const lens_library *)library;
    const char *stem = l->stem;
    for (int i = 0; i < function_count; i++)
        if (strcmp(functions[i].symbol, name) == 0 && strcmp(functions[i].module->stem, stem) == 0) {
            *kernel = (CUkernel)&functions[i];
            return CUDA_SUCCESS;
        }
    lens_module *module = l->own ? l->own : lens_module_find(stem, reason, sizeof reason);
    if (!module)
        return CUDA_ERROR_NOT_FOUND;
    void *entry = dlsym(module->handle, name);
    if (!entry || function_count == MOST_FUNCTIONS) {
        snprintf(reason, sizeof reason, "%s has no symbol %s", module->path, name);
        return CUDA_ERROR_NOT_FOUND;
    }
    lens_function *f = &functions[function_count++];
    *f = (lens_function){.module = module, .max_dynamic_bytes = 48 * 1024};
    *(void **)&f->entry = entry;
    snprintf(f->symbol, sizeof f->symbol, "%s", name);
    *kernel = (CUkernel)f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    const lens_function *f = (const lens_function *)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? (int)lens_static_bytes(f->module, f->symbol) : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    lens_function *f = (lens_function *)function;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_SUCCESS;
    if (value + (int)lens_static_bytes(f->module, f->symbol) > LENS_MOST_SHARED_BYTES) {
        snprintf(reason, sizeof reason, "%s wants %d bytes of shared memory, a block has at most %d", f->symbol,
                 value + (int)lens_static_bytes(f->module, f->symbol), LENS_MOST_SHARED_BYTES);
        return CUDA_ERROR_INVALID_VALUE;
    }
    f->max_dynamic_bytes = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                            size_t shared)
{
    const lens_function *f = (const lens_function *)function;
    int by_threads = 2048 / (threads > 0 ? threads : 1);
    int by_shared = (int)((228u << 10) / (lens_static_bytes(f->module, f->symbol) + shared + 1024));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return CUDA_SUCCESS;
}

/* Returns how much of the parameter struct can be read. Kernels take what they need of it, and nothing says how large
 * it is. */
static size_t readable(const void *argument)
{
    uintptr_t at = (uintptr_t)argument, page = (uintptr_t)sysconf(_SC_PAGESIZE),
              end = at + LENS_MOST_ARGUMENT_BYTES / 2;
    for (uintptr_t next = (at + page) & ~(page - 1); next < end; next += page) {
        unsigned char resident;
        if (mincore((void *)next, 1, &resident) != 0)
            return next - at;
    }
    return end - at;
}

static unsigned cluster_of(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && config->attrs[i].value.clusterDim.x > 1)
            return config->attrs[i].value.clusterDim.x;
    return 1;
}

static bool overlaps(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return config->attrs[i].value.programmaticStreamSerializationAllowed != 0;
    return false;
}

/* Where findings fail, every other launch of a kernel has warps that run ahead of the others. Counts are as if each
 * came in turn. */
static lens_pace pace_of(const lens_function *f)
{
    const char *wish = getenv("RUNG_LENS_FINDINGS");
    if (!wish || strcmp(wish, "fail") != 0 || !(f->launches & 1))
        return LENS_IN_TURN;
    return f->launches & 2 ? LENS_LAST_AHEAD : LENS_FIRST_AHEAD;
}

/* RUNG_LENS_BLOCKS=KERNEL=XxYxZ,... gives launches of these kernels at most so many blocks along each axis, 0 for as
 * many as are asked for. A kernel that loops over what no grid holds is right with any grid. */
static void limit_blocks(const char *symbol, unsigned grid[3])
{
    const char *at = getenv("RUNG_LENS_BLOCKS");
    const size_t length = strlen(symbol);
    unsigned most[3];
    for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, symbol, length) == 0 && at[length] == '=' &&
            sscanf(at + length + 1, "%ux%ux%u", &most[0], &most[1], &most[2]) == 3)
            for (int i = 0; i < 3; i++)
                grid[i] = most[i] && most[i] < grid[i] ? most[i] : grid[i];
}

static CUresult check_launch(const CUlaunchConfig *config, const lens_function *f, unsigned cluster)
{
    unsigned shared = config->sharedMemBytes + lens_static_bytes(f->module, f->symbol);
    const unsigned bound = lens_bound(f->module, f->entry);
    if (config->blockDimX == 0 || config->blockDimX > LENS_BLOCK_THREADS || config->blockDimY != 1 ||
        config->blockDimZ != 1)
        snprintf(reason, sizeof reason, "%s: blocks of %u x %u x %u threads, the lens runs 1 to %d x 1 x 1", f->symbol,
                 config->blockDimX, config->blockDimY, config->blockDimZ, LENS_BLOCK_THREADS);
    else if (bound && config->blockDimX > bound)
        snprintf(
            reason, sizeof reason,
            "%s: blocks of %u threads, but its RUNG_KERNEL(%u), or __launch_bounds__, allows no more than %u: a GPU "
            "refuses such a launch",
            f->symbol, config->blockDimX, bound, bound);
    else if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || config->gridDimY > 65535 ||
             config->gridDimZ > 65535)
        snprintf(reason, sizeof reason, "%s: a grid of %u x %u x %u blocks is not possible", f->symbol,
                 config->gridDimX, config->gridDimY, config->gridDimZ);
    else if (shared > LENS_MOST_SHARED_BYTES || (int)config->sharedMemBytes > f->max_dynamic_bytes)
        snprintf(reason, sizeof reason, "%s: %u bytes of shared memory, but a block has at most %d here", f->symbol,
                 shared, f->max_dynamic_bytes + (int)lens_static_bytes(f->module, f->symbol));
    else if (config->gridDimX % cluster != 0 || (cluster > 1 && config->blockDimX % 32 != 0))
        snprintf(
            reason, sizeof reason,
            "%s: clusters of %u blocks: a grid of %u blocks along x holds no whole number of them, or blocks of %u "
            "threads no whole number of warps",
            f->symbol, cluster, config->gridDimX, config->blockDimX);
    else if (config->blockDimX * cluster > LENS_MOST_THREADS || cluster > LENS_MOST_BLOCKS)
        snprintf(reason, sizeof reason, "%s: clusters of %u blocks of %u threads are more than the lens holds",
                 f->symbol, cluster, config->blockDimX);
    else
        return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

/* With RUNG_LENS_FINDINGS=fail a launch in which something was found wrong fails; this sets the reason. */
static bool finding_fails(const char *symbol)
{
    const rung_lens_launch *launch = lens_findings_fail ? rung_lens_launch_at(rung_lens_launch_count() - 1) : NULL;
    if (!launch || launch->finding_count == 0)
        return false;
    snprintf(reason, sizeof reason, "%s: %s", symbol, launch->findings[0].text);
    return true;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)extra;
    lens_function *f = (lens_function *)function;
    unsigned cluster = cluster_of(config);
    CUresult checked = check_launch(config, f, cluster);
    if (checked != CUDA_SUCCESS)
        return checked;
    lens_launch_config launch = {.entry = f->entry,
                                 .module = f->module,
                                 .symbol = f->symbol,
                                 .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                 .threads = config->blockDimX,
                                 .dynamic_shared_bytes = config->sharedMemBytes,
                                 .argument = parameters[0],
                                 .argument_bytes = readable(parameters[0]),
                                 .cluster = cluster,
                                 .finite_poison = __builtin_popcount(f->launches) & 1,
                                 .pace = pace_of(f),
                                 .overlaps = overlaps(config)};
    limit_blocks(f->symbol, launch.grid);
    f->launches++;
    const bool stopped = lens_run(&launch) != 0, found = finding_fails(f->symbol);
    if (stopped && !found)
        snprintf(reason, sizeof reason, "%s was stopped by the lens; its findings, which rung lens prints, say why",
                 f->symbol);
    return stopped || found ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* ---- memory ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    *at = (CUdeviceptr)(uintptr_t)lens_memory_get(bytes);
    return *at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at)
{
    return lens_memory_put((void *)(uintptr_t)at) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemAlloc_v2(at, bytes);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool, (void)stream;
    return cuMemAlloc_v2(at, bytes);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    (void)stream;
    return cuMemFree_v2(at);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *all)
{
    *left = *all = (size_t)DEVICE_MEMORY_GIB << 30;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    *pool = (CUmemoryPool)&the_pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    (void)pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = lens_memory_get_host(bytes);
    return *at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *at)
{
    return lens_memory_put(at) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream stream)
{
    (void)to_context, (void)from_context;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
    (void)copy, (void)stream;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    (void)stream;
    const unsigned char *from =
        copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : (const void *)(uintptr_t)copy->srcDevice;
    unsigned char *to = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice;
    size_t from_pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes;
    size_t to_pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes;
    for (size_t row = 0; row < copy->Height; row++)
        memcpy(to + copy->dstXInBytes + (copy->dstY + row) * to_pitch,
               from + copy->srcXInBytes + (copy->srcY + row) * from_pitch, copy->WidthInBytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    unsigned *words = (unsigned *)(uintptr_t)at;
    for (size_t i = 0; i < count; i++)
        words[i] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    if (!lens_memory_owns((const void *)(uintptr_t)at))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(CUmemorytype *)value = CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr at)
{
    for (unsigned i = 0; i < count; i++)
        if (cuPointerGetAttribute(values[i], attributes[i], at) != CUDA_SUCCESS) {
            if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
                *(CUmemorytype *)values[i] = 0;
            else
                *(int *)values[i] = -1;
        }
    return CUDA_SUCCESS;
}

/* ---- streams, events, graphs ---- */

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    *stream = (CUstream)&the_stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    *id = (unsigned long long)(uintptr_t)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    *context = (CUcontext)&the_context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    const char *capturing = getenv("RUNG_LENS_CAPTURING");
    *status = capturing && *capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

static CUresult no_graphs(void)
{
    snprintf(reason, sizeof reason, "the lens has no graphs");
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream, (void)mode;
    return no_graphs();
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream, (void)graph;
    return no_graphs();
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **last, size_t *count)
{
    (void)stream, (void)status, (void)id, (void)graph, (void)last, (void)count;
    return no_graphs();
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags)
{
    (void)stream, (void)nodes, (void)count, (void)flags;
    return no_graphs();
}

EXPORT CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy, unsigned count, unsigned flags)
{
    (void)object, (void)data, (void)destroy, (void)count, (void)flags;
    return no_graphs();
}

EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
    (void)object, (void)count;
    return no_graphs();
}

EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    (void)graph, (void)object, (void)count, (void)flags;
    return no_graphs();
}

EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    (void)graph, (void)flags;
    return no_graphs();
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                        const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    (void)node, (void)graph, (void)before, (void)count, (void)parameters;
    return no_graphs();
}

EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                              const CUkernelNodeAttrValue *value)
{
    (void)node, (void)id, (void)value;
    return no_graphs();
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    (void)exec, (void)node, (void)parameters;
    return no_graphs();
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)exec, (void)graph, (void)flags;
    return no_graphs();
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)exec, (void)stream;
    return no_graphs();
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    (void)exec;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    (void)graph;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)calloc(1, sizeof(lens_event));
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &((lens_event *)event)->at);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    const struct timespec *a = &((lens_event *)from)->at, *b = &((lens_event *)to)->at;
    *ms = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) * 1e-6f;
    return CUDA_SUCCESS;
}

/* Returns whether the driver's rules for one dimension of a map hold. `stride` is in bytes and not asked of the
 * innermost one. A matrix that a batch shares has none that they allow. */
static bool dimension_fits(cuuint64_t size, cuuint64_t stride, cuuint32_t box, bool innermost)
{
    const cuuint64_t most_size = (cuuint64_t)1 << 32, stride_limit = (cuuint64_t)1 << 40;
    return size > 0 && size <= most_size && box > 0 && box <= 256 &&
           (innermost || (stride > 0 && stride < stride_limit && stride % 16 == 0));
}

/* A box's rows are whole units of 16 bytes, and no longer than what is swizzled: 32, 64 or 128 bytes. */
static bool rows_fit(const lens_map *map)
{
    const unsigned bytes = map->box[0] * map->element_bytes;
    return bytes % 16 == 0 && (!map->swizzle || bytes <= 16u << map->swizzle);
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                       const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                       const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                       CUtensorMapFloatOOBfill fill)
{
    (void)element_strides, (void)interleave, (void)promotion, (void)fill;
    static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    lens_map encoded = {.address = address, .rank = (uint8_t)rank, .swizzle = (uint8_t)swizzle};
    if (rank < 1 || rank > 5 || (unsigned)type >= sizeof sizes / sizeof sizes[0] || ((uintptr_t)address & 15))
        return CUDA_ERROR_INVALID_VALUE;
    encoded.element_bytes = (uint8_t)sizes[type];
    for (unsigned i = 0; i < rank; i++) {
        encoded.dims[i] = dims[i];
        encoded.box[i] = box[i];
        encoded.strides[i] = i == 0 ? (uint64_t)encoded.element_bytes : strides[i - 1];
        if (!dimension_fits(dims[i], encoded.strides[i], box[i], i == 0))
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!rows_fit(&encoded))
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    memcpy(map, &encoded, sizeof encoded < sizeof *map ? sizeof encoded : sizeof *map);
    return CUDA_SUCCESS;
}

/* ---- a kernel file of the user's own ---- */

static char own_why[640];

/* A variable may have the name that is asked for. */
static bool is_function(void *at)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return at && dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && (symbol->st_info & 0xf) == STT_FUNC;
}

static const char *run_own(const char *object, const char *symbol, CUlaunchConfig *config, void *argument)
{
    lens_module *module = lens_module_open(object, symbol, own_why, sizeof own_why);
    if (!module)
        return own_why;
    lens_function f = {.module = module,
                       .max_dynamic_bytes = LENS_MOST_SHARED_BYTES - (int)lens_static_bytes(module, symbol)};
    *(void **)&f.entry = dlsym(module->handle, symbol);
    if (!is_function(*(void **)&f.entry)) {
        snprintf(own_why, sizeof own_why, "it has no kernel called %s (RUNG_KERNEL(...) %s)", symbol, symbol);
        return own_why;
    }
    snprintf(f.symbol, sizeof f.symbol, "%s", symbol);
    config->blockDimY = config->blockDimZ = 1;
    void *parameters[] = {argument};
    return cuLaunchKernelEx(config, (CUfunction)&f, parameters, NULL) == CUDA_SUCCESS ? NULL : reason;
}

const char *rung_lens_gemm(const rung_lens_own *own)
{
    int parts = own->parts > 1 ? own->parts : 1;
    rung_args args = {.a = own->a,
                      .b = own->b,
                      .c = own->c,
                      .m = own->m,
                      .n = own->n,
                      .k = own->k,
                      .lda = own->lda,
                      .ldb = own->ldb,
                      .ldc = own->ldc,
                      .alpha = own->alpha,
                      .beta = own->beta,
                      .batch = 1,
                      .workspace = own->workspace,
                      .split_k = own->split_k > 0 ? own->split_k : parts};
    CUlaunchConfig config = {.gridDimX = (unsigned)((own->n + own->bn - 1) / own->bn),
                             .gridDimY = (unsigned)((own->m + own->bm - 1) / own->bm),
                             .gridDimZ = (unsigned)parts,
                             .blockDimX = (unsigned)own->threads,
                             .sharedMemBytes = (unsigned)own->shared_bytes};
    return run_own(own->object, own->symbol, &config, &args);
}

const char *rung_lens_sum(const rung_lens_own_sum *own)
{
    rung_reduce_args args = {
        .x = own->x, .out = own->out, .n = own->n, .partials = own->partials, .ticket = own->ticket};
    CUlaunchConfig config = {.gridDimX = (unsigned)own->blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = (unsigned)own->threads,
                             .sharedMemBytes = (unsigned)own->shared_bytes};
    return run_own(own->object, own->symbol, &config, &args);
}
