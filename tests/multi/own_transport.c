#include "own_transport.h"
#include "multi/transport.h"
#include "rung.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* One message, or one receiver's share of a broadcast. */
typedef struct parcel {
    struct parcel *next;
    int from, to;
    int64_t tag, bytes;
    const void *data; /* the sender's memory, which it may not change before all have taken theirs */
    uint32_t sum;     /* over what the data were */
    int turns;        /* so often the receiver looks in vain */
} parcel;

typedef struct receive {
    void *data;
    int64_t bytes;
    int from, taken;
} receive;

/* What one rank has begun. */
typedef struct operation {
    int64_t tag;
    receive *receives;
    int count;
} operation;

typedef struct tags {
    int64_t *list;
    int count, capacity;
} tags;

struct own_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks, open, meetings, met;
    uint64_t dice;
    parcel *parcels;
    tags *used; /* by each rank */
    unsigned char shared[4096];
    int64_t operations;
    int broken;
    char why[256];
};

EXPORT own_world_new_function own_world_new;
EXPORT own_world_end_function own_world_end;
EXPORT multi_mpi_open_function rung_mpi_transport_open;

__attribute__((format(printf, 2, 3))) static void broken(own_world *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (w->broken++ == 0)
        vsnprintf(w->why, sizeof w->why, format, list);
    va_end(list);
}

static int below(own_world *w, int count)
{
    w->dice = w->dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((w->dice >> 33) % (unsigned)count);
}

static uint32_t sum_of(const void *data, int64_t bytes)
{
    const unsigned char *at = data;
    uint32_t sum = 1;
    for (int64_t i = 0; i < bytes; i++)
        sum = sum * 31 + at[i];
    return sum;
}

static void post(own_world *w, int from, int to, int64_t tag, const void *data, int64_t bytes)
{
    parcel *p = malloc(sizeof *p), **end = &w->parcels;
    if (!p)
        abort();
    *p = (parcel){NULL, from, to, tag, bytes, data, sum_of(data, bytes), below(w, 12)};
    while (*end)
        end = &(*end)->next;
    *end = p;
}

/* Every operation of a rank has a tag of its own: else the messages of two that are under way could be exchanged. */
static operation *begin(own_world *w, int rank, int64_t tag, int receives)
{
    tags *used = &w->used[rank];
    operation *o = calloc(1, sizeof *o);
    for (int i = 0; i < used->count; i++)
        if (used->list[i] == tag)
            broken(w, "rank %d begins a second operation with tag %lld", rank, (long long)tag);
    if (used->count == used->capacity) {
        used->capacity = used->capacity ? 2 * used->capacity : 256;
        used->list = realloc(used->list, (size_t)used->capacity * sizeof *used->list);
    }
    if (!o || !used->list || !(o->receives = calloc((size_t)receives + 1, sizeof *o->receives)))
        abort();
    used->list[used->count++] = tag;
    o->tag = tag;
    w->operations++;
    return o;
}

static void expect(operation *o, void *data, int64_t bytes, int from)
{
    memset(data, 0xff, (size_t)bytes); /* what has not come is no number */
    o->receives[o->count++] = (receive){data, bytes, from, 0};
}

