/* What a rank does with the memory of messages: nothing is freed while something may still arrive there. The engine,
 * the transport and the connections are this file's. */
#include "multi/mover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PEER = 2, FLOATS = 12 };

static int taken, given_back, abandoned, arrived;
static float *receives_at;

rung_status multi_control_check(multi_control *control)
{
    (void)control;
    return RUNG_SUCCESS;
}

void multi_control_tell(multi_control *control, rung_status status, const char *why)
{
    (void)control, (void)status, (void)why;
}

static rung_status take(multi_engine *engine, int64_t bytes, void **memory)
{
    (void)engine;
    taken++;
    return (*memory = malloc((size_t)bytes)) ? RUNG_SUCCESS : RUNG_OUT_OF_MEMORY;
}

static void give_back(multi_engine *engine, void *memory)
{
    (void)engine;
    given_back++;
    free(memory);
}

enum { MOST_PIECES = 12, LD = 9, AREA = LD * 8 };
static float here[2][MOST_PIECES][AREA]; /* of operands, and of results */
static int pieces_in_host;

static int is_here(const float *at, int results)
{
    return at >= here[results][0] && at < here[results][0] + MOST_PIECES * AREA;
}

static rung_status copy(multi_engine *engine, multi_lane lane, const multi_copy *piece, multi_engine *from)
{
    (void)engine, (void)lane;
    assert_null(from);
    if (pieces_in_host) { /* the buffer of a message is the engine's own memory */
        assert_int_equal(piece->from_host, is_here(piece->from, 0));
        assert_int_equal(piece->to_host, is_here(piece->to, 1));
    }
    for (int64_t i = 0; i < piece->lines; i++)
        memcpy(piece->to + i * piece->to_ld, piece->from + i * piece->from_ld, (size_t)piece->length * sizeof(float));
    return RUNG_SUCCESS;
}

static rung_status all_done(multi_engine *engine, int *done)
{
    (void)engine;
    *done = 1;
    return RUNG_SUCCESS;
}

static rung_status collect(multi_engine *engine)
{
    (void)engine;
    return RUNG_SUCCESS;
}

static int exchange(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why)
{
    (void)tag, (void)why;
    assert_int_equal(count, 1);
    assert_int_equal(messages->bytes, FLOATS * 4);
    receives_at = messages->data;
    *pending = state;
    return 0;
}

static int poll_exchange(void *state, void *pending, int *done, int *waiting_for, char *why)
{
    (void)why;
    assert_ptr_equal(state, pending);
    *done = arrived;
    *waiting_for = PEER;
    for (int i = 0; i < FLOATS && arrived; i++)
        receives_at[i] = (float)i;
    return 0;
}

static void abandon(void *state, void *pending)
{
    assert_ptr_equal(state, pending);
    abandoned++;
}

static const multi_engine_ops ops = {
    .alloc = take, .free = give_back, .copy = copy, .poll = all_done, .collect = collect};
static multi_transport transport = {
    .state = &transport, .exchange = exchange, .poll = poll_exchange, .abandon = abandon};

/* Asks for 3 lines of 4 floats from the peer. */
static void begin(rung_multi *multi, multi_mover *mover, float *to)
{
    const multi_copy piece = {.to = to, .to_ld = 5, .length = 4, .lines = 3};
    *multi = (rung_multi){.first_rank = 1, .held = 1, .ranks = 3, .transport = &transport, .timeout_s = 1000.0};
    multi->engines[0] = (multi_engine){.ops = &ops};
    *mover = (multi_mover){.count = 0};
    taken = given_back = abandoned = arrived = 0;
    assert_int_equal(multi_mover_add(multi, mover, PEER, 1, &piece), RUNG_SUCCESS);
    assert_int_equal(multi_mover_begin(multi, mover, 7), RUNG_SUCCESS);
    assert_int_equal(taken, 1);
}

static void what_has_arrived_is_unpacked_and_its_memory_freed(void **state)
{
    (void)state;
    static rung_multi multi;
    multi_mover mover;
    float to[15] = {0};
    begin(&multi, &mover, to);
    arrived = 1;
    assert_int_equal(multi_mover_finish(&multi, &mover, "a panel"), RUNG_SUCCESS);
    for (int i = 0; i < 15; i++)
        assert_true(to[i] == (i % 5 == 4 ? 0.0f : (float)(i / 5 * 4 + i % 5)));
    multi_mover_free(&multi, &mover);
    assert_int_equal(given_back, 1);
    assert_int_equal(abandoned, 0);
}

