/* Each wrong call is a good product with one thing changed. */
#include "lab/refusals.h"
#include "lab/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 96 };

typedef struct bench_of_wrongs {
    lab_place *place;
    rung_context *context;
    lab_buffer a, b, c;
    rung_gemm good;
    float *host; /* SIZE x SIZE in host memory */
} bench_of_wrongs;

typedef rung_status wrong_call(bench_of_wrongs *x);

static rung_status null_a(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.a = NULL;
    return rung_gemm_run(x->context, &g);
}

static rung_status negative_m(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.m = -1;
    return rung_gemm_run(x->context, &g);
}

static rung_status short_lda(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.lda = SIZE - 1;
    return rung_gemm_run(x->context, &g);
}

static rung_status odd_address(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.b = (const float *)((uintptr_t)g.b + 2);
    return rung_gemm_run(x->context, &g);
}

static rung_status endless_size(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.k = (int64_t)1 << 61;
    g.lda = g.ldb = g.k;
    return rung_gemm_run(x->context, &g);
}

static rung_status bad_transpose(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.trans_a = (rung_transpose)7;
    return rung_gemm_run(x->context, &g);
}

static rung_status overlapping_batch(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.batch = 2;
    g.stride_c = 0;
    return rung_gemm_run(x->context, &g);
}

static rung_status plan_by_name(bench_of_wrongs *x, const rung_gemm *g, const char *name)
{
    rung_plan *plan;
    rung_status status = rung_plan_create_kernel(&plan, x->context, g, name);
    if (status == RUNG_SUCCESS)
        rung_plan_destroy(plan);
    return status;
}

static rung_status unknown_kernel(bench_of_wrongs *x)
{
    return plan_by_name(x, &x->good, "no_such_kernel");
}

static rung_status other_backend(bench_of_wrongs *x)
{
    for (int i = 0; i < rung_kernel_count(); i++)
        if ((rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA) != (x->place->tools != NULL))
            return plan_by_name(x, &x->good, rung_kernel_at(i)->name);
    return RUNG_UNSUPPORTED;
}

/* Plans a product past the grid: a ladder rung's ends at 65535 tiles along m. Nothing is touched when only planning. */
static rung_status past_the_grid(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.layout = RUNG_ROW_MAJOR;
    g.m = (int64_t)1 << 40;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (k->backend == RUNG_BACKEND_CUDA && k->role == RUNG_LADDER && k->launch && strcmp(k->launch, "tiles") == 0)
            return plan_by_name(x, &g, k->name);
    }
    return RUNG_UNSUPPORTED;
}

static rung_status host_beside_device(bench_of_wrongs *x)
{
    rung_gemm g = x->good;
    g.a = x->host;
    rung_context_set_pointers(x->context, RUNG_POINTERS_AUTO);
    rung_status status = rung_gemm_run(x->context, &g);
    rung_context_set_pointers(x->context, RUNG_POINTERS_DEVICE);
    return status;
}

static rung_status no_such_gpu(bench_of_wrongs *x)
{
    rung_context *context;
    rung_config config;
    (void)x;
    rung_config_init(&config);
    config.device = 63;
    rung_status status = rung_context_create(&context, &config);
    if (status == RUNG_SUCCESS)
        rung_context_destroy(context);
    return status;
}

static const struct refusal {
    const char *name;
    wrong_call *call;
    rung_status expected;
    int gpu_only;
} refusals[] = {
    {"A is NULL", null_a, RUNG_INVALID_ARGUMENT, 0},
    {"m is negative", negative_m, RUNG_INVALID_ARGUMENT, 0},
    {"lda is too short", short_lda, RUNG_INVALID_ARGUMENT, 0},
    {"B lies on an odd address", odd_address, RUNG_INVALID_ARGUMENT, 0},
    {"sizes overflow", endless_size, RUNG_INVALID_ARGUMENT, 0},
    {"a transpose that is none", bad_transpose, RUNG_INVALID_ARGUMENT, 0},
    {"results of a batch overlap", overlapping_batch, RUNG_INVALID_ARGUMENT, 0},
    {"an unknown kernel", unknown_kernel, RUNG_INVALID_ARGUMENT, 0},
    {"a kernel of the other backend", other_backend, RUNG_UNSUPPORTED, 0},
    {"a GPU that is not there", no_such_gpu, RUNG_NO_DEVICE, 0},
    {"more tiles than a grid has room for", past_the_grid, RUNG_UNSUPPORTED, 1},
    {"A in host memory, C on the device", host_beside_device, RUNG_INVALID_ARGUMENT, 1},
};

