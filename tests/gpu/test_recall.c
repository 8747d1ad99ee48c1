/* Where accurate mode recalls what its guard said of a product, with a driver of the test's own: whose the place is,
 * field by field; that places lie apart in memory; what a product of a recorded graph gets; and what a call that fails
 * leaves.
 */
#include "cuda/families/accurate/recall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the driver: it counts what is alive, and one of its calls fails ---- */

enum { GUARD = 64, UNTOUCHED = 0x5a };

static int streams, device_blocks, host_blocks, tables, calls, fails_at, waited, cleared;
static char *device_memory, *host_memory;
static size_t device_bytes, host_bytes;
static void *table;

static CUresult next_call(void)
{
    return ++calls == fails_at ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void *__real_calloc(size_t count, size_t bytes), *__wrap_calloc(size_t count, size_t bytes);
void __real_free(void *memory), __wrap_free(void *memory);

/* Only the table comes from here: it is the largest. */
void *__wrap_calloc(size_t count, size_t bytes)
{
    if (count * bytes < 1000)
        return __real_calloc(count, bytes);
    if (next_call() != CUDA_SUCCESS)
        return NULL;
    tables++;
    return table = __real_calloc(count, bytes);
}

void __wrap_free(void *memory)
{
    tables -= memory && memory == table;
    table = memory == table ? NULL : table;
    __real_free(memory);
}

static char *guarded(size_t bytes)
{
    char *memory = malloc(bytes + GUARD);
    assert_non_null(memory);
    memset(memory, UNTOUCHED, bytes + GUARD);
    return memory;
}

static void check_guard(const char *memory, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(memory[bytes + (size_t)i], UNTOUCHED);
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING); /* else it would wait for the program's own work */
    assert_int_equal(priority, 0);
    *stream = (CUstream)(uintptr_t)&streams;
    CUresult result = next_call();
    streams += result == CUDA_SUCCESS;
    return result;
}

static CUresult stream_destroy(CUstream stream)
{
    assert_ptr_equal(stream, &streams);
    streams--;
    return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
    assert_ptr_equal(stream, &streams);
    waited++;
    return next_call();
}

static CUresult host_alloc(void **at, size_t bytes, unsigned flags)
{
    assert_int_equal(flags, 0);
    CUresult result = next_call();
    if (result != CUDA_SUCCESS)
        return result;
    host_blocks++;
    host_bytes = bytes;
    *at = host_memory = guarded(bytes);
    return result;
}

static CUresult host_free(void *at)
{
    assert_ptr_equal(at, host_memory);
    check_guard(host_memory, host_bytes);
    host_blocks--;
    free(at);
    return CUDA_SUCCESS;
}

static CUresult memory_alloc(CUdeviceptr *at, size_t bytes)
{
    CUresult result = next_call();
    if (result != CUDA_SUCCESS)
        return result;
    device_blocks++;
    device_bytes = bytes;
    device_memory = guarded(bytes);
    *at = (CUdeviceptr)(uintptr_t)device_memory;
    return result;
}

static CUresult memory_free(CUdeviceptr at)
{
    assert_ptr_equal((void *)(uintptr_t)at, device_memory);
    check_guard(device_memory, device_bytes);
    device_blocks--;
    free(device_memory);
    return CUDA_SUCCESS;
}

static CUresult set_32(CUdeviceptr at, unsigned value, size_t words, CUstream stream)
{
    assert_ptr_equal(stream, &streams);
    CUresult result = next_call();
    for (size_t i = 0; result == CUDA_SUCCESS && i < words; i++)
        memcpy((char *)(uintptr_t)at + 4 * i, &value, 4);
    cleared = waited == 0; /* before it is waited for */
    return result;
}

static const rung_driver driver = {.stream_create = stream_create,
                                   .stream_destroy = stream_destroy,
                                   .stream_synchronize = stream_synchronize,
                                   .host_alloc = host_alloc,
                                   .host_free = host_free,
                                   .memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .set_32 = set_32};

static int relaxed;

rung_thread_mode rung_driver_relax(const rung_driver *d)
{
    (void)d;
    relaxed++;
    return (rung_thread_mode){.changed = 0};
}

