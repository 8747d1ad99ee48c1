/* Bad arguments: BLAS's order of checks, the position and the value reported, C untouched; quick returns; overflow. */
#include "support.h"

#include <math.h>
#include <string.h>

enum { ORDER = 4 };
static float a[ORDER * ORDER], b[ORDER * ORDER], c[ORDER * ORDER];
static rung_context *context;

static rung_gemm good(rung_layout layout)
{
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = layout;
    g.m = g.n = g.k = ORDER;
    g.lda = g.ldb = g.ldc = ORDER;
    g.a = a, g.b = b, g.c = c;
    return g;
}

static void poison(void)
{
    for (int i = 0; i < ORDER * ORDER; i++) {
        a[i] = b[i] = 1.0f;
        c[i] = (float)i;
    }
}

static void expect_refusal(const rung_gemm *g, int argument, const char *words)
{
    poison();
    assert_int_equal(rung_gemm_run(context, g), RUNG_INVALID_ARGUMENT);
    if (rung_last_error_argument() != argument)
        fail_msg("argument %d was blamed, not %d: %s", rung_last_error_argument(), argument, rung_last_error());
    if (!strstr(rung_last_error(), words))
        fail_msg("'%s' does not say '%s'", rung_last_error(), words);
    for (int i = 0; i < ORDER * ORDER; i++)
        assert_true(c[i] == (float)i);
}

/* Breaks argument `position` of a good call. */
static void spoil(rung_gemm *g, int position)
{
    switch (position) {
    case 1: g->trans_a = 7; break;
    case 2: g->trans_b = 8; break;
    case 3: g->m = -3; break;
    case 4: g->n = -4; break;
    case 5: g->k = -5; break;
    case 8: g->lda = 1; break;
    case 10: g->ldb = 2; break;
    case 13: g->ldc = 3; break;
    }
}

static const int positions[] = {1, 2, 3, 4, 5, 8, 10, 13};
static const char *const values[] = {"7", "8", "-3", "-4", "-5", "1", "2", "3"};
enum { POSITIONS = sizeof positions / sizeof positions[0] };

static void each_argument_is_named_with_its_value(void **state)
{
    (void)state;
    for (int layout = 0; layout < 2; layout++)
        for (int i = 0; i < POSITIONS; i++) {
            rung_gemm g = good(layout);
            spoil(&g, positions[i]);
            expect_refusal(&g, positions[i], values[i]);
        }
}

static void minus_one_is_no_size(void **state)
{
    (void)state;
    rung_gemm g = good(RUNG_ROW_MAJOR);
    g.m = -1;
    expect_refusal(&g, 3, "m is -1");
    g = good(RUNG_COL_MAJOR);
    g.n = -1;
    expect_refusal(&g, 4, "n is -1");
    g = good(RUNG_COL_MAJOR);
    g.k = -1;
    expect_refusal(&g, 5, "k is -1");
}

/* What lies on the device decides nothing on the host: this CPU context refuses such calls, and must not take them for
 * calls with nothing to do. */
static void scalars_on_a_device_are_not_looked_at(void **state)
{
    (void)state;
    static const float scalar = 2.0f;
    rung_gemm g = good(RUNG_COL_MAJOR);
    g.alpha = 0.0f;
    g.beta = 1.0f;
    g.alpha_device = &scalar;
    poison();
    assert_int_equal(rung_gemm_run(context, &g), RUNG_UNSUPPORTED);
    g = good(RUNG_COL_MAJOR);
    g.k = 0;
    g.beta = 1.0f;
    g.beta_device = &scalar;
    assert_int_equal(rung_gemm_run(context, &g), RUNG_UNSUPPORTED);
}

/* k = 0 and beta = 1 leave C as it is, but for what comes behind the product. */
static void activation_and_bias_come_without_a_product(void **state)
{
    (void)state;
    float bias[ORDER] = {1, 2, 3, 4};
    for (int which = 0; which < 3; which++) {
        rung_gemm g = good(RUNG_ROW_MAJOR);
        g.k = 0;
        g.beta = 1.0f;
        g.activation = which == 0 ? RUNG_RELU : which == 1 ? RUNG_GELU : RUNG_IDENTITY;
        g.bias_kind = which == 2 ? RUNG_BIAS_PER_COLUMN : RUNG_NO_BIAS;
        g.bias = which == 2 ? bias : NULL;
        for (int i = 0; i < ORDER * ORDER; i++)
            c[i] = -3.0f;
        assert_ok(rung_gemm_run(context, &g));
        for (int i = 0; i < ORDER * ORDER; i++)
            assert_true(which == 0   ? c[i] == 0.0f
                        : which == 1 ? c[i] > -0.1f && c[i] < 0.0f
                                     : c[i] == -3.0f + bias[i % ORDER]);
    }
}

