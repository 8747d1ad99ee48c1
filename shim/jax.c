/* librung_jax.so: products as foreign functions of XLA, which JAX calls on CPUs and GPUs (python/rung/jax.py registers
 * them). Operands are rows without gaps, [batch..., rows, columns]; attributes: math, trans_a, trans_b. A thread keeps
 * one context a device. Work on a GPU is queued on the stream that XLA names. */
#include "rung.h"
#include "xla_ffi.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_DEVICES = 64, MESSAGE_BYTES = 600 };

EXPORT xla_error *rung_jax_matmul_cpu(xla_call *call);
EXPORT xla_error *rung_jax_matmul_gpu(xla_call *call);

typedef struct contexts {
    rung_context *of[MOST_DEVICES + 1]; /* the CPU's, then those of GPU 0, 1, ... */
} contexts;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int no_key;

static void end_of_thread(void *state)
{
    contexts *mine = state;
    for (int i = 0; i <= MOST_DEVICES; i++)
        rung_context_destroy(mine->of[i]);
    free(mine);
}

static void make_key(void)
{
    no_key = pthread_key_create(&key, end_of_thread);
}

static xla_error *fail(const xla_call *call, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static xla_error *fail(const xla_call *call, int code, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    xla_error_create create = {{sizeof create, NULL}, text, code};
    return call->api->error_create(&create);
}

/* Returns this thread's context on a device. Where it is NULL rung_last_error says why, or there is no memory. */
static rung_context *context_of(int device)
{
    pthread_once(&once, make_key);
    contexts *mine = no_key ? NULL : pthread_getspecific(key);
    if (!mine && !no_key) {
        mine = calloc(1, sizeof *mine);
        if (mine && pthread_setspecific(key, mine) != 0) {
            free(mine);
            mine = NULL;
        }
    }
    if (!mine || device >= MOST_DEVICES)
        return NULL;
    rung_context **one = &mine->of[device + 1];
    if (!*one) {
        rung_config config;
        rung_config_init(&config);
        config.device = device;
        config.pointers = device >= 0 ? RUNG_POINTERS_DEVICE : RUNG_POINTERS_AUTO;
        if (rung_context_create(one, &config) != RUNG_SUCCESS)
            *one = NULL;
    }
    return *one;
}

/* Returns an attribute of 64 bits; -1: it is not there. */
static int64_t attribute(const xla_call *call, const char *name)
{
    const xla_attributes *all = &call->attributes;
    for (int64_t i = 0; i < all->count; i++) {
        const xla_text *its = all->names[i];
        const xla_scalar *scalar = all->items[i];
        if (all->kinds[i] == XLA_SCALAR && its->length == strlen(name) && memcmp(its->at, name, its->length) == 0 &&
            scalar->type == XLA_S64)
            return *(const int64_t *)scalar->value;
    }
    return -1;
}

/* Reads one operand: its last two sizes and how many matrices there are. Returns false where it is no batch of FP32
 * matrices. */
static bool matrix_of(const xla_list *list, int64_t i, const xla_buffer **buffer, int64_t *batch)
{
    const xla_buffer *b = list->kinds[i] == XLA_BUFFER ? list->items[i] : NULL;
    if (!b || b->type != XLA_F32 || b->rank < 2)
        return false;
    *buffer = b;
    *batch = 1;
    for (int64_t d = 0; d + 2 < b->rank; d++)
        *batch *= b->sizes[d];
    return true;
}

static int64_t at_least_one(int64_t n)
{
    return n > 0 ? n : 1;
}

/* Makes the product that the call describes. Returns NULL where no argument is wrong. */
static xla_error *describe(const xla_call *call, rung_gemm *g)
{
    const xla_buffer *a, *b, *c;
    int64_t batches[3], ta = attribute(call, "trans_a"), tb = attribute(call, "trans_b");
    if (call->arguments.count != 2 || call->results.count != 1 || !matrix_of(&call->arguments, 0, &a, &batches[0]) ||
        !matrix_of(&call->arguments, 1, &b, &batches[1]) || !matrix_of(&call->results, 0, &c, &batches[2]))
        return fail(call, XLA_INVALID_ARGUMENT, "rung_matmul takes two batches of float32 matrices and makes one");
    if (ta < 0 || ta > 1 || tb < 0 || tb > 1)
        return fail(call, XLA_INVALID_ARGUMENT, "trans_a is %lld and trans_b %lld: int64 attributes of 0 or 1",
                    (long long)ta, (long long)tb);
    const int64_t *as = &a->sizes[a->rank - 2], *bs = &b->sizes[b->rank - 2], *cs = &c->sizes[c->rank - 2];
    rung_gemm_init(g);
    g->layout = RUNG_ROW_MAJOR;
    g->trans_a = ta ? RUNG_TRANS : RUNG_NO_TRANS;
    g->trans_b = tb ? RUNG_TRANS : RUNG_NO_TRANS;
    g->m = cs[0], g->n = cs[1], g->k = as[ta ? 0 : 1];
    if (as[ta ? 1 : 0] != g->m || bs[tb ? 0 : 1] != g->n || bs[tb ? 1 : 0] != g->k || batches[0] != batches[2] ||
        batches[1] != batches[2])
        return fail(
            call, XLA_INVALID_ARGUMENT,
            "%lld matrices of %lld x %lld, %lld of %lld x %lld and %lld results of %lld x %lld do not go together",
            (long long)batches[0], (long long)as[0], (long long)as[1], (long long)batches[1], (long long)bs[0],
            (long long)bs[1], (long long)batches[2], (long long)cs[0], (long long)cs[1]);
    g->a = a->data, g->b = b->data, g->c = c->data;
    g->lda = at_least_one(as[1]), g->ldb = at_least_one(bs[1]), g->ldc = cs[1];
    g->batch = batches[2];
    g->stride_a = as[0] * as[1], g->stride_b = bs[0] * bs[1], g->stride_c = cs[0] * cs[1];
    return NULL;
}

static xla_error *multiply(const xla_call *call, int device, void *stream)
{
    rung_gemm gemm;
    int64_t math = attribute(call, "math");
    xla_error *error = describe(call, &gemm);
    if (error)
        return error;
    if (math < RUNG_STRICT || math > RUNG_FAST)
        return fail(call, XLA_INVALID_ARGUMENT,
                    "math is %lld: an int64 attribute of 0 (strict), 1 (accurate) or 2 (fast)", (long long)math);
    if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0)
        return NULL;
    rung_context *context = context_of(device);
    if (!context)
        return fail(call, XLA_INTERNAL, "no context for device %d: %s", device, rung_last_error());
    if (rung_context_set_math(context, (rung_math)math) != RUNG_SUCCESS ||
        (device >= 0 && rung_context_set_stream(context, stream) != RUNG_SUCCESS) ||
        rung_gemm_run(context, &gemm) != RUNG_SUCCESS)
        return fail(call, XLA_INTERNAL, "%s", rung_last_error());
    return NULL;
}

