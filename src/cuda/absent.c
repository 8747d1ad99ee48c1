/* Stands in for the CUDA backend in a build without nvcc. */
#include "core/backend.h"
#include "core/status.h"

static rung_status absent_open(const rung_config *config, void **state)
{
    (void)config, (void)state;
    return rung_fail(RUNG_NO_DEVICE, "this build has no CUDA backend: it was made without nvcc (./dev setup --cuda)");
}

const rung_backend rung_cuda_backend = {.name = "CUDA", .open = absent_open};
