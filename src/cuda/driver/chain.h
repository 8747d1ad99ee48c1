/* Launches of one product that follow each other, queued as one graph: three cost the host what one does alone, and the
 * GPU goes on to the next sooner. */
#ifndef RUNG_CUDA_CHAIN_H
#define RUNG_CUDA_CHAIN_H

#include "cuda/driver/device.h"

enum {
    RUNG_CHAIN_ARGUMENT_BYTES = 1664, /* the largest argument that can be held back */
    RUNG_LINKS = 6                    /* launches of a chain, at most */
};

/* What the launches of a chain wait for. */
typedef struct rung_waits {
    int count;
    unsigned of[RUNG_LINKS]; /* bits: the launches that each waits for */
    unsigned ends;           /* bits: those that no other waits for */
} rung_waits;

/* Adds a launch; returns the bits of those that it waits for. */
unsigned rung_waits_add(rung_waits *waits, rung_chain_order order);

/* From here on launches that tell the size of their argument (rung_grid) are held back, until the end queues them in
 * order, or, without memory for that, not at all. A caller whose stream records a graph does not begin: the launches
 * are nodes of that graph (recorded.h). */
void rung_chain_begin(rung_cuda *cuda);
/* Queues what is held back or, with queue = 0, forgets it. */
rung_status rung_chain_end(rung_cuda *cuda, int queue);
void rung_chain_close(rung_cuda *cuda);

/* rung_launch calls this. Returns 1 when the launch is held back; 0 when it cannot be, and then what is held back must
 * go first. */
int rung_chain_add(rung_cuda *cuda, const CUlaunchConfig *config, CUfunction function, const void *argument,
                   unsigned bytes, rung_chain_order order);

/* Makes a launch ask for clusters of so many blocks; one asks for nothing. */
void rung_launch_in_clusters(CUlaunchConfig *config, CUlaunchAttribute *attributes, unsigned cluster);

#endif
