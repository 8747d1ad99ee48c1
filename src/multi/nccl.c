/* The NCCL transport. libnccl is opened at run time; only the calls below are used, and they are declared here.
 * Communicators do not block: whatever NCCL has to wait for is polled beside the control connection and the time limit.
 * A fault aborts them, which ends what is queued on the GPU. */
#include "multi/nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_FLOAT = 7,
    NCCL_NO_COLOR = -1,
    NCCL_OLDEST = 21700,
    MOST_GRIDS = 16
};

typedef struct nccl_comm nccl_comm;

typedef struct nccl_id {
    char bytes[128];
} nccl_id;

/* This is the struct as of NCCL 2.17; later versions read no further than `size`. */
typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster, least_blocks, most_blocks;
    const char *network;
    int share;
} nccl_config;

#define NCCL_CALLS(X)                                                                                                  \
    X(int, version, "ncclGetVersion", (int *))                                                                         \
    X(const char *, error_string, "ncclGetErrorString", (int))                                                         \
    X(int, unique_id, "ncclGetUniqueId", (nccl_id *))                                                                  \
    X(int, init, "ncclCommInitRankConfig", (nccl_comm **, int, nccl_id, int, nccl_config *))                           \
    X(int, split, "ncclCommSplit", (nccl_comm *, int, int, nccl_comm **, nccl_config *))                               \
    X(int, async_error, "ncclCommGetAsyncError", (nccl_comm *, int *))                                                 \
    X(int, finalize, "ncclCommFinalize", (nccl_comm *))                                                                \
    X(int, destroy, "ncclCommDestroy", (nccl_comm *))                                                                  \
    X(int, abort, "ncclCommAbort", (nccl_comm *))                                                                      \
    X(int, group_start, "ncclGroupStart", (void))                                                                      \
    X(int, group_end, "ncclGroupEnd", (void))                                                                          \
    X(int, send, "ncclSend", (const void *, size_t, int, int, nccl_comm *, void *))                                    \
    X(int, receive, "ncclRecv", (void *, size_t, int, int, nccl_comm *, void *))                                       \
    X(int, broadcast, "ncclBroadcast", (const void *, void *, size_t, int, int, nccl_comm *, void *))

typedef struct nccl_calls {
#define X(type, name, symbol, signature) type(*name) signature;
    NCCL_CALLS(X)
#undef X
} nccl_calls;

/* The groups of one grid that this rank is in; NULL: it is alone there, or beyond the grid. */
typedef struct nccl_grid {
    int rows, cols;
    nccl_comm *row, *col;
} nccl_grid;

typedef struct nccl_state {
    nccl_calls calls;
    rung_multi *multi;
    multi_transport start; /* what started the ranks: MPI, or nothing */
    nccl_comm *all;
    nccl_grid grids[MOST_GRIDS];
    int grid_count, grid; /* grid: the one whose groups are in use */
    int stopped;
} nccl_state;

static int refuse(const nccl_state *s, int result, const char *call, char *why)
{
    snprintf(why, MULTI_WHY_BYTES, "%s failed: %s", call, s->calls.error_string(result));
    return RUNG_DEVICE_ERROR;
}

/* Asks until the communicator's last call is done. It goes on by itself, whether it said so or not (ncclCommSplit does
 * not). */
static int settle(nccl_state *s, nccl_comm *comm, int result, const char *call, char *why)
{
    multi_deadline deadline = multi_deadline_start(s->multi);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        return refuse(s, result, call, why);
    for (;;) {
        int asked = s->calls.async_error(comm, &result);
        if (asked != NCCL_SUCCESS)
            return refuse(s, asked, "ncclCommGetAsyncError", why);
        if (result != NCCL_IN_PROGRESS)
            return result == NCCL_SUCCESS ? 0 : refuse(s, result, call, why);
        rung_status status = multi_wait_turn(s->multi, &deadline, call, -1);
        if (status != RUNG_SUCCESS) {
            snprintf(why, MULTI_WHY_BYTES, "%.*s", MULTI_WHY_BYTES - 1, rung_last_error());
            return (int)status;
        }
    }
}