int lab_refusals(void)
{
    return (int)(sizeof refusals / sizeof refusals[0]);
}

const char *lab_refusal_name(int index)
{
    return refusals[index].name;
}

static rung_status prepare(bench_of_wrongs *x)
{
    LAB_TRY(lab_place_context(x->place, RUNG_STRICT, &x->context));
    lab_buffer *buffers[] = {&x->a, &x->b, &x->c};
    for (int i = 0; i < 3; i++) {
        LAB_TRY(lab_buffer_reserve(x->place, buffers[i], SIZE * SIZE * 4));
        lab_fill_args fill = {{buffers[i]->at, SIZE, 1}, SIZE, SIZE, (uint64_t)i, LAB_INTEGERS};
        LAB_TRY(lab_fill(x->place, &fill));
    }
    x->host = calloc(SIZE * SIZE, sizeof *x->host);
    if (!x->host)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a refusal's operand");
    rung_gemm_init(&x->good);
    x->good.m = x->good.n = x->good.k = x->good.lda = x->good.ldb = x->good.ldc = SIZE;
    x->good.a = x->a.at;
    x->good.b = x->b.at;
    x->good.c = x->c.at;
    x->good.beta = 1.0f;
    return RUNG_SUCCESS;
}

static rung_status hash_c(bench_of_wrongs *x, uint64_t *hash)
{
    lab_tally tally;
    LAB_TRY(lab_tally_begin(x->place));
    LAB_TRY(lab_hash(x->place, x->c.at, SIZE * SIZE));
    LAB_TRY(lab_tally_end(x->place, &tally));
    *hash = tally.hash;
    return RUNG_SUCCESS;
}

/* Runs the wrong call between two looks at C, then a good one. *good is 1 when all is as it should be. */
static rung_status observe(bench_of_wrongs *x, const struct refusal *r, int *good, char *why, size_t why_bytes)
{
    uint64_t before, after, changed;
    char sentence[256];
    LAB_TRY(hash_c(x, &before));
    rung_status got = r->call(x);
    snprintf(sentence, sizeof sentence, "%.250s", rung_last_error());
    LAB_TRY(lab_wait(x->place));
    LAB_TRY(hash_c(x, &after));
    LAB_TRY(rung_gemm_run(x->context, &x->good));
    LAB_TRY(hash_c(x, &changed));
    *good = got == r->expected && before == after && changed != after && sentence[0];
    snprintf(why, why_bytes, "%s (expected %s)%s%s: %s", rung_status_name(got), rung_status_name(r->expected),
             before == after ? "" : ", C was written", changed != after ? "" : ", the context does nothing afterwards",
             sentence);
    return RUNG_SUCCESS;
}

int lab_refusal_check(int index, lab_place *place, char *why, size_t why_bytes)
{
    bench_of_wrongs x = {.place = place};
    int good = 0;
    if (refusals[index].gpu_only && !place->tools)
        return -1;
    rung_status status = prepare(&x);
    if (status == RUNG_SUCCESS)
        status = observe(&x, &refusals[index], &good, why, why_bytes);
    if (status != RUNG_SUCCESS)
        snprintf(why, why_bytes, "%s: %s", rung_status_name(status), lab_error());
    free(x.host);
    rung_context_destroy(x.context);
    lab_buffer_free(place, &x.a);
    lab_buffer_free(place, &x.b);
    lab_buffer_free(place, &x.c);
    return good;
}
