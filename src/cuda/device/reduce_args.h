/* The one argument struct of the reduce ladder, shared by host and device.
 * A kernel adds x[0 .. n - 1]; block b writes out[b], or the one result, as its file says.
 */
#ifndef RUNG_DEVICE_REDUCE_ARGS_H
#define RUNG_DEVICE_REDUCE_ARGS_H

#include "args.h"

typedef struct rung_reduce_args {
    const float *x;
    float *out;
    int64_t n;
    float *partials;  /* one a block */
    unsigned *ticket; /* zero before and after a launch: counts the blocks that are done */
    int64_t share;    /* r06: how many times 16 bytes each block adds; 0: blocks go side by side */
} rung_reduce_args;

#endif