void rung_driver_put_back(const rung_driver *d, rung_thread_mode mode)
{
    (void)d, (void)mode;
    relaxed--;
}

/* ---- a graph that is being recorded, which lends these zeros and has room for few records ---- */

enum { RECORD_BYTES = 4096 };

static const char graph_zeros[4], other_zeros[4];
static _Alignas(16) char records[RECORD_BYTES + GUARD];
static int64_t records_used;

int rung_graph_memory_lent(rung_cuda *cuda, const void *memory)
{
    assert_non_null(cuda);
    return memory == graph_zeros;
}

void *rung_graph_record_get(rung_cuda *cuda, const void *zeros, int64_t bytes)
{
    assert_non_null(cuda);
    assert_ptr_equal(zeros, graph_zeros);
    if (records_used + bytes > RECORD_BYTES)
        return NULL;
    void *record = records + records_used;
    records_used += bytes;
    return record;
}

static void begin(rung_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    cuda->driver = &driver;
    calls = fails_at = waited = cleared = 0;
}

static void end(rung_cuda *cuda)
{
    rung_recall_close(cuda);
    assert_null(cuda->recall);
    assert_int_equal(streams + device_blocks + host_blocks + tables, 0);
    assert_int_equal(relaxed, 0);
}

static rung_problem some_product(void)
{
    return (rung_problem){.m = 300,
                          .n = 200,
                          .k = 100,
                          .lda = 100,
                          .ldb = 200,
                          .ldc = 200,
                          .batch = 1,
                          .a = (const float *)(uintptr_t)0x10000,
                          .b = (const float *)(uintptr_t)0x20000,
                          .c = (float *)(uintptr_t)0x30000,
                          .alpha = 1.0f};
}

/* ---- whose it is ---- */

static void a_product_is_known_by_what_it_reads(void **state)
{
    (void)state;
    enum { READ = 9, FIELDS = 14 };
    for (int field = 0; field < FIELDS; field++)
        for (int bit = 0; bit < (field < 7 ? 60 : 1); bit++) {
            rung_cuda cuda;
            rung_problem p = some_product(), other = p;
            rung_recall_place mine, its;
            int64_t *const numbers[] = {&other.m, &other.n, &other.k, &other.lda, &other.ldb};
            begin(&cuda);
            if (field < 5)
                *numbers[field] ^= (int64_t)1 << bit;
            else if (field < 7)
                *(field == 5 ? &other.a : &other.b) =
                    (const float *)((uintptr_t)(field == 5 ? p.a : p.b) ^ (uintptr_t)1 << bit);
            else if (field < READ)
                *(field == 7 ? &other.trans_a : &other.trans_b) ^= 1;
            else if (field == 9)
                other.c += 4;
            else if (field == 10)
                other.ldc += 4;
            else if (field == 11)
                other.alpha = -2.0f;
            else if (field == 12)
                other.beta = 1.0f;
            else
                other.math = RUNG_ACCURATE;
            mine = rung_recall(&cuda, &p, other_zeros);
            assert_true(mine.record && mine.number > 0 && !mine.may_look);
            *mine.told = 1; /* all blocks were refused */
            its = rung_recall(&cuda, &other, other_zeros);
            const int same = its.record == mine.record && its.number == mine.number;
            assert_int_equal(same, field >= READ);
            assert_int_equal(its.may_look, same);
            const rung_recall_place again = rung_recall(&cuda, &p, other_zeros);
            assert_ptr_equal(again.record, mine.record);
            if (same || its.record != mine.record) /* it has a place of its own, and this one is still known */
                assert_true(again.number == mine.number && again.may_look);
            else /* each forgets the other: numbers never come again */
                assert_true(its.number > mine.number && again.number > its.number && !again.may_look);
            *mine.told = 0;
            assert_false(rung_recall(&cuda, &p, other_zeros).may_look);
            end(&cuda);
        }
}

