/* The control connection: a star of TCP connections around rank 0. Frames have a type, a length and that many bytes. A
 * connection that closes without a farewell is a rank that died. Keepalive covers hosts that fall off the network. */
#include "multi/clock.h"
#include "multi/control.h"
#include "multi/engine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_HELLO = 1, FRAME_DATA = 2, FRAME_FAILED = 3, FRAME_LEFT = 4 };
enum { LONGEST_FRAME = 1 << 16, MAGIC = 0x72756e67 };

typedef struct frame_head {
    uint32_t type, bytes;
} frame_head;

/* The first frame on a connection: it says who comes, and the secret that only ranks of this run know. */
typedef struct greeting {
    int32_t magic, rank, size;
    char secret[CONTROL_SECRET_BYTES];
} greeting;

typedef struct failure {
    int32_t rank, status;
    char why[448];
} failure;

/* A connection, and what has arrived of its next frame. */
typedef struct line {
    int socket; /* -1: it is closed */
    int left;   /* the other side has said farewell */
    size_t have;
    unsigned char *data; /* head and body of a frame */
} line;

struct multi_control {
    int rank, size, listener;
    line *lines; /* at rank 0 one for each rank; elsewhere lines[0] alone, to rank 0 */
    char secret[CONTROL_SECRET_BYTES];
    int failed, spread;    /* something failed; spread: rank 0 has passed it on */
    failure first;         /* what failed first */
    char turned_away[160]; /* rank 0: why the last guest of Rung's was not let in; empty: none was */
};

static int is_root(const multi_control *c)
{
    return c->rank == 0;
}

static int line_count(const multi_control *c)
{
    return is_root(c) ? c->size : 1;
}

static multi_control *control_new(int rank, int size, const char *secret)
{
    multi_control *c = calloc(1, sizeof *c);
    int count = rank == 0 ? size : 1;
    if (!c || !(c->lines = calloc((size_t)count, sizeof *c->lines))) {
        free(c);
        return NULL;
    }
    c->rank = rank;
    c->size = size;
    c->listener = -1;
    snprintf(c->secret, sizeof c->secret, "%s", secret);
    for (int i = 0; i < count; i++)
        c->lines[i].socket = -1;
    return c;
}

/* Small frames leave at once; a peer whose host is gone is noticed after some ten seconds. */
static void tune_socket(int fd)
{
    int on = 1, idle = 5, interval = 2, count = 3;
    unsigned gone_ms = 12000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof gone_ms);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Takes "host:port" apart; host may be empty. A port is a number, since the C library cuts a larger one to 16 bits. */
static int split_address(const char *address, char host[96], char port[16])
{
    const char *colon = strrchr(address, ':'), *number = colon && colon[1] ? colon + 1 : "0";
    size_t length = colon ? (size_t)(colon - address) : strlen(address), digits = strlen(number);
    if (length >= 96 || digits > 5 || strspn(number, "0123456789") != digits || atoi(number) > UINT16_MAX)
        return 0;
    memcpy(host, address, length);
    host[length] = 0;
    snprintf(port, 16, "%s", number);
    return 1;
}

static rung_status no_address(const char *address)
{
    return rung_fail(RUNG_INVALID_ARGUMENT, "the address '%s' is not host:port, with a port up to %d", address,
                     UINT16_MAX);
}

/* Returns a host's address where it is a loopback address; 0 where it is none. */
static in_addr_t loopback_of(const char *host)
{
    struct in_addr at;
    if (strcmp(host, "localhost") == 0)
        return htonl(INADDR_LOOPBACK);
    return inet_pton(AF_INET, host, &at) == 1 && ntohl(at.s_addr) >> 24 == 127 ? at.s_addr : 0;
}

int multi_control_is_local(const char *address)
{
    char host[96], port[16];
    return split_address(address, host, port) && loopback_of(host);
}

static rung_status listen_on(multi_control *c, const char *host, const char *port)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)atoi(port)),
                               .sin_addr.s_addr = loopback_of(host)}; /* 0 means every address of this machine */
    int on = 1;
    c->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->listener < 0)
        return rung_fail(RUNG_INTERNAL, "no socket for the ranks' control connection: %s", strerror(errno));
    setsockopt(c->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(c->listener, (struct sockaddr *)&here, sizeof here) || listen(c->listener, 128))
        return rung_fail(RUNG_INVALID_ARGUMENT, "rank 0 cannot listen on port %s: %s", port, strerror(errno));
    return RUNG_SUCCESS;
}

/* Finds where other ranks reach this machine: by its name, or by an interface's address where nothing knows the name.
 */
