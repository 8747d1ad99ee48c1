/* The NCCL transport: one GPU rank a process, device buffers, everything in the order of the engine's lane in. */
#ifndef RUNG_MULTI_NCCL_H
#define RUNG_MULTI_NCCL_H

#include "multi/multi.h"

/* Rank, size and control connection are there, and so is the engine. Replaces the transport's functions. */
rung_status multi_nccl_open(rung_multi *multi, multi_transport *transport);

#endif
