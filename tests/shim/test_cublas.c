/* The cuBLAS drop-in without a GPU: its sources, linked with a Rung that records and a cuBLAS that records. Every entry
 * point must translate each argument to its place, and hand on, untouched, what is not Rung's to answer. */
#include "fake_cublas.h"
#include "rung.h"

#include "core/wrote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

/* ---- a Rung that records ---- */

static rung_gemm seen;
static int seen_count;
static _Thread_local int slow_calls;
static sem_t is_within;
static rung_config seen_config;
static rung_status next_status;
enum { MOST_CONTEXTS = 300 };
static char contexts[MOST_CONTEXTS]; /* 1: open, 2: destroyed */
static int context_count;
static int refuses_device, refuses_stream;

void rung_config_init(rung_config *config)
{
    memset(config, 0, sizeof *config);
}
rung_status rung_context_create(rung_context **context, const rung_config *config)
{
    seen_config = *config;
    if (refuses_device)
        return RUNG_DEVICE_ERROR;
    contexts[context_count] = 1;
    *context = (rung_context *)&contexts[context_count++];
    return context_count < MOST_CONTEXTS ? RUNG_SUCCESS : RUNG_OUT_OF_MEMORY;
}
void rung_context_destroy(rung_context *context)
{
    if (context)
        *(char *)context = 2;
}
static void expect_open(const rung_context *context)
{
    if (*(const char *)context != 1) {
        fprintf(stderr, "a context that is gone is used\n");
        _exit(97);
    }
}
rung_status rung_context_set_stream(rung_context *context, void *stream)
{
    expect_open(context);
    seen_config.stream = stream;
    return refuses_stream ? RUNG_UNSUPPORTED : RUNG_SUCCESS;
}
rung_status rung_context_set_math(rung_context *context, rung_math math)
{
    expect_open(context);
    seen_config.math = math;
    return RUNG_SUCCESS;
}
void rung_gemm_init(rung_gemm *gemm)
{
    memset(gemm, 0, sizeof *gemm);
    gemm->batch = 1;
    gemm->alpha = 1.0f;
}
static int64_t limit_now, seen_limit;
rung_status rung_context_set_workspace_limit(rung_context *context, int64_t bytes)
{
    expect_open(context);
    limit_now = bytes;
    return RUNG_SUCCESS;
}
rung_status rung_gemm_run(rung_context *context, const rung_gemm *gemm)
{
    expect_open(context);
    seen_limit = limit_now;
    seen = *gemm;
    seen_count++;
    if (slow_calls) {
        sem_post(&is_within);
        usleep(200000); /* what is under test waits for this call, or does not and hangs */
    }
    return next_status;
}
rung_status rung_context_guard_counts(rung_context *context, rung_guard_counts *counts)
{
    expect_open(context);
    *counts = (rung_guard_counts){.blocks = 7, .strict_blocks = 2, .strict_elements = 1};
    return RUNG_SUCCESS;
}
static int has_written;
int rung_context_wrote(const rung_context *context)
{
    expect_open(context);
    return has_written;
}
const char *rung_last_kernel(const rung_context *context)
{
    (void)context;
    return "recorder";
}
const char *rung_status_name(rung_status status)
{
    (void)status;
    return "status";
}
const char *rung_version(void)
{
    return "test";
}

static int gpu_now = 3;
__attribute__((visibility("default"))) int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = gpu_now;
    return 0;
}

__attribute__((visibility("default"))) int cuStreamIsCapturing(void *stream, int *capturing);
int cuStreamIsCapturing(void *stream, int *capturing)
{
    *capturing = stream == (void *)(uintptr_t)FAKE_CAPTURING;
    return 0;
}

static int gpu_major = 9;
__attribute__((visibility("default"))) int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 && device == 3 ? gpu_major : 0;
    return 0;
}

/* ---- the entry points under test ---- */

#define SHAPE(INT) void *, int, int, INT, INT, INT
#define DECLARE(suffix, INT)                                                                                           \
    int cublasSgemm_v2##suffix(SHAPE(INT), const float *, const float *, INT, const float *, INT, const float *,       \
                               float *, INT);                                                                          \
    int cublasSgemmStridedBatched##suffix(SHAPE(INT), const float *, const float *, INT, long long, const float *,     \
                                          INT, long long, const float *, float *, INT, long long, INT);                \
    int cublasSgemmBatched##suffix(SHAPE(INT), const float *, const float *const *, INT, const float *const *, INT,    \
                                   const float *, float *const *, INT, INT);                                           \
    int cublasSgemmEx##suffix(SHAPE(INT), const float *, const void *, int, INT, const void *, int, INT,               \
                              const float *, void *, int, INT);                                                        \
    int cublasGemmEx##suffix(SHAPE(INT), const void *, const void *, int, INT, const void *, int, INT, const void *,   \
                             void *, int, INT, int, int);                                                              \
    int cublasGemmStridedBatchedEx##suffix(SHAPE(INT), const void *, const void *, int, INT, long long, const void *,  \
                                           int, INT, long long, const void *, void *, int, INT, long long, INT, int,   \
                                           int);                                                                       \
    int cublasGemmBatchedEx##suffix(SHAPE(INT), const void *, const void *const *, int, INT, const void *const *, int, \
                                    INT, const void *, void *const *, int, INT, INT, int, int);
DECLARE(, int)
DECLARE(_64, int64_t)
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,
                   void *, void *, void *, const void *, void *, size_t, void *);

static int *calls;
static float a[4], b[4], c[4], bias[4];
static const float alpha = 2.5f, beta = -0.5f;
static int stream_object;
static fake_handle handle;
enum { F32 = 0, F16 = 2, COMPUTE = 68, PEDANTIC = 69, TF32 = 77, EMULATED = 78, BIG = 1 << 20 };

static int64_t wide; /* what every size is more than it says below */

static int reset(void **state)
{
    (void)state;
    wide = 0;
    memset(&seen, 0, sizeof seen);
    memset(calls, 0, FAKE_ENTRIES * sizeof *calls);
    seen_count = 0;
    next_status = RUNG_SUCCESS;
    handle = (fake_handle){.stream = &stream_object};
    return 0;
}

static void expect_shape(int ta, int tb)
{
    assert_int_equal(seen_count, 1);
    assert_int_equal(seen.layout, RUNG_COL_MAJOR);
    assert_int_equal(seen.trans_a, ta);
    assert_int_equal(seen.trans_b, tb);
    assert_true(seen.m == wide + 11);
    assert_true(seen.n == wide + 12);
    assert_true(seen.k == wide + 13);
    assert_true(seen.lda == wide + 14);
    assert_true(seen.ldb == wide + 15);
    assert_true(seen.ldc == wide + 16);
    assert_true(seen.alpha == alpha && seen.beta == beta);
    assert_ptr_equal(seen_config.stream, &stream_object);
    assert_int_equal(seen_config.device, 3);
    assert_int_equal(seen_config.pointers, RUNG_POINTERS_DEVICE);
    for (int i = 0; i < FAKE_ENTRIES; i++)
        assert_int_equal(calls[i], 0);
    seen_count = 0;
}

static void expect_single(int ta, int tb)
{
    assert_ptr_equal(seen.a, a);
    assert_ptr_equal(seen.b, b);
    assert_ptr_equal(seen.c, c);
    assert_int_equal(seen.batch, 1);
    expect_shape(ta, tb);
}

static void expect_strided(void)
{
    assert_int_equal(seen.stride_a, BIG + 1);
    assert_int_equal(seen.stride_b, BIG + 2);
    assert_int_equal(seen.stride_c, BIG + 3);
    assert_true(seen.batch == wide + 7);
    assert_ptr_equal(seen.a, a);
    expect_shape(RUNG_NO_TRANS, RUNG_TRANS);
}

static const float *const list_a[1] = {a}, *const list_b[1] = {b};
static float *const list_c[1] = {c};

static void expect_arrays(void)
{
    assert_ptr_equal(seen.a_array, list_a);
    assert_ptr_equal(seen.b_array, list_b);
    assert_ptr_equal(seen.c_array, list_c);
    assert_null(seen.a);
    assert_true(seen.batch == wide + 7);
    expect_shape(RUNG_TRANS, RUNG_NO_TRANS);
}