/* The places of many products lie apart, within the memory that was asked for, and hold zeros at first. */
static void places_lie_apart(void **state)
{
    (void)state;
    enum { PRODUCTS = 4000, MOST = 4096 };
    rung_cuda cuda;
    static rung_recall_place seen[MOST];
    int count = 0;
    begin(&cuda);
    for (int i = 0; i < PRODUCTS; i++) {
        rung_problem p = some_product();
        rung_recall_place place;
        p.m += i % 61, p.n += i / 61;
        place = rung_recall(&cuda, &p, other_zeros);
        const char *record = (const char *)place.record, *witness = (const char *)place.witness;
        const size_t witnesses = F16X3_WITNESSES * sizeof *place.witness;
        if (i == 0) { /* nobody has written yet */
            assert_true(cleared && waited == 1);
            for (size_t at = 0; at < device_bytes; at++)
                assert_int_equal(device_memory[at], 0);
            for (size_t at = 0; at < host_bytes; at++)
                assert_int_equal(host_memory[at], 0);
        }
        const char *told = (const char *)(uintptr_t)place.told;
        assert_true(told >= host_memory && told + 4 <= host_memory + host_bytes);
        assert_true(record >= device_memory && record + sizeof *place.record <= device_memory + device_bytes);
        assert_true(witness >= device_memory && witness + witnesses <= device_memory + device_bytes);
        assert_true(record + sizeof *place.record <= witness || witness + witnesses <= record);
        int known = 0;
        for (int j = 0; j < count && !known; j++)
            known = seen[j].record == place.record && seen[j].witness == place.witness && seen[j].told == place.told;
        for (int j = 0; j < count && !known; j++) {
            assert_true(place.told != seen[j].told);
            const char *theirs = (const char *)seen[j].record, *their = (const char *)seen[j].witness;
            assert_true(record + sizeof *place.record <= theirs || theirs + sizeof *place.record <= record);
            assert_true(record + sizeof *place.record <= their || their + witnesses <= record);
            assert_true(witness + witnesses <= their || their + witnesses <= witness);
            assert_true(witness + witnesses <= theirs || theirs + sizeof *place.record <= witness);
        }
        if (!known)
            seen[count++] = place;
    }
    assert_in_range(count, 200, 256); /* as many places as there are, or nearly */
    end(&cuda);
}

/* A product of a recorded graph has a record of its own, whatever it reads, with room for its witnesses; nothing else
 * is asked for. Where the graph has no room left nothing is recalled. */
static void a_recorded_product_has_its_own(void **state)
{
    (void)state;
    rung_cuda cuda;
    rung_problem p = some_product(); /* blocks: three of rows, two of columns */
    const int64_t bytes = (int64_t)sizeof(f16x3_recalled) + 10 * (int64_t)sizeof(f16x3_witness);
    begin(&cuda);
    records_used = 0;
    for (int i = 0; i < 3; i++) {
        const rung_recall_place place = rung_recall(&cuda, &p, graph_zeros);
        assert_ptr_equal(place.record, records + i * bytes);
        assert_ptr_equal(place.witness, records + i * bytes + sizeof(f16x3_recalled));
        assert_true(place.number > 0 && place.may_look && !place.told);
        assert_int_equal(records_used, (i + 1) * bytes);
    }
    records_used = RECORD_BYTES - bytes + 1;
    const rung_recall_place none = rung_recall(&cuda, &p, graph_zeros);
    assert_true(!none.record && !none.may_look);
    assert_int_equal(calls, 0);
    assert_null(cuda.recall);
    end(&cuda);
}

/* ---- what a failing call leaves ---- */

static void without_memory_there_is_no_look(void **state)
{
    (void)state;
    int failed = 1;
    for (int at = 1; failed; at++) {
        rung_cuda cuda;
        rung_problem p = some_product();
        rung_recall_place place;
        begin(&cuda);
        fails_at = at;
        place = rung_recall(&cuda, &p, other_zeros);
        failed = calls >= fails_at;
        if (failed) {
            assert_true(!place.record && !place.witness && !place.told && !place.may_look);
            assert_int_equal(streams + device_blocks + host_blocks + tables, 0);
            const int before = calls;
            assert_null(rung_recall(&cuda, &p, other_zeros).record);
            assert_int_equal(calls, before); /* it is not asked for again */
        }
        assert_true(failed || at > 5);
        end(&cuda);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_known_by_what_it_reads),
        cmocka_unit_test(places_lie_apart),
        cmocka_unit_test(a_recorded_product_has_its_own),
        cmocka_unit_test(without_memory_there_is_no_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
