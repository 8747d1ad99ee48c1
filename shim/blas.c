/* librung_blas.so: answers BLAS's and CBLAS's sgemm, by their 32-bit and 64-bit names, with Rung. It translates
 * arguments, nothing more; every other routine stays with the library that was there. What Rung refuses that library
 * judges by itself; without one it goes to the program's xerbla_ or cblas_xerbla. Any thread may call: each has a
 * context of its own.
 * RUNG_DEVICE=cpu (default), gpu or a GPU's number; RUNG_MATH=strict (default), accurate, fast; RUNG_DISABLE=1. */
#define _GNU_SOURCE
#include "report.h"
#include "settings.h"

#include "core/plain.h"
#include "core/wrote.h"
#include "cpu/others.h"
#include "cpu/team.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "librung_blas.so"
#define EXPORT __attribute__((visibility("default")))

/* The reference CBLAS keeps these for its xerbla: a row-major call is the column-major one with A and B exchanged, and
 * RowMajorStrg tells cblas_xerbla to exchange the argument's position back. Programs written against it refer to both.
 */
EXPORT int RowMajorStrg;
EXPORT int CBLAS_CallFromC;

static rung_config settings;
static int disabled;
static pthread_key_t leaving;
static int has_key; /* else contexts stay when their threads end */
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* As the loader keeps room for, also in a library that comes late: asking where it lies would cost a call. */
static _Thread_local rung_context *own __attribute__((tls_model("initial-exec")));

static void close_context(void *context)
{
    rung_context_destroy(context);
    own = NULL;
}

static void read_settings(void)
{
    rung_config_init(&settings);
    settings.device = setting_device(NAME, RUNG_DEVICE_CPU);
    settings.math = setting_math(NAME, RUNG_STRICT);
    disabled = setting_flag("RUNG_DISABLE");
    setting_tell_flag(NAME, "RUNG_DISABLE");
    has_key = pthread_key_create(&leaving, close_context) == 0;
}

/* A wrong variable and a GPU that is not there hold for the whole process: said once. */
static void say_once(const char *what, const char *then)
{
    static int said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fprintf(stderr, NAME ": %s%s; %s\n", what, rung_last_error(), then);
}

/* OpenBLAS's workers are told to spin less long, as by `rung run`. It reads this variable when it is loaded, which
 * Python's modules do later than this library. */
__attribute__((constructor)) static void shorten_spins(void)
{
    if (!setting_flag("RUNG_DISABLE"))
        setenv("OPENBLAS_THREAD_TIMEOUT", rung_spins_of_openblas(), 0);
}

static rung_context *context_of_thread(void)
{
    if (own)
        return own;
    pthread_once(&once, read_settings);
    if (disabled)
        return NULL;
    rung_config config = settings;
    rung_status status = rung_context_create(&own, &config);
    if (status == RUNG_NO_DEVICE) {
        say_once("RUNG_DEVICE asks for a GPU: ", "the CPU computes");
        config.device = RUNG_DEVICE_CPU;
        status = rung_context_create(&own, &config);
    }
    if (status != RUNG_SUCCESS)
        say_once("", "products are left to the other BLAS");
    if (own && has_key)
        pthread_setspecific(leaving, own);
    return own;
}

enum { C_ARGUMENT = 12 };

/* Returns what BLAS's letter says, or -1 for a letter that it does not know. */
static inline int transpose_of(char letter)
{
    static const signed char known[256] = {['N'] = 1, ['n'] = 1, ['T'] = 2, ['t'] = 2, ['C'] = 2, ['c'] = 2};
    return known[(unsigned char)letter] - 1; /* RUNG_NO_TRANS is 0, RUNG_TRANS 1 */
}

/* Multiplies into a copy of C where that lies on A or B. BLAS forbids it and leaves the result open; here C is what it
 * would be in memory of its own.
 */
static rung_status into_copy(rung_context *context, const rung_gemm *g)
{
    size_t column = (size_t)g->m * sizeof *g->c;
    rung_gemm copied = *g;
    copied.c = malloc(column * (size_t)g->n);
    copied.ldc = g->m;
    if (!copied.c)
        return RUNG_OUT_OF_MEMORY;
    for (int64_t j = 0; j < g->n && g->beta != 0.0f; j++)
        memcpy(copied.c + j * g->m, g->c + j * g->ldc, column);
    rung_status status = rung_gemm_run(context, &copied);
    for (int64_t j = 0; j < g->n && status == RUNG_SUCCESS; j++)
        memcpy(g->c + j * g->ldc, copied.c + j * g->m, column);
    free(copied.c);
    return status;
}

enum { NOT_MINE = -1, HALF_DONE = -2 };

/* Returns the position of the argument that Rung has refused and BLAS would refuse, too; 0: there is none. BLAS takes
 * operands at any address. */
