/* Contexts, settings, plans and their cache, names and versions. */
#include "support.h"
#include "rung_tools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rung_config cpu_config(void)
{
    rung_config config;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    return config;
}

static void expect_config_refused(const rung_config *config, const char *words)
{
    rung_context *context = (rung_context *)&context;
    assert_int_equal(rung_context_create(&context, config), RUNG_INVALID_ARGUMENT);
    assert_null(context);
    assert_non_null(strstr(rung_last_error(), words));
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    assert_int_equal(rung_context_create(NULL, NULL), RUNG_INVALID_ARGUMENT);
    rung_config config = cpu_config();
    config.device = RUNG_DEVICE_BEST - 1;
    expect_config_refused(&config, "device is -3");
    config = cpu_config();
    config.threads = -1;
    expect_config_refused(&config, "threads is -1");
    config.threads = RUNG_MOST_THREADS + 1;
    expect_config_refused(&config, "threads is 4097: at most 4096");
    config = cpu_config();
    config.math = 3;
    expect_config_refused(&config, "math is 3");
    config = cpu_config();
    config.pointers = RUNG_POINTERS_HOST + 1;
    expect_config_refused(&config, "pointers is 3");
    config.pointers = (rung_pointers)-1;
    expect_config_refused(&config, "pointers is -1");
}

/* Each setting at the last number that is allowed: by a configuration, by a call, by the environment. */
static void the_last_number_that_is_allowed_is_taken(void **state)
{
    (void)state;
    rung_context *context;
    rung_config config = cpu_config();
    config.threads = RUNG_MOST_THREADS;
    config.math = RUNG_FAST;
    config.pointers = RUNG_POINTERS_HOST;
    assert_ok(rung_context_create(&context, &config));
    assert_int_equal(rung_context_threads(context), RUNG_MOST_THREADS);
    assert_int_equal(rung_context_math(context), RUNG_FAST);
    assert_ok(rung_context_set_threads(context, 1));
    assert_ok(rung_context_set_threads(context, RUNG_MOST_THREADS));
    assert_int_equal(rung_context_threads(context), RUNG_MOST_THREADS);
    assert_int_equal(rung_context_set_threads(context, RUNG_MOST_THREADS + 1), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_set_threads(context, -1), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_set_pointers(context, RUNG_POINTERS_HOST + 1), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_set_math(context, RUNG_FAST + 1), RUNG_INVALID_ARGUMENT);
    assert_ok(rung_context_set_threads(context, 0));
    assert_ok(rung_process_set_threads(RUNG_MOST_THREADS));
    assert_int_equal(rung_context_threads(context), RUNG_MOST_THREADS);
    assert_int_equal(rung_process_set_threads(RUNG_MOST_THREADS + 1), RUNG_INVALID_ARGUMENT);
    assert_ok(rung_process_set_threads(0));
    rung_context_destroy(context);
}

static void a_refused_setting_changes_nothing(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    assert_int_equal(rung_context_set_math(context, 77), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_math(context), RUNG_STRICT);
    assert_int_equal(rung_context_set_threads(context, -2), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_set_pointers(context, 9), RUNG_INVALID_ARGUMENT);
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    assert_int_equal(rung_context_math(context), RUNG_ACCURATE);
    assert_ok(rung_context_set_workspace_limit(context, 1 << 20));
    assert_ok(rung_context_set_stream(context, NULL));
    assert_ok(rung_context_synchronize(context));
    rung_context_destroy(context);
    rung_context_destroy(NULL);
}

/* What failed last stays so after calls that succeed, also where one of their ways fails: without a GPU that of the
 * best device. */
static void a_call_that_succeeds_is_no_failure(void **state)
{
    (void)state;
    rung_context *context = test_context(1), *best;
    float x[4] = {0}, y[4] = {0}, z[4] = {0};
    assert_int_equal(
        rung_sgemm(context, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 2, 2, 2, 1.0f, x, 1, y, 2, 0.0f, z, 2),
        RUNG_INVALID_ARGUMENT);
    const char *said = rung_last_error();
    for (int i = 0; i < 3; i++) {
        assert_ok(rung_context_create(&best, NULL));
        assert_ok(
            rung_sgemm(context, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 2, 2, 2, 0.0f, x, 2, y, 2, 0.0f, z, 2));
        rung_context_destroy(best);
        assert_int_equal(rung_last_error_argument(), 8);
        assert_string_equal(said, "lda is 1: it must be at least 2, the length of a stored line of A");
        assert_string_equal(rung_last_error(), said);
    }
    assert_int_equal(rung_context_set_threads(context, -2), RUNG_INVALID_ARGUMENT);
    assert_string_equal(rung_last_error(), "threads is -2: it must not be negative");
    assert_int_equal(rung_last_error_argument(), 0);
    rung_context_destroy(context);
}

