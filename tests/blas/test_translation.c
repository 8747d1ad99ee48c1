/* The BLAS drop-in between a Rung and another BLAS that only record. Each name hands Rung what it was given; whatever
 * Rung answers becomes something BLAS knows: done, the same call of the other BLAS, or without one a wrong argument's
 * position.
 * Settings reach the contexts, each context goes with its thread, and the report counts each call once.
 * usage: test_translation OTHER_BLAS [MODE], where MODE is what a process of its own does */
#include "other_blas.h"

#include "core/plain.h"
#include "core/wrote.h"
#include "rung.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROW = 101, COLUMN = 102, N = 111, T = 112, NAMES = 8, FIRST_C_NAME = 4, MOST_ANSWERS = 4, SAID_BYTES = 4096 };

static int failed;

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), failed = 1)

/* ---- the recording Rung: librung_blas.so finds these functions before librung's ---- */

typedef struct recorded {
    int layout, trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
} recorded;

static recorded given[MOST_ANSWERS];
static struct {
    rung_status status;
    int position;
} answers[MOST_ANSWERS];
static int calls, position;
static rung_status opened[2] = {RUNG_SUCCESS, RUNG_SUCCESS}; /* what the first two contexts become */
static rung_config configs[2];
static int contexts, closed, open_now;

#pragma GCC visibility push(default)
rung_status rung_gemm_run(rung_context *context, const rung_gemm *g)
{
    const int at = calls < MOST_ANSWERS ? calls++ : MOST_ANSWERS - 1;
    given[at] = (recorded){g->layout, (int)g->trans_a, (int)g->trans_b, g->m,    g->n, g->k, g->lda,
                           g->ldb,    g->ldc,          g->alpha,        g->beta, g->a, g->b, g->c};
    position = answers[at].position;
    if (context != (rung_context *)&configs || open_now == 0)
        FAIL("a context that is not open is used");
    for (int64_t j = 0; j < g->n && answers[at].status == RUNG_SUCCESS; j++)
        for (int64_t i = 0; i < g->m; i++)
            g->c[j * g->ldc + i] = (g->beta == 0.0f ? 0.0f : g->c[j * g->ldc + i]) + 100.0f;
    return answers[at].status;
}

/* A small product comes as the core has it: row-major, with A and B exchanged. */
rung_status rung_small_run(rung_context *context, const rung_plain *s)
{
    const rung_gemm g = {.layout = RUNG_COL_MAJOR,
                         .trans_a = s->trans_b,
                         .trans_b = s->trans_a,
                         .m = s->n,
                         .n = s->m,
                         .k = s->k,
                         .alpha = s->alpha,
                         .a = s->b,
                         .lda = s->ldb,
                         .b = s->a,
                         .ldb = s->lda,
                         .beta = s->beta,
                         .c = s->c,
                         .ldc = s->ldc,
                         .batch = 1};
    return rung_gemm_run(context, &g);
}

rung_status rung_context_create(rung_context **out, const rung_config *config)
{
    const int at = contexts < 2 ? contexts : 1;
    configs[at] = *config;
    *out = opened[at] == RUNG_SUCCESS ? (rung_context *)&configs : NULL;
    contexts++;
    open_now += opened[at] == RUNG_SUCCESS;
    return opened[at];
}

void rung_context_destroy(rung_context *context)
{
    closed += context == (rung_context *)&configs;
    open_now -= context == (rung_context *)&configs;
}

static int has_written;

int rung_context_wrote(const rung_context *context)
{
    return context == (rung_context *)&configs && has_written;
}

const char *rung_last_error(void)
{
    return "as recorded";
}

int rung_last_error_argument(void)
{
    return position;
}

/* Another one each time: what was refused had none. */
const char *rung_last_kernel(const rung_context *context)
{
    static const char *const names[] = {"recorded_kernel", "another_kernel", "a_third_kernel"};
    static int asked;
    return context ? names[asked++ % 3] : NULL;
}

/* ---- the program's handlers ---- */

static const char *told_handler;
static int64_t told_info;

#define X(handler, integer)                                                                                            \
    void handler(const char *name, const integer *info, size_t length);                                                \
    void handler(const char *name, const integer *info, size_t length)                                                 \
    {                                                                                                                  \
        told_handler = length == 6 && memcmp(name, "SGEMM ", 6) == 0 ? #handler : "another name";                      \
        told_info = *info;                                                                                             \
    }
