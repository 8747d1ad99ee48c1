/* Workspace: buffers up to 156 MiB stay with the context, one a stream; larger ones come from the GPU's pool each time.
 * Kept buffers have counters before them, zero between launches; a MiB of zeros is kept likewise for who asks for it.
 * Nothing here waits for the GPU but the close: a buffer that is outgrown is freed in its stream's order, and one that
 * another stream takes over is waited for by that stream. A stream that records a graph finds memory of the graph's. */
#include "core/divide.h"
#include "cuda/driver/device.h"

#include <string.h>

static const int64_t zeros_bytes = 1 << 20, step_bytes = 4 << 20;

/* This is what the driver says of the context's stream. */
typedef struct stream_now {
    int capturing;
    unsigned long long id; /* while it is not capturing */
} stream_now;

static rung_status ask_stream(rung_cuda *cuda, stream_now *now)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CU_TRY(cuda->driver, stream_capturing(cuda->config.stream, &capture));
    *now = (stream_now){.capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE};
    if (!now->capturing)
        CU_TRY(cuda->driver, stream_id(cuda->config.stream, &now->id));
    return RUNG_SUCCESS;
}

static rung_status allocate(rung_cuda *cuda, int64_t bytes, int capturing, void **memory)
{
    CUdeviceptr at = 0;
    rung_thread_mode mode = rung_driver_relax(cuda->driver);
    CUresult result =
        capturing ? cuda->driver->memory_alloc_async(&at, (size_t)bytes, cuda->config.stream)
                  : cuda->driver->memory_alloc_pool(&at, (size_t)bytes, rung_gpu_pool(cuda->gpu), cuda->config.stream);
    rung_driver_put_back(cuda->driver, mode);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rung_fail(RUNG_OUT_OF_MEMORY, "GPU %d has no %lld bytes left for workspace", cuda->index,
                         (long long)bytes);
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(cuda->driver, result, "cuMemAllocAsync");
    *memory = (void *)(uintptr_t)at;
    return RUNG_SUCCESS;
}

static void free_in_order(rung_cuda *cuda, void *memory, int64_t before_bytes)
{
    rung_thread_mode mode = rung_driver_relax(cuda->driver);
    cuda->driver->memory_free_async(rung_device_address(memory) - (CUdeviceptr)before_bytes, cuda->config.stream);
    rung_driver_put_back(cuda->driver, mode);
}

/* Allocates memory with cleared counters before it. */
static rung_status allocate_with_tickets(rung_cuda *cuda, int64_t bytes, int capturing, void **memory)
{
    void *start = NULL;
    RUNG_TRY(allocate(cuda, bytes + RUNG_TICKET_BYTES, capturing, &start));
    CUresult result = cuda->driver->set_32(rung_device_address(start), 0, RUNG_TICKET_BYTES / 4, cuda->config.stream);
    if (result != CUDA_SUCCESS) {
        free_in_order(cuda, start, 0);
        return rung_driver_fail(cuda->driver, result, "cuMemsetD32Async");
    }
    *memory = (char *)start + RUNG_TICKET_BYTES;
    return RUNG_SUCCESS;
}

/* Returns the stream's own buffer, else an empty one, else one of another stream whose end of use is known; NULL where
 * there is none. */
static rung_kept_buffer *buffer_for(rung_kept *kept, unsigned long long id)
{
    rung_kept_buffer *empty = NULL, *known = NULL;
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++) {
        rung_kept_buffer *buffer = &kept->buffers[(kept->next + i) % RUNG_KEPT_BUFFERS];
        if (!buffer->memory) {
            empty = empty ? empty : buffer;
            continue;
        }
        if (buffer->stream_id == id)
            return buffer;
        kept->several = 1;
        if (buffer->use_recorded && !known)
            known = buffer;
    }
    if (empty || !known)
        return empty;
    kept->next = (int)(known - kept->buffers + 1) % RUNG_KEPT_BUFFERS;
    return known;
}

/* Rounds up such that memory and counters together are whole MiB, as the pool gives them, if the limit allows it. */
static int64_t rounded(const rung_cuda *cuda, int64_t bytes)
{
    const int64_t whole = bytes + RUNG_TICKET_BYTES;
    int64_t up = 1 << 20;
    while (up < whole && up < step_bytes)
        up *= 2;
    if (up < whole)
        up = (whole + whole / 8 + step_bytes - 1) / step_bytes * step_bytes;
    return min64(up, rung_kept_most(cuda, whole, RUNG_KEPT_BUFFER_BYTES)) - RUNG_TICKET_BYTES;
}

