/* A GPU as a rank's device, in front of a driver of the test's own: what is copied is what was asked for, however many
 * floats that are, each call stands on its lane's stream, with its GPU's context, which is not left behind; every call
 * fails once, and its failure comes back; a traced call is one span, between two events of its stream. */
#include "../gpu/own_driver.h"

#include "multi/clock.h"
#include "multi/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 4096, TRIALS = 3000 };

static uint64_t dice = 3;

static int below(int count)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)count);
}

/* ---- the driver ---- */

static CUcontext own = (CUcontext)0x100, others = (CUcontext)0x200, current;
static int depth, calls, fails_at, events_made, events_alive, streams_alive, freed, host_freed, records;
static int recorded_at[EVENTS];                        /* each event, by the number of the record */
static CUstream recorded_on[16 * EVENTS], last_stream; /* each record */

/* What the last copy moved: lines of bytes. */
static struct moved {
    uint64_t from, to, from_pitch, to_pitch, bytes, lines;
    CUcontext from_context, to_context;
    int from_host, to_host;
} moved;

static CUresult next_call(void)
{
    return ++calls == fails_at ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult inside(CUstream stream)
{
    assert_ptr_equal(current, own);
    last_stream = stream;
    return next_call();
}

static CUresult context_current(CUcontext *context)
{
    *context = current;
    return next_call();
}

static CUcontext below_current;

static CUresult context_push(CUcontext context)
{
    CUresult result = next_call();
    if (result == CUDA_SUCCESS) {
        depth++;
        below_current = current;
        current = context;
    }
    return result;
}

static CUresult context_pop(CUcontext *context)
{
    depth--;
    *context = current;
    current = below_current;
    return CUDA_SUCCESS;
}

static CUresult note_flat(uint64_t to, uint64_t from, size_t bytes, CUstream stream, struct moved at)
{
    at.to = to, at.from = from, at.bytes = bytes, at.lines = 1;
    moved = at;
    return inside(stream);
}

static CUresult copy_to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return note_flat(to, (uintptr_t)from, bytes, stream, (struct moved){.from_host = 1});
}

static CUresult copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return note_flat((uintptr_t)to, from, bytes, stream, (struct moved){.to_host = 1});
}

static CUresult copy_on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return note_flat(to, from, bytes, stream, (struct moved){.from_host = 0});
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                          CUstream stream)
{
    return note_flat(to, from, bytes, stream, (struct moved){.from_context = from_context, .to_context = to_context});
}

static CUresult copy_peer_3d(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
    assert_int_equal(c->Depth, 1);
    assert_true(c->srcMemoryType == CU_MEMORYTYPE_DEVICE && c->dstMemoryType == CU_MEMORYTYPE_DEVICE);
    moved = (struct moved){.from = c->srcDevice,
                           .to = c->dstDevice,
                           .from_pitch = c->srcPitch,
                           .to_pitch = c->dstPitch,
                           .bytes = c->WidthInBytes,
                           .lines = c->Height,
                           .from_context = c->srcContext,
                           .to_context = c->dstContext};
    return inside(stream);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream)
{
    moved = (struct moved){.from_pitch = c->srcPitch,
                           .to_pitch = c->dstPitch,
                           .bytes = c->WidthInBytes,
                           .lines = c->Height,
                           .from_host = c->srcMemoryType == CU_MEMORYTYPE_HOST,
                           .to_host = c->dstMemoryType == CU_MEMORYTYPE_HOST};
    moved.from = moved.from_host ? (uintptr_t)c->srcHost : c->srcDevice;
    moved.to = moved.to_host ? (uintptr_t)c->dstHost : c->dstDevice;
    return inside(stream);
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    assert_int_equal(priority != 0, streams_alive == LANE_IN); /* what comes in finds a place beside products */
    *stream = (CUstream)(uintptr_t)(16 * ++streams_alive);
    return inside(*stream);
}

static CUresult stream_destroy(CUstream stream)
{
    assert_non_null(stream);
    streams_alive--;
    return CUDA_SUCCESS;
}

