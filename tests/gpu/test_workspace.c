/* Workspace, with a driver of the test's own: whatever a context asks for, on whichever of its streams, what it is lent
 * lies in memory that is there and that nobody else has, as large as was asked for, with counters and zeros that are
 * zero, and after all earlier uses of the same bytes; nothing is left at the end, and a call that fails leaves nothing.
 */
#define _GNU_SOURCE
#include "own_driver.h"

#include "cuda/driver/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { STREAMS = 7, EVENTS = 64, BLOCKS = 64, HOST = STREAMS, CLOCKS = STREAMS + 1 };
static const int64_t MIB = 1 << 20;

/* ---- the driver: each stream and the host have a clock, and know of each other's by events ---- */

typedef struct known {
    int of[CLOCKS];
} known;

static known clocks[CLOCKS]; /* clocks[s].of[s] is stream s's own */
static struct event {
    int alive, recorded;
    known at;
} events[EVENTS];
static struct block {
    char *memory;
    int64_t bytes;
    int pooled, user; /* the stream that used it last, -1: none has */
    int used_at;
} blocks[BLOCKS];
static int calls, fails_at, fails_with, events_alive, capturing, allocations, allocation_failed;

static CUresult next_call(void)
{
    return ++calls == fails_at ? (CUresult)fails_with : CUDA_SUCCESS;
}

static int index_of(CUstream stream)
{
    return (int)((uintptr_t)stream / 16 - 1);
}

static void join(known *into, const known *from)
{
    for (int i = 0; i < CLOCKS; i++)
        into->of[i] = from->of[i] > into->of[i] ? from->of[i] : into->of[i];
}

static struct block *block_at(CUdeviceptr at)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].memory && at >= (uintptr_t)blocks[i].memory &&
            at < (uintptr_t)blocks[i].memory + (uintptr_t)blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

/* Who takes or frees a block must know of its last use. */
static void check_order(const struct block *b, int who)
{
    if (b->user >= 0)
        assert_true(who == b->user || clocks[who].of[b->user] >= b->used_at);
}

static CUresult new_block(CUdeviceptr *at, size_t bytes, int pooled)
{
    CUresult result = next_call();
    int i = 0;
    allocation_failed |= result != CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    while (blocks[i].memory)
        assert_true(++i < BLOCKS);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    blocks[i] = (struct block){memory, (int64_t)bytes, pooled, -1, 0};
    for (size_t at_byte = 0; at_byte < bytes && at_byte < (size_t)(2 * MIB);
         at_byte += 1000) /* nobody has cleared it */
        memory[at_byte] = 0x77;
    allocations += bytes > 1;
    *at = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

static void drop_block(CUdeviceptr at, int who)
{
    struct block *b = block_at(at);
    assert_non_null(b);
    assert_ptr_equal((void *)(uintptr_t)at, b->memory);
    check_order(b, who);
    munmap(b->memory, (size_t)b->bytes);
    memset(b, 0, sizeof *b);
}

static CUresult memory_alloc_async(CUdeviceptr *at, size_t bytes, CUstream stream)
{
    (void)stream;
    assert_true(capturing && relaxed);
    return new_block(at, bytes, 0);
}

static CUresult memory_alloc_pool(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)stream;
    assert_true(!capturing && relaxed);
    assert_ptr_equal(pool, &blocks);
    return new_block(at, bytes, 1);
}

static CUresult memory_free_async(CUdeviceptr at, CUstream stream)
{
    assert_true(relaxed);
    drop_block(at, index_of(stream));
    return CUDA_SUCCESS;
}

static void wait_for_all(void)
{
    for (int s = 0; s < STREAMS; s++)
        join(&clocks[HOST], &clocks[s]);
}

static CUresult memory_alloc(CUdeviceptr *at, size_t bytes)
{
    return new_block(at, bytes, 0);
}

/* Memory that is of no pool waits for all that was queued. */
static CUresult memory_free(CUdeviceptr at)
{
    const struct block *b = block_at(at);
    assert_non_null(b);
    if (!b->pooled)
        wait_for_all();
    drop_block(at, HOST);
    return CUDA_SUCCESS;
}

static CUresult context_synchronize(void)
{
    wait_for_all();
    return CUDA_SUCCESS;
}