static int threads_of(const char *rung, const char *omp, int given)
{
    rung ? setenv("RUNG_NUM_THREADS", rung, 1) : unsetenv("RUNG_NUM_THREADS");
    omp ? setenv("OMP_NUM_THREADS", omp, 1) : unsetenv("OMP_NUM_THREADS");
    rung_config config = cpu_config();
    config.threads = given;
    rung_context *context;
    assert_ok(rung_context_create(&context, &config));
    int threads = rung_context_threads(context);
    rung_context_destroy(context);
    unsetenv("RUNG_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    return threads;
}

static void threads_come_from_the_context_then_the_environment(void **state)
{
    (void)state;
    assert_int_equal(threads_of("3", "2", 4), 4);
    assert_int_equal(threads_of("3", "2", 0), 3);
    assert_int_equal(threads_of(NULL, "2", 0), 2);
    int cores = threads_of(NULL, NULL, 0);
    assert_true(cores >= 1);
    assert_int_equal(threads_of("", "nonsense", 0), cores); /* which is another library's to judge */
}

/* Each variable that says how many threads there are, with each number around what it may say; other libraries' lists
 * count by their first entry, and what is no number in the allowed range says nothing. */
static void each_variable_is_read_as_it_is(void **state)
{
    (void)state;
    static const char *const names[] = {"RUNG_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                        "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
    enum { NAMES = sizeof names / sizeof *names };
    static const struct {
        const char *text;
        int says; /* 0: nothing */
    } values[] = {
        {"1", 1},          {"7", 7},          {" 6", 6},         {"+5", 5},          {"05", 5},
        {"4096", 4096},    {"4097", 0},       {"0", 0},          {"-1", 0},          {"", 0},
        {"4294967295", 0}, {"4294967296", 0}, {"4294967297", 0}, {"-4294967295", 0}, {"18446744073709551617", 0},
        {"3,2", 3},        {"4 x", 4},        {"x4", 0},         {"0x4", 0},         {"2147483648", 0}};
    char *before[NAMES];
    for (int i = 0; i < NAMES; i++) {
        before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        unsetenv(names[i]);
    }
    const int cores = rung_process_threads();
    for (int i = 0; i < NAMES; i++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            setenv(names[i], values[v].text, 1);
            const int alone = rung_process_threads();
            if (alone != (values[v].says ? values[v].says : cores))
                fail_msg("%s=%s: %d threads", names[i], values[v].text, alone);
            if (i + 1 < NAMES) {
                setenv(names[i + 1], "11", 1);
                const int both = rung_process_threads();
                if (both != (values[v].says ? values[v].says : 11))
                    fail_msg("%s=%s before %s=11: %d threads", names[i], values[v].text, names[i + 1], both);
                unsetenv(names[i + 1]);
            }
            unsetenv(names[i]);
        }
    for (int i = 0; i < NAMES; i++) {
        if (before[i])
            setenv(names[i], before[i], 1);
        free(before[i]);
    }
}

/* A misspelt value of a variable is not passed over: the message says what it may be. */
static void wrong_variables_are_named(void **state)
{
    (void)state;
    static const char *const threads[] = {"nonsense", "4x", "-1", "4097", "1,2", "99999999999999999999"};
    rung_config config = cpu_config();
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "RUNG_NUM_THREADS is '%s': set it to a number from 1 to 4096", threads[i]);
        setenv("RUNG_NUM_THREADS", threads[i], 1);
        expect_config_refused(&config, words);
    }
    unsetenv("RUNG_NUM_THREADS");
    const char *before = getenv("RUNG_CPU_FEATURES");
    char *kept = before ? strdup(before) : NULL;
    setenv("RUNG_CPU_FEATURES", "avx512,avx3", 1);
    expect_config_refused(&config, "RUNG_CPU_FEATURES is 'avx512,avx3': set it to avx512, avx2, avx, neon");
    kept ? setenv("RUNG_CPU_FEATURES", kept, 1) : unsetenv("RUNG_CPU_FEATURES");
    setenv("RUNG_CPU_PLAN", "zen", 1);
    expect_config_refused(&config, "RUNG_CPU_PLAN is 'zen': set it to zen1, zen3, zen4, zen5 or emerald");
    unsetenv("RUNG_CPU_PLAN");
    free(kept);
    assert_int_equal(threads_of("0", "2", 0), 2);
}

/* The number holds for every context of the process at once; one that names a smaller number keeps it. */
static void the_process_limits_all_contexts(void **state)
{
    (void)state;
    setenv("RUNG_NUM_THREADS", "5", 1);
    assert_int_equal(rung_process_threads(), 5);
    rung_context *any = test_context(0), *two = test_context(2), *eight = test_context(8);
    assert_ok(rung_process_set_threads(3));
    assert_int_equal(rung_process_threads(), 3);
    assert_int_equal(rung_context_threads(any), 3);
    assert_int_equal(rung_context_threads(two), 2);
    assert_int_equal(rung_context_threads(eight), 3);
    assert_ok(rung_process_set_threads(6));
    assert_int_equal(rung_context_threads(any), 6);
    assert_int_equal(rung_process_set_threads(-1), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "threads is -1"));
    assert_ok(rung_process_set_threads(0));
    assert_int_equal(rung_context_threads(any), 5);
    assert_int_equal(rung_context_threads(eight), 8);
    unsetenv("RUNG_NUM_THREADS");
    rung_context_destroy(any);
    rung_context_destroy(two);
    rung_context_destroy(eight);
}

static int says_threads(rung_context *context, int threads)
{
    rung_gemm g;
    rung_plan *plan;
    char text[8192], words[32];
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 2000;
    g.a = g.b = (const float *)(uintptr_t)4096, g.c = (float *)(uintptr_t)8192;
    assert_ok(rung_plan_create(&plan, context, &g));
    rung_plan_print(plan, text, sizeof text);
    rung_plan_destroy(plan);
    snprintf(words, sizeof words, "  %d thread%s, ", threads, threads > 1 ? "s" : "");
    return strstr(text, words) != NULL;
}

