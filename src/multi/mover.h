/* Moves rectangles between ranks: directly within a process; between processes they are packed into one message for
 * each pair of ranks. Every process adds the pieces that concern it in the same order. */
#ifndef RUNG_MULTI_MOVER_H
#define RUNG_MULTI_MOVER_H

#include "multi/multi.h"

typedef struct mover_message {
    int peer, receive;
    int64_t floats;
    multi_buffer buffer;
    multi_copy *pieces;
    int count, capacity;
} mover_message;

typedef struct multi_mover {
    mover_message *messages;
    int count, capacity;
    void *pending;
} multi_mover;

/* Adds a copy. copy.from needs to be right where `from` is held, copy.to where `to` is. Within a process it is copied
 * at once, on the lane in of `to`. */
rung_status multi_mover_add(rung_multi *multi, multi_mover *mover, int from, int to, const multi_copy *copy);
/* Packs the pieces and begins to send them. */
rung_status multi_mover_begin(rung_multi *multi, multi_mover *mover, int64_t tag);
/* Asks how far it is. *done is set once everything has arrived and is unpacked. */
rung_status multi_mover_poll(rung_multi *multi, multi_mover *mover, int *done, int *waiting_for);
/* Waits until everything has arrived. */
rung_status multi_mover_finish(rung_multi *multi, multi_mover *mover, const char *what);
/* Forgets the pieces, keeps the memory. */
void multi_mover_reset(multi_mover *mover);
void multi_mover_free(rung_multi *multi, multi_mover *mover);

#endif
