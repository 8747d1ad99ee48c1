/* The CPU as a rank's device: copies and products happen at once, so there is nothing to order. */
#include "core/context.h"
#include "multi/timeline.h"

#include <stdlib.h>
#include <string.h>

static void cpu_close(multi_engine *e)
{
    rung_context_destroy(e->state);
}

static rung_status cpu_alloc(multi_engine *e, int64_t bytes, void **memory)
{
    (void)e;
    *memory = aligned_alloc(64, ((size_t)bytes + 63) & ~(size_t)63);
    if (!*memory && bytes > 0)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %lld bytes of a rank's matrices", (long long)bytes);
    return RUNG_SUCCESS;
}

static void cpu_free(multi_engine *e, void *memory)
{
    (void)e;
    free(memory);
}

static rung_status cpu_free_bytes(multi_engine *e, int64_t *bytes)
{
    (void)e;
    *bytes = INT64_MAX / 16; /* the system refuses when it has no more */
    return RUNG_SUCCESS;
}

static void note(multi_engine *e, multi_lane lane, double start_us)
{
    if (e->tracing)
        multi_timeline_add(e->timeline, e->rank, lane, &e->label, start_us, multi_timeline_now_us(e->timeline));
}

static rung_status cpu_copy(multi_engine *e, multi_lane lane, const multi_copy *c, multi_engine *from)
{
    (void)from;
    double start_us = multi_timeline_now_us(e->timeline);
    for (int64_t i = 0; i < c->lines; i++)
        memcpy(c->to + i * c->to_ld, c->from + i * c->from_ld, (size_t)c->length * sizeof(float));
    note(e, lane, start_us);
    return RUNG_SUCCESS;
}

static rung_status cpu_product(multi_engine *e, multi_lane lane, const rung_gemm *gemm)
{
    double start_us = multi_timeline_now_us(e->timeline);
    RUNG_TRY(rung_gemm_run_in_order(e->state, gemm));
    note(e, lane, start_us);
    return RUNG_SUCCESS;
}

static rung_status cpu_mark(multi_engine *e, multi_lane lane, multi_mark *mark)
{
    (void)e, (void)lane;
    mark->event = NULL;
    return RUNG_SUCCESS;
}

static rung_status cpu_wait(multi_engine *e, multi_lane lane, multi_mark mark)
{
    (void)e, (void)lane, (void)mark;
    return RUNG_SUCCESS;
}

static int cpu_reached(multi_engine *e, multi_mark mark, rung_status *status)
{
    (void)e, (void)mark;
    *status = RUNG_SUCCESS;
    return 1;
}

static int cpu_is_pinned(multi_engine *e, const void *memory)
{
    (void)e, (void)memory;
    return 1;
}

static rung_status cpu_nothing(multi_engine *e)
{
    (void)e;
    return RUNG_SUCCESS;
}

static rung_status cpu_poll(multi_engine *e, int *done)
{
    (void)e;
    *done = 1;
    return RUNG_SUCCESS;
}

static void cpu_drain(multi_engine *e)
{
    (void)e;
}

static rung_status cpu_trace(multi_engine *e, int on, double now_us)
{
    (void)now_us;
    e->tracing = on;
    return RUNG_SUCCESS;
}

static const multi_engine_ops cpu_ops = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .host_alloc = cpu_alloc,
    .host_free = cpu_free,
    .free_bytes = cpu_free_bytes,
    .copy = cpu_copy,
    .product = cpu_product,
    .mark = cpu_mark,
    .wait = cpu_wait,
    .reached = cpu_reached,
    .is_pinned = cpu_is_pinned,
    .begin = cpu_nothing,
    .poll = cpu_poll,
    .drain = cpu_drain,
    .trace = cpu_trace,
    .collect = cpu_nothing,
};

rung_status multi_engine_open_cpu(multi_engine *e, int threads, rung_math math)
{
    rung_context *context;
    rung_config config;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = threads;
    config.math = math;
    RUNG_TRY(rung_context_create(&context, &config));
    e->ops = &cpu_ops;
    e->device = RUNG_DEVICE_CPU;
    e->state = context;
    return RUNG_SUCCESS;
}
