/* Memory of recorded graphs, with a driver of the test's own: what a recording is lent lies in memory that is there and
 * is its graph's, as large as was asked for, with zeros that each replay clears; products of one stream share it,
 * others do not; it is used again once its graph is gone, and nothing is left at the end, also where a call fails. */
#include "own_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STREAMS = 4, GRAPHS = 64, BLOCKS = 256, MIB = 1 << 20, COUNTERS = 64 };

/* ---- the driver ---- */

static struct block {
    int alive, graph; /* the graph that holds it; -1: none */
    int64_t bytes;
    int cleared;         /* before the recording went on */
    int64_t replay_zero; /* bytes that the graph's first node clears */
} blocks[BLOCKS];

static struct object { /* of the user's, that a graph may hold */
    void (*give_back)(void *);
    void *of;
    int graph, alive;
} objects[BLOCKS];

static struct stream {
    int graph;  /* that it records; -1: none */
    int broken; /* its recording was broken off */
} streams[STREAMS];

static int graphs, calls, fails_at, in_callback, allocations, allowed[GRAPHS];
static rung_idle_buffers idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUresult next_call(void)
{
    assert_false(in_callback); /* a thread of the driver's calls back */
    return ++calls == fails_at ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static int index_of(CUstream stream)
{
    return (int)((struct stream *)(void *)stream - streams);
}

/* Blocks lie 32 MiB apart, so that an address tells its block. */
static CUdeviceptr address_of(int block)
{
    return (CUdeviceptr)(block + 1) * 32 * MIB;
}

static struct block *block_at(CUdeviceptr at)
{
    const int64_t which = (int64_t)(at / (32 * MIB)) - 1;
    assert_in_range(which, 0, BLOCKS - 1);
    return &blocks[which];
}

static CUresult memory_alloc(CUdeviceptr *at, size_t bytes)
{
    assert_int_equal(relaxed, 1); /* a recording forbids it else */
    CUresult result = next_call();
    for (int i = 0; result == CUDA_SUCCESS; i++) {
        assert_in_range(i, 0, BLOCKS - 1);
        if (blocks[i].alive)
            continue;
        blocks[i] = (struct block){.alive = 1, .graph = -1, .bytes = (int64_t)bytes};
        *at = address_of(i);
        allocations++;
        break;
    }
    return result;
}

static CUresult memory_free(CUdeviceptr at)
{
    struct block *b = block_at(at);
    assert_true(b->alive && b->graph < 0 && at == address_of((int)(b - blocks)));
    b->alive = 0;
    return CUDA_SUCCESS;
}

static CUresult memory_alloc_async(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    assert_true(bytes > 0 && streams[index_of(stream)].graph >= 0);
    *at = address_of(0) - 1;
    return next_call();
}

static CUresult memory_free_async(CUdeviceptr at, CUstream stream)
{
    assert_true(at == address_of(0) - 1);
    CUresult result = next_call();
    if (result == CUDA_SUCCESS)
        allowed[streams[index_of(stream)].graph] = 1;
    return result;
}

/* Asks for a clear that is a node of the graph. */
static CUresult set_32(CUdeviceptr at, unsigned value, size_t words, CUstream stream)
{
    struct block *b = block_at(at);
    assert_true(b->alive && value == 0 && at == address_of((int)(b - blocks)));
    assert_int_equal(b->graph, streams[index_of(stream)].graph);
    assert_true((int64_t)words * 4 <= b->bytes);
    b->replay_zero = (int64_t)words * 4;
    return next_call();
}

CUresult rung_driver_clear(const rung_driver *d, CUdeviceptr at, size_t bytes)
{
    (void)d;
    struct block *b = block_at(at);
    assert_true(b->alive && relaxed == 1);
    assert_int_equal(b->bytes, bytes);
    b->cleared = 1;
    return next_call();
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **after, size_t *count)
{
    assert_true(!after && !count);
    const int recorded = streams[index_of(stream)].graph;
    if (streams[index_of(stream)].broken) { /* no graph is told then */
        *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return next_call();
    }
    *status = recorded >= 0 ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *id = (cuuint64_t)recorded + 1;
    *graph = (CUgraph)(void *)&allowed[recorded >= 0 ? recorded : 0];
    return next_call();
}

static CUresult user_object_create(CUuserObject *object, void *of, CUhostFn give_back, unsigned count, unsigned flags)
{
    assert_true(count == 1 && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    CUresult result = next_call();
    for (int i = 0; result == CUDA_SUCCESS; i++) {
        assert_in_range(i, 0, BLOCKS - 1);
        if (objects[i].alive)
            continue;
        objects[i] = (struct object){give_back, of, -1, 1};
        *object = (CUuserObject)(void *)&objects[i];
        break;
    }
    return result;
}

static void call_back(struct object *o)
{
    in_callback = 1;
    o->give_back(o->of);
    in_callback = 0;
    o->alive = 0;
}

static CUresult user_object_release(CUuserObject object, unsigned count)
{
    assert_int_equal(count, 1);
    call_back((struct object *)(void *)object);
    return CUDA_SUCCESS;
}

/* The newest block that no graph holds is the one that is handed over: a test allocates or takes one at a time. */
static CUdeviceptr handed_over;

static CUresult graph_retain(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    assert_true(count == 1 && flags == CU_GRAPH_USER_OBJECT_MOVE);
    CUresult result = next_call();
    if (result == CUDA_SUCCESS) {
        struct object *o = (struct object *)(void *)object;
        o->graph = (int)((int *)(void *)graph - allowed);
        /* The buffer that is told is struct rung_graph_buffer, which begins with home, next and the address. */
        memcpy(&handed_over, (char *)o->of + 2 * sizeof(void *), sizeof handed_over);
        struct block *b = block_at(handed_over);
        assert_true(b->alive && b->graph < 0);
        b->graph = o->graph;
        b->replay_zero = 0;
    }
    return result;
}

rung_idle_buffers *rung_gpu_idle_buffers(rung_gpu *gpu)
{
    (void)gpu;
    return &idle;
}

static const rung_driver driver = {.memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .memory_alloc_async = memory_alloc_async,
                                   .memory_free_async = memory_free_async,
                                   .set_32 = set_32,
                                   .capture_info = capture_info,
                                   .user_object_create = user_object_create,
                                   .user_object_release = user_object_release,
                                   .graph_retain = graph_retain};

/* ---- recordings, and what they are lent ---- */

static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

typedef struct loan {
    char *memory;
    int64_t bytes, zero_bytes;
    int zeros, news; /* news: so many loans were new before it; a context remembers the last of them */
} loan;

static CUstream stream_at(int i)
{
    return (CUstream)(void *)&streams[i];
}

static void begin(rung_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    memset(blocks, 0, sizeof blocks);
    memset(objects, 0, sizeof objects);
    memset(allowed, 0, sizeof allowed);
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (struct stream){.graph = -1};
    cuda->driver = &driver;
    graphs = calls = fails_at = allocations = 0;
    idle.first = NULL;
}

static void record_on(rung_cuda *cuda, int stream)
{
    cuda->config.stream = stream_at(stream);
    streams[stream].graph = graphs++;
    assert_in_range(graphs, 1, GRAPHS);
}

/* Ends a graph's life: what it holds is given back. */
static void drop_graph(int graph)
{
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].graph == graph)
            streams[i].graph = -1;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].alive && blocks[i].graph == graph)
            blocks[i].graph = -1;
    for (int i = 0; i < BLOCKS; i++)
        if (objects[i].alive && objects[i].graph == graph)
            call_back(&objects[i]);
}

