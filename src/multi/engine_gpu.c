/* A GPU as a rank's device: each lane is a stream, each work lane's stream has a context of the library, and marks are
 * events. It is written over the driver API; every call makes the GPU's primary context current for its length. */
#include "core/context.h"
#include "cuda/driver/device.h"
#include "multi/clock.h"
#include "multi/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct timed {
    multi_lane lane;
    multi_label label;
    CUevent start, stop;
} timed;

typedef struct events {
    CUevent *list;
    int used, made, capacity;
    unsigned flags;
} events;

typedef struct gpu_state {
    const rung_driver *driver;
    CUcontext context;
    CUstream streams[MULTI_LANES];
    rung_context *products[WORK_LANES];
    events marks, times;
    timed *spans; /* those taken since they were last collected */
    int span_count, span_capacity;
    CUevent base; /* the timeline's zero on this GPU */
    double base_us;
    int pushed;
} gpu_state;

static gpu_state *state_of(multi_engine *e)
{
    return e->state;
}

rung_status multi_engine_gpu_enter(multi_engine *e)
{
    gpu_state *s = state_of(e);
    CUcontext current = NULL;
    CU_TRY(s->driver, context_current(&current));
    s->pushed = current != s->context;
    if (s->pushed)
        CU_TRY(s->driver, context_push(s->context));
    return RUNG_SUCCESS;
}

void multi_engine_gpu_leave(multi_engine *e)
{
    gpu_state *s = state_of(e);
    CUcontext popped;
    if (s->pushed)
        s->driver->context_pop(&popped);
    s->pushed = 0;
}

/* Runs one piece of work with the context current, and returns its status. */
#define INSIDE(engine, call)                                                                                           \
    do {                                                                                                               \
        RUNG_TRY(multi_engine_gpu_enter(engine));                                                                      \
        rung_status inside_ = (call);                                                                                  \
        multi_engine_gpu_leave(engine);                                                                                \
        return inside_;                                                                                                \
    } while (0)

/* ---- events ---- */

static rung_status take_event(gpu_state *s, events *x, CUevent *out)
{
    if (x->used == x->made) {
        if (x->made == x->capacity) {
            int capacity = x->capacity ? 2 * x->capacity : 64;
            CUevent *list = realloc(x->list, (size_t)capacity * sizeof *list);
            if (!list)
                return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d events", capacity);
            x->list = list;
            x->capacity = capacity;
        }
        CU_TRY(s->driver, event_create(&x->list[x->made], x->flags));
        x->made++;
    }
    *out = x->list[x->used++];
    return RUNG_SUCCESS;
}

static void free_events(gpu_state *s, events *x)
{
    for (int i = 0; i < x->made; i++)
        s->driver->event_destroy(x->list[i]);
    free(x->list);
    memset(x, 0, sizeof *x);
}

/* These stand before and after something whose time is taken. */
rung_status multi_engine_gpu_span_start(multi_engine *e, multi_lane lane)
{
    gpu_state *s = state_of(e);
    if (!e->tracing)
        return RUNG_SUCCESS;
    if (s->span_count == s->span_capacity) {
        int capacity = s->span_capacity ? 2 * s->span_capacity : 64;
        timed *list = realloc(s->spans, (size_t)capacity * sizeof *list);
        if (!list)
            return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d spans", capacity);
        s->spans = list;
        s->span_capacity = capacity;
    }
    timed *t = &s->spans[s->span_count];
    *t = (timed){.lane = lane, .label = e->label};
    RUNG_TRY(take_event(s, &s->times, &t->start));
    RUNG_TRY(take_event(s, &s->times, &t->stop));
    CU_TRY(s->driver, event_record(t->start, s->streams[lane]));
    return RUNG_SUCCESS;
}

rung_status multi_engine_gpu_span_stop(multi_engine *e, multi_lane lane)
{
    gpu_state *s = state_of(e);
    if (e->tracing)
        CU_TRY(s->driver, event_record(s->spans[s->span_count++].stop, s->streams[lane]));
    return RUNG_SUCCESS;
}

