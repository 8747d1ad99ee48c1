/* Every call of the system that a control connection makes fails once, at each of three ranks: whom it concerns is told
 * by a sentence, no memory and no socket stays, and nobody waits for ever. The ranks are threads of this process; the
 * calls of control.c come here first (--wrap). */
#include "multi/clock.h"
#include "multi/control.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- calls that fail ---- */

typedef enum call {
    NO_CALL,
    CALLOC,
    MALLOC,
    SOCKET,
    BIND,
    LISTEN,
    ACCEPT,
    CONNECT,
    GETADDRINFO,
    SEND,
    RECV,
    POLL
} call;
enum { CALLS = POLL + 1 };

static const char *const names[CALLS] = {"no call", "calloc",  "malloc",      "socket", "bind", "listen",
                                         "accept",  "connect", "getaddrinfo", "send",   "recv", "poll"};

static _Thread_local call fails; /* of this rank's calls */
static _Thread_local long fails_at, seen;
static _Thread_local int with; /* errno */
static _Thread_local int ever; /* all later ones fail, too */
static atomic_int live_blocks;
static size_t most_bytes; /* that a call sends or receives at once; 0: as many as there are */

static size_t piece(size_t bytes)
{
    return most_bytes && bytes > most_bytes ? most_bytes : bytes;
}

static int must_fail(call which)
{
    if (which != fails)
        return 0;
    seen++;
    if (seen != fails_at && !(ever && seen > fails_at))
        return 0;
    errno = with;
    return 1;
}

void *__real_calloc(size_t, size_t), *__real_malloc(size_t);
void __real_free(void *);
int __real_socket(int, int, int), __real_bind(int, const struct sockaddr *, socklen_t), __real_listen(int, int);
int __real_accept(int, struct sockaddr *, socklen_t *), __real_connect(int, const struct sockaddr *, socklen_t);
int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
ssize_t __real_send(int, const void *, size_t, int), __real_recv(int, void *, size_t, int);
int __real_poll(struct pollfd *, nfds_t, int);
void *__wrap_calloc(size_t, size_t), *__wrap_malloc(size_t);
void __wrap_free(void *);
int __wrap_socket(int, int, int), __wrap_bind(int, const struct sockaddr *, socklen_t), __wrap_listen(int, int);
int __wrap_accept(int, struct sockaddr *, socklen_t *), __wrap_connect(int, const struct sockaddr *, socklen_t);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getifaddrs(struct ifaddrs **);
void __wrap_freeifaddrs(struct ifaddrs *);
ssize_t __wrap_send(int, const void *, size_t, int), __wrap_recv(int, void *, size_t, int);
int __wrap_poll(struct pollfd *, nfds_t, int);