static void the_first_wrong_argument_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < POSITIONS; i++)
        for (int j = i + 1; j < POSITIONS; j++) {
            rung_gemm g = good(RUNG_ROW_MAJOR);
            spoil(&g, positions[j]);
            spoil(&g, positions[i]);
            expect_refusal(&g, positions[i], values[i]);
        }
}

static void null_operands(void **state)
{
    (void)state;
    rung_gemm g = good(RUNG_COL_MAJOR);
    g.a = NULL;
    expect_refusal(&g, 7, "NULL");
    g = good(RUNG_COL_MAJOR);
    g.b = NULL;
    expect_refusal(&g, 9, "NULL");
    g = good(RUNG_COL_MAJOR);
    g.c = NULL;
    expect_refusal(&g, 12, "NULL");
    g = good(RUNG_COL_MAJOR);
    g.a = (const float *)((const char *)a + 2);
    expect_refusal(&g, 7, "aligned");
    g.b = (const float *)((const char *)b + 2);
    expect_refusal(&g, 7, "aligned");
    g.a = a;
    expect_refusal(&g, 9, "aligned");
    g.b = b;
    g.c = (float *)(void *)((char *)c + 3);
    expect_refusal(&g, 12, "aligned");
    /* with memory around it, so that it lies on neither operand */
    static float alone[3 * ORDER * ORDER];
    for (int bytes = 1; bytes < 4; bytes++) {
        g.c = (float *)(void *)((char *)(alone + ORDER * ORDER) + bytes);
        expect_refusal(&g, 12, "aligned");
    }
    for (int i = 0; i < 3 * ORDER * ORDER; i++)
        assert_true(alone[i] == 0.0f);
}

static void other_fields(void **state)
{
    (void)state;
    rung_gemm g = good(RUNG_COL_MAJOR);
    g.layout = 5;
    expect_refusal(&g, 0, "layout is 5");
    g = good(RUNG_COL_MAJOR);
    g.batch = -2;
    expect_refusal(&g, 0, "batch is -2");
    g = good(RUNG_COL_MAJOR);
    g.batch = 2;
    expect_refusal(&g, 0, "stride_c is 0");
    g = good(RUNG_COL_MAJOR);
    g.bias_kind = 9;
    expect_refusal(&g, 0, "bias_kind is 9");
    g = good(RUNG_COL_MAJOR);
    for (int kind = RUNG_BIAS_PER_ROW; kind <= RUNG_BIAS_PER_COLUMN; kind++) {
        g.bias_kind = (rung_bias)kind;
        expect_refusal(&g, 0, "bias is NULL");
    }
    g.bias = (const float *)((const char *)a + 2);
    expect_refusal(&g, 0, "bias must be aligned to 4 bytes (0x");
    g = good(RUNG_COL_MAJOR);
    g.activation = -1;
    expect_refusal(&g, 0, "activation is -1");
}

/* Every call that takes a context says so where it is none; what returns no status gives nothing. */
static void null_contexts(void **state)
{
    (void)state;
    rung_guard_counts counts;
    float x = 1, sum;
    const rung_status refused[] = {rung_context_set_math(NULL, RUNG_STRICT),
                                   rung_context_set_threads(NULL, 1),
                                   rung_context_set_stream(NULL, NULL),
                                   rung_context_set_pointers(NULL, RUNG_POINTERS_AUTO),
                                   rung_context_set_workspace_limit(NULL, 1),
                                   rung_context_synchronize(NULL),
                                   rung_ssum(NULL, 1, &x, &sum),
                                   rung_context_guard_counts(NULL, &counts)};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(refused[i], RUNG_INVALID_ARGUMENT);
    assert_string_equal(rung_last_error(), "context is NULL");
    assert_int_equal(rung_context_guard_counts(context, NULL), RUNG_INVALID_ARGUMENT);
    assert_string_equal(rung_last_error(), "counts is NULL");
    assert_int_equal(rung_context_device(NULL), RUNG_DEVICE_CPU);
    assert_int_equal(rung_context_threads(NULL), 0);
    assert_int_equal(rung_context_math(NULL), RUNG_STRICT);
    assert_null(rung_last_kernel(NULL));
}

