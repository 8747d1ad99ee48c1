/* A stream that records a graph gets one buffer for its products, which take turns as they do outside of graphs, and
 * one with zeros for those that want zeros beside other memory. A buffer is the graph's: a user object of the driver
 * gives it back when the graph and all that was made of it are gone and have run to their end. Each replay clears it
 * once, before the first of these products; only records of what was recalled (families/accurate/recall.h) stay. */
#include "cuda/driver/graph_memory.h"

#include "cuda/driver/device.h"

#include <stdlib.h>

struct rung_graph_buffer {
    rung_idle_buffers *home;
    rung_graph_buffer *next; /* while it is idle */
    CUdeviceptr at;
    int64_t bytes;
};

/* This is what the driver says of a recording. */
typedef struct recording {
    unsigned long long id;
    CUgraph graph;
} recording;

/* Returns 0 where no graph can be told. */
static int ask(const rung_cuda *cuda, recording *r)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (cuda->driver->capture_info(cuda->config.stream, &status, &id, &r->graph, NULL, NULL) != CUDA_SUCCESS)
        return 0;
    r->id = id;
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The driver calls this on a thread of its own, which may not call the driver. */
static void CUDA_CB give_back(void *of_graph)
{
    rung_graph_buffer *buffer = of_graph;
    pthread_mutex_lock(&buffer->home->lock);
    buffer->next = buffer->home->first;
    buffer->home->first = buffer;
    pthread_mutex_unlock(&buffer->home->lock);
}

/* Takes an idle buffer of this size out of the list; NULL: there is none. */
static rung_graph_buffer *take_idle(rung_idle_buffers *home, int64_t bytes)
{
    pthread_mutex_lock(&home->lock);
    rung_graph_buffer **at = &home->first, *found;
    while (*at && (*at)->bytes != bytes)
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&home->lock);
    return found;
}

static rung_graph_buffer *make(const rung_driver *d, rung_idle_buffers *home, int64_t bytes)
{
    rung_graph_buffer *buffer = calloc(1, sizeof *buffer);
    if (buffer && d->memory_alloc(&buffer->at, (size_t)bytes) != CUDA_SUCCESS) {
        free(buffer);
        return NULL;
    }
    if (buffer)
        buffer->home = home, buffer->bytes = bytes;
    return buffer;
}

/* Makes the buffer the graph's. */
static CUresult hand_over(const rung_driver *d, CUgraph graph, rung_graph_buffer *buffer)
{
    CUuserObject object;
    CUresult result = d->user_object_create(&object, buffer, give_back, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (result != CUDA_SUCCESS) {
        give_back(buffer);
        return result;
    }
    result = d->graph_retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result != CUDA_SUCCESS)
        d->user_object_release(object, 1); /* which gives it back */
    return result;
}

/* A graph that allocates has one executable graph at a time and is never part of another one: the driver sees to that.
 * So no two replays that could run at once share the buffer. */
static CUresult allow_one_at_a_time(const rung_cuda *cuda)
{
    CUdeviceptr at;
    CUresult result = cuda->driver->memory_alloc_async(&at, 1, cuda->config.stream);
    return result == CUDA_SUCCESS ? cuda->driver->memory_free_async(at, cuda->config.stream) : result;
}

/* Returns a buffer of the graph's, which the graph clears as far as it has to be, in front of the product that asks.
 * All of it is cleared now where the rest is for records. */
static rung_graph_buffer *buffer_for(const rung_cuda *cuda, CUgraph graph, int64_t bytes, int64_t zero_bytes,
                                     int records)
{
    const rung_driver *d = cuda->driver;
    rung_idle_buffers *home = rung_gpu_idle_buffers(cuda->gpu);
    rung_graph_buffer *buffer = take_idle(home, bytes);
    if (!buffer)
        buffer = make(d, home, bytes);
    if (!buffer)
        return NULL;
    if ((records && rung_driver_clear(d, buffer->at, (size_t)bytes) != CUDA_SUCCESS) ||
        allow_one_at_a_time(cuda) != CUDA_SUCCESS) {
        give_back(buffer);
        return NULL;
    }
    if (hand_over(d, graph, buffer) != CUDA_SUCCESS)
        return NULL;
    return d->set_32(buffer->at, 0, (size_t)zero_bytes / 4, cuda->config.stream) == CUDA_SUCCESS ? buffer : NULL;
}

