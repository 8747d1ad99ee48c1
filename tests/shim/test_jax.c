/* librung_jax.so without JAX: call frames as XLA hands them over, on the CPU; and what is refused, in which words. Two
 * GPUs are played by the CPU, which notes the streams that it is given. */
#define _GNU_SOURCE
#include "rung.h"
#include "xla_ffi.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

xla_error *rung_jax_matmul_cpu(xla_call *call);
xla_error *rung_jax_matmul_gpu(xla_call *call);

struct xla_error {
    int code;
    char text[700];
};

struct xla_execution {
    int asked, device;
    void *stream;
};

enum { GPUS = 2 };
static rung_context *played[GPUS];
static void *streams[GPUS];
static int contexts;      /* that are there */
static int math_set = -1; /* by the last call that set it */

rung_status rung_context_create(rung_context **context, const rung_config *config)
{
    typedef rung_status function(rung_context **, const rung_config *);
    function *real = (function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_context_create");
    rung_config instead = *config;
    if (config->device < 0 || config->device >= GPUS) {
        rung_status of_cpu = real(context, config);
        contexts += of_cpu == RUNG_SUCCESS;
        return of_cpu;
    }
    assert_int_equal(config->pointers, RUNG_POINTERS_DEVICE);
    instead.device = RUNG_DEVICE_CPU;
    instead.pointers = RUNG_POINTERS_AUTO;
    rung_status status = real(context, &instead);
    played[config->device] = *context;
    contexts += status == RUNG_SUCCESS;
    return status;
}

void rung_context_destroy(rung_context *context)
{
    typedef void function(rung_context *);
    contexts -= context != NULL;
    ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_context_destroy"))(context);
}

rung_status rung_context_set_stream(rung_context *context, void *stream)
{
    for (int i = 0; i < GPUS; i++)
        if (context == played[i]) {
            streams[i] = stream;
            return RUNG_SUCCESS;
        }
    fail_msg("a stream for a context that is none of a GPU");
    return RUNG_INTERNAL;
}

rung_status rung_context_set_math(rung_context *context, rung_math math)
{
    typedef rung_status function(rung_context *, rung_math);
    math_set = (int)math;
    return ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_context_set_math"))(context, math);
}

static xla_error last;

static xla_error *create(xla_error_create *args)
{
    last.code = args->code;
    snprintf(last.text, sizeof last.text, "%s", args->message);
    return &last;
}

static xla_error *its_device(xla_device_get *args)
{
    args->execution->asked++;
    args->device = args->execution->device;
    return NULL;
}

static xla_error *its_stream(xla_stream_get *args)
{
    args->execution->asked++;
    args->stream = args->execution->stream;
    return NULL;
}

static const xla_api api = {.head = {sizeof(xla_api), NULL},
                            .version = {{sizeof(xla_version), NULL}, 0, 7},
                            .error_create = create,
                            .stream_get = its_stream,
                            .device_get = its_device};

/* One product with everything a call frame needs; its parts point at each other, so it is filled where it stays. */
typedef struct frame {
    xla_call call;
    xla_buffer a, b, c;
    int64_t a_sizes[3], b_sizes[3], c_sizes[3], values[3];
    xla_scalar scalars[3];
    xla_text names[3], *name_list[3];
    int kinds[3], scalar_kinds[3];
    void *arguments[2], *results[1], *attributes[3];
    struct xla_execution execution;
} frame;

static xla_buffer buffer(float *at, int64_t *sizes, int64_t batch, int64_t rows, int64_t columns)
{
    sizes[0] = batch, sizes[1] = rows, sizes[2] = columns;
    return (xla_buffer){{sizeof(xla_buffer), NULL}, XLA_F32, at, 3, sizes};
}

/* Computes C (batch x 2 x 4) = op(A) op(B) with k = 3. */
static void fill(frame *f, float *a, float *b, float *c, int ta, int tb)
{
    static const char *const names[] = {"math", "trans_a", "trans_b"};
    const int64_t values[] = {RUNG_STRICT, ta, tb};
    memset(f, 0, sizeof *f);
    f->a = buffer(a, f->a_sizes, 2, ta ? 3 : 2, ta ? 2 : 3);
    f->b = buffer(b, f->b_sizes, 2, tb ? 4 : 3, tb ? 3 : 4);
    f->c = buffer(c, f->c_sizes, 2, 2, 4);
    for (int i = 0; i < 3; i++) {
        f->values[i] = values[i];
        f->scalars[i] = (xla_scalar){XLA_S64, &f->values[i]};
        f->names[i] = (xla_text){names[i], strlen(names[i])};
        f->name_list[i] = &f->names[i];
        f->attributes[i] = &f->scalars[i];
        f->kinds[i] = XLA_BUFFER, f->scalar_kinds[i] = XLA_SCALAR;
    }
    f->arguments[0] = &f->a, f->arguments[1] = &f->b, f->results[0] = &f->c;
    f->call = (xla_call){.head = {sizeof(xla_call), NULL},
                         .api = &api,
                         .execution = &f->execution,
                         .stage = XLA_EXECUTE,
                         .arguments = {{sizeof(xla_list), NULL}, 2, f->kinds, f->arguments},
                         .results = {{sizeof(xla_list), NULL}, 1, f->kinds, f->results},
                         .attributes = {{0, NULL}, 3, f->scalar_kinds, f->name_list, f->attributes}};
}

static void products_of_all_transposes(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) { /* four with nothing to add up: zeros are written */
        const int ta = way & 1, tb = way >> 1 & 1, k = way < 4 ? 3 : 0;
        float a[12], b[24], c[16];
        frame f;
        for (int i = 0; i < 24; i++) {
            b[i] = (float)(i % 7) - 2;
            a[i / 2] = (float)(i / 2 % 5) + 1;
        }
        memset(c, 0xff, sizeof c);
        fill(&f, a, b, c, ta, tb);
        f.a_sizes[ta ? 1 : 2] = f.b_sizes[tb ? 2 : 1] = k;
        assert_null(rung_jax_matmul_cpu(&f.call));
        for (int at = 0; at < 16; at++) {
            int batch = at / 8, row = at / 4 % 2, column = at % 4;
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[6 * batch + (ta ? 2 * i + row : 3 * row + i)] *
                       b[12 * batch + (tb ? 3 * column + i : 4 * i + column)];
            assert_true(c[at] == sum);
        }
    }
}