static void what_may_still_arrive_keeps_its_memory(void **state)
{
    (void)state;
    static rung_multi multi;
    multi_mover mover;
    float to[15] = {0};
    int done = 1, waiting_for = -1;
    begin(&multi, &mover, to);
    assert_int_equal(multi_mover_poll(&multi, &mover, &done, &waiting_for), RUNG_SUCCESS);
    assert_int_equal(done, 0);
    assert_int_equal(waiting_for, PEER);
    multi_mover_free(&multi, &mover);
    assert_int_equal(abandoned, 1);
    assert_int_equal(given_back, 0);
    memset(receives_at, 0xff, FLOATS * 4); /* here it comes */
    free(receives_at);
}

/* ---- drawn pieces, of which a mover makes a message to each peer and one from each ---- */

enum { RANKS = 4, ME = 1, ROUNDS = 200 };

static uint64_t dice = 5;

static int below(int number)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)number);
}

/* What the messages of this round must be: floats of pieces in their order, and where each goes or comes from. */
static struct expected {
    int floats;
    float *at[MOST_PIECES * AREA];
} expected[RANKS][2];
static float stamp;

static int exchange_drawn(void *state, const multi_message *messages, int count, int64_t tag, void **pending, char *why)
{
    int seen[RANKS][2] = {{0}}, all = 0;
    (void)tag, (void)why;
    for (int i = 0; i < count; i++) {
        const multi_message *m = &messages[i];
        const struct expected *x = &expected[m->peer][m->receive];
        assert_true(m->peer != ME && !seen[m->peer][m->receive]++);
        assert_int_equal(m->bytes, x->floats * 4);
        for (int j = 0; j < x->floats; j++)
            if (m->receive)
                ((float *)m->data)[j] = stamp + (float)j; /* it comes at once */
            else
                assert_true(((float *)m->data)[j] == *x->at[j]);
    }
    for (int peer = 0; peer < RANKS; peer++)
        for (int receive = 0; receive < 2; receive++)
            all += expected[peer][receive].floats > 0;
    assert_int_equal(count, all);
    *pending = state;
    return 0;
}

static int poll_drawn(void *state, void *pending, int *done, int *waiting_for, char *why)
{
    (void)state, (void)pending, (void)why;
    *done = 1;
    *waiting_for = -1;
    return 0;
}

/* A mover that is used again sends and takes what was added since, each float once, and nothing else. */
static void messages_are_the_pieces_that_were_added(void **state)
{
    static multi_transport drawn = {.exchange = exchange_drawn, .poll = poll_drawn, .abandon = abandon};
    static rung_multi multi;
    multi_mover mover = {.count = 0};
    (void)state;
    drawn.state = &drawn;
    multi = (rung_multi){.first_rank = ME, .held = 1, .ranks = RANKS, .transport = &drawn, .timeout_s = 1000.0};
    multi.engines[0] = (multi_engine){.ops = &ops};
    pieces_in_host = 1;
    for (int round = 0; round < ROUNDS; round++) {
        const int pieces = below(MOST_PIECES);
        memset(expected, 0, sizeof expected);
        stamp = (float)(round * 1000);
        for (int i = 0; i < MOST_PIECES * AREA; i++)
            here[0][i / AREA][i % AREA] = (float)(i + round), here[1][i / AREA][i % AREA] = -1.0f;
        for (int i = 0; i < pieces; i++) {
            const int from = below(3) ? ME : below(RANKS), to = from == ME ? below(RANKS)
                                                                : below(3) ? ME
                                                                           : below(RANKS);
            const multi_copy piece = {.from = here[0][i],
                                      .from_ld = LD,
                                      .to = here[1][i],
                                      .to_ld = LD,
                                      .length = below(LD),
                                      .lines = below(7),
                                      .from_host = 1,
                                      .to_host = 1};
            assert_int_equal(multi_mover_add(&multi, &mover, from, to, &piece), RUNG_SUCCESS);
            if ((from == ME) == (to == ME)) /* it is copied at once, or is no concern of this rank */
                continue;
            struct expected *x = &expected[from == ME ? to : from][to == ME];
            for (int64_t line = 0; line < piece.lines; line++)
                for (int64_t j = 0; j < piece.length; j++)
                    x->at[x->floats++] = (to == ME ? here[1][i] : here[0][i]) + line * LD + j;
        }
        assert_int_equal(multi_mover_begin(&multi, &mover, round), RUNG_SUCCESS);
        assert_int_equal(multi_mover_finish(&multi, &mover, "a panel"), RUNG_SUCCESS);
        for (int peer = 0; peer < RANKS; peer++)
            for (int j = 0; j < expected[peer][1].floats; j++)
                assert_true(*expected[peer][1].at[j] == stamp + (float)j);
    }
    multi_mover_free(&multi, &mover);
    pieces_in_host = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_are_the_pieces_that_were_added),
                                       cmocka_unit_test(what_has_arrived_is_unpacked_and_its_memory_freed),
                                       cmocka_unit_test(what_may_still_arrive_keeps_its_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
