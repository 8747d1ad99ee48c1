/* The MPI transport, in front of MPI calls of the test's own: several ranks in one process, whose messages arrive when
 * the dice say so. What was sent arrives, once and in order, and is read only when it is sent; a chain's link is done
 * when it has passed on all; who is waited for is who has not come; a call that fails is told by its name.
 */
#include "multi/transport.h"
#include "rung.h"

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int rung_mpi_transport_open(multi_transport *t, void *communicator, char *why);

enum { RANKS = 5, REQUESTS = 16384, SEGMENT = 1 << 20, TAG_LIMIT = 1000 };

/* ---- MPI ---- */

static struct request {
    int from, to, tag, bytes, is_send, done, taken; /* taken: a receive has it, or it has its send */
    void *data;
} requests[REQUESTS];
static int is_over;                                                          /* the program has ended MPI */
static int request_count, now_rank, ranks, calls, fails_at, comms, is_still; /* is_still: nothing is delivered */
static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

static int next_call(void)
{
    return ++calls == fails_at ? MPI_ERR_OTHER : MPI_SUCCESS;
}

#define WRAPPED(name, ...) int __wrap_MPI_##name(__VA_ARGS__)

static int bytes_of(int count, MPI_Datatype type)
{
    assert_true(type == MPI_BYTE || type == MPI_FLOAT);
    return type == MPI_FLOAT ? 4 * count : count;
}