/* One matrix, and four that lie in two dimensions; in each math mode, which is the call's own. */
static void batches_of_any_rank_in_any_mode(void **state)
{
    (void)state;
    for (int form = 0; form < 6; form++) {
        const int one = form & 1, math = form / 2;
        float a[24], b[48], c[32];
        int64_t a_sizes[4] = {2, 2, 2, 3}, b_sizes[4] = {2, 2, 3, 4}, c_sizes[4] = {2, 2, 2, 4};
        frame f;
        for (int i = 0; i < 48; i++)
            b[i] = (float)(i % 7) - 2, a[i / 2] = (float)(i / 2 % 5) + 1;
        memset(c, 0xff, sizeof c);
        fill(&f, a, b, c, 0, 0);
        f.values[0] = math;
        f.a.sizes = &a_sizes[one ? 2 : 0], f.b.sizes = &b_sizes[one ? 2 : 0], f.c.sizes = &c_sizes[one ? 2 : 0];
        f.a.rank = f.b.rank = f.c.rank = one ? 2 : 4;
        assert_null(rung_jax_matmul_cpu(&f.call));
        assert_int_equal(math_set, math);
        for (int at = 0; at < 32; at++) {
            float sum = 0;
            for (int i = 0; i < 3; i++)
                sum += a[6 * (at / 8) + 3 * (at / 4 % 2) + i] * b[12 * (at / 8) + 4 * i + at % 4];
            assert_true(one && at >= 8 ? isnan(c[at]) : c[at] == sum);
        }
    }
}

/* Without results nothing is multiplied, not even where there is no memory. */
static void nothing_to_make_is_done(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        frame f;
        fill(&f, NULL, NULL, NULL, 0, 0);
        f.c_sizes[which] = 0;
        if (which == 0)
            f.a_sizes[0] = f.b_sizes[0] = 0;
        else
            (which == 1 ? f.a_sizes : f.b_sizes)[which] = 0;
        assert_null(rung_jax_matmul_cpu(&f.call));
    }
}

static void expect_refused(frame *f, int code, const char *words)
{
    last.text[0] = 0;
    assert_ptr_equal(rung_jax_matmul_cpu(&f->call), &last);
    assert_int_equal(last.code, code);
    if (!strstr(last.text, words))
        fail_msg("'%s' lacks '%s'", last.text, words);
}