#define TRANSLATES(suffix, INT, WIDE)                                                                                  \
    static void translates##suffix(void **state)                                                                       \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        const INT m = WIDE + 11, n = WIDE + 12, k = WIDE + 13, lda = WIDE + 14, ldb = WIDE + 15, ldc = WIDE + 16,      \
                  batch = WIDE + 7;                                                                                    \
        wide = WIDE;                                                                                                   \
        void *h = &handle;                                                                                             \
        assert_int_equal(cublasSgemm_v2##suffix(h, 0, 1, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc), 0);          \
        expect_single(0, 1);                                                                                           \
        assert_int_equal(                                                                                              \
            cublasSgemmEx##suffix(h, 2, 0, m, n, k, &alpha, a, F32, lda, b, F32, ldb, &beta, c, F32, ldc), 0);         \
        expect_single(1, 0);                                                                                           \
        assert_int_equal(                                                                                              \
            cublasGemmEx##suffix(h, 1, 1, m, n, k, &alpha, a, F32, lda, b, F32, ldb, &beta, c, F32, ldc, COMPUTE, -1), \
            0);                                                                                                        \
        expect_single(1, 1);                                                                                           \
        assert_int_equal(cublasSgemmStridedBatched##suffix(h, 0, 1, m, n, k, &alpha, a, lda, BIG + 1, b, ldb, BIG + 2, \
                                                           &beta, c, ldc, BIG + 3, batch),                             \
                         0);                                                                                           \
        expect_strided();                                                                                              \
        assert_int_equal(cublasGemmStridedBatchedEx##suffix(h, 0, 1, m, n, k, &alpha, a, F32, lda, BIG + 1, b, F32,    \
                                                            ldb, BIG + 2, &beta, c, F32, ldc, BIG + 3, batch, COMPUTE, \
                                                            -1),                                                       \
                         0);                                                                                           \
        expect_strided();                                                                                              \
        assert_int_equal(                                                                                              \
            cublasSgemmBatched##suffix(h, 1, 0, m, n, k, &alpha, list_a, lda, list_b, ldb, &beta, list_c, ldc, batch), \
            0);                                                                                                        \
        expect_arrays();                                                                                               \
        assert_int_equal(cublasGemmBatchedEx##suffix(h, 1, 0, m, n, k, &alpha, (const void *const *)list_a, F32, lda,  \
                                                     (const void *const *)list_b, F32, ldb, &beta,                     \
                                                     (void *const *)list_c, F32, ldc, batch, COMPUTE, -1),             \
                         0);                                                                                           \
        expect_arrays();                                                                                               \
    }
TRANSLATES(, int, 0)
TRANSLATES(_64, int64_t, ((int64_t)1 << 33)) /* no number that the drop-in is given is cut */

static int plain(void)
{
    return cublasSgemm_v2(&handle, 0, 0, 11, 12, 13, &alpha, a, 14, b, 15, &beta, c, 16);
}

static void expect_handed_on(int status, int entry)
{
    assert_int_equal(status, 100 + entry);
    assert_int_equal(calls[entry], 1);
    assert_int_equal(seen_count, 0);
    memset(calls, 0, FAKE_ENTRIES * sizeof *calls);
}

static void math_modes(void **state)
{
    (void)state;
    assert_int_equal(plain(), 0);
    assert_int_equal(seen_config.math, RUNG_ACCURATE);
    handle.math_mode = 16; /* a restriction on half-precision reductions: nothing to FP32 */
    assert_int_equal(plain(), 0);
    assert_int_equal(seen_config.math, RUNG_ACCURATE);
    handle.math_mode = 2;
    assert_int_equal(plain(), 0);
    assert_int_equal(seen_config.math, RUNG_STRICT);
    handle.math_mode = 0;
    assert_int_equal(
        cublasGemmEx(&handle, 0, 0, 11, 12, 13, &alpha, a, F32, 14, b, F32, 15, &beta, c, F32, 16, PEDANTIC, -1), 0);
    assert_int_equal(seen_config.math, RUNG_STRICT);
    seen_count = 0;
    static const int others[] = {1, 3, 8, 16 + 3};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        handle.math_mode = others[i];
        expect_handed_on(plain(), 0);
    }
}

static int with_compute(int compute)
{
    return cublasGemmEx(&handle, 0, 0, 11, 12, 13, &alpha, a, F32, 14, b, F32, 15, &beta, c, F32, 16, compute, -1);
}

/* Emulated FP32: accurate mode's on a Hopper GPU, cuBLAS's own on a later one. */
static void emulated_is_accurate_on_hopper(void **state)
{
    (void)state;
    static const int modes[] = {4, 16 + 4};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        seen_config.math = RUNG_FAST;
        handle.math_mode = 2;
        assert_int_equal(plain(), 0);
        handle.math_mode = modes[i];
        assert_int_equal(plain(), 0);
        assert_int_equal(seen_config.math, RUNG_ACCURATE);
    }
    handle.math_mode = 2;
    assert_int_equal(with_compute(EMULATED), 0);
    assert_int_equal(seen_config.math, RUNG_ACCURATE);
    handle.math_mode = 4;
    assert_int_equal(with_compute(PEDANTIC), 0);
    assert_int_equal(seen_config.math, RUNG_STRICT);
    seen_count = 0;
    gpu_major = 10;
    expect_handed_on(plain(), 0);
    handle.math_mode = 0;
    expect_handed_on(with_compute(EMULATED), 8);
    gpu_major = 9;
}

/* ---- what is read once a process: each has one of its own ---- */

int setting_flag(const char *variable);
int setting_device(const char *drop_in, int otherwise);