static CUresult stream_wait(CUstream stream, CUevent event, unsigned flags)
{
    assert_true(event && flags == 0);
    return inside(stream);
}

static CUresult event_create(CUevent *event, unsigned flags)
{
    (void)flags;
    CUresult result = next_call();
    if (result == CUDA_SUCCESS) {
        assert_true(++events_made < EVENTS);
        events_alive++;
        *event = (CUevent)(uintptr_t)events_made;
    }
    return result;
}

static CUresult event_destroy(CUevent event)
{
    assert_non_null(event);
    events_alive--;
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    assert_true(++records < 16 * EVENTS);
    recorded_at[(uintptr_t)event] = records;
    recorded_on[records] = stream;
    return inside(stream);
}

static CUresult event_synchronize(CUevent event)
{
    assert_non_null(event);
    return next_call();
}

/* The time is how often an event was recorded by then. */
static CUresult event_elapsed(float *ms, CUevent start, CUevent stop)
{
    *ms = (float)(recorded_at[(uintptr_t)stop] - recorded_at[(uintptr_t)start]);
    return next_call();
}

static CUresult memory_free(CUdeviceptr at)
{
    (void)at;
    freed++;
    return inside(NULL);
}

static CUresult host_free(void *at)
{
    (void)at;
    host_freed++;
    return inside(NULL);
}

static const rung_driver table = {.context_current = context_current,
                                  .context_push = context_push,
                                  .context_pop = context_pop,
                                  .copy_to_device = copy_to_device,
                                  .copy_to_host = copy_to_host,
                                  .copy_on_device = copy_on_device,
                                  .copy_peer = copy_peer,
                                  .copy_peer_3d = copy_peer_3d,
                                  .copy_2d = copy_2d,
                                  .stream_create = stream_create,
                                  .stream_destroy = stream_destroy,
                                  .stream_wait = stream_wait,
                                  .event_create = event_create,
                                  .event_destroy = event_destroy,
                                  .event_record = event_record,
                                  .event_synchronize = event_synchronize,
                                  .event_elapsed = event_elapsed,
                                  .memory_free = memory_free,
                                  .host_free = host_free};

/* ---- what else the engine asks for ---- */

rung_status rung_driver_open(const rung_driver **driver)
{
    *driver = &table;
    return RUNG_SUCCESS;
}

const rung_driver *rung_gpu_driver(const rung_gpu *gpu)
{
    (void)gpu;
    return &table;
}

rung_status rung_gpu_get(int index, rung_gpu **gpu)
{
    (void)index;
    *gpu = NULL;
    return RUNG_SUCCESS;
}

static int opening; /* the engine whose context is asked for: the first one's is `own` */

CUcontext rung_gpu_context(const rung_gpu *gpu)
{
    (void)gpu;
    return opening ? others : own;
}

static int contexts;

rung_status rung_context_create(rung_context **context, const rung_config *config)
{
    assert_ptr_equal(config->stream, (void *)(uintptr_t)(16 * (LANE_WORK + contexts % WORK_LANES + 1)));
    assert_int_equal(config->pointers, RUNG_POINTERS_DEVICE);
    contexts++;
    *context = (rung_context *)(uintptr_t)contexts;
    return next_call() == CUDA_SUCCESS ? RUNG_SUCCESS : RUNG_OUT_OF_MEMORY;
}

void rung_context_destroy(rung_context *context)
{
    contexts -= context != NULL;
}

rung_status rung_gemm_run_in_order(rung_context *context, const rung_gemm *gemm); /* core/context.h has it */

rung_status rung_gemm_run_in_order(rung_context *context, const rung_gemm *gemm)
{
    (void)gemm;
    return inside((CUstream)(uintptr_t)(16 * (LANE_WORK + (uintptr_t)context))) == CUDA_SUCCESS ? RUNG_SUCCESS
                                                                                                : RUNG_DEVICE_ERROR;
}

double multi_now_s(void)
{
    return 1.0;
}

static struct span {
    int rank, panel;
    multi_lane lane;
    double start_us, stop_us;
} spans[EVENTS];
static int span_count;

