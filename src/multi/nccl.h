/* The NCCL transport: one GPU rank a process, device buffers, everything in the order of the engine's lane in. */
#ifndef RUNG_MULTI_NCCL_H
#define RUNG_MULTI_NCCL_H

#include "multi/multi.h"

/* Opens libnccl and replaces the transport's functions. The engine is open, and rank and size are known. */
rung_status multi_nccl_open(rung_multi *multi, multi_transport *transport);
/* Connects the ranks, once all of them have it. */
rung_status multi_nccl_connect(rung_multi *multi, multi_transport *transport);

#endif
