/* The lens keeps the driver API's contract where the library relies on it: what a driver refuses it refuses, with the
 * same result. usage: lens_driver LIBRARY, which is the lens's or a real libcuda */
#include "cuda/device/args.h"
#include "cuda/device/turn.h"

#include <cuda.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static int failed, asked;

static void *function(const char *name)
{
    void *f = dlsym(library, name);
    if (!f) {
        printf("FAILED: there is no %s\n", name);
        exit(1);
    }
    return f;
}

#define CALL(name, ...) ((__typeof__(&name))(uintptr_t)function(#name))(__VA_ARGS__)

static void expect(CUresult got, CUresult want, const char *what)
{
    asked++;
    if (got == want)
        return;
    failed++;
    printf("FAILED: %s: result %d, not %d\n", what, (int)got, (int)want);
}

static void devices(void)
{
    CUdevice device = 0;
    int count = 0;
    expect(CALL(cuDeviceGetCount, &count), CUDA_SUCCESS, "the number of devices");
    for (int i = -1; i <= count; i++)
        expect(CALL(cuDeviceGet, &device, i), i >= 0 && i < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE,
               "a device");
}

/* A thread has no context until one is made current there; asking for it is no failure, for its device it is. */
static void *contexts_of_a_thread(void *context)
{
    CUcontext now = context;
    CUdevice device = 0;
    expect(CALL(cuCtxGetCurrent, &now), CUDA_SUCCESS, "a new thread's context");
    expect(now ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, CUDA_SUCCESS, "is none");
    expect(CALL(cuCtxGetDevice, &device), CUDA_ERROR_INVALID_CONTEXT, "the device of none");
    expect(CALL(cuCtxPushCurrent_v2, context), CUDA_SUCCESS, "a context for it");
    expect(CALL(cuCtxGetCurrent, &now), CUDA_SUCCESS, "the thread's context");
    expect(now == context ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, "is that one");
    expect(CALL(cuCtxGetDevice, &device), CUDA_SUCCESS, "its device");
    expect(CALL(cuCtxPushCurrent_v2, NULL), CUDA_SUCCESS, "none, before it");
    expect(CALL(cuCtxPopCurrent_v2, &now), CUDA_SUCCESS, "which is taken away");
    expect(now ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, CUDA_SUCCESS, "and is none");
    expect(CALL(cuCtxPopCurrent_v2, &now), CUDA_SUCCESS, "the one behind it is taken away");
    expect(now == context ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, "and told");
    expect(CALL(cuCtxGetCurrent, &now), CUDA_SUCCESS, "the context after that");
    CUcontext past = NULL;
    expect(CALL(cuCtxPopCurrent_v2, &past), CUDA_ERROR_INVALID_CONTEXT, "no context is left to take away");
    expect(now ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, CUDA_SUCCESS, "is none again");
    return NULL;
}

static void threads(CUcontext context)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, contexts_of_a_thread, context) != 0)
        exit(1);
    pthread_join(thread, NULL);
}

/* Each result has a name and a text. */
static void errors(void)
{
    static const CUresult results[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, 719};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const char *name = NULL, *text = NULL;
        expect(CALL(cuGetErrorName, results[i], &name), CUDA_SUCCESS, "an error's name");
        expect(CALL(cuGetErrorString, results[i], &text), CUDA_SUCCESS, "an error's text");
        expect(name && name[0] && text && text[0] ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, "both are there");
    }
}