static void null_elements_of_a_batch(void **state)
{
    (void)state;
    float one = 1, out[2] = {7, 7};
    const float *some[] = {&one, NULL}, *all[] = {&one, &one};
    float *results[] = {&out[0], &out[1]}, *half[] = {&out[0], NULL};
    struct {
        const float *const *a, *const *b;
        float *const *c;
        int argument;
        const char *words;
    } calls[] = {{some, all, results, 7, "a_array[1] is NULL"},
                 {all, some, results, 9, "b_array[1] is NULL"},
                 {all, all, half, 12, "c_array[1] is NULL"}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int layout = RUNG_COL_MAJOR; layout <= RUNG_ROW_MAJOR; layout++) {
            assert_int_equal(rung_sgemm_batched(context, layout, 0, 0, 1, 1, 1, 1, calls[i].a, 1, calls[i].b, 1, 0,
                                                calls[i].c, 1, 2),
                             RUNG_INVALID_ARGUMENT);
            assert_int_equal(rung_last_error_argument(), calls[i].argument);
            assert_string_equal(rung_last_error(), calls[i].words);
        }
    assert_true(out[0] == 7 && out[1] == 7);
    assert_ok(rung_sgemm_batched(context, 0, 0, 0, 1, 1, 1, 0, some, 1, some, 1, 2, results, 1, 2)); /* not read */
    assert_true(out[0] == 14 && out[1] == 14);
}

/* What a batch of listed operands does not use may hold anything, also where a plan was made with other values of it.
 */
static void beside_lists_nothing_is_looked_at(void **state)
{
    (void)state;
    float two = 2, out[2] = {0, 0}, *results[] = {&out[0], &out[1]};
    const float *twos[] = {&two, &two};
    rung_gemm g;
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    g.batch = 2;
    g.a_array = twos, g.b_array = twos, g.c_array = results;
    const float *odd = (const float *)((const char *)a + 1);
    const rung_gemm plain = g;
    for (int i = 0; i < 6; i++) {
        g = plain;
        switch (i) {
        case 0: g.a = odd; break;
        case 1: g.b = odd; break;
        case 2: g.c = c; break; /* whose stride is 0 */
        case 3: g.c = (float *)(uintptr_t)odd, g.stride_c = 1; break;
        case 4: g.stride_a = INT64_MAX, g.stride_b = INT64_MIN; break;
        case 5: g.stride_c = -7; break;
        }
        assert_ok(rung_gemm_run(context, &g));
        assert_true(out[0] == 4 && out[1] == 4);
        out[0] = out[1] = 0;
    }
}

static void null_structs(void **state)
{
    (void)state;
    rung_gemm g = good(RUNG_COL_MAJOR);
    assert_int_equal(rung_gemm_run(NULL, &g), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_gemm_run(context, NULL), RUNG_INVALID_ARGUMENT);
    rung_plan *plan;
    assert_int_equal(rung_plan_create(NULL, context, &g), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_plan_create(&plan, NULL, &g), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_plan_create(&plan, context, NULL), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_plan_create_kernel(&plan, context, &g, NULL), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_plan_run(NULL, &g), RUNG_INVALID_ARGUMENT);
    assert_null(rung_plan_kernel(NULL));
    assert_int_equal(rung_plan_workspace_bytes(NULL), 0);
    char text[16];
    assert_int_equal(rung_plan_print(NULL, text, sizeof text), strlen("plan is NULL\n"));
    assert_string_equal(text, "plan is NULL\n");
    assert_int_equal(rung_sgemm_batched(context, RUNG_COL_MAJOR, 0, 0, 1, 1, 1, 1, NULL, 1, NULL, 1, 0, NULL, 1, 1),
                     RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_last_error_argument(), 7);
    static const float one[1];
    const float *const list[1] = {one};
    assert_int_equal(rung_sgemm_batched(context, RUNG_COL_MAJOR, 0, 0, 1, 1, 1, 1, list, 1, list, 1, 0, NULL, 1, 1),
                     RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_last_error_argument(), 12);
    assert_int_equal(rung_sgemm_batched(context, RUNG_COL_MAJOR, 0, 0, -1, 1, 1, 1, list, 1, list, 1, 0, NULL, 1, 2),
                     RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_last_error_argument(), 3);
}

