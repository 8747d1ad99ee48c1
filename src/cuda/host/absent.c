/* Stands in for the CUDA backend and the GPU tools in a build without nvcc. */
#include "core/backend.h"
#include "core/status.h"
#include "rung_tools.h"

static rung_status absent(void)
{
    return rung_fail(RUNG_NO_DEVICE, "this build has no CUDA backend: it was made without nvcc (./dev setup --cuda)");
}

static rung_status absent_open(const rung_config *config, void **state)
{
    (void)config, (void)state;
    return absent();
}

const rung_backend rung_cuda_backend = {.name = "CUDA", .open = absent_open};

int rung_tools_gpu_count(void)
{
    absent();
    return 0;
}

rung_status rung_tools_open(rung_tools **tools, int gpu)
{
    (void)gpu;
    *tools = NULL;
    return absent();
}

/* Without open there is no handle to call these with; they are here for the linker. */
#define ABSENT(name, ...)                                                                                              \
    rung_status name(__VA_ARGS__)                                                                                      \
    {                                                                                                                  \
        return absent();                                                                                               \
    }
#define ABSENT_VOID(name, ...)                                                                                         \
    void name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"

ABSENT_VOID(rung_tools_close, rung_tools *t)
ABSENT(rung_tools_synchronize, rung_tools *t)
ABSENT(rung_tools_alloc, rung_tools *t, size_t bytes, void **memory)
ABSENT_VOID(rung_tools_free, rung_tools *t, void *memory)
ABSENT(rung_tools_free_bytes, rung_tools *t, int64_t *bytes)
ABSENT(rung_tools_upload, rung_tools *t, void *device, const void *host, size_t bytes)
ABSENT(rung_tools_download, rung_tools *t, void *host, const void *device, size_t bytes)
ABSENT(rung_tools_copy, rung_tools *t, void *to, const void *from, size_t bytes)
ABSENT(rung_tools_fill, rung_tools *t, void *device, uint32_t pattern, size_t words)
ABSENT(rung_tools_event_create, rung_tools *t, void **event)
ABSENT_VOID(rung_tools_event_destroy, rung_tools *t, void *event)
ABSENT(rung_tools_event_record, rung_tools *t, void *event)
ABSENT(rung_tools_event_elapsed, rung_tools *t, void *start, void *stop, float *ms)
ABSENT(rung_tools_capture_begin, rung_tools *t)
ABSENT(rung_tools_capture_end, rung_tools *t, void **graph)
ABSENT(rung_tools_graph_launch, rung_tools *t, void *graph)
ABSENT_VOID(rung_tools_graph_destroy, rung_tools *t, void *graph)
ABSENT(rung_tools_load, rung_tools *t, const void *fatbin, void **module)
ABSENT_VOID(rung_tools_unload, rung_tools *t, void *module)
ABSENT(rung_tools_function, rung_tools *t, void *module, const char *symbol, void **function)
ABSENT(rung_tools_launch, rung_tools *t, void *function, const unsigned grid[3], unsigned threads,
       unsigned shared_bytes, void **parameters)
ABSENT(rung_tools_kernel_inspect, rung_tools *t, const rung_kernel *kernel, const char *symbol, rung_tools_kernel *out)
ABSENT(rung_tools_reduce, rung_tools *t, const char *kernel, int64_t n, const float *x, float *result)

const rung_tools_machine *rung_tools_describe(const rung_tools *t)
{
    return NULL;
}

void *rung_tools_stream(const rung_tools *t)
{
    return NULL;
}