static void name_this_host(char *host, size_t bytes)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *known = NULL;
    struct ifaddrs *interfaces = NULL;
    if (gethostname(host, bytes) == 0 && getaddrinfo(host, NULL, &hints, &known) == 0) {
        freeaddrinfo(known);
        return;
    }
    snprintf(host, bytes, "127.0.0.1");
    if (getifaddrs(&interfaces))
        return;
    for (const struct ifaddrs *at = interfaces; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) ||
            !(at->ifa_flags & IFF_UP))
            continue;
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, host, (socklen_t)bytes);
        break;
    }
    freeifaddrs(interfaces);
}

rung_status multi_control_listen(multi_control **out, int size, const char *address, const char *secret,
                                 char actual[CONTROL_ADDRESS_BYTES])
{
    char host[96], port[16];
    *out = NULL;
    if (!split_address(address, host, port))
        return no_address(address);
    multi_control *c = control_new(0, size, secret);
    if (!c)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d control connections", size);
    rung_status status = listen_on(c, host, port);
    if (status != RUNG_SUCCESS) {
        multi_control_close(c);
        return status;
    }
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    getsockname(c->listener, (struct sockaddr *)&here, &length);
    if (!host[0])
        name_this_host(host, sizeof host);
    snprintf(actual, CONTROL_ADDRESS_BYTES, "%s:%d", host, ntohs(here.sin_port));
    *out = c;
    return RUNG_SUCCESS;
}

static void note_failure(multi_control *c, const failure *f)
{
    if (!c->failed) {
        c->first = *f;
        c->first.why[sizeof c->first.why - 1] = 0;
        c->failed = 1;
    }
}

static void lost(multi_control *c, int rank, const char *how)
{
    failure f = {.rank = rank, .status = RUNG_DEVICE_ERROR};
    snprintf(f.why, sizeof f.why, "rank %d is gone: %s", rank, how);
    note_failure(c, &f);
}

static int rank_of_line(const multi_control *c, const line *l)
{
    return is_root(c) ? (int)(l - c->lines) : 0;
}

static void close_line(line *l)
{
    if (l->socket >= 0)
        close(l->socket);
    l->socket = -1;
}

/* Sends the whole frame. It waits for room: frames are small, and the other side reads whenever it waits. */
static int send_frame(line *l, uint32_t type, const void *data, int bytes, double timeout_s)
{
    unsigned char *all = malloc(sizeof(frame_head) + (size_t)bytes);
    frame_head head = {type, (uint32_t)bytes};
    double end_s = multi_now_s() + timeout_s;
    size_t at = 0, size = sizeof head + (size_t)bytes;
    if (!all || l->socket < 0) {
        free(all);
        return 0;
    }
    memcpy(all, &head, sizeof head);
    if (bytes)
        memcpy(all + sizeof head, data, (size_t)bytes);
    while (at < size && multi_now_s() < end_s) {
        ssize_t wrote = send(l->socket, all + at, size - at, MSG_NOSIGNAL);
        if (wrote > 0)
            at += (size_t)wrote;
        else if (wrote < 0 && errno != EAGAIN && errno != EINTR)
            break;
        else
            poll(&(struct pollfd){.fd = l->socket, .events = POLLOUT}, 1, 20);
    }
    free(all);
    return at == size;
}

/* Reads what is there of one frame. Returns 1 when the frame is complete, 0 when not yet, -1 when the line is dead. */
static int read_frame(multi_control *c, line *l)
{
    if (!l->data && !(l->data = malloc(sizeof(frame_head) + LONGEST_FRAME)))
        return 0;
    for (;;) {
        frame_head head;
        size_t want = sizeof head;
        if (l->have >= sizeof head) {
            memcpy(&head, l->data, sizeof head);
            if (head.bytes > LONGEST_FRAME) {
                lost(c, rank_of_line(c, l), "it sent something that is no frame");
                return -1;
            }
            want += head.bytes;
            if (l->have == want)
                return 1;
        }
        ssize_t got = recv(l->socket, l->data + l->have, want - l->have, 0);
        if (got > 0) {
            l->have += (size_t)got;
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return 0;
        } else {
            if (!l->left)
                lost(c, rank_of_line(c, l), got == 0 ? "its process ended" : strerror(errno));
            return -1;
        }
    }
}