void multi_timeline_add(multi_timeline *t, int rank, multi_lane lane, const multi_label *label, double start_us,
                        double stop_us)
{
    (void)t;
    spans[span_count++] = (struct span){rank, label->panel, lane, start_us, stop_us};
}

/* ---- the tests ---- */

static multi_engine first, second;

static void open_both(void)
{
    memset(&first, 0, sizeof first), memset(&second, 0, sizeof second);
    calls = fails_at = depth = events_made = events_alive = streams_alive = contexts = span_count = records = 0;
    current = NULL;
    first.rank = 7;
    opening = 1;
    own = (CUcontext)0x200; /* while the other one's is made */
    assert_int_equal(multi_engine_open_gpu(&second, 1, RUNG_STRICT), RUNG_SUCCESS);
    own = (CUcontext)0x100;
    opening = streams_alive = contexts = 0;
    assert_int_equal(multi_engine_open_gpu(&first, 0, RUNG_STRICT), RUNG_SUCCESS);
    assert_true(depth == 0 && streams_alive == MULTI_LANES && contexts == WORK_LANES);
}

static void close_both(void)
{
    first.ops->close(&first);
    assert_true(depth == 0 && streams_alive == 0 && contexts == 0 && events_alive == 0);
    own = (CUcontext)0x200, streams_alive = MULTI_LANES;
    second.ops->close(&second);
    own = (CUcontext)0x100;
}

static int64_t draw_length(void)
{
    static const int64_t some[] = {
        1, 2, 3, 4, 129, 1 << 16, 1 << 20, (int64_t)1 << 30, ((int64_t)1 << 31) + 5, (int64_t)1 << 33};
    return some[below(10)];
}

static void copies_are_what_was_asked_for(void **state)
{
    (void)state;
    open_both();
    for (int trial = 0; trial < TRIALS; trial++) {
        const int from_other = below(3) == 0, from_host = !from_other && below(3) == 0,
                  to_host = !from_other && !from_host && below(3) == 0;
        multi_copy c = {.from = (const float *)(uintptr_t)0x10000,
                        .to = (float *)(uintptr_t)0x90000000,
                        .length = draw_length(),
                        .lines = below(3) ? draw_length() : 1,
                        .from_host = from_host,
                        .to_host = to_host};
        if (c.lines > 1 && c.length > ((int64_t)1 << 40) / c.lines) /* more than there is memory */
            c.lines = 2;
        c.from_ld = c.length + (below(2) ? below(5) : 0), c.to_ld = c.length + (below(2) ? below(5) : 0);
        const multi_lane lane = (multi_lane)below(MULTI_LANES);
        const int flat = c.lines == 1 || (c.from_ld == c.length && c.to_ld == c.length);
        memset(&moved, 0, sizeof moved);
        current = (CUcontext[]){own, others, NULL}[below(3)];
        const CUcontext before = current;
        assert_int_equal(first.ops->copy(&first, lane, &c, from_other ? &second : NULL), RUNG_SUCCESS);
        assert_true(current == before && depth == 0);
        assert_ptr_equal(last_stream, (CUstream)(uintptr_t)(16 * (lane + 1)));
        assert_true(moved.from == 0x10000 && moved.to == 0x90000000);
        assert_true(moved.from_host == from_host && moved.to_host == to_host);
        if (from_other)
            assert_true(moved.from_context == others && moved.to_context == own);
        assert_true(moved.bytes * moved.lines == (uint64_t)c.length * (uint64_t)c.lines * 4);
        if (moved.lines > 1) {
            assert_true(!flat || c.lines == (int64_t)moved.lines);
            assert_true(moved.bytes == (uint64_t)c.length * 4);
            assert_true(moved.from_pitch == (uint64_t)c.from_ld * 4 && moved.to_pitch == (uint64_t)c.to_ld * 4);
        } else
            assert_true(flat);
    }
    close_both();
}