static CUresult set_32(CUdeviceptr at, unsigned value, size_t words, CUstream stream)
{
    struct block *b = block_at(at);
    assert_non_null(b);
    check_order(b, index_of(stream));
    assert_true(at + 4 * words <= (uintptr_t)b->memory + (uintptr_t)b->bytes);
    assert_true(words <= (size_t)(2 * MIB)); /* not the whole of a buffer */
    if (next_call() != CUDA_SUCCESS)
        return (CUresult)fails_with;
    for (size_t i = 0; i < words; i++)
        memcpy((char *)(uintptr_t)at + 4 * i, &value, 4);
    b->user = index_of(stream);
    b->used_at = ++clocks[b->user].of[b->user];
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
    int i = 0;
    assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
    if (next_call() != CUDA_SUCCESS)
        return (CUresult)fails_with;
    while (events[i].alive)
        assert_true(++i < EVENTS);
    events[i] = (struct event){.alive = 1};
    events_alive++;
    *event = (CUevent)&events[i];
    return CUDA_SUCCESS;
}

static struct event *event_at(CUevent event)
{
    struct event *e = (struct event *)event;
    assert_true(e->alive);
    return e;
}

static CUresult event_destroy(CUevent event)
{
    event_at(event)->alive = 0;
    events_alive--;
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    assert_false(capturing);
    if (next_call() != CUDA_SUCCESS)
        return (CUresult)fails_with;
    struct event *e = event_at(event);
    e->recorded = 1;
    e->at = clocks[index_of(stream)];
    return CUDA_SUCCESS;
}

static CUresult stream_wait(CUstream stream, CUevent event, unsigned flags)
{
    assert_int_equal(flags, 0);
    assert_true(event_at(event)->recorded);
    if (next_call() != CUDA_SUCCESS)
        return (CUresult)fails_with;
    join(&clocks[index_of(stream)], &event_at(event)->at);
    return CUDA_SUCCESS;
}

static CUresult event_synchronize(CUevent event)
{
    assert_true(event_at(event)->recorded);
    if (next_call() != CUDA_SUCCESS)
        return (CUresult)fails_with;
    join(&clocks[HOST], &event_at(event)->at);
    return CUDA_SUCCESS;
}

static CUresult stream_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return next_call();
}

static CUresult stream_id(CUstream stream, unsigned long long *id)
{
    assert_false(capturing); /* it would end the recording */
    *id = (uintptr_t)stream;
    return next_call();
}

static const rung_driver driver = {.memory_alloc_async = memory_alloc_async,
                                   .memory_alloc_pool = memory_alloc_pool,
                                   .memory_free_async = memory_free_async,
                                   .memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .context_synchronize = context_synchronize,
                                   .set_32 = set_32,
                                   .event_create = event_create,
                                   .event_destroy = event_destroy,
                                   .event_record = event_record,
                                   .stream_wait = stream_wait,
                                   .event_synchronize = event_synchronize,
                                   .stream_capturing = stream_capturing,
                                   .stream_id = stream_id};

/* A driver that keeps no buffer for a graph: what a recording asks for becomes its nodes. */
void *rung_graph_memory_get(rung_cuda *cuda, int64_t bytes, int64_t zero_bytes)
{
    (void)cuda, (void)bytes, (void)zero_bytes;
    return NULL;
}

void *rung_graph_zeros_get(rung_cuda *cuda, int64_t bytes)
{
    (void)cuda, (void)bytes;
    return NULL;
}

int rung_graph_memory_put(rung_cuda *cuda, const void *memory, int as_lent)
{
    (void)cuda, (void)memory, (void)as_lent;
    return 0;
}

void rung_graph_memory_close(rung_cuda *cuda)
{
    (void)cuda;
}

CUmemoryPool rung_gpu_pool(const rung_gpu *gpu)
{
    (void)gpu;
    return (CUmemoryPool)(void *)&blocks;
}

/* ---- what is lent ---- */

typedef enum way { PLAIN, TICKETS, ZEROS, WAYS } way;

typedef struct loan {
    way how;
    int stream, are_zero;
    int64_t bytes, zero_bytes;
    char *memory, *zeros;
} loan;

static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

static int all_zero(const char *at, int64_t bytes)
{
    return at[0] == 0 && memcmp(at, at + 1, (size_t)bytes - 1) == 0;
}

static void check_lent(const char *memory, int64_t bytes, int64_t before, int stream)
{
    struct block *b = block_at((uintptr_t)memory);
    assert_non_null(b);
    assert_true(memory - before >= b->memory && memory + bytes <= b->memory + b->bytes);
    check_order(b, stream);
}