/* A plan is remembered for the threads that it was made with. */
static void a_plan_says_the_threads_of_now(void **state)
{
    (void)state;
    rung_context *context = test_context(4);
    assert_true(says_threads(context, 4));
    assert_ok(rung_process_set_threads(1));
    assert_true(says_threads(context, 1));
    assert_ok(rung_process_set_threads(0));
    assert_true(says_threads(context, 4));
    rung_context_destroy(context);
}

/* Of a product that nobody can run a plan can be made, by numbers that do not overflow. */
static void the_largest_products_are_large(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1 << 22, 1 << 22, 1 << 22},
                                       {1, 1 << 30, 1 << 30},
                                       {1 << 30, 1, 1 << 30},
                                       {1 << 30, 1 << 30, 1},
                                       {1 << 30, 1 << 30, 1 << 30}};
    rung_context *context = test_context(4);
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        rung_gemm g;
        rung_plan *plan;
        char text[8192];
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.trans_a = i & 1 ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = i & 2 ? RUNG_TRANS : RUNG_NO_TRANS;
        g.m = sizes[i / 4][0], g.n = sizes[i / 4][1], g.k = sizes[i / 4][2];
        g.lda = g.trans_a ? g.m : g.k, g.ldb = g.trans_b ? g.k : g.n, g.ldc = g.n + 1; /* no column is a row */
        g.a = g.b = (const float *)(uintptr_t)4096, g.c = (float *)(uintptr_t)8192;
        assert_ok(rung_plan_create(&plan, context, &g));
        rung_plan_print(plan, text, sizeof text);
        rung_plan_destroy(plan);
        if (!strstr(text, "both operands packed (is_large)"))
            fail_msg("%lld x %lld x %lld, transposes %d:\n%s", (long long)g.m, (long long)g.n, (long long)g.k,
                     (int)i % 4, text);
    }
    rung_context_destroy(context);
}

/* Whatever is set in whatever order, a context's number of threads is what the settings say now, not what they said
 * before. */
static void threads_follow_a_model(void **state)
{
    (void)state;
    enum { CONTEXTS = 3, STEPS = 4000, OF_ENVIRONMENT = 5 };
    static const int numbers[] = {0, 1, 2, 5, 8};
    rung_context *contexts[CONTEXTS];
    int asked[CONTEXTS] = {0}, most = 0;
    unsigned dice = 3;
#define DRAW(below) (int)((dice = dice * 1103515245u + 12345u) >> 16) % (below)
    setenv("RUNG_NUM_THREADS", "5", 1);
    for (int i = 0; i < CONTEXTS; i++)
        contexts[i] = test_context(0);
    for (int step = 0; step < STEPS; step++) {
        const int i = DRAW(CONTEXTS), number = numbers[DRAW(5)], what = DRAW(8);
        if (what < 3)
            assert_ok(rung_context_set_threads(contexts[i], asked[i] = number));
        else if (what == 3)
            assert_ok(rung_process_set_threads(most = number));
        else if (what == 4)
            assert_ok(rung_context_set_math(contexts[i], (rung_math)(number % 3)));
        else if (what == 5)
            assert_int_equal(rung_context_set_threads(contexts[i], -1 - number), RUNG_INVALID_ARGUMENT);
        else if (what == 6)
            assert_ok(rung_context_set_workspace_limit(contexts[i], number));
        else if (number == 8) {
            rung_context_destroy(contexts[i]);
            contexts[i] = test_context(asked[i] = numbers[DRAW(5)]);
        }
        for (int j = 0; j < CONTEXTS; j++) {
            const int wanted = !most                         ? (asked[j] ? asked[j] : OF_ENVIRONMENT)
                               : asked[j] && asked[j] < most ? asked[j]
                                                             : most;
            if (rung_context_threads(contexts[j]) != wanted)
                fail_msg("step %d: a context that asked for %d has %d threads, where the process may have %d", step,
                         asked[j], rung_context_threads(contexts[j]), most);
        }
        assert_int_equal(rung_process_threads(), most ? most : OF_ENVIRONMENT);
    }
#undef DRAW
    assert_ok(rung_process_set_threads(0));
    unsetenv("RUNG_NUM_THREADS");
    for (int i = 0; i < CONTEXTS; i++)
        rung_context_destroy(contexts[i]);
}

static void the_context_knows_its_device(void **state)
{
    (void)state;
    rung_config config = cpu_config();
    rung_context *context;
    assert_ok(rung_context_create(&context, &config));
    assert_int_equal(rung_context_device(context), RUNG_DEVICE_CPU);
    rung_context_destroy(context);
    assert_ok(rung_context_create(&context, NULL)); /* the best there is: always something */
    rung_context_destroy(context);
}

static void plans_run_again_and_again(void **state)
{
    (void)state;
    rung_context *context = test_context(2);
    for (int seed = 0; seed < 3; seed++) {
        product p;
        product_new(&p, RUNG_COL_MAJOR, 1, 0, 40, 50, 60, 2, 1, (uint64_t)seed);
        rung_plan *plan;
        assert_ok(rung_plan_create(&plan, context, &p.gemm));
        assert_non_null(rung_kernel_find(rung_plan_kernel(plan)));
        assert_true(rung_plan_workspace_bytes(plan) >= 0);
        for (int i = 0; i < 3; i++) { /* alpha and beta are no part of it */
            p.gemm.alpha = 1.0f - (float)i;
            p.gemm.beta = (float)(i + seed) / 4.0f;
            product_reset(&p);
            assert_ok(rung_plan_run(plan, &p.gemm));
            product_check(&p, "plan");
        }
        rung_plan_destroy(plan);
        product_free(&p);
    }
    rung_context_destroy(context);
    rung_plan_destroy(NULL);
}