/* Frees what the buffer holds, in stream order. */
static void release(rung_cuda *cuda, rung_kept_buffer *buffer)
{
    if (buffer->memory)
        free_in_order(cuda, buffer->memory, RUNG_TICKET_BYTES);
    buffer->memory = NULL;
}

static rung_status replace(rung_cuda *cuda, rung_kept_buffer *buffer, int64_t bytes)
{
    if (!buffer->last_use)
        CU_TRY(cuda->driver, event_create(&buffer->last_use, CU_EVENT_DISABLE_TIMING));
    release(cuda, buffer);
    RUNG_TRY(allocate_with_tickets(cuda, rounded(cuda, bytes), 0, &buffer->memory));
    buffer->bytes = rounded(cuda, bytes);
    buffer->dirty = 1;
    return RUNG_SUCCESS;
}

/* Gives the buffer to the stream, with so many bytes at least. */
static rung_status claim(rung_cuda *cuda, rung_kept_buffer *buffer, unsigned long long id, int64_t bytes)
{
    if (buffer->memory && buffer->stream_id != id)
        CU_TRY(cuda->driver, stream_wait(cuda->config.stream, buffer->last_use, 0));
    buffer->stream_id = id;
    const int64_t most = rung_kept_most(cuda, bytes + RUNG_TICKET_BYTES, RUNG_KEPT_BUFFER_BYTES) - RUNG_TICKET_BYTES;
    if (buffer->memory && buffer->bytes >= bytes && buffer->bytes <= most)
        return RUNG_SUCCESS;
    return replace(cuda, buffer, bytes);
}

/* Records an event behind the use of the buffer. Where several streams take turns, another one may use it next, and by
 * then this stream may be gone. One stream alone does not pay for it. */
static void note_use(rung_cuda *cuda, const rung_kept *kept, rung_kept_buffer *buffer)
{
    if (kept->several)
        buffer->use_recorded = cuda->driver->event_record(buffer->last_use, cuda->config.stream) == CUDA_SUCCESS;
}

typedef rung_status allocator(rung_cuda *cuda, int64_t bytes, int capturing, void **memory);

static rung_status get(rung_cuda *cuda, const stream_now *now, int64_t bytes, allocator *other, void **memory)
{
    if (now->capturing && other == allocate_with_tickets) {
        char *start = rung_graph_memory_get(cuda, bytes + RUNG_TICKET_BYTES, RUNG_TICKET_BYTES);
        *memory = start ? start + RUNG_TICKET_BYTES : NULL;
        if (start)
            return RUNG_SUCCESS;
    }
    if (now->capturing)
        return other(cuda, bytes, 1, memory);
    rung_kept_buffer *buffer = buffer_for(&cuda->kept, now->id);
    if (!buffer || buffer->in_use) /* a launcher has asked twice */
        return other(cuda, bytes, 0, memory);
    if (bytes + RUNG_TICKET_BYTES > RUNG_KEPT_BUFFER_BYTES) {
        if (buffer->stream_id == now->id) /* freed first, so that the pool does not hold both */
            release(cuda, buffer);
        return other(cuda, bytes, 0, memory);
    }
    RUNG_TRY(claim(cuda, buffer, now->id, bytes));
    buffer->in_use = 1;
    *memory = buffer->memory;
    return RUNG_SUCCESS;
}

static rung_status ask_and_get(rung_cuda *cuda, int64_t bytes, allocator *other, void **memory)
{
    stream_now now;
    *memory = NULL;
    if (bytes <= 0)
        return RUNG_SUCCESS;
    RUNG_TRY(ask_stream(cuda, &now));
    return get(cuda, &now, bytes, other, memory);
}

static void put(rung_cuda *cuda, void *memory, int64_t before_bytes)
{
    if (!memory)
        return;
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++)
        if (cuda->kept.buffers[i].memory == memory) {
            cuda->kept.buffers[i].in_use = 0;
            note_use(cuda, &cuda->kept, &cuda->kept.buffers[i]);
            return;
        }
    if (!rung_graph_memory_put(cuda, (char *)memory - before_bytes, 1))
        free_in_order(cuda, memory, before_bytes);
}