/* The launches that use it are over at this time of their stream. */
static void use(const loan *l)
{
    const char *const both[] = {l->memory, l->zeros};
    const int now = ++clocks[l->stream].of[l->stream];
    for (int i = 0; i < 2; i++)
        if (both[i]) {
            struct block *b = block_at((uintptr_t)both[i]);
            b->user = l->stream, b->used_at = now;
        }
    if (l->memory)
        memset(l->memory, 0x11, l->bytes < 64 ? (size_t)l->bytes : 64);
    if (l->zeros && !l->are_zero)
        l->zeros[0] = l->zeros[l->zero_bytes - 1] = 0x11;
}

static rung_status take(rung_cuda *cuda, loan *l)
{
    void *memory = &dice, *zeros = NULL;
    cuda->config.stream = (void *)(uintptr_t)(16 * (l->stream + 1));
    rung_status status = l->how == PLAIN ? rung_workspace_get(cuda, l->bytes, &memory)
                         : l->how == TICKETS
                             ? rung_workspace_get_with_tickets(cuda, l->bytes, &memory)
                             : rung_workspace_get_with_zeros(cuda, l->bytes, l->zero_bytes, &memory, &zeros);
    l->memory = memory, l->zeros = zeros;
    if (status != RUNG_SUCCESS || l->bytes == 0)
        assert_null(memory);
    if (status != RUNG_SUCCESS) {
        assert_null(zeros);
        return status;
    }
    if (l->bytes > 0)
        check_lent(l->memory, l->bytes, l->how == TICKETS ? RUNG_TICKET_BYTES : 0, l->stream);
    if (l->memory && l->how == TICKETS)
        assert_true(all_zero(l->memory - RUNG_TICKET_BYTES, RUNG_TICKET_BYTES));
    if (l->zeros) {
        check_lent(l->zeros, l->zero_bytes, 0, l->stream);
        assert_true(all_zero(l->zeros, l->zero_bytes));
        assert_true(!l->memory || l->zeros >= l->memory + l->bytes || l->zeros + l->zero_bytes <= l->memory);
        assert_true(!capturing && l->zero_bytes > 0);
    }
    use(l);
    return status;
}

static void give(rung_cuda *cuda, const loan *l)
{
    cuda->config.stream = (void *)(uintptr_t)(16 * (l->stream + 1));
    if (l->how == PLAIN)
        rung_workspace_put(cuda, l->memory);
    else if (l->how == TICKETS)
        rung_workspace_put_with_tickets(cuda, l->memory);
    else
        rung_workspace_put_with_zeros(cuda, l->memory, l->zeros, l->are_zero);
}

static int blocks_alive(int64_t *most)
{
    int count = 0;
    *most = 0;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].memory) {
            count++;
            *most = blocks[i].bytes > *most ? blocks[i].bytes : *most;
        }
    return count;
}

static void begin(rung_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    memset(clocks, 0, sizeof clocks);
    cuda->driver = &driver;
    calls = fails_at = fails_with = capturing = allocations = allocation_failed = 0;
}

static void end(rung_cuda *cuda)
{
    int64_t most;
    rung_workspace_close(cuda);
    assert_int_equal(blocks_alive(&most), 0);
    assert_int_equal(events_alive + relaxed, 0);
}

/* Sizes about every limit: those of the steps in which buffers grow, of the largest that is kept, of the zeros. */
static int64_t some_bytes(void)
{
    static const int64_t limits[] = {0, 1, 2, 4, 8, 12, 156};
    const int64_t off = (int64_t)roll(5) - 2, less = roll(3) * RUNG_TICKET_BYTES / 2;
    const int64_t bytes = roll(4) ? limits[roll(7)] * MIB - less + off : (int64_t)roll(6 * (uint32_t)MIB);
    return bytes > 0 ? bytes : 0;
}

static loan some_loan(int streams)
{
    loan l = {.how = (way)roll(WAYS), .stream = (int)roll((uint32_t)streams), .bytes = some_bytes()};
    l.bytes = l.how == ZEROS && l.bytes == 0 ? 1 : l.bytes; /* nobody asks for zeros alone */
    l.are_zero = (int)roll(2);
    l.zero_bytes = roll(3) ? 4 * (int64_t)roll(1000) : MIB + 4 * ((int64_t)roll(3) - 1);
    return l;
}

