/* Every function of the API with NULL for each pointer that it needs: it says which one, and nothing else happens. */
#include "support.h"

#include "rung_multi.h"

#include <stdio.h>
#include <string.h>

static void expect(rung_status status, const char *words, int line)
{
    if (status != RUNG_INVALID_ARGUMENT || strcmp(rung_last_error(), words) != 0)
        fail_msg("line %d: %s '%s', not '%s'", line, rung_status_name(status), rung_last_error(), words);
}
#define EXPECT(call, words) expect(call, words, __LINE__)

static float x[64];

static void no_context(void **state)
{
    (void)state;
    rung_gemm g;
    rung_plan *plan;
    rung_guard_counts counts;
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 4;
    g.a = g.b = x, g.c = x + 32;
    EXPECT(rung_context_set_math(NULL, RUNG_STRICT), "context is NULL");
    EXPECT(rung_context_set_threads(NULL, 1), "context is NULL");
    EXPECT(rung_context_set_stream(NULL, NULL), "context is NULL");
    EXPECT(rung_context_set_pointers(NULL, RUNG_POINTERS_AUTO), "context is NULL");
    EXPECT(rung_context_set_workspace_limit(NULL, 0), "context is NULL");
    EXPECT(rung_context_synchronize(NULL), "context is NULL");
    EXPECT(rung_context_guard_counts(NULL, &counts), "context is NULL");
    EXPECT(rung_sgemm(NULL, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 4, 4, 4, 1.0f, x, 4, x, 4, 0.0f, x + 32, 4),
           "context is NULL");
    EXPECT(rung_sgemm_strided_batched(NULL, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 4, 4, 4, 1.0f, x, 4, 0, x, 4,
                                      0, 0.0f, x + 32, 4, 16, 2),
           "context is NULL");
    const float *list[] = {x};
    float *results[] = {x + 32};
    EXPECT(rung_sgemm_batched(NULL, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 4, 4, 4, 1.0f, list, 4, list, 4, 0.0f,
                              results, 4, 1),
           "context is NULL");
    EXPECT(rung_gemm_run(NULL, &g), "context is NULL");
    EXPECT(rung_plan_create(&plan, NULL, &g), "context is NULL");
    EXPECT(rung_plan_create_kernel(&plan, NULL, &g, "c01_naive"), "context is NULL");
    EXPECT(rung_ssum(NULL, 4, x, x), "context is NULL");
    assert_int_equal(rung_context_device(NULL), RUNG_DEVICE_CPU);
    assert_int_equal(rung_context_threads(NULL), 0);
    assert_int_equal(rung_context_math(NULL), RUNG_STRICT);
    assert_null(rung_last_kernel(NULL));
    assert_null(rung_plan_kernel(NULL));
    assert_int_equal(rung_plan_workspace_bytes(NULL), 0);
    rung_context_destroy(NULL);
}

static void no_argument(void **state)
{
    (void)state;
    rung_context *context;
    rung_config config;
    rung_plan *plan;
    rung_gemm g;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    EXPECT(rung_context_create(NULL, &config), "rung_context_create was given NULL for the result");
    assert_ok(rung_context_create(&context, &config));
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 4;
    g.a = g.b = x, g.c = x + 32;
    EXPECT(rung_gemm_run(context, NULL), "gemm is NULL");
    EXPECT(rung_plan_create(NULL, context, &g), "plan is NULL");
    EXPECT(rung_plan_create(&plan, context, NULL), "gemm is NULL");
    EXPECT(rung_plan_create_kernel(NULL, context, &g, "c01_naive"), "plan is NULL");
    EXPECT(rung_plan_create_kernel(&plan, context, NULL, "c01_naive"), "gemm is NULL");
    EXPECT(rung_plan_create_kernel(&plan, context, &g, NULL), "kernel is NULL");
    assert_ok(rung_plan_create(&plan, context, &g));
    EXPECT(rung_plan_run(NULL, &g), "plan is NULL");
    EXPECT(rung_plan_run(plan, NULL), "gemm is NULL");
    EXPECT(rung_ssum(context, 4, NULL, x), "x is NULL");
    EXPECT(rung_ssum(context, 4, x, NULL), "result is NULL");
    EXPECT(rung_context_guard_counts(context, NULL), "counts is NULL");
    rung_plan_destroy(plan);
    rung_plan_destroy(NULL);
    rung_context_destroy(context);
}

