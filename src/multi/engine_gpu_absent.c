/* Stands in for the GPU engine in a build without nvcc. */
#include "multi/engine.h"

static rung_status absent(void)
{
    return rung_fail(RUNG_NO_DEVICE, "this build has no CUDA backend: it was made without nvcc (./dev setup --cuda)");
}

rung_status multi_engine_open_gpu(multi_engine *engine, int device, rung_math math)
{
    (void)engine, (void)device, (void)math;
    return absent();
}

rung_status multi_engine_connect_gpu(multi_engine *engine, multi_engine *other)
{
    (void)engine, (void)other;
    return absent();
}

void *multi_engine_gpu_stream(multi_engine *engine, multi_lane lane)
{
    (void)engine, (void)lane;
    return NULL;
}

rung_status multi_engine_gpu_enter(multi_engine *engine)
{
    (void)engine;
    return absent();
}

void multi_engine_gpu_leave(multi_engine *engine)
{
    (void)engine;
}

rung_status multi_engine_gpu_span(multi_engine *engine, multi_lane lane, int stops)
{
    (void)engine, (void)lane, (void)stops;
    return absent();
}

int multi_gpu_count(void)
{
    return 0;
}