static void *stream_of(const nccl_state *s)
{
    return multi_engine_gpu_stream(&s->multi->engines[0], LANE_IN);
}

/* ---- messages: queued on the lane in ---- */

static int queue_messages(nccl_state *s, const multi_message *messages, int count)
{
    int result = s->calls.group_start();
    for (int i = 0; i < count && result == NCCL_SUCCESS; i++) {
        const multi_message *m = &messages[i];
        size_t floats = (size_t)m->bytes / 4;
        result = m->receive ? s->calls.receive(m->data, floats, NCCL_FLOAT, m->peer, s->all, stream_of(s))
                            : s->calls.send(m->data, floats, NCCL_FLOAT, m->peer, s->all, stream_of(s));
    }
    int ended = s->calls.group_end();
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? ended : result;
}

static int enter(nccl_state *s, char *why)
{
    rung_status status = s->stopped ? RUNG_DEVICE_ERROR : multi_engine_gpu_enter(&s->multi->engines[0]);
    if (status != RUNG_SUCCESS)
        snprintf(why, MULTI_WHY_BYTES, "%.*s", MULTI_WHY_BYTES - 1,
                 s->stopped ? "the NCCL communicator was aborted" : rung_last_error());
    return (int)status;
}

/* The GPU is current between the two; what is queued there is a span of the timeline. */
static int begin(nccl_state *s, char *why)
{
    multi_engine *e = &s->multi->engines[0];
    int failed = enter(s, why);
    if (failed)
        return failed;
    rung_status status = multi_engine_gpu_span_start(e, LANE_IN);
    if (status != RUNG_SUCCESS) {
        snprintf(why, MULTI_WHY_BYTES, "%.*s", MULTI_WHY_BYTES - 1, rung_last_error());
        multi_engine_gpu_leave(e);
    }
    return (int)status;
}

static int end(nccl_state *s, nccl_comm *comm, int result, const char *what, char *why)
{
    multi_engine *e = &s->multi->engines[0];
    int failed = settle(s, comm, result, what, why);
    rung_status status = failed ? RUNG_SUCCESS : multi_engine_gpu_span_stop(e, LANE_IN);
    if (status != RUNG_SUCCESS)
        snprintf(why, MULTI_WHY_BYTES, "%.*s", MULTI_WHY_BYTES - 1, rung_last_error());
    multi_engine_gpu_leave(e);
    return failed ? failed : (int)status;
}

static int nccl_exchange(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why)
{
    nccl_state *s = state;
    (void)tag;
    *pending = s; /* poll() says at once that it is done: what follows on the lane finds the data there */
    int failed = begin(s, why);
    return failed ? failed : end(s, s->all, queue_messages(s, messages, count), "NCCL's messages between ranks", why);
}

static int nccl_broadcast(void *state, const int *ranks, int count, int root, void *data, int64_t bytes, int64_t tag,
                          void **pending, char *why)
{
    nccl_state *s = state;
    (void)tag;
    *pending = s;
    const nccl_grid *g = &s->grids[s->grid];
    int in_row = count == g->cols && ranks[0] / g->cols == ranks[count - 1] / g->cols;
    nccl_comm *comm = in_row ? g->row : g->col;
    int failed = begin(s, why);
    if (failed)
        return failed;
    int result = s->calls.broadcast(data, data, (size_t)bytes / 4, NCCL_FLOAT, root, comm, stream_of(s));
    return end(s, comm, result, "NCCL's broadcast of a panel", why);
}

static int nccl_poll(void *state, void *pending, int *done, int *waiting_for, char *why)
{
    (void)state, (void)pending, (void)why;
    *done = 1;
    *waiting_for = -1;
    return 0;
}