/* Takes frames that carry news. Returns 1 when a data frame waits in l->data. */
static int take_news(multi_control *c, line *l)
{
    while (l->socket >= 0) {
        int got = read_frame(c, l);
        if (got < 0)
            close_line(l);
        if (got <= 0)
            return 0;
        frame_head head;
        memcpy(&head, l->data, sizeof head);
        if (head.type == FRAME_DATA)
            return 1;
        failure f = {0};
        if (head.type == FRAME_FAILED && head.bytes == sizeof f) {
            memcpy(&f, l->data + sizeof head, sizeof f);
            note_failure(c, &f);
        } else if (head.type == FRAME_LEFT) {
            l->left = 1;
        }
        l->have = 0;
    }
    return 0;
}

/* Lets all ranks learn what one knows: rank 0 passes it on. */
static void spread(multi_control *c)
{
    if (c->spread)
        return;
    c->spread = 1;
    for (int i = 1; is_root(c) && i < c->size; i++)
        if (c->lines[i].socket >= 0)
            send_frame(&c->lines[i], FRAME_FAILED, &c->first, sizeof c->first, 1.0);
}

rung_status multi_control_check(multi_control *c)
{
    for (int i = is_root(c); i < line_count(c) && !c->failed; i++)
        take_news(c, &c->lines[i]);
    if (!c->failed)
        return RUNG_SUCCESS;
    spread(c);
    return rung_fail((rung_status)c->first.status, "%s", c->first.why);
}

void multi_control_tell(multi_control *c, rung_status status, const char *why)
{
    if (c->failed)
        return;
    failure f = {.rank = c->rank, .status = (int32_t)status};
    snprintf(f.why, sizeof f.why, "rank %d: %s", c->rank, why);
    note_failure(c, &f);
    if (is_root(c))
        spread(c);
    else
        send_frame(&c->lines[0], FRAME_FAILED, &f, sizeof f, 1.0);
}

/* Waits for a data frame on the line and takes its `bytes`. */
static rung_status receive(multi_control *c, line *l, void *data, int bytes, const char *what, double end_s)
{
    double start_s = multi_now_s();
    for (;;) {
        if (take_news(c, l)) {
            frame_head head;
            memcpy(&head, l->data, sizeof head);
            l->have = 0;
            if (head.bytes != (uint32_t)bytes)
                return rung_fail(RUNG_INVALID_ARGUMENT,
                                 "rank %d sent %u bytes where %d belong: another version of Rung, "
                                 "or another call",
                                 rank_of_line(c, l), head.bytes, bytes);
            memcpy(data, l->data + sizeof head, (size_t)bytes);
            return RUNG_SUCCESS;
        }
        RUNG_TRY(multi_control_check(c));
        if (l->left)
            return rung_fail(RUNG_DEVICE_ERROR, "rank %d has destroyed its context: it has not %s", rank_of_line(c, l),
                             what);
        if (multi_now_s() > end_s)
            return rung_fail(RUNG_DEVICE_ERROR, "rank %d has not %s within %.1f s", rank_of_line(c, l), what,
                             end_s - start_s);
        poll(&(struct pollfd){.fd = l->socket, .events = POLLIN}, 1, 5);
    }
}

/* Compares in a time that does not say how much of a guess was right. */
static int same_secret(const char *x, const char *y)
{
    unsigned differ = 0;
    for (int i = 0; i < CONTROL_SECRET_BYTES; i++)
        differ |= (unsigned char)x[i] ^ (unsigned char)y[i];
    return differ == 0;
}

/* Returns why a guest's greeting does not let it in; NULL: it does. Who does not know the secret learns nothing else.
 */
static const char *why_not(const multi_control *c, const greeting *hello, char why[sizeof c->turned_away])
{
    const size_t room = sizeof c->turned_away;
    if (!same_secret(hello->secret, c->secret))
        snprintf(why, room, "it came with another RUNG_SECRET than rank 0's");
    else if (hello->size != c->size)
        snprintf(why, room, "it counts %d ranks, rank 0 counts %d", hello->size, c->size);
    else if (hello->rank <= 0 || hello->rank >= c->size)
        snprintf(why, room, "it calls itself rank %d of %d", hello->rank, c->size);
    else if (c->lines[hello->rank].socket >= 0)
        snprintf(why, room, "rank %d is there already", hello->rank);
    else
        return NULL;
    return why;
}

/* A guest that rank 0 has not let in yet. Nothing but a greeting is taken from it: only ranks bring news. */
typedef struct guest {
    int socket;
    double end_s;
    size_t have;
    unsigned char data[sizeof(frame_head) + sizeof(greeting)];
} guest;

/* There is room for many at once, so that those who say nothing keep no rank waiting. */
enum { MOST_GUESTS = 64, GREETING_S = 2 };