/* Every value that a variable of the drop-ins may have, and some that mean nothing and leave the default. */
static void variables_mean_what_they_say(void **state)
{
    (void)state;
    enum { DEFAULT = 7777, CPU = RUNG_DEVICE_CPU };
    static const struct {
        const char *value;
        int device, flag;
    } table[] = {{NULL, DEFAULT, 0},    {"", DEFAULT, 0},     {"cpu", CPU, 0},       {"gpu", 0, 0},
                 {"0", 0, 0},           {"1", 1, 1},          {"gpu0", 0, 0},        {"gpu1", 1, 0},
                 {"gpu12", 12, 0},      {"9999", 9999, 0},    {"10000", DEFAULT, 0}, {"-1", DEFAULT, 0},
                 {"gpu1x", DEFAULT, 0}, {"GPU1", DEFAULT, 0}, {"gpux", DEFAULT, 0},  {"cpu1", DEFAULT, 0},
                 {" 1", DEFAULT, 0},    {"gp", DEFAULT, 0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        table[i].value ? setenv("RUNG_DEVICE", table[i].value, 1) : unsetenv("RUNG_DEVICE");
        const int device = setting_device("the test", DEFAULT), flag = setting_flag("RUNG_DEVICE");
        if (device != table[i].device || flag != table[i].flag)
            fail_msg("'%s' means device %d, flag %d", table[i].value ? table[i].value : "(unset)", device, flag);
    }
    unsetenv("RUNG_DEVICE");
}

static const char *real;

/* Runs this program with a variable set, to do `what` alone; 0 where all was well. */
static int in_process(const char *what, const char *variable, const char *value)
{
    pid_t child = fork();
    if (child == 0) {
        value ? setenv(variable, value, 1) : unsetenv(variable);
        alarm(1000);
        execl("/proc/self/exe", "test_cublas_shim", real, what, (char *)NULL);
        _exit(99);
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

enum { HANDED_ON = -1, UNKNOWN_MODE = 8, EMULATING = 4, PEDANTICALLY = 2, NO_HALF_SUMS = 16 };

/* Says what a call may do, from the words of docs/drop_in.md and not from the code: the narrowest of what RUNG_MATH,
 * the handle and the call allow. */
static int math_by_rule(int setting, int mode, int compute, int major)
{
    const int emulates = mode == EMULATING || compute == EMULATED;
    if (mode == UNKNOWN_MODE || compute == TF32 || (emulates && major != 9))
        return HANDED_ON;
    if (compute == PEDANTIC || (mode == PEDANTICALLY && compute != EMULATED))
        return RUNG_STRICT;
    return emulates && setting == RUNG_FAST ? RUNG_ACCURATE : setting;
}

static int check_maths(void)
{
    static const int modes[] = {0, PEDANTICALLY, EMULATING, UNKNOWN_MODE},
                     computes[] = {COMPUTE, PEDANTIC, EMULATED, TF32};
    static const char *const names[] = {"strict", "accurate", "fast"};
    const char *set = getenv("RUNG_MATH");
    int setting = RUNG_ACCURATE, wrong = 0; /* the drop-in's default; also where the variable is not understood */
    for (int i = 0; set && i < 3; i++)
        setting = strcmp(set, names[i]) == 0 ? i : setting;
    for (int i = 0; i < 64; i++) {
        const int compute = computes[i >> 2 & 3];
        gpu_major = i & 32 ? 10 : 9;
        reset(NULL);
        handle.math_mode = modes[i & 3] | (i & 16 ? NO_HALF_SUMS : 0);
        const int wanted = math_by_rule(setting, modes[i & 3], compute, gpu_major),
                  answered = with_compute(compute) == 0;
        if (answered != (wanted != HANDED_ON) || seen_count != answered ||
            (answered && (int)seen_config.math != wanted)) {
            fprintf(stderr, "RUNG_MATH=%s, math mode %d, compute type %d, chip %d: %s, math %d\n", set ? set : "",
                    handle.math_mode, compute, gpu_major, answered ? "answered" : "handed on", (int)seen_config.math);
            wrong++;
        }
    }
    return wrong != 0;
}

static void every_setting_meets_every_math(void **state)
{
    (void)state;
    static const char *const values[] = {NULL, "", "strict", "accurate", "fast", "quick"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(in_process("maths", "RUNG_MATH", values[i]), 0);
}

/* A thread of its own, which ends: its context's counts count, and nobody asks it later. */
static void *call_and_end(void *wrong)
{
    static const float none = 0.0f;
    *(int *)wrong += cublasSgemm_v2(&handle, 0, 1, 11, 12, 13, &alpha, a, 14, b, 15, &none, c, 16) != 0;
    return NULL;
}

/* Asked to compare, cuBLAS computes again what Rung answered, but for what adds to C: that would be added twice. */
static int make_report(void)
{
    static const float none = 0.0f;
    static float on_device[2];
    int wrong = 0;
    char *where = getenv("RUNG_REPORT"); /* as a program does that writes a title there */
    memset(where, '-', strlen(where));
    reset(NULL);
    for (int i = 0; i < 2; i++)
        wrong +=
            cublasSgemm_v2(&handle, 0, 1, 11, 12, 13, &alpha, a, 14, b, 15, &none, c, 16) != 0 || calls[0] != i + 1;
    handle.stream = (void *)(uintptr_t)FAKE_CAPTURING; /* not timed */
    wrong += cublasSgemm_v2(&handle, 0, 1, 11, 12, 13, &alpha, a, 14, b, 15, &none, c, 16) != 0 || calls[0] != 3;
    handle.stream = &stream_object;
    wrong += plain() != 0 || calls[0] != 3;
    handle.pointer_mode = 1;
    wrong +=
        cublasSgemm_v2(&handle, 0, 0, 21, 12, 13, on_device, a, 14, b, 15, on_device + 1, c, 16) != 0 || calls[0] != 3;
    handle.pointer_mode = 0;
    wrong += with_compute(TF32) != 108;
    pthread_t other;
    handle.stream = (void *)(uintptr_t)FAKE_CAPTURING;
    wrong += pthread_create(&other, NULL, call_and_end, &wrong) != 0 || pthread_join(other, NULL) != 0;
    return wrong;
}

/* A thread is within a timed call, which has the report's lock, while another one forks. The child calls, too, and ends
 * as a program does. */
static void *call_slowly(void *wrong)
{
    slow_calls = 1;
    *(int *)wrong += plain() != 0;
    return NULL;
}

static int make_children(void)
{
    pthread_t other;
    int wrong = 0, status;
    reset(NULL);
    sem_init(&is_within, 0, 0);
    wrong += plain() != 0;
    wrong += pthread_create(&other, NULL, call_slowly, &wrong) != 0;
    sem_wait(&is_within);
    const pid_t child = fork();
    if (child == 0) {
        alarm(100); /* where it waits in vain */
        exit(plain() != 0);
    }
    wrong += waitpid(child, &status, 0) != child || status != 0;
    wrong += pthread_join(other, NULL) != 0;
    return wrong;
}

static void a_child_tells_its_own_calls(void **state)
{
    (void)state;
    char path[] = "/tmp/rung-report-XXXXXX", text[4096] = "";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    setenv("RUNG_LIBCUDA", real, 1);
    setenv("RUNG_REPORT_TIME", "1", 1);
    const int code = in_process("children", "RUNG_REPORT", path);
    unsetenv("RUNG_LIBCUDA");
    unsetenv("RUNG_REPORT_TIME");
    assert_true(read(file, text, sizeof text - 1) > 0);
    close(file);
    unlink(path);
    assert_int_equal(code, 0);
    const char *first = strstr(text, ": 1 call answered, 0 handed on"), *last = strstr(text, ": 2 calls answered, 0");
    assert_true(first && last && first < last);
    assert_non_null(strstr(text, "guard of accurate products: 0 blocks"));
    assert_non_null(strstr(last, "guard of accurate products: 14 blocks"));
}

/* A line of the report. */
typedef struct reported {
    char entry[64], op[3], gpu[16], peer[16], by[64];
    long long m, n, k, batch, count;
    double cpu_us;
} reported;

static int reads_line(const char *line, reported *r)
{
    return sscanf(line, "%63s %2s %lld %lld %lld %lld %lld %lf %15s %15s %63s", r->entry, r->op, &r->m, &r->n, &r->k,
                  &r->batch, &r->count, &r->cpu_us, r->gpu, r->peer, r->by) == 11;
}

static void the_report_tells_calls_and_times(void **state)
{
    (void)state;
    char path[] = "/tmp/rung-report-XXXXXX", text[4096] = "";
    reported r;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    setenv("RUNG_LIBCUDA", real, 1);
    setenv("RUNG_REPORT_COMPARE", "1", 1);
    const int code = in_process("report", "RUNG_REPORT", path);
    unsetenv("RUNG_LIBCUDA");
    unsetenv("RUNG_REPORT_COMPARE");
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    const size_t read = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    unlink(path);
    assert_int_equal(code, 0);
    assert_true(read > 100);
    assert_non_null(strstr(text, "6 calls answered, 1 handed on to cuBLAS"));
    assert_non_null(strstr(text, "14 blocks of 128 x 128, of which 4 computed in strict FP32; 2 single elements"));
    /* Events are recorded around each: 0 and 1, 4 and 9 eighths of a ms, 16 and 25, 36 and 49, then 64 and 81, 100 and
     * 121. */
    static const char *const gpus[] = {"625.0", "2125.0", "2625.0"}, *const peers[] = {"1125.0", "-", "-"};
    static const long long ms[] = {11, 11, 21}, times[] = {4, 1, 1};
    static const char *const ops[] = {"NT", "NN", "NN"};
    int seen_lines = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!reads_line(line, &r))
            continue;
        assert_true(r.n == 12 && r.k == 13 && r.batch == 1 && r.cpu_us > 0.0 && r.cpu_us < 1e6);
        if (strcmp(r.entry, "cublasGemmEx") == 0) {
            assert_true(r.count == 1 && strcmp(r.gpu, "-") == 0 && strcmp(r.peer, "-") == 0);
            assert_string_equal(r.by, "cuBLAS:");
            assert_non_null(strstr(line, "the compute type is not FP32"));
            seen_lines |= 8;
            continue;
        }
        assert_string_equal(r.entry, "cublasSgemm_v2");
        assert_string_equal(r.by, "recorder");
        for (int i = 0; i < 3; i++)
            if (r.m == ms[i] && strcmp(r.op, ops[i]) == 0) {
                if (r.count != times[i] || strcmp(r.gpu, gpus[i]) != 0 || strcmp(r.peer, peers[i]) != 0)
                    fail_msg("the report's line is wrong: %s", line);
                seen_lines |= 1 << i;
            }
    }
    assert_int_equal(seen_lines, 15);
}

/* Calls that differ from the first in one thing each, all of them twice, one after the other. */
enum { UNLIKE = 10, UNLIKE_AGAIN = 2 };
static const struct {
    const char *entry, *by;
    int ta, tb, m, n, k, batch, type, compute;
} unlike[UNLIKE] = {
    {"cublasGemmStridedBatchedEx", "recorder", 0, 0, 11, 12, 13, 7, F32, COMPUTE},
    {"cublasSgemmStridedBatched", "recorder", 0, 0, 11, 12, 13, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "cuBLAS: the compute type is not FP32", 0, 0, 11, 12, 13, 7, F32, TF32},
    {"cublasGemmStridedBatchedEx", "cuBLAS: operands are not FP32", 0, 0, 11, 12, 13, 7, F16, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 1, 0, 11, 12, 13, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 0, 1, 11, 12, 13, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 0, 0, 21, 12, 13, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 0, 0, 11, 22, 13, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 0, 0, 11, 12, 23, 7, F32, COMPUTE},
    {"cublasGemmStridedBatchedEx", "recorder", 0, 0, 11, 12, 13, 8, F32, COMPUTE}};

static int make_unlike_calls(void)
{
    reset(NULL);
    for (int i = 0; i < UNLIKE_AGAIN * UNLIKE; i++) {
        const int j = i % UNLIKE;
        if (strcmp(unlike[j].entry, "cublasSgemmStridedBatched") == 0)
            cublasSgemmStridedBatched(&handle, unlike[j].ta, unlike[j].tb, unlike[j].m, unlike[j].n, unlike[j].k,
                                      &alpha, a, 64, 1000, b, 65, 2000, &beta, c, 66, 3000, unlike[j].batch);
        else
            cublasGemmStridedBatchedEx(&handle, unlike[j].ta, unlike[j].tb, unlike[j].m, unlike[j].n, unlike[j].k,
                                       &alpha, a, unlike[j].type, 64, 1000, b, F32, 65, 2000, &beta, c, F32, 66, 3000,
                                       unlike[j].batch, unlike[j].compute, -1);
    }
    return 0;
}

/* Calls that differ in anything that a line tells have lines of their own, and those that do not share one. */
static void the_report_has_a_line_for_each_kind_of_call(void **state)
{
    (void)state;
    char path[] = "/tmp/rung-report-XXXXXX", text[8192] = "";
    reported r;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(in_process("unlike", "RUNG_REPORT", path), 0);
    assert_true(read(file, text, sizeof text - 1) > 0);
    close(file);
    unlink(path);
    int lines = 0, seen_lines = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!reads_line(line, &r))
            continue;
        lines++;
        for (int i = 0; i < UNLIKE; i++)
            if (strcmp(r.entry, unlike[i].entry) == 0 && strstr(line, unlike[i].by) &&
                r.op[0] == (unlike[i].ta ? 'T' : 'N') && r.op[1] == (unlike[i].tb ? 'T' : 'N') && r.m == unlike[i].m &&
                r.n == unlike[i].n && r.k == unlike[i].k && r.batch == unlike[i].batch && r.count == UNLIKE_AGAIN)
                seen_lines |= 1 << i;
    }
    assert_int_equal(lines, UNLIKE);
    assert_int_equal(seen_lines, (1 << UNLIKE) - 1);
}