static void nccl_abandon(void *state, void *pending)
{
    (void)state, (void)pending;
}

/* ---- groups ---- */

/* The new communicator is there once the old one is done, and ready when it says so itself. */
static int split(nccl_state *s, int color, int key, nccl_comm **comm, char *why)
{
    int failed = settle(s, s->all, s->calls.split(s->all, color, key, comm, NULL), "ncclCommSplit", why);
    return failed || color == NCCL_NO_COLOR ? failed : settle(s, *comm, NCCL_SUCCESS, "ncclCommSplit", why);
}

static void abort_grid(nccl_state *s, nccl_grid *g)
{
    nccl_comm *both[] = {g->row, g->col};
    for (int i = 0; i < 2; i++)
        if (both[i])
            s->calls.abort(both[i]);
    *g = (nccl_grid){0};
}

/* Splits the communicator. Every rank of the context asks for the same grids in the same order, so all of them split
 * alike. */
static int nccl_groups(void *state, int rows, int cols, char *why)
{
    nccl_state *s = state;
    for (int i = 0; i < s->grid_count; i++)
        if (s->grids[i].rows == rows && s->grids[i].cols == cols) {
            s->grid = i;
            return 0;
        }
    s->grid = s->grid_count < MOST_GRIDS ? s->grid_count++ : MOST_GRIDS - 1;
    nccl_grid *g = &s->grids[s->grid];
    int me = s->multi->first_rank, row = me < rows * cols ? me / cols : -1, col = me < rows * cols ? me % cols : -1;
    int failed = enter(s, why);
    if (failed)
        return failed;
    abort_grid(s, g); /* there are too many grids: the last one makes room */
    g->rows = rows, g->cols = cols;
    if (cols > 1)
        failed = split(s, row < 0 ? NCCL_NO_COLOR : row, col, &g->row, why);
    if (rows > 1 && !failed)
        failed = split(s, row < 0 ? NCCL_NO_COLOR : col, row, &g->col, why);
    multi_engine_gpu_leave(&s->multi->engines[0]);
    return failed;
}

/* ---- faults and the end ---- */

static int check_one(nccl_state *s, nccl_comm *comm, char *why)
{
    int result = NCCL_SUCCESS, asked = comm ? s->calls.async_error(comm, &result) : NCCL_SUCCESS;
    if (asked != NCCL_SUCCESS)
        result = asked;
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? 0 : refuse(s, result, "communication by NCCL", why);
}

static int nccl_check(void *state, char *why)
{
    nccl_state *s = state;
    int failed = s->stopped ? 0 : check_one(s, s->all, why);
    for (int i = 0; i < s->grid_count && !failed && !s->stopped; i++) {
        failed = check_one(s, s->grids[i].row, why);
        if (!failed)
            failed = check_one(s, s->grids[i].col, why);
    }
    return failed;
}

/* Ends what waits for other ranks on this GPU. */
static void nccl_stop(void *state)
{
    nccl_state *s = state;
    if (s->stopped || multi_engine_gpu_enter(&s->multi->engines[0]) != RUNG_SUCCESS)
        return;
    s->stopped = 1;
    for (int i = 0; i < s->grid_count; i++)
        abort_grid(s, &s->grids[i]);
    s->grid_count = 0;
    if (s->all)
        s->calls.abort(s->all);
    s->all = NULL;
    multi_engine_gpu_leave(&s->multi->engines[0]);
}

/* Destroys a communicator. The other ranks destroy theirs at about the same time; nobody waits longer than the limit
 * for one that does not. While it waits, nobody else may ask this communicator. */
static void leave(nccl_state *s, nccl_comm **place)
{
    char why[MULTI_WHY_BYTES];
    nccl_comm *comm = *place;
    *place = NULL;
    if (!comm)
        return;
    if (settle(s, comm, s->calls.finalize(comm), "ncclCommFinalize", why) == 0)
        s->calls.destroy(comm);
    else
        s->calls.abort(comm);
}