static void what_is_lent_is_there_and_alone(void **state)
{
    (void)state;
    for (int streams = 1; streams <= STREAMS; streams++) {
        rung_cuda cuda;
        begin(&cuda);
        for (int i = 0; i < 400; i++) {
            int64_t most;
            loan one = some_loan(streams), two = some_loan(streams);
            capturing = roll(8) == 0;
            two.stream = one.stream; /* a launcher may ask twice; its stream is one */
            assert_int_equal(take(&cuda, &one), RUNG_SUCCESS);
            const int both = roll(5) == 0 && one.how != ZEROS;
            if (both) {
                two.how = two.how == ZEROS ? PLAIN : two.how;
                assert_int_equal(take(&cuda, &two), RUNG_SUCCESS);
                if (one.memory && two.memory)
                    assert_ptr_not_equal(block_at((uintptr_t)one.memory), block_at((uintptr_t)two.memory));
                give(&cuda, &two);
            }
            give(&cuda, &one);
            assert_true(blocks_alive(&most) <= 2 * RUNG_KEPT_BUFFERS);
            assert_true(most <= RUNG_KEPT_BUFFER_BYTES);
        }
        end(&cuda);
    }
}

/* One stream, and as many as there are buffers, get their memory again without asking the driver for more, up to the
 * largest size that is kept. */
static void what_is_kept_is_not_asked_for_again(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 5 * MIB, RUNG_KEPT_BUFFER_BYTES - RUNG_TICKET_BYTES};
    for (int streams = 1; streams <= RUNG_KEPT_BUFFERS; streams++)
        for (int size = 0; size < 3; size++) {
            rung_cuda cuda;
            begin(&cuda);
            for (int round = 0; round < 3; round++)
                for (int s = 0; s < streams; s++) {
                    const int before = allocations;
                    loan l = {.how = (way)(round % 2 ? TICKETS : ZEROS),
                              .stream = s,
                              .bytes = sizes[size],
                              .zero_bytes = 64,
                              .are_zero = 1};
                    assert_int_equal(take(&cuda, &l), RUNG_SUCCESS);
                    assert_int_equal(l.zeros != NULL, l.how == ZEROS);
                    give(&cuda, &l);
                    assert_int_equal(allocations - before, round ? 0 : 2);
                }
            loan larger = {.stream = 0, .bytes = RUNG_KEPT_BUFFER_BYTES - RUNG_TICKET_BYTES + 1};
            int64_t most;
            assert_int_equal(take(&cuda, &larger), RUNG_SUCCESS);
            assert_int_equal(blocks_alive(&most), 2 * streams); /* what the stream had was freed first */
            give(&cuda, &larger);
            assert_int_equal(blocks_alive(&most), 2 * streams - 1);
            end(&cuda);
        }
}

/* How large a kept block is, with its counters: a power of two of MiB up to four, then an eighth more in steps of four,
 * and never more than may be kept. */
static int64_t kept_size(int64_t bytes)
{
    const int64_t whole = bytes + RUNG_TICKET_BYTES;
    for (int64_t size = MIB; size <= 4 * MIB; size *= 2)
        if (whole <= size)
            return size;
    const int64_t more = (whole + whole / 8 + 4 * MIB - 1) / (4 * MIB) * 4 * MIB;
    return more < RUNG_KEPT_BUFFER_BYTES ? more : RUNG_KEPT_BUFFER_BYTES;
}

static void blocks_grow_in_steps(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        rung_cuda cuda;
        begin(&cuda);
        loan l = {.how = (way)(i % WAYS), .bytes = 1 + some_bytes(), .zero_bytes = 4, .are_zero = 1};
        assert_int_equal(take(&cuda, &l), RUNG_SUCCESS);
        const int is_kept = l.bytes > 0 && l.bytes <= RUNG_KEPT_BUFFER_BYTES - RUNG_TICKET_BYTES;
        if (is_kept)
            assert_int_equal(block_at((uintptr_t)l.memory)->bytes, kept_size(l.bytes));
        else if (l.bytes > 0)
            assert_int_equal(block_at((uintptr_t)l.memory)->bytes,
                             l.bytes + (l.how == TICKETS ? RUNG_TICKET_BYTES : 0));
        if (l.zeros)
            assert_int_equal(block_at((uintptr_t)l.zeros)->bytes, kept_size(MIB));
        give(&cuda, &l);
        end(&cuda);
    }
}