static void what_does_not_fit_is_refused(void **state)
{
    float a[16] = {0}, b[24] = {0}, c[16] = {0};
    frame f;
    (void)state;
    fill(&f, a, b, c, 0, 0);
    f.b_sizes[1] = 5;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "2 of 5 x 4 and 2 results of 2 x 4 do not go together");
    fill(&f, a, b, c, 0, 0);
    f.a_sizes[0] = 1;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "1 matrices of 2 x 3");
    fill(&f, a, b, c, 0, 0);
    f.b_sizes[0] = 1;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "1 of 3 x 4");
    fill(&f, a, b, c, 0, 0);
    f.c_sizes[0] = 3;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "3 results of 2 x 4");
    fill(&f, a, b, c, 0, 0);
    f.a.type = XLA_F32 + 1;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "rung_matmul takes two batches of float32 matrices and makes one");
    fill(&f, a, b, c, 0, 0);
    f.b.rank = 1;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "batches of float32 matrices");
    fill(&f, a, b, c, 0, 0);
    f.call.attributes.count = 2;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "trans_b -1: int64 attributes of 0 or 1");
    fill(&f, a, b, c, 0, 0);
    f.values[0] = 3;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "math is 3: an int64 attribute of 0 (strict), 1 (accurate) or 2 (fast)");
    fill(&f, a, b, c, 0, 0);
    f.values[2] = 2;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "trans_b 2");
    fill(&f, a, b, c, 0, 0);
    f.scalars[1].type = XLA_S64 - 1;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "trans_a is -1");
    fill(&f, a, b, c, 0, 0);
    f.call.arguments.count = 3;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "two batches");
    fill(&f, a, b, c, 0, 0);
    f.call.results.count = 2;
    expect_refused(&f, XLA_INVALID_ARGUMENT, "makes one");
    fill(&f, a, b, a, 0, 0); /* C on A */
    expect_refused(&f, XLA_INTERNAL, "overlaps a");
}

static void other_stages_and_questions(void **state)
{
    float a[12] = {0}, b[24] = {0}, c[16];
    frame f;
    (void)state;
    memset(c, 0xff, sizeof c);
    fill(&f, a, b, c, 0, 0);
    f.call.stage = XLA_EXECUTE - 1;
    assert_null(rung_jax_matmul_cpu(&f.call));
    xla_metadata metadata = {.bytes = sizeof metadata, .traits = 9};
    xla_metadata_extension question = {{sizeof question, XLA_METADATA, NULL}, &metadata};
    f.call.stage = XLA_EXECUTE;
    f.call.head.extension = &question.base;
    assert_null(rung_jax_matmul_cpu(&f.call));
    assert_null(rung_jax_matmul_gpu(&f.call));
    assert_int_equal(metadata.version.major, 0);
    assert_int_equal(metadata.version.minor, 7);
    assert_int_equal(metadata.traits, 0);
    assert_true(isnan(c[0])); /* neither multiplied */
}

static void a_gpu_is_the_one_that_xla_names(void **state)
{
    float a[12] = {0}, b[24] = {0}, c[16];
    frame f;
    (void)state;
    fill(&f, a, b, c, 0, 0);
    static const int not_there[] = {63, 64, 65,
                                    1000}; /* no context can be made for these, and for some there is no place */
    for (int i = 0; i < 4; i++) {
        char words[64];
        f.execution.device = not_there[i];
        f.execution.asked = 0;
        snprintf(words, sizeof words, "no context for device %d: ", not_there[i]);
        assert_ptr_equal(rung_jax_matmul_gpu(&f.call), &last);
        assert_int_equal(f.execution.asked, 2);
        assert_non_null(strstr(last.text, words));
    }
}

static void work_is_queued_on_xlas_stream(void **state)
{
    float a[12] = {1}, b[24] = {2}, c[16];
    char stream[2 * GPUS];
    (void)state;
    for (int i = 0; i < 2 * GPUS; i++) { /* each GPU twice, and another stream each time */
        frame f;
        memset(c, 0xff, sizeof c);
        fill(&f, a, b, c, 0, 0);
        f.execution.device = i % GPUS;
        f.execution.stream = &stream[i];
        assert_null(rung_jax_matmul_gpu(&f.call));
        assert_ptr_equal(streams[i % GPUS], &stream[i]);
        assert_true(c[0] == 2.0f && c[15] == 0.0f);
    }
    assert_ptr_not_equal(played[0], played[1]);
}

static void *work_apart(void *unused)
{
    float a[12], b[24], c[16];
    frame f;
    (void)unused;
    for (int i = 0; i < 24; i++)
        a[i % 12] = b[i] = 1.0f;
    fill(&f, a, b, c, 0, 0);
    for (int i = 0; i < 2; i++) {
        assert_null(rung_jax_matmul_cpu(&f.call));
        f.execution.device = i;
        assert_null(rung_jax_matmul_gpu(&f.call));
    }
    return NULL;
}

