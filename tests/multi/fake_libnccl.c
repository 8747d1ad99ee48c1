/* A stand-in for libnccl between processes of one machine, for device memory that is host memory (tests/gpu's stand-in
 * for libcuda, or the lens). Each communicator has a thread that works off its calls, so that they return "in progress"
 * as those of a communicator that does not block do; messages travel over Unix sockets. A peer that is gone is a remote
 * error; one that does not answer is waited for until the communicator is aborted. */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL, BAD_ARGUMENT, BAD_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { MOST_RANKS = 16, MOST_OPS = 256, FLOAT = 7, NO_COLOR = -1 };

typedef struct id {
    char bytes[128];
} id;

typedef struct comm comm;

typedef struct op {
    comm *on;
    char *data;
    size_t bytes;
    int peer, receive;
    int result;
} op;

struct comm {
    int alive, finishing;
    char name[96];
    int rank, size, listener, in[MOST_RANKS], out[MOST_RANKS];
    volatile int state, aborted;
    int running, splits, fails_later, moved; /* moved: data, 2: and it was said that all went well */
    pthread_t thread;
    op ops[MOST_OPS];
    int count;
    /* a split under way: where the new communicator goes once it is there */
    comm *child, **place;
    int color, key;
};

static op grouped[MOST_OPS];
static int group_depth, group_count;

static _Atomic int alive; /* communicators that somebody has, and has neither destroyed nor aborted */

__attribute__((destructor)) static void end(void)
{
    if (alive == 0)
        return;
    fprintf(stderr, "%d communicators are left alive\n", alive);
    _exit(9);
}

/* ---- sockets; every wait looks at the abort flag ---- */

static struct sockaddr_un address_of(const char *name, int rank)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s.%d", name, rank); /* abstract: nothing to remove */
    return a;
}

static int open_listener(comm *c)
{
    struct sockaddr_un a = address_of(c->name, c->rank);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < MOST_RANKS; i++)
        c->in[i] = c->out[i] = -1;
    return bind(c->listener, (struct sockaddr *)&a, sizeof a) || listen(c->listener, MOST_RANKS) ? SYSTEM_ERROR
                                                                                                 : SUCCESS;
}

static int ready(comm *c, int fd, int events)
{
    while (!c->aborted) {
        struct pollfd p = {.fd = fd, .events = (short)events};
        if (poll(&p, 1, 10) > 0)
            return 1;
    }
    return 0;
}

static int transfer(comm *c, int fd, char *data, size_t bytes, int receive)
{
    for (size_t at = 0; at < bytes;) {
        if (!ready(c, fd, receive ? POLLIN : POLLOUT))
            return INTERNAL;
        ssize_t moved = receive ? recv(fd, data + at, bytes - at, MSG_DONTWAIT)
                                : send(fd, data + at, bytes - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved > 0)
            at += (size_t)moved;
        else if (moved == 0 || (errno != EAGAIN && errno != EINTR))
            return REMOTE_ERROR;
    }
    return SUCCESS;
}

static int connect_to(comm *c, int peer)
{
    struct sockaddr_un a = address_of(c->name, peer);
    while (c->out[peer] < 0 && !c->aborted) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
            c->out[peer] = fd;
        else {
            close(fd);
            usleep(2000);
        }
    }
    return c->aborted ? INTERNAL : transfer(c, c->out[peer], (char *)&c->rank, sizeof c->rank, 0);
}

static int accept_from(comm *c, int peer)
{
    while (c->in[peer] < 0) {
        int from = -1;
        if (!ready(c, c->listener, POLLIN))
            return INTERNAL;
        int fd = accept(c->listener, NULL, NULL);
        if (transfer(c, fd, (char *)&from, sizeof from, 1) == SUCCESS && from >= 0 && from < c->size)
            c->in[from] = fd;
    }
    return SUCCESS;
}

/* Sends and receives of one peer keep their order; those of different peers go on together. */
static void *send_all(void *argument)
{
    comm *c = argument;
    for (int i = 0; i < c->count; i++) {
        op *o = &c->ops[i];
        if (o->receive)
            continue;
        o->result = c->out[o->peer] < 0 ? connect_to(c, o->peer) : SUCCESS;
        if (o->result == SUCCESS)
            o->result = transfer(c, c->out[o->peer], o->data, o->bytes, 0);
    }
    return NULL;
}

static int run_ops(comm *c)
{
    pthread_t sender;
    int result = SUCCESS;
    pthread_create(&sender, NULL, send_all, c);
    for (int i = 0; i < c->count; i++) {
        op *o = &c->ops[i];
        if (!o->receive)
            continue;
        o->result = accept_from(c, o->peer);
        if (o->result == SUCCESS)
            o->result = transfer(c, c->in[o->peer], o->data, o->bytes, 1);
    }
    pthread_join(sender, NULL);
    for (int i = 0; i < c->count; i++)
        if (c->ops[i].result != SUCCESS)
            result = c->ops[i].result;
    c->count = 0;
    return result;
}