static void memory(void)
{
    size_t left = 0, all = 0, total = 0;
    unsigned kind = 0;
    CUdeviceptr at = 0;
    float here = 0.0f;
    expect(CALL(cuMemGetInfo_v2, &left, &all), CUDA_SUCCESS, "memory");
    expect(CALL(cuDeviceTotalMem_v2, &total, 0), CUDA_SUCCESS, "all memory");
    expect(left <= all && all <= total && all >= total / 2 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS,
           "sizes of memory");
    expect(CALL(cuMemAlloc_v2, &at, 1000), CUDA_SUCCESS, "1000 bytes");
    const CUpointer_attribute type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    expect(CALL(cuPointerGetAttribute, &kind, type, at + 999), CUDA_SUCCESS, "the type of its last byte");
    expect(kind == CU_MEMORYTYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, "memory of a device");
    expect(CALL(cuPointerGetAttribute, &kind, type, (CUdeviceptr)(uintptr_t)&here), CUDA_ERROR_INVALID_VALUE,
           "memory of the host");
    expect(CALL(cuMemFree_v2, at + 4), CUDA_ERROR_INVALID_VALUE, "freed from its middle");
    expect(CALL(cuMemFree_v2, at), CUDA_SUCCESS, "freed");
    expect(CALL(cuMemFree_v2, at), CUDA_ERROR_INVALID_VALUE, "freed twice");
    expect(CALL(cuPointerGetAttribute, &kind, type, at), CUDA_ERROR_INVALID_VALUE, "the type of what is freed");
}

typedef CUresult library_named(CUlibrary *, const char *);

static void open_and_close_each(void)
{
    library_named *named = (library_named *)(uintptr_t)dlsym(library, "rung_library_named");
    CUdeviceptr at = 0;
    CUstream stream;
    CUevent event;
    CUlibrary kernels;
    CUmemoryPool pool;
    CUmemPoolProps properties;
    void *host;
    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    expect(CALL(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS, "a stream");
    expect(CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS, "an event");
    expect(CALL(cuEventRecord, event, stream), CUDA_SUCCESS, "it is recorded");
    expect(CALL(cuMemAlloc_v2, &at, 1000), CUDA_SUCCESS, "memory");
    expect(CALL(cuMemFree_v2, at), CUDA_SUCCESS, "it is freed");
    expect(CALL(cuMemPoolCreate, &pool, &properties), CUDA_SUCCESS, "a pool");
    expect(CALL(cuMemAllocFromPoolAsync, &at, 1000, pool, stream), CUDA_SUCCESS, "memory of it");
    expect(CALL(cuMemFreeAsync, at, stream), CUDA_SUCCESS, "that is freed in turn");
    expect(CALL(cuMemPoolDestroy, pool), CUDA_SUCCESS, "the pool ends");
    expect(CALL(cuMemHostAlloc, &host, 1000, 0), CUDA_SUCCESS, "the host's memory");
    expect(CALL(cuMemFreeHost, host), CUDA_SUCCESS, "that is freed, too");
    expect(CALL(cuEventDestroy_v2, event), CUDA_SUCCESS, "the event ends");
    expect(CALL(cuStreamDestroy_v2, stream), CUDA_SUCCESS, "the stream ends");
    if (named) {
        expect(named(&kernels, "l01_naive"), CUDA_SUCCESS, "a kernel's file");
        expect(CALL(cuLibraryUnload, kernels), CUDA_SUCCESS, "it is closed");
    }
}

/* What is opened and closed takes no memory of the host in the end. */
static void nothing_is_kept(void)
{
    enum { TIMES = 1000, LEAST = 32 /* bytes that a piece of memory takes */ };
    open_and_close_each();
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < TIMES; i++)
        open_and_close_each();
    const size_t after = mallinfo2().uordblks;
    expect(after < before + TIMES * LEAST / 2 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS,
           "the host's memory is given back");
    void *host = NULL;
    expect(CALL(cuMemHostAlloc, &host, SIZE_MAX / 2, 0), CUDA_ERROR_OUT_OF_MEMORY, "more than there is");
}

/* Finds a kernel by its file. Returns 0 of a real driver, which has none of its own. */
static int find_kernel(const char *name, CUlibrary *kernels, CUfunction *f)
{
    library_named *named = (library_named *)(uintptr_t)dlsym(library, "rung_library_named");
    CUkernel kernel;
    if (!named)
        return 0;
    expect(named(kernels, name), CUDA_SUCCESS, "a kernel's file");
    expect(CALL(cuLibraryGetKernel, &kernel, *kernels, name), CUDA_SUCCESS, "a kernel");
    expect(CALL(cuKernelGetFunction, f, kernel), CUDA_SUCCESS, "its function");
    return 1;
}