static void no_ranks(void **state)
{
    (void)state;
    rung_matrix d;
    float *parts[] = {x};
    const float *const *from = (const float *const *)parts;
    void *memory;
    rung_matrix_init(&d, 4, 4, 4, 4, 1, 1);
    EXPECT(rung_psgemm(NULL, RUNG_NO_TRANS, RUNG_NO_TRANS, 4, 4, 4, 1.0f, from, 1, 1, &d, from, 1, 1, &d, 0.0f, parts,
                       1, 1, &d),
           "multi is NULL");
    EXPECT(rung_redistribute(NULL, 4, 4, from, 1, 1, &d, parts, 1, 1, &d), "multi is NULL");
    EXPECT(rung_scatter(NULL, 0, x, 4, parts, &d), "multi is NULL");
    EXPECT(rung_gather(NULL, 0, from, &d, x, 4), "multi is NULL");
    EXPECT(rung_multi_sgemm(NULL, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 4, 4, 4, 1.0f, x, 4, x, 4, 0.0f, x + 32,
                            4),
           "multi is NULL");
    EXPECT(rung_multi_alloc(NULL, 0, 4, &memory), "multi is NULL");
    EXPECT(rung_multi_host_alloc(NULL, 4, &memory), "multi is NULL");
    EXPECT(rung_multi_upload(NULL, 0, x, x, 4), "multi is NULL");
    EXPECT(rung_multi_download(NULL, 0, x, x, 4), "multi is NULL");
    EXPECT(rung_multi_barrier(NULL), "multi is NULL");
    EXPECT(rung_multi_trace(NULL, 1), "multi is NULL");
    EXPECT(rung_multi_create(NULL, NULL), "rung_multi_create was given NULL for the result");
    rung_multi_destroy(NULL);
    assert_int_equal(rung_multi_ranks(NULL), 0);
    assert_int_equal(rung_multi_first_rank(NULL), 0);
    assert_int_equal(rung_multi_held_ranks(NULL), 0);
    assert_int_equal(rung_multi_device(NULL, 0), RUNG_DEVICE_CPU);
    const rung_span *spans;
    assert_int_equal(rung_multi_spans(NULL, &spans), 0);
    assert_null(spans);
}

static void no_memory_of_ranks(void **state)
{
    (void)state;
    rung_multi *multi;
    rung_multi_config config;
    const int cpu = RUNG_DEVICE_CPU;
    rung_multi_config_init(&config);
    config.ranks = 1;
    config.devices = &cpu;
    assert_ok(rung_multi_create(&multi, &config));
    EXPECT(rung_multi_alloc(multi, 0, 4, NULL), "memory is NULL");
    EXPECT(rung_multi_host_alloc(multi, 4, NULL), "memory is NULL");
    EXPECT(rung_multi_upload(multi, 0, NULL, x, 4), "to is NULL");
    EXPECT(rung_multi_upload(multi, 0, x, NULL, 4), "from is NULL");
    EXPECT(rung_multi_download(multi, 0, NULL, x, 4), "to is NULL");
    EXPECT(rung_multi_download(multi, 0, x, NULL, 4), "from is NULL");
    assert_ok(rung_multi_upload(multi, 0, NULL, NULL, 0));
    assert_int_equal(rung_multi_spans(multi, NULL), 0);
    rung_multi_destroy(multi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_context), cmocka_unit_test(no_argument),
                                       cmocka_unit_test(no_ranks), cmocka_unit_test(no_memory_of_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