static void leading_dimensions_cover_a_stored_line(void **state)
{
    (void)state;
    /* The least leading dimension of A, B, C by layout and transposes, with sizes in each order. */
    static const char *const least[2][4] = {{"mkm", "mnm", "kkm", "knm"}, {"knn", "kkn", "mnn", "mkn"}};
    static const char names[] = "mnk";
    static const int orders[6][3] = {{2, 3, 4}, {2, 4, 3}, {3, 2, 4}, {3, 4, 2}, {4, 2, 3}, {4, 3, 2}};
    for (int i = 0; i < 2 * 4 * 6 * 4; i++) {
        const int short_one = i % 4, *sizes = orders[i / 4 % 6], trans = i / 24 % 4, layout = i / 96;
        rung_gemm g = good(layout);
        int64_t *const lds[] = {&g.lda, &g.ldb, &g.ldc};
        g.trans_a = trans / 2, g.trans_b = trans % 2;
        g.m = sizes[0], g.n = sizes[1], g.k = sizes[2];
        for (int j = 0; j < 3; j++)
            *lds[j] = sizes[strchr(names, least[layout][trans][j]) - names] - (short_one == j + 1);
        if (short_one)
            expect_refusal(&g, (int[]){0, 8, 10, 13}[short_one], "at least");
        else
            assert_ok(rung_gemm_run(context, &g));
    }
}

/* alpha = 0: C = beta*C whatever A and B hold; k = 0 likewise. */
static void quick_returns_read_and_write_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < 5; which++) {
        rung_gemm g = good(RUNG_COL_MAJOR);
        g.a = g.b = NULL; /* touching anything would crash */
        g.c = NULL;
        g.m = which == 0 ? 0 : ORDER;
        g.n = which == 1 ? 0 : ORDER;
        g.k = which == 2 ? 0 : ORDER;
        g.alpha = which == 3 ? 0.0f : 1.0f;
        g.batch = which == 4 ? 0 : 1;
        g.beta = 1.0f;
        assert_ok(rung_gemm_run(context, &g));
    }
}