/* Returns what this recording's stream was lent for this use, whatever its size; else a place for a new loan, NULL
 * where all are in use. */
static rung_graph_lent *place_for(rung_graph_loans *loans, const recording *r, void *stream, int zeros)
{
    rung_graph_lent *free_one = NULL;
    for (int i = 0; i < RUNG_GRAPH_BUFFERS; i++) {
        rung_graph_lent *lent = &loans->lent[(loans->next + i) % RUNG_GRAPH_BUFFERS];
        if (lent->memory && lent->recording == r->id && lent->stream == stream && lent->zeros == zeros)
            return lent;
        if (!lent->in_use && !free_one)
            free_one = lent;
    }
    if (free_one) {
        loans->next = (int)(free_one - loans->lent + 1) % RUNG_GRAPH_BUFFERS;
        free_one->memory = NULL;
    }
    return free_one;
}

static int64_t rounded(const rung_cuda *cuda, int64_t bytes)
{
    int64_t up = 1 << 20;
    while (up < bytes)
        up *= 2;
    return rung_kept_most(cuda, bytes, up);
}

/* Lends memory for one of the two uses. */
static void *lend(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes, int zeros)
{
    recording r;
    if (bytes > RUNG_GRAPH_BUFFER_BYTES || !ask(cuda, &r))
        return NULL;
    rung_graph_lent *lent = place_for(&cuda->graph_loans, &r, cuda->config.stream, zeros);
    if (!lent || lent->in_use) /* a launcher has asked twice */
        return NULL;
    if (!lent->memory || lent->bytes < bytes) { /* an outgrown one stays with the graph */
        rung_thread_mode mode = rung_driver_relax(cuda->driver);
        rung_graph_buffer *buffer = buffer_for(cuda, r.graph, rounded(cuda, bytes), zero_bytes, zeros);
        rung_driver_put_back(cuda->driver, mode);
        if (!buffer)
            return NULL;
        *lent = (rung_graph_lent){.memory = (void *)(uintptr_t)buffer->at,
                                  .bytes = buffer->bytes,
                                  .recording = r.id,
                                  .stream = cuda->config.stream,
                                  .zeros = zeros};
    }
    lent->in_use = 1;
    return lent->memory;
}

void *rung_graph_memory_get(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes)
{
    return lend(cuda, bytes, zero_bytes, 0);
}

/* Behind the zeros there is as much room for records. */
void *rung_graph_zeros_get(rung_cuda *cuda, int64_t bytes)
{
    return lend(cuda, 2 * bytes, bytes, 1);
}

static rung_graph_lent *loan_of(rung_cuda *cuda, const void *memory)
{
    for (int i = 0; i < RUNG_GRAPH_BUFFERS; i++)
        if (cuda->graph_loans.lent[i].in_use && cuda->graph_loans.lent[i].memory == memory)
            return &cuda->graph_loans.lent[i];
    return NULL;
}

int rung_graph_memory_lent(rung_cuda *cuda, const void *memory)
{
    return loan_of(cuda, memory) != NULL;
}

void *rung_graph_record_get(rung_cuda *cuda, const void *zeros, int64_t bytes)
{
    rung_graph_lent *lent = loan_of(cuda, zeros);
    const int64_t room = lent ? lent->bytes / 2 : 0;
    if (!lent || !lent->zeros || lent->record_bytes + bytes > room)
        return NULL;
    void *record = (char *)lent->memory + room + lent->record_bytes;
    lent->record_bytes += bytes;
    return record;
}

int rung_graph_memory_put(rung_cuda *cuda, const void *memory, int as_lent)
{
    rung_graph_lent *lent = loan_of(cuda, memory);
    if (!lent)
        return 0;
    lent->in_use = 0;
    if (!as_lent)
        lent->memory = NULL; /* it stays with the graph, and nobody else gets it */
    return 1;
}

void rung_graph_memory_close(rung_cuda *cuda)
{
    rung_idle_buffers *home = rung_gpu_idle_buffers(cuda->gpu);
    pthread_mutex_lock(&home->lock);
    rung_graph_buffer *idle = home->first;
    home->first = NULL;
    pthread_mutex_unlock(&home->lock);
    while (idle) {
        rung_graph_buffer *next = idle->next;
        cuda->driver->memory_free(idle->at);
        free(idle);
        idle = next;
    }
}