/* ---- memory ---- */

static rung_status alloc_inside(gpu_state *s, int device, int64_t bytes, void **memory)
{
    CUdeviceptr at = 0;
    CUresult result = s->driver->memory_alloc(&at, (size_t)bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rung_fail(RUNG_OUT_OF_MEMORY, "GPU %d has no %lld bytes left", device, (long long)bytes);
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(s->driver, result, "cuMemAlloc");
    *memory = (void *)(uintptr_t)at;
    return RUNG_SUCCESS;
}

static rung_status gpu_alloc(multi_engine *e, int64_t bytes, void **memory)
{
    *memory = NULL;
    INSIDE(e, alloc_inside(state_of(e), e->device, bytes, memory));
}

/* A stuck GPU's memory stays: the driver would wait for it, and its work may still write there. */
static void gpu_free(multi_engine *e, void *memory)
{
    if (!e->stuck && multi_engine_gpu_enter(e) == RUNG_SUCCESS) {
        state_of(e)->driver->memory_free(rung_device_address(memory));
        multi_engine_gpu_leave(e);
    }
}

static rung_status host_alloc_inside(gpu_state *s, int64_t bytes, void **memory)
{
    /* 1: portable, pinned for every GPU's context */
    CU_TRY(s->driver, host_alloc(memory, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE));
    return RUNG_SUCCESS;
}

static rung_status gpu_host_alloc(multi_engine *e, int64_t bytes, void **memory)
{
    *memory = NULL;
    INSIDE(e, host_alloc_inside(state_of(e), bytes, memory));
}

static void gpu_host_free(multi_engine *e, void *memory)
{
    if (!e->stuck && multi_engine_gpu_enter(e) == RUNG_SUCCESS) {
        state_of(e)->driver->host_free(memory);
        multi_engine_gpu_leave(e);
    }
}

static rung_status free_bytes_inside(gpu_state *s, int64_t *bytes)
{
    size_t left = 0, total = 0;
    CU_TRY(s->driver, memory_info(&left, &total));
    *bytes = (int64_t)left;
    return RUNG_SUCCESS;
}

static rung_status gpu_free_bytes(multi_engine *e, int64_t *bytes)
{
    *bytes = 0;
    INSIDE(e, free_bytes_inside(state_of(e), bytes));
}

static int gpu_is_pinned(multi_engine *e, const void *memory)
{
    CUmemorytype type = 0;
    int pinned = 0;
    if (multi_engine_gpu_enter(e) == RUNG_SUCCESS) {
        pinned = state_of(e)->driver->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                        rung_device_address(memory)) == CUDA_SUCCESS &&
                 type == CU_MEMORYTYPE_HOST;
        multi_engine_gpu_leave(e);
    }
    return pinned;
}

/* ---- copies ---- */

static rung_status copy_flat(gpu_state *s, const multi_copy *c, gpu_state *from, CUstream stream)
{
    size_t bytes = (size_t)(c->length * c->lines) * 4;
    if (from)
        CU_TRY(s->driver, copy_peer(rung_device_address(c->to), s->context, rung_device_address(c->from), from->context,
                                    bytes, stream));
    else if (c->from_host)
        CU_TRY(s->driver, copy_to_device(rung_device_address(c->to), c->from, bytes, stream));
    else if (c->to_host)
        CU_TRY(s->driver, copy_to_host(c->to, rung_device_address(c->from), bytes, stream));
    else
        CU_TRY(s->driver, copy_on_device(rung_device_address(c->to), rung_device_address(c->from), bytes, stream));
    return RUNG_SUCCESS;
}

static rung_status copy_peer_lines(gpu_state *s, const multi_copy *c, gpu_state *from, CUstream stream)
{
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = rung_device_address(c->from),
                               .srcContext = from->context,
                               .srcPitch = (size_t)c->from_ld * 4,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = rung_device_address(c->to),
                               .dstContext = s->context,
                               .dstPitch = (size_t)c->to_ld * 4,
                               .WidthInBytes = (size_t)c->length * 4,
                               .Height = (size_t)c->lines,
                               .Depth = 1};
    CU_TRY(s->driver, copy_peer_3d(&copy, stream));
    return RUNG_SUCCESS;
}