X(xerbla_, int)
X(xerbla_64_, int64_t)
X(scipy_xerbla_, int)
X(scipy_xerbla_64_, int64_t)
#undef X
#define X(handler)                                                                                                     \
    void handler(int64_t info, const char *name, const char *form, ...);                                               \
    void handler(int64_t info, const char *name, const char *form, ...)                                                \
    {                                                                                                                  \
        (void)form;                                                                                                    \
        told_handler = strcmp(name, "cblas_sgemm") == 0 ? #handler : "another name";                                   \
        told_info = info;                                                                                              \
    }
X(cblas_xerbla)
X(cblas_xerbla64_)
X(scipy_cblas_xerbla)
X(scipy_cblas_xerbla64_)
#undef X
extern int RowMajorStrg;
#pragma GCC visibility pop

/* ---- calls: 2 x 3 with k = 4, no two numbers alike ---- */

static const char *const names[NAMES] = {"sgemm_",      "sgemm_64_",      "scipy_sgemm_",      "scipy_sgemm_64_",
                                         "cblas_sgemm", "cblas_sgemm64_", "scipy_cblas_sgemm", "scipy_cblas_sgemm64_"};
static const char *const handlers[NAMES] = {
    "xerbla_",      "xerbla_64_",      "scipy_xerbla_",      "scipy_xerbla_64_",
    "cblas_xerbla", "cblas_xerbla64_", "scipy_cblas_xerbla", "scipy_cblas_xerbla64_"};
static float a[64], b[64], c[64];

/* A form: 1 transposes A, 2 B, 4 is row-major, which only CBLAS has. */
static void call(int name, int form, float beta)
{
    const float alpha = 0.5f;
    int at = 0;
#define X(function, integer)                                                                                           \
    if (at++ == name) {                                                                                                \
        const integer m = 2, n = 3, k = 4, lda = 7, ldb = 8, ldc = 9;                                                  \
        function(form & 1 ? "t" : "N", form & 2 ? "C" : "n", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);    \
    }
    FORTRAN_NAMES(X)
#undef X
#define X(function, integer)                                                                                           \
    if (at++ == name)                                                                                                  \
        function(form & 4 ? ROW : COLUMN, form & 1 ? T : N, form & 2 ? T : N, 2, 3, 4, alpha, a, 7, b, 8, beta, c, 9);
    C_NAMES(X)
#undef X
}