/* One thing at a time is not as in the product that the plan was made for; *c is where the result would go. */
static int differs(int which, rung_gemm *g, const float *bias)
{
    switch (which) {
    case 0: g->m--; return 1;
    case 1: g->n--; return 1;
    case 2: g->k--; return 1;
    case 3: g->trans_a = RUNG_TRANS; return 1;
    case 4: g->trans_b = RUNG_TRANS; return 1;
    case 5: g->lda++; return 1;
    case 6: g->ldb++; return 1;
    case 7: g->ldc++; return 1;
    case 8: g->layout = RUNG_COL_MAJOR; return 1;
    case 9: g->batch = 2, g->stride_a = g->stride_b = g->stride_c = 128 * 128; return 1;
    case 10: g->a++; return 1; /* at worse multiples of bytes */
    case 11: g->b++; return 1;
    case 12: g->c++; return 1;
    case 13: g->bias = bias, g->bias_kind = RUNG_BIAS_PER_ROW; return 1;
    case 14: g->activation = RUNG_RELU; return 1;
    default: return 0;
    }
}

/* A plan is as it was made, whatever its context is told afterwards. */
static void a_plan_outlives_settings(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    for (int size = 8; size <= 128; size += 120) /* a small product goes another way */
        for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
            char text[8192];
            product p;
            rung_plan *plan;
            product_new(&p, RUNG_ROW_MAJOR, 0, 0, size, size, size, 1, 1, 1);
            assert_ok(rung_context_set_math(context, RUNG_STRICT));
            assert_ok(rung_plan_create(&plan, context, &p.gemm));
            assert_ok(rung_context_set_math(context, (rung_math)math));
            assert_ok(rung_context_set_threads(context, 2));
            assert_ok(rung_context_set_pointers(context, RUNG_POINTERS_HOST));
            assert_ok(rung_context_set_workspace_limit(context, -1));
            product_reset(&p);
            assert_ok(rung_plan_run(plan, &p.gemm));
            product_check(&p, "a plan after other settings");
            rung_plan_print(plan, text, sizeof text);
            assert_non_null(strstr(text, ", strict\n"));
            rung_plan_destroy(plan);
            product_free(&p);
        }
    rung_context_destroy(context);
}

static void a_plan_refuses_another_shape(void **state)
{
    (void)state;
    enum { LD = 128, FLOATS = 3 * LD * LD };
    static _Alignas(64) float a[FLOATS], b[FLOATS], c[FLOATS], bias[LD];
    rung_context *context = test_context(1);
    for (int small = 0; small < 2; small++) {
        rung_gemm g, other;
        rung_plan *plan;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = small ? 20 : 120, g.n = g.m - 2, g.k = g.m - 4;
        g.lda = g.ldb = g.ldc = LD;
        g.a = a, g.b = b, g.c = c;
        for (int i = 0; i < FLOATS; i++)
            a[i] = b[i] = 1.0f, c[i] = -1.0f;
        assert_ok(rung_plan_create(&plan, context, &g));
        for (int which = 0; differs(which, (other = g, &other), bias); which++) {
            if (small && which >= 10 && which <= 12) /* for those no address is worse than another */
                continue;
            rung_status status = rung_plan_run(plan, &other);
            if (status != RUNG_INVALID_ARGUMENT)
                fail_msg("a plan took what differs by thing %d: %s", which, rung_status_name(status));
            for (int i = 0; i < FLOATS; i++)
                assert_true(c[i] == -1.0f);
        }
        assert_ok(rung_plan_run(plan, &g));
        assert_true(c[0] == (float)g.k && c[g.n] == -1.0f);
        rung_plan_destroy(plan);
    }
    rung_context_destroy(context);
}

static void a_plan_prints_its_decision(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 1, 33, 44, 55, 0, 1, 1);
    rung_plan *plan;
    assert_ok(rung_plan_create(&plan, context, &p.gemm));
    char text[8192], little[10];
    int length = rung_plan_print(plan, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, rung_plan_kernel(plan)));
    assert_non_null(strstr(text, "33 x 44 x 55"));
    assert_non_null(strstr(text, "ranking"));
    assert_int_equal(rung_plan_print(plan, little, sizeof little), length); /* as snprintf does */
    assert_int_equal(strlen(little), sizeof little - 1);
    assert_int_equal(rung_plan_print(plan, NULL, 0), length);
    rung_plan_destroy(plan);
    product_free(&p);
    rung_context_destroy(context);
}

/* What a kernel does not have, it refuses: it must not compute without it. */
static void kernels_refuse_what_they_lack(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    product p;
    float bias[64] = {0};
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 30, 31, 32, 1, 1, 1);
    for (int form = 1; form < 4; form++)
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *kernel = rung_kernel_at(i);
            rung_plan *plan = NULL;
            p.gemm.bias_kind = form & 1 ? RUNG_BIAS_PER_ROW : RUNG_NO_BIAS;
            p.gemm.bias = bias;
            p.gemm.activation = form & 2 ? RUNG_RELU : RUNG_IDENTITY;
            if ((kernel->accepts & RUNG_ACCEPTS_EPILOGUE) || rung_kernel_unusable(context, kernel))
                continue;
            assert_int_equal(rung_plan_create_kernel(&plan, context, &p.gemm, kernel->name), RUNG_UNSUPPORTED);
        }
    product_free(&p);
    rung_context_destroy(context);
}