static rung_status copy_lines(gpu_state *s, const multi_copy *c, gpu_state *from, CUstream stream)
{
    if (from)
        return copy_peer_lines(s, c, from, stream);
    CUDA_MEMCPY2D copy = {.srcMemoryType = c->from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .srcHost = c->from,
                          .srcDevice = rung_device_address(c->from),
                          .srcPitch = (size_t)c->from_ld * 4,
                          .dstMemoryType = c->to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .dstHost = c->to,
                          .dstDevice = rung_device_address(c->to),
                          .dstPitch = (size_t)c->to_ld * 4,
                          .WidthInBytes = (size_t)c->length * 4,
                          .Height = (size_t)c->lines};
    CU_TRY(s->driver, copy_2d(&copy, stream));
    return RUNG_SUCCESS;
}

static rung_status copy_inside(multi_engine *e, multi_lane lane, const multi_copy *c, gpu_state *from)
{
    gpu_state *s = state_of(e);
    int flat = c->lines == 1 || (c->from_ld == c->length && c->to_ld == c->length);
    RUNG_TRY(multi_engine_gpu_span_start(e, lane));
    RUNG_TRY(flat ? copy_flat(s, c, from, s->streams[lane]) : copy_lines(s, c, from, s->streams[lane]));
    return multi_engine_gpu_span_stop(e, lane);
}

static rung_status gpu_copy(multi_engine *e, multi_lane lane, const multi_copy *c, multi_engine *from)
{
    INSIDE(e, copy_inside(e, lane, c, from ? state_of(from) : NULL));
}

/* ---- products and order ---- */

static rung_status product_inside(multi_engine *e, multi_lane lane, const rung_gemm *gemm)
{
    RUNG_TRY(multi_engine_gpu_span_start(e, lane));
    RUNG_TRY(rung_gemm_run_in_order(state_of(e)->products[lane - LANE_WORK], gemm));
    return multi_engine_gpu_span_stop(e, lane);
}

static rung_status gpu_product(multi_engine *e, multi_lane lane, const rung_gemm *gemm)
{
    INSIDE(e, product_inside(e, lane, gemm));
}

static rung_status mark_inside(gpu_state *s, multi_lane lane, multi_mark *mark)
{
    CUevent event = NULL;
    RUNG_TRY(take_event(s, &s->marks, &event));
    CU_TRY(s->driver, event_record(event, s->streams[lane]));
    mark->event = event;
    return RUNG_SUCCESS;
}

static rung_status gpu_mark(multi_engine *e, multi_lane lane, multi_mark *mark)
{
    INSIDE(e, mark_inside(state_of(e), lane, mark));
}

static rung_status wait_inside(gpu_state *s, multi_lane lane, multi_mark mark)
{
    if (mark.event)
        CU_TRY(s->driver, stream_wait(s->streams[lane], mark.event, 0));
    return RUNG_SUCCESS;
}

static rung_status gpu_wait(multi_engine *e, multi_lane lane, multi_mark mark)
{
    INSIDE(e, wait_inside(state_of(e), lane, mark));
}

static int gpu_reached(multi_engine *e, multi_mark mark, rung_status *status)
{
    CUresult result = mark.event ? state_of(e)->driver->event_query(mark.event) : CUDA_SUCCESS;
    *status = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY
                  ? RUNG_SUCCESS
                  : rung_driver_fail(state_of(e)->driver, result, "cuEventQuery");
    return result == CUDA_SUCCESS;
}

static rung_status gpu_begin(multi_engine *e)
{
    state_of(e)->marks.used = 0;
    return RUNG_SUCCESS;
}

