/* What accurate mode recalls of a product, with a driver of the test's own: when there is a look, beside a model of the
 * rule; whose it is, field by field; that places lie apart in memory; and what a call that fails leaves.
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

/* ---- when there is a look ---- */

enum { FIRST = 8, LONGEST = 1024, TRUSTED = 64 };

/* This is the rule: after a look in vain so many products go without one, twice as many after each more, up to the
 * longest pause; after TRUSTED good looks in between the first pause comes again. */
typedef struct model {
    int vain, pause, left, good, fresh;
} model;

static int model_looks(model *m, int vain, int last)
{
    if (m->fresh) {
        *m = (model){.vain = vain};
        return 0;
    }
    if (vain != m->vain) {
        const int pause = m->pause == 0 || m->good >= TRUSTED ? FIRST : 2 * m->pause;
        *m = (model){.vain = vain, .pause = pause > LONGEST ? LONGEST : pause};
        m->left = m->pause;
    }
    if (m->left > 0) {
        m->left--;
        return 0;
    }
    m->good += last;
    return last;
}

static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

/* Looks are in vain after so many good ones, or by chance. */
static void looks_follow_the_rule(void **state)
{
    (void)state;
    static const int good_between[] = {0, 1, 2, 63, 64, 65, 66, 0, 0, 0, 0, 0, 0, 0, 0, 62, 130, 0, 63, 0, 64, 0, 1};
    for (int by_chance = 0; by_chance < 3; by_chance++) {
        rung_cuda cuda;
        rung_problem p = some_product();
        rung_recall_place place;
        model m = {.fresh = 1};
        uint32_t vain = 0, last = 0;
        uint64_t number = 0;
        int goods = 0, next = 0;
        const int wanted = (int)(sizeof good_between / sizeof *good_between);
        begin(&cuda);
        for (int call = 0; by_chance ? call < 30000 : next < wanted; call++) {
            assert_true(call < 100000);
            const int told_vain = m.vain != (int)vain, look = rung_recall(&cuda, &p, &place);
            assert_int_equal(look, model_looks(&m, (int)vain, (int)last));
            assert_true(call > 0 ? told_vain ? place.number > number : place.number == number : place.number > 0);
            number = place.number;
            goods = look ? goods + 1 : goods;
            last = by_chance ? (roll(8) > 0 ? 1 : 0) : 1;
            const int was_vain = by_chance ? look && roll(by_chance == 1 ? 3 : 100) == 0
                                           : look && next < wanted && goods > good_between[next];
            vain += (uint32_t)was_vain;
            next += was_vain;
            goods = was_vain ? 0 : goods;
            *place.told = last;
            *place.in_vain = vain;
        }
        end(&cuda);
    }
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
            assert_int_equal(rung_recall(&cuda, &p, &mine), 0);
            *mine.told = 1;
            const int look = rung_recall(&cuda, &other, &its);
            assert_int_equal(look, field >= READ);
            assert_int_equal(its.number == mine.number, field >= READ);
            if (its.last != mine.last) { /* the other one has a place of its own, and this one is still known */
                assert_int_equal(rung_recall(&cuda, &p, &mine), 1);
                end(&cuda);
                continue;
            }
            assert_int_equal(rung_recall(&cuda, &p, &mine), field >= READ);
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
        assert_int_equal(rung_recall(&cuda, &p, &place), 0);
        const char *last = (const char *)place.last, *witness = (const char *)place.witness;
        const char *told = (const char *)(uintptr_t)place.told, *vain = (const char *)(uintptr_t)place.in_vain;
        const size_t witnesses = F16X3_WITNESSES * sizeof *place.witness;
        if (i == 0) { /* nobody has written yet */
            assert_true(cleared && waited == 1);
            for (size_t at = 0; at < device_bytes; at++)
                assert_int_equal(device_memory[at], 0);
            for (size_t at = 0; at < host_bytes; at++)
                assert_int_equal(host_memory[at], 0);
        }
        assert_true(last >= device_memory && last + 4 <= device_memory + device_bytes);
        assert_true(witness >= device_memory && witness + witnesses <= device_memory + device_bytes);
        assert_true(last + 4 <= witness || witness + witnesses <= last);
        assert_true(told >= host_memory && told + 4 <= host_memory + host_bytes);
        assert_true(vain >= host_memory && vain + 4 <= host_memory + host_bytes);
        int known = 0;
        for (int j = 0; j < count && !known; j++)
            known = seen[j].last == place.last && seen[j].witness == place.witness && seen[j].told == place.told &&
                    seen[j].in_vain == place.in_vain;
        for (int j = 0; j < count && !known; j++) {
            const char *their_last = (const char *)seen[j].last, *their = (const char *)seen[j].witness;
            assert_true(last != their_last && (last + 4 <= their || their + witnesses <= last));
            assert_true(witness + witnesses <= their || their + witnesses <= witness);
            assert_true(place.told != seen[j].told && place.told != seen[j].in_vain);
            assert_true(place.in_vain != seen[j].told && place.in_vain != seen[j].in_vain);
        }
        if (!known)
            seen[count++] = place;
    }
    assert_in_range(count, 200, 256); /* as many places as there are, or nearly */
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
        assert_int_equal(rung_recall(&cuda, &p, &place), 0);
        failed = calls >= fails_at;
        if (failed) {
            assert_true(!place.last && !place.told && !place.in_vain && !place.witness);
            assert_int_equal(streams + device_blocks + host_blocks + tables, 0);
            const int before = calls;
            assert_int_equal(rung_recall(&cuda, &p, &place), 0);
            assert_null(place.last);
            assert_int_equal(calls, before); /* it is not asked for again */
        }
        assert_true(failed || at > 6);
        end(&cuda);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_follow_the_rule),
        cmocka_unit_test(a_product_is_known_by_what_it_reads),
        cmocka_unit_test(places_lie_apart),
        cmocka_unit_test(without_memory_there_is_no_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