/* Launches of the first rung, of a product without elements. */
static void launches(void)
{
    static uint64_t nothing[512];
    void *parameters[] = {nothing};
    CUlibrary kernels;
    CUkernel kernel;
    CUfunction f;
    if (!find_kernel("l01_naive", &kernels, &f))
        return;
    expect(CALL(cuLibraryGetKernel, &kernel, kernels, "no_such_kernel"), CUDA_ERROR_NOT_FOUND,
           "a kernel that is not there");
    static const struct {
        unsigned grid[3], block[3], shared;
        int set; /* shared memory that it is allowed to have before; 0: nothing is set */
        CUresult want;
        const char *what;
    } tries[] = {
        {{1, 1, 1}, {32, 1, 1}, 0, 0, CUDA_SUCCESS, "a block"},
        {{3, 65535, 1}, {1, 1, 1}, 0, 0, CUDA_SUCCESS, "as many blocks as there may be along y"},
        {{1, 65536, 1}, {32, 1, 1}, 0, 0, CUDA_ERROR_INVALID_VALUE, "one more along y"},
        {{1, 1, 65536}, {32, 1, 1}, 0, 0, CUDA_ERROR_INVALID_VALUE, "one more along z"},
        {{0, 1, 1}, {32, 1, 1}, 0, 0, CUDA_ERROR_INVALID_VALUE, "no block"},
        {{1, 1, 1}, {0, 1, 1}, 0, 0, CUDA_ERROR_INVALID_VALUE, "no thread"},
        {{1, 1, 1}, {1024, 1, 1}, 0, 0, CUDA_SUCCESS, "1024 threads"},
        {{1, 1, 1}, {1025, 1, 1}, 0, 0, CUDA_ERROR_INVALID_VALUE, "1025 threads"},
        {{1, 1, 1}, {32, 1, 1}, 48 * 1024, 0, CUDA_SUCCESS, "48 KiB of shared memory"},
        {{1, 1, 1}, {32, 1, 1}, 48 * 1024 + 1, 0, CUDA_ERROR_INVALID_VALUE, "more than 48 KiB, not asked for"},
        {{1, 1, 1}, {32, 1, 1}, 64 * 1024, 64 * 1024, CUDA_SUCCESS, "64 KiB, asked for"},
        {{1, 1, 1}, {32, 1, 1}, 64 * 1024 + 4, 64 * 1024, CUDA_ERROR_INVALID_VALUE, "more than was asked for"},
        {{1, 1, 1}, {32, 1, 1}, 227 * 1024, 227 * 1024, CUDA_SUCCESS, "all shared memory"},
        {{1, 1, 1}, {32, 1, 1}, 227 * 1024 + 4, 227 * 1024, CUDA_ERROR_INVALID_VALUE, "more than all shared memory"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const unsigned *g = tries[i].grid, *b = tries[i].block;
        if (tries[i].set)
            expect(CALL(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, tries[i].set),
                   CUDA_SUCCESS, "asked for");
        CUlaunchConfig config = {.gridDimX = g[0],
                                 .gridDimY = g[1],
                                 .gridDimZ = g[2],
                                 .blockDimX = b[0],
                                 .blockDimY = b[1],
                                 .blockDimZ = b[2],
                                 .sharedMemBytes = tries[i].shared};
        expect(CALL(cuLaunchKernelEx, &config, f, parameters, NULL), tries[i].want, tries[i].what);
    }
    expect(CALL(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 * 1024),
           CUDA_ERROR_INVALID_VALUE, "more shared memory than there is");
    /* What a kernel declares itself counts, too. */
    CUfunction tile;
    int own = 0;
    find_kernel("l04_shared_16x16", &kernels, &tile);
    expect(CALL(cuFuncGetAttribute, &own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, tile), CUDA_SUCCESS, "its tiles");
    expect(own == 2 * 16 * 16 * 4 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, "the bytes of its tiles");
    for (int more = 0; more < 8; more += 4)
        expect(CALL(cuFuncSetAttribute, tile, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 - own + more),
               more ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, "all that its tiles leave");
    static rung_args lost; /* a product whose A is nowhere */
    lost.m = lost.n = lost.k = lost.lda = lost.ldb = lost.ldc = 1;
    lost.a = (const float *)(uintptr_t)0x1000;
    void *its[] = {&lost};
    CUlaunchConfig one = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 256, .blockDimY = 1, .blockDimZ = 1};
    for (int i = 0; i < 2; i++) {
        expect(CALL(cuLaunchKernelEx, &one, f, its, NULL), CUDA_ERROR_ILLEGAL_ADDRESS, "memory that is nowhere");
        expect(CALL(cuLaunchKernelEx, &one, f, parameters, NULL), CUDA_SUCCESS,
               "the launch after one that was stopped");
    }
}