static rung_status poll_inside(gpu_state *s, int *done)
{
    *done = 1;
    for (int i = 0; i < MULTI_LANES; i++) {
        CUresult result = s->driver->stream_query(s->streams[i]);
        if (result == CUDA_ERROR_NOT_READY)
            *done = 0;
        else if (result != CUDA_SUCCESS)
            return rung_driver_fail(s->driver, result, "cuStreamQuery");
    }
    return RUNG_SUCCESS;
}

static rung_status gpu_poll(multi_engine *e, int *done)
{
    INSIDE(e, poll_inside(state_of(e), done));
}

/* Asks again and again, since a wait in the driver has no end. After an error the answers tell nothing, but then the
 * driver does not wait. */
static int drain_stream(gpu_state *s, CUstream stream, double end_s)
{
    for (int turns = 0;; turns++) {
        CUresult result = s->driver->stream_query(stream);
        if (result == CUDA_SUCCESS)
            return 1;
        if (result != CUDA_ERROR_NOT_READY)
            return s->driver->stream_synchronize(stream), 1;
        if (multi_now_s() > end_s)
            return 0;
        if (turns > 1000)
            nanosleep(&(struct timespec){0, 100000}, NULL);
    }
}

static void gpu_drain(multi_engine *e)
{
    gpu_state *s = state_of(e);
    double end_s = multi_now_s() + e->timeout_s;
    if (e->stuck || multi_engine_gpu_enter(e) != RUNG_SUCCESS)
        return;
    for (int i = 0; i < MULTI_LANES && !e->stuck; i++)
        e->stuck = s->streams[i] && !drain_stream(s, s->streams[i], end_s);
    s->span_count = s->times.used = 0;
    multi_engine_gpu_leave(e);
}

/* ---- the timeline ---- */

static rung_status trace_inside(multi_engine *e, int on, double now_us)
{
    gpu_state *s = state_of(e);
    e->tracing = 0; /* also where what follows fails: spans would have no base */
    s->span_count = s->times.used = 0;
    if (!on)
        return RUNG_SUCCESS;
    RUNG_TRY(take_event(s, &s->times, &s->base));
    CU_TRY(s->driver, event_record(s->base, s->streams[LANE_IN]));
    CU_TRY(s->driver, event_synchronize(s->base));
    s->base_us = now_us;
    e->tracing = 1;
    return RUNG_SUCCESS;
}

static rung_status gpu_trace(multi_engine *e, int on, double now_us)
{
    INSIDE(e, trace_inside(e, on, now_us));
}

static rung_status collect_inside(multi_engine *e)
{
    gpu_state *s = state_of(e);
    for (int i = 0; i < s->span_count; i++) {
        timed *t = &s->spans[i];
        float start_ms = 0.0f, stop_ms = 0.0f;
        CU_TRY(s->driver, event_elapsed(&start_ms, s->base, t->start));
        CU_TRY(s->driver, event_elapsed(&stop_ms, s->base, t->stop));
        multi_timeline_add(e->timeline, e->rank, t->lane, &t->label, s->base_us + start_ms * 1e3,
                           s->base_us + stop_ms * 1e3);
    }
    s->span_count = 0;
    s->times.used = e->tracing; /* the first event is the base */
    return RUNG_SUCCESS;
}

static rung_status gpu_collect(multi_engine *e)
{
    if (!e->tracing)
        return RUNG_SUCCESS;
    INSIDE(e, collect_inside(e));
}

/* ---- opening and closing ---- */

static void close_inside(gpu_state *s)
{
    for (int i = 0; i < WORK_LANES; i++)
        rung_context_destroy(s->products[i]);
    for (int i = 0; i < MULTI_LANES; i++)
        if (s->streams[i])
            s->driver->stream_destroy(s->streams[i]);
    free_events(s, &s->marks);
    free_events(s, &s->times);
}

static void gpu_close(multi_engine *e)
{
    gpu_state *s = state_of(e);
    if (e->stuck) /* its streams and events stay, too */
        return;
    if (multi_engine_gpu_enter(e) == RUNG_SUCCESS) {
        close_inside(s);
        multi_engine_gpu_leave(e);
    }
    free(s->spans);
    free(s);
}

