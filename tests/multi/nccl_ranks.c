/* Ranks over the NCCL transport, against stand-ins for libcuda and libnccl: one process each, started here by the
 * environment as any launcher would. usage: nccl_ranks <libcuda> <libnccl> <mode> [ranks]. Modes: layouts (against
 * FP64), bits, mismatch, killed, stopped, failing (NCCL does not start on rank 0), strangers (who come before the
 * ranks), taken (one who knows the secret asks for a place that a rank has), secret (rank 1 has another one), lives
 * (contexts come and go, and leave nothing), refused (each of NCCL's calls fails once on rank 1). */
#include "../gpu/fake_libcuda.h"
#include "ranks.h"

#include <malloc.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST "127.0.0.2" /* a loopback address that is not the usual one */
enum { MOST = 8, VICTIM = 2, SILENT = 20 };

static int ready[2]; /* a pipe: ranks whose context is there tell the launcher */

/* Of ranks that all come: as long as it takes, since tests/limit.c ends what does not end. */
static const double patience_s = 1000.0;

/* ---- a rank ---- */

static rung_status open_rank(rung_multi **multi, double timeout_s)
{
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_NCCL;
    config.timeout_s = timeout_s;
    return rung_multi_create(multi, &config);
}

static rung_multi *opened(double timeout_s)
{
    rung_multi *multi;
    if (open_rank(&multi, timeout_s) == RUNG_SUCCESS)
        return multi;
    fprintf(stderr, "rank %d: no context: %s\n", me, rung_last_error());
    _exit(1);
}

typedef struct parts {
    rung_matrix d[3];
    float *host[3], *device[3];
    int64_t bytes[3];
} parts;

static int parts_make(rung_multi *multi, parts *p, const layout_case *t)
{
    case_matrices(t, p->d);
    int right = 1;
    for (int i = 0; i < 3; i++) {
        int64_t cols = rung_matrix_cols(&p->d[i], me);
        p->bytes[i] = p->d[i].ld * cols * 4;
        p->host[i] = part_new(&p->d[i], me, i);
        right = right && rung_multi_alloc(multi, 0, p->bytes[i], (void **)&p->device[i]) == RUNG_SUCCESS &&
                rung_multi_upload(multi, 0, p->device[i], p->host[i], p->bytes[i]) == RUNG_SUCCESS;
    }
    return right;
}

static void parts_drop(rung_multi *multi, parts *p)
{
    for (int i = 0; i < 3; i++) {
        rung_multi_free(multi, 0, p->device[i]);
        free(p->host[i]);
    }
}

static rung_status run(rung_multi *multi, const layout_case *t, parts *p)
{
    return case_run(multi, t, p->d, &p->device[0], &p->device[1], &p->device[2]);
}

static int one_case(rung_multi *multi, const layout_case *t)
{
    parts p;
    int right = parts_make(multi, &p, t) && run(multi, t, &p) == RUNG_SUCCESS &&
                rung_multi_download(multi, 0, p.host[2], p.device[2], p.bytes[2]) == RUNG_SUCCESS;
    if (!right)
        fprintf(stderr, "rank %d: %s\n", me, rung_last_error());
    right = right && part_right(t, &p.d[2], me, p.host[2], 2.0 + (double)t->k);
    if (!right)
        print_case(t);
    parts_drop(multi, &p);
    return right;
}

static int layouts(fake *gpu, int cases)
{
    rung_multi *multi = opened(patience_s);
    uint64_t seed = (uint64_t)me + 1;
    int right = 1;
    for (int i = 0; i < cases && right; i++) {
        layout_case t =
            i % 10 == 9 ? large_case(ranks % 2 ? ranks : ranks / 2, ranks % 2 ? 1 : 2) : case_at(i, ranks, i % 2);
        gpu->eager = (unsigned)pick(&seed, 1 << 30); /* streams in any order, another on every rank */
        right = one_case(multi, &t) && gpu->faults == 0;
    }
    rung_multi_destroy(multi);
    return right;
}

