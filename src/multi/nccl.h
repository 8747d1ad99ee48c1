/* The NCCL transport: one GPU rank a process, device buffers, everything in the order of the engine's lane in. */
#ifndef RUNG_MULTI_NCCL_H
#define RUNG_MULTI_NCCL_H

#include "multi/multi.h"

/* The engine is open, rank and size are known. Opens libnccl and replaces the transport's functions. */
rung_status multi_nccl_open(rung_multi *multi, multi_transport *transport);
/* Once all ranks have it: connects them. */
rung_status multi_nccl_connect(rung_multi *multi, multi_transport *transport);

#endif
