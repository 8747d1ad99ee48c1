/* The MPI transport, a library of its own that is opened by name at run time, so that librung needs no MPI. Messages
 * are point-to-point and never waited for here. A broadcast is a chain: each rank passes segments on to the next as
 * they come, so that every link carries the data once and all links work at the same time. */
#include "multi/transport.h"
#include "rung.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES = 1 << 20, MESSAGE_FLOATS = 1 << 28 };

typedef struct mpi_state {
    MPI_Comm comm;
    int tag_limit;
} mpi_state;

/* Something under way. Each receive that is passed on has a segment of `data`. */
typedef struct mpi_pending {
    MPI_Request *requests;
    int count;
    int *peers;
    /* a link of a chain: the receives are requests[0 ... segments), the sends come after them */
    char *data;
    int64_t bytes;
    int segments, sent, next, tag;
} mpi_pending;

static int failed_ever;

static int fail(char *why, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(why, MULTI_WHY_BYTES, "%s failed: %.180s", call, text);
    return RUNG_DEVICE_ERROR;
}

static int no_memory(char *why)
{
    snprintf(why, MULTI_WHY_BYTES, "no memory for a list of MPI requests");
    return RUNG_OUT_OF_MEMORY;
}

#define MPI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != MPI_SUCCESS)                                                                                      \
            return fail(why, code_, #call);                                                                            \
    } while (0)

static void drop(mpi_pending *p)
{
    if (!p)
        return;
    free(p->requests);
    free(p->peers);
    free(p);
}

static mpi_pending *pending_new(int64_t requests)
{
    mpi_pending *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->requests = malloc((size_t)(requests + 1) * sizeof *p->requests);
    p->peers = malloc((size_t)(requests + 1) * sizeof *p->peers);
    for (int64_t i = 0; p->requests && i < requests; i++)
        p->requests[i] = MPI_REQUEST_NULL;
    if (p->requests && p->peers)
        return p;
    drop(p);
    return NULL;
}

static int tag_of(const mpi_state *s, int64_t tag)
{
    return (int)(tag % s->tag_limit);
}

static int64_t pieces_of(int64_t bytes, int64_t largest)
{
    return (bytes + largest - 1) / largest;
}

static int start_message(const mpi_state *s, mpi_pending *p, const multi_message *m, int tag, char *why)
{
    int64_t floats = m->bytes / 4;
    for (int64_t at = 0; at < floats; at += MESSAGE_FLOATS) {
        int now = (int)(floats - at < MESSAGE_FLOATS ? floats - at : MESSAGE_FLOATS);
        float *data = (float *)m->data + at;
        p->peers[p->count] = m->peer;
        MPI_Request *request = &p->requests[p->count++];
        if (m->receive)
            MPI_TRY(MPI_Irecv(data, now, MPI_FLOAT, m->peer, tag, s->comm, request));
        else
            MPI_TRY(MPI_Isend(data, now, MPI_FLOAT, m->peer, tag, s->comm, request));
    }
    return 0;
}

static int mpi_exchange(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why)
{
    const mpi_state *s = state;
    int64_t requests = 0;
    for (int i = 0; i < count; i++)
        requests += pieces_of(messages[i].bytes, 4 * (int64_t)MESSAGE_FLOATS);
    mpi_pending *p = pending_new(requests);
    if (!p)
        return no_memory(why);
    p->next = -1;
    int result = 0;
    for (int receives = 1; receives >= 0; receives--) /* receives come first, so that what arrives finds its place */
        for (int i = 0; i < count && !result; i++)
            if (messages[i].receive == receives)
                result = start_message(s, p, &messages[i], tag_of(s, tag), why);
    *pending = p;
    return result;
}

/* Sends segment i of a chain to the next rank. */
static int pass_on(const mpi_state *s, mpi_pending *p, int i, char *why)
{
    int64_t at = (int64_t)i * SEGMENT_BYTES, bytes = p->bytes - at < SEGMENT_BYTES ? p->bytes - at : SEGMENT_BYTES;
    p->peers[p->count] = p->next;
    MPI_TRY(MPI_Isend(p->data + at, (int)bytes, MPI_BYTE, p->next, p->tag, s->comm, &p->requests[p->count++]));
    return 0;
}

static int mpi_broadcast(void *state, const int *ranks, int count, int root, void *data, int64_t bytes, int64_t tag,
                         void **pending, char *why)
{
    const mpi_state *s = state;
    int me, at = 0, segments = (int)pieces_of(bytes, SEGMENT_BYTES);
    MPI_TRY(MPI_Comm_rank(s->comm, &me));
    while (ranks[at] != me)
        at++;
    int place = (at - root + count) % count;
    mpi_pending *p = pending_new(2 * (int64_t)segments);
    if (!p)
        return no_memory(why);
    *pending = p;
    p->data = data;
    p->bytes = bytes;
    p->tag = tag_of(s, tag);
    p->next = place + 1 < count ? ranks[(at + 1) % count] : -1;
    if (place == 0) {
        for (int i = 0; i < segments; i++) {
            int result = pass_on(s, p, i, why);
            if (result)
                return result;
        }
        return 0;
    }
    p->segments = segments;
    int from = ranks[(at - 1 + count) % count];
    for (int i = 0; i < segments; i++) {
        int64_t offset = (int64_t)i * SEGMENT_BYTES, left = bytes - offset;
        p->peers[p->count] = from;
        MPI_TRY(MPI_Irecv(p->data + offset, (int)(left < SEGMENT_BYTES ? left : SEGMENT_BYTES), MPI_BYTE, from, p->tag,
                          s->comm, &p->requests[p->count++]));
    }
    return 0;
}