static void end(rung_cuda *cuda)
{
    fails_at = 0;
    for (int g = 0; g < graphs; g++)
        drop_graph(g);
    rung_graph_memory_close(cuda);
    assert_null(idle.first);
    for (int i = 0; i < BLOCKS; i++)
        assert_false(blocks[i].alive || objects[i].alive);
    assert_int_equal(relaxed, 0);
}

static loan ask_for(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes, int zeros)
{
    loan l = {.bytes = zeros ? 2 * bytes : bytes, .zero_bytes = zeros ? bytes : zero_bytes, .zeros = zeros};
    l.memory = zeros ? rung_graph_zeros_get(cuda, bytes) : rung_graph_memory_get(cuda, bytes, zero_bytes);
    assert_int_equal(relaxed, 0);
    if (!l.memory)
        return l;
    const int graph = streams[index_of(cuda->config.stream)].graph;
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)l.memory;
    const struct block *b = block_at(at);
    assert_true(b->alive && at == address_of((int)(b - blocks)));
    assert_int_equal(b->graph, graph);
    assert_true(allowed[graph]);
    assert_true(l.bytes <= b->bytes);
    assert_true(b->replay_zero >= (zeros ? 4 : zero_bytes) && b->replay_zero <= b->bytes);
    assert_int_equal(b->cleared && zeros, zeros);
    assert_true(rung_graph_memory_lent(cuda, l.memory));
    return l;
}