/* So many contexts are open at once: a thread has one of each of sixteen GPUs, and waits for the next thread. */
static void *open_contexts(void *left)
{
    int *count = left;
    pthread_t next;
    for (gpu_now = 0; gpu_now < 16 && *count > 0; gpu_now++, --*count)
        if (plain() != 0)
            _exit(1);
    if (*count > 0 && (pthread_create(&next, NULL, open_contexts, left) != 0 || pthread_join(next, NULL) != 0))
        _exit(1);
    return NULL;
}

/* The report asks as many contexts as it has room for, and says that there were more. */
static void the_report_has_room_for_256_contexts(void **state)
{
    (void)state;
    static const char *const counts[] = {"256", "257"};
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/rung-report-XXXXXX", text[4096] = "";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(in_process(counts[i], "RUNG_REPORT", path), 0);
        assert_true(read(file, text, sizeof text - 1) > 0);
        close(file);
        unlink(path);
        assert_non_null(strstr(text, "1792 blocks of 128 x 128, of which 512 computed"));
        assert_int_equal(strstr(text, "(some contexts could not be asked)") != NULL, i);
    }
}

/* All of a process's keys are somebody's: the drop-in has none, and puts nothing where others have theirs. */
static int call_without_keys(void)
{
    enum { MOST = 4096 };
    static pthread_key_t keys[MOST];
    int count = 0, wrong = 0;
    reset(NULL);
    while (count < MOST && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    for (int i = 0; i < count; i++)
        wrong += pthread_setspecific(keys[i], &keys[i]) != 0;
    wrong += count == MOST || plain() != 0 || seen_count != 1;
    for (int i = 0; i < count; i++)
        wrong += pthread_getspecific(keys[i]) != &keys[i];
    return wrong != 0;
}

static void nobodys_key_is_taken(void **state)
{
    (void)state;
    assert_int_equal(in_process("keys", "RUNG_REPORT", NULL), 0);
}

static void call_again(void *unused)
{
    (void)unused;
    if (plain() != 0)
        _exit(1);
}

static void *call_until_the_end(void *key)
{
    pthread_setspecific(*(pthread_key_t *)key, key);
    call_again(NULL);
    return NULL;
}

/* The key comes after the drop-in's own, and so does its turn: the call finds the thread's contexts gone. */
static void a_thread_may_call_while_it_ends(void **state)
{
    (void)state;
    pthread_key_t key;
    pthread_t thread;
    const int made = context_count;
    assert_int_equal(pthread_key_create(&key, call_again), 0);
    assert_int_equal(pthread_create(&thread, NULL, call_until_the_end, &key), 0);
    pthread_join(thread, NULL);
    pthread_key_delete(key);
    assert_int_equal(seen_count, 2);
    assert_int_equal(context_count, made + 2);
    for (int i = made; i < context_count; i++)
        assert_int_equal(contexts[i], 2);
}

/* Multiplies on a stream that records and on one that does not, in a context of its own; `limits` gets what products
 * may borrow there. */
static void *record_and_multiply(void *limits)
{
    int64_t *limit = limits;
    void *const before = handle.stream;
    for (int i = 0; i < 2; i++) {
        handle.stream = i == 0 ? (void *)(uintptr_t)FAKE_CAPTURING : before;
        limit[i] = plain() == 0 ? seen_limit : 1;
    }
    handle.stream = before;
    return NULL;
}

/* XLA makes what it records part of another graph, where nothing may be allocated: products borrow nothing then. */
static void graphs_of_xla_have_no_workspace(void **state)
{
    (void)state;
    for (int with_xla = 0; with_xla < 2; with_xla++) {
        int64_t limits[2];
        pthread_t thread;
        if (with_xla)
            assert_non_null(dlopen(XLA_PLUGIN, RTLD_NOW));
        assert_int_equal(pthread_create(&thread, NULL, record_and_multiply, limits), 0);
        pthread_join(thread, NULL);
        assert_int_equal(limits[0], with_xla ? -1 : 0);
        assert_int_equal(limits[1], 0);
        assert_int_equal(limit_now, 0);
    }
}

/* A thread has room for the contexts of sixteen GPUs; calls on any other are cuBLAS's. */
static void gpus_that_there_is_no_room_for_are_handed_on(void **state)
{
    (void)state;
    static const int gpus[] = {-1, 16, 17, 1000, 15};
    const rung_config before = seen_config;
    for (int i = 0; i < 5; i++) {
        gpu_now = gpus[i];
        reset(NULL);
        plain();
        assert_int_equal(seen_count, gpus[i] == 15);
        assert_int_equal(calls[0], gpus[i] != 15);
    }
    gpu_now = 3;
    seen_config = before;
}

/* Whichever operand is of another type, or only the arithmetic, in every entry that takes types. */
#define HANDS_ON(suffix, INT, by)                                                                                      \
    static void hand_on##suffix(int type_a, int type_b, int type_c, int compute)                                       \
    {                                                                                                                  \
        void *h = &handle;                                                                                             \
        if (compute == COMPUTE) /* which it is not asked for */                                                        \
            expect_handed_on(cublasSgemmEx##suffix(h, 0, 0, 11, 12, 13, &alpha, a, type_a, 14, b, type_b, 15, &beta,   \
                                                   c, type_c, 16),                                                     \
                             6 + by);                                                                                  \
        expect_handed_on(cublasGemmEx##suffix(h, 0, 0, 11, 12, 13, &alpha, a, type_a, 14, b, type_b, 15, &beta, c,     \
                                              type_c, 16, compute, -1),                                                \
                         8 + by);                                                                                      \
        expect_handed_on(cublasGemmStridedBatchedEx##suffix(h, 0, 0, 11, 12, 13, &alpha, a, type_a, 14, 1, b, type_b,  \
                                                            15, 1, &beta, c, type_c, 16, 1, 7, compute, -1),           \
                         10 + by);                                                                                     \
        expect_handed_on(cublasGemmBatchedEx##suffix(h, 0, 0, 11, 12, 13, &alpha, (const void *const *)list_a, type_a, \
                                                     14, (const void *const *)list_b, type_b, 15, &beta,               \
                                                     (void *const *)list_c, type_c, 16, 7, compute, -1),               \
                         12 + by);                                                                                     \
    }
