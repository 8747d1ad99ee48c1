/* The NCCL transport is not there yet: what is missing is said, nothing else happens. */
#include "multi/nccl.h"

rung_status multi_nccl_open(rung_multi *multi, multi_transport *transport)
{
    (void)multi, (void)transport;
    return rung_fail(RUNG_UNSUPPORTED, "this version has no NCCL transport: the GPUs of one process are reached by the "
                                       "local transport, other processes by MPI on their CPUs");
}