/* The planner takes the fastest: on this CPU's own instruction set, unless the environment says otherwise. */
static void the_cheapest_kernel_wins(void **state)
{
    (void)state;
#if defined(__x86_64__)
    rung_context *context = test_context(1);
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 80, 70, 90, 1, 1, 1);
    assert_ok(rung_gemm_run(context, &p.gemm));
    const char *kernel = rung_last_kernel(context);
    if (!getenv("RUNG_CPU_FEATURES") && __builtin_cpu_supports("avx2"))
        assert_true(strncmp(kernel, __builtin_cpu_supports("avx512f") ? "avx512" : "avx2", 4) == 0 &&
                    (kernel[3] == '2') == !__builtin_cpu_supports("avx512f"));
    product_free(&p);
    rung_context_destroy(context);
#endif
}

/* Which kernel answered last: a small product's, a larger one's and a plan's are told, what was refused changes
 * nothing, and where nothing was to do there is none. */
static void the_last_kernel_is_of_the_last_product(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    rung_plan *plan = NULL;
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 150, 140, 130, 1, 1, 1);
    assert_null(rung_last_kernel(context));
    assert_ok(rung_plan_create_kernel(&plan, context, &p.gemm, "c02_loop_order"));
    assert_null(rung_last_kernel(context));
    for (int size = 8; size <= 128; size += 120)
        for (int way = 0; way < 4; way++) {
            rung_gemm g = p.gemm, nothing = p.gemm;
            g.m = g.n = g.k = size;
            g.activation = way == 1 ? RUNG_RELU : RUNG_IDENTITY;
            if (way == 2)
                assert_ok(rung_plan_run(plan, &p.gemm));
            else
                assert_ok(rung_gemm_run(context, &g));
            const char *kernel = rung_last_kernel(context);
            assert_non_null(kernel);
            assert_int_equal(strcmp(kernel, "c02_loop_order") == 0, way == 2);
            g.lda = 1;
            assert_int_equal(rung_gemm_run(context, &g), RUNG_INVALID_ARGUMENT);
            assert_string_equal(rung_last_kernel(context), kernel);
            nothing.alpha = 0.0f, nothing.beta = 1.0f;
            nothing.m = way == 3 ? 0 : nothing.m;
            assert_ok(way == 2 ? rung_plan_run(plan, &nothing) : rung_gemm_run(context, &nothing));
            assert_null(rung_last_kernel(context));
        }
    rung_plan_destroy(plan);
    product_free(&p);
    rung_context_destroy(context);
}

static void assert_refused(rung_status status, const char *words)
{
    assert_int_equal(status, RUNG_UNSUPPORTED);
    assert_non_null(strstr(rung_last_error(), words));
}

/* The first line says which product a plan is of, in the caller's own order, whether there is anything to do or not. */
static void a_plan_says_of_which_product(void **state)
{
    enum { FORMS = 3, LINE = 160 }; /* a single product, a batch, pointer arrays */
    static const char *const maths[] = {"strict", "accurate", "fast"}, *const batches[FORMS] = {
                                                                           "", ", batch 3",
                                                                           ", batch 3 (pointer arrays)"};
    static const int64_t sizes[][3] = {{5, 6, 7}, {0, 6, 7}, {5, 0, 7}, {5, 6, 0}};
    static float memory[4096];
    const float *const inputs[3] = {memory, memory, memory};
    float *const outputs[3] = {memory + 1024, memory + 2048, memory + 3072};
    rung_context *context = test_context(1);
    (void)state;
    for (int i = 0; i < 4 * FORMS * 2 * 3 * 4; i++) {
        const int form = i / 4 % FORMS, layout = i / 12 % 2, math = i / 24 % 3, trans_a = i / 72 & 1, trans_b = i / 144;
        const int64_t *size = sizes[i % 4];
        char expected[LINE], text[8192];
        rung_gemm g;
        rung_plan *plan;
        rung_gemm_init(&g);
        g.layout = layout ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
        g.trans_a = trans_a ? RUNG_TRANS : RUNG_NO_TRANS;
        g.trans_b = trans_b ? RUNG_TRANS : RUNG_NO_TRANS;
        g.m = size[0], g.n = size[1], g.k = size[2], g.lda = 8, g.ldb = 9, g.ldc = 10;
        g.beta = 1.0f; /* so that there is nothing to do where k is 0 */
        g.batch = form ? 3 : 1;
        g.stride_a = g.stride_b = 100, g.stride_c = 200;
        if (form == 2)
            g.a_array = inputs, g.b_array = inputs, g.c_array = outputs;
        else
            g.a = memory, g.b = memory + 512, g.c = memory + 1024;
        assert_ok(rung_context_set_math(context, (rung_math)math));
        assert_ok(rung_plan_create(&plan, context, &g));
        rung_plan_print(plan, text, sizeof text);
        snprintf(expected, LINE, "problem    %s %d x %d x %d, %c%c, lda 8 ldb 9 ldc 10%s, %s\n",
                 layout ? "row-major" : "column-major", (int)g.m, (int)g.n, (int)g.k, "NT"[trans_a], "NT"[trans_b],
                 batches[form], maths[math]);
        if (strncmp(text, expected, strlen(expected)) != 0)
            fail_msg("a plan of %s begins with %.160s", expected, text);
        assert_int_equal(strstr(text, "nothing to do") != NULL, i % 4 != 0);
        rung_plan_destroy(plan);
    }
    rung_context_destroy(context);
}