HANDS_ON(, int, 0)
HANDS_ON(_64, int64_t, 1)

static void other_types_are_handed_on(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        int types[4] = {F32, F32, F32, COMPUTE};
        types[which] = which < 3 ? F16 : TF32;
        hand_on(types[0], types[1], types[2], types[3]);
        hand_on_64(types[0], types[1], types[2], types[3]);
    }
    hand_on(F16, F16, F16, COMPUTE);
    hand_on(F16, F16, F32, COMPUTE);
}

static void bad_calls_get_the_real_status(void **state)
{
    (void)state;
    expect_handed_on(cublasSgemm_v2(NULL, 0, 0, 11, 12, 13, &alpha, a, 14, b, 15, &beta, c, 16), 0);
    expect_handed_on(cublasSgemm_v2(&handle, 3, 0, 11, 12, 13, &alpha, a, 14, b, 15, &beta, c, 16), 0);
    expect_handed_on(cublasSgemm_v2(&handle, 0, 0, 11, 12, 13, NULL, a, 14, b, 15, &beta, c, 16), 0);
    next_status = RUNG_INVALID_ARGUMENT; /* Rung looked and refused: cuBLAS says why */
    assert_int_equal(plain(), 100);
    assert_int_equal(calls[0], 1);
    next_status = RUNG_OUT_OF_MEMORY;
    assert_int_equal(plain(), 100);
    assert_int_equal(calls[0], 2);
}

static int64_t product[64], layout_a[64], layout_b[64], layout_c[64], layout_d[64];
static void set_lt(void);

/* What Rung may have written before it failed cuBLAS must not add to: the program is told. Where C is not read, cuBLAS
 * may begin anew. */
static void what_is_half_done_is_not_handed_on(void **state)
{
    static const float none = 0.0f;
    enum { EXECUTION_FAILED = 13 };
    for (int written = 0; written < 2; written++)
        for (int reads = 0; reads < 3; reads++) {
            reset(state);
            set_lt();
            next_status = RUNG_OUT_OF_MEMORY;
            has_written = written;
            handle.pointer_mode = reads == 2;
            product[2] = reads == 2;
            const void *scalar = reads == 0 ? &none : reads == 1 ? &beta : (const void *)0x20;
            const int ends = written && reads;
            assert_int_equal(cublasSgemm_v2(&handle, 0, 0, 11, 12, 13, &alpha, a, 14, b, 15, scalar, c, 16),
                             ends ? EXECUTION_FAILED : 100);
            assert_int_equal(calls[0], !ends);
            assert_int_equal(cublasLtMatmul(&handle, product, &alpha, a, layout_a, b, layout_b, scalar, c, layout_c, c,
                                            layout_d, NULL, NULL, 0, &stream_object),
                             ends ? EXECUTION_FAILED : 114);
            assert_int_equal(calls[14], !ends);
        }
    has_written = 0;
}

static void device_scalars(void **state)
{
    (void)state;
    handle.pointer_mode = 1;
    assert_int_equal(
        cublasSgemm_v2(&handle, 0, 0, 11, 12, 13, (const float *)0x10, a, 14, b, 15, (const float *)0x20, c, 16), 0);
    assert_ptr_equal(seen.alpha_device, (void *)0x10);
    assert_ptr_equal(seen.beta_device, (void *)0x20);
}

static void strides_keep_64_bits(void **state)
{
    (void)state;
    const long long sa = (1LL << 33) + 1, sb = (1LL << 35) + 2, sc = (1LL << 37) + 3;
    for (int form = 0; form < 4; form++) {
        memset(&seen, 0, sizeof seen);
        if (form == 0)
            cublasSgemmStridedBatched(&handle, 0, 0, 11, 12, 13, &alpha, a, 14, sa, b, 15, sb, &beta, c, 16, sc, 7);
        else if (form == 1)
            cublasSgemmStridedBatched_64(&handle, 0, 0, 11, 12, 13, &alpha, a, 14, sa, b, 15, sb, &beta, c, 16, sc, 7);
        else if (form == 2)
            cublasGemmStridedBatchedEx(&handle, 0, 0, 11, 12, 13, &alpha, a, F32, 14, sa, b, F32, 15, sb, &beta, c, F32,
                                       16, sc, 7, COMPUTE, -1);
        else
            cublasGemmStridedBatchedEx_64(&handle, 0, 0, 11, 12, 13, &alpha, a, F32, 14, sa, b, F32, 15, sb, &beta, c,
                                          F32, 16, sc, 7, COMPUTE, -1);
        assert_int_equal(seen_count, form + 1);
        assert_true(seen.stride_a == sa && seen.stride_b == sb && seen.stride_c == sc && seen.batch == 7);
    }
}

/* Each call runs where its handle says now, whatever earlier calls said. */
static void stream_and_math_follow_the_handle(void **state)
{
    (void)state;
    int others[2];
    void *streams[] = {&stream_object, NULL, &others[0], &others[1], NULL, &stream_object, &stream_object};
    const int maths[] = {0, 2, 0, 0, 2, 2, 0}; /* 2: CUBLAS_PEDANTIC_MATH */
    rung_math plain_math = RUNG_STRICT, pedantic_math = RUNG_STRICT;
    for (int i = 0; i < 7; i++) {
        handle.stream = streams[i];
        handle.math_mode = maths[i];
        assert_int_equal(plain(), 0);
        assert_ptr_equal(seen_config.stream, streams[i]);
        if (i == 0)
            plain_math = seen_config.math;
        if (i == 1)
            pedantic_math = seen_config.math;
        assert_int_equal(seen_config.math, maths[i] ? pedantic_math : plain_math);
    }
    assert_int_equal(plain_math, RUNG_ACCURATE);
}

/* ---- cublasLt ---- */

static void set_layout(int64_t *layout, int64_t rows, int64_t cols, int64_t ld)
{
    memset(layout, 0, 64 * sizeof *layout);
    layout[2] = rows;
    layout[3] = cols;
    layout[4] = ld;
    layout[5] = 1;
}

static void set_lt(void)
{
    memset(product, 0, sizeof product);
    product[0] = COMPUTE;
    product[3] = 1; /* A transposed */
    product[7] = 1; /* plain epilogue */
    product[26] = -1;
    set_layout(layout_a, 13, 11, 14);
    set_layout(layout_b, 13, 12, 15);
    set_layout(layout_c, 11, 12, 16);
    set_layout(layout_d, 11, 12, 16);
}

static int lt(void *where_c)
{
    return cublasLtMatmul(&handle, product, &alpha, a, layout_a, b, layout_b, &beta, where_c, layout_c, c, layout_d,
                          NULL, NULL, 0, &stream_object);
}