static void expect_given(const char *name, const recorded *g, int form, float beta)
{
    const int row = form & 4, ta = form & 1, tb = (form & 2) != 0;
    const recorded column = {RUNG_COL_MAJOR, ta, tb, 2, 3, 4, 7, 8, 9, 0.5f, beta, a, b, c},
                   turned = {RUNG_COL_MAJOR, tb, ta, 3, 2, 4, 8, 7, 9, 0.5f, beta, b, a, c},
                   *w = row ? &turned : &column;
    if (g->layout != w->layout || g->trans_a != w->trans_a || g->trans_b != w->trans_b || g->m != w->m ||
        g->n != w->n || g->k != w->k || g->lda != w->lda || g->ldb != w->ldb || g->ldc != w->ldc ||
        g->alpha != w->alpha || g->beta != w->beta || g->a != w->a || g->b != w->b || g->c != w->c)
        FAIL("%s, form %d: Rung was given layout %d, %d %d, %lld x %lld x %lld, ld %lld %lld %lld, %g %g", name, form,
             g->layout, g->trans_a, g->trans_b, (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->lda,
             (long long)g->ldb, (long long)g->ldc, (double)g->alpha, (double)g->beta);
}

static int is_alone = 1; /* no other BLAS is loaded yet */

static void reset(void)
{
    calls = position = 0;
    told_handler = NULL, told_info = 0;
    RowMajorStrg = 7;
    for (int i = 0; i < 64; i++)
        c[i] = (float)i;
}

/* Returns whether every float of C but those of the result is as it was, and those are what `f` says: 'r' Rung's, 'o'
 * the other BLAS's word of who it is and what it was given, '=' as they were. */
static int c_is(char f, int form, float beta)
{
    const int lines = form & 4 ? 2 : 3, length = form & 4 ? 3 : 2;
    for (int i = 0; i < 64; i++) {
        const float was = (float)i, others[] = {1.0f, 0.5f, beta, 9.0f, form & 4 ? ROW : COLUMN};
        float want = was;
        if (f == 'r' && i / 9 < lines && i % 9 < length)
            want = (beta == 0.0f ? 0.0f : was) + 100.0f;
        else if (f == 'o' && (i < 4 || (i == 4 && c[4] != was))) /* Fortran's names tell no layout */
            want = others[i];
        if (c[i] != want)
            return 0;
    }
    return 1;
}

typedef struct attempt {
    int name, form;
    float beta;
    rung_status status;
    int position, first; /* the first call of its thread has one way only; later ones try a short way before */
} attempt;

static void *try(void *of)
{
    const attempt *t = of;
    const char *name = names[t->name];
    /* a and b are there, so that Rung can only have refused their addresses, which BLAS takes */
    const int address = t->position == 7 || t->position == 9, c_name = t->name >= FIRST_C_NAME;
    const int wrong = is_alone && t->status == RUNG_INVALID_ARGUMENT && t->position > 0 && !address;
    if (!t->first) {
        reset();
        answers[0].status = RUNG_SUCCESS;
        call(t->name, 0, 0.0f);
    }
    reset();
    for (int i = 0; i < MOST_ANSWERS; i++)
        answers[i].status = t->status, answers[i].position = t->position;
    call(t->name, t->form, t->beta);
    for (int i = 0; i < calls; i++)
        expect_given(name, &given[i], t->form, t->beta);
    if (calls != (t->first || t->status == RUNG_SUCCESS ? 1 : 2))
        FAIL("%s: Rung was asked %d times", name, calls);
    if (!c_is(t->status == RUNG_SUCCESS ? 'r' : wrong ? '=' : 'o', t->form, t->beta))
        FAIL("%s, form %d, beta %g: Rung said %s, argument %d: C is %g %g %g %g %g ...", name, t->form, (double)t->beta,
             rung_status_name(t->status), t->position, (double)c[0], (double)c[1], (double)c[2], (double)c[3],
             (double)c[4]);
    if (wrong ? !told_handler || strcmp(told_handler, handlers[t->name]) != 0 || told_info != t->position + c_name
              : told_handler != NULL)
        FAIL("%s: argument %d: %s was told %lld", name, t->position, told_handler ? told_handler : "nobody",
             (long long)told_info);
    if (RowMajorStrg != (wrong && c_name ? (t->form & 4) != 0 : 7))
        FAIL("%s: RowMajorStrg is %d", name, RowMajorStrg);
    return NULL;
}

static void in_a_thread(void *(*function)(void *), void *of)
{
    pthread_t thread;
    const int before = closed, made = contexts;
    if (pthread_create(&thread, NULL, function, of) || pthread_join(thread, NULL))
        exit(2);
    if (closed - before != 1 || contexts - made != 1)
        FAIL("a thread made %d contexts and closed %d", contexts - made, closed - before);
}

static void whatever_rung_answers(void)
{
    for (int name = 0; name < NAMES; name++)
        for (int form = 0; form < (name >= FIRST_C_NAME ? 8 : 4); form++)
            for (int status = RUNG_SUCCESS; status <= RUNG_INTERNAL; status++)
                for (int first = 0; first < 2; first++) {
                    attempt t = {name, form, form % 3 ? -2.0f : 0.0f, (rung_status)status, 0, first};
                    in_a_thread(try, &t);
                }
}

/* The program's handlers are told where no other BLAS is there to judge. */
static void wrong_arguments(void)
{
    for (int name = 0; name < NAMES; name++)
        for (int at = 1; at <= 13; at++) {
            attempt t = {name, name >= FIRST_C_NAME ? at & 4 : 0, 1.0f, RUNG_INVALID_ARGUMENT, at, at & 1};
            if (at != 12 && !(is_alone && (at == 7 || at == 9))) /* a result on its operand, below; an odd address */
                in_a_thread(try, &t);
        }
}

/* What the drop-in does not know another BLAS may: it is called with what the program said, and Rung and the program's
 * handlers are not. The first call of its thread, and one behind another. */
static void *try_unknown(void *name)
{
    static const int settings[][3] = {{COLUMN, 114, N}, {ROW, N, 114}, {100, N, N}, {COLUMN, 0, T}};
    const float alpha = 0.5f, beta = -2.0f;
    for (int i = 0; i < 4; i++) {
        int at = 0, layout = 0;
        reset();
#define X(function, integer)                                                                                           \
    if (at++ == *(int *)name) {                                                                                        \
        const integer m = 2, n = 3, k = 4, lda = 7, ldb = 8, ldc = 9;                                                  \
        function(i & 1 ? "N" : "R", i & 1 ? "x" : "T", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);          \
    }
        FORTRAN_NAMES(X)
#undef X
#define X(function, integer)                                                                                           \
    if (at++ == *(int *)name) {                                                                                        \
        layout = settings[i][0];                                                                                       \
        function(layout, settings[i][1], settings[i][2], 2, 3, 4, alpha, a, 7, b, 8, beta, c, 9);                      \
    }
        C_NAMES(X)
#undef X
        if (calls || told_handler || RowMajorStrg != 7 || c[0] != 1.0f || c[1] != alpha || c[2] != beta ||
            c[3] != 9.0f || c[4] != (layout ? (float)layout : 4.0f))
            FAIL("%s, unknown %d: Rung was asked %d times, %s was told, C is %g %g %g %g %g ...", names[*(int *)name],
                 i, calls, told_handler ? told_handler : "nobody", (double)c[0], (double)c[1], (double)c[2],
                 (double)c[3], (double)c[4]);
        answers[0].status = RUNG_SUCCESS;
        call(*(int *)name, 0, 0.0f);
    }
    return NULL;
}

static void what_is_unknown(void)
{
    for (int name = 0; name < NAMES; name++)
        in_a_thread(try_unknown, &name);
}

/* Where C lies on an operand Rung is asked once more, with a copy whose columns have nothing between them. */
static void *try_copy(void *of)
{
    const attempt *t = of;
    reset();
    for (int i = 0; i < 2; i++)
        answers[i].status = i ? t->status : RUNG_INVALID_ARGUMENT, answers[i].position = i ? 0 : 12;
    call(t->name, t->form, t->beta);
    const recorded *g = &given[1];
    const int64_t m = t->form & 4 ? 3 : 2;
    if (calls != 2 || g->c == c || g->ldc != m || g->m != m || g->n != 5 - m || g->beta != t->beta ||
        g->lda != given[0].lda || g->ldb != given[0].ldb || g->a != given[0].a || g->b != given[0].b ||
        g->alpha != 0.5f || g->k != 4 || g->trans_a != given[0].trans_a || g->trans_b != given[0].trans_b)
        FAIL("%s: a copy of C: %d calls, ldc %lld", names[t->name], calls, (long long)g->ldc);
    if (!c_is(t->status == RUNG_SUCCESS ? 'r' : 'o', t->form, t->beta))
        FAIL("%s, form %d, beta %g: after a copy C is %g %g %g %g %g ...", names[t->name], t->form, (double)t->beta,
             (double)c[0], (double)c[1], (double)c[2], (double)c[3], (double)c[4]);
    return NULL;
}

static void results_on_operands(void)
{
    static const float betas[] = {0.0f, 1.0f, -0.0f, -0.5f, 1e-40f};
    for (int name = 0; name < NAMES; name++)
        for (int form = 0; form < (name >= FIRST_C_NAME ? 8 : 4); form++)
            for (size_t beta = 0; beta < sizeof betas / sizeof *betas; beta++) {
                attempt t = {name, form, betas[beta], form % 2 ? RUNG_OUT_OF_MEMORY : RUNG_SUCCESS, 0, 1};
                in_a_thread(try_copy, &t);
            }
}

/* ---- calls while a thread ends, behind the drop-in's own end ---- */

static pthread_key_t at_end;

static void call_again(void *name)
{
    reset();
    call(*(int *)name, 0, 0.0f);
    if (calls != 1 || !c_is('r', 0, 0.0f))
        FAIL("%s: a call of a thread that ends was not answered", names[*(int *)name]);
}

static void *call_until_the_end(void *name)
{
    pthread_setspecific(at_end, name);
    call_again(name);
    return NULL;
}

/* The key comes after the drop-in's own, and so does its turn: the call finds the thread's context gone. */
static void threads_call_while_they_end(void)
{
    for (int i = 0; i < MOST_ANSWERS; i++)
        answers[i].status = RUNG_SUCCESS;
    if (pthread_key_create(&at_end, call_again))
        exit(2);
    for (int name = 0; name < NAMES; name++) {
        pthread_t thread;
        const int made = contexts;
        if (pthread_create(&thread, NULL, call_until_the_end, &name) || pthread_join(thread, NULL))
            exit(2);
        if (contexts - made != 2 || open_now != 0)
            FAIL("%s: a thread that calls while it ends made %d contexts and left %d", names[name], contexts - made,
                 open_now);
    }
    pthread_key_delete(at_end);
}

/* ---- processes of their own: settings, the report, the end of a program that nobody can answer ---- */

static void *one_call(void *name)
{
    reset();
    call(*(int *)name, 0, 0.0f);
    return NULL;
}

static void two_threads(int name)
{
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_call, &name) || pthread_join(thread, NULL))
            exit(2);
    }
}