/* Rank 0's matrix in host memory is spread out again, into other parts: each is what it was gathered from. */
static int scatters_again(rung_multi *multi, const parts *p, const float *whole)
{
    const rung_matrix *d = &p->d[2];
    const int64_t rows = rung_matrix_rows(d, me), cols = rung_matrix_cols(d, me), bytes = d->ld * (cols + 1) * 4;
    float *was = malloc((size_t)bytes), *now = malloc((size_t)bytes), *to = NULL;
    void *memory = NULL;
    int right = was && now && rung_multi_alloc(multi, 0, bytes, &memory) == RUNG_SUCCESS;
    to = memory;
    right = right && rung_scatter(multi, 0, whole, d->m, &to, d) == RUNG_SUCCESS &&
            rung_multi_download(multi, 0, was, p->device[2], d->ld * cols * 4) == RUNG_SUCCESS &&
            rung_multi_download(multi, 0, now, to, d->ld * cols * 4) == RUNG_SUCCESS;
    for (int64_t j = 0; j < cols && right; j++)
        right = memcmp(was + j * d->ld, now + j * d->ld, (size_t)rows * sizeof *was) == 0;
    if (!right)
        fprintf(stderr, "rank %d: not what was gathered: %s\n", me, rung_last_error());
    rung_multi_free(multi, 0, memory);
    free(was);
    free(now);
    return right;
}

/* Calls give back what they have taken: after many barriers this rank holds no more memory than after few. */
static int keeps_nothing(rung_multi *multi)
{
    enum { FEW = 20, MANY = 220, SLACK_BYTES = 16 << 10 };
    size_t few = 0;
    for (int i = 0; i < MANY; i++) {
        if (i == FEW)
            few = mallinfo2().uordblks;
        if (rung_multi_barrier(multi) != RUNG_SUCCESS)
            return 0;
    }
    const size_t many = mallinfo2().uordblks;
    if (many <= few + SLACK_BYTES)
        return 1;
    fprintf(stderr, "rank %d holds %zu bytes after %d barriers, and %zu after %d\n", me, many, MANY, few, FEW);
    return 0;
}

