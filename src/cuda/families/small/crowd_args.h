/* What a crowd's kernels (families/small/crowd.inc) and their launcher both know. */
#ifndef RUNG_DEVICE_CROWD_ARGS_H
#define RUNG_DEVICE_CROWD_ARGS_H

enum {
    RUNG_CROWD_PITCH = 36, /* floats from one of 32 results' row to the next, on their way out through shared memory */
    RUNG_CROWD_LOADS = 24  /* parts of k that take a thread more loads than these are added by several blocks */
};

#endif
