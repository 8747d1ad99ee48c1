/* Launches that a stream records, with a driver of the test's own: each waits for what its order says, what comes after
 * the product waits for all of it, and where a call of the driver fails nothing is lost on the way.
 */
#include "own_driver.h"

#include "cuda/driver/chain.h"
#include "cuda/driver/recorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 32, MOST = RUNG_LINKS + 2 };

/* ---- the driver: bits stand for sets of nodes ---- */

static uint32_t waits_for[NODES], next_waits_for;
static int nodes, calls, fails_at, is_recording;
static CUgraphNode told[NODES];

static CUresult next_call(void)
{
    return ++calls == fails_at ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **after, size_t *count)
{
    (void)stream;
    *status = is_recording ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    *id = 1;
    *graph = NULL;
    *after = told;
    *count = 0;
    for (int i = 0; i < nodes; i++)
        if (next_waits_for >> i & 1)
            told[(*count)++] = (CUgraphNode)(uintptr_t)(i + 1);
    return next_call();
}

static CUresult capture_order(CUstream stream, CUgraphNode *after, size_t count, unsigned flags)
{
    (void)stream;
    assert_int_equal(flags, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    next_waits_for = 0;
    for (size_t i = 0; i < count; i++) {
        assert_in_range((uintptr_t)after[i], 1, nodes);
        next_waits_for |= 1u << ((uintptr_t)after[i] - 1);
    }
    return CUDA_SUCCESS;
}

static int record_node(void)
{
    assert_true(nodes < NODES);
    waits_for[nodes] = next_waits_for;
    next_waits_for = 1u << nodes;
    return nodes++;
}

static const rung_driver driver = {.capture_info = capture_info, .capture_order = capture_order};

/* ---- a product's launches ---- */

static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

static rung_cuda *new_cuda(void)
{
    rung_cuda *cuda = calloc(1, sizeof *cuda);
    assert_non_null(cuda);
    cuda->driver = &driver;
    return cuda;
}

/* What the stream had recorded before: one to so many launches that each wait for nothing. */
static void begin_with(int count)
{
    nodes = calls = fails_at = 0;
    is_recording = 1;
    next_waits_for = 0;
    for (int i = 0; i < count; i++) {
        waits_for[nodes++] = 0;
        next_waits_for |= 1u << i;
    }
}

/* Launches as rung_launch() does. */
static rung_status launch(rung_cuda *cuda, rung_chain_order order, int *moved)
{
    const rung_status status = rung_recorded_before(cuda, order, moved);
    if (status != RUNG_SUCCESS)
        return status;
    record_node();
    return rung_recorded_after(cuda);
}

/* Returns all that a node waits for, the nodes before it too. */
static uint32_t all_before(uint32_t set)
{
    for (int i = nodes - 1; i >= 0; i--)
        if (set >> i & 1)
            set |= waits_for[i];
    return set;
}

static void each_waits_for_what_its_order_says(void **state)
{
    (void)state;
    rung_cuda *cuda = new_cuda();
    for (int round = 0; round < 3000; round++) {
        const int before = (int)roll(RUNG_LINKS + 3), count = (int)roll(MOST + 1);
        rung_chain_order orders[MOST];
        int moved;
        begin_with(before);
        const uint32_t first = next_waits_for;
        uint32_t ends = first;
        rung_recorded_begin(cuda);
        for (int i = 0; i < count; i++) {
            /* A chain that is too long, and one that begins after too much, goes on one by one. */
            const int serial = i >= RUNG_LINKS || before > RUNG_LINKS;
            orders[i] = (rung_chain_order)roll(3);
            assert_int_equal(launch(cuda, orders[i], &moved), RUNG_SUCCESS);
            const uint32_t want = serial || i == 0 || orders[i] == RUNG_AFTER_ALL ? ends
                                  : orders[i] == RUNG_BESIDE_LAST                 ? waits_for[nodes - 2]
                                                                                  : 1u << (nodes - 2);
            assert_int_equal(waits_for[nodes - 1], want);
            assert_int_equal(moved, !serial && i > 0 && want != 1u << (nodes - 2));
            ends = (ends & ~want) | 1u << (nodes - 1);
        }
        assert_int_equal(rung_recorded_end(cuda), RUNG_SUCCESS);
        assert_int_equal(next_waits_for, ends);
    }
    rung_recorded_close(cuda);
    assert_null(cuda->recorded);
    free(cuda);
}

/* Whichever call fails, what is recorded next waits for every launch that succeeded, and for what came before. */
static void nothing_is_lost_where_a_call_fails(void **state)
{
    (void)state;
    rung_cuda *cuda = new_cuda();
    for (int round = 0; round < 3000; round++) {
        int moved, failed = 0;
        begin_with(1 + (int)roll(3));
        fails_at = 1 + (int)roll(12);
        rung_recorded_begin(cuda);
        int made = nodes;
        for (int i = 0; i < RUNG_LINKS && !failed; i++) {
            failed = launch(cuda, (rung_chain_order)roll(3), &moved) != RUNG_SUCCESS;
            made = failed ? made : nodes;
        }
        const int end_failed = rung_recorded_end(cuda) != RUNG_SUCCESS;
        if (calls >= fails_at && fails_at > 1)
            assert_true(failed || end_failed);
        if (!end_failed)
            assert_int_equal(all_before(next_waits_for) & ((1u << made) - 1), (1u << made) - 1);
    }
    rung_recorded_close(cuda);
    free(cuda);
}

static void other_launches_are_left_alone(void **state)
{
    (void)state;
    rung_cuda *cuda = new_cuda();
    int moved = 1;
    begin_with(2);
    assert_int_equal(launch(cuda, RUNG_BESIDE_LAST, &moved), RUNG_SUCCESS); /* nobody has begun */
    assert_true(calls == 0 && moved == 0);
    is_recording = 0; /* the recording is broken: nothing is told */
    rung_recorded_begin(cuda);
    calls = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(launch(cuda, RUNG_BESIDE_LAST, &moved), RUNG_SUCCESS);
    assert_int_equal(rung_recorded_end(cuda), RUNG_SUCCESS);
    assert_true(calls == 0 && moved == 0);
    rung_recorded_close(cuda);
    free(cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_waits_for_what_its_order_says),
        cmocka_unit_test(nothing_is_lost_where_a_call_fails),
        cmocka_unit_test(other_launches_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