/* Each thread has contexts of its own, which end with it. */
static void contexts_end_with_their_thread(void **state)
{
    (void)state;
    const int before = contexts;
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, work_apart, NULL), 0);
        pthread_join(thread, NULL);
        assert_int_equal(contexts, before);
    }
}

/* Where a field of the header is and how many bytes it has, beside where XLA has it and with how many. */
#define FIELD(type, field, at, bytes)                                                                                  \
    {                                                                                                                  \
        offsetof(type, field), at, sizeof((type *)0)->field, bytes                                                     \
    }

/* The header is our own: these are the places, as numbers, where XLA's c_api.h of 0.2 has its fields on 64-bit
 * machines, every field of the header's, and the values that it gives to what is counted. */
static void fields_lie_where_xla_has_them(void **state)
{
    (void)state;
    const size_t places[][4] = {FIELD(xla_extension, bytes, 0, 8),
                                FIELD(xla_extension, kind, 8, 4),
                                FIELD(xla_extension, next, 16, 8),
                                FIELD(xla_head, bytes, 0, 8),
                                FIELD(xla_head, extension, 8, 8),
                                FIELD(xla_version, major, 16, 4),
                                FIELD(xla_version, minor, 20, 4),
                                FIELD(xla_metadata, bytes, 0, 8),
                                FIELD(xla_metadata, version, 8, 24),
                                FIELD(xla_metadata, traits, 32, 4),
                                FIELD(xla_metadata_extension, metadata, 24, 8),
                                FIELD(xla_api, version, 16, 24),
                                FIELD(xla_api, internal, 40, 8),
                                FIELD(xla_api, error_create, 48, 8),
                                FIELD(xla_api, error_message, 56, 8),
                                FIELD(xla_api, error_destroy, 64, 8),
                                FIELD(xla_api, handler_register, 72, 8),
                                FIELD(xla_api, stream_get, 80, 8),
                                FIELD(xla_api, others, 88, 96),
                                FIELD(xla_api, device_get, 184, 8),
                                FIELD(xla_call, api, 16, 8),
                                FIELD(xla_call, execution, 24, 8),
                                FIELD(xla_call, stage, 32, 4),
                                FIELD(xla_call, arguments, 40, 40),
                                FIELD(xla_call, results, 80, 40),
                                FIELD(xla_call, attributes, 120, 48),
                                FIELD(xla_buffer, type, 16, 4),
                                FIELD(xla_buffer, data, 24, 8),
                                FIELD(xla_buffer, rank, 32, 8),
                                FIELD(xla_buffer, sizes, 40, 8),
                                FIELD(xla_text, at, 0, 8),
                                FIELD(xla_text, length, 8, 8),
                                FIELD(xla_scalar, type, 0, 4),
                                FIELD(xla_scalar, value, 8, 8),
                                FIELD(xla_list, count, 16, 8),
                                FIELD(xla_list, kinds, 24, 8),
                                FIELD(xla_list, items, 32, 8),
                                FIELD(xla_attributes, count, 16, 8),
                                FIELD(xla_attributes, kinds, 24, 8),
                                FIELD(xla_attributes, names, 32, 8),
                                FIELD(xla_attributes, items, 40, 8),
                                FIELD(xla_error_create, message, 16, 8),
                                FIELD(xla_error_create, code, 24, 4),
                                FIELD(xla_stream_get, execution, 16, 8),
                                FIELD(xla_stream_get, stream, 24, 8),
                                FIELD(xla_device_get, execution, 16, 8),
                                FIELD(xla_device_get, device, 24, 4)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(places[i][0], places[i][1]);
        assert_int_equal(places[i][2], places[i][3]);
    }
    const int values[][2] = {{XLA_METADATA, 1}, {XLA_BUFFER, 1}, {XLA_SCALAR, 3},           {XLA_EXECUTE, 3},
                             {XLA_S64, 5},      {XLA_F32, 11},   {XLA_INVALID_ARGUMENT, 3}, {XLA_INTERNAL, 13}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(values[i][0], values[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_all_transposes),     cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(other_stages_and_questions),     cmocka_unit_test(a_gpu_is_the_one_that_xla_names),
        cmocka_unit_test(work_is_queued_on_xlas_stream),  cmocka_unit_test(batches_of_any_rank_in_any_mode),
        cmocka_unit_test(nothing_to_make_is_done),        cmocka_unit_test(fields_lie_where_xla_has_them),
        cmocka_unit_test(contexts_end_with_their_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