static void *counted(void *memory)
{
    live_blocks += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return must_fail(CALLOC) ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_malloc(size_t bytes)
{
    return must_fail(MALLOC) ? NULL : counted(__real_malloc(bytes));
}

void __wrap_free(void *memory)
{
    live_blocks -= memory != NULL;
    __real_free(memory);
}

int __wrap_socket(int domain, int type, int protocol)
{
    return must_fail(SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t length)
{
    return must_fail(BIND) ? -1 : __real_bind(fd, at, length);
}

int __wrap_listen(int fd, int most)
{
    return must_fail(LISTEN) ? -1 : __real_listen(fd, most);
}

int __wrap_accept(int fd, struct sockaddr *from, socklen_t *length)
{
    return must_fail(ACCEPT) ? -1 : __real_accept(fd, from, length);
}

static _Thread_local int meets_itself; /* of so many connections the system lends each the port that it asks for */

int __wrap_connect(int fd, const struct sockaddr *at, socklen_t length)
{
    const int on = 1;
    if (meets_itself > 0 && meets_itself--) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        assert_int_equal(__real_bind(fd, at, length), 0);
    }
    return must_fail(CONNECT) ? -1 : __real_connect(fd, at, length);
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
    return must_fail(GETADDRINFO) ? EAI_AGAIN : __real_getaddrinfo(host, port, hints, list);
}

/* A machine's interfaces: the last place without an address of this kind, as a network of another kind has none. */
enum { INTERFACES = 5, NO_LIST = INTERFACES + 1 };
static int first_interface; /* a machine that has only those from here on; NO_LIST: nothing is known of them */
static struct ifaddrs *lent_list;

int __wrap_getifaddrs(struct ifaddrs **list)
{
    static const unsigned flags[INTERFACES] = {IFF_LOOPBACK | IFF_UP, 0, IFF_UP, IFF_UP, IFF_UP};
    static struct sockaddr_in at[INTERFACES];
    static struct ifaddrs all[INTERFACES];
    if (first_interface == NO_LIST)
        return -1;
    for (int i = 0; i < INTERFACES; i++) {
        at[i] = (struct sockaddr_in){.sin_family = i == 2 ? AF_INET6 : AF_INET,
                                     .sin_addr.s_addr = htonl(0x0a000007u + (unsigned)i)};
        all[i] = (struct ifaddrs){.ifa_flags = flags[i], .ifa_addr = (struct sockaddr *)&at[i]};
        all[i].ifa_next = i + 1 < INTERFACES ? &all[i + 1] : NULL;
    }
    *list = lent_list = first_interface < INTERFACES ? &all[first_interface] : NULL;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    assert_ptr_equal(list, lent_list);
    lent_list = NULL;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
    return must_fail(SEND) ? -1 : __real_send(fd, data, piece(bytes), flags);
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags)
{
    return must_fail(RECV) ? -1 : __real_recv(fd, data, piece(bytes), flags);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return must_fail(POLL) ? -1 : __real_poll(fds, count, timeout_ms);
}

/* ---- three ranks ---- */

enum { RANKS = 3, WORDS = 512 };

typedef struct rank {
    int number;
    call fails;
    long fails_at;
    int with, ever;
    double timeout_s;
    int tells; /* this rank fails by itself, between the first exchange and the second */
    rung_status status;
    char said[WORDS];
    int has_failed; /* its call did */
} rank;

static pthread_barrier_t is_listening, has_told;
static char address[CONTROL_ADDRESS_BYTES];
static rung_status listened;

static int64_t square_of(int number)
{
    return (int64_t)(number + 3) * (number + 3);
}

/* Brings a number of each rank to rank 0 and their sum back. */
static rung_status exchange(multi_control *c, int number, double timeout_s)
{
    int64_t mine = square_of(number), all[RANKS] = {0}, sum = 0;
    rung_status status = multi_control_gather(c, &mine, number ? NULL : all, sizeof mine, "sent its number", timeout_s);
    for (int i = 0; i < RANKS && number == 0 && status == RUNG_SUCCESS; i++) {
        if (all[i] != square_of(i))
            return rung_fail(RUNG_INTERNAL, "rank %d's number has arrived as %lld", i, (long long)all[i]);
        sum += all[i];
    }
    if (status == RUNG_SUCCESS)
        status = multi_control_share(c, &sum, sizeof sum, "sent the sum", timeout_s);
    if (status == RUNG_SUCCESS && sum != square_of(0) + square_of(1) + square_of(2))
        return rung_fail(RUNG_INTERNAL, "the sum has arrived as %lld", (long long)sum);
    return status;
}

static rung_status live(rank *r)
{
    multi_control *c = NULL;
    rung_status status;
    if (r->number == 0) {
        status = listened = multi_control_listen(&c, RANKS, "127.0.0.1:0", "of this test", address);
        pthread_barrier_wait(&is_listening);
        if (status == RUNG_SUCCESS)
            status = multi_control_accept(c, r->timeout_s);
    } else {
        pthread_barrier_wait(&is_listening);
        if (listened != RUNG_SUCCESS)
            return RUNG_SUCCESS;
        status = multi_control_connect(&c, r->number, RANKS, address, "of this test", r->timeout_s);
        if ((status == RUNG_SUCCESS) != (c != NULL))
            return rung_fail(RUNG_INTERNAL, "a connection that failed is there, or one that did not is not");
    }
    if (status == RUNG_SUCCESS)
        status = exchange(c, r->number, r->timeout_s);
    if (status == RUNG_SUCCESS && r->tells >= 0) {
        if (r->tells == r->number)
            multi_control_tell(c, RUNG_OUT_OF_MEMORY, "it has burnt");
        pthread_barrier_wait(&has_told);
        r->ever = ever = 0;
        if (r->with == EPIPE) /* from now on nothing goes out */
            fails = SEND, fails_at = seen = 1, with = EPIPE, ever = 1;
    }
    if (status == RUNG_SUCCESS && r->tells >= 0) { /* nobody has looked for news when rank 0 sends */
        int64_t nothing = 0;
        status = multi_control_share(c, &nothing, sizeof nothing, "sent the sum", r->timeout_s);
    } else if (status == RUNG_SUCCESS) {
        status = exchange(c, r->number, r->timeout_s);
    }
    if (status == RUNG_SUCCESS)
        status = multi_control_check(c);
    char first[WORDS];
    snprintf(first, sizeof first, "%s", rung_last_error());
    multi_control_close(c);
    return status == RUNG_SUCCESS ? status : rung_fail(status, "%s", first);
}

static void *live_apart(void *of)
{
    rank *r = of;
    fails = r->fails, fails_at = r->fails_at, with = r->with, ever = r->ever, seen = 0;
    r->status = live(r);
    r->has_failed = seen >= fails_at;
    fails = NO_CALL;
    snprintf(r->said, sizeof r->said, "%s", r->status == RUNG_SUCCESS ? "" : rung_last_error());
    return NULL;
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void live_all(rank ranks[RANKS])
{
    pthread_t threads[RANKS];
    const int files = open_files(), blocks = live_blocks;
    const double begin_s = multi_now_s();
    for (int i = 0; i < RANKS; i++) {
        ranks[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, live_apart, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    if (live_blocks != blocks || open_files() != files)
        fail_msg("%d blocks of memory stay, and %d files", live_blocks - blocks, open_files() - files);
    if (multi_now_s() - begin_s > 60.0)
        fail_msg("it took %.0f s", multi_now_s() - begin_s);
}

static void set_all(rank ranks[RANKS], double timeout_s)
{
    memset(ranks, 0, RANKS * sizeof *ranks);
    for (int i = 0; i < RANKS; i++)
        ranks[i].timeout_s = timeout_s, ranks[i].tells = -1;
}

/* ---- what is tested ---- */

static void nothing_fails(void **state)
{
    (void)state;
    rank ranks[RANKS];
    set_all(ranks, 60.0);
    live_all(ranks);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(ranks[i].status, RUNG_SUCCESS);
}

/* The network may take and give any part of a frame. */
static void frames_may_come_in_pieces(void **state)
{
    (void)state;
    for (most_bytes = 1; most_bytes < 200; most_bytes = most_bytes * 5 + 2) {
        rank ranks[RANKS];
        set_all(ranks, 60.0);
        live_all(ranks);
        for (int i = 0; i < RANKS; i++)
            if (ranks[i].status != RUNG_SUCCESS)
                fail_msg("rank %d, %zu bytes at a time: %s", i, most_bytes, ranks[i].said);
    }
    most_bytes = 0;
}

/* What the rank says whose call fails; NULL: all goes on as if it had not. An error number of 0 stands for an end that
 * is not the system's: memory, or an address that is not known. */
static const struct expected {
    int number;
    call fails;
    long at;
    int with, ever;
    rung_status status;
    const char *words;
} table[] = {
    {0, CALLOC, 1, 0, 0, RUNG_OUT_OF_MEMORY, "no memory for 3 control connections"},
    {0, CALLOC, 2, 0, 0, RUNG_OUT_OF_MEMORY, "no memory for 3 control connections"},
    {0, CALLOC, 3, 0, 0, RUNG_OUT_OF_MEMORY, "no memory for 64 connections"},
    {1, CALLOC, 1, 0, 0, RUNG_OUT_OF_MEMORY, "no memory for a control connection"},
    {2, CALLOC, 2, 0, 0, RUNG_OUT_OF_MEMORY, "no memory for a control connection"},
    {0, SOCKET, 1, EMFILE, 0, RUNG_INTERNAL, "no socket for the ranks' control connection: Too many open files"},
    {0, BIND, 1, EADDRINUSE, 0, RUNG_INVALID_ARGUMENT, "rank 0 cannot listen on port 0: Address already in use"},
    {0, LISTEN, 1, EADDRINUSE, 0, RUNG_INVALID_ARGUMENT, "rank 0 cannot listen on port 0: Address already in use"},
    {0, ACCEPT, 1, ECONNABORTED, 0, RUNG_SUCCESS, NULL},
    {0, POLL, 1, EINTR, 0, RUNG_SUCCESS, NULL},
    {0, RECV, 1, EINTR, 0, RUNG_SUCCESS, NULL},
    {0, RECV, 2, EAGAIN, 0, RUNG_SUCCESS, NULL},
    {0, SEND, 2, EINTR, 0, RUNG_SUCCESS, NULL},
    {0, SEND, 3, EAGAIN, 0, RUNG_SUCCESS, NULL},
    {0, SEND, 3, EPIPE, 0, RUNG_DEVICE_ERROR, "rank 1 takes no more messages"},
    {0, SEND, 4, EPIPE, 0, RUNG_DEVICE_ERROR, "rank 2 takes no more messages"},
    {1, SOCKET, 1, EMFILE, 0, RUNG_SUCCESS, NULL}, /* it tries again */
    {1, CONNECT, 1, ECONNREFUSED, 0, RUNG_SUCCESS, NULL},
    {2, GETADDRINFO, 1, 0, 0, RUNG_SUCCESS, NULL},
    {1, SOCKET, 1, EMFILE, 1, RUNG_DEVICE_ERROR, "rank 1 cannot reach rank 0 at ADDRESS within TIME s: no socket"},
    {1, CONNECT, 1, ECONNREFUSED, 1, RUNG_DEVICE_ERROR,
     "rank 1 cannot reach rank 0 at ADDRESS within TIME s: Connection refused"},
    {2, GETADDRINFO, 1, 0, 1, RUNG_DEVICE_ERROR,
     "rank 2 cannot reach rank 0 at ADDRESS within TIME s: Temporary failure in name resolution"},
    {1, SEND, 2, EPIPE, 0, RUNG_DEVICE_ERROR, "rank 0 takes no more messages"},
    {2, SEND, 2, EINTR, 0, RUNG_SUCCESS, NULL},
    {1, RECV, 3, EAGAIN, 0, RUNG_SUCCESS, NULL},
    {1, RECV, 1, ECONNRESET, 0, RUNG_DEVICE_ERROR, "rank 0 is gone: Connection reset by peer"},
    {2, POLL, 1, EINTR, 0, RUNG_SUCCESS, NULL},
};

/* Puts address and time into the words. */
static void fill_in(const char *words, double timeout_s, char text[WORDS])
{
    size_t length = 0;
    for (text[0] = 0; *words; length = strlen(text))
        if (strncmp(words, "ADDRESS", 7) == 0)
            snprintf(text + length, WORDS - length, "%s", address), words += 7;
        else if (strncmp(words, "TIME", 4) == 0)
            snprintf(text + length, WORDS - length, "%.1f", timeout_s), words += 4;
        else
            snprintf(text + length, WORDS - length, "%c", *words++);
}

static void each_call_that_fails_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct expected *e = &table[i];
        rank ranks[RANKS];
        char words[WORDS];
        set_all(ranks, e->words ? 0.4 : 60.0);
        rank *r = &ranks[e->number];
        r->fails = e->fails, r->fails_at = e->at, r->with = e->with, r->ever = e->ever;
        if (e->words && !e->ever)
            ranks[e->number].timeout_s = 60.0; /* it says so at once */
        live_all(ranks);
        fill_in(e->words ? e->words : "", r->timeout_s, words);
        if (!r->has_failed || r->status != e->status || strcmp(r->said, words) != 0)
            fail_msg("rank %d, %s %ld: %s '%s', not %s '%s'", e->number, names[e->fails], e->at,
                     rung_status_name(r->status), r->said, rung_status_name(e->status), words);
        for (int j = 0; j < RANKS && !e->words; j++)
            if (ranks[j].status != RUNG_SUCCESS)
                fail_msg("rank %d's %s %ld: rank %d says '%s'", e->number, names[e->fails], e->at, j, ranks[j].said);
    }
}

/* Whichever call fails, at whichever rank: it ends by the time limit, with a sentence or without harm. */
static void any_call_may_fail(void **state)
{
    (void)state;
    int failed = 0;
    for (int number = 0; number < RANKS; number++)
        for (int which = CALLOC; which < CALLS; which++)
            for (int at = 1; at <= 6; at += 1 + at / 3) {
                rank ranks[RANKS];
                set_all(ranks, 0.2);
                rank *r = &ranks[number];
                r->fails = (call)which, r->fails_at = at, r->with = EIO;
                live_all(ranks);
                failed += r->has_failed;
                for (int i = 0; i < RANKS; i++)
                    if ((ranks[i].status == RUNG_SUCCESS) != (ranks[i].said[0] == 0))
                        fail_msg("rank %d's %s %d: rank %d says '%s' to %s", number, names[which], at, i, ranks[i].said,
                                 rung_status_name(ranks[i].status));
            }
    print_message("%d calls failed, one at a time\n", failed);
    assert_true(failed > 50);
}

/* A rank that cannot send learns what is wrong from what has arrived before. Rank 0 has heard it too; other ranks have
 * if it is rank 0 who told, else what rank 0 hands on may reach them after they have left. */
static void who_cannot_send_says_why(void **state)
{
    (void)state;
    static const int pairs[][2] = {{0, 1}, {0, 2}, {1, 0}, {2, 0},
                                   {0, 0}, {1, 1}, {2, 2}}; /* who has burnt, who is mute */
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        const int who = pairs[p][0], mute = pairs[p][1];
        rank ranks[RANKS];
        char words[WORDS];
        set_all(ranks, 20.0);
        for (int i = 0; i < RANKS; i++)
            ranks[i].tells = who;
        if (mute != who)
            ranks[mute].with = EPIPE;
        live_all(ranks);
        snprintf(words, sizeof words, "rank %d: it has burnt", who);
        for (int i = 0; i < RANKS; i++) {
            const int is_told = i == who || i == mute || who == 0 || i == 0;
            if (is_told && (ranks[i].status != RUNG_OUT_OF_MEMORY || strcmp(ranks[i].said, words) != 0))
                fail_msg("rank %d has burnt, rank %d cannot send: rank %d says '%s'", who, mute, i, ranks[i].said);
        }
    }
}

/* Where the network answers nothing, a rank gives up by its time limit: here a socket whose queue is full. */
static void silence_ends_by_the_time_limit(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int mute = socket(AF_INET, SOCK_STREAM, 0), waiting[8];
    assert_int_equal(bind(mute, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(mute, 0), 0);
    assert_int_equal(getsockname(mute, (struct sockaddr *)&at, &length), 0);
    for (int i = 0; i < 8; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(waiting[i] >= 0);
        connect(waiting[i], (struct sockaddr *)&at, sizeof at);
    }
    char where[64], words[WORDS];
    snprintf(where, sizeof where, "127.0.0.1:%d", ntohs(at.sin_port));
    snprintf(words, sizeof words, "rank 1 cannot reach rank 0 at %s within 0.3 s: Connection timed out", where);
    const double begin_s = multi_now_s();
    multi_control *c = NULL;
    assert_int_equal(multi_control_connect(&c, 1, RANKS, where, "of this test", 0.3), RUNG_DEVICE_ERROR);
    assert_string_equal(rung_last_error(), words);
    if (multi_now_s() - begin_s > 20.0)
        fail_msg("it took %.0f s", multi_now_s() - begin_s);
    for (int i = 0; i < 8; i++)
        close(waiting[i]);
    close(mute);
}

/* A rank that comes before rank 0 listens may be connected to itself: it closes that, which has rank 0's port, and
 * tries again. */
static void a_rank_is_not_its_own_rank_0(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int nobody = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(nobody, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(nobody, (struct sockaddr *)&at, &length), 0);
    close(nobody);
    char where[64], words[WORDS];
    snprintf(where, sizeof where, "127.0.0.1:%d", ntohs(at.sin_port));
    snprintf(words, sizeof words, "rank 1 cannot reach rank 0 at %s within 0.3 s: Connection refused", where);
    multi_control *c = NULL;
    meets_itself = 1;
    assert_int_equal(multi_control_connect(&c, 1, RANKS, where, "of this test", 0.3), RUNG_DEVICE_ERROR);
    assert_string_equal(rung_last_error(), words);
    assert_int_equal(meets_itself, 0);
}

/* The other of two ranks leaves at once, or sends less than belongs. */
typedef struct leaver {
    char where[CONTROL_ADDRESS_BYTES];
    multi_control *control;
    int sends;
    rung_status status;
} leaver;

static void *leave(void *of)
{
    leaver *l = of;
    int32_t number = 7;
    l->status = multi_control_connect(&l->control, 1, 2, l->where, "", 20.0);
    if (l->status == RUNG_SUCCESS && l->sends)
        l->status = multi_control_gather(l->control, &number, NULL, sizeof number, "told a number", 20.0);
    if (!l->sends)
        multi_control_close(l->control);
    return NULL;
}

/* Who waits for a rank that has left, or that makes another call, is told so, and not that the time is over. */
static void who_leaves_is_told(void **state)
{
    (void)state;
    static const char *const words[] = {"rank 1 has destroyed its context: it has not told a number",
                                        "rank 1 sent 4 bytes where 8 belong: another version of Rung, or another call"};
    for (int sends = 0; sends < 2; sends++) {
        leaver other = {.sends = sends};
        multi_control *c = NULL;
        pthread_t thread;
        int64_t mine = 5, all[2];
        assert_int_equal(multi_control_listen(&c, 2, "127.0.0.1:0", "", other.where), RUNG_SUCCESS);
        assert_int_equal(pthread_create(&thread, NULL, leave, &other), 0);
        assert_int_equal(multi_control_accept(c, 20.0), RUNG_SUCCESS);
        assert_int_not_equal(multi_control_gather(c, &mine, all, sizeof mine, "told a number", 60.0), RUNG_SUCCESS);
        assert_string_equal(rung_last_error(), words[sends]);
        pthread_join(thread, NULL);
        assert_int_equal(other.status, RUNG_SUCCESS);
        if (sends)
            multi_control_close(other.control);
        multi_control_close(c);
    }
}

/* What is no address is refused as it is written: a port beyond 65535 would be cut to another one. */
static void addresses_are_read_as_they_are(void **state)
{
    (void)state;
    static const char *const wrong[] = {"127.0.0.1:65536",  "127.0.0.1:70000", "127.0.0.1:-1", "127.0.0.1:1x",
                                        "127.0.0.1:000001", "127.0.0.1: 1",    "127.0.0.1:+1", "127.0.0.1:port"};
    char actual[CONTROL_ADDRESS_BYTES], words[WORDS], host[120];
    multi_control *c = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(words, sizeof words, "the address '%s' is not host:port, with a port up to 65535", wrong[i]);
        assert_int_equal(multi_control_listen(&c, RANKS, wrong[i], "", actual), RUNG_INVALID_ARGUMENT);
        assert_string_equal(rung_last_error(), words);
        assert_int_equal(multi_control_connect(&c, 1, RANKS, wrong[i], "", 0.1), RUNG_INVALID_ARGUMENT);
        assert_string_equal(rung_last_error(), words);
        assert_false(multi_control_is_local(wrong[i]));
    }
    assert_true(multi_control_is_local("127.0.0.1:65535") && multi_control_is_local("127.255.255.255:1"));
    assert_false(multi_control_is_local("128.0.0.1:65535") || multi_control_is_local("126.255.255.255:1"));
    assert_int_equal(multi_control_connect(&c, 1, RANKS, "127.0.0.1:65535", "", 0.0), RUNG_DEVICE_ERROR); /* nobody */
    for (int length = 95; length <= 96; length++) { /* of the host's name */
        memset(host, 'h', sizeof host);
        snprintf(host + length, sizeof host - (size_t)length, ":1");
        const rung_status expected = length < 96 ? RUNG_DEVICE_ERROR : RUNG_INVALID_ARGUMENT;
        assert_int_equal(multi_control_connect(&c, 1, RANKS, host, "", 0.0), expected);
    }
    /* Whoever connects names the port; who listens need not. */
    assert_int_equal(multi_control_connect(&c, 1, RANKS, "127.0.0.1:0", "", 0.1), RUNG_INVALID_ARGUMENT);
    static const char *const right[] = {"127.0.0.1:0", "localhost:", "127.0.0.1", ":0"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(multi_control_listen(&c, RANKS, right[i], "", actual), RUNG_SUCCESS);
        assert_true(atoi(strrchr(actual, ':') + 1) > 0 && strrchr(actual, ':') > actual);
        multi_control_close(c);
    }
}

/* Where nothing knows the machine's name the others are told an address of an interface that is up and leads out of it,
 * else the loopback's. */
static void a_nameless_machine_tells_an_address(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "10.0.0.10:", "10.0.0.10:", "10.0.0.10:", "10.0.0.10:", "10.0.0.11:", "127.0.0.1:", "127.0.0.1:"};
    fails = GETADDRINFO, fails_at = 1;
    for (first_interface = 0; first_interface <= NO_LIST; first_interface++) {
        char actual[CONTROL_ADDRESS_BYTES];
        multi_control *c = NULL;
        seen = 0;
        assert_int_equal(multi_control_listen(&c, RANKS, "", "", actual), RUNG_SUCCESS);
        multi_control_close(c);
        if (strncmp(actual, hosts[first_interface], strlen(hosts[first_interface])) != 0 || lent_list)
            fail_msg("from interface %d on: %s, not %s%s", first_interface, actual, hosts[first_interface],
                     lent_list ? ", and the list is kept" : "");
    }
    fails = NO_CALL;
}

