#include "multi/nccl.h"
rung_status multi_nccl_open(rung_multi *multi, multi_transport *transport)
{
    (void)multi, (void)transport;
    return rung_fail(RUNG_UNSUPPORTED, "not yet");
}