static const multi_engine_ops gpu_ops = {
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .host_alloc = gpu_host_alloc,
    .host_free = gpu_host_free,
    .free_bytes = gpu_free_bytes,
    .copy = gpu_copy,
    .product = gpu_product,
    .mark = gpu_mark,
    .wait = gpu_wait,
    .reached = gpu_reached,
    .is_pinned = gpu_is_pinned,
    .begin = gpu_begin,
    .poll = gpu_poll,
    .drain = gpu_drain,
    .trace = gpu_trace,
    .collect = gpu_collect,
};

static rung_status open_inside(gpu_state *s, int device, rung_math math)
{
    /* NCCL's kernels on the lane in must find a place beside products that fill the GPU. */
    enum { HIGHEST = -100, NORMAL = 0 }; /* the driver takes the nearest that it has */
    for (int i = 0; i < MULTI_LANES; i++)
        CU_TRY(s->driver, stream_create(&s->streams[i], CU_STREAM_NON_BLOCKING, i == LANE_IN ? HIGHEST : NORMAL));
    for (int i = 0; i < WORK_LANES; i++) {
        rung_config config;
        rung_config_init(&config);
        config.device = device;
        config.math = math;
        config.pointers = RUNG_POINTERS_DEVICE;
        config.stream = s->streams[LANE_WORK + i];
        RUNG_TRY(rung_context_create(&s->products[i], &config));
    }
    return RUNG_SUCCESS;
}

rung_status multi_engine_open_gpu(multi_engine *e, int device, rung_math math)
{
    rung_gpu *gpu;
    RUNG_TRY(rung_gpu_get(device, &gpu));
    gpu_state *s = calloc(1, sizeof *s);
    if (!s)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a GPU rank's state (%zu bytes)", sizeof *s);
    s->driver = rung_gpu_driver(gpu);
    s->context = rung_gpu_context(gpu);
    s->marks.flags = CU_EVENT_DISABLE_TIMING;
    e->ops = &gpu_ops;
    e->device = device;
    e->queues = 1;
    e->state = s;
    rung_status status = multi_engine_gpu_enter(e);
    if (status == RUNG_SUCCESS) {
        status = open_inside(s, device, math);
        if (status != RUNG_SUCCESS) {
            char why[448]; /* a close that fails, too, would have its own words in this place */
            snprintf(why, sizeof why, "%s", rung_last_error());
            close_inside(s);
            rung_fail(status, "%s", why);
        }
        multi_engine_gpu_leave(e);
    }
    if (status != RUNG_SUCCESS)
        free(s);
    return status;
}

static rung_status enable_peer(gpu_state *s, gpu_state *other)
{
    CUresult result = s->driver->peer_enable(other->context, 0);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ||
        result == CUDA_ERROR_TOO_MANY_PEERS) /* over PCIe a GPU has eight: copies from others go through host memory */
        return RUNG_SUCCESS;
    return rung_driver_fail(s->driver, result, "cuCtxEnablePeerAccess");
}

rung_status multi_engine_connect_gpu(multi_engine *e, multi_engine *other)
{
    gpu_state *s = state_of(e), *o = state_of(other);
    CUdevice mine, theirs;
    int possible = 0;
    CU_TRY(s->driver, device_get(&mine, e->device));
    CU_TRY(s->driver, device_get(&theirs, other->device));
    CU_TRY(s->driver, peer_possible(&possible, mine, theirs));
    if (!possible) /* the driver then copies through host memory */
        return RUNG_SUCCESS;
    INSIDE(e, enable_peer(s, o));
}

void *multi_engine_gpu_stream(multi_engine *e, multi_lane lane)
{
    return state_of(e)->streams[lane];
}

int multi_gpu_count(void)
{
    const rung_driver *driver;
    int count = 0;
    if (rung_driver_open(&driver) != RUNG_SUCCESS || driver->device_count(&count) != CUDA_SUCCESS)
        return 0;
    return count;
}