static void a_zero_size_still_checks_the_rest(void **state)
{
    (void)state;
    rung_gemm g = good(RUNG_COL_MAJOR);
    g.m = 0;
    g.ldc = 0;
    expect_refusal(&g, 13, "ldc is 0");
    g.ldc = 1;
    g.lda = 0;
    expect_refusal(&g, 8, "lda is 0");
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    int64_t huge = INT64_MAX / 2;
    rung_gemm g = good(RUNG_ROW_MAJOR);
    g.lda = huge;
    expect_refusal(&g, 8, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.ldb = huge;
    expect_refusal(&g, 10, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.ldc = huge;
    expect_refusal(&g, 13, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.batch = huge;
    g.stride_a = g.stride_b = 0;
    g.stride_c = 16;
    expect_refusal(&g, 13, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.m = 2;
    g.lda = (int64_t)1 << 60; /* twice as many floats have too many bytes */
    expect_refusal(&g, 8, "2^63");
    g.lda = (int64_t)1 << 61; /* with the stride below 2^63 floats, which are fewer than none where nobody looks */
    g.batch = 2;
    g.stride_a = (int64_t)1 << 62;
    g.stride_c = 16;
    expect_refusal(&g, 8, "2^63");
}

/* Where a line has no next one its leading dimension has no meaning, and BLAS takes any that is not less than it. */
static void a_single_line_may_lead_anywhere(void **state)
{
    (void)state;
    enum { LENGTH = 300 };
    static float x[LENGTH * LENGTH], y[LENGTH * LENGTH], want[LENGTH * LENGTH], got[LENGTH * LENGTH];
    static const int64_t far[] = {INT64_MAX, (int64_t)1 << 61, ((int64_t)1 << 61) - 1, (int64_t)1 << 40};
    static const int sides[][3] = {{1, 7, 5}, {7, 1, 5}, {7, 5, 1}, {1, 1, 7}, {1, 300, 200}, {200, 300, 1}, {1, 1, 1}};
    for (int i = 0; i < LENGTH * LENGTH; i++)
        x[i] = (float)(i % 7), y[i] = (float)(i % 5);
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (int form = 0; form < 8; form++) {
            const int row = form & 1, ta = form >> 1 & 1, tb = form >> 2;
            const int64_t m = sides[s][0], n = sides[s][1], k = sides[s][2];
            rung_gemm g = good(row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR);
            g.m = m, g.n = n, g.k = k, g.a = x, g.b = y, g.c = want, g.beta = 0.5f;
            g.trans_a = ta ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = tb ? RUNG_TRANS : RUNG_NO_TRANS;
            const int64_t length[] = {row == ta ? m : k, row == tb ? k : n, row ? n : m},
                          lines[] = {row == ta ? k : m, row == tb ? n : k, row ? m : n};
            g.lda = length[0], g.ldb = length[1], g.ldc = length[2];
            memset(want, 0, sizeof want);
            assert_ok(rung_gemm_run(context, &g));
            for (size_t f = 0; f < sizeof far / sizeof *far; f++) {
                rung_plan *plan;
                g.c = got;
                g.lda = lines[0] == 1 ? far[f] : length[0];
                g.ldb = lines[1] == 1 ? far[f] : length[1];
                g.ldc = lines[2] == 1 ? far[f] : length[2];
                memset(got, 0, sizeof got);
                assert_ok(rung_gemm_run(context, &g));
                assert_memory_equal(got, want, sizeof want);
                memset(got, 0, sizeof got);
                assert_ok(rung_plan_create(&plan, context, &g));
                assert_ok(rung_plan_run(plan, &g));
                assert_memory_equal(got, want, sizeof want);
                rung_plan_destroy(plan);
            }
        }
}

/* Calls that are certainly right skip these checks. None whose operand has no address may pass for one. */
static void operands_without_an_address_are_never_certain(void **state)
{
    (void)state;
    const int64_t lines = (int64_t)1 << 30, ld = (int64_t)1 << 39; /* lines * ld * 4 is 0 in 64 bits */
    rung_gemm g = good(RUNG_ROW_MAJOR);
    g.m = lines, g.lda = ld;
    expect_refusal(&g, 8, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.k = g.lda = lines, g.ldb = ld;
    expect_refusal(&g, 10, "2^63");
    g = good(RUNG_ROW_MAJOR);
    g.m = lines, g.ldc = ld;
    expect_refusal(&g, 13, "2^63");
}

static uint64_t drawn = 1;

static int64_t draw(int bits) /* 1 ... 2^bits, of every size alike */
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    int64_t most = (int64_t)1 << (int)((drawn >> 33) % (unsigned)(bits + 1));
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((drawn >> 1) % (uint64_t)most) + 1;
}

/* Whether a shape passes, and whom it blames if not. */
static int blamed(const rung_gemm *g)
{
    rung_plan *plan = NULL;
    rung_status status = rung_plan_create(&plan, context, g);
    rung_plan_destroy(plan);
    return status == RUNG_SUCCESS ? 0 : rung_last_error_argument();
}

/* An operand of `lines` lines, or of one line of length ld, spans lines * ld + |stride| * (batch - 1) floats, of which
 * at most 2^61 - 1 have an address. Of drawn shapes the largest stride, either way, and the largest leading dimension
 * that fit pass, and one more does not. */
static void the_largest_operand_passes_and_one_more_float_does_not(void **state)
{
    (void)state;
    const int64_t most = ((int64_t)1 << 61) - 1;
    static const int argument[] = {8, 10, 13};
    for (int i = 0; i < 600; i++) {
        rung_gemm g = good(RUNG_ROW_MAJOR);
        int64_t *ld[] = {&g.lda, &g.ldb, &g.ldc}, *stride[] = {&g.stride_a, &g.stride_b, &g.stride_c};
        const int which = i % 3;
        g.m = draw(16), g.k = draw(16);
        g.lda = g.k, g.batch = draw(20) + 1;
        g.stride_a = g.m * g.k, g.stride_b = g.k * ORDER, g.stride_c = g.m * ORDER;
        const int64_t lines = which == 1 ? g.k : g.m;
        const int64_t length = *ld[which];
        *ld[which] += draw(40);
        *stride[which] = (most - (lines > 1 ? lines * *ld[which] : length)) / (g.batch - 1);
        assert_int_equal(blamed(&g), 0);
        *stride[which] = -*stride[which];
        assert_int_equal(blamed(&g), 0);
        --*stride[which];
        assert_int_equal(blamed(&g), argument[which]);
        *stride[which] = 1 - *stride[which];
        assert_int_equal(blamed(&g), argument[which]);
        if (lines == 1)
            continue;
        *stride[which] = lines * draw(20);
        *ld[which] = (most - *stride[which] * (g.batch - 1)) / lines;
        assert_int_equal(blamed(&g), 0);
        ++*ld[which];
        assert_int_equal(blamed(&g), argument[which]);
    }
}

static void without_a_product_c_is_scaled(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) /* alpha is 0, k is 0, k is 0 and alpha infinite */
        for (int zero_beta = 0; zero_beta < 2; zero_beta++) {
            rung_gemm g = good(RUNG_COL_MAJOR);
            g.a = g.b = NULL;
            g.k = which ? 0 : ORDER;
            g.alpha = which == 2 ? INFINITY : (float)which;
            g.beta = zero_beta ? 0.0f : -0.5f;
            poison();
            if (zero_beta)
                c[5] = NAN;
            assert_ok(rung_gemm_run(context, &g));
            for (int i = 0; i < ORDER * ORDER; i++)
                assert_true(c[i] == (zero_beta ? 0.0f : -0.5f * (float)i));
        }
}

static void sums_refuse_what_is_wrong(void **state)
{
    (void)state;
    float result;
    assert_int_equal(rung_ssum(NULL, 1, a, &result), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_ssum(context, -7, a, &result), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "-7"));
    assert_int_equal(rung_ssum(context, 1, NULL, &result), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_ssum(context, 1, a, NULL), RUNG_INVALID_ARGUMENT);
    result = NAN;
    assert_ok(rung_ssum(context, 0, NULL, &result));
    assert_true(result == 0.0f);
}

/* Marks the floats of one operand in a memory of `MEMORY`. Returns how many of them were marked before, or -1 out of
 * bounds. */
enum { MEMORY = 192, AS_C = 2 };

static int mark(unsigned char *memory, int64_t at, int64_t lines, int64_t length, int64_t ld, int64_t batch,
                int64_t stride, unsigned char as)
{
    int met = 0;
    for (int64_t e = 0; e < batch; e++)
        for (int64_t i = 0; i < lines; i++)
            for (int64_t j = 0; j < length; j++) {
                int64_t place = at + e * stride + i * ld + j;
                if (place < 0 || place >= MEMORY)
                    return -1;
                met += as == AS_C && memory[place];
                memory[place] = as;
            }
    return met;
}

/* Puts operands at random places in one small memory. A call is refused where a float is written that another operand
 * or result holds, and only there. */
static void overlap_is_found_float_by_float(void **state)
{
    (void)state;
    static float memory[MEMORY];
    unsigned seed = 12345;
#define DRAW(most) ((seed = seed * 1103515245u + 12345u) >> 16) % (most)
    int apart = 0, met = 0;
    for (int round = 0; round < 60000; round++) {
        rung_gemm g = good(DRAW(2));
        int row = g.layout == RUNG_ROW_MAJOR;
        g.trans_a = DRAW(2), g.trans_b = DRAW(2);
        g.m = 1 + DRAW(4), g.n = 1 + DRAW(4), g.k = 1 + DRAW(4), g.batch = 1 + DRAW(3);
        int64_t line_a = row != (int)g.trans_a ? g.k : g.m, lines_a = g.m * g.k / line_a;
        int64_t line_b = row != (int)g.trans_b ? g.n : g.k, lines_b = g.k * g.n / line_b;
        int64_t line_c = row ? g.n : g.m, lines_c = g.m * g.n / line_c, of_a = DRAW(96), of_b = DRAW(96),
                of_c = DRAW(96);
        g.lda = line_a + DRAW(9), g.ldb = line_b + DRAW(9), g.ldc = DRAW(3) ? line_c + DRAW(9) : g.lda;
        g.ldc = g.ldc < line_c ? line_c : g.ldc;
        g.stride_a = (int64_t)(DRAW(60)) - 20, g.stride_b = DRAW(40), g.stride_c = 1 + DRAW(40);
        unsigned char marks[MEMORY] = {0};
        if (mark(marks, of_a, lines_a, line_a, g.lda, g.batch, g.stride_a, 1) < 0 ||
            mark(marks, of_b, lines_b, line_b, g.ldb, g.batch, g.stride_b, 1) < 0)
            continue;
        int overlaps = mark(marks, of_c, lines_c, line_c, g.ldc, g.batch, g.stride_c, AS_C);
        if (overlaps < 0)
            continue;
        g.a = memory + of_a, g.b = memory + of_b, g.c = memory + of_c;
        rung_status status = rung_gemm_run(context, &g);
        if (status != (overlaps ? RUNG_INVALID_ARGUMENT : RUNG_SUCCESS) ||
            (overlaps && rung_last_error_argument() != 12))
            fail_msg("round %d: %d floats overlap, and the call gives %s", round, overlaps, rung_status_name(status));
        *(overlaps ? &met : &apart) += 1;
        if (overlaps && g.batch == 1) { /* neither is read: anywhere is fine */
            g.alpha = 0.0f;
            assert_ok(rung_gemm_run(context, &g));
        }
    }
    assert_true(apart > 500 && met > 500);
}

/* The bias is read while C is written. It may lie right before or behind it. */
static void a_result_on_its_bias_is_refused(void **state)
{
    (void)state;
    static float memory[4 * ORDER * ORDER];
    for (int round = 0; round < 8; round++) {
        const int per_row = round & 1, row_major = round >> 1 & 1, other_call_first = round >> 2;
        rung_gemm g = good(row_major ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR);
        g.m = 2, g.n = 4, g.ldc = row_major ? g.n : g.m;
        const int64_t length = per_row ? g.m : g.n, span = g.m * g.n;
        int64_t place = other_call_first ? 0 : span - length - 2;
        g.bias_kind = per_row ? RUNG_BIAS_PER_ROW : RUNG_BIAS_PER_COLUMN;
        for (; place <= 2 * span + 2; place++) {
            g.c = memory + span;
            g.bias = memory + place;
            const int apart = place + length <= span || place >= 2 * span;
            if (!other_call_first) {
                assert_int_equal(rung_gemm_run(context, &g), apart ? RUNG_SUCCESS : RUNG_INVALID_ARGUMENT);
                assert_true(
                    apart ||
                    (rung_last_error_argument() == 12 && strstr(rung_last_error(), ") overlaps bias (") &&
                     strstr(rung_last_error(), "), which is read while C is written: give C memory of its own")));
                continue;
            }
            rung_plan *plan; /* which keeps the call before, with the same bias and another C */
            assert_ok(rung_plan_create(&plan, context, &g));
            g.c = memory + (place < 2 * span ? 3 * span : 0);
            assert_ok(rung_plan_run(plan, &g));
            g.c = memory + span;
            assert_int_equal(rung_plan_run(plan, &g), apart ? RUNG_SUCCESS : RUNG_INVALID_ARGUMENT);
            rung_plan_destroy(plan);
        }
    }
}

static void a_plan_refuses_overlap_when_it_runs(void **state)
{
    (void)state;
    rung_plan *plan;
    rung_gemm g = good(RUNG_ROW_MAJOR);
    g.c = a; /* addresses tell a plan alignment only */
    assert_ok(rung_plan_create(&plan, context, &g));
    assert_int_equal(rung_plan_run(plan, &g), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "overlaps a"));
    g.c = c;
    assert_ok(rung_plan_run(plan, &g));
    rung_plan_destroy(plan);
}

static int open_context(void **state)
{
    (void)state;
    context = test_context(1);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    rung_context_destroy(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_argument_is_named_with_its_value),
        cmocka_unit_test(minus_one_is_no_size),
        cmocka_unit_test(scalars_on_a_device_are_not_looked_at),
        cmocka_unit_test(activation_and_bias_come_without_a_product),
        cmocka_unit_test(the_first_wrong_argument_is_reported),
        cmocka_unit_test(null_operands),
        cmocka_unit_test(other_fields),
        cmocka_unit_test(null_contexts),
        cmocka_unit_test(null_elements_of_a_batch),
        cmocka_unit_test(beside_lists_nothing_is_looked_at),
        cmocka_unit_test(null_structs),
        cmocka_unit_test(leading_dimensions_cover_a_stored_line),
        cmocka_unit_test(quick_returns_read_and_write_nothing),
        cmocka_unit_test(a_zero_size_still_checks_the_rest),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_single_line_may_lead_anywhere),
        cmocka_unit_test(operands_without_an_address_are_never_certain),
        cmocka_unit_test(the_largest_operand_passes_and_one_more_float_does_not),
        cmocka_unit_test(without_a_product_c_is_scaled),
        cmocka_unit_test(sums_refuse_what_is_wrong),
        cmocka_unit_test(overlap_is_found_float_by_float),
        cmocka_unit_test(a_result_on_its_bias_is_refused),
        cmocka_unit_test(a_plan_refuses_overlap_when_it_runs),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