static int begin_request(void *data, int bytes, int from, int to, int tag, int is_send, MPI_Request *request)
{
    if (next_call() != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    assert_true(request_count + 1 < REQUESTS && tag >= 0 && tag < TAG_LIMIT);
    requests[++request_count] = (struct request){from, to, tag, bytes, is_send, 0, 0, data};
    *request = (MPI_Request)(uintptr_t)(0x1000 + request_count);
    return MPI_SUCCESS;
}

WRAPPED(Isend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
WRAPPED(Isend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)comm;
    assert_in_range(to, 0, ranks - 1);
    return begin_request((void *)(uintptr_t)data, bytes_of(count, type), now_rank, to, tag, 1, request);
}

WRAPPED(Irecv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
WRAPPED(Irecv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)comm;
    assert_in_range(from, 0, ranks - 1);
    return begin_request(data, bytes_of(count, type), from, now_rank, tag, 0, request);
}

/* One message arrives: the first send of its kind that has none yet goes to the first receive that has none. */
static void deliver(void)
{
    const int first = (int)roll((uint32_t)request_count + 1);
    for (int i = 0; i <= request_count; i++) {
        struct request *send = &requests[1 + (first + i) % (request_count ? request_count : 1)];
        if (request_count == 0 || !send->is_send || send->done)
            continue;
        for (int j = 1; j <= request_count; j++) /* an earlier one goes first */
            if (requests[j].is_send && !requests[j].done && requests[j].from == send->from &&
                requests[j].to == send->to && requests[j].tag == send->tag) {
                send = &requests[j];
                break;
            }
        for (int j = 1; j <= request_count; j++) {
            struct request *receive = &requests[j];
            if (receive->is_send || receive->done || receive->from != send->from || receive->to != send->to ||
                receive->tag != send->tag)
                continue;
            assert_int_equal(receive->bytes, send->bytes);
            memcpy(receive->data, send->data, (size_t)send->bytes);
            send->done = receive->done = 1;
            return;
        }
    }
}

static struct request *at(MPI_Request request)
{
    return &requests[(uintptr_t)request - 0x1000];
}

WRAPPED(Test, MPI_Request *request, int *flag, MPI_Status *status);
WRAPPED(Test, MPI_Request *request, int *flag, MPI_Status *status)
{
    (void)status;
    if (!is_still && roll(4) == 0) /* messages arrive at any time */
        deliver();
    if (next_call() != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    *flag = *request == MPI_REQUEST_NULL || at(*request)->done;
    if (*flag)
        *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

WRAPPED(Comm_rank, MPI_Comm comm, int *rank);
WRAPPED(Comm_rank, MPI_Comm comm, int *rank)
{
    *rank = comm == MPI_COMM_SELF ? now_rank % 2 : now_rank; /* of its host: two ranks a host */
    return next_call();
}

WRAPPED(Comm_size, MPI_Comm comm, int *size);
WRAPPED(Comm_size, MPI_Comm comm, int *size)
{
    *size = comm == MPI_COMM_SELF ? 2 : ranks;
    return next_call();
}

WRAPPED(Comm_dup, MPI_Comm comm, MPI_Comm *copy);
WRAPPED(Comm_dup, MPI_Comm comm, MPI_Comm *copy)
{
    *copy = comm;
    const int result = next_call();
    comms += result == MPI_SUCCESS;
    return result;
}

WRAPPED(Comm_split_type, MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *host);
WRAPPED(Comm_split_type, MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *host)
{
    (void)comm, (void)info;
    assert_int_equal(type, MPI_COMM_TYPE_SHARED);
    assert_int_equal(key, now_rank); /* places on a host are in the order of ranks */
    *host = MPI_COMM_SELF;
    const int result = next_call();
    comms += result == MPI_SUCCESS;
    return result;
}

WRAPPED(Comm_free, MPI_Comm *comm);
WRAPPED(Comm_free, MPI_Comm *comm)
{
    assert_false(is_over); /* MPI would end the program */
    *comm = MPI_COMM_NULL;
    comms--;
    return next_call();
}

WRAPPED(Comm_set_errhandler, MPI_Comm comm, MPI_Errhandler handler);
WRAPPED(Comm_set_errhandler, MPI_Comm comm, MPI_Errhandler handler)
{
    (void)comm;
    assert_true(handler == MPI_ERRORS_RETURN); /* else MPI would end the program */
    return next_call();
}

WRAPPED(Comm_get_attr, MPI_Comm comm, int key, void *value, int *found);
WRAPPED(Comm_get_attr, MPI_Comm comm, int key, void *value, int *found)
{
    static int limit = TAG_LIMIT;
    (void)comm;
    assert_int_equal(key, MPI_TAG_UB);
    *(int **)value = &limit;
    *found = 1;
    return next_call();
}

static char shared[64];

WRAPPED(Bcast, void *data, int count, MPI_Datatype type, int root, MPI_Comm comm);
WRAPPED(Bcast, void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    (void)comm;
    assert_int_equal(root, 0);
    memcpy(now_rank == 0 ? shared : data, now_rank == 0 ? data : shared, (size_t)bytes_of(count, type));
    return next_call();
}

WRAPPED(Error_string, int code, char *text, int *length);
WRAPPED(Error_string, int code, char *text, int *length)
{
    assert_int_equal(code, MPI_ERR_OTHER);
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "of the test");
    return MPI_SUCCESS;
}

WRAPPED(Initialized, int *flag);
WRAPPED(Initialized, int *flag)
{
    *flag = 1;
    return next_call();
}

WRAPPED(Finalized, int *flag);
WRAPPED(Finalized, int *flag)
{
    *flag = is_over;
    return next_call();
}

/* ---- ranks ---- */

static multi_transport transports[RANKS];

static void open_ranks(int count)
{
    char why[MULTI_WHY_BYTES] = "";
    ranks = count;
    request_count = calls = fails_at = 0;
    for (now_rank = 0; now_rank < ranks; now_rank++) {
        multi_transport *t = &transports[now_rank];
        memset(t, 0, sizeof *t);
        assert_int_equal(rung_mpi_transport_open(t, NULL, why), 0);
        assert_int_equal(t->rank, now_rank);
        assert_int_equal(t->size, ranks);
        assert_int_equal(t->local_rank, now_rank % 2);
        assert_int_equal(t->local_size, 2);
        assert_false(t->ordered);
    }
    assert_int_equal(comms, ranks); /* each has a communicator of its own, and that of the host is gone */
}

static void close_ranks(void)
{
    for (now_rank = 0; now_rank < ranks; now_rank++)
        transports[now_rank].close(transports[now_rank].state, 0);
    assert_int_equal(comms, 0);
}

/* Fills bytes as rank `of` has them for message `nth`. */
static void fill(unsigned char *to, int64_t bytes, int of, int nth)
{
    for (int64_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(of * 71 + nth * 13 + i * 7 + (i >> 11));
}

static int is_filled(const unsigned char *at, int64_t bytes, int of, int nth)
{
    for (int64_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(of * 71 + nth * 13 + i * 7 + (i >> 11)))
            return 0;
    return 1;
}

/* The messages that rank `r` has begun and that have not ended, to and from others; the least number of a partner. */
static int is_partner(int r, int other)
{
    for (int i = 1; i <= request_count; i++)
        if (!requests[i].done && ((requests[i].is_send && requests[i].from == r && requests[i].to == other) ||
                                  (!requests[i].is_send && requests[i].to == r && requests[i].from == other)))
            return 1;
    return 0;
}

static int has_open(int r)
{
    for (int i = 1; i <= request_count; i++)
        if (!requests[i].done && (requests[i].is_send ? requests[i].from : requests[i].to) == r)
            return 1;
    return 0;
}

/* The tag of an operation after any number of others: tags go round. */
static int64_t draw_tag(void)
{
    static const int64_t before[] = {0, INT32_MAX - 3, UINT32_MAX - (int64_t)3, (int64_t)1 << 45};
    return before[roll(4)] + (int64_t)roll(5) * TAG_LIMIT + (int64_t)roll(8);
}

static void a_broadcast_reaches_all(void **state)
{
    (void)state;
    static const int64_t sizes[] = {4, 400, SEGMENT - 4, SEGMENT, SEGMENT + 4, 2 * SEGMENT, 3 * SEGMENT + 8};
    static unsigned char data[RANKS][3 * SEGMENT + 16];
    for (int round = 0; round < 60; round++) {
        const int64_t bytes = sizes[roll(7)];
        int list[RANKS], count = 0, done[RANKS] = {0}, left;
        void *pending[RANKS] = {NULL};
        char why[MULTI_WHY_BYTES] = "";
        open_ranks(2 + (int)roll(RANKS - 1));
        for (int r = 0; r < ranks; r++) /* two of them at least, in any order */
            if (roll(4) || r >= ranks - 2) {
                const int place = (int)roll((uint32_t)count + 1);
                memmove(list + place + 1, list + place, (size_t)(count++ - place) * sizeof *list);
                list[place] = r;
            }
        const int root = (int)roll((uint32_t)count);
        const int64_t tag = draw_tag();
        for (int i = 0; i < count; i++) {
            memset(data[list[i]], 0xee, (size_t)bytes + 8);
            if (i == root)
                fill(data[list[i]], bytes, list[root], round);
        }
        for (int i = 0; i < count; i++) {
            now_rank = list[i];
            assert_int_equal(transports[now_rank].broadcast(transports[now_rank].state, list, count, root,
                                                            data[now_rank], bytes, tag, &pending[now_rank], why),
                             0);
        }
        for (left = count; left > 0;) {
            for (int many = (int)roll(3); many > 0; many--)
                deliver();
            const int i = (int)roll((uint32_t)count);
            int waiting = -2;
            now_rank = list[i];
            if (done[i])
                continue;
            assert_int_equal(
                transports[now_rank].poll(transports[now_rank].state, pending[now_rank], &done[i], &waiting, why), 0);
            if (done[i]) {
                left--;
                assert_false(has_open(now_rank));
                assert_true(is_filled(data[now_rank], bytes, list[root], round));
                assert_int_equal(data[now_rank][bytes], 0xee);
            } else { /* its neighbours in the chain alone */
                assert_true(waiting == list[(i + count - 1) % count] || waiting == list[(i + 1) % count]);
                assert_true(is_partner(now_rank, waiting));
            }
        }
        assert_false(has_open(0));
        close_ranks();
    }
}

/* Ends all requests of one direction, and says that the pieces cover `bytes` from `data` on, in order. */
static void end_pieces(const unsigned char *data, int64_t bytes, int sends)
{
    int64_t at = 0;
    for (int i = 1; i <= request_count; i++) {
        if (requests[i].is_send != sends)
            continue;
        assert_true((const unsigned char *)requests[i].data == data + at);
        assert_true(requests[i].bytes > 0);
        at += requests[i].bytes;
        requests[i].done = 1;
    }
    assert_true(at == bytes);
}

/* Pieces of data beyond 2^31 and 2^32 bytes stand where they should, for which nobody needs the memory: as long as
 * nothing is delivered none of it is touched. */
static void pieces_of_much_data_have_their_places(void **state)
{
    unsigned char *const data = (unsigned char *)((uintptr_t)1 << 44);
    static const int list[] = {0, 1, 2};
    char why[MULTI_WHY_BYTES] = "";
    void *pending;
    int done = 0, waiting;
    (void)state;
    is_still = 1;
    for (int me = 0; me < 3; me++) {
        const int64_t bytes = ((int64_t)1 << 32) + 3 * SEGMENT + 12;
        open_ranks(3);
        now_rank = me;
        multi_transport *t = &transports[me];
        assert_int_equal(t->broadcast(t->state, list, 3, 0, data, bytes, 7, &pending, why), 0);
        if (me > 0) {
            end_pieces(data, bytes, 0);
            assert_int_equal(t->poll(t->state, pending, &done, &waiting, why), 0); /* passes on what has come */
            assert_int_equal(done, me == 2);
        }
        if (me < 2) {
            end_pieces(data, bytes, 1);
            assert_int_equal(t->poll(t->state, pending, &done, &waiting, why), 0);
            assert_int_equal(done, 1);
        }
        close_ranks();
    }
    for (int receives = 0; receives < 2; receives++) {
        const multi_message message = {.data = data, .bytes = ((int64_t)9 << 30) + 20, .peer = 1, .receive = receives};
        open_ranks(2);
        now_rank = 0;
        multi_transport *t = &transports[0];
        assert_int_equal(t->exchange(t->state, &message, 1, 7, &pending, why), 0);
        end_pieces(data, message.bytes, !receives);
        assert_int_equal(t->poll(t->state, pending, &done, &waiting, why), 0);
        assert_int_equal(done, 1);
        close_ranks();
    }
    is_still = 0;
}

static void messages_arrive_in_order(void **state)
{
    (void)state;
    enum { MOST = 6, FLOATS = 500 };
    static float data[RANKS][RANKS][2][MOST][FLOATS]; /* of a rank, with another, sent or received */
    for (int round = 0; round < 200; round++) {
        int counts[RANKS][RANKS], lengths[RANKS][RANKS][MOST], done[RANKS] = {0};
        void *pending[RANKS] = {NULL};
        char why[MULTI_WHY_BYTES] = "";
        const int64_t tag = draw_tag();
        open_ranks(2 + (int)roll(RANKS - 1));
        for (int i = 0; i < ranks; i++)
            for (int j = 0; j < ranks; j++) {
                counts[i][j] = i == j ? 0 : (int)roll(MOST);
                for (int x = 0; x < counts[i][j]; x++)
                    lengths[i][j][x] = (int)roll(4) ? (int)roll(FLOATS) : 0;
            }
        for (now_rank = 0; now_rank < ranks; now_rank++) {
            multi_message list[2 * RANKS * MOST];
            int count = 0;
            for (int other = 0; other < ranks; other++)
                for (int x = 0; x < MOST; x++)
                    for (int receive = 0; receive < 2; receive++) {
                        const int from = receive ? other : now_rank, to = receive ? now_rank : other;
                        float *memory = data[now_rank][other][receive][x];
                        if (x >= counts[from][to])
                            continue;
                        memset(memory, 0xee, sizeof data[0][0][0][0]);
                        if (!receive)
                            fill((unsigned char *)memory, 4 * (int64_t)lengths[from][to][x], from, to * MOST + x);
                        list[count++] = (multi_message){memory, 4 * (int64_t)lengths[from][to][x], other, receive};
                    }
            const int first = request_count;
            assert_int_equal(
                transports[now_rank].exchange(transports[now_rank].state, list, count, tag, &pending[now_rank], why),
                0);
            for (int i = first + 1; i < request_count; i++) /* receives come first */
                assert_true(requests[i].is_send <= requests[i + 1].is_send);
        }
        for (int left = ranks; left > 0;) {
            int waiting = -2;
            deliver();
            now_rank = (int)roll((uint32_t)ranks);
            if (done[now_rank])
                continue;
            assert_int_equal(transports[now_rank].poll(transports[now_rank].state, pending[now_rank], &done[now_rank],
                                                       &waiting, why),
                             0);
            if (!done[now_rank]) {
                assert_true(is_partner(now_rank, waiting));
                continue;
            }
            left--;
            assert_false(has_open(now_rank));
            for (int other = 0; other < ranks; other++)
                for (int x = 0; x < counts[other][now_rank]; x++) {
                    const int length = lengths[other][now_rank][x];
                    const unsigned char *got = (unsigned char *)data[now_rank][other][1][x];
                    assert_true(is_filled(got, 4 * (int64_t)length, other, now_rank * MOST + x));
                    assert_true(length == FLOATS || got[4 * length] == 0xee);
                }
        }
        close_ranks();
    }
}

static void all_get_what_the_first_shares(void **state)
{
    (void)state;
    char why[MULTI_WHY_BYTES] = "", mine[RANKS][64];
    open_ranks(RANKS);
    for (now_rank = 0; now_rank < ranks; now_rank++) {
        snprintf(mine[now_rank], sizeof mine[0], "rank %d's", now_rank);
        assert_int_equal(transports[now_rank].share(transports[now_rank].state, mine[now_rank], 64, why), 0);
        assert_string_equal(mine[now_rank], "rank 0's");
    }
    close_ranks();
}

/* Every call fails once: while a transport is opened, a message begun, and asked about. */
static void a_failing_call_is_told(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++)
        for (int at_call = 1, failed = 1; failed; at_call++) {
            static unsigned char data[2][2 * SEGMENT];
            const int list[] = {0, 1, 2};
            char why[MULTI_WHY_BYTES] = "";
            void *pending = NULL;
            multi_transport t = {0};
            int result = 0, done = 0, waiting;
            open_ranks(3);
            now_rank = 1;
            calls = 0, fails_at = what == 0 ? at_call : 0;
            result = rung_mpi_transport_open(&t, NULL, why);
            failed = what == 0 && calls >= at_call;
            if (what > 0) {
                multi_message messages[] = {{data[0], 8, 0, 1}, {data[1], 8, 2, 0}};
                calls = 0, fails_at = at_call;
                if (what == 1)
                    result = t.exchange(t.state, messages, 2, 5, &pending, why);
                else if (what == 2)
                    result = t.broadcast(t.state, list, 3, 0, data[0], 2 * SEGMENT, 5, &pending, why);
                else
                    result = t.share(t.state, data[0], 8, why);
                for (int i = 0; i < 50 && !result && what < 3 && !done; i++) {
                    result = t.poll(t.state, pending, &done, &waiting, why);
                    if (i == 0) { /* what it waits for comes */
                        const int call = calls, fail = fails_at;
                        fails_at = 0;
                        for (int other = 0; other < 3; other += 2) {
                            static unsigned char theirs[2 * SEGMENT];
                            MPI_Request request;
                            now_rank = other;
                            for (int segment = 0; segment < (what == 1 ? 1 : 2); segment++)
                                if (other == 0)
                                    __wrap_MPI_Isend(theirs, what == 1 ? 8 : SEGMENT, MPI_BYTE, 1, 5, MPI_COMM_WORLD,
                                                     &request);
                                else
                                    __wrap_MPI_Irecv(theirs, what == 1 ? 8 : SEGMENT, MPI_BYTE, 1, 5, MPI_COMM_WORLD,
                                                     &request);
                        }
                        now_rank = 1;
                        calls = call, fails_at = fail;
                    }
                    deliver();
                }
                failed = calls >= at_call;
                assert_true(failed || done || what == 3);
            }
            fails_at = 0;
            if (failed) {
                assert_int_equal(result, RUNG_DEVICE_ERROR);
                assert_non_null(strstr(why, "MPI_"));
                assert_non_null(strstr(why, " failed: of the test"));
            } else {
                assert_int_equal(result, 0);
            }
            if (what > 0 || !failed)
                t.close(t.state, failed);
            /* After a fault a communicator is not given back: MPI would wait. An open that fails leaves none. */
            comms -= what > 0 && failed;
            close_ranks();
        }
}

/* A program may end MPI before it destroys its contexts: then nothing is asked of it any more. */
static void mpi_may_end_first(void **state)
{
    (void)state;
    open_ranks(2);
    is_over = 1;
    for (now_rank = 0; now_rank < ranks; now_rank++)
        transports[now_rank].close(transports[now_rank].state, 0);
    is_over = 0;
    assert_int_equal(comms, 2);
    comms = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broadcast_reaches_all),  cmocka_unit_test(pieces_of_much_data_have_their_places),
        cmocka_unit_test(messages_arrive_in_order), cmocka_unit_test(all_get_what_the_first_shares),
        cmocka_unit_test(a_failing_call_is_told),   cmocka_unit_test(mpi_may_end_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