/* The whole C, on one rank's grid and on all ranks': the same bits. */
static int bits(const fake *gpu)
{
    static const int grids[][2] = {{1, 1}, {2, 2}, {1, 4}, {4, 1}, {2, 1}};
    rung_multi *multi = opened(patience_s);
    float *first = NULL, *whole = NULL;
    int right = 1;
    for (int i = 0; i < 5 && right; i++) {
        layout_case t = large_case(grids[i][0], grids[i][1]);
        parts p;
        right = parts_make(multi, &p, &t) && run(multi, &t, &p) == RUNG_SUCCESS;
        size_t count = (size_t)(p.d[2].m * p.d[2].n);
        const float *c = p.device[2];
        if (me == 0)
            whole = malloc(count * sizeof *whole);
        right = right && rung_gather(multi, 0, &c, &p.d[2], whole, p.d[2].m) == RUNG_SUCCESS;
        right = right && scatters_again(multi, &p, whole);
        if (me == 0 && first && memcmp(first, whole, count * sizeof *whole) != 0) {
            fprintf(stderr, "other bits on a grid of %d x %d\n", grids[i][0], grids[i][1]);
            right = 0;
        }
        if (first || me)
            free(whole);
        else
            first = whole;
        parts_drop(multi, &p);
    }
    free(first);
    right = right && keeps_nothing(multi);
    if (gpu->faults) {
        fprintf(stderr, "rank %d: %d misuses of the driver\n", me, gpu->faults);
        right = 0;
    }
    rung_multi_destroy(multi);
    return right;
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Contexts come and go, with a product, a refused call, a trace and a gathered matrix each: later ones hold no
 * more memory, files and parts of the driver than one before them. */
static int lives(const fake *gpu)
{
    enum { LIVES = 20, SETTLED = 14, SLACK_BYTES = 100 }; /* the allocator keeps a little of the first ones */
    struct {
        size_t bytes;
        int files, open;
    } first = {0}, now;
    for (int life = 0; life < LIVES; life++) {
        rung_multi *multi = opened(patience_s);
        layout_case t = large_case(2, 2), other = t;
        const rung_span *spans;
        parts p;
        int right = rung_multi_ranks(multi) == ranks && rung_multi_first_rank(multi) == me &&
                    rung_multi_held_ranks(multi) == 1 && rung_multi_device(multi, 0) == me &&
                    rung_multi_device(multi, 1) == RUNG_DEVICE_CPU;
        right = right && rung_multi_trace(multi, 1) == RUNG_SUCCESS && parts_make(multi, &p, &t) &&
                run(multi, &t, &p) == RUNG_SUCCESS && rung_multi_spans(multi, &spans) > 0;
        other.m += me == 1 ? -1 : 0; /* rank 1 is given another size */
        right = right && run(multi, &other, &p) == RUNG_INVALID_ARGUMENT && says("m = ");
        const float *c = p.device[2];
        float *whole = me == 0 ? malloc((size_t)(p.d[2].m * p.d[2].n) * sizeof *whole) : NULL;
        right = right && rung_gather(multi, 0, &c, &p.d[2], whole, p.d[2].m) == RUNG_SUCCESS;
        free(whole);
        parts_drop(multi, &p);
        rung_multi_destroy(multi);
        now.bytes = mallinfo2().uordblks;
        now.files = open_files();
        now.open = gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->graphs;
        if (life == SETTLED)
            first = now;
        if (!right ||
            (life > SETTLED && (now.bytes > first.bytes + SLACK_BYTES || now.files != first.files || now.open))) {
            fprintf(stderr,
                    "rank %d, life %d: %zu bytes, %d files and %d of the driver's are held, after life %d %zu and "
                    "%d: %s\n",
                    me, life, now.bytes, now.files, now.open, SETTLED, first.bytes, first.files, rung_last_error());
            return 0;
        }
    }
    return 1;
}

/* Rank 1 is given one other argument than the others, each in its turn: all are told which. */
static int each_mismatch(rung_multi *multi, const layout_case *t, parts *p)
{
    enum { FIELDS = 12 };
    static const char *const words[FIELDS] = {"m = ",
                                              "k = ",
                                              "alpha (its bits) = ",
                                              "beta (its bits) = ",
                                              "trans_a = ",
                                              "trans_b = ",
                                              "ia = ",
                                              "ja = ",
                                              "ib = ",
                                              "jb = ",
                                              "ic = ",
                                              "jc = "};
    int right = 1;
    for (int i = 0; i < FIELDS && right; i++) {
        layout_case other = *t;
        int64_t *const numbers[FIELDS] = {&other.m,  &other.k,  NULL,      NULL,      NULL,      NULL,
                                          &other.ia, &other.ja, &other.ib, &other.jb, &other.ic, &other.jc};
        if (me == 1 && numbers[i])
            *numbers[i] += i < 2 ? -1 : *numbers[i] > 1 ? -1 : 1;
        if (me == 1 && i == 2)
            other.alpha += 1.0f;
        if (me == 1 && i == 3)
            other.beta += 1.0f;
        if (me == 1 && i == 4)
            other.trans_a = !other.trans_a;
        if (me == 1 && i == 5)
            other.trans_b = !other.trans_b;
        right = run(multi, &other, p) == RUNG_INVALID_ARGUMENT && says("rank 1") && (i > 3 || says(words[i]));
        if (!right)
            fprintf(stderr, "rank %d is not told that rank 1 has another '%s'\n", me, words[i]);
    }
    return right;
}

/* With square matrices that lie alike the transposes are all that tells two products apart. */
static int each_transpose(rung_multi *multi)
{
    static const char *const words[] = {"rank 1 was given trans_a = ", "rank 1 was given trans_b = "};
    layout_case t = whole_case((grid){ranks, 1}, 64, 64, 64);
    for (int i = 0; i < 3; i++)
        t.mb[i] = t.nb[i] = 16;
    parts p;
    int right = parts_make(multi, &p, &t);
    for (int i = 0; i < 2 && right; i++) {
        layout_case other = t;
        if (me == 1)
            *(i ? &other.trans_b : &other.trans_a) ^= 1;
        right = run(multi, &other, &p) == RUNG_INVALID_ARGUMENT && says(words[i]);
    }
    if (!right)
        fprintf(stderr, "rank %d is not told of another transpose: %s\n", me, rung_last_error());
    parts_drop(multi, &p);
    return right;
}

/* Rank 1 is given one other field of one descriptor, which by itself could be right. */
static int each_descriptor(rung_multi *multi)
{
    enum { FIELDS = 8 };
    static const char *const names[FIELDS] = {"m",         "n",         "mb",         "nb",
                                              "grid_rows", "grid_cols", "row_source", "col_source"};
    layout_case t = whole_case((grid){ranks / 2, 2}, 64, 64, 64);
    for (int i = 0; i < 3; i++)
        t.mb[i] = t.nb[i] = 16;
    t.pad = 64; /* room for all rows */
    parts p;
    int right = parts_make(multi, &p, &t);
    for (int i = 0; i < 3 * FIELDS && right; i++) {
        rung_matrix *d = &p.d[i / FIELDS], was = *d;
        int64_t *const sizes[] = {&d->m, &d->n, &d->mb, &d->nb};
        int *const numbers[] = {&d->grid_rows, &d->grid_cols, &d->row_source, &d->col_source};
        char words[64];
        snprintf(words, sizeof words, "rank 1 was given desc_%c.%s = ", "abc"[i / FIELDS], names[i % FIELDS]);
        if (me == 1 && i % FIELDS < 4)
            ++*sizes[i % FIELDS];
        else if (me == 1)
            *numbers[i % FIELDS - 4] ^= i % FIELDS < 6 ? 3 : 1; /* 2 becomes 1, 0 becomes 1 */
        right = run(multi, &t, &p) == RUNG_INVALID_ARGUMENT && says(words);
        *d = was;
    }
    if (!right)
        fprintf(stderr, "rank %d is not told of another descriptor: %s\n", me, rung_last_error());
    parts_drop(multi, &p);
    return right;
}

static int mismatch(void)
{
    rung_multi *multi = opened(patience_s);
    layout_case t = large_case(ranks, 1);
    parts p;
    int right = parts_make(multi, &p, &t);
    t.n -= me == 1;
    right = right && run(multi, &t, &p) == RUNG_INVALID_ARGUMENT && says("rank 1 was given n = 559, rank 0 560");
    t.n = 560;
    right = right && each_mismatch(multi, &t, &p) && each_transpose(multi) && each_descriptor(multi);
    for (int who = 0; who < ranks; who++) { /* what one alone finds wrong, the first or another */
        if (rung_matrix_rows(&p.d[2], who) < 2)
            continue;
        char words[64];
        const int64_t was = p.d[2].ld;
        snprintf(words, sizeof words, "rank %d: descriptor of C: ld is 1", who);
        p.d[2].ld = me == who ? 1 : was;
        right = right && run(multi, &t, &p) == RUNG_INVALID_ARGUMENT && says(words);
        p.d[2].ld = was;
    }
    right = right && run(multi, &t, &p) == RUNG_SUCCESS;
    float x = 0.0f;
    right =
        rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, 1, 1, 1, 1.0f, &x, 1, &x, 1, 0.0f, &x, 1) == RUNG_UNSUPPORTED &&
        right;
    parts_drop(multi, &p);
    rung_multi_destroy(multi);
    return right;
}