static int work(const char *mode, const char *other)
{
    if (strcmp(mode, "alone") != 0 && !dlopen(other, RTLD_NOW | RTLD_LOCAL))
        return 2;
    for (int i = 0; i < MOST_ANSWERS; i++)
        answers[i].status = strcmp(mode, "alone") == 0 || strcmp(mode, "refused") == 0 || strncmp(mode, "half", 4) == 0
                                ? RUNG_UNSUPPORTED
                                : RUNG_SUCCESS;
    has_written = strncmp(mode, "half", 4) == 0;
    if (strcmp(mode, "disabled") == 0)
        setenv("RUNG_DISABLE", "1", 1);
    opened[0] = strcmp(mode, "no GPU") == 0 ? RUNG_NO_DEVICE : strcmp(mode, "no memory") == 0 ? RUNG_OUT_OF_MEMORY : 0;
    opened[1] = strcmp(mode, "no memory") == 0 ? RUNG_OUT_OF_MEMORY : RUNG_SUCCESS;
    if (strcmp(mode, "half done") == 0) {
        reset();
        call(5, 0, -2.0f);
    } else if (strcmp(mode, "all") == 0) {
        for (int i = 0; i < 3;
             i++) /* answered, handed on, and a wrong argument, the last two twice by each of two entries */
            for (int again = 0; again < 1 + 3 * (i > 0); again++) {
                reset();
                for (int j = 0; j < MOST_ANSWERS; j++)
                    answers[j].status = i == 0   ? RUNG_SUCCESS
                                        : i == 1 ? RUNG_UNSUPPORTED
                                                 : RUNG_INVALID_ARGUMENT,
                    answers[j].position = i == 2 ? 3 : 0;
                call(4 * (again % 2), i, 0.0f);
            }
    } else if (strcmp(mode, "unknown") == 0) {
        for (int name = 0; name < NAMES; name++)
            try_unknown(&name);
    } else {
        two_threads(0);
    }
    fprintf(stderr, "contexts %d, of device %d and %d, math %d, calls %d, C %g\n", contexts, configs[0].device,
            configs[1].device, (int)configs[0].math, calls, (double)c[0]);
    return 0;
}