/* Answers a whole greeting. Returns 1 when the guest is let in. A stranger gets no answer; a rank that is turned away
 * is told why. */
static int greet(multi_control *c, const guest *g)
{
    frame_head head;
    greeting hello;
    memcpy(&head, g->data, sizeof head);
    memcpy(&hello, g->data + sizeof head, sizeof hello);
    if (head.type != FRAME_HELLO || head.bytes != sizeof hello || hello.magic != MAGIC)
        return 0;
    line answer = {.socket = g->socket};
    if (!why_not(c, &hello, c->turned_away)) {
        c->lines[hello.rank].socket = g->socket;
        /* this welcomes it; a line that is dead shows later, as any other */
        send_frame(&answer, FRAME_DATA, NULL, 0, 1.0);
        return 1;
    }
    failure f = {.rank = 0, .status = RUNG_INVALID_ARGUMENT};
    snprintf(f.why, sizeof f.why, "rank 0 does not let rank %d in: %s", hello.rank, c->turned_away);
    send_frame(&answer, FRAME_FAILED, &f, sizeof f, 0.1);
    return 0;
}

/* Reads what a guest has said by now. Returns 1 when it stays, 0 when it has been let in or is gone. */
static int hear(multi_control *c, guest *g)
{
    ssize_t got = recv(g->socket, g->data + g->have, sizeof g->data - g->have, 0);
    int there = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    g->have += got > 0 ? (size_t)got : 0;
    if (there && g->have < sizeof g->data && multi_now_s() < g->end_s)
        return 1;
    if (g->have < sizeof g->data || !greet(c, g))
        close(g->socket);
    return 0;
}

static int first_missing(const multi_control *c)
{
    for (int i = 1; i < c->size; i++)
        if (c->lines[i].socket < 0)
            return i;
    return 0;
}

/* Waits for guests and for what they say, hears them all, and returns how many are left. */
static int receive_guests(multi_control *c, guest *guests, int count, double end_s)
{
    double left_ms = (end_s - multi_now_s()) * 1e3;
    struct pollfd ready[MOST_GUESTS + 1];
    for (int i = 0; i < count; i++)
        ready[i] = (struct pollfd){.fd = guests[i].socket, .events = POLLIN};
    ready[count] = (struct pollfd){.fd = count < MOST_GUESTS ? c->listener : -1, .events = POLLIN};
    poll(ready, (nfds_t)count + 1, left_ms > 50 ? 50 : left_ms > 1 ? (int)left_ms : 1);
    int fd = ready[count].revents ? accept(c->listener, NULL, NULL) : -1, left = 0;
    if (fd >= 0) {
        tune_socket(fd);
        guests[count++] = (guest){.socket = fd, .end_s = multi_now_s() + GREETING_S};
    }
    for (int i = 0; i < count; i++)
        if (hear(c, &guests[i]))
            guests[left++] = guests[i];
    return left;
}

rung_status multi_control_accept(multi_control *c, double timeout_s)
{
    double end_s = multi_now_s() + timeout_s;
    guest *guests = calloc(MOST_GUESTS, sizeof *guests);
    int count = 0;
    if (!guests)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d connections", MOST_GUESTS);
    while (first_missing(c) && multi_now_s() < end_s)
        count = receive_guests(c, guests, count, end_s);
    while (count)
        close(guests[--count].socket);
    free(guests);
    if (first_missing(c))
        return rung_fail(RUNG_DEVICE_ERROR, "rank %d has not come within %.1f s%s%s", first_missing(c), timeout_s,
                         c->turned_away[0] ? "; one was turned away: " : "", c->turned_away);
    close(c->listener);
    c->listener = -1;
    return RUNG_SUCCESS;
}

/* Connects before the time is over: a network that answers nothing would keep connect() for minutes. The socket never
 * waits by itself. Returns 0, or the number of an error. */
static int connect_by(int fd, const struct addrinfo *at, double end_s)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    do { /* once at least: who is refused at the last moment is told so */
    } while (poll(&ready, 1, 20) <= 0 && multi_now_s() < end_s);
    if (!ready.revents)
        return ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) ? errno : error;
}

/* Returns whether a connection has found its own end. Where nobody listens yet, the system may lend the port that is
 * asked for to the one who asks, and TCP connects the two. */
static int leads_to_itself(int fd)
{
    struct sockaddr_in here, there;
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    return getsockname(fd, (struct sockaddr *)&here, &here_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_bytes) == 0 && here.sin_port == there.sin_port &&
           here.sin_addr.s_addr == there.sin_addr.s_addr;
}