static void nccl_close(void *state, int failed)
{
    nccl_state *s = state;
    if (failed)
        nccl_stop(s);
    if (!s->stopped && multi_engine_gpu_enter(&s->multi->engines[0]) == RUNG_SUCCESS) {
        for (int i = s->grid_count - 1; i >= 0; i--) {
            leave(s, &s->grids[i].col);
            leave(s, &s->grids[i].row);
        }
        leave(s, &s->all);
        multi_engine_gpu_leave(&s->multi->engines[0]);
    }
    if (s->start.close)
        s->start.close(s->start.state, failed);
    free(s); /* libnccl stays loaded, as it has threads */
}

/* ---- opening ---- */

static rung_status load(nccl_state *s)
{
    const char *given = getenv("RUNG_NCCL"), *named = given && *given ? given : NULL;
    setenv("NCCL_NVLS_ENABLE", "0", 0); /* NVLink multicast is off unless somebody asks for it */
    void *library = dlopen(named ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library && !named)
        library = dlopen("libnccl.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return rung_fail(RUNG_MISSING_LIBRARY,
                         "the NCCL transport needs libnccl (Debian: libnccl2, PyPI: nvidia-nccl-cu13); RUNG_NCCL names "
                         "the file where the loader does not find it: %s",
                         dlerror());
#define X(type, name, symbol, signature)                                                                               \
    *(void **)&s->calls.name = dlsym(library, symbol);                                                                 \
    if (!s->calls.name)                                                                                                \
        return rung_fail(RUNG_MISSING_LIBRARY, "libnccl lacks %s: Rung needs NCCL 2.18 or later", symbol);
    NCCL_CALLS(X)
#undef X
    return RUNG_SUCCESS;
}

rung_status multi_nccl_open(rung_multi *multi, multi_transport *t)
{
    nccl_state *s = calloc(1, sizeof *s);
    if (!s)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the NCCL transport");
    s->multi = multi;
    s->start = *t;
    t->state = s;
    t->ordered = 1;
    t->exchange = nccl_exchange;
    t->broadcast = nccl_broadcast;
    t->poll = nccl_poll;
    t->abandon = nccl_abandon;
    t->groups = nccl_groups;
    t->stop = nccl_stop;
    t->share = NULL;
    t->check = NULL; /* there is nothing to ask yet */
    t->close = nccl_close;
    return load(s);
}

rung_status multi_nccl_connect(rung_multi *multi, multi_transport *t)
{
    nccl_state *s = t->state;
    nccl_id id;
    nccl_config config = {.size = sizeof config,
                          .magic = 0xcafebeef,
                          .version = NCCL_OLDEST,
                          .blocking = 0,
                          .cluster = INT_MIN, /* it is not set */
                          .least_blocks = INT_MIN,
                          .most_blocks = INT_MIN,
                          .share = INT_MIN};
    char why[MULTI_WHY_BYTES] = "";
    int result = NCCL_SUCCESS;
    memset(&id, 0, sizeof id);
    if (t->rank == 0)
        result = s->calls.unique_id(&id);
    RUNG_TRY(multi_control_share(multi->control, &id, sizeof id, "told NCCL's id", multi->timeout_s));
    if (result != NCCL_SUCCESS)
        return rung_fail(RUNG_DEVICE_ERROR, "ncclGetUniqueId failed: %s", s->calls.error_string(result));
    RUNG_TRY(multi_engine_gpu_enter(&multi->engines[0]));
    result = s->calls.init(&s->all, t->size, id, t->rank, &config);
    int failed = settle(s, s->all, result, "starting NCCL", why);
    multi_engine_gpu_leave(&multi->engines[0]);
    RUNG_TRY(multi_transport_try(multi, failed, why));
    t->check = nccl_check;
    return RUNG_SUCCESS;
}