/* Before the first call XLA asks what a function was built for: any 0.x, for nothing here has changed since 0.0. */
static bool was_asked(const xla_call *call)
{
    const xla_extension *extension = call->head.extension;
    if (!extension || extension->kind != XLA_METADATA)
        return false;
    xla_metadata *metadata = ((const xla_metadata_extension *)(const void *)extension)->metadata;
    metadata->version.major = 0;
    metadata->version.minor = call->api ? call->api->version.minor : 0;
    metadata->traits = 0;
    return true;
}

xla_error *rung_jax_matmul_cpu(xla_call *call)
{
    return was_asked(call) || call->stage != XLA_EXECUTE ? NULL : multiply(call, RUNG_DEVICE_CPU, NULL);
}

xla_error *rung_jax_matmul_gpu(xla_call *call)
{
    if (was_asked(call) || call->stage != XLA_EXECUTE)
        return NULL;
    const xla_api *api = call->api;
    xla_stream_get stream = {{sizeof stream, NULL}, call->execution, NULL};
    xla_device_get device = {{sizeof device, NULL}, call->execution, 0};
    xla_error *error = api->stream_get(&stream);
    if (!error && api->head.bytes >= sizeof *api && api->device_get)
        error = api->device_get(&device);
    return error ? error : multiply(call, device.device, stream.stream);
}