static int refused_argument(const rung_gemm *g)
{
    enum { A_ARGUMENT = 7, B_ARGUMENT = 9 };
    int argument = rung_last_error_argument();
    return (argument == A_ARGUMENT && g->a) || (argument == B_ARGUMENT && g->b) ? 0 : argument;
}

/* Answers a column-major call with BLAS's letters. Returns 0 when it is done; the position of the wrong argument, 1 ...
 * 13; NOT_MINE when Rung cannot do it, and C is as it was, or is not read; HALF_DONE when C may be neither. */
static int answer(char transa, char transb, rung_gemm *g)
{
    int trans_a = transpose_of(transa), trans_b = transpose_of(transb);
    rung_context *context = context_of_thread();
    if (!context)
        return NOT_MINE;
    if (trans_a < 0)
        return 1;
    if (trans_b < 0)
        return 2;
    g->trans_a = (rung_transpose)trans_a;
    g->trans_b = (rung_transpose)trans_b;
    rung_status status = rung_gemm_run(context, g);
    if (status == RUNG_INVALID_ARGUMENT && rung_last_error_argument() == C_ARGUMENT && g->c)
        status = into_copy(context, g);
    if (status == RUNG_INVALID_ARGUMENT && refused_argument(g))
        return refused_argument(g);
    if (status != RUNG_SUCCESS && g->beta != 0.0f && rung_context_wrote(context))
        return HALF_DONE;
    return status == RUNG_SUCCESS ? 0 : NOT_MINE;
}

/* Answers a call that returns to `caller`, whose threads may share in it. */
static int answer_caller(const void *caller, char transa, char transb, rung_gemm *g)
{
    rung_team_say_caller(caller);
    int info = answer(transa, transb, g);
    rung_team_say_caller(NULL);
    return info;
}

static const char REFUSED[] = "an argument that Rung refuses";

static int answer_and_report(const char *name, const void *caller, char transa, char transb, rung_gemm *g)
{
    if (!report_wanted())
        return answer_caller(caller, transa, transb, g);
    report_begin(name, g, NULL);
    int info = answer_caller(caller, transa, transb, g);
    report_kernel(info == 0 && own ? rung_last_kernel(own) : NULL);
    report_end(info > 0 ? REFUSED : info < 0 ? disabled ? "RUNG_DISABLE is set" : "Rung could not compute it" : NULL);
    return info;
}

/* Runs a small product and returns whether it was one. Such a one feels each hand that its thirteen arguments pass:
 * they go into `call` as Rung's core has them, row-major with A and B exchanged, and from there on nowhere else. */
static inline int is_done(rung_plain *call, char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    int trans_a = transpose_of(transa), trans_b = transpose_of(transb); /* -1 is no small product's */
    int is_plain = rung_plain_of(call, RUNG_COL_MAJOR, (rung_transpose)trans_a, (rung_transpose)trans_b, m, n, k, alpha,
                                 a, lda, b, ldb, beta, c, ldc);
    return is_plain && rung_is_small_shape(call) && own && !report_wanted() &&
           rung_small_run(own, call) == RUNG_SUCCESS;
}

/* Returns what a call that is not done asks for; its letters are read later. */
static rung_gemm gemm_of(const rung_plain *call)
{
    return (rung_gemm){.layout = RUNG_COL_MAJOR,
                       .m = call->n,
                       .n = call->m,
                       .k = call->k,
                       .a = call->b,
                       .b = call->a,
                       .c = call->c,
                       .lda = call->ldb,
                       .ldb = call->lda,
                       .ldc = call->ldc,
                       .batch = 1,
                       .alpha = call->alpha,
                       .beta = call->beta};
}

/* Ends the program: BLAS has no way to report that a product was not computed, and going on with a wrong C would be
 * worse. */
static void give_up(const char *name, const char *because)
{
    fprintf(stderr, "%s: Rung could not compute this product (%s), and %s\n", name, rung_last_error(), because);
    abort();
}

enum { MOST_OBJECTS = 1024 };

typedef struct objects {
    char *names[MOST_OBJECTS];
    int count;
} objects;

static int note_name(struct dl_phdr_info *object, size_t bytes, void *state)
{
    objects *o = state;
    (void)bytes;
    if (object->dlpi_name[0] && o->count < MOST_OBJECTS && (o->names[o->count] = strdup(object->dlpi_name)))
        o->count++;
    return 0;
}

static int note_changes(struct dl_phdr_info *object, size_t bytes, void *state)
{
    (void)bytes;
    *(unsigned long long *)state = object->dlpi_adds + object->dlpi_subs;
    return 1;
}

/* Returns whether a function is that of another copy of this library, which would look for another BLAS as this one
 * does, and find this one. */