static void lt_translates(void **state)
{
    (void)state;
    set_lt();
    assert_int_equal(lt(c), 0);
    assert_int_equal(seen.activation, RUNG_IDENTITY);
    assert_int_equal(seen.bias_kind, RUNG_NO_BIAS);
    expect_single(1, 0);
    static const struct {
        int epilogue, activation, bias;
    } cases[] = {{2, RUNG_RELU, 0}, {4, RUNG_IDENTITY, 1}, {6, RUNG_RELU, 1}, {32, RUNG_GELU, 0}, {36, RUNG_GELU, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        product[7] = cases[i].epilogue;
        product[8] = (int64_t)(uintptr_t)bias;
        assert_int_equal(lt(c), 0);
        assert_int_equal(seen.activation, cases[i].activation);
        assert_int_equal(seen.bias_kind, cases[i].bias ? RUNG_BIAS_PER_ROW : RUNG_NO_BIAS);
        if (cases[i].bias)
            assert_ptr_equal(seen.bias, bias);
        expect_single(1, 0);
    }
}

/* The product is made in D's order; an operand in the other one is read as its transpose. */
static void lt_reads_rows(void **state)
{
    for (int rows = 0; rows < 16; rows++) {
        reset(state);
        set_lt();
        layout_a[1] = rows & 1;
        layout_b[1] = rows >> 1 & 1;
        layout_c[1] = rows >> 2 & 1;
        layout_d[1] = rows >> 3;
        int same = layout_c[1] == layout_d[1];
        if (!same) {
            expect_handed_on(lt(c), 14); /* beta != 0 */
            continue;
        }
        assert_int_equal(lt(c), 0);
        assert_int_equal(seen.layout, layout_d[1] ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR);
        assert_int_equal(seen.trans_a, layout_a[1] == layout_d[1] ? RUNG_TRANS : RUNG_NO_TRANS);
        assert_int_equal(seen.trans_b, layout_b[1] == layout_d[1] ? RUNG_NO_TRANS : RUNG_TRANS);
        assert_int_equal(seen.m, 11);
        assert_int_equal(seen.n, 12);
        assert_int_equal(seen.k, 13);
        assert_int_equal(seen.lda, 14);
        assert_int_equal(seen.ldb, 15);
        assert_int_equal(seen.ldc, 16);
    }
    reset(state);
    set_lt();
    layout_a[1] = layout_b[1] = layout_c[1] = layout_d[1] = 1;
    product[7] = 4; /* a bias */
    product[8] = (int64_t)(uintptr_t)bias;
    expect_handed_on(lt(c), 14);
}

static void lt_emulated_is_accurate_on_hopper(void **state)
{
    (void)state;
    set_lt();
    product[0] = PEDANTIC;
    assert_int_equal(lt(c), 0);
    product[0] = EMULATED;
    assert_int_equal(lt(c), 0);
    assert_int_equal(seen_config.math, RUNG_ACCURATE);
    seen_count = 0;
    gpu_major = 10;
    expect_handed_on(lt(c), 14);
    gpu_major = 9;
}

static void lt_hands_on(void **state)
{
    (void)state;
    float other[4];
    set_lt();
    expect_handed_on(lt(other), 14); /* beta != 0 and C is not D */
    static const struct {
        int64_t *where;
        int attribute;
        int64_t value;
    } cases[] = {{product, 0, TF32}, {product, 1, 2},   {product, 2, 2},   {product, 5, 1},   {product, 7, 130},
                 {product, 17, 64},  {product, 18, 64}, {product, 19, 64}, {product, 20, 64}, {product, 21, 64},
                 {layout_a, 0, F16}, {layout_b, 1, 2},  {layout_d, 7, 8},  {layout_a, 2, 14}, {layout_b, 5, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_lt();
        cases[i].where[cases[i].attribute] = cases[i].value;
        expect_handed_on(lt(c), 14);
    }
    set_lt();
    layout_a[3] = layout_c[2] = layout_d[2] = 0; /* m = 0, which cublasLt calls an error */
    expect_handed_on(lt(c), 14);
}

/* cuBLAS itself refuses some of these and ends the process over others. The drop-in reads none of them, and hands the
 * call on as it is. */
static void lt_hands_nulls_on(void **state)
{
    for (int null = 0; null < 8; null++) {
        float one = 1.0f, two = 2.0f;
        void *given[] = {&handle, product, &one, &two, layout_a, layout_b, layout_c, layout_d};
        reset(state);
        set_lt();
        given[null] = NULL;
        expect_handed_on(cublasLtMatmul(given[0], given[1], given[2], a, given[4], b, given[5], given[3], c, given[6],
                                        c, given[7], NULL, NULL, 0, &stream_object),
                         14);
    }
}

/* So does every other entry with a NULL handle, alpha or beta. */
static void products_hand_nulls_on(void **state)
{
    for (int null = 0; null < 3; null++) {
        const float *one = null == 1 ? NULL : &alpha, *two = null == 2 ? NULL : &beta;
        void *h = null == 0 ? NULL : &handle;
        reset(state);
        expect_handed_on(cublasSgemm_v2(h, 0, 0, 11, 12, 13, one, a, 14, b, 15, two, c, 16), 0);
        expect_handed_on(cublasSgemmEx(h, 0, 0, 11, 12, 13, one, a, F32, 14, b, F32, 15, two, c, F32, 16), 6);
        expect_handed_on(cublasGemmEx(h, 0, 0, 11, 12, 13, one, a, F32, 14, b, F32, 15, two, c, F32, 16, COMPUTE, -1),
                         8);
        expect_handed_on(cublasGemmStridedBatchedEx(h, 0, 0, 11, 12, 13, one, a, F32, 14, 1, b, F32, 15, 1, two, c, F32,
                                                    16, 1, 7, COMPUTE, -1),
                         10);
        expect_handed_on(cublasGemmEx(h, 0, 0, 0, 12, 13, one, a, F32, 14, b, F32, 15, two, c, F32, 16, COMPUTE, -1),
                         8);
    }
}

/* C and D are one matrix, or C is not read. */
static void lt_knows_c_from_d(void **state)
{
    static const float zero = 0.0f;
    static const struct {
        int attribute;
        int64_t value;
    } cases[] = {{2, 10}, {3, 13}, {4, 17}, {5, 2}, {6, 99}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reset(state);
        set_lt();
        layout_c[cases[i].attribute] = cases[i].value;
        expect_handed_on(lt(c), 14);
        assert_int_equal(cublasLtMatmul(&handle, product, &alpha, a, layout_a, b, layout_b, &zero, a, layout_c, c,
                                        layout_d, NULL, NULL, 0, &stream_object),
                         0);
        assert_int_equal(seen.ldc, 16);
        assert_ptr_equal(seen.c, c);
    }
}

static void lt_device_scalars(void **state)
{
    float other[4];
    reset(state);
    set_lt();
    product[2] = 1;
    int result = cublasLtMatmul(&handle, product, (void *)0x10, a, layout_a, b, layout_b, (void *)0x20, c, layout_c, c,
                                layout_d, NULL, NULL, 0, &stream_object);
    assert_int_equal(result, 0);
    assert_ptr_equal(seen.alpha_device, (void *)0x10);
    assert_ptr_equal(seen.beta_device, (void *)0x20);
    reset(state); /* beta is not known: it may read C */
    expect_handed_on(cublasLtMatmul(&handle, product, (void *)0x10, a, layout_a, b, layout_b, (void *)0x20, other,
                                    layout_c, c, layout_d, NULL, NULL, 0, &stream_object),
                     14);
}

static void lt_batches(void **state)
{
    int64_t *layouts[] = {layout_a, layout_b, layout_c, layout_d};
    reset(state);
    set_lt();
    for (int i = 0; i < 4; i++) {
        layouts[i][5] = 3;
        layouts[i][6] = (1LL << 34) + (i < 3 ? i : 2);
    }
    assert_int_equal(lt(c), 0);
    assert_int_equal(seen.batch, 3);
    assert_true(seen.stride_a == 1LL << 34 && seen.stride_b == (1LL << 34) + 1 && seen.stride_c == (1LL << 34) + 2);
    product[7] = 4; /* a bias, of which a batch has one each */
    product[8] = (int64_t)(uintptr_t)bias;
    reset(state);
    expect_handed_on(lt(c), 14);
    set_lt();
    product[7] = 4;
    product[8] = (int64_t)(uintptr_t)bias;
    product[26] = F16;
    expect_handed_on(lt(c), 14);
}

static void (*set_within)(void (*what)(void));
static int own_status;

static void call_itself(void)
{
    set_within(NULL);
    own_status = plain();
}

/* What cuBLAS calls of itself comes by the drop-in too, which is first in line: it is cuBLAS's. */
static void calls_within_calls_are_handed_on(void **state)
{
    for (int entry = 0; entry < 2; entry++) {
        reset(state);
        set_lt();
        set_within(call_itself);
        if (entry == 0) {
            next_status = RUNG_UNSUPPORTED; /* of this call Rung is asked, and refuses */
            assert_int_equal(plain(), 100);
        } else {
            product[0] = TF32;
            assert_int_equal(lt(c), 114);
        }
        assert_int_equal(own_status, 100);
        assert_int_equal(calls[0], entry ? 1 : 2);
        assert_int_equal(seen_count, entry ? 0 : 1);
        reset(state);
        assert_int_equal(plain(), 0); /* later calls are not within one */
        assert_int_equal(seen_count, 1);
    }
}

/* ---- why a call is handed on ---- */

/* Each reason has a call of its own, which nothing else is wrong with: a look that is gone leaves another reason. */
enum {
    NO_GPU = 1,
    NO_CONTEXT,
    NO_STREAM,
    REFUSED,
    FAILED,
    HALF_DONE,
    NO_ALPHA,
    NO_BETA,
    NO_HANDLE,
    OTHER_TRANS_A,
    OTHER_TRANS_B,
    OTHER_MATH,
    LATER_CHIP,
    LATER_CHIP_COMPUTE,
    HALF_A,
    HALF_B,
    HALF_C,
    OTHER_COMPUTE,
    FIRST_LT, /* from here on cublasLt's */
    LT_NO_HANDLE = FIRST_LT,
    LT_NO_DESCRIPTOR,
    LT_NO_LAYOUT,
    LT_HALF,
    LT_ORDER,
    LT_PLANES,
    LT_ARRAYS,
    LT_EPILOGUE,
    LT_BIAS_TYPE,
    LT_SCALES,
    LT_SCALE_TYPE,
    LT_C_TRANSPOSED,
    LT_VECTOR,
    LT_NO_FIT_M,
    LT_NO_FIT_N,
    LT_NO_FIT_K,
    LT_NO_FIT_A_BATCH,
    LT_NO_FIT_B_BATCH,
    LT_EMPTY_M,
    LT_EMPTY_N,
    LT_ANOTHER_C,
    LT_BIAS_OF_ROWS,
    LT_CHIP,
    REASONS
};

static const char *const told[REASONS] = {
    [NO_GPU] = "no current GPU",
    [NO_CONTEXT] = "Rung cannot open this GPU",
    [NO_STREAM] = "Rung refuses this stream or math",
    [REFUSED] = "an argument Rung refuses",
    [FAILED] = "status", /* its name, by this program's Rung */
    [HALF_DONE] = "not asked, as C may have been written when Rung failed",
    [NO_ALPHA] = "alpha or beta is NULL",
    [NO_BETA] = "alpha or beta is NULL",
    [NO_HANDLE] = "a handle that cuBLAS refuses",
    [OTHER_TRANS_A] = "an operation that is not N, T or C",
    [OTHER_TRANS_B] = "an operation that is not N, T or C",
    [OTHER_MATH] = "the program asked for another math mode",
    [LATER_CHIP] = "the program asked for emulated FP32, which is cuBLAS's own on this GPU",
    [LATER_CHIP_COMPUTE] = "the program asked for emulated FP32, which is cuBLAS's own on this GPU",
    [HALF_A] = "operands are not FP32",
    [HALF_B] = "operands are not FP32",
    [HALF_C] = "operands are not FP32",
    [OTHER_COMPUTE] = "the compute type is not FP32",
    [LT_NO_HANDLE] = "a handle or descriptor is NULL",
    [LT_NO_DESCRIPTOR] = "a handle or descriptor is NULL",
    [LT_NO_LAYOUT] = "a layout is NULL",
    [LT_HALF] = "operands are not FP32",
    [LT_ORDER] = "a layout that is neither column- nor row-major",
    [LT_PLANES] = "a layout that is neither column- nor row-major",
    [LT_ARRAYS] = "a layout that is neither column- nor row-major",
    [LT_EPILOGUE] = "an epilogue that Rung does not have",
    [LT_BIAS_TYPE] = "the bias is not FP32",
    [LT_SCALES] = "scale pointers",
    [LT_SCALE_TYPE] = "the scale type is not FP32",
    [LT_C_TRANSPOSED] = "C is transposed",
    [LT_VECTOR] = "alpha is a vector",
    [LT_NO_FIT_M] = "layouts that do not fit together",
    [LT_NO_FIT_N] = "layouts that do not fit together",
    [LT_NO_FIT_K] = "layouts that do not fit together",
    [LT_NO_FIT_A_BATCH] = "layouts that do not fit together",
    [LT_NO_FIT_B_BATCH] = "layouts that do not fit together",
    [LT_EMPTY_M] = "nothing to compute",
    [LT_EMPTY_N] = "nothing to compute",
    [LT_ANOTHER_C] = "C and D are not the same matrix",
    [LT_BIAS_OF_ROWS] = "a bias in a batch, or in row-major order",
    [LT_CHIP] = "the program asked for emulated FP32, which is cuBLAS's own on this GPU",
};

static int call_wrong(int how)
{
    if (how == NO_STREAM)
        plain(); /* opens the context */
    gpu_now = how == NO_GPU ? -1 : 3;
    refuses_device = how == NO_CONTEXT;
    refuses_stream = how == NO_STREAM;
    next_status = how == REFUSED                      ? RUNG_INVALID_ARGUMENT
                  : how == FAILED || how == HALF_DONE ? RUNG_OUT_OF_MEMORY
                                                      : RUNG_SUCCESS;
    has_written = how == HALF_DONE;
    handle.math_mode = how == OTHER_MATH ? 1 : how == LATER_CHIP ? 4 : 0;
    gpu_major = how == LATER_CHIP || how == LATER_CHIP_COMPUTE ? 10 : 9;
    return cublasGemmEx(how == NO_HANDLE ? NULL : &handle, how == OTHER_TRANS_A ? 3 : 0, how == OTHER_TRANS_B ? -1 : 0,
                        11, 12, 13, how == NO_ALPHA ? NULL : &alpha, a, how == HALF_A ? F16 : F32, 14, b,
                        how == HALF_B ? F16 : F32, 15, how == NO_BETA ? NULL : &beta, c, how == HALF_C ? F16 : F32, 16,
                        how == OTHER_COMPUTE        ? TF32
                        : how == LATER_CHIP_COMPUTE ? EMULATED
                                                    : COMPUTE,
                        -1);
}

static int call_wrong_lt(int how)
{
    float other[4];
    set_lt();
    product[0] = how == LT_CHIP ? EMULATED : COMPUTE;
    product[1] = how == LT_SCALE_TYPE ? F16 : F32;
    product[2] = how == LT_VECTOR ? 2 : 0;
    product[5] = how == LT_C_TRANSPOSED;
    product[7] = how == LT_EPILOGUE ? 128 : how == LT_BIAS_TYPE || how == LT_BIAS_OF_ROWS ? 4 : 1;
    product[8] = (int64_t)(uintptr_t)bias;
    product[17] = how == LT_SCALES ? 64 : 0;
    product[26] = how == LT_BIAS_TYPE ? F16 : -1;
    layout_b[0] = how == LT_HALF ? F16 : F32;
    layout_d[1] = how == LT_ORDER ? 2 : 0;
    layout_a[7] = how == LT_PLANES ? 64 : 0;
    layout_c[8] = how == LT_ARRAYS;
    layout_a[3] += how == LT_NO_FIT_M;
    layout_b[3] += how == LT_NO_FIT_N;
    layout_b[2] += how == LT_NO_FIT_K;
    layout_a[5] += how == LT_NO_FIT_A_BATCH;
    layout_b[5] += how == LT_NO_FIT_B_BATCH;
    if (how == LT_EMPTY_M)
        layout_a[3] = layout_c[2] = layout_d[2] = 0;
    if (how == LT_EMPTY_N)
        layout_b[3] = layout_c[3] = layout_d[3] = 0;
    if (how == LT_BIAS_OF_ROWS)
        layout_c[1] = layout_d[1] = 1;
    gpu_major = how == LT_CHIP ? 10 : 9;
    return cublasLtMatmul(how == LT_NO_HANDLE ? NULL : &handle, how == LT_NO_DESCRIPTOR ? NULL : product, &alpha, a,
                          layout_a, b, layout_b, &beta, how == LT_ANOTHER_C ? other : c,
                          how == LT_NO_LAYOUT ? NULL : layout_c, c, layout_d, NULL, NULL, 0, &stream_object);
}

static void every_reason_is_told(void **state)
{
    (void)state;
    for (int how = 1; how < REASONS; how++) {
        char path[] = "/tmp/rung-report-XXXXXX", text[4096] = "", which[16], wanted[128];
        const int file = mkstemp(path);
        assert_true(file >= 0);
        snprintf(which, sizeof which, "wrong%d", how);
        const int code = in_process(which, "RUNG_REPORT", path);
        const ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        unlink(path);
        snprintf(wanted, sizeof wanted, "cuBLAS: %s\n", told[how]);
        if (code != 0 || length <= 0 || !strstr(text, wanted))
            fail_msg("call %d, wanted '%s', ended with %d and was reported as: %s", how, told[how], code, text);
    }
}

/* Where there is no real library the report says so, of each of the two. */
static void a_library_that_is_not_there_is_told(void **state)
{
    (void)state;
    static const char *const wanted[] = {"cuBLAS: the real cuBLAS is not to be found\n",
                                         "cuBLAS: the real cublasLt is not to be found\n"};
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/rung-report-XXXXXX", text[4096] = "";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(in_process(i ? "without lt" : "without", "RUNG_REPORT", path), 0);
        assert_true(read(file, text, sizeof text - 1) > 0);
        close(file);
        unlink(path);
        assert_non_null(strstr(text, wanted[i]));
    }
}

/* Copies a library and gives a function of it another name; returns whether it had one of that name. */
static int copy_without(const char *library, const char *name, int to)
{
    int found = 0;
    FILE *from = fopen(library, "rb");
    assert_non_null(from);
    static char bytes[4 << 20];
    const size_t length = fread(bytes, 1, sizeof bytes, from), letters = strlen(name) + 1;
    assert_true(length < sizeof bytes);
    fclose(from);
    for (size_t i = 1; i + letters <= length; i++)
        if (bytes[i - 1] == '\0' && memcmp(bytes + i, name, letters) == 0) {
            bytes[i] = '-';
            found = 1;
        }
    assert_int_equal(write(to, bytes, length), (ssize_t)length);
    return found;
}

/* A library that lacks one of the functions that a call is read by is as one that is not there. */
static void a_function_that_is_not_there_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *which, *wanted;
    } lacking[] = {
        {"cublasGetStream_v2", "without", "cuBLAS: the real cuBLAS is not to be found\n"},
        {"cublasGetPointerMode_v2", "without", "cuBLAS: the real cuBLAS is not to be found\n"},
        {"cublasGetMathMode", "without", "cuBLAS: the real cuBLAS is not to be found\n"},
        {"cublasLtMatmulDescGetAttribute", "without lt", "cuBLAS: the real cublasLt is not to be found\n"},
        {"cublasLtMatrixLayoutGetAttribute", "without lt", "cuBLAS: the real cublasLt is not to be found\n"}};
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        char path[] = "/tmp/rung-report-XXXXXX", library[] = "/tmp/rung-library-XXXXXX", text[4096] = "";
        const int file = mkstemp(path), copy = mkstemp(library);
        assert_true(file >= 0 && copy >= 0);
        assert_true(copy_without(real, lacking[i].name, copy));
        close(copy);
        setenv("RUNG_CUBLAS_LACKING", library, 1);
        const int code = in_process(lacking[i].which, "RUNG_REPORT", path);
        unsetenv("RUNG_CUBLAS_LACKING");
        const ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        unlink(path);
        unlink(library);
        if (code != 0 || length <= 0 || !strstr(text, lacking[i].wanted))
            fail_msg("without %s the call ended with %d and was reported as: %s", lacking[i].name, code, text);
    }
}

