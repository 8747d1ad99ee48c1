/* A hash table of at most MOST entries. It starts small and doubles; when it is full, a hand goes round over the
 * entries, spares those that were asked for since it came by, and takes the first that was not. */
#include "core/recent.h"
#include "core/plan.h"
#include "rung_tools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 64, MOST = 8192, NONE = -1 };

static const size_t shape_bytes = offsetof(rung_problem, a); /* the fields a plan depends on come first */

typedef struct entry {
    uint64_t hash;
    int32_t next;  /* entry of the same bucket */
    int32_t asked; /* since the hand came by */
    rung_scope scope;
    char shape[offsetof(rung_problem, a)];
    rung_choice choice;
} entry;

typedef struct table {
    int32_t count, capacity; /* a power of two, or 0 */
    int32_t hand;
    entry *entries;
    int32_t *buckets; /* as many as the capacity: the first entry of each, or NONE */
    rung_recent_counts counts;
} table;

static _Thread_local table *mine;
static pthread_key_t leaving;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_made;

static void free_table(void *memory)
{
    table *t = memory;
    free(t->entries);
    free(t->buckets);
    free(t);
    mine = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&leaving, free_table) == 0;
}

static table *own_table(void)
{
    if (mine)
        return mine;
    pthread_once(&once, make_key);
    table *t = key_made ? calloc(1, sizeof *t) : NULL;
    if (t && pthread_setspecific(leaving, t) != 0) {
        free(t);
        t = NULL;
    }
    return mine = t;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const char *at = bytes;
    for (; count >= sizeof(uint64_t); at += sizeof(uint64_t), count -= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = mix(hash, word);
    }
    uint64_t last = 0;
    memcpy(&last, at, count);
    return mix(hash, last);
}

static uint64_t hash_of(const rung_scope *scope, const rung_problem *problem)
{
    return hash_bytes(hash_bytes(0, scope, sizeof *scope), problem, shape_bytes);
}

static int32_t *bucket_of(table *t, uint64_t hash)
{
    return &t->buckets[hash >> 20 & (uint64_t)(t->capacity - 1)];
}

const rung_choice *rung_recent_find(const rung_scope *scope, const rung_problem *problem)
{
    table *t = own_table();
    if (!t || !t->count)
        return NULL;
    uint64_t hash = hash_of(scope, problem);
    for (int32_t i = *bucket_of(t, hash); i != NONE; i = t->entries[i].next) {
        entry *e = &t->entries[i];
        if (e->hash == hash && memcmp(&e->scope, scope, sizeof *scope) == 0 &&
            memcmp(e->shape, problem, shape_bytes) == 0) {
            e->asked = 1;
            t->counts.found++;
            return &e->choice;
        }
    }
    return NULL;
}

static void put_into_bucket(table *t, int32_t i)
{
    int32_t *bucket = bucket_of(t, t->entries[i].hash);
    t->entries[i].next = *bucket;
    *bucket = i;
}

static void take_out_of_bucket(table *t, int32_t i)
{
    int32_t *at = bucket_of(t, t->entries[i].hash);
    while (*at != i)
        at = &t->entries[*at].next;
    *at = t->entries[i].next;
}

/* Without memory for twice as many entries the table stays as it is. */
static void grow(table *t)
{
    int32_t capacity = t->capacity ? 2 * t->capacity : FIRST;
    int32_t *buckets = malloc((size_t)capacity * sizeof *buckets);
    entry *entries = buckets ? realloc(t->entries, (size_t)capacity * sizeof *entries) : NULL;
    if (!entries) {
        free(buckets);
        return;
    }
    free(t->buckets);
    t->entries = entries;
    t->buckets = buckets;
    t->capacity = capacity;
    for (int32_t i = 0; i < capacity; i++)
        buckets[i] = NONE;
    for (int32_t i = 0; i < t->count; i++)
        put_into_bucket(t, i);
}

/* Takes an entry that was not asked for since the hand came by out of its bucket and returns it. */
static int32_t give_way(table *t)
{
    for (;;) {
        int32_t i = t->hand;
        t->hand = (i + 1) % t->capacity;
        if (!t->entries[i].asked) {
            take_out_of_bucket(t, i);
            return i;
        }
        t->entries[i].asked = 0;
    }
}

void rung_recent_remember(const rung_scope *scope, const rung_problem *problem, const rung_choice *choice)
{
    table *t = own_table();
    if (!t)
        return;
    t->counts.planned++;
    if (t->count == t->capacity && t->capacity < MOST)
        grow(t);
    if (!t->capacity)
        return;
    int32_t i = t->count < t->capacity ? t->count++ : give_way(t);
    entry *e = &t->entries[i];
    e->hash = hash_of(scope, problem);
    e->asked = 0;
    e->scope = *scope;
    memcpy(e->shape, problem, shape_bytes);
    e->choice = *choice;
    put_into_bucket(t, i);
}

void rung_recent_count(rung_recent_counts *counts)
{
    table *t = own_table();
    *counts = t ? t->counts : (rung_recent_counts){0, 0, 0};
    counts->estimated = rung_estimates_made();
}