static int is_drop_in(void *function)
{
    Dl_info in;
    const char *slash = dladdr(function, &in) ? strrchr(in.dli_fname, '/') : NULL;
    return slash && strncmp(slash + 1, NAME, sizeof NAME - 1) == 0;
}

/* Collects the names first and calls dlopen then: within dl_iterate_phdr it would take the loader's locks in the wrong
 * order. */
static void *find_in_all(const char *name, void *mine)
{
    objects all = {.count = 0};
    void *found = NULL;
    dl_iterate_phdr(note_name, &all);
    for (int i = 0; i < all.count; i++) {
        void *handle = found ? NULL : dlopen(all.names[i], RTLD_LAZY | RTLD_NOLOAD);
        void *at = handle ? dlsym(handle, name) : NULL;
        if (at && at != mine && !is_drop_in(at))
            found = at;
        if (handle)
            dlclose(handle); /* it was loaded before, and stays */
        free(all.names[i]);
    }
    return found;
}

/* Returns the BLAS behind this one: next in line, or loaded for one caller alone (RTLD_LOCAL), as Python's modules load
 * theirs; NULL where there is none. A thread looks again when objects have come or gone. */
static void *look_for_other(const char *name, void *mine)
{
    static _Thread_local struct {
        const char *name;
        void *found;
        unsigned long long changes;
    } last;
    unsigned long long changes = 0;
    dl_iterate_phdr(note_changes, &changes);
    if (last.name != name || last.changes != changes) {
        void *next = dlsym(RTLD_NEXT, name);
        last.found = next ? next : find_in_all(name, mine);
        last.name = name;
        last.changes = changes;
    }
    return last.found;
}

static void *find_other(const char *name, void *mine, int info)
{
    if (info == HALF_DONE)
        give_up(name, "C may have been written: another BLAS would add to that");
    void *found = look_for_other(name, mine);
    if (!found)
        give_up(name, "no other BLAS is loaded that could");
    return found;
}

/* Tells the report of a call with a setting that Rung does not know. Returns the position that is to blame. */
static int refuse_setting(const char *name, int64_t m, int64_t n, int64_t k)
{
    const rung_gemm asked = {.m = m, .n = n, .k = k, .batch = 1};
    report_begin(name, &asked, NULL);
    report_end(REFUSED);
    return 1;
}

/* `info` is 64 bits wide, which a little-endian callee that expects 32 reads rightly too. */
static void call_xerbla(const char *xerbla, int64_t info)
{
    typedef void handler(const char *name, const int64_t *info, size_t length);
    handler *report = (handler *)dlsym(RTLD_DEFAULT, xerbla);
    if (report)
        report("SGEMM ", &info, 6);
    else
        fprintf(stderr, " ** On entry to SGEMM  parameter number %2d had an illegal value\n", (int)info);
}

static void call_cblas_xerbla(const char *cblas_xerbla, const char *xerbla, int64_t info, const char *form, int value)
{
    typedef void handler(int64_t info, const char *name, const char *form, ...);
    handler *report = (handler *)dlsym(RTLD_DEFAULT, cblas_xerbla);
    if (report)
        report(info, "cblas_sgemm", form, value);
    else
        call_xerbla(xerbla, info - 1); /* as OpenBLAS does: BLAS's position, where the layout does not count */
}

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113 };

/* Returns 'N', 'T', or 0 for what CBLAS does not know. */
static char letter(int trans)
{
    return trans == NO_TRANS ? 'N' : trans == TRANS || trans == CONJ_TRANS ? 'T' : 0;
}

static void bad_setting(const char *cblas_xerbla, const char *xerbla, int layout, int transa, int transb)
{
    if (layout != ROW_MAJOR && layout != COLUMN_MAJOR)
        call_cblas_xerbla(cblas_xerbla, xerbla, 1, "Illegal layout setting, %d\n", layout);
    else if (!letter(transa))
        call_cblas_xerbla(cblas_xerbla, xerbla, 2, "Illegal TransA setting, %d\n", transa);
    else
        call_cblas_xerbla(cblas_xerbla, xerbla, 3, "Illegal TransB setting, %d\n", transb);
}

static void set_row_major(int row)
{
    int *flag = dlsym(RTLD_DEFAULT, "RowMajorStrg"); /* the program's, if it has one */
    __atomic_store_n(flag ? flag : &RowMajorStrg, row, __ATOMIC_RELAXED);
}

/* A Fortran compiler adds the letters' lengths behind the last argument. Who calls from C may leave them out; who is
 * called, in another BLAS, may look at them. */
