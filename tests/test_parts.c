/* How blocks that share a tile's k meet (src/cuda/device/parts.h), with a thread for each block, all of which run at
 * once: under the lens blocks run one after another, so that never more than one of them stays. Each chunk is added by
 * one block, after all parts are there, and the counters are zero afterwards. */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* The words of device code that the file needs, for blocks of one thread. */
#define RUNG_LENS
#define RUNG_DEVICE static inline __attribute__((unused))
#define PARTS_SYNC() ((void)0)
#define __syncthreads() ((void)0)
#define __shared__ static _Thread_local

typedef struct float4 {
    float x, y, z, w;
} float4;

static const struct {
    unsigned x;
} threadIdx = {0};

static inline float4 make_float4(float x, float y, float z, float w)
{
    return (float4){x, y, z, w};
}

static inline float4 __ldcg(const float4 *at)
{
    return *at;
}

static inline unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Who adds nothing looks, in a loop: then the others come first. */
static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline unsigned atomicAdd(unsigned *at, unsigned value)
{
    if (value == 0)
        sched_yield();
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}

#include "device/parts.h"

enum { MOST_PARTS = 8, MOST_CHUNKS = 32, ROUNDS = 21 };

typedef struct tile {
    pthread_barrier_t begun, met;
    unsigned counters[2], parts, chunks, left;
    int stored[MOST_PARTS]; /* the round in which the part was stored last */
    int added[MOST_CHUNKS], too_early, left_open;
    unsigned may_stay; /* a bit a block */
} tile;

typedef struct blocks_own {
    tile *of;
    unsigned number;
} blocks_own;

static void dawdle(uint64_t *seed, unsigned number)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u + number;
    for (unsigned turns = (unsigned)(*seed >> 33) % 4; turns > 0; turns--)
        sched_yield();
}

/* In one round of three all blocks have begun before one of them looks, so that all stay that may. In one of three the
 * first block begins when all others have left: none of them waits for it. */
static void *block(void *argument)
{
    const blocks_own *own = argument;
    tile *t = own->of;
    uint64_t seed = own->number;
    for (int round = 1; round <= ROUNDS; round++) {
        while (round % 3 == 2 && own->number == 0 && __atomic_load_n(&t->left, __ATOMIC_SEQ_CST) + 1 < t->parts)
            sched_yield();
        parts_begin(t->counters);
        dawdle(&seed, own->number);
        if (round % 3 == 1)
            pthread_barrier_wait(&t->begun);
        const unsigned begun = parts_begun(t->counters);
        dawdle(&seed, own->number);
        __atomic_store_n(&t->stored[own->number], round, __ATOMIC_RELAXED);
        const struct parts_share mine =
            parts_join(t->counters, t->parts, t->chunks, begun, (int)(t->may_stay >> own->number & 1));
        for (unsigned c = mine.begin; c < mine.end; c++) {
            __atomic_fetch_add(&t->added[c], 1, __ATOMIC_RELAXED);
            for (unsigned p = 0; p < t->parts; p++)
                if (__atomic_load_n(&t->stored[p], __ATOMIC_RELAXED) != round)
                    __atomic_fetch_add(&t->too_early, 1, __ATOMIC_RELAXED);
        }
        __atomic_fetch_add(&t->left, 1, __ATOMIC_SEQ_CST);
        if (pthread_barrier_wait(&t->met) == PTHREAD_BARRIER_SERIAL_THREAD) {
            t->left = 0;
            t->left_open += t->counters[0] != 0 || t->counters[1] != 0;
            t->counters[0] = t->counters[1] = 0;
        }
        pthread_barrier_wait(&t->met);
    }
    return NULL;
}

static void let_meet(unsigned parts, unsigned chunks, unsigned may_stay)
{
    tile t = {.parts = parts, .chunks = chunks, .may_stay = may_stay};
    pthread_t threads[MOST_PARTS];
    blocks_own own[MOST_PARTS];
    pthread_barrier_init(&t.begun, NULL, parts);
    pthread_barrier_init(&t.met, NULL, parts);
    for (unsigned i = 0; i < parts; i++) {
        own[i] = (blocks_own){&t, i};
        assert_int_equal(pthread_create(&threads[i], NULL, block, &own[i]), 0);
    }
    for (unsigned i = 0; i < parts; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&t.begun);
    pthread_barrier_destroy(&t.met);
    for (unsigned c = 0; c < chunks; c++)
        if (t.added[c] != ROUNDS)
            fail_msg("%u parts: chunk %u of %u was added %d times in %d rounds", parts, c, chunks, t.added[c], ROUNDS);
    if (t.too_early || t.left_open)
        fail_msg("%u parts in %u chunks: %d times a part was missing, %d times the counters were not zero", parts,
                 chunks, t.too_early, t.left_open);
}

/* Fewer chunks than blocks that stay, as many, and more; all stay, or some. */
static void each_chunk_is_added_once(void **state)
{
    (void)state;
    static const unsigned chunks[] = {1, 2, 5, MOST_CHUNKS}, may_stay[] = {~0u, ~1u, 0x15};
    for (unsigned parts = 2; parts <= MOST_PARTS; parts += 3)
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
            for (size_t s = 0; s < sizeof may_stay / sizeof *may_stay; s++)
                let_meet(parts, chunks[c], may_stay[s]);
}

/* The block that adds all parts itself leaves the counters as it found them: zero, for the next launch. */
static void who_adds_all_leaves_nothing(void **state)
{
    (void)state;
    unsigned counters[2] = {0, 0};
    for (unsigned others = 0; others < MOST_PARTS; others++) {
        for (unsigned i = 0; i < others; i++) {
            parts_begin(counters);
            parts_leave(counters);
        }
        parts_begin(counters);
        parts_await(counters, others);
        assert_int_equal(counters[0], 0);
        assert_int_equal(counters[1], 0);
    }
}

int main(void)
{
    enum { PATIENCE_S = 1000 }; /* tests/limit.c is quicker where there is one */
    alarm(PATIENCE_S);          /* for blocks that wait for ever */
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_chunk_is_added_once),
                                       cmocka_unit_test(who_adds_all_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