/* Runs this program in a mode; returns how often it says something, and puts all that it says there. */
static int said_in(const char *program, const char *other, const char *mode, const char *variable, const char *value,
                   char *said)
{
    int out[2], status = 0;
    size_t at = 0;
    if (pipe(out))
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 2);
        close(out[0]);
        setenv(variable, value, 1);
        execl(program, program, other, mode, (char *)NULL);
        _exit(3);
    }
    close(out[1]);
    for (ssize_t got; at + 1 < SAID_BYTES && (got = read(out[0], said + at, SAID_BYTES - 1 - at)) > 0;)
        at += (size_t)got;
    said[at] = 0;
    close(out[0]);
    waitpid(child, &status, 0);
    return status;
}

static int count_of(const char *text, const char *words)
{
    int count = 0;
    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
        count++;
    return count;
}

static void settings_reach_contexts(const char *program, const char *other)
{
    static const struct {
        const char *mode, *variable, *value;
        int ends; /* with 0, or by SIGABRT */
        int times;
        const char *words;
    } cases[] = {
        {"", "RUNG_X", "", 0, 1, "contexts 2, of device -1 and -1, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "gpu", 0, 1, "contexts 2, of device 0 and 0, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "gpu3", 0, 1, "contexts 2, of device 3 and 3, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "9999", 0, 1, "contexts 2, of device 9999 and 9999, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "cpu", 0, 1, "contexts 2, of device -1 and -1, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "", 0, 1, "contexts 2, of device -1 and -1, math 0, calls 1, C 100\n"},
        {"", "RUNG_DEVICE", "10000", 0, 1,
         "librung_blas.so: RUNG_DEVICE is '10000': cpu, gpu or a GPU's number; cpu is taken\ncontexts 2, of device "
         "-1 "},
        {"", "RUNG_DEVICE", "gpux", 0, 1, "RUNG_DEVICE is 'gpux': cpu, gpu or a GPU's number; cpu is taken\n"},
        {"", "RUNG_MATH", "strict", 0, 1, "math 0"},
        {"", "RUNG_MATH", "accurate", 0, 1, "math 1"},
        {"", "RUNG_MATH", "fast", 0, 1, "math 2"},
        {"", "RUNG_MATH", "", 0, 1, "math 0"},
        {"", "RUNG_MATH", "fas", 0, 1,
         "librung_blas.so: RUNG_MATH is 'fas': strict, accurate or fast; strict is taken\ncontexts 2, of device -1 and "
         "-1, "
         "math 0"},
        {"", "RUNG_DISABLE", "1", 0, 1, "contexts 0, of device 0 and 0, math 0, calls 0, C 1\n"},
        {"", "RUNG_DISABLE", "0", 0, 1, "calls 1, C 100\n"},
        {"", "RUNG_DISABLE", "", 0, 1, "calls 1, C 100\n"},
        {"", "RUNG_DISABLE", "off", 0, 1,
         "librung_blas.so: RUNG_DISABLE is 'off': 1 or 0; 0 is taken\ncontexts 2, of device -1 and -1, math 0, calls "
         "1, C "
         "100\n"},
        {"no GPU", "RUNG_DEVICE", "gpu", 0, 1,
         "librung_blas.so: RUNG_DEVICE asks for a GPU: as recorded; the CPU computes\ncontexts 3, of device 0 and 0, "},
        {"no memory", "RUNG_X", "", 0, 1,
         "librung_blas.so: as recorded; products are left to the other BLAS\ncontexts 2, of device -1 and -1, math 0, "
         "calls 0, C 1\n"},
        {"refused", "RUNG_X", "", 0, 1, "calls 1, C 1\n"},
        {"alone", "RUNG_X", "", SIGABRT, 1,
         "sgemm_: Rung could not compute this product (as recorded), and no other BLAS is loaded that could\n"},
        {"half done", "RUNG_X", "", SIGABRT, 1,
         "cblas_sgemm64_: Rung could not compute this product (as recorded), and C may have been written: another BLAS "
         "would add to that\n"},
        {"half done, not read", "RUNG_X", "", 0, 1, "calls 1, C 1\n"}, /* beta is 0: the other BLAS begins anew */
        {"all", "RUNG_REPORT", "stderr", 0, 1, ": 1 call answered, 8 handed on to the other BLAS\n"},
        {"all", "RUNG_REPORT", "stderr", 0, 2, "  the other BLAS: Rung could not compute it\n"},
        {"all", "RUNG_REPORT", "stderr", 0, 2, "  the other BLAS: an argument that Rung refuses\n"},
        {"unknown", "RUNG_REPORT", "stderr", 0, 1, ": 32 calls answered, 32 handed on to the other BLAS\n"},
        {"unknown", "RUNG_REPORT", "stderr", 0, NAMES, "  the other BLAS: an argument that Rung refuses\n"},
        {"all", "RUNG_REPORT", "stderr", 0, 1, "  recorded_kernel\n"},
        {"all", "RUNG_REPORT", "stderr", 0, 0, "more calls"}, /* all have a line */
        {"", "RUNG_REPORT", "stderr", 0, 0, "more calls"},
        {"disabled", "RUNG_REPORT", "stderr", 0, 1, "  the other BLAS: RUNG_DISABLE is set\n"},
        {"all", "RUNG_REPORT", "stderr", 0, 1,
         "\nsgemm_                        NN        2        3        4      1         1 "},
        {"all", "RUNG_REPORT", "stderr", 0, 1,
         "\nsgemm_                        TN        2        3        4      1         2 "},
        {"all", "RUNG_REPORT", "stderr", 0, 1,
         "\nsgemm_                        NT        2        3        4      1         2 "},
        {"all", "RUNG_REPORT", "stderr", 0, 1,
         "\ncblas_sgemm                   TN        2        3        4      1         2 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[SAID_BYTES];
        const int status = said_in(program, other, cases[i].mode, cases[i].variable, cases[i].value, said),
                  times = count_of(said, cases[i].words);
        if ((cases[i].ends ? !WIFSIGNALED(status) || WTERMSIG(status) != cases[i].ends : status != 0) ||
            times != cases[i].times)
            FAIL("'%s' with %s=%s ended with %d and said %d times '%s':\n%s", cases[i].mode, cases[i].variable,
                 cases[i].value, status, times, cases[i].words, said);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return work(argv[2], argv[1]);
    if (argc != 2)
        return 2;
    settings_reach_contexts(argv[0], argv[1]);
    wrong_arguments();
    if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))
        return 2;
    is_alone = 0;
    wrong_arguments();
    whatever_rung_answers();
    what_is_unknown();
    results_on_operands();
    threads_call_while_they_end();
    return failed;
}