/* Everybody tells everybody its color and key. */
static int run_split(comm *c)
{
    int mine[2] = {c->color, c->key}, all[MOST_RANKS][2];
    comm *child = c->child;
    for (int i = 0; i < c->size; i++) {
        if (i == c->rank) {
            memcpy(all[i], mine, sizeof mine);
            continue;
        }
        c->ops[c->count++] = (op){c, (char *)mine, sizeof mine, i, 0, SUCCESS};
        c->ops[c->count++] = (op){c, (char *)all[i], sizeof mine, i, 1, SUCCESS};
    }
    int result = run_ops(c);
    if (result != SUCCESS || !child)
        return result;
    for (int i = 0; i < c->size; i++)
        if (all[i][0] == c->color) {
            child->size++;
            child->rank += all[i][1] < c->key;
        }
    result = open_listener(child);
    child->state = result;
    *c->place = child;
    alive++;
    return result;
}

static void *work(void *argument)
{
    comm *c = argument;
    if (c->finishing)
        usleep(5000);
    const int splits = c->child || c->color != INT32_MIN;
    int result = splits ? run_split(c) : run_ops(c);
    c->moved = !splits;
    c->child = NULL;
    c->color = INT32_MIN;
    c->state = c->fails_later ? INTERNAL : result;
    return NULL;
}

/* Whether FAKE_NCCL_FAILS names this call: as a word alone where it fails at once, with "later " before it where NCCL
 * says so when it is asked. */
static int fails(const char *call)
{
    const char *named = getenv("FAKE_NCCL_FAILS");
    return named && strcmp(named, call) == 0;
}

static int start(comm *c)
{
    if (c->running)
        pthread_join(c->thread, NULL);
    c->state = IN_PROGRESS;
    c->running = 1;
    return pthread_create(&c->thread, NULL, work, c) ? SYSTEM_ERROR : IN_PROGRESS;
}

/* ---- the calls ---- */