static void kernels_by_name(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 30, 31, 32, 1, 1, 1);
    rung_plan *plan;
    assert_int_equal(rung_plan_create_kernel(&plan, context, &p.gemm, "no_such_kernel"), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "no_such_kernel"));
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        rung_status status = rung_plan_create_kernel(&plan, context, &p.gemm, kernel->name);
        const char *reason = rung_kernel_unusable(context, kernel);
        if (reason) {
            assert_refused(status, kernel->name);
            assert_refused(status, kernel->backend == RUNG_BACKEND_CPU ? reason : "is not a kernel of the CPU backend");
            assert_true(kernel->backend == RUNG_BACKEND_CPU || strcmp(reason, "a GPU kernel") == 0);
            continue;
        }
        if (status == RUNG_UNSUPPORTED) { /* a path for other shapes */
            assert_refused(status, "cannot run this product: ");
            continue;
        }
        assert_ok(status);
        assert_string_equal(rung_plan_kernel(plan), kernel->name);
        product_reset(&p);
        assert_ok(rung_plan_run(plan, &p.gemm));
        if (kernel->arith == RUNG_F32)
            product_check(&p, kernel->name);
        rung_plan_destroy(plan);
    }
    product_free(&p);
    rung_context_destroy(context);
}

/* More shapes than the context remembers, twice over, with a change of settings between. */
static void remembered_plans_stay_right(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 600; i++) {
            product p;
            product_new(&p, RUNG_ROW_MAJOR, i & 1, i >> 1 & 1, 1 + i % 7, 1 + i % 11, 1 + i % 13, i % 4, 1,
                        (uint64_t)i);
            p.gemm.beta = i % 3 ? 0.0f : 1.0f;
            product_reset(&p);
            assert_ok(rung_gemm_run(context, &p.gemm));
            product_check(&p, "remembered plan");
            product_free(&p);
        }
        assert_ok(rung_context_set_threads(context, 2));
    }
    rung_context_destroy(context);
}

/* Runs two products of m x 1 x 1, for which small ones have no way of their own, and returns how many plans it took. */
static int64_t plans_made(rung_context *context, int64_t m, int64_t ld)
{
    static float a[8192], b[1], c[2 * 8192];
    rung_recent_counts before, after;
    rung_recent_count(&before);
    assert_ok(rung_sgemm_strided_batched(context, RUNG_COL_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, m, 1, 1, 1.0f, a, ld, 0,
                                         b, ld, 0, 0.0f, c, ld, 8192, 2));
    rung_recent_count(&after);
    assert_int_equal(after.planned - before.planned + after.found - before.found, 1);
    return after.planned - before.planned;
}

/* What the table of recent plans should hold: the rule of core/recent.c, written down once more. */
enum { KEPT = 8192, SHAPES = 3 * KEPT };
typedef struct expected {
    int32_t shape_at[KEPT], place_of[SHAPES]; /* places count from 1 */
    char asked[KEPT];
    int32_t count, hand;
    int64_t found, planned;
} expected;

static void expect_shape(expected *e, int32_t shape)
{
    if (e->place_of[shape]) {
        e->asked[e->place_of[shape] - 1] = 1;
        e->found++;
        return;
    }
    e->planned++;
    int32_t place = e->count;
    if (e->count < KEPT) {
        e->count++;
    } else {
        for (; e->asked[e->hand]; e->hand = (e->hand + 1) % KEPT)
            e->asked[e->hand] = 0;
        place = e->hand;
        e->hand = (e->hand + 1) % KEPT;
        e->place_of[e->shape_at[place]] = 0;
    }
    e->shape_at[place] = shape;
    e->asked[place] = 0;
    e->place_of[shape] = place + 1;
}

static void ask_for(rung_context *context, expected *e, int32_t shape)
{
    static float a[1], b[1], c[2];
    rung_gemm g;
    rung_plan *plan;
    rung_recent_counts counts;
    rung_gemm_init(&g);
    g.m = 1 + shape, g.n = g.k = 1;
    g.lda = g.ldc = SHAPES, g.ldb = 1;
    g.a = a, g.b = b, g.c = c; /* nothing is run */
    assert_ok(rung_plan_create(&plan, context, &g));
    rung_plan_destroy(plan);
    expect_shape(e, shape);
    rung_recent_count(&counts);
    if (counts.found != e->found || counts.planned != e->planned)
        fail_msg("shape %d: %lld found and %lld planned, not %lld and %lld", (int)shape, (long long)counts.found,
                 (long long)counts.planned, (long long)e->found, (long long)e->planned);
}

/* A table that grows, is full, and is full of shapes that were all asked for again, by shapes in turn and as a seed
 * draws them: each call finds its plan where the rule says that it is there, and only there. */