/* What a stream keeps for products is never more than the user lets one borrow, also once the limit has become less. */
static void no_more_than_the_limit_is_kept(void **state)
{
    (void)state;
    rung_cuda cuda;
    begin(&cuda);
    for (int i = 0; i < 400; i++) {
        const int64_t limit = RUNG_TICKET_BYTES + 1 + (int64_t)roll((roll(2) ? 3 : 200) * (uint32_t)MIB);
        int64_t most = 0;
        loan l = some_loan(1);
        cuda.config.workspace_limit_bytes = limit;
        l.bytes = l.bytes <= limit - RUNG_TICKET_BYTES ? l.bytes : limit - RUNG_TICKET_BYTES;
        assert_int_equal(take(&cuda, &l), RUNG_SUCCESS);
        if (l.memory)
            assert_true(block_at((uintptr_t)l.memory)->bytes <= limit);
        give(&cuda, &l);
        assert_true(blocks_alive(&most) <= 2);
    }
    end(&cuda);
}

/* More streams than buffers hand them on, without the driver, and all buffers are in use. */
static void streams_take_turns(void **state)
{
    (void)state;
    for (int streams = RUNG_KEPT_BUFFERS + 1; streams <= STREAMS; streams++)
        for (int how = 0; how < WAYS; how++) {
            rung_cuda cuda;
            char *seen[2 * STREAMS];
            int different = 0;
            begin(&cuda);
            for (int i = 0; i < 6 * streams; i++) {
                const int before = allocations;
                loan l = {.how = (way)how, .stream = i % streams, .bytes = 3 * MIB, .zero_bytes = 400, .are_zero = 1};
                assert_int_equal(take(&cuda, &l), RUNG_SUCCESS);
                assert_int_equal(l.zeros != NULL, how == ZEROS);
                assert_int_equal(allocations - before, i < RUNG_KEPT_BUFFERS ? how == ZEROS ? 2 : 1 : 0);
                give(&cuda, &l);
                if (i >= 4 * streams) { /* of two rounds */
                    int is_known = 0;
                    for (int j = 0; j < different; j++)
                        is_known |= seen[j] == l.memory;
                    if (!is_known)
                        seen[different++] = l.memory;
                }
            }
            assert_int_equal(different, RUNG_KEPT_BUFFERS);
            end(&cuda);
        }
}

/* Every call of the driver fails once, for want of memory and for another reason. */
static void a_failing_call_leaves_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < 70; which++)
        for (int at = 1, failed = 1; failed; at++) {
            rung_cuda cuda;
            begin(&cuda);
            fails_with = which % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
            dice = (uint32_t)which;
            loan before = some_loan(3), l = some_loan(3), after = some_loan(3);
            if (which % 3) {
                assert_int_equal(take(&cuda, &before), RUNG_SUCCESS);
                give(&cuda, &before);
            }
            capturing = which % 5 == 0;
            calls = 0, fails_at = at;
            rung_status status = take(&cuda, &l);
            if (status == RUNG_SUCCESS)
                give(&cuda, &l);
            failed = calls >= at;
            fails_at = 0;
            assert_true(failed || status == RUNG_SUCCESS);
            if (status != RUNG_SUCCESS)
                assert_int_equal(status, allocation_failed && which % 2 ? RUNG_OUT_OF_MEMORY : RUNG_DEVICE_ERROR);
            capturing = 0;
            assert_int_equal(take(&cuda, &after), RUNG_SUCCESS);
            give(&cuda, &after);
            fails_at = which % 7 ? 0 : calls + 1 + which % 4; /* the close gives all back whatever fails */
            end(&cuda);
        }
}

/* More streams than buffers, and now and then a call of the driver that fails: whoever takes memory over knows of its
 * last use, also where that was cleared and then not lent. */
static void order_holds_whatever_fails(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        rung_cuda cuda;
        begin(&cuda);
        for (int i = 0; i < 300; i++) {
            loan l = some_loan(STREAMS);
            fails_with = roll(2) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
            fails_at = roll(3) ? 0 : calls + 1 + (int)roll(8);
            if (take(&cuda, &l) == RUNG_SUCCESS)
                give(&cuda, &l);
        }
        fails_at = 0;
        end(&cuda);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_is_there_and_alone),
        cmocka_unit_test(what_is_kept_is_not_asked_for_again),
        cmocka_unit_test(blocks_grow_in_steps),
        cmocka_unit_test(no_more_than_the_limit_is_kept),
        cmocka_unit_test(streams_take_turns),
        cmocka_unit_test(a_failing_call_leaves_nothing),
        cmocka_unit_test(order_holds_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
