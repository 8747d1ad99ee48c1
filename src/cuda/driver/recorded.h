/* Launches of one product that a graph of the program's records: nodes of that graph which wait for each other as a
 * chain's launches do (chain.h). */
#ifndef RUNG_CUDA_RECORDED_H
#define RUNG_CUDA_RECORDED_H

#include "cuda/driver/device.h"

/* From here on launches wait for what their order says, until the end, after which the stream goes on behind all of
 * them. Where the driver does not tell, they wait for one another, as recorded launches do. */
void rung_recorded_begin(rung_cuda *cuda);
rung_status rung_recorded_end(rung_cuda *cuda);
void rung_recorded_close(rung_cuda *cuda);

/* rung_launch calls these before and after a launch. `moved` becomes 1 where it does not wait for the one before it, or
 * not for that one alone: then it may not overlap with its end. */
rung_status rung_recorded_before(rung_cuda *cuda, rung_chain_order order, int *moved);
rung_status rung_recorded_after(rung_cuda *cuda);

#endif