static void *remember_by_the_rule(void *of)
{
    rung_context *context = of;
    static expected e;
    uint32_t dice = 1;
    for (int32_t i = 0; i < KEPT; i++)
        ask_for(context, &e, i);
    for (int32_t i = 0; i < KEPT; i++) /* all are asked for again, so that the hand goes round once */
        ask_for(context, &e, i);
    for (int32_t i = 0; i < KEPT + 100; i++)
        ask_for(context, &e, KEPT + i);
    for (int32_t i = 0; i < 4 * KEPT; i++) {
        dice = dice * 1664525u + 1013904223u;
        const int32_t drawn = (int32_t)(dice >> 8);
        ask_for(context, &e, drawn % 4 ? drawn / 4 % (KEPT + 500) : drawn / 4 % SHAPES);
    }
    return NULL;
}

static void plans_are_remembered_by_the_rule(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    pthread_t thread; /* which remembers nothing yet */
    alarm(300);
    assert_int_equal(pthread_create(&thread, NULL, remember_by_the_rule, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    alarm(0);
    rung_context_destroy(context);
}

/* Instructions that are hidden from a context are so for shapes that a context before it had planned with them. */
static void plans_with_hidden_instructions_are_not_taken(void **state)
{
    (void)state;
    enum { BATCH = 3, SIDE = 8, FLOATS = SIDE * SIDE };
    static float a[BATCH * FLOATS], b[FLOATS], c[BATCH * FLOATS];
    const char *before = getenv("RUNG_CPU_FEATURES");
    char *kept = before ? strdup(before) : NULL, kernels[3][64];
    for (int i = 0; i < 3; i++) {
        rung_context *of_cpu;
        rung_config config;
        rung_config_init(&config);
        config.device = RUNG_DEVICE_CPU;
        if (i == 1)
            setenv("RUNG_CPU_FEATURES", "none", 1);
        else
            kept ? setenv("RUNG_CPU_FEATURES", kept, 1) : unsetenv("RUNG_CPU_FEATURES");
        assert_ok(rung_context_create(&of_cpu, &config));
        assert_ok(rung_sgemm_strided_batched(of_cpu, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, SIDE, SIDE, SIDE,
                                             1.0f, a, SIDE, FLOATS, b, SIDE, 0, 0.0f, c, SIDE, FLOATS, BATCH));
        snprintf(kernels[i], sizeof kernels[i], "%s", rung_last_kernel(of_cpu));
        rung_context_destroy(of_cpu);
    }
    free(kept);
    assert_non_null(strstr(kernels[1], "portable"));
    assert_string_equal(kernels[0], kernels[2]);
}

static void a_shape_is_planned_once(void **state)
{
    (void)state;
    rung_context *context = test_context(1), *other = test_context(1);
    assert_int_equal(plans_made(context, 101, 8192), 1);
    assert_int_equal(plans_made(context, 101, 8191), 1); /* another leading dimension is another shape */
    for (int i = 0; i < 3; i++) {                        /* and does not drive out the first */
        assert_int_equal(plans_made(context, 101, 8192), 0);
        assert_int_equal(plans_made(context, 101, 8191), 0);
    }
    assert_int_equal(plans_made(other, 101, 8192), 0); /* a thread's contexts know what each of them planned */
    assert_ok(rung_context_set_threads(other, 2));
    assert_int_equal(plans_made(other, 101, 8192), 1); /* on other settings there is another plan */
    assert_ok(rung_context_set_workspace_limit(other, 1 << 20));
    assert_int_equal(plans_made(other, 101, 8192), 1);
    assert_ok(rung_context_set_math(other, RUNG_ACCURATE));
    assert_int_equal(plans_made(other, 101, 8192), 1);
    assert_int_equal(plans_made(context, 101, 8192), 0);
    rung_context_destroy(context);
    rung_context_destroy(other);
}

static void thousands_of_shapes_are_remembered(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    int64_t made[2] = {0, 0};
    for (int round = 0; round < 2; round++)
        for (int64_t m = 4000; m < 4000 + 4096; m++)
            made[round] += plans_made(context, m, 8192);
    assert_int_equal(made[0], 4096);
    assert_int_equal(made[1], 0);
    /* More than it keeps: a shape that is asked for all the time stays. */
    for (int64_t i = 0; i < 12000; i++) {
        plans_made(context, 4000 + i / 2000, 8000 - i % 2000);
        assert_int_equal(plans_made(context, 4000, 8192), 0);
    }
    rung_context_destroy(context);
}

static void *plan_in_a_thread(void *context)
{
    static int64_t made;
    made = plans_made(context, 103, 8192) + plans_made(context, 103, 8192);
    return &made;
}

/* A context may go from thread to thread; each has plans of its own, which end with it. */
static void threads_remember_for_themselves(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    assert_int_equal(plans_made(context, 103, 8192), 1);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *made;
        assert_int_equal(pthread_create(&thread, NULL, plan_in_a_thread, context), 0);
        pthread_join(thread, &made);
        assert_int_equal(*(int64_t *)made, 1);
    }
    assert_int_equal(plans_made(context, 103, 8192), 0);
    rung_context_destroy(context);
}

static int64_t made_at_the_end;

static void plan_again(void *context)
{
    made_at_the_end = plans_made(context, 103, 8192) + plans_made(context, 103, 8192);
}

typedef struct ending {
    pthread_key_t key;
    rung_context *context;
    int64_t made;
} ending;

static void *plan_and_end(void *of)
{
    ending *e = of;
    pthread_setspecific(e->key, e->context);
    e->made = plans_made(e->context, 103, 8192);
    return NULL;
}

/* A key that comes after Rung's own has its turn when the thread's plans are gone. */
static void a_thread_may_plan_while_it_ends(void **state)
{
    (void)state;
    ending e = {.context = test_context(1)};
    pthread_t thread;
    assert_int_equal(plans_made(e.context, 104, 8192), 1); /* Rung has made its key by now */
    assert_int_equal(pthread_key_create(&e.key, plan_again), 0);
    assert_int_equal(pthread_create(&thread, NULL, plan_and_end, &e), 0);
    pthread_join(thread, NULL);
    pthread_key_delete(e.key);
    assert_int_equal(e.made, 1);
    assert_int_equal(made_at_the_end, 1);
    rung_context_destroy(e.context);
}

static void a_plan_for_nothing(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    rung_gemm g;
    rung_gemm_init(&g);
    g.n = g.k = 5;
    g.lda = g.ldb = g.ldc = 5;
    rung_plan *plan;
    assert_ok(rung_plan_create(&plan, context, &g));
    assert_ok(rung_plan_run(plan, &g));
    char text[1024];
    rung_plan_print(plan, text, sizeof text);
    assert_non_null(strstr(text, "decision   nothing to do: C stays as it is\n"));
    assert_string_equal(rung_plan_kernel(plan), "none: nothing to do");
    assert_string_equal(rung_tune_state(context), "this backend is not tuned by shape");
    rung_plan_destroy(plan);
    assert_int_equal(rung_plan_create_kernel(&plan, context, &g, "no_such_kernel"), RUNG_INVALID_ARGUMENT);
    assert_null(plan);
    assert_int_equal(rung_tune_record(context, &g, "no_such_kernel", 1.0), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "a product with nothing to do cannot be tuned"));
    g.m = 5;
    g.a = g.b = (const float *)text;
    g.c = (float *)text;
    assert_int_equal(rung_tune_record(context, &g, "no_such_kernel", 1.0), RUNG_UNSUPPORTED);
    assert_non_null(strstr(rung_last_error(), "CPU backend has nothing to tune"));
    rung_context_destroy(context);
}