/* Calls where RUNG_CUBLAS names no library, or one that lacks a function; what the call returns then is no success. */
static int call_without(int of_lt)
{
    const char *lacking = getenv("RUNG_CUBLAS_LACKING");
    setenv("RUNG_CUBLAS", lacking ? lacking : "/nowhere/libcublas.so", 1);
    set_lt();
    return of_lt ? lt(c) == 0 : plain() == 0;
}

int main(int argc, char **argv)
{
    real = argv[1];
    setenv("RUNG_CUBLAS", argv[1], 1);
    void *fake = dlopen(argv[1], RTLD_NOW);
    int *(*get_calls)(void) = fake ? (int *(*)(void))dlsym(fake, "fake_cublas_calls") : NULL;
    if (!get_calls)
        return 2;
    calls = get_calls();
    *(void **)&set_within = dlsym(fake, "fake_cublas_within");
    int count = argc > 2 ? atoi(argv[2]) : 0;
    if (count)
        return reset(NULL) || open_contexts(&count) != NULL;
    int how;
    if (argc > 2 && sscanf(argv[2], "wrong%d", &how) == 1) {
        reset(NULL);
        const int status = how < FIRST_LT ? call_wrong(how) : call_wrong_lt(how);
        return how == HALF_DONE ? status != 13 : status < 100; /* its own statuses begin there */
    }
    if (argc > 2 && strncmp(argv[2], "without", 7) == 0)
        return reset(NULL) || call_without(argv[2][7] != 0);
    if (argc > 2)
        return strcmp(argv[2], "maths") == 0      ? check_maths()
               : strcmp(argv[2], "children") == 0 ? make_children()
               : strcmp(argv[2], "keys") == 0     ? call_without_keys()
               : strcmp(argv[2], "unlike") == 0   ? make_unlike_calls()
                                                  : make_report();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(translates, reset),
        cmocka_unit_test_setup(translates_64, reset),
        cmocka_unit_test_setup(math_modes, reset),
        cmocka_unit_test_setup(emulated_is_accurate_on_hopper, reset),
        cmocka_unit_test_setup(variables_mean_what_they_say, reset),
        cmocka_unit_test_setup(every_setting_meets_every_math, reset),
        cmocka_unit_test_setup(the_report_tells_calls_and_times, reset),
        cmocka_unit_test_setup(a_child_tells_its_own_calls, reset),
        cmocka_unit_test_setup(the_report_has_a_line_for_each_kind_of_call, reset),
        cmocka_unit_test_setup(the_report_has_room_for_256_contexts, reset),
        cmocka_unit_test_setup(gpus_that_there_is_no_room_for_are_handed_on, reset),
        cmocka_unit_test_setup(a_thread_may_call_while_it_ends, reset),
        cmocka_unit_test_setup(nobodys_key_is_taken, reset),
        cmocka_unit_test_setup(other_types_are_handed_on, reset),
        cmocka_unit_test_setup(bad_calls_get_the_real_status, reset),
        cmocka_unit_test_setup(what_is_half_done_is_not_handed_on, reset),
        cmocka_unit_test_setup(device_scalars, reset),
        cmocka_unit_test_setup(lt_translates, reset),
        cmocka_unit_test_setup(lt_reads_rows, reset),
        cmocka_unit_test_setup(lt_emulated_is_accurate_on_hopper, reset),
        cmocka_unit_test_setup(strides_keep_64_bits, reset),
        cmocka_unit_test_setup(stream_and_math_follow_the_handle, reset),
        cmocka_unit_test_setup(lt_hands_on, reset),
        cmocka_unit_test_setup(lt_hands_nulls_on, reset),
        cmocka_unit_test_setup(products_hand_nulls_on, reset),
        cmocka_unit_test_setup(lt_knows_c_from_d, reset),
        cmocka_unit_test_setup(lt_device_scalars, reset),
        cmocka_unit_test_setup(lt_batches, reset),
        cmocka_unit_test_setup(calls_within_calls_are_handed_on, reset),
        cmocka_unit_test_setup(every_reason_is_told, reset),
        cmocka_unit_test_setup(a_library_that_is_not_there_is_told, reset),
        cmocka_unit_test_setup(a_function_that_is_not_there_is_told, reset),
        cmocka_unit_test_setup(graphs_of_xla_have_no_workspace, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