/* What is told of a refusal is of this one, not of one before. */
static void reasons(void)
{
    static uint64_t nothing[512];
    void *parameters[] = {nothing};
    CUlibrary kernels;
    CUfunction f;
    const char *text = "";
    if (!find_kernel("l04_shared_16x16", &kernels, &f))
        return;
    CUlaunchAttribute pairs = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                               .value.clusterDim = {.x = 2, .y = 1, .z = 1}};
    static const struct {
        unsigned blocks, threads, attributes;
        const char *text; /* NULL: it is launched */
    } tries[] = {{1, 256, 0, NULL},
                 {1, 257, 0, "blocks of 257 threads, but its RUNG_KERNEL(256), or __launch_bounds__, allows no more"},
                 {2, 64, 1, NULL},
                 {3, 64, 1,
                  "l04_shared_16x16: clusters of 2 blocks: a grid of 3 blocks along x holds no whole number of them, "
                  "or blocks of 64 "
                  "threads no whole number of warps"},
                 {2, 48, 1, "or blocks of 48 threads no whole number of warps"}};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        CUlaunchConfig config = {.gridDimX = tries[i].blocks,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = tries[i].threads,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &pairs,
                                 .numAttrs = tries[i].attributes};
        expect(CALL(cuLaunchKernelEx, &config, f, parameters, NULL),
               tries[i].text ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, "a launch");
        expect(CALL(cuGetErrorString, CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS, "why");
        expect(!tries[i].text || strstr(text, tries[i].text) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, text);
    }
    expect(CALL(cuGetErrorString, CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS, "why there is no memory");
    expect(strcmp(text, "the lens has no memory for it") == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, text);
}

/* A kernel that does not wait for the one before it may not overlap it: the first rung uses memory at once. */
static void overlapping(void)
{
    library_named *named = (library_named *)(uintptr_t)dlsym(library, "rung_library_named");
    CUlibrary kernels;
    CUkernel kernel;
    CUfunction f;
    CUdeviceptr at = 0;
    if (!named)
        return;
    expect(named(&kernels, "l01_naive"), CUDA_SUCCESS, "a kernel's file");
    expect(CALL(cuLibraryGetKernel, &kernel, kernels, "l01_naive"), CUDA_SUCCESS, "a kernel");
    expect(CALL(cuKernelGetFunction, &f, kernel), CUDA_SUCCESS, "its function");
    expect(CALL(cuMemAlloc_v2, &at, 3 * sizeof(float)), CUDA_SUCCESS, "three elements");
    float *memory = (float *)(uintptr_t)at;
    union {
        rung_args args;
        uint64_t room[512];
    } g = {.args = {.a = memory,
                    .b = memory + 1,
                    .c = memory + 2,
                    .m = 1,
                    .n = 1,
                    .k = 1,
                    .lda = 1,
                    .ldb = 1,
                    .ldc = 1,
                    .alpha = 1.0f,
                    .batch = 1,
                    .split_k = 1}};
    void *parameters[] = {&g};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    setenv("RUNG_LENS_FINDINGS", "fail", 1);
    for (int i = 0; i < 3; i++) {
        memory[0] = memory[1] = 1.0f;
        attribute.value.programmaticStreamSerializationAllowed = i == 2;
        CUlaunchConfig config = {.gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &attribute,
                                 .numAttrs = i > 0};
        expect(CALL(cuLaunchKernelEx, &config, f, parameters, NULL), i == 2 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS,
               i == 2 ? "one that may overlap" : "one that may not");
    }
    unsetenv("RUNG_LENS_FINDINGS");
    expect(CALL(cuMemFree_v2, at), CUDA_SUCCESS, "freed");
}