/* ---- strangers ---- */

typedef struct greeting {
    uint32_t type, bytes;
    int32_t magic, rank, size;
    char secret[CONTROL_SECRET_BYTES];
} greeting;

static const greeting right_greeting = {1, sizeof(greeting) - 8, 0x72756e67, 1, RANKS, "of this test"};

static int connect_to(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = __real_socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(__real_connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Returns how many bytes come until rank 0 hangs up. */
static size_t hear_all(int fd, unsigned char *data, size_t room)
{
    size_t have = 0;
    const struct timeval most = {.tv_sec = 30}; /* who is let in would wait for ever */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    for (ssize_t got = 1; got > 0 && have<room; have += got> 0 ? (size_t)got : 0)
        got = __real_recv(fd, data + have, room - have, 0);
    close(fd);
    return have;
}

/* Says a greeting, which rank 0 answers with this sentence; NULL: with nothing. */
static void is_turned_away(int port, const greeting *g, const char *sentence)
{
    struct {
        uint32_t type, bytes;
        int32_t rank, status;
        char why[448];
    } answer = {0};
    char words[WORDS];
    int fd = connect_to(port);
    assert_int_equal(__real_send(fd, g, sizeof *g, MSG_NOSIGNAL), sizeof *g);
    const size_t have = hear_all(fd, (unsigned char *)&answer, sizeof answer);
    snprintf(words, sizeof words, "rank 0 does not let rank %d in: %s", g->rank, sentence ? sentence : "");
    if (!sentence && have)
        fail_msg("a stranger is answered with %zu bytes", have);
    if (sentence && (have != sizeof answer || answer.type != 3 || answer.bytes != sizeof answer - 8 ||
                     answer.status != RUNG_INVALID_ARGUMENT || strcmp(answer.why, words) != 0))
        fail_msg("%zu bytes, '%s', not '%s'", have, answer.why, words);
}

/* Each byte of the secret is compared, also behind its end; who does not know it learns nothing else. */
static void all_wrong_greetings(int port)
{
    static const char *const secret = "it came with another RUNG_SECRET than rank 0's";
    static const int ranks[] = {0, RANKS, -1, RANKS + 1, INT32_MAX, INT32_MIN};
    static const int sizes[] = {0, 1, RANKS - 1, RANKS + 1, -RANKS};
    greeting g;
    char words[64];
    for (int i = 0; i < CONTROL_SECRET_BYTES; i++) {
        g = right_greeting;
        g.secret[i] ^= (char)(1 << i % 8);
        g.rank = i % 3 ? 1 : 7;
        g.size = i % 5 ? RANKS : 2;
        is_turned_away(port, &g, secret);
    }
    g = right_greeting;
    memset(g.secret, 0, sizeof g.secret);
    is_turned_away(port, &g, secret);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        g = right_greeting;
        g.rank = ranks[i];
        snprintf(words, sizeof words, "it calls itself rank %d of %d", ranks[i], RANKS);
        is_turned_away(port, &g, words);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        g = right_greeting;
        g.size = sizes[i];
        snprintf(words, sizeof words, "it counts %d ranks, rank 0 counts %d", sizes[i], RANKS);
        is_turned_away(port, &g, words);
    }
    for (int i = 0; i < 4; i++) { /* no greeting of Rung's */
        g = right_greeting;
        if (i == 0)
            g.magic ^= 1 << 24;
        else if (i == 1)
            g.type = 2;
        else
            g.bytes += i == 2 ? 1 : UINT32_MAX;
        is_turned_away(port, &g, NULL);
    }
}

static void *accept_apart(void *of)
{
    rank *r = of;
    multi_control *c;
    r->status = multi_control_listen(&c, RANKS, "127.0.0.1:0", "of this test", address);
    pthread_barrier_wait(&is_listening);
    if (r->status == RUNG_SUCCESS)
        r->status = multi_control_accept(c, r->timeout_s);
    if (r->status == RUNG_SUCCESS)
        r->status = exchange(c, 0, r->timeout_s);
    snprintf(r->said, sizeof r->said, "%s", r->status == RUNG_SUCCESS ? "" : rung_last_error());
    multi_control_close(c);
    return NULL;
}

static void *connect_apart(void *of)
{
    rank *r = of;
    multi_control *c = NULL;
    r->status = multi_control_connect(&c, r->number, RANKS, address, "of this test", r->timeout_s);
    if (r->status == RUNG_SUCCESS)
        r->status = exchange(c, r->number, r->timeout_s);
    snprintf(r->said, sizeof r->said, "%s", r->status == RUNG_SUCCESS ? "" : rung_last_error());
    multi_control_close(c);
    return NULL;
}

/* Strangers of every kind come before the ranks do, some of whom stay; then the ranks come, and all goes well. */
static void strangers_keep_no_rank_out(void **state)
{
    (void)state;
    enum { STAY = 40 };
    const int files = open_files();
    rank ranks[RANKS];
    pthread_t threads[RANKS];
    int stay[STAY];
    set_all(ranks, 60.0);
    for (int i = 0; i < RANKS; i++)
        ranks[i].number = i;
    pthread_barrier_init(&is_listening, NULL, 2);
    assert_int_equal(pthread_create(&threads[0], NULL, accept_apart, &ranks[0]), 0);
    pthread_barrier_wait(&is_listening);
    const int port = atoi(strrchr(address, ':') + 1);
    all_wrong_greetings(port);
    for (int i = 0; i < STAY; i++) { /* who says nothing, or the beginning of a greeting, or what no one can read */
        unsigned char noise[200];
        for (size_t b = 0; b < sizeof noise; b++)
            noise[b] = (unsigned char)(i * 37 + (int)b * 101);
        stay[i] = connect_to(port);
        const size_t says = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 + (size_t)i : sizeof right_greeting - 1;
        __real_send(stay[i], i % 4 == 3 ? noise : (const void *)&right_greeting, i % 4 == 3 ? sizeof noise : says,
                    MSG_NOSIGNAL);
    }
    for (int i = 1; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, connect_apart, &ranks[i]), 0);
    for (int i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
        if (ranks[i].status != RUNG_SUCCESS)
            fail_msg("rank %d: %s", i, ranks[i].said);
    }
    for (int i = 0; i < STAY; i++) {
        unsigned char heard[64];
        if (hear_all(stay[i], heard, sizeof heard))
            fail_msg("stranger %d is answered", i);
    }
    assert_int_equal(open_files(), files);
    pthread_barrier_init(&is_listening, NULL, RANKS);
}

int main(void)
{
    alarm(1000); /* a rank that waits for ever */
    pthread_barrier_init(&is_listening, NULL, RANKS);
    pthread_barrier_init(&has_told, NULL, RANKS);
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_fails),
                                       cmocka_unit_test(frames_may_come_in_pieces),
                                       cmocka_unit_test(each_call_that_fails_is_told),
                                       cmocka_unit_test(any_call_may_fail),
                                       cmocka_unit_test(who_cannot_send_says_why),
                                       cmocka_unit_test(silence_ends_by_the_time_limit),
                                       cmocka_unit_test(a_rank_is_not_its_own_rank_0),
                                       cmocka_unit_test(who_leaves_is_told),
                                       cmocka_unit_test(addresses_are_read_as_they_are),
                                       cmocka_unit_test(a_nameless_machine_tells_an_address),
                                       cmocka_unit_test(strangers_keep_no_rank_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
