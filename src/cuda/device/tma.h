/* Bulk tensor copies and the barriers on which they complete (sm_90). Each function is one PTX instruction.
 * A barrier counts arrivals and bytes; when both are in, its phase ends and its parity flips. Waiting for parity p
 * returns once the phase of parity p has ended; a fresh barrier is in phase 0, so waiting for parity 1 returns at once.
 */
#ifndef RUNG_DEVICE_TMA_H
#define RUNG_DEVICE_TMA_H

#include "async.h"

#include <cuda.h>

/* The parameter of kernels fed by tensor copies. */
typedef struct rung_tma_args {
    CUtensorMap a, b;
    rung_args g;
} rung_tma_args;

/* The parameter of kernels that copy a row-major matrix to rows of another length. */
typedef struct rung_pack_args {
    const float *from;
    float *to;
    int64_t rows, columns, from_ld, to_ld;
} rung_pack_args;

#ifdef __CUDACC__

RUNG_DEVICE void rung_barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(rung_shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers known to the copy engine. */
RUNG_DEVICE void rung_barrier_publish(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

RUNG_DEVICE void rung_barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(rung_shared_address(barrier)) : "memory");
}

/* Arrives and announces bytes that copies will bring in this phase. */
RUNG_DEVICE void rung_barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(rung_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

RUNG_DEVICE void rung_barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred ended;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
                 "@!ended bra again;\n"
                 "}\n" ::"r"(rung_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Arrives once all asynchronous copies (cp.async) that this thread has started are done. */
RUNG_DEVICE void rung_barrier_arrive_after_copies(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(rung_shared_address(barrier)) : "memory");
}

/* Copies the box of the map at column x, row y to shared memory and counts on `barrier`. Outside the tensor are zeros.
 */
RUNG_DEVICE void rung_tensor_copy(void *shared, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(rung_shared_address(shared)),
        "l"(map), "r"(x), "r"(y), "r"(rung_shared_address(barrier))
        : "memory");
}

/* Moves registers between the warpgroups (4 warps) of a block; n is a constant multiple of 8. */
#define rung_registers_grow(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define rung_registers_shrink(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

#endif
#endif