/* A plan that was made where nothing was to do has no kernel, so that it fits no call that has something to do. */
static void a_plan_for_nothing_fits_nothing_else(void **state)
{
    (void)state;
    rung_context *context = test_context(1);
    float c[25] = {1.0f};
    rung_gemm g;
    rung_plan *plan;
    rung_gemm_init(&g);
    g.m = g.n = g.lda = g.ldb = g.ldc = 5;
    g.c = c;
    g.beta = 1.0f;
    assert_ok(rung_plan_create(&plan, context, &g));
    assert_ok(rung_plan_run(plan, &g));
    for (int i = 0; i < 3; i++) {
        rung_gemm other = g;
        other.beta = i == 0 ? 0.5f : 1.0f;
        other.k = i == 1 ? 5 : 0;
        other.a = other.b = (float[25]){0};
        other.activation = i == 2 ? RUNG_RELU : RUNG_IDENTITY;
        assert_int_equal(rung_plan_run(plan, &other), RUNG_INVALID_ARGUMENT);
        assert_non_null(strstr(rung_last_error(), "alignment or kind this plan was made for (5x5x0)"));
    }
    assert_true(c[0] == 1.0f);
    rung_plan_destroy(plan);
    rung_context_destroy(context);
}

static void names_and_versions(void **state)
{
    (void)state;
    for (int i = 0; i <= RUNG_INTERNAL; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(rung_status_name(i), rung_status_name(j));
    assert_string_equal(rung_status_name(99), "unknown status");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", RUNG_VERSION_MAJOR, RUNG_VERSION_MINOR, RUNG_VERSION_PATCH);
    assert_string_equal(rung_version(), version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(the_last_number_that_is_allowed_is_taken),
        cmocka_unit_test(a_call_that_succeeds_is_no_failure),
        cmocka_unit_test(a_refused_setting_changes_nothing),
        cmocka_unit_test(threads_come_from_the_context_then_the_environment),
        cmocka_unit_test(each_variable_is_read_as_it_is),
        cmocka_unit_test(wrong_variables_are_named),
        cmocka_unit_test(the_process_limits_all_contexts),
        cmocka_unit_test(a_plan_says_the_threads_of_now),
        cmocka_unit_test(the_largest_products_are_large),
        cmocka_unit_test(threads_follow_a_model),
        cmocka_unit_test(the_context_knows_its_device),
        cmocka_unit_test(plans_run_again_and_again),
        cmocka_unit_test(a_plan_outlives_settings),
        cmocka_unit_test(a_plan_refuses_another_shape),
        cmocka_unit_test(a_plan_prints_its_decision),
        cmocka_unit_test(a_plan_says_of_which_product),
        cmocka_unit_test(kernels_by_name),
        cmocka_unit_test(kernels_refuse_what_they_lack),
        cmocka_unit_test(the_cheapest_kernel_wins),
        cmocka_unit_test(the_last_kernel_is_of_the_last_product),
        cmocka_unit_test(remembered_plans_stay_right),
        cmocka_unit_test(plans_with_hidden_instructions_are_not_taken),
        cmocka_unit_test(a_shape_is_planned_once),
        cmocka_unit_test(plans_are_remembered_by_the_rule),
        cmocka_unit_test(thousands_of_shapes_are_remembered),
        cmocka_unit_test(threads_remember_for_themselves),
        cmocka_unit_test(a_thread_may_plan_while_it_ends),
        cmocka_unit_test(a_plan_for_nothing),
        cmocka_unit_test(a_plan_for_nothing_fits_nothing_else),
        cmocka_unit_test(names_and_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