static int survive(double timeout_s, const char *words)
{
    rung_multi *multi = opened(timeout_s);
    layout_case t = large_case(ranks / 2, 2);
    parts p;
    int right = parts_make(multi, &p, &t) && write(ready[1], "", 1) == 1 &&
                told_in_time(multi, &t, p.d, p.device, timeout_s, words);
    parts_drop(multi, &p);
    rung_multi_destroy(multi);
    return right;
}

static int failing(void)
{
    rung_multi *multi;
    setenv("FAKE_NCCL_FAILS", "ncclGetUniqueId", 1); /* rank 0 asks for it */
    double start = now_s();
    return open_rank(&multi, 20.0) == RUNG_DEVICE_ERROR && says("ncclGetUniqueId failed: unhandled system error") &&
           now_s() - start < 10.0;
}

/* Each of NCCL's calls fails once on rank 1, at once or later: it says which one, and all others hear of it in time. */
static int refused(const fake *gpu)
{
    static const struct {
        const char *call, *words;
        int at_start, in_pieces; /* in pieces: in messages, else in whole panels, which are broadcast */
    } each[] = {{"ncclCommInitRankConfig", "starting NCCL failed: internal error", 1, 0},
                {"later ncclCommInitRankConfig", "starting NCCL failed: internal error", 1, 0},
                {"ncclCommSplit", "ncclCommSplit failed: internal error", 0, 0},
                {"later ncclCommSplit", "ncclCommSplit failed: internal error", 0, 0},
                {"ncclCommGetAsyncError", "ncclCommGetAsyncError failed: invalid usage", 0, 0},
                {"async 1", "communication by NCCL failed: internal error", 0, 0},
                {"async 2", "communication by NCCL failed: internal error", 0, 0},
                {"ncclSend", "NCCL's messages between ranks failed: internal error", 0, 1},
                {"ncclRecv", "NCCL's messages between ranks failed: internal error", 0, 1},
                {"ncclGroupEnd", "NCCL's messages between ranks failed: internal error", 0, 1},
                {"ncclBroadcast", "NCCL's broadcast of a panel failed: internal error", 0, 0},
                {"ncclGroupEnd", "failed: internal error", 0, 0},
                {"later ncclGroupEnd", "failed: internal error", 0, 0}};
    const double timeout_s = 5.0;
    int files = 0; /* after the first failure, which opens what stays open */
    rung_multi *none = NULL;
    setenv("RUNG_CONTROL", "0", 1);
    if (open_rank(&none, timeout_s) != RUNG_INVALID_ARGUMENT || none ||
        !says("the NCCL transport needs the control connection: RUNG_CONTROL is 0"))
        return 0;
    setenv("RUNG_CONTROL", "1", 1); /* which leaves the connection on */
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        rung_multi *multi = NULL;
        const int in_pieces = each[i].in_pieces, splits = strstr(each[i].call, "Split") != NULL;
        parts p = {0};
        const double start = now_s();
        if (me == 1 && each[i].at_start)
            setenv("FAKE_NCCL_FAILS", each[i].call, 1);
        rung_status status = open_rank(&multi, timeout_s);
        int right = (status != RUNG_SUCCESS) == each[i].at_start && (status == RUNG_SUCCESS) == (multi != NULL);
        layout_case before = large_case(ranks, 1); /* leaves buffers for the next product, which has another grid */
        right = right && (!splits || one_case(multi, &before));
        for (int c = 0; right && status == RUNG_SUCCESS && c < (in_pieces ? 30 : 1); c++) {
            layout_case t = in_pieces ? case_at(c, ranks, 0) : large_case(ranks / 2, 2); /* it goes in whole panels */
            parts_drop(multi, &p);
            right = parts_make(multi, &p, &t);
            if (me == 1)
                setenv("FAKE_NCCL_FAILS", each[i].call, 1);
            status = run(multi, &t, &p);
        }
        right = right && status == RUNG_DEVICE_ERROR && now_s() - start < timeout_s + busy_seconds() &&
                (me == 1 ? says(each[i].words) : says("rank 1"));
        unsetenv("FAKE_NCCL_FAILS");
        if (multi)
            parts_drop(multi, &p);
        rung_multi_destroy(multi);
        files = i == 0 ? open_files() : files;
        if (!right || open_files() != files || (splits && gpu->memory)) {
            fprintf(stderr, "rank %d: where %s fails %d files are open, not %d, and %d blocks of the GPU: %s\n", me,
                    each[i].call, open_files(), files, gpu->memory, rung_last_error());
            return 0;
        }
    }
    rung_multi *multi = opened(patience_s);
    layout_case t = large_case(ranks / 2, 2);
    int right = one_case(multi, &t);
    rung_multi_destroy(multi);
    return right;
}