/* ---- the tests ---- */

static void products_of_a_recording_share_what_others_do_not_get(void **state)
{
    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        rung_cuda cuda;
        loan kept[STREAMS][2] = {{{NULL}}}; /* plain, zeros */
        char recorded[STREAMS][GRAPHS] = {{0}};
        int news = 0;
        dice = (uint32_t)trial;
        begin(&cuda);
        for (int step = 0; step < 60; step++) {
            const int stream = (int)roll(STREAMS), other = (int)roll(STREAMS), zeros = (int)roll(2);
            cuda.config.stream = stream_at(stream);
            if (streams[stream].graph < 0 || roll(8) == 0) {
                if (graphs == GRAPHS)
                    break;
                if (streams[stream].graph >= 0 && roll(2))
                    drop_graph(streams[stream].graph);
                const int graph = streams[other].graph;
                if (graph >= 0 && !recorded[stream][graph] && roll(2))
                    streams[stream].graph = graph; /* a recording has several streams */
                else
                    record_on(&cuda, stream);
                recorded[stream][streams[stream].graph] = 1;
                memset(kept[stream], 0, sizeof kept[stream]);
            }
            loan *last = &kept[stream][zeros];
            loan l = ask_for(&cuda, COUNTERS << roll(zeros ? 16 : 17), COUNTERS, zeros);
            assert_non_null(l.memory);
            for (int s = 0; s < STREAMS; s++)
                for (int z = 0; z < 2; z++)
                    if ((s != stream || z != zeros) && streams[s].graph >= 0)
                        assert_ptr_not_equal(kept[s][z].memory, l.memory);
            const int remembered = last->memory && news - last->news <= RUNG_GRAPH_BUFFERS;
            if (remembered && last->bytes >= l.bytes) {
                assert_ptr_equal(last->memory, l.memory);
                l.bytes = last->bytes;
            }
            l.news = remembered ? last->news : news++;
            /* What has asked twice without giving back gets nothing. */
            assert_null(zeros ? rung_graph_zeros_get(&cuda, 4) : rung_graph_memory_get(&cuda, 4, 4));
            const int as_lent = roll(6) != 0;
            assert_int_equal(rung_graph_memory_put(&cuda, l.memory, as_lent), 1);
            assert_int_equal(rung_graph_memory_put(&cuda, l.memory, as_lent), 0);
            assert_false(rung_graph_memory_lent(&cuda, l.memory));
            *last = as_lent ? l : (loan){NULL};
        }
        end(&cuda);
    }
}

/* A graph that is gone leaves its memory to the next one that asks for as much, whatever else is idle, and to no other.
 */
static void memory_of_a_graph_that_is_gone_is_used_again(void **state)
{
    (void)state;
    static const int64_t sizes[] = {MIB, 2 * MIB, 4 * MIB, 16 * MIB};
    rung_cuda cuda;
    begin(&cuda);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 4; i++) {
            record_on(&cuda, 0);
            const int which = round % 2 ? 3 - i : i;
            const loan l = ask_for(&cuda, sizes[which], COUNTERS, 0);
            assert_non_null(l.memory);
            assert_int_equal(block_at((CUdeviceptr)(uintptr_t)l.memory)->bytes, sizes[which]);
            rung_graph_memory_put(&cuda, l.memory, 1);
        }
        assert_int_equal(allocations, 4);
        for (int g = graphs - 4; g < graphs; g++)
            drop_graph(g);
    }
    record_on(&cuda, 0);
    assert_null(rung_graph_memory_get(&cuda, 16 * MIB + 4, COUNTERS)); /* more becomes nodes of the graph */
    streams[0].graph = -1;
    assert_null(rung_graph_memory_get(&cuda, MIB, COUNTERS)); /* nothing is recorded */
    assert_int_equal(allocations, 4);
    end(&cuda);
}

