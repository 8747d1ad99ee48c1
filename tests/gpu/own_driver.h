/* What tests with a driver of their own have in place of src/cuda/driver/driver.c: how often calls that a recording
 * would refuse are allowed just now, and a failure without words. */
#ifndef TESTS_GPU_OWN_DRIVER_H
#define TESTS_GPU_OWN_DRIVER_H

#include "cuda/driver/device.h"

static int relaxed;

rung_thread_mode rung_driver_relax(const rung_driver *d)
{
    (void)d;
    relaxed++;
    return (rung_thread_mode){.changed = 1};
}

void rung_driver_put_back(const rung_driver *d, rung_thread_mode mode)
{
    (void)d;
    relaxed -= mode.changed;
}

rung_status rung_driver_fail(const rung_driver *d, CUresult result, const char *call)
{
    (void)d, (void)call;
    return result == CUDA_SUCCESS ? RUNG_SUCCESS : RUNG_DEVICE_ERROR;
}

#endif