rung_status rung_workspace_get(rung_cuda *cuda, int64_t bytes, void **memory)
{
    return ask_and_get(cuda, bytes, allocate, memory);
}

void rung_workspace_put(rung_cuda *cuda, void *memory)
{
    put(cuda, memory, 0);
}

rung_status rung_workspace_get_with_tickets(rung_cuda *cuda, int64_t bytes, void **memory)
{
    return ask_and_get(cuda, bytes, allocate_with_tickets, memory);
}

void rung_workspace_put_with_tickets(rung_cuda *cuda, void *memory)
{
    put(cuda, memory, RUNG_TICKET_BYTES);
}

/* Lends the stream its zeros. Who gives them back says whether they are still zero. */
static rung_status get_zeros(rung_cuda *cuda, const stream_now *now, int64_t bytes, void **zeros)
{
    if (bytes <= 0 || bytes > zeros_bytes)
        return RUNG_SUCCESS;
    if (now->capturing) {
        *zeros = rung_graph_zeros_get(cuda, zeros_bytes);
        return RUNG_SUCCESS;
    }
    rung_kept_buffer *buffer = buffer_for(&cuda->zeros, now->id);
    if (!buffer)
        return RUNG_SUCCESS;
    rung_status status = claim(cuda, buffer, now->id, zeros_bytes);
    if (status != RUNG_SUCCESS)
        return status == RUNG_OUT_OF_MEMORY ? RUNG_SUCCESS : status;
    if (buffer->dirty)
        CU_TRY(cuda->driver,
               set_32(rung_device_address(buffer->memory), 0, (size_t)zeros_bytes / 4, cuda->config.stream));
    *zeros = buffer->memory;
    return RUNG_SUCCESS;
}

rung_status rung_workspace_get_with_zeros(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes, void **memory,
                                          void **zeros)
{
    stream_now now;
    *memory = *zeros = NULL;
    RUNG_TRY(ask_stream(cuda, &now));
    RUNG_TRY(get(cuda, &now, bytes, allocate, memory));
    rung_status status = get_zeros(cuda, &now, zero_bytes, zeros);
    if (status != RUNG_SUCCESS) {
        rung_workspace_put(cuda, *memory);
        *memory = NULL;
    }
    return status;
}

void rung_workspace_put_with_zeros(rung_cuda *cuda, void *memory, void *zeros, int are_zero)
{
    if (zeros && rung_graph_memory_put(cuda, zeros, are_zero))
        zeros = NULL;
    for (int i = 0; zeros && i < RUNG_KEPT_BUFFERS; i++)
        if (cuda->zeros.buffers[i].memory == zeros) {
            cuda->zeros.buffers[i].dirty = !are_zero;
            note_use(cuda, &cuda->zeros, &cuda->zeros.buffers[i]);
        }
    rung_workspace_put(cuda, memory);
}

/* Freeing memory that is not of a pool waits for all that was queued before. cuCtxSynchronize says so by its name, but
 * ends the recordings of other threads, in any mode. */
void rung_wait_for_all(rung_cuda *cuda)
{
    CUdeviceptr at;
    if (cuda->driver->memory_alloc(&at, 1) != CUDA_SUCCESS || cuda->driver->memory_free(at) != CUDA_SUCCESS)
        cuda->driver->context_synchronize();
}

/* The stream that used it may be gone by now, and memory from a pool is taken away without waiting for what uses it. */
static void give_up(rung_cuda *cuda, rung_kept_buffer *buffer)
{
    if (buffer->memory) {
        if (!buffer->use_recorded || cuda->driver->event_synchronize(buffer->last_use) != CUDA_SUCCESS)
            rung_wait_for_all(cuda);
        cuda->driver->memory_free(rung_device_address(buffer->memory) - RUNG_TICKET_BYTES);
    }
    if (buffer->last_use)
        cuda->driver->event_destroy(buffer->last_use);
    memset(buffer, 0, sizeof *buffer);
}

void rung_workspace_close(rung_cuda *cuda)
{
    for (int i = 0; i < RUNG_KEPT_BUFFERS; i++) {
        give_up(cuda, &cuda->kept.buffers[i]);
        give_up(cuda, &cuda->zeros.buffers[i]);
    }
    rung_graph_memory_close(cuda);
}