/* What was queued before must have run: the stand-ins' streams work when they are asked to. */
static int synchronize(CUstream stream)
{
    static CUresult (*call)(CUstream);
    if (!call) {
        void *driver = dlopen(getenv("RUNG_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
        if (!driver)
            return CUDA_ERROR;
        *(void **)&call = dlsym(driver, "cuStreamSynchronize");
    }
    return call && call(stream) == CUDA_SUCCESS ? SUCCESS : CUDA_ERROR;
}

#define CALL(type, name, ...)                                                                                          \
    EXPORT type name(__VA_ARGS__);                                                                                     \
    type name(__VA_ARGS__)

CALL(int, ncclGetVersion, int *version)
{
    *version = 22809;
    return SUCCESS;
}

CALL(const char *, ncclGetErrorString, int result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result < (int)(sizeof words / sizeof *words) ? words[result] : "unknown result code";
}

CALL(int, ncclGetUniqueId, id *out)
{
    if (fails("ncclGetUniqueId"))
        return SYSTEM_ERROR;
    snprintf(out->bytes, sizeof out->bytes, "rung_nccl.%d.%d", (int)getpid(), rand());
    return SUCCESS;
}

/* What stays of a communicator shall not look like memory that a rank has lost. */
static comm *comm_new(const char *name, int rank, int size)
{
    comm *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        abort();
    snprintf(c->name, sizeof c->name, "%.90s", name);
    c->rank = rank;
    c->size = size;
    c->listener = -1;
    c->color = INT32_MIN;
    c->alive = 1;
    return c;
}

/* What Rung may rely on: a config of a version that the library knows, which does not block. */
typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;

CALL(int, ncclCommInitRankConfig, comm **out, int size, id name, int rank, config *given)
{
    if (!given || given->magic != 0xcafebeef || given->version < 21400 || given->blocking != 0 || size > MOST_RANKS)
        return BAD_ARGUMENT;
    const char *nvls = getenv("NCCL_NVLS_ENABLE");
    if (!nvls || strcmp(nvls, "0") != 0)
        return BAD_USAGE; /* NVLink multicast must be off */
    if (fails("ncclCommInitRankConfig"))
        return INTERNAL;
    *out = comm_new(name.bytes, rank, size);
    alive++;
    int result = open_listener(*out);
    if (fails("later ncclCommInitRankConfig"))
        (*out)->state = INTERNAL;
    return result;
}

CALL(int, ncclCommSplit, comm *c, int color, int key, comm **out, config *given)
{
    char name[96];
    if (given)
        return BAD_ARGUMENT;
    if (fails("ncclCommSplit"))
        return INTERNAL;
    c->fails_later = fails("later ncclCommSplit");
    snprintf(name, sizeof name, "%.60s/%d.%d", c->name, c->splits++, color);
    *out = NULL;
    c->child = color == NO_COLOR ? NULL : comm_new(name, 0, 0);
    c->place = out;
    c->color = color;
    c->key = key;
    int result = start(c);
    return result == IN_PROGRESS ? SUCCESS : result; /* as NCCL does: only the communicator tells that it goes on */
}

CALL(int, ncclCommGetAsyncError, comm *c, int *result)
{
    if (!c || !c->alive) { /* after it was destroyed or aborted, or before it was there */
        fprintf(stderr, "ncclCommGetAsyncError: no such communicator\n");
        abort();
    }
    char own[24]; /* "async 1" and 2: a grid's rows and columns fail after their data have gone well */
    const char *split = strchr(c->name, '/');
    snprintf(own, sizeof own, "async %d", split ? atoi(split + 1) + 1 : 0);
    *result = c->state == SUCCESS && c->moved == 2 && fails(own) ? INTERNAL : c->state;
    c->moved = c->state == SUCCESS && c->moved ? 2 : c->moved;
    return fails("ncclCommGetAsyncError") ? BAD_USAGE : SUCCESS;
}

/* Its memory stays, so that a later use is seen. */
static void comm_free(comm *c)
{
    alive -= c->alive;
    c->alive = 0;
    c->aborted = 1;
    if (c->running)
        pthread_join(c->thread, NULL);
    close(c->listener);
    for (int i = 0; i < MOST_RANKS; i++) {
        if (c->in[i] >= 0)
            close(c->in[i]);
        if (c->out[i] >= 0)
            close(c->out[i]);
    }
}

CALL(int, ncclCommFinalize, comm *c)
{
    c->finishing = 1;
    return start(c);
}

CALL(int, ncclCommDestroy, comm *c)
{
    comm_free(c);
    return SUCCESS;
}

CALL(int, ncclCommAbort, comm *c)
{
    comm_free(c);
    return SUCCESS;
}

static int run_group(CUstream stream)
{
    int result = SUCCESS;
    if (group_count == 0)
        return SUCCESS;
    comm *c = grouped[0].on;
    if (synchronize(stream) != SUCCESS)
        result = CUDA_ERROR;
    if (c->state == IN_PROGRESS)
        result = BAD_USAGE;
    for (int i = 0; i < group_count; i++)
        if (grouped[i].on != c)
            result = BAD_USAGE;
    if (result == SUCCESS) {
        if (c->running)
            pthread_join(c->thread, NULL);
        c->running = 0;
        memcpy(c->ops, grouped, (size_t)group_count * sizeof *grouped);
        c->count = group_count;
        c->fails_later = fails("later ncclGroupEnd");
    }
    if (fails("ncclGroupEnd"))
        result = INTERNAL;
    group_count = 0;
    return result == SUCCESS ? start(c) : result;
}

static CUstream group_stream;

CALL(int, ncclGroupStart, void)
{
    group_depth++;
    return SUCCESS;
}

CALL(int, ncclGroupEnd, void)
{
    return --group_depth == 0 ? run_group(group_stream) : SUCCESS;
}

static int add(comm *c, char *data, size_t count, int type, int peer, int receive, CUstream stream)
{
    if (type != FLOAT || peer < 0 || peer >= c->size || group_count == MOST_OPS)
        return BAD_ARGUMENT;
    grouped[group_count++] = (op){c, data, count * 4, peer, receive, SUCCESS};
    group_stream = stream;
    return SUCCESS;
}

CALL(int, ncclSend, const void *data, size_t count, int type, int peer, comm *c, CUstream stream)
{
    ncclGroupStart();
    int result = fails("ncclSend") ? INTERNAL : add(c, (char *)(uintptr_t)data, count, type, peer, 0, stream),
        ended = ncclGroupEnd();
    return result == SUCCESS ? ended : result;
}

CALL(int, ncclRecv, void *data, size_t count, int type, int peer, comm *c, CUstream stream)
{
    ncclGroupStart();
    int result = fails("ncclRecv") ? INTERNAL : add(c, data, count, type, peer, 1, stream), ended = ncclGroupEnd();
    return result == SUCCESS ? ended : result;
}

CALL(int, ncclBroadcast, const void *from, void *to, size_t count, int type, int root, comm *c, CUstream stream)
{
    int result = fails("ncclBroadcast") ? INTERNAL : from == to ? SUCCESS : BAD_ARGUMENT;
    ncclGroupStart();
    for (int i = 0; c->rank == root && i < c->size && result == SUCCESS; i++)
        if (i != root)
            result = add(c, to, count, type, i, 0, stream);
    if (c->rank != root && result == SUCCESS)
        result = add(c, to, count, type, root, 1, stream);
    int ended = ncclGroupEnd();
    return result == SUCCESS ? ended : result;
}