/* Each rule of tensor maps, at its edge and one beyond. */
static void tensor_maps(void)
{
    static const struct {
        cuuint32_t rank, box; /* in the outermost dimension */
        cuuint64_t size, stride;
        int type, bytes_off;
        CUtensorMapSwizzle swizzle;
        CUresult wanted;
        const char *what;
    } rules[] = {
        {2, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "a map"},
        {1, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "a map of one dimension"},
        {5, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "a map of five dimensions"},
        {0, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "a map of no dimension"},
        {6, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "a map of six dimensions"},
        {2, 256, 512, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "the largest box"},
        {2, 257, 512, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "a larger box"},
        {2, 0, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "an empty box"},
        {2, 16, (cuuint64_t)1 << 32, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "the largest size"},
        {2, 16, ((cuuint64_t)1 << 32) + 1, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE,
         "a larger size"},
        {2, 16, 0, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "no size"},
        {2, 16, 64, ((cuuint64_t)1 << 40) - 16, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "the largest stride"},
        {2, 16, 64, (cuuint64_t)1 << 40, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "a larger stride"},
        {2, 16, 64, 0, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "no stride"},
        {2, 16, 64, 264, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "a stride of no whole 16 bytes"},
        {2, 16, 64, 256, 12, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "the last type"},
        {2, 16, 64, 256, 13, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "no type"},
        {2, 16, 64, 256, 7, 8, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "an address of no whole 16 bytes"},
        {1, 4, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS, "rows of 16 bytes"},
        {1, 6, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_ERROR_INVALID_VALUE, "rows of no whole 16 bytes"},
        {1, 8, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_32B, CUDA_SUCCESS, "rows of 32 bytes, swizzled"},
        {1, 12, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_32B, CUDA_ERROR_INVALID_VALUE, "longer ones"},
        {1, 16, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_64B, CUDA_SUCCESS, "rows of 64 bytes, swizzled"},
        {1, 20, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_64B, CUDA_ERROR_INVALID_VALUE, "longer ones"},
        {1, 32, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_128B, CUDA_SUCCESS, "rows of 128 bytes, swizzled"},
        {1, 36, 64, 256, 7, 0, CU_TENSOR_MAP_SWIZZLE_128B, CUDA_ERROR_INVALID_VALUE, "longer ones"},
    };
    static _Alignas(64) float memory[64];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        CUtensorMap map;
        cuuint64_t sizes[6], strides[6];
        cuuint32_t boxes[6], apart[6];
        for (int d = 0; d < 6; d++)
            sizes[d] = 64, strides[d] = 256, boxes[d] = 16, apart[d] = 1;
        const cuuint32_t last = rules[i].rank ? rules[i].rank - 1 : 0;
        sizes[last] = rules[i].size, boxes[last] = rules[i].box;
        strides[last ? last - 1 : 0] = rules[i].stride;
        expect(CALL(cuTensorMapEncodeTiled, &map, (CUtensorMapDataType)rules[i].type, rules[i].rank,
                    (char *)memory + rules[i].bytes_off, sizes, strides, boxes, apart, CU_TENSOR_MAP_INTERLEAVE_NONE,
                    rules[i].swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               rules[i].wanted, rules[i].what);
    }
}

/* A block that turns several tiles, as with more than 65535 of them along k, waits for each before it begins the next.
 */
