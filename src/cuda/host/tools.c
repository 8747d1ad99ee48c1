/* include/rung_tools.h over the driver table: thin, every status forwarded. */
#include "rung_tools.h"
#include "cuda/ladder/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rung_tools {
    const rung_driver *driver;
    rung_gpu *gpu;
    rung_cuda cuda; /* what launchers take; its stream is ours */
    CUstream stream;
    rung_tools_machine machine;
};

int rung_tools_gpu_count(void)
{
    const rung_driver *driver;
    int count = 0;
    if (rung_driver_open(&driver) != RUNG_SUCCESS)
        return 0;
    CUresult result = driver->device_count(&count);
    if (result != CUDA_SUCCESS)
        rung_driver_fail(driver, result, "cuDeviceGetCount");
    else if (count == 0)
        rung_fail(RUNG_NO_DEVICE, "the NVIDIA driver sees no GPU");
    return count;
}

static rung_status describe(rung_tools *tools, int index)
{
    const rung_machine *from = rung_gpu_machine(tools->gpu);
    rung_tools_machine *to = &tools->machine;
    CUdevice device;
    int domain, bus, slot, memory_khz = 0, bus_bits = 0;
    CU_TRY(tools->driver, device_get(&device, index));
    CU_TRY(tools->driver, device_attribute(&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device));
    CU_TRY(tools->driver, device_attribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
    CU_TRY(tools->driver, device_attribute(&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device));
    snprintf(to->pci_bus_id, sizeof to->pci_bus_id, "%08x:%02x:%02x.0", (unsigned)domain, (unsigned)bus & 0xff,
             (unsigned)slot & 0xff);
    snprintf(to->name, sizeof to->name, "%s", from->name);
    to->arch = from->arch;
    to->sms = from->sms;
    to->driver_version = from->driver_version;
    to->shared_per_block_bytes = from->shared_per_block_bytes;
    to->l2_bytes = from->l2_bytes;
    to->memory_bytes = from->memory_bytes;
    to->clock_ghz = from->clock_ghz;
    to->fma_gflops = from->sms * 256.0 * from->clock_ghz;
    tools->driver->device_attribute(&memory_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
    tools->driver->device_attribute(&bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
    to->memory_gbytes_per_s = 2.0 * memory_khz * 1e-6 * bus_bits / 8.0; /* two transfers a clock */
    return RUNG_SUCCESS;
}

rung_status rung_tools_open(rung_tools **out, int gpu)
{
    *out = NULL;
    rung_tools *tools = calloc(1, sizeof *tools);
    if (!tools)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the tools' state (%zu bytes)", sizeof *tools);
    rung_status status;
    int pushed = 0;
    RUNG_TRY_OUT(rung_gpu_get(gpu, &tools->gpu));
    tools->driver = rung_gpu_driver(tools->gpu);
    RUNG_TRY_OUT(describe(tools, gpu));
    CU_TRY_OUT(tools->driver, context_push(rung_gpu_context(tools->gpu)));
    pushed = 1;
    CU_TRY_OUT(tools->driver, stream_create(&tools->stream, CU_STREAM_NON_BLOCKING, 0));
    rung_config_init(&tools->cuda.config);
    tools->cuda.config.stream = tools->stream;
    tools->cuda.config.pointers = RUNG_POINTERS_DEVICE;
    tools->cuda.driver = tools->driver;
    tools->cuda.gpu = tools->gpu;
    tools->cuda.machine = rung_gpu_machine(tools->gpu);
    tools->cuda.index = gpu;
    *out = tools;
    return RUNG_SUCCESS;
out:
    if (pushed) {
        CUcontext popped;
        tools->driver->context_pop(&popped);
    }
    free(tools);
    return status;
}

void rung_tools_close(rung_tools *tools)
{
    if (!tools)
        return;
    CUcontext popped;
    tools->driver->stream_synchronize(tools->stream);
    rung_workspace_close(&tools->cuda);
    tools->driver->stream_destroy(tools->stream);
    tools->driver->context_pop(&popped);
    free(tools);
}

const rung_tools_machine *rung_tools_describe(const rung_tools *tools)
{
    return &tools->machine;
}

void *rung_tools_stream(const rung_tools *tools)
{
    return tools->stream;
}

rung_status rung_tools_synchronize(rung_tools *tools)
{
    CU_TRY(tools->driver, stream_synchronize(tools->stream));
    return RUNG_SUCCESS;
}

rung_status rung_tools_alloc(rung_tools *tools, size_t bytes, void **memory)
{
    CUdeviceptr at = 0;
    *memory = NULL;
    CUresult result = tools->driver->memory_alloc(&at, bytes ? bytes : 4);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rung_fail(RUNG_OUT_OF_MEMORY, "the GPU has no %zu bytes left", bytes);
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(tools->driver, result, "cuMemAlloc");
    *memory = (void *)(uintptr_t)at;
    return RUNG_SUCCESS;
}

void rung_tools_free(rung_tools *tools, void *memory)
{
    if (memory)
        tools->driver->memory_free(rung_device_address(memory));
}

rung_status rung_tools_free_bytes(rung_tools *tools, int64_t *bytes)
{
    size_t left, total;
    CU_TRY(tools->driver, memory_info(&left, &total));
    *bytes = (int64_t)left;
    return RUNG_SUCCESS;
}

rung_status rung_tools_upload(rung_tools *tools, void *device, const void *host, size_t bytes)
{
    if (bytes == 0)
        return RUNG_SUCCESS;
    CU_TRY(tools->driver, copy_to_device(rung_device_address(device), host, bytes, tools->stream));
    return rung_tools_synchronize(tools);
}

rung_status rung_tools_download(rung_tools *tools, void *host, const void *device, size_t bytes)
{
    if (bytes == 0)
        return RUNG_SUCCESS;
    CU_TRY(tools->driver, copy_to_host(host, rung_device_address(device), bytes, tools->stream));
    return rung_tools_synchronize(tools);
}

rung_status rung_tools_copy(rung_tools *tools, void *to, const void *from, size_t bytes)
{
    if (bytes)
        CU_TRY(tools->driver, copy_on_device(rung_device_address(to), rung_device_address(from), bytes, tools->stream));
    return RUNG_SUCCESS;
}

rung_status rung_tools_fill(rung_tools *tools, void *device, uint32_t pattern, size_t words)
{
    if (words)
        CU_TRY(tools->driver, set_32(rung_device_address(device), pattern, words, tools->stream));
    return RUNG_SUCCESS;
}

rung_status rung_tools_event_create(rung_tools *tools, void **event)
{
    CU_TRY(tools->driver, event_create((CUevent *)event, CU_EVENT_DEFAULT));
    return RUNG_SUCCESS;
}

void rung_tools_event_destroy(rung_tools *tools, void *event)
{
    if (event)
        tools->driver->event_destroy(event);
}

rung_status rung_tools_event_record(rung_tools *tools, void *event)
{
    CU_TRY(tools->driver, event_record(event, tools->stream));
    return RUNG_SUCCESS;
}

rung_status rung_tools_event_elapsed(rung_tools *tools, void *start, void *stop, float *ms)
{
    CU_TRY(tools->driver, event_synchronize(stop));
    CU_TRY(tools->driver, event_elapsed(ms, start, stop));
    return RUNG_SUCCESS;
}

rung_status rung_tools_capture_begin(rung_tools *tools)
{
    CU_TRY(tools->driver, capture_begin(tools->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    return RUNG_SUCCESS;
}

rung_status rung_tools_capture_end(rung_tools *tools, void **graph)
{
    CUgraph made;
    CUgraphExec exec = NULL;
    CU_TRY(tools->driver, capture_end(tools->stream, &made));
    CUresult result = tools->driver->graph_instantiate(&exec, made, 0);
    tools->driver->graph_destroy(made);
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(tools->driver, result, "cuGraphInstantiateWithFlags");
    *graph = exec;
    return RUNG_SUCCESS;
}

rung_status rung_tools_graph_launch(rung_tools *tools, void *graph)
{
    CU_TRY(tools->driver, graph_launch(graph, tools->stream));
    return RUNG_SUCCESS;
}

void rung_tools_graph_destroy(rung_tools *tools, void *graph)
{
    if (graph)
        tools->driver->graph_exec_destroy(graph);
}

rung_status rung_tools_load(rung_tools *tools, const char *stem, void **module)
{
    return rung_gpu_library(tools->gpu, stem, (CUlibrary *)module);
}

void rung_tools_unload(rung_tools *tools, void *module)
{
    if (module)
        tools->driver->library_unload(module);
}

rung_status rung_tools_function(rung_tools *tools, void *module, const char *symbol, void **function)
{
    CUkernel kernel;
    CU_TRY(tools->driver, library_kernel(&kernel, module, symbol));
    CU_TRY(tools->driver, kernel_function((CUfunction *)function, kernel));
    return RUNG_SUCCESS;
}

rung_status rung_tools_launch(rung_tools *tools, void *function, const unsigned grid[3], unsigned threads,
                              unsigned shared_bytes, void **parameters)
{
    const CUlaunchConfig config = rung_launch_config(tools->stream, grid, threads, shared_bytes);
    CU_TRY(tools->driver, launch(&config, function, parameters, NULL));
    return RUNG_SUCCESS;
}

rung_status rung_tools_load_image(rung_tools *tools, const void *image, void **module)
{
    CU_TRY(tools->driver, library_load((CUlibrary *)module, image, NULL, NULL, 0, NULL, NULL, 0));
    return RUNG_SUCCESS;
}

rung_status rung_tools_own_gemm(rung_tools *tools, void *function, const rung_tools_own *own)
{
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
                      .split_k = own->split_k};
    const unsigned grid[3] = {(unsigned)((own->n + own->bn - 1) / own->bn),
                              (unsigned)((own->m + own->bm - 1) / own->bm), (unsigned)own->parts};
    void *parameters[] = {&args};
    CU_TRY(tools->driver, function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, own->shared_bytes));
    return rung_tools_launch(tools, function, grid, (unsigned)own->threads, (unsigned)own->shared_bytes, parameters);
}

rung_status rung_tools_kernel_inspect(rung_tools *tools, const rung_kernel *kernel, const char *symbol,
                                      rung_tools_kernel *out)
{
    rung_function f;
    RUNG_TRY(rung_gpu_function(tools->gpu, kernel->name, symbol ? symbol : kernel->name, &f));
    out->registers = f.registers;
    out->local_bytes = f.local_bytes;
    out->shared_bytes = f.shared_bytes + kernel->shared_bytes;
    CU_TRY(tools->driver, occupancy(&out->blocks_per_sm, f.function, kernel->threads, (size_t)kernel->shared_bytes));
    return RUNG_SUCCESS;
}

rung_status rung_tools_reduce(rung_tools *tools, const char *kernel, int64_t n, const float *x, float *result)
{
    const rung_kernel *row = kernel ? rung_kernel_find(kernel) : NULL;
    if (kernel && (!row || row->role != RUNG_REDUCE))
        return rung_fail(RUNG_INVALID_ARGUMENT, "no kernel of the reduce ladder is called '%s'", kernel);
    return rung_reduce_run(&tools->cuda, row, n, x, result);
}