/* Passes on the segments that are there; they come in order. */
static int relay(const mpi_state *s, mpi_pending *p, char *why)
{
    int there = 1;
    while (p->next >= 0 && p->sent < p->segments && there) {
        MPI_TRY(MPI_Test(&p->requests[p->sent], &there, MPI_STATUS_IGNORE));
        if (there) {
            int result = pass_on(s, p, p->sent++, why);
            if (result)
                return result;
        }
    }
    return 0;
}

/* Asks about one request after the other: MPI_Testall would not say which of them it waits for. Segments that have come
 * meanwhile are passed on, too. */
static int mpi_poll(void *state, void *pending, int *done, int *waiting_for, char *why)
{
    mpi_pending *p = pending;
    int there;
    do {
        int result = relay(state, p, why);
        if (result)
            return result;
        there = 1;
        for (int i = 0; i < p->count && there; i++) {
            MPI_TRY(MPI_Test(&p->requests[i], &there, MPI_STATUS_IGNORE));
            *waiting_for = p->peers[i];
        }
    } while (there && p->next >= 0 && p->sent < p->segments);
    *done = there;
    if (there)
        drop(p);
    return 0;
}

/* Gives up something pending. MPI may still touch the memory of its requests, so that memory stays; only lists of a
 * finished part could be freed. */
static void mpi_abandon(void *state, void *pending)
{
    (void)state, (void)pending;
    failed_ever = 1;
}

static int mpi_share(void *state, void *data, int64_t bytes, char *why)
{
    const mpi_state *s = state;
    MPI_TRY(MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, s->comm));
    return 0;
}

static void mpi_close(void *state, int failed)
{
    mpi_state *s = state;
    int over = 0;
    MPI_Finalized(&over); /* then the program has ended MPI, and the communicator with it */
    if (failed)
        failed_ever = 1;
    else if (!over)
        MPI_Comm_free(&s->comm);
    free(s);
}

/* Ends MPI where it was started here, but not after a fault: it would wait for the dead. */
static void finalize(void)
{
    int over = 0;
    MPI_Finalized(&over);
    if (!over && !failed_ever)
        MPI_Finalize();
}

static int start(char *why)
{
    int up = 0, over = 0, given;
    MPI_TRY(MPI_Initialized(&up));
    MPI_TRY(MPI_Finalized(&over));
    if (over) {
        snprintf(why, MULTI_WHY_BYTES, "MPI_Finalize was called before: MPI cannot be used again");
        return RUNG_INVALID_ARGUMENT;
    }
    if (up)
        return 0;
    MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given));
    atexit(finalize);
    return 0;
}

static int place_on_host(multi_transport *t, MPI_Comm host, char *why)
{
    MPI_TRY(MPI_Comm_rank(host, &t->local_rank));
    MPI_TRY(MPI_Comm_size(host, &t->local_size));
    return 0;
}

static int describe(multi_transport *t, mpi_state *s, char *why)
{
    MPI_Comm host;
    int *limit, found;
    MPI_TRY(MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN));
    MPI_TRY(MPI_Comm_rank(s->comm, &t->rank));
    MPI_TRY(MPI_Comm_size(s->comm, &t->size));
    MPI_TRY(MPI_Comm_split_type(s->comm, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &host));
    const int result = place_on_host(t, host, why), code = MPI_Comm_free(&host);
    if (result)
        return result;
    if (code != MPI_SUCCESS)
        return fail(why, code, "MPI_Comm_free");
    MPI_TRY(MPI_Comm_get_attr(s->comm, MPI_TAG_UB, (void *)&limit, &found));
    s->tag_limit = found ? *limit : 32767;
    return 0;
}

__attribute__((visibility("default"))) int rung_mpi_transport_open(multi_transport *t, void *communicator, char *why);

int rung_mpi_transport_open(multi_transport *t, void *communicator, char *why)
{
    int result = start(why);
    if (result)
        return result;
    mpi_state *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory(why);
    int code = MPI_Comm_dup(communicator ? *(MPI_Comm *)communicator : MPI_COMM_WORLD, &s->comm);
    result = code == MPI_SUCCESS ? describe(t, s, why) : fail(why, code, "MPI_Comm_dup");
    if (result) {
        if (code == MPI_SUCCESS)
            MPI_Comm_free(&s->comm); /* no message was sent in it, so nothing is waited for */
        free(s);
        return result;
    }
    t->state = s;
    t->exchange = mpi_exchange;
    t->broadcast = mpi_broadcast;
    t->poll = mpi_poll;
    t->abandon = mpi_abandon;
    t->share = mpi_share;
    t->close = mpi_close;
    return 0;
}