static void turns(const char *symbol, const int classed, const int aligned, unsigned blocks)
{
    enum { K = 4 * RUNG_TURN_TILE - 3, MN = 70, LD_FROM = 256, LD_TO = 72, CLASS_ROWS = (K + 3) / 4 };
    static const int64_t rows = 4 * CLASS_ROWS;
    CUlibrary kernels;
    CUkernel kernel;
    CUfunction f;
    CUdeviceptr from, to;
    library_named *named = (library_named *)(uintptr_t)dlsym(library, "rung_library_named");
    if (!named)
        return;
    expect(named(&kernels, "turn"), CUDA_SUCCESS, "the file of kernels that turn");
    expect(CALL(cuLibraryGetKernel, &kernel, kernels, symbol), CUDA_SUCCESS, symbol);
    expect(CALL(cuKernelGetFunction, &f, kernel), CUDA_SUCCESS, "its function");
    expect(CALL(cuMemAlloc_v2, &from, MN * LD_FROM * sizeof(float)), CUDA_SUCCESS, "an operand");
    expect(CALL(cuMemAlloc_v2, &to, (size_t)rows * LD_TO * sizeof(float)), CUDA_SUCCESS, "its copy");
    float *x = (float *)(uintptr_t)from, *y = (float *)(uintptr_t)to;
    for (int i = 0; i < MN * LD_FROM; i++)
        x[i] = (float)i;
    rung_turn_args args = {.from = x,
                           .to = y,
                           .k = K,
                           .mn = MN,
                           .ld_from = LD_FROM,
                           .ld_to = LD_TO,
                           .class_rows = CLASS_ROWS,
                           .aligned = aligned};
    void *parameters[] = {&args};
    CUlaunchConfig config = {.gridDimX = (MN + RUNG_TURN_TILE - 1) / RUNG_TURN_TILE,
                             .gridDimY = blocks,
                             .gridDimZ = 1,
                             .blockDimX = RUNG_TURN_THREADS,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    expect(CALL(cuLaunchKernelEx, &config, f, parameters, NULL), CUDA_SUCCESS, "turned by few blocks");
    int wrong = 0;
    for (int64_t k = 0; k < K; k++)
        for (int64_t mn = 0; mn < MN; mn++)
            wrong += y[(classed ? k % 4 * CLASS_ROWS + k / 4 : k) * LD_TO + mn] != x[mn * LD_FROM + k];
    expect(wrong ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, CUDA_SUCCESS, "what was turned");
    expect(CALL(cuMemFree_v2, from), CUDA_SUCCESS, "the operand given back");
    expect(CALL(cuMemFree_v2, to), CUDA_SUCCESS, "the copy given back");
}

/* Runs this in a process of its own, which the lens ends with 1 where its memory is not as it should be; returns the
 * exit code, and what was said. */
static int ended(void (*run)(int), int number, char said[200])
{
    int status = 0, pipes[2];
    fflush(NULL);
    if (pipe(pipes) != 0)
        exit(2);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        setenv("RUNG_LENS_KEPT", "fail", 1);
        run(number);
        exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0; length += got > 0 ? (size_t)got : 0)
        got = read(pipes[0], said + length, 199 - length);
    said[length] = 0;
    close(pipes[0]);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

enum { PIECE_BYTES = 1000 };

static void write_at(int place)
{
    CUdeviceptr at = 0;
    if (CALL(cuMemAlloc_v2, &at, PIECE_BYTES) == CUDA_SUCCESS)
        *(unsigned char *)(uintptr_t)(at + (CUdeviceptr)(int64_t)place) = 0;
    CALL(cuMemFree_v2, at);
}

/* What the host writes beyond a piece's ends no lane is seen to write. */
static void overruns(void)
{
    static const int places[] = {0, PIECE_BYTES - 1, -1, PIECE_BYTES, 1023, 1024, PIECE_BYTES + 4096, -4096};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int beyond = places[i] < 0 || places[i] >= PIECE_BYTES;
        char said[200];
        expect(ended(write_at, places[i], said) != beyond, 0, "a byte that the host writes");
        expect((strstr(said, "lens: the host wrote beyond the ends of a piece of memory") != NULL) != beyond, 0, said);
    }
}

static void keep(int pieces)
{
    for (int i = 0; i < pieces; i++) {
        CUdeviceptr at = 0;
        CALL(cuMemAlloc_v2, &at, (size_t)(i + 1) * PIECE_BYTES);
    }
}

/* Memory that a process keeps is told whole. */
static void keepers(void)
{
    static const char *const sentences[] = {"", "lens: 1 piece of memory, 1000 bytes, was not given back\n",
                                            "lens: 2 pieces of memory, 3000 bytes, were not given back\n",
                                            "lens: 3 pieces of memory, 6000 bytes, were not given back\n"};
    for (int pieces = 0; pieces < 4; pieces++) {
        char said[200];
        expect(ended(keep, pieces, said) != (pieces > 0), 0, "memory that is kept");
        expect(strcmp(said, sentences[pieces]) != 0, 0, said);
    }
}

