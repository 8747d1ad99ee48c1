/* Workspace: buffers up to 64 MiB stay with the context, one a stream; larger ones come from the GPU's pool each time.
 * Kept buffers have counters before them, zero between launches; a MiB of zeros is kept likewise for who asks for it. */
#include "cuda/device.h"

#include <string.h>

static const int64_t kept_limit_bytes = 64 << 20, zeros_bytes = 1 << 20;

static rung_status allocate(rung_cuda *cuda, int64_t bytes, int capturing, void **memory)
{
    CUdeviceptr at = 0;
    CUresult result =
        capturing ? cuda->driver->memory_alloc_async(&at, (size_t)bytes, cuda->config.stream)
                  : cuda->driver->memory_alloc_pool(&at, (size_t)bytes, rung_gpu_pool(cuda->gpu), cuda->config.stream);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rung_fail(RUNG_OUT_OF_MEMORY, "GPU %d has no %lld bytes left for workspace", cuda->index,
                         (long long)bytes);
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(cuda->driver, result, "cuMemAllocAsync");
    *memory = (void *)(uintptr_t)at;
    return RUNG_SUCCESS;
}

/* Memory with cleared counters before it. */
static rung_status allocate_with_tickets(rung_cuda *cuda, int64_t bytes, int capturing, void **memory)
{
    void *start = NULL;
    RUNG_TRY(allocate(cuda, bytes + RUNG_TICKET_BYTES, capturing, &start));
    CUresult result =
        cuda->driver->set_32((CUdeviceptr)(uintptr_t)start, 0, RUNG_TICKET_BYTES / 4, cuda->config.stream);
    if (result != CUDA_SUCCESS) {
        cuda->driver->memory_free_async((CUdeviceptr)(uintptr_t)start, cuda->config.stream);
        return rung_driver_fail(cuda->driver, result, "cuMemsetD32Async");
    }
    *memory = (char *)start + RUNG_TICKET_BYTES;
    return RUNG_SUCCESS;
}

/* Freed at once: the stream that used it may be gone by now. Waits for the GPU, which is rare and off the fast path:
 * memory from a pool is taken away without waiting for what still uses it. */
static void give_up(rung_cuda *cuda, rung_kept_buffer *buffer)
{
    if (buffer->memory) {
        cuda->driver->context_synchronize();
        cuda->driver->memory_free((CUdeviceptr)(uintptr_t)buffer->memory - RUNG_TICKET_BYTES);
    }
    memset(buffer, 0, sizeof *buffer);
}

static rung_kept_buffer *buffer_of_stream(rung_kept *kept, unsigned long long id)
{
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++)
        if (kept->buffers[i].memory && kept->buffers[i].stream_id == id)
            return &kept->buffers[i];
    rung_kept_buffer *buffer = &kept->buffers[kept->next];
    kept->next = (kept->next + 1) % RUNG_KEPT_BUFFERS;
    return buffer;
}

/* Frees and allocates even while another thread captures a graph: this memory has nothing to do with it. */
static rung_status replace(rung_cuda *cuda, rung_kept_buffer *buffer, int64_t bytes)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CU_TRY(cuda->driver, capture_mode(&mode));
    give_up(cuda, buffer);
    int64_t rounded = 1 << 20;
    while (rounded < bytes)
        rounded *= 2;
    rung_status status = allocate_with_tickets(cuda, rounded, 0, &buffer->memory);
    if (status == RUNG_SUCCESS)
        buffer->bytes = rounded;
    cuda->driver->capture_mode(&mode);
    return status;
}

static rung_status get_kept(rung_cuda *cuda, int64_t bytes, rung_status (*other)(rung_cuda *, int64_t, int, void **),
                            void **memory)
{
    unsigned long long id;
    CU_TRY(cuda->driver, stream_id(cuda->config.stream, &id));
    rung_kept_buffer *buffer = buffer_of_stream(&cuda->kept, id);
    if (buffer->in_use) /* a launcher that asks twice */
        return other(cuda, bytes, 0, memory);
    if (buffer->stream_id != id || buffer->bytes < bytes) {
        RUNG_TRY(replace(cuda, buffer, bytes));
        buffer->stream_id = id;
    }
    buffer->in_use = 1;
    *memory = buffer->memory;
    return RUNG_SUCCESS;
}

static rung_status get(rung_cuda *cuda, int64_t bytes, rung_status (*other)(rung_cuda *, int64_t, int, void **),
                       void **memory)
{
    *memory = NULL;
    if (bytes <= 0)
        return RUNG_SUCCESS;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CU_TRY(cuda->driver, stream_capturing(cuda->config.stream, &capture));
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return other(cuda, bytes, 1, memory);
    return bytes <= kept_limit_bytes ? get_kept(cuda, bytes, other, memory) : other(cuda, bytes, 0, memory);
}

static void put(rung_cuda *cuda, void *memory, int64_t before_bytes)
{
    if (!memory)
        return;
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++)
        if (cuda->kept.buffers[i].memory == memory) {
            cuda->kept.buffers[i].in_use = 0;
            return;
        }
    cuda->driver->memory_free_async((CUdeviceptr)(uintptr_t)memory - (CUdeviceptr)before_bytes, cuda->config.stream);
}

rung_status rung_workspace_get(rung_cuda *cuda, int64_t bytes, void **memory)
{
    return get(cuda, bytes, allocate, memory);
}

void rung_workspace_put(rung_cuda *cuda, void *memory)
{
    put(cuda, memory, 0);
}

rung_status rung_workspace_get_with_tickets(rung_cuda *cuda, int64_t bytes, void **memory)
{
    return get(cuda, bytes, allocate_with_tickets, memory);
}

void rung_workspace_put_with_tickets(rung_cuda *cuda, void *memory)
{
    put(cuda, memory, RUNG_TICKET_BYTES);
}

/* in_use says here that what is in the buffer is not known to be zero. */
rung_status rung_zeros_get(rung_cuda *cuda, int64_t bytes, void **memory)
{
    unsigned long long id;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    *memory = NULL;
    CU_TRY(cuda->driver, stream_capturing(cuda->config.stream, &capture));
    if (bytes > zeros_bytes || capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return RUNG_SUCCESS;
    CU_TRY(cuda->driver, stream_id(cuda->config.stream, &id));
    rung_kept_buffer *buffer = buffer_of_stream(&cuda->zeros, id);
    if (buffer->stream_id != id || !buffer->memory) {
        rung_status status = replace(cuda, buffer, zeros_bytes);
        if (status != RUNG_SUCCESS)
            return status == RUNG_OUT_OF_MEMORY ? RUNG_SUCCESS : status;
        buffer->stream_id = id;
        buffer->in_use = 1;
    }
    if (buffer->in_use)
        CU_TRY(cuda->driver, set_32((CUdeviceptr)(uintptr_t)buffer->memory, 0, (size_t)zeros_bytes / 4, cuda->config.stream));
    buffer->in_use = 0;
    *memory = buffer->memory;
    return RUNG_SUCCESS;
}

void rung_zeros_spoil(rung_cuda *cuda)
{
    unsigned long long id;
    if (cuda->driver->stream_id(cuda->config.stream, &id) == CUDA_SUCCESS)
        for (int i = 0; i < RUNG_KEPT_BUFFERS; i++)
            if (cuda->zeros.buffers[i].stream_id == id)
                cuda->zeros.buffers[i].in_use = 1;
}

void rung_workspace_close(rung_cuda *cuda)
{
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++) {
        give_up(cuda, &cuda->kept.buffers[i]);
        give_up(cuda, &cuda->zeros.buffers[i]);
    }
}
