/* How processes of one rank each move data: a table that a transport fills. Nothing blocks: what is begun is polled
 * later. The MPI transport is a library of its own, so this header needs nothing of librung's inside. */
#ifndef RUNG_MULTI_TRANSPORT_H
#define RUNG_MULTI_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct multi_message {
    void *data;
    int64_t bytes;
    int peer; /* rank */
    int receive;
} multi_message;

enum { MULTI_WHY_BYTES = 256 };

/* Functions return 0, or a rung_status with a sentence in `why`. */
typedef struct multi_transport {
    void *state;
    int rank, size;
    int local_rank, local_size; /* this rank's place among the ranks of this host, and their number; -1, 0: unknown */
    /* begun work runs in the order of a queue, the same on all ranks; poll() says at once that it is done */
    int ordered;
    /* Messages between two ranks with one tag arrive in order. */
    int (*exchange)(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why);
    /* Sends from ranks[root] to the others listed. */
    int (*broadcast)(void *state, const int *ranks, int count, int root, void *data, int64_t bytes, int64_t tag,
                     void **pending, char *why);
    /* Asks about something begun. *done: it is finished, and the handle is gone. Else *waiting_for is a rank it waits
     * for, or -1. */
    int (*poll)(void *state, void *pending, int *done, int *waiting_for, char *why);
    /* Gives up something pending: the handle is gone, its memory may still be written. */
    void (*abandon)(void *state, void *pending);
    /* All ranks call this before broadcasts along the rows and columns of a grid, also ranks beyond it. NULL: not
     * needed. */
    int (*groups)(void *state, int rows, int cols, char *why);
    /* Gives every rank root 0's data, for starting. It may block. */
    int (*share)(void *state, void *data, int64_t bytes, char *why);
    /* says whether a fault is known; it is called while waiting. NULL: never */
    int (*check)(void *state, char *why);
    /* Ends, after a fault, what is begun, so that nothing queued behind it waits for ever. NULL: not needed. */
    void (*stop)(void *state);
    void (*close)(void *state, int failed);
} multi_transport;

/* This is what librung_mpi.so exports. communicator: an MPI_Comm * or NULL. */
#define MULTI_MPI_SYMBOL "rung_mpi_transport_open"
typedef int multi_mpi_open_function(multi_transport *transport, void *communicator, char *why);

#endif