static void keep_and_overrun(int pieces)
{
    keep(pieces);
    write_at(PIECE_BYTES);
}

/* Neither hides the other. */
static void keepers_that_overrun(void)
{
    char said[200];
    expect(ended(keep_and_overrun, 2, said) == 0, 0, "memory that is kept, and a byte beyond a piece");
    expect(strcmp(said, "lens: 2 pieces of memory, 3000 bytes, were not given back\n"
                        "lens: the host wrote beyond the ends of a piece of memory\n") != 0,
           0, said);
}

/* What is kept of the launches so far is handed out by number, and nothing before the first or behind the last one. */
static void kept_launches(void)
{
    int (*count)(void);
    const void *(*at)(int);
    void (*reset)(void);
    *(void **)&count = dlsym(library, "rung_lens_launch_count");
    *(void **)&at = dlsym(library, "rung_lens_launch_at");
    *(void **)&reset = dlsym(library, "rung_lens_reset");
    const int launches = count();
    int there = 0;
    for (int i = 0; i < launches; i++)
        there += at(i) != NULL;
    expect(there != launches || launches == 0, 0, "each launch");
    for (int i = 0; i < 3; i++)
        expect(at(launches + i) != NULL || at(-1 - i) != NULL, 0, "no launch behind the last one");
    reset();
    expect(count() != 0 || at(0) != NULL, 0, "no launch after a reset");
}

/* Whatever has to do with graphs is refused with a reason, so that nobody waits for one that is not made. */
static void graphs(void)
{
    static const char *const names[] = {"cuStreamBeginCapture_v2",
                                        "cuStreamEndCapture",
                                        "cuStreamGetCaptureInfo_v2",
                                        "cuUserObjectCreate",
                                        "cuUserObjectRelease",
                                        "cuGraphRetainUserObject",
                                        "cuGraphCreate",
                                        "cuGraphAddKernelNode_v2",
                                        "cuGraphKernelNodeSetAttribute",
                                        "cuGraphExecKernelNodeSetParams_v2",
                                        "cuGraphInstantiateWithFlags",
                                        "cuGraphLaunch"};
    const char *text = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CUresult (*call)(void *, void *, void *, void *, void *, void *);
        *(void **)&call = function(names[i]);
        expect(call(NULL, NULL, NULL, NULL, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED, names[i]);
    }
    expect(CALL(cuGetErrorString, CUDA_ERROR_NOT_SUPPORTED, &text), CUDA_SUCCESS, "why");
    expect(strcmp(text, "the lens has no graphs") != 0, 0, text);
}

int main(int argc, char **argv)
{
    CUcontext context;
    if (argc != 2 || !(library = dlopen(argv[1], RTLD_NOW))) {
        printf("usage: lens_driver LIBRARY: %s\n", argc == 2 ? dlerror() : "one argument");
        return 2;
    }
    expect(CALL(cuInit, 0), CUDA_SUCCESS, "the beginning");
    devices();
    errors();
    expect(CALL(cuDevicePrimaryCtxRetain, &context, 0), CUDA_SUCCESS, "a context");
    expect(CALL(cuCtxPushCurrent_v2, context), CUDA_SUCCESS, "the current context");
    threads(context);
    memory();
    nothing_is_kept();
    launches();
    reasons();
    graphs();
    overlapping();
    setenv("RUNG_LENS_FINDINGS", "fail", 1);
    for (unsigned blocks = 1; blocks <= 4; blocks++)
        for (int i = 0; i < 4; i++)
            turns(i & 1 ? "turn_classes" : "turn_operand", i & 1, i >> 1, blocks);
    unsetenv("RUNG_LENS_FINDINGS");
    kept_launches();
    overruns();
    keepers();
    keepers_that_overrun();
    tensor_maps();
    printf("%d results, %d of them wrong\n", asked, failed);
    return failed > 0;
}