static int try_connect(const char *host, const char *port, double end_s, const char **why)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int fd = -1;
    int unknown = getaddrinfo(host[0] ? host : "127.0.0.1", port, &hints, &list);
    if (unknown) {
        *why = gai_strerror(unknown);
        return -1;
    }
    for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int error = fd >= 0 ? connect_by(fd, at, end_s) : 0;
        if (fd >= 0 && !error && leads_to_itself(fd))
            error = ECONNREFUSED;
        if (error) {
            *why = strerror(error);
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

/* Rank 0 answers a greeting: it lets the rank in, or says why not. */
static rung_status await_welcome(multi_control *c, const char *address, double end_s)
{
    line *l = &c->lines[0];
    while (!take_news(c, l)) {
        if (c->failed)
            return rung_fail((rung_status)c->first.status, "%s", c->first.why);
        if (multi_now_s() > end_s)
            return rung_fail(RUNG_DEVICE_ERROR,
                             "who listens at %s has not answered rank %d's greeting: it may be no rank 0", address,
                             c->rank);
        poll(&(struct pollfd){.fd = l->socket, .events = POLLIN}, 1, 5);
    }
    l->have = 0; /* the message is empty */
    return RUNG_SUCCESS;
}

rung_status multi_control_connect(multi_control **out, int rank, int size, const char *address, const char *secret,
                                  double timeout_s)
{
    char host[96], port[16];
    double end_s = multi_now_s() + timeout_s;
    *out = NULL;
    if (!split_address(address, host, port) || strcmp(port, "0") == 0)
        return no_address(address);
    multi_control *c = control_new(rank, size, secret);
    if (!c)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a control connection");
    const char *why = "no socket";
    int fd = try_connect(host, port, end_s, &why);
    while (fd < 0 && multi_now_s() < end_s) {
        poll(NULL, 0, 20);
        fd = try_connect(host, port, end_s, &why);
    }
    if (fd < 0) {
        multi_control_close(c);
        return rung_fail(RUNG_DEVICE_ERROR, "rank %d cannot reach rank 0 at %s within %.1f s: %s", rank, address,
                         timeout_s, why);
    }
    tune_socket(fd);
    c->lines[0].socket = fd;
    greeting hello = {.magic = MAGIC, .rank = rank, .size = size};
    memcpy(hello.secret, c->secret, sizeof hello.secret);
    send_frame(&c->lines[0], FRAME_HELLO, &hello, sizeof hello, timeout_s);
    rung_status status = await_welcome(c, address, end_s);
    if (status == RUNG_SUCCESS)
        *out = c;
    else
        multi_control_close(c);
    return status;
}

void multi_control_close(multi_control *c)
{
    if (!c)
        return;
    for (int i = 0; i < line_count(c); i++) {
        line *l = &c->lines[i];
        if (l->socket >= 0 && !c->failed)
            send_frame(l, FRAME_LEFT, NULL, 0, 1.0);
        close_line(l);
        free(l->data);
    }
    if (c->listener >= 0)
        close(c->listener);
    free(c->lines);
    free(c);
}

rung_status multi_control_gather(multi_control *c, const void *mine, void *all, int bytes, const char *what,
                                 double timeout_s)
{
    double end_s = multi_now_s() + timeout_s;
    RUNG_TRY(multi_control_check(c));
    if (!is_root(c)) {
        if (!send_frame(&c->lines[0], FRAME_DATA, mine, bytes, timeout_s)) {
            RUNG_TRY(multi_control_check(c));
            return rung_fail(RUNG_DEVICE_ERROR, "rank 0 takes no more messages");
        }
        return RUNG_SUCCESS;
    }
    memcpy(all, mine, (size_t)bytes);
    for (int i = 1; i < c->size; i++)
        RUNG_TRY(receive(c, &c->lines[i], (char *)all + (size_t)i * (size_t)bytes, bytes, what, end_s));
    return RUNG_SUCCESS;
}

rung_status multi_control_share(multi_control *c, void *data, int bytes, const char *what, double timeout_s)
{
    if (!is_root(c))
        return receive(c, &c->lines[0], data, bytes, what, multi_now_s() + timeout_s);
    for (int i = 1; i < c->size; i++)
        if (!send_frame(&c->lines[i], FRAME_DATA, data, bytes, timeout_s)) {
            RUNG_TRY(multi_control_check(c));
            return rung_fail(RUNG_DEVICE_ERROR, "rank %d takes no more messages", i);
        }
    return RUNG_SUCCESS;
}