/* Each call that the driver is asked for fails, from the first on, until all of this goes through. */
static void failures_come_back(void **state)
{
    (void)state;
    int failing = 0, went_through = 0;
    open_both();
    first.ops->trace(&first, 1, 0.0);
    while (!went_through) {
        const multi_copy c = {
            .from = (const float *)16, .to = (float *)32, .from_ld = 5, .to_ld = 6, .length = 4, .lines = 3};
        const rung_gemm gemm = {.m = 1};
        multi_mark mark = {NULL};
        rung_status status = RUNG_SUCCESS;
        int done = 0;
        calls = 0, fails_at = ++failing;
        while (done < 4 && status == RUNG_SUCCESS) {
            status = done == 0   ? first.ops->copy(&first, LANE_OUT, &c, NULL)
                     : done == 1 ? first.ops->product(&first, LANE_WORK + 1, &gemm)
                     : done == 2 ? first.ops->mark(&first, LANE_IN, &mark)
                                 : first.ops->wait(&first, LANE_SPREAD, mark);
            done++;
        }
        went_through = calls < fails_at;
        assert_true((status == RUNG_SUCCESS) == went_through);
        assert_true(depth == 0 && current == NULL);
        fails_at = 0;
        assert_int_equal(first.ops->begin(&first), RUNG_SUCCESS);
        first.ops->trace(&first, 1, 0.0);
    }
    assert_true(failing > 12);
    close_both();
}

static void traced_calls_are_spans(void **state)
{
    (void)state;
    const multi_copy c = {
        .from = (const float *)16, .to = (float *)32, .from_ld = 4, .to_ld = 4, .length = 4, .lines = 1};
    enum { COUNT = 150 }; /* more than the first room for spans */
    multi_lane lanes[COUNT];
    open_both();
    assert_int_equal(first.ops->copy(&first, LANE_IN, &c, NULL), RUNG_SUCCESS);
    assert_int_equal(first.ops->collect(&first), RUNG_SUCCESS);
    assert_int_equal(span_count, 0); /* nobody traces */
    assert_int_equal(first.ops->trace(&first, 1, 5000.0), RUNG_SUCCESS);
    double before_us = 5000.0; /* the base's */
    const int base = records;
    for (int round = 0; round < 3; round++) {
        span_count = 0;
        for (int i = 0; i < COUNT; i++) {
            lanes[i] = (multi_lane)below(MULTI_LANES);
            first.label.panel = i;
            assert_int_equal(first.ops->copy(&first, lanes[i], &c, NULL), RUNG_SUCCESS);
        }
        assert_int_equal(first.ops->collect(&first), RUNG_SUCCESS);
        assert_int_equal(span_count, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const int start = base + (int)((spans[i].start_us - 5000.0) / 1e3 + 0.5);
            assert_true(spans[i].rank == 7 && spans[i].panel == i && spans[i].lane == lanes[i]);
            assert_true(spans[i].stop_us == spans[i].start_us + 1e3);
            assert_true(recorded_on[start] == (CUstream)(uintptr_t)(16 * (lanes[i] + 1)) &&
                        recorded_on[start + 1] == recorded_on[start]);
            assert_true(spans[i].start_us == before_us + 1e3); /* a round goes on where the last one ended */
            before_us = spans[i].stop_us;
        }
    }
    assert_int_equal(first.ops->trace(&first, 0, 0.0), RUNG_SUCCESS);
    assert_int_equal(first.ops->copy(&first, LANE_IN, &c, NULL), RUNG_SUCCESS);
    span_count = 0;
    assert_int_equal(first.ops->collect(&first), RUNG_SUCCESS);
    assert_int_equal(span_count, 0);
    close_both();
}

static void a_stuck_gpu_keeps_its_memory(void **state)
{
    (void)state;
    open_both();
    freed = host_freed = 0;
    first.ops->free(&first, (void *)16);
    first.ops->host_free(&first, (void *)16);
    assert_true(freed == 1 && host_freed == 1);
    first.stuck = 1;
    first.ops->free(&first, (void *)16);
    first.ops->host_free(&first, (void *)16);
    first.ops->close(&first);
    assert_true(freed == 1 && host_freed == 1 && streams_alive == MULTI_LANES);
    first.stuck = 0;
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_what_was_asked_for),
        cmocka_unit_test(failures_come_back),
        cmocka_unit_test(traced_calls_are_spans),
        cmocka_unit_test(a_stuck_gpu_keeps_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