static int exchange(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why)
{
    const own_seat *seat = state;
    own_world *w = seat->world;
    (void)why;
    pthread_mutex_lock(&w->lock);
    operation *o = begin(w, seat->rank, tag, count);
    for (int i = 0; i < count; i++) {
        const multi_message *m = &messages[i];
        if (m->peer < 0 || m->peer >= w->ranks || m->peer == seat->rank || m->bytes <= 0)
            broken(w, "rank %d: a message of %lld bytes with rank %d", seat->rank, (long long)m->bytes, m->peer);
        else if (m->receive)
            expect(o, m->data, m->bytes, m->peer);
        else
            post(w, seat->rank, m->peer, tag, m->data, m->bytes);
    }
    *pending = o;
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static int broadcast(void *state, const int *ranks, int count, int root, void *data, int64_t bytes, int64_t tag,
                     void **pending, char *why)
{
    const own_seat *seat = state;
    own_world *w = seat->world;
    (void)why;
    pthread_mutex_lock(&w->lock);
    operation *o = begin(w, seat->rank, tag, 1);
    if (ranks[root] != seat->rank)
        expect(o, data, bytes, ranks[root]);
    for (int i = 0; i < count && ranks[root] == seat->rank; i++)
        if (i != root)
            post(w, seat->rank, ranks[i], tag, data, bytes);
    *pending = o;
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static void take(own_world *w, int rank, const operation *o, receive *r)
{
    parcel **at = &w->parcels, *p;
    while (*at && ((*at)->from != r->from || (*at)->to != rank || (*at)->tag != o->tag))
        at = &(*at)->next;
    p = *at;
    if (!p || p->turns-- > 0)
        return;
    if (p->bytes != r->bytes)
        broken(w, "rank %d sends %lld bytes, rank %d expects %lld", p->from, (long long)p->bytes, rank,
               (long long)r->bytes);
    else if (sum_of(p->data, p->bytes) != p->sum)
        broken(w, "rank %d has changed what it sends to rank %d", p->from, rank);
    else
        memcpy(r->data, p->data, (size_t)p->bytes);
    r->taken = 1;
    *at = p->next;
    free(p);
}

static void drop(operation *o)
{
    free(o->receives);
    free(o);
}

static int poll(void *state, void *pending, int *done, int *waiting_for, char *why)
{
    const own_seat *seat = state;
    own_world *w = seat->world;
    operation *o = pending;
    (void)why;
    *done = 1;
    *waiting_for = -1;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < o->count; i++) {
        if (!o->receives[i].taken)
            take(w, seat->rank, o, &o->receives[i]);
        if (!o->receives[i].taken)
            *done = 0, *waiting_for = o->receives[i].from;
    }
    for (const parcel *p = w->parcels; p && *done; p = p->next)
        if (p->from == seat->rank && p->tag == o->tag)
            *done = 0, *waiting_for = p->to;
    if (*done)
        drop(o);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static void abandon(void *state, void *pending)
{
    const own_seat *seat = state;
    pthread_mutex_lock(&seat->world->lock);
    broken(seat->world, "rank %d gives up what it has begun", seat->rank);
    drop(pending);
    pthread_mutex_unlock(&seat->world->lock);
}

static void meet(own_world *w)
{
    const int now = w->meetings;
    if (++w->met == w->ranks) {
        w->met = 0;
        w->meetings++;
        pthread_cond_broadcast(&w->changed);
    }
    while (w->meetings == now)
        pthread_cond_wait(&w->changed, &w->lock);
}

static int share(void *state, void *data, int64_t bytes, char *why)
{
    const own_seat *seat = state;
    own_world *w = seat->world;
    (void)why;
    pthread_mutex_lock(&w->lock);
    if (seat->rank == 0)
        memcpy(w->shared, data, (size_t)bytes);
    meet(w);
    memcpy(data, w->shared, (size_t)bytes);
    meet(w);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static void close_seat(void *state, int failed)
{
    const own_seat *seat = state;
    pthread_mutex_lock(&seat->world->lock);
    if (failed)
        broken(seat->world, "rank %d's context has failed", seat->rank);
    seat->world->open--;
    pthread_mutex_unlock(&seat->world->lock);
}

int rung_mpi_transport_open(multi_transport *t, void *communicator, char *why)
{
    const own_seat *seat = communicator;
    if (!seat) {
        snprintf(why, MULTI_WHY_BYTES, "no world");
        return RUNG_INVALID_ARGUMENT;
    }
    *t = (multi_transport){.state = communicator,
                           .rank = seat->rank,
                           .size = seat->world->ranks,
                           .local_rank = seat->rank,
                           .local_size = seat->world->ranks,
                           .exchange = exchange,
                           .broadcast = broadcast,
                           .poll = poll,
                           .abandon = abandon,
                           .share = share,
                           .close = close_seat};
    pthread_mutex_lock(&seat->world->lock);
    seat->world->open++;
    pthread_mutex_unlock(&seat->world->lock);
    return 0;
}

own_world *own_world_new(int ranks, uint64_t seed)
{
    own_world *w = calloc(1, sizeof *w);
    if (!w || !(w->used = calloc((size_t)ranks, sizeof *w->used)))
        abort();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->ranks = ranks;
    w->dice = seed;
    return w;
}

int own_world_end(own_world *w, int64_t *operations, char why[256])
{
    if (w->open)
        broken(w, "%d contexts are open", w->open);
    if (w->parcels)
        broken(w, "rank %d's message to rank %d was never taken", w->parcels->from, w->parcels->to);
    for (parcel *p = w->parcels, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    for (int i = 0; i < w->ranks; i++)
        free(w->used[i].list);
    const int found = w->broken;
    *operations = w->operations;
    snprintf(why, 256, "%s", w->why);
    free(w->used);
    free(w);
    return found;
}