#define FORTRAN_SGEMM(name, integer, xerbla)                                                                           \
    EXPORT void name(const char *transa, const char *transb, const integer *m, const integer *n, const integer *k,     \
                     const float *alpha, const float *a, const integer *lda, const float *b, const integer *ldb,       \
                     const float *beta, float *c, const integer *ldc);                                                 \
    typedef void name##_as_compiled(const char *, const char *, const integer *, const integer *, const integer *,     \
                                    const float *, const float *, const integer *, const float *, const integer *,     \
                                    const float *, float *, const integer *, size_t, size_t);                          \
    static __attribute__((noinline)) void name##_with_care(const void *caller, char transa, char transb,               \
                                                           const rung_plain *call)                                     \
    {                                                                                                                  \
        rung_gemm g = gemm_of(call);                                                                                   \
        void *mine = (void *)(uintptr_t)name;                                                                          \
        int info = answer_and_report(#name, caller, transa, transb, &g);                                               \
        int is_refused = info > 0 && !look_for_other(#name, mine);                                                     \
        if (is_refused)                                                                                                \
            call_xerbla(xerbla, info);                                                                                 \
        if (is_refused || info == 0)                                                                                   \
            return;                                                                                                    \
        name##_as_compiled *next = (name##_as_compiled *)find_other(#name, mine, info);                                \
        const integer m = (integer)g.m, n = (integer)g.n, k = (integer)g.k;                                            \
        const integer lda = (integer)g.lda, ldb = (integer)g.ldb, ldc = (integer)g.ldc;                                \
        next(&transa, &transb, &m, &n, &k, &g.alpha, g.a, &lda, g.b, &ldb, &g.beta, g.c, &ldc, 1, 1);                  \
    }                                                                                                                  \
    void name(const char *transa, const char *transb, const integer *m, const integer *n, const integer *k,            \
              const float *alpha, const float *a, const integer *lda, const float *b, const integer *ldb,              \
              const float *beta, float *c, const integer *ldc)                                                         \
    {                                                                                                                  \
        rung_plain call;                                                                                               \
        char ta = *transa, tb = *transb;                                                                               \
        if (!is_done(&call, ta, tb, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc))                             \
            name##_with_care(__builtin_return_address(0), ta, tb, &call);                                              \
    }

#define C_SGEMM(name, integer, cblas_xerbla, xerbla)                                                                   \
    EXPORT void name(int layout, int transa, int transb, integer m, integer n, integer k, float alpha, const float *a, \
                     integer lda, const float *b, integer ldb, float beta, float *c, integer ldc);                     \
    void name(int layout, int transa, int transb, integer m, integer n, integer k, float alpha, const float *a,        \
              integer lda, const float *b, integer ldb, float beta, float *c, integer ldc)                             \
    {                                                                                                                  \
        char ta = letter(transa), tb = letter(transb);                                                                 \
        int row = layout == ROW_MAJOR, is_known = (row || layout == COLUMN_MAJOR) && ta && tb, info = NOT_MINE;        \
        rung_plain call;                                                                                               \
        void *mine = (void *)(uintptr_t)name;                                                                          \
        if (is_known && (row ? is_done(&call, tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)                    \
                             : is_done(&call, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)))                  \
            return;                                                                                                    \
        if (is_known) {                                                                                                \
            rung_gemm g = gemm_of(&call);                                                                              \
            const void *caller = __builtin_return_address(0);                                                          \
            info = answer_and_report(#name, caller, row ? tb : ta, row ? ta : tb, &g);                                 \
        } else if (context_of_thread()) {                                                                              \
            info = refuse_setting(#name, m, n, k);                                                                     \
        }                                                                                                              \
        int is_refused = info > 0 && !look_for_other(#name, mine);                                                     \
        if (is_refused) {                                                                                              \
            set_row_major(row);                                                                                        \
            is_known ? call_cblas_xerbla(cblas_xerbla, xerbla, info + 1, "", 0)                                        \
                     : bad_setting(cblas_xerbla, xerbla, layout, transa, transb);                                      \
        }                                                                                                              \
        if (is_refused || info == 0)                                                                                   \
            return;                                                                                                    \
        __typeof__(&name) next = (__typeof__(&name))find_other(#name, mine, info);                                     \
        next(layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                    \
    }

FORTRAN_SGEMM(sgemm_, int, "xerbla_")
FORTRAN_SGEMM(sgemm_64_, int64_t, "xerbla_64_")
FORTRAN_SGEMM(scipy_sgemm_, int, "scipy_xerbla_")
FORTRAN_SGEMM(scipy_sgemm_64_, int64_t, "scipy_xerbla_64_")
C_SGEMM(cblas_sgemm, int, "cblas_xerbla", "xerbla_")
C_SGEMM(cblas_sgemm64_, int64_t, "cblas_xerbla64_", "xerbla_64_")
C_SGEMM(scipy_cblas_sgemm, int, "scipy_cblas_xerbla", "scipy_xerbla_")
C_SGEMM(scipy_cblas_sgemm64_, int64_t, "scipy_cblas_xerbla64_", "scipy_xerbla_64_")