/* Where other machines reach rank 0 there must be a secret; an empty one is none. */
static int needs_a_secret(void)
{
    static const char elsewhere[] = "machine.invalid:1234";
    char address[64], given[64];
    int right = 1;
    snprintf(address, sizeof address, "%s", getenv("RUNG_ADDRESS"));
    snprintf(given, sizeof given, "%s", getenv("RUNG_SECRET"));
    setenv("RUNG_ADDRESS", elsewhere, 1);
    for (int is_set = 0; is_set < 2; is_set++) {
        rung_multi *multi;
        if (is_set)
            setenv("RUNG_SECRET", "", 1);
        else
            unsetenv("RUNG_SECRET");
        right &= open_rank(&multi, 4.0) == RUNG_INVALID_ARGUMENT &&
                 says("other machines can reach RUNG_ADDRESS machine.invalid:1234: set RUNG_SECRET");
    }
    setenv("RUNG_ADDRESS", address, 1);
    setenv("RUNG_SECRET", given, 1);
    return right;
}

/* Rank 1 is told at once why it is not let in, the others when the time is over. */
static int secret(void)
{
    rung_multi *multi;
    if (!needs_a_secret())
        return 0;
    double start = now_s();
    if (me == 1)
        setenv("RUNG_SECRET", "of another run", 1);
    rung_status status = open_rank(&multi, 4.0);
    if (me == 1)
        return status == RUNG_INVALID_ARGUMENT &&
               says("rank 0 does not let rank 1 in: it came with another RUNG_SECRET") && now_s() - start < 3.5;
    return status == RUNG_DEVICE_ERROR &&
           (me || says("rank 1 has not come within 4.0 s; one was turned away: it came"));
}

