/* A place in a ring of stages. */
#ifndef RUNG_DEVICE_RING_H
#define RUNG_DEVICE_RING_H

#include "device/args.h"

/* A stage, and the parity of the round that its barriers are asked for. */
struct ring_place {
    int stage;
    uint32_t phase;
};

RUNG_DEVICE void ring_next(struct ring_place *at, const int stages)
{
    if (++at->stage == stages) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

#endif