/* Records lie behind the zeros, each by itself, as long as there is room. */
static void records_lie_behind_the_zeros(void **state)
{
    (void)state;
    rung_cuda cuda;
    begin(&cuda);
    record_on(&cuda, 1);
    loan plain = ask_for(&cuda, 4096, COUNTERS, 0), zeros = ask_for(&cuda, 4096, 0, 1);
    const int64_t room = block_at((CUdeviceptr)(uintptr_t)zeros.memory)->bytes / 2;
    assert_null(rung_graph_record_get(&cuda, plain.memory, 16));
    assert_null(rung_graph_record_get(&cuda, zeros.memory, room + 1));
    char *next = zeros.memory + room;
    for (int64_t left = room; left > 0; left -= room / 4, next += room / 4)
        assert_ptr_equal(rung_graph_record_get(&cuda, zeros.memory, room / 4), next);
    assert_null(rung_graph_record_get(&cuda, zeros.memory, 1));
    rung_graph_memory_put(&cuda, zeros.memory, 1);
    assert_null(rung_graph_record_get(&cuda, zeros.memory, 1));
    rung_graph_memory_put(&cuda, plain.memory, 1);
    end(&cuda);
}

/* More recordings than a context remembers: those that are in use are not forgotten. */
static void what_is_in_use_is_not_forgotten(void **state)
{
    (void)state;
    rung_cuda cuda;
    begin(&cuda);
    char *held[RUNG_GRAPH_BUFFERS];
    for (int i = 0; i < RUNG_GRAPH_BUFFERS; i++) {
        record_on(&cuda, 2);
        held[i] = ask_for(&cuda, MIB, COUNTERS, 0).memory;
        assert_non_null(held[i]);
    }
    record_on(&cuda, 2);
    assert_null(rung_graph_memory_get(&cuda, MIB, COUNTERS));
    for (int i = 0; i < RUNG_GRAPH_BUFFERS; i++)
        assert_int_equal(rung_graph_memory_put(&cuda, held[i], 1), 1);
    const loan l = ask_for(&cuda, MIB, COUNTERS, 0);
    assert_non_null(l.memory);
    rung_graph_memory_put(&cuda, l.memory, 1);
    end(&cuda);
}

/* Its graph is no more, so that there is nothing to keep memory for. */
static void a_recording_that_is_broken_off_is_lent_nothing(void **state)
{
    (void)state;
    rung_cuda cuda;
    begin(&cuda);
    record_on(&cuda, 1);
    streams[1].broken = 1;
    for (int zeros = 0; zeros < 2; zeros++)
        assert_null(ask_for(&cuda, MIB, COUNTERS, zeros).memory);
    assert_int_equal(calls, 2); /* of the driver: what it says of the stream */
    end(&cuda);
}

static void a_failing_call_leaves_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++)
        for (int at = 1, failed = 1; failed; at++) {
            rung_cuda cuda;
            begin(&cuda);
            record_on(&cuda, 0);
            if (which & 1) { /* there is an idle one */
                const loan before = ask_for(&cuda, MIB / 2, COUNTERS, which >> 1);
                rung_graph_memory_put(&cuda, before.memory, 1);
                drop_graph(0);
                record_on(&cuda, 0);
            }
            calls = 0, fails_at = at;
            const loan l = ask_for(&cuda, MIB / 2, COUNTERS, which >> 1);
            failed = calls >= at;
            assert_int_equal(l.memory == NULL, failed);
            fails_at = 0;
            const loan after = ask_for(&cuda, MIB / 2, COUNTERS, which >> 1);
            assert_int_equal(after.memory == NULL, !failed); /* in use */
            if (after.memory || l.memory)
                rung_graph_memory_put(&cuda, after.memory ? after.memory : l.memory, 0);
            end(&cuda);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_a_recording_share_what_others_do_not_get),
        cmocka_unit_test(memory_of_a_graph_that_is_gone_is_used_again),
        cmocka_unit_test(records_lie_behind_the_zeros),
        cmocka_unit_test(what_is_in_use_is_not_forgotten),
        cmocka_unit_test(a_recording_that_is_broken_off_is_lent_nothing),
        cmocka_unit_test(a_failing_call_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