static int child(const char *libcuda, const char *libnccl, const char *mode)
{
    setenv("RUNG_LIBCUDA", libcuda, 1);
    setenv("RUNG_NCCL", libnccl, 1);
    setenv("RUNG_MULTI_PANEL", strcmp(mode, "bits") == 0 ? "64:200:96" : "96", 1);
    setenv("RUNG_MULTI_WAVE", "5000", 1);
    void *library = dlopen(libcuda, RTLD_NOW);
    fake_state_function *get;
    *(void **)&get = library ? dlsym(library, "fake_state") : NULL;
    if (!get)
        return 1;
    get()->devices = atoi(getenv("RUNG_SIZE")); /* one for each rank */
    int right = strcmp(mode, "layouts") == 0    ? layouts(get(), 60)
                : strcmp(mode, "bits") == 0     ? bits(get())
                : strcmp(mode, "mismatch") == 0 ? mismatch()
                : strcmp(mode, "killed") == 0   ? survive(20.0, "rank 2 is gone")
                : strcmp(mode, "stopped") == 0  ? survive(2.0, " within ")
                : strcmp(mode, "secret") == 0   ? secret()
                : strcmp(mode, "lives") == 0    ? lives(get())
                : strcmp(mode, "refused") == 0  ? refused(get())
                                                : failing();
    if (get()->pushed) { /* whatever happened, the thread's own context is current again */
        fprintf(stderr, "rank %d: %d of the driver's contexts are still current\n", me, (int)get()->pushed);
        right = 0;
    }
    return right ? 0 : 1;
}

/* ---- the launcher ---- */

static int free_port(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) || getsockname(fd, (struct sockaddr *)&here, &length))
        return 0;
    close(fd);
    return ntohs(here.sin_port);
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static struct sockaddr_in address_of(const char *host, int port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &there.sin_addr);
    return there;
}

/* One who is no rank says so many bytes to rank 0, and stays. Returns its socket. */
static int intrude(int port, const void *words, size_t bytes)
{
    struct sockaddr_in there = address_of(HOST, port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (int tries = 0; tries < 500 && connect(fd, (struct sockaddr *)&there, sizeof there); tries++) {
        close(fd);
        usleep(10000);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    if (bytes && send(fd, words, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        fprintf(stderr, "a stranger cannot reach rank 0\n");
    return fd;
}

/* Rank 0 listens on the loopback address it was told, and nowhere else. */
static int is_heard_elsewhere(int port)
{
    struct sockaddr_in there = address_of("127.0.0.1", port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), heard = connect(fd, (struct sockaddr *)&there, sizeof there) == 0;
    close(fd);
    if (heard)
        fprintf(stderr, "rank 0 was told %s, and listens on 127.0.0.1 too\n", HOST);
    return heard;
}

/* The control connection's frames: a type, a length, that many bytes (multi/control.c). */
static void send_strangers(int port)
{
    struct {
        uint32_t type, bytes;
        int32_t magic, rank, size;
        char secret[64];
    } hello = {1, 76, 0x72756e67, 1, ranks, "a guess"};
    struct {
        uint32_t type, bytes;
        int32_t rank, status;
        char why[448];
    } failed = {3, 456, 2, RUNG_DEVICE_ERROR, "what a stranger says"};
    uint32_t huge[2] = {1, UINT32_MAX};
    for (int i = 0; i < SILENT; i++) /* heard one after another they would keep the ranks from coming in time */
        intrude(port, NULL, 0);
    intrude(port, &failed, sizeof failed);
    intrude(port, &hello, sizeof hello);
    intrude(port, &huge, sizeof huge);
    intrude(port, &hello, 11);
    hello.size = ranks + 1; /* of another run, or heard there and said again */
    intrude(port, &hello, sizeof hello);
}

/* Rank 0 with one who knows the secret and asks twice for rank 1's place: it has it once, and is told so. */
static int place_is_given_once(int port)
{
    struct {
        uint32_t type, bytes;
        int32_t magic, rank, size;
        char secret[64];
    } hello = {1, 76, 0x72756e67, 1, ranks, "of this run"};
    struct {
        uint32_t type, bytes;
        int32_t rank, status;
        char why[448];
    } answer = {0};
    const size_t head = 8;
    int once = recv(intrude(port, &hello, sizeof hello), &answer, head, MSG_WAITALL) == (ssize_t)head &&
               answer.type == 2 && answer.bytes == 0;
    int twice = recv(intrude(port, &hello, sizeof hello), &answer, sizeof answer, MSG_WAITALL) == sizeof answer &&
                answer.type == 3 && strstr(answer.why, "rank 1 is there already");
    if (!once || !twice)
        fprintf(stderr, "rank 1's place was %s: '%.448s'\n", once ? "given twice" : "not given", answer.why);
    return once && twice;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *mode = argv[3];
    ranks = argc > 4 ? atoi(argv[4]) : 4;
    char address[32];
    pid_t pids[MOST];
    int elsewhere = 0, port = free_port(), strangers = strcmp(mode, "strangers") == 0,
        taken = strcmp(mode, "taken") == 0;
    snprintf(address, sizeof address, HOST ":%d", port);
    setenv("RUNG_ADDRESS", address, 1);
    set_number("RUNG_SIZE", ranks);
    setenv("RUNG_SECRET", "of this run", 1);
    if (pipe(ready))
        return 1;
    for (me = 0; me < ranks; me++) {
        pids[me] = fork();
        if (pids[me] == 0) {
            set_number("RUNG_RANK", me);
            exit(child(argv[1], argv[2], strangers || taken ? "layouts" : mode));
        }
        if (me == 0 && strangers) {
            send_strangers(port);
            elsewhere = is_heard_elsewhere(port);
        }
        if (me == 0 && taken) {
            int right = place_is_given_once(port);
            kill(pids[0], SIGKILL);
            return !right;
        }
    }
    int killed = strcmp(mode, "killed") == 0, stopped = strcmp(mode, "stopped") == 0, bad = elsewhere;
    if (killed || stopped) {
        char byte;
        close(ready[1]);
        for (int i = 0; i < ranks && read(ready[0], &byte, 1) == 1; i++)
            ;
        usleep(300000); /* they multiply */
        kill(pids[VICTIM], killed ? SIGKILL : SIGSTOP);
    }
    double end = now_s() + 1000.0; /* tests/limit.c is quicker */
    for (int i = 0; i < ranks; i++) {
        int status = 1;
        if ((killed || stopped) && i == VICTIM)
            continue;
        while (waitpid(pids[i], &status, WNOHANG) == 0 && now_s() < end)
            usleep(10000);
        if (now_s() >= end)
            kill(pids[i], SIGKILL);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            fprintf(stderr, "rank %d failed (%d)\n", i, status);
            bad = 1;
        }
    }
    if (killed || stopped)
        kill(pids[VICTIM], SIGKILL);
    return bad;
}
