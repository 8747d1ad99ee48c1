/* Products through the API against FP64: layouts, transposes, edges, padding, alpha and beta, batches, special values.
 */
#include "rung_catalog.h"
#include "support.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rung_context *context;

static const float scalars[][2] = {{1.0f, 0.0f}, {1.0f, 1.0f}, {-0.5f, 0.0f}, {0.0f, -0.5f}, {2.0f, -0.5f}};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

/* Not under sanitizers, whose own code runs at the end of a call. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
/* Returns whether the processor says that upper halves of vectors are in use. */
static int uses_upper_halves(void)
{
    enum { IN_USE = 1, UPPER_HALVES = 1 << 2 | 1 << 6 }; /* of ymm0 on, and of zmm0 on */
    unsigned state, high;
    __asm__ volatile("xgetbv" : "=a"(state), "=d"(high) : "c"(IN_USE));
    return (state & UPPER_HALVES) != 0;
}

/* Returns whether it can say so: it must take them for unused once they are cleared. */
static int tells_upper_halves(void)
{
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & 1 << 2))
        return 0;
    __asm__ volatile("vzeroupper");
    return !uses_upper_halves();
}
#else
static int uses_upper_halves(void)
{
    return 0;
}
static int tells_upper_halves(void)
{
    return 0;
}
#endif

/* The caller's code may be of a time before AVX, and would then wait at each of its own vectors. */
static void leaves_no_upper_halves_in_use(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{8, 48, 40},  {40, 144, 40}, {40, 150, 40}, {300, 200, 90}, {700, 600, 500},
                                       {1, 900, 50}, {3, 20, 700},  {6, 8, 9},     {900, 20, 3},   {20, 900, 70}};
    if (!tells_upper_halves())
        skip();
    rung_context *one_thread = test_context(1);
    for (int at = 0; at < 4 * (int)(sizeof sizes / sizeof sizes[0]); at++) {
        const int64_t *size = sizes[at / 4];
        product p;
        product_new(&p, RUNG_ROW_MAJOR, at & 1, at >> 1 & 1, size[0], size[1], size[2], 0, 1, 5);
        product_reset(&p);
        rung_status status = rung_gemm_run(one_thread, &p.gemm);
        int in_use = uses_upper_halves();
        assert_ok(status);
        if (in_use)
            fail_msg("%dx%dx%d, transposed %d%d", (int)size[0], (int)size[1], (int)size[2], at & 1, at >> 1 & 1);
        product_free(&p);
    }
    rung_context_destroy(one_thread);
}

static void run_and_check(product *p, const char *what)
{
    product_reset(p);
    assert_ok(rung_gemm_run(context, &p->gemm));
    assert_ok(rung_context_synchronize(context));
    product_check(p, what);
}

static void edges(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 17, 31, 33, 49, 65};
    uint64_t pick = 1;
    for (int round = 0; round < 400; round++) {
        int64_t size[3];
        for (int i = 0; i < 3; i++) {
            random_float(&pick);
            size[i] = sizes[(pick >> 33) % (sizeof sizes / sizeof sizes[0])];
        }
        product p;
        product_new(&p, round & 1, round >> 1 & 1, round >> 2 & 1, size[0], size[1], size[2], round % 3 ? 0 : 5, 1,
                    (uint64_t)round);
        p.gemm.alpha = scalars[round % SCALARS][0];
        p.gemm.beta = scalars[round % SCALARS][1];
        run_and_check(&p, "edges");
        product_free(&p);
    }
}

static void shapes_with_paths_of_their_own(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {300, 1, 200},   {1, 300, 200},   {300, 4, 200},   {16, 300, 200},  {1, 1, 5000},   {8, 8, 5000},
        {300, 300, 1},   {300, 300, 3},   {257, 129, 513}, {130, 260, 300}, {29, 301, 2},   {3, 203, 4},
        {150, 133, 1},   {70, 102, 4200}, {301, 2, 2},     {301, 3, 9},     {301, 4, 3},    {301, 4, 60},
        {301, 18, 60},   {19, 512, 265},  {14, 130, 50},   {13, 120, 2300}, {150, 20, 70},  {150, 40, 160},
        {290, 130, 160}, {5, 700, 30},    {16, 700, 300},  {30, 700, 400},  {300, 700, 20}, {400, 20, 700},
        {1, 40, 33},     {5, 2500, 5},    {16, 4400, 600}, {3, 810, 5}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int form = 0; form < 16; form++) { /* the last eight add to C, most with an alpha and a beta of 1 */
            if (form >= 8 && shapes[s][0] * shapes[s][1] * shapes[s][2] > 1 << 20)
                break;
            product p;
            product_new(&p, form & 1, form >> 1 & 1, form >> 2 & 1, shapes[s][0], shapes[s][1], shapes[s][2],
                        form % 2 * 3, 1, s);
            p.gemm.alpha = form < 8 || (form + s) % 3 == 0 ? 1.5f : 1.0f;
            p.gemm.beta = form < 8 ? (form % 3 ? 0.0f : -1.0f) : 1.0f;
            run_and_check(&p, "shapes");
            product_free(&p);
        }
}

/* Columns that fill no vector, beside so many steps that k goes in blocks, and beside an A that no cache near has: they
 * are computed by themselves, a block of k at a time; on one thread, whose rows are the most, and on several. */
static void last_columns_over_blocks_of_k(void **state)
{
    (void)state;
    rung_context *one_thread = test_context(1);
    static const int64_t shapes[][3] = {
        {100, 132, 1100}, {19, 700, 1514}, {700, 19, 1514}, {600, 130, 90}, {9, 90, 31}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int form = 0; form < 8; form++) {
            product p;
            product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1 & 1, shapes[s][0], shapes[s][1], shapes[s][2], form % 3,
                        1, s);
            p.gemm.alpha = 1.5f;
            p.gemm.beta = form < 4 ? 0.0f : -0.7f;
            product_reset(&p);
            assert_ok(rung_gemm_run(one_thread, &p.gemm));
            product_check(&p, "last columns");
            run_and_check(&p, "last columns");
            product_free(&p);
        }
    rung_context_destroy(one_thread);
}

/* C far larger than L2 of a few more steps than others write by rows, and dot products with rows from L3: on one thread
 * and on two, operands turned or not. */
static void shapes_beyond_l2(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{301, 6},  {301, 7}, {150, 8}, {301, 9},
                                        {270, 10}, {2, 140}, {3, 141}, {8, 301}};
    rung_context *one_thread = test_context(1);
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    int64_t floats = (l2 > 512 << 10 ? l2 : 512 << 10) / 2 + 1000;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int form = 0; form < 8; form++) {
            int64_t n = shapes[s][0], k = shapes[s][1];
            product p;
            product_new(&p, RUNG_ROW_MAJOR, form >> 1 & 1, form >> 2 & 1, floats / (n > k ? n : k) + 1, n, k, form % 3,
                        1, s);
            p.gemm.beta = (float)(form % 3 - 1);
            product_reset(&p);
            assert_ok(rung_gemm_run(form & 1 ? context : one_thread, &p.gemm));
            assert_ok(rung_context_synchronize(form & 1 ? context : one_thread));
            product_check(&p, "beyond L2");
            product_free(&p);
        }
    rung_context_destroy(one_thread);
}

/* One thread has memory for its own blocks, and no more: packing a block leaves what lies behind it alone. */
static void blocks_of_one_thread(void **state)
{
    (void)state;
    rung_context *one_thread = test_context(1);
    for (int form = 0; form < 4; form++) {
        product p;
        product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1, 300, 300, 512, 0, 1, 12);
        product_reset(&p);
        assert_ok(rung_gemm_run(one_thread, &p.gemm));
        assert_ok(rung_context_synchronize(one_thread));
        product_check(&p, "one thread");
        product_free(&p);
    }
    rung_context_destroy(one_thread);
}

static void strided_batches(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        product p;
        product_new(&p, form & 1, form >> 1 & 1, form >> 2 & 1, 13, 21, 34, 3, 5, 7);
        p.gemm.beta = form % 2 ? 0.0f : 0.25f;
        run_and_check(&p, "batch");
        p.gemm.stride_a = 0; /* shared */
        run_and_check(&p, "batch with one A");
        product_free(&p);
    }
}

static void batches_through_their_own_entry_points(void **state)
{
    (void)state;
    product p;
    product_new(&p, RUNG_COL_MAJOR, 0, 1, 9, 10, 11, 0, 3, 3);
    rung_gemm *g = &p.gemm;
    product_reset(&p);
    assert_ok(rung_sgemm_strided_batched(context, g->layout, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a,
                                         g->lda, g->stride_a, g->b, g->ldb, g->stride_b, g->beta, g->c, g->ldc,
                                         g->stride_c, 3));
    product_check(&p, "rung_sgemm_strided_batched");
    if (rung_context_device(context) == RUNG_DEVICE_CPU) { /* on a GPU the arrays lie in device memory */
        const float *a[3], *b[3];
        float *c[3];
        for (int i = 0; i < 3; i++) {
            a[i] = g->a + i * g->stride_a;
            b[i] = g->b + i * g->stride_b;
            c[i] = g->c + i * g->stride_c;
        }
        product_reset(&p);
        assert_ok(rung_sgemm_batched(context, g->layout, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, a, g->lda,
                                     b, g->ldb, g->beta, c, g->ldc, 3));
        product_check(&p, "rung_sgemm_batched");
    }
    product_free(&p);
}

static void bias_and_activation(void **state)
{
    (void)state;
    float bias[64];
    uint64_t seed = 5;
    for (int i = 0; i < 64; i++)
        bias[i] = random_float(&seed);
    for (int form = 0; form < 18; form++) {
        product p;
        product_new(&p, form & 1, 0, 0, 37, 22, 19, 1, 1, 11);
        p.gemm.beta = 0.5f;
        p.gemm.bias_kind = form / 2 % 3;
        p.gemm.activation = form / 6;
        p.gemm.bias = bias;
        product_reset(&p);
        rung_status status = rung_gemm_run(context, &p.gemm);
        if (status != RUNG_UNSUPPORTED ||
            rung_context_device(context) == RUNG_DEVICE_CPU) { /* host operands on a GPU */
            assert_ok(status);
            product_check(&p, "bias and activation");
        }
        product_free(&p);
    }
}

/* Every way through the CPU backend ends with bias and activation, on each part of C once. */
static void bias_and_activation_on_every_path(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{90, 80, 70},     {4, 300, 1100},  {1, 600, 600},    {600, 40, 300},
                                        {300, 5, 100},    {20, 20, 4200},  {90, 160, 600},   {20, 600, 300},
                                        {30, 20, 0},      {40, 300, 1000}, {100, 300, 4900}, {90, 310, 5000},
                                        {100, 133, 1100}, {200, 3700, 300}}; /* the last: several slabs of B, whoever
                                                                                shares it */
    static float bias[3700];
    uint64_t seed = 6;
    for (int i = 0; i < 3700; i++)
        bias[i] = random_float(&seed);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int form = 0; form < 4; form++) {
            product p;
            product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1, shapes[s][0], shapes[s][1], shapes[s][2], form % 3, 1,
                        s);
            p.gemm.beta = form % 3 ? 0.0f : -1.0f;
            p.gemm.bias_kind = 1 + (form + form / 2 + s) % 2; /* each kind with each transpose, and with long k */
            p.gemm.activation = form % 3;
            p.gemm.bias = bias;
            product_reset(&p);
            rung_status status = rung_gemm_run(context, &p.gemm);
            if (status != RUNG_UNSUPPORTED || rung_context_device(context) == RUNG_DEVICE_CPU) {
                assert_ok(status);
                product_check(&p, "bias and activation");
            }
            product_free(&p);
        }
}

/* One side short: a C of one column or row, few columns whose product is turned, k of a few steps. Alone, in batches
 * that lie apart or are listed, with a bias, next to padding. */
static void thin_products(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 97, 41}, {97, 1, 41},   {1, 1, 70},   {130, 2, 9},
                                        {2, 130, 9}, {120, 12, 90}, {9, 140, 5},  {140, 9, 5},
                                        {70, 8, 56}, {5, 280, 32},  {280, 5, 32}, {17, 300, 3}};
    enum { SHAPES = sizeof shapes / sizeof shapes[0], BATCH = 3 };
    static float bias[300];
    uint64_t seed = 7;
    for (int i = 0; i < 300; i++)
        bias[i] = random_float(&seed);
    for (int s = 0; s < SHAPES; s++)
        for (int form = 0; form < 48; form++) {
            product p;
            int batch = form / 8 % 2 ? BATCH : 1;
            product_new(&p, form & 1, form >> 1 & 1, form >> 2 & 1, shapes[s][0], shapes[s][1], shapes[s][2], form % 3,
                        batch, (uint64_t)(100 * s + form));
            p.gemm.beta = form % 5 == 0 ? -1.0f : form % 5 == 1 ? 1.0f : 0.0f;
            p.gemm.alpha = form % 2 ? 1.0f : 1.5f;
            p.gemm.bias_kind = form / 16;
            p.gemm.bias = bias;
            product_reset(&p);
            rung_gemm listed = p.gemm;
            const float *a[BATCH], *b[BATCH];
            float *c[BATCH];
            for (int i = 0; i < batch; i++) {
                a[i] = p.gemm.a + i * p.gemm.stride_a;
                b[i] = p.gemm.b + i * p.gemm.stride_b;
                c[i] = p.gemm.c + i * p.gemm.stride_c;
            }
            if (form % 7 == 0 && rung_context_device(context) == RUNG_DEVICE_CPU) {
                listed.a_array = a;
                listed.b_array = b;
                listed.c_array = c;
                listed.a = listed.b = listed.c = NULL;
            }
            rung_status status = rung_gemm_run(context, &listed);
            if (status != RUNG_UNSUPPORTED ||
                rung_context_device(context) == RUNG_DEVICE_CPU) { /* host operands on a GPU */
                assert_ok(status);
                product_check(&p, "thin");
            }
            product_free(&p);
        }
}

/* Products that are planned as on a Zen 3. Some rows beside a B that L2 does not hold, panel by panel: whole lines and
 * others, rows that collide, the last few columns, the last steps, pieces of k, the transposed product; one row that
 * streams, with C for its sums and without. Few rows from L3, a run of steps at a time: in one tile, in two, from half
 * lines, in pieces of k; rows of C so short that they are turned by their ends; dot products of columns that L1 does
 * not hold; a small C beside a transposed A; two vectors, whose elements may lie apart. The last test: contexts that
 * are made later would plan so too.
 */
static void as_on_a_zen_3(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {9, 531, 261},  {112, 512, 97}, {48, 501, 131}, {16, 1024, 60}, {31, 528, 610}, {25, 233, 1203}, {700, 41, 402},
        {1, 333, 331},  {1, 1001, 77},  {1, 8, 9000},   {5, 301, 331},  {6, 56, 2100},  {8, 600, 130},   {7, 1000, 97},
        {44, 200, 500}, {700, 5, 300},  {900, 6, 23},   {801, 7, 64},   {403, 3, 9},    {5, 31, 2600},   {6, 8, 4100},
        {1, 1, 150},    {1, 1, 3001},   {1, 1, 9001},   {60, 40, 700},  {26, 33, 2100}, {60, 18, 1300},  {100, 10, 800},
        {9, 9, 12000},  {31, 9, 4100},  {120, 7, 2300}, {20, 12, 5000}, {8, 90, 60},    {16, 150, 20},   {9, 400, 90},
        {12, 300, 250}, {3, 200, 77},   {1, 90, 260},   {1, 300, 41},   {200, 1, 5},    {14, 40, 1500},  {40, 54, 500},
        {7, 34, 61},    {90, 17, 2700}, {5, 5, 30000}};
    enum { SHAPES = sizeof shapes / sizeof shapes[0], FORMS = 8 };
    if (rung_context_device(context) != RUNG_DEVICE_CPU)
        return;
    rung_context *usual = context;
    setenv("RUNG_CPU_PLAN", "zen3", 1);
    setenv("RUNG_CPU_FEATURES", "avx2", 1);
    context = test_context(2);
    for (int i = 0; i < SHAPES * FORMS; i++) {
        const int64_t *sides = shapes[i / FORMS];
        product p;
        product_new(&p, RUNG_ROW_MAJOR, i & 1, i / 2 % 2, sides[0], sides[1], sides[2], i / 4 % 2 * 3, 1, (uint64_t)i);
        p.gemm.alpha = i % 3 ? 1.0f : -0.75f;
        p.gemm.beta = i % 8 < 4 ? 0.0f : 0.5f;
        run_and_check(&p, "as on a Zen 3");
        product_free(&p);
    }
    rung_context_destroy(context);
    context = usual;
}

/* Products that run without a plan: every side from 1 to 40, and those that just fit what is turned for them, or just
 * do not. */
static void tiny_products(void **state)
{
    (void)state;
    static const int64_t at_the_border[][3] = {{17, 128, 240}, {17, 16, 240}, {256, 16, 16}, {257, 16, 16},
                                               {16, 16, 256},  {16, 16, 257}, {33, 128, 30}, {128, 32, 32},
                                               {36, 100, 40},  {26, 67, 50},  {1, 225, 18},  {225, 1, 18}};
    enum { BORDER = sizeof at_the_border / sizeof at_the_border[0], DRAWN = 500, SIDE_MOST = 40 };
    uint64_t seed = 23;
    for (int i = 0; i < 8 * BORDER + DRAWN; i++) {
        int64_t side[3];
        for (int d = 0; d < 3; d++)
            side[d] = i < 8 * BORDER ? at_the_border[i / 8][d]
                                     : 1 + (int64_t)((random_float(&seed) + 1.0f) * 0.5f * (SIDE_MOST - 1) + 0.5f);
        product p;
        product_new(&p, i & 1, i >> 1 & 1, i >> 2 & 1, side[0], side[1], side[2], i % 3, 1, (uint64_t)i);
        p.gemm.alpha = i % 5 ? 1.0f : -0.75f;
        p.gemm.beta = i % 4 == 0 ? 0.5f : i % 4 == 1 ? 1.0f : 0.0f;
        run_and_check(&p, "tiny");
        product_free(&p);
    }
}

/* Rows of every length up to some vectors, with each k of a few steps, whose last vector may lie over the one before:
 * every third with beta, which counts once in each element. Few rows, and more than are taken at once. */
static void short_rows(void **state)
{
    (void)state;
    enum { ROW_MOST = 66, ROW_MOST_OF_WIDE = 130, STEPS_MOST = 13 };
    uint64_t i = 0;
    for (int64_t n = 1; n <= ROW_MOST_OF_WIDE; n += n < ROW_MOST ? 1 : 9)
        for (int64_t k = 1; k <= STEPS_MOST; k++, i++) {
            int64_t m = i % 11 == 0 ? 301 : 5 + (int64_t)(i % 7) * 17;
            product p;
            product_new(&p, RUNG_ROW_MAJOR, i >> 1 & 1, i & 1, m, n, k, i % 5 == 0 ? 3 : 0, 1, i);
            p.gemm.alpha = i % 4 ? 1.0f : -0.75f;
            p.gemm.beta = i % 3 ? 0.0f : -0.5f;
            run_and_check(&p, "short rows");
            product_free(&p);
        }
}

static void nan_and_infinity_propagate(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++)
        for (int which = 0; which < 3; which++) {
            product p;
            product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1 & 1, 20, 24, 18, 0, 1, 2);
            float *a = (float *)(uintptr_t)p.gemm.a;
            a[p.gemm.trans_a ? 4 * p.gemm.lda + 3 : 3 * p.gemm.lda + 4] = which == 0   ? NAN
                                                                          : which == 1 ? INFINITY
                                                                                       : -INFINITY;
            product_reset(&p);
            assert_ok(rung_gemm_run(context, &p.gemm));
            for (int64_t i = 0; i < p.gemm.m; i++)
                for (int64_t j = 0; j < p.gemm.n; j++) {
                    float got = p.gemm.c[i * p.gemm.ldc + j];
                    if (i != 3)
                        assert_true(isfinite(got));
                    else if (which == 0)
                        assert_true(isnan(got));
                    else
                        assert_true(isinf(got)); /* no element of B is 0 here */
                }
            product_free(&p);
        }
}

static void the_same_call_gives_the_same_bits(void **state)
{
    (void)state;
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 150, 170, 700, 0, 1, 8);
    product_reset(&p);
    float *first = malloc(p.count_c * sizeof(float));
    assert_ok(rung_gemm_run(context, &p.gemm));
    memcpy(first, p.gemm.c, p.count_c * sizeof(float));
    for (int i = 0; i < 20; i++) {
        product_reset(&p);
        assert_ok(rung_gemm_run(context, &p.gemm));
        assert_memory_equal(first, p.gemm.c, p.count_c * sizeof(float));
    }
    free(first);
    product_free(&p);
}

static void operands_at_any_address(void **state)
{
    (void)state;
    float room[3][8 + 33 * 33];
    uint64_t seed = 3;
    for (int i = 0; i < 8 + 33 * 33; i++)
        room[0][i] = random_float(&seed), room[1][i] = random_float(&seed);
    float first[33 * 33];
    for (int shift = 0; shift < 8; shift++) {
        float *a = memmove(room[0] + shift, room[0] + (shift ? shift - 1 : 0), 33 * 33 * sizeof(float));
        float *b = memmove(room[1] + shift, room[1] + (shift ? shift - 1 : 0), 33 * 33 * sizeof(float));
        float *c = room[2] + shift;
        assert_ok(rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, 33, 33, 33, 1.0f, a, 33, b, 33, 0.0f, c, 33));
        for (int i = 0; i < 33 * 33; i++) {
            if (shift == 0)
                first[i] = c[i];
            assert_true(fabsf(c[i] - first[i]) <= 33 * 0x1p-22f);
        }
    }
}

/* Computes one row of a product in FP64, from operands that only this thread has: no race is looked for in it. */
TEST_UNWATCHED static void row_of(const float *a, const float *b, int64_t n, int64_t k, double first, double *row)
{
    for (int64_t j = 0; j < n; j++)
        row[j] = first;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++)
            row[j] += (double)a[p] * b[p * n + j];
}

TEST_UNWATCHED static void fill(float *at, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        at[i] = value;
}

/* Returns the first column in which a row is not what was expected, or count. */
TEST_UNWATCHED static int64_t first_wrong(const double *want, const float *row, int64_t count)
{
    int64_t at = 0;
    while (at < count && fabs(want[at] - row[at]) <= 5e-6)
        at++;
    return at;
}

/* C larger than a quarter of the last cache is written past the caches where beta is 0, operands turned or not. Rows
 * that lie elsewhere, entries of a batch that do, and a C that is read: each is an element of the same sum. Turned
 * operands of one thread alone: it has memory for its copies and no more. */
static void results_larger_than_the_caches(void **state)
{
    (void)state;
    enum { K = 24, N = 2048, LEAST = 2100, MOST = 16 << 10 };
    const struct {
        int64_t k, ldc, batch, behind;
        float beta;
        int trans; /* 2: by one thread */
    } cases[] = {{3, N, 1, 0, 0.0f, 0},     {3, N + 1, 1, 0, 0.0f, 0}, {3, N, 1, 0, 1.0f, 0},
                 {3, N, 2, 5, 0.0f, 0},     {1, N + 1, 1, 0, 0.0f, 0}, {5, N + 1, 1, 0, 0.0f, 1},
                 {8, N + 3, 1, 0, 0.0f, 0}, {8, N + 2, 1, 0, 0.0f, 1}, {24, N + 1, 1, 0, 0.0f, 0},
                 {24, N, 1, 0, 1.0f, 0},    {24, N, 2, 5, 0.0f, 1},    {9, N, 1, 0, 0.0f, 2}};
    rung_context *one_thread = test_context(1);
    long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    int64_t half = l3 / 8 / N + 10, m = half < LEAST ? LEAST : half > MOST ? MOST : half;
    float *a = malloc((size_t)m * K * sizeof *a), *b = malloc((size_t)K * N * sizeof *b);
    float *turned_a = malloc((size_t)m * K * sizeof *a), *turned_b = malloc((size_t)K * N * sizeof *b);
    size_t most = (size_t)(2 * (m * (N + 3) + 64));
    float *c = aligned_alloc(64, most / 16 * 64);
    assert_true(a && b && turned_a && turned_b && c);
    static double want[N];
    uint64_t seed = 9;
    for (int64_t i = 0; i < m * K; i++)
        a[i] = random_float(&seed);
    for (int64_t i = 0; i < (int64_t)K * N; i++)
        b[i] = random_float(&seed);
    for (int64_t p = 0; p < K; p++) {
        for (int64_t i = 0; i < m; i++)
            turned_a[p * m + i] = a[i * K + p];
        for (int64_t j = 0; j < N; j++)
            turned_b[j * K + p] = b[p * N + j];
    }
    for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++) {
        int trans = cases[i].trans > 0;
        int64_t ldc = cases[i].ldc, stride = m * ldc + cases[i].behind;
        fill(c, stride * cases[i].batch, 0.25f);
        assert_ok(rung_sgemm_strided_batched(cases[i].trans > 1 ? one_thread : context, RUNG_ROW_MAJOR, trans, trans, m,
                                             N, cases[i].k, 1.0f, trans ? turned_a : a, trans ? m : K, 0,
                                             trans ? turned_b : b, trans ? K : N, 0, cases[i].beta, c, ldc, stride,
                                             cases[i].batch));
        for (int64_t row = 0; row < m * cases[i].batch; row++) {
            const float *left = a + row % m * K, *out = c + row / m * stride + row % m * ldc;
            row_of(left, b, N, cases[i].k, cases[i].beta * 0.25, want);
            int64_t col = first_wrong(want, out, N);
            if (col < N)
                fail_msg("case %d: C[%d][%d] is %g, not %g", i, (int)row, (int)col, (double)out[col], want[col]);
            for (col = N; col < ldc; col++)
                assert_true(out[col] == 0.25f); /* nothing past the row */
        }
    }
    free(a);
    free(b);
    free(turned_a);
    free(turned_b);
    free(c);
    rung_context_destroy(one_thread);
}

/* The same where a chunk of B's columns ends among the last columns of C: as many columns as a chunk has, on any
 * kernel, and some more or fewer, in rows that begin at every place of a cache line. */
static void columns_around_a_chunk(void **state)
{
    (void)state;
    enum { K = 3, LEAST = 990, MOST = 1060, ROWS = 560, LINE = 16 };
    const char *before = getenv("RUNG_CPU_PLAN");
    char kept[16];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    setenv("RUNG_CPU_PLAN", "zen3", 1); /* whose L3 counts 8 MB: a C of 2 MB goes past it */
    rung_context *small = test_context(1);
    float *a = malloc(ROWS * K * sizeof *a), *b = malloc((size_t)K * MOST * sizeof *b);
    float *c = aligned_alloc(64, (ROWS * (MOST + 1) + 2 * LINE) / LINE * LINE * sizeof *c);
    assert_true(a && b && c);
    static double want[MOST];
    uint64_t seed = 19;
    for (int i = 0; i < ROWS * K; i++)
        a[i] = random_float(&seed);
    for (int i = 0; i < K * MOST; i++)
        b[i] = random_float(&seed);
    for (int n = LEAST; n <= MOST; n++) {
        const int ldc = n + n % 2;
        float *at = c + n % LINE;
        fill(c, ROWS * (MOST + 1) + LINE, 0.25f);
        assert_ok(rung_sgemm(small, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, ROWS, n, K, 1.0f, a, K, b, n, 0.0f,
                             at, ldc));
        for (int row = 0; row < ROWS; row++) {
            row_of(a + row * K, b, n, K, 0.0, want);
            int64_t col = first_wrong(want, at + row * ldc, n);
            if (col < n)
                fail_msg("%d columns: C[%d][%d] is %g, not %g", n, row, (int)col, (double)at[row * ldc + col],
                         want[col]);
            assert_true(n == ldc || at[row * ldc + n] == 0.25f);
        }
    }
    free(a);
    free(b);
    free(c);
    rung_context_destroy(small);
    if (before)
        setenv("RUNG_CPU_PLAN", kept, 1);
    else
        unsetenv("RUNG_CPU_PLAN");
}

static void sums(void **state)
{
    (void)state;
    enum { MOST = 100003 };
    float *x = malloc(MOST * sizeof(float));
    uint64_t seed = 4;
    for (int i = 0; i < MOST; i++)
        x[i] = random_float(&seed);
    static const int64_t sizes[] = {1, 2, 3, 15, 16, 17, 1000, 65536, MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        double want = 0, size = 0;
        for (int64_t i = 0; i < sizes[s]; i++)
            want += x[i], size += fabs(x[i]);
        float got = NAN, again = NAN;
        rung_status status = rung_ssum(context, sizes[s], x, &got);
        if (status != RUNG_SUCCESS && rung_context_device(context) != RUNG_DEVICE_CPU)
            break; /* a GPU context wants device memory */
        assert_ok(status);
        assert_ok(rung_ssum(context, sizes[s], x, &again));
        assert_memory_equal(&got, &again, sizeof got);
        assert_true(fabs(got - want) <= (double)sizes[s] * 0x1p-24 * size);
    }
    free(x);
}

/* Lanes of a block are added in FP32, so that few roundings meet one number; blocks in FP64, so that a sum may be as
 * long as it likes. */
static void long_sums_keep_their_last_bits(void **state)
{
    (void)state;
    enum { COUNT = 3000001, A_LANE = 34 };
    float *x = malloc(COUNT * sizeof(float)), got = NAN;
    for (int which = 0; which < 2 && rung_context_device(context) == RUNG_DEVICE_CPU; which++) {
        double want = 0.0; /* these sums are short in FP64 */
        for (int i = 0; i < COUNT; i++)
            want += x[i] = which ? 0.1f : i ? 0.25f : 0x1p36f;
        assert_ok(rung_ssum(context, COUNT, x, &got));
        if (!(fabs(got - want) <= A_LANE * 0x1p-24 * want))
            fail_msg("the sum is %.9g, not %.9g", got, want);
    }
    free(x);
}

/* Of equal numbers a lane's sum is exact: where large and small numbers take turns only adding up the lanes can lose
 * the small ones, and the whole sum is rounded once. */
static void lanes_are_added_in_double(void **state)
{
    (void)state;
    enum { LANES = 64, COUNT = 40 * LANES * 32 };
    float *x = malloc(COUNT * sizeof(float)), got = NAN;
    for (int apart = 2; apart <= LANES && rung_context_device(context) == RUNG_DEVICE_CPU; apart *= 2)
        for (int first = 0; first < apart; first += apart / 2) {
            double want = 0.0; /* exact: these sums are short in FP64 */
            for (int i = 0; i < COUNT; i++)
                want += x[i] = i % apart == first ? 1.0f : 0x1p-25f;
            assert_ok(rung_ssum(context, COUNT, x, &got));
            if (!(fabs(got - want) <= 0x1p-24 * want))
                fail_msg("one of %d is large: the sum is %.9g, not %.9g", apart, got, want);
        }
    free(x);
}

static void run_kernel(rung_context *one_thread, const rung_kernel *kernel, const int64_t *size, int trans_b,
                       float beta)
{
    product p;
    rung_plan *plan = NULL;
    product_new(&p, RUNG_ROW_MAJOR, 0, trans_b, size[0], size[1], size[2], 0, 1, 11);
    p.gemm.beta = beta;
    product_reset(&p);
    if (rung_plan_create_kernel(&plan, one_thread, &p.gemm, kernel->name) == RUNG_SUCCESS) {
        assert_ok(rung_plan_run(plan, &p.gemm));
        product_check(&p, kernel->name);
    } else if (kernel->role == RUNG_LADDER) {
        fail_msg("%s: %s", kernel->name, rung_last_error());
    }
    rung_plan_destroy(plan);
    product_free(&p);
}

/* Each CPU kernel by name, rungs too, which no call of the library takes, around one and two of its tiles. One thread,
 * so that a fault ends this test and not the program; the last name printed is whose it was.
 */
static void no_kernel_reads_past_its_operands(void **state)
{
    (void)state;
    rung_context *one_thread = test_context(1);
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->backend != RUNG_BACKEND_CPU || kernel->role == RUNG_REDUCE ||
            rung_kernel_unusable(one_thread, kernel))
            continue;
        print_message("%s\n", kernel->name);
        const int64_t m[] = {1, kernel->tm + 1, 2 * kernel->tm - 1}, n[] = {1, kernel->tn + 1, 2 * kernel->tn - 1},
                      k[] = {1, 7, 33};
        for (int at = 0; at < 27; at++)
            run_kernel(one_thread, kernel, (int64_t[]){m[at % 3], n[at / 3 % 3], k[at / 9]}, 0, at % 2 ? -0.5f : 0.0f);
        for (int64_t few = 1; few <= 4 && kernel->role == RUNG_PRODUCTION;
             few++) /* all of B's columns may be dot products */
            run_kernel(one_thread, kernel, (int64_t[]){129, few, 2761}, 1, 0.0f);
    }
    rung_context_destroy(one_thread);
}

/* Alpha and beta of every kind, NaN and infinity among them: the rule's result, through each way to call. Operands are
 * small whole numbers, so that sums are exact, and C holds NaN where it must not be read. */
static void scalars_of_every_kind(void **state)
{
    (void)state;
    enum { MOST = 70, FLOATS = MOST * MOST, WAYS = 4 };
    static const float kinds[] = {0.0f, -0.0f, 1.0f, -2.0f, NAN, INFINITY, -INFINITY, 1e-40f};
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 7}, {17, 9, 2}, {40, 33, 20},
                                        {65, 70, 66}, {5, 6, 0}, {1, 70, 9}};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    static float a[FLOATS], b[FLOATS], old[FLOATS], c[FLOATS];
    for (int64_t i = 0; i < FLOATS; i++)
        a[i] = (float)(1 + i * 7 % 3), b[i] = (float)(1 + i * 5 % 3), old[i] = (float)(1 + i * 11 % 3);
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++)
        for (int at = 0; at < KINDS * KINDS * WAYS; at++) {
            const int64_t m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
            const float alpha = kinds[at % KINDS], beta = kinds[at / KINDS % KINDS];
            const int way = at / KINDS / KINDS, trans_a = at & 1, trans_b = at >> 1 & 1;
            const int64_t lda = MOST, ldb = MOST, ldc = MOST;
            rung_gemm g;
            rung_plan *plan;
            for (int64_t i = 0; i < FLOATS; i++)
                c[i] = beta == 0.0f ? NAN : old[i];
            rung_gemm_init(&g);
            g.layout = RUNG_ROW_MAJOR, g.trans_a = (rung_transpose)trans_a, g.trans_b = (rung_transpose)trans_b;
            g.m = m, g.n = n, g.k = k, g.a = a, g.b = b, g.c = c, g.lda = lda, g.ldb = ldb, g.ldc = ldc;
            g.alpha = alpha, g.beta = beta;
            if (way == 0) {
                assert_ok(
                    rung_sgemm(context, g.layout, g.trans_a, g.trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
            } else if (way == 1) {
                assert_ok(rung_gemm_run(context, &g));
            } else if (way == 2) {
                assert_ok(rung_sgemm_strided_batched(context, g.layout, g.trans_a, g.trans_b, m, n, k, alpha, a, lda, 0,
                                                     b, ldb, 0, beta, c, ldc, 0, 1));
            } else {
                assert_ok(rung_plan_create(&plan, context, &g));
                assert_ok(rung_plan_run(plan, &g));
                rung_plan_destroy(plan);
            }
            assert_ok(rung_context_synchronize(context));
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double sum = 0;
                    for (int64_t q = 0; q < k; q++)
                        sum += (double)a[trans_a ? q * lda + i : i * lda + q] *
                               (double)b[trans_b ? j * ldb + q : q * ldb + j];
                    const double want = (alpha == 0.0f || k == 0 ? 0.0 : (double)alpha * sum) +
                                        (beta == 0.0f ? 0.0 : (double)beta * (double)old[i * ldc + j]);
                    const double got = (double)c[i * ldc + j];
                    const int right = isnan(want)   ? isnan(got)
                                      : isinf(want) ? got == want
                                                    : fabs(got - want) <= 1e-6 * fabs(want) + 0x1p-147;
                    if (!right)
                        fail_msg("way %d, %lld x %lld x %lld, alpha %g, beta %g: (%lld, %lld) is %g, not %g", way,
                                 (long long)m, (long long)n, (long long)k, (double)alpha, (double)beta, (long long)i,
                                 (long long)j, got, want);
                }
        }
}

/* Returns whether the kernel's products are not rounded before they are added, as the library promises where the
 * processor can do so. */
static int is_fused(const rung_kernel *kernel)
{
#if defined(__x86_64__)
    return kernel->cpu_needs && strcmp(kernel->cpu_needs, "avx") != 0;
#else
    return kernel->role == RUNG_PRODUCTION;
#endif
}

/* Runs a product each of whose sums is -(1 + 2^-11), to which (1 + 2^-12)^2 comes `step` later: 2^-24 is left of that
 * where no product is rounded before it is added. Returns whether all of C is that. */
static int keeps_last_bits(rung_context *one_thread, const rung_kernel *kernel, int64_t m, int64_t n, int trans,
                           int step)
{
    const int64_t k = 2 * (int64_t)step;
    const int trans_a = trans & 1, trans_b = trans >> 1;
    float *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(n * k), sizeof *b),
          *c = malloc((size_t)(m * n) * sizeof *c);
    rung_gemm g;
    rung_plan *plan;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR, g.trans_a = (rung_transpose)trans_a, g.trans_b = (rung_transpose)trans_b;
    g.m = m, g.n = n, g.k = k, g.a = a, g.b = b, g.c = c;
    g.lda = trans_a ? m : k, g.ldb = trans_b ? k : n, g.ldc = n;
    assert_true(a && b && c);
    for (int64_t i = 0; i < m; i++)
        a[trans_a ? i : i * k] = -(1.0f + 0x1p-11f), a[trans_a ? step * m + i : i * k + step] = 1.0f + 0x1p-12f;
    for (int64_t j = 0; j < n; j++)
        b[trans_b ? j * k : j] = 1.0f, b[trans_b ? j * k + step : step * n + j] = 1.0f + 0x1p-12f;
    assert_ok(rung_plan_create_kernel(&plan, one_thread, &g, kernel->name));
    assert_ok(rung_plan_run(plan, &g));
    rung_plan_destroy(plan);
    int64_t kept = 0;
    for (int64_t i = 0; i < m * n; i++)
        kept += c[i] == 0x1p-24f;
    free(a), free(b), free(c);
    return kept == m * n;
}

/* Two neighbours are added one after the other, or, where a sum's terms are shared out, those that lie a multiple of
 * all lanes and sums apart. */
static void every_step_is_fused(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 9, 17, 24, 33, 49, 70, 129, 150};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    rung_context *one_thread = test_context(1); /* several may have pieces of k each */
    for (int at = 0; at < rung_kernel_count(); at++) {
        const rung_kernel *kernel = rung_kernel_at(at);
        if (rung_kernel_unusable(one_thread, kernel) || !is_fused(kernel))
            continue;
        print_message("%s\n", kernel->name);
        for (int form = 0; form < (kernel->role == RUNG_PRODUCTION ? 4 : 1) * SIZES * SIZES; form++) {
            const int64_t m = sizes[form % SIZES], n = sizes[form / SIZES % SIZES];
            const int trans = form / SIZES / SIZES;
            if (!keeps_last_bits(one_thread, kernel, m, n, trans, 1) &&
                !keeps_last_bits(one_thread, kernel, m, n, trans, 64))
                fail_msg("%s, %lld x %lld, form %d: products are rounded before they are added", kernel->name,
                         (long long)m, (long long)n, trans);
        }
    }
    rung_context_destroy(one_thread);
}

static int open_context(void **state)
{
    (void)state;
    context = test_context(2);
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
        cmocka_unit_test(edges),
        cmocka_unit_test(shapes_with_paths_of_their_own),
        cmocka_unit_test(last_columns_over_blocks_of_k),
        cmocka_unit_test(shapes_beyond_l2),
        cmocka_unit_test(blocks_of_one_thread),
        cmocka_unit_test(strided_batches),
        cmocka_unit_test(batches_through_their_own_entry_points),
        cmocka_unit_test(bias_and_activation),
        cmocka_unit_test(bias_and_activation_on_every_path),
        cmocka_unit_test(thin_products),
        cmocka_unit_test(tiny_products),
        cmocka_unit_test(short_rows),
        cmocka_unit_test(nan_and_infinity_propagate),
        cmocka_unit_test(scalars_of_every_kind),
        cmocka_unit_test(the_same_call_gives_the_same_bits),
        cmocka_unit_test(operands_at_any_address),
        cmocka_unit_test(results_larger_than_the_caches),
        cmocka_unit_test(columns_around_a_chunk),
        cmocka_unit_test(sums),
        cmocka_unit_test(long_sums_keep_their_last_bits),
        cmocka_unit_test(lanes_are_added_in_double),
        cmocka_unit_test(every_step_is_fused),
        cmocka_unit_test(leaves_no_upper_halves_in_use),
        cmocka_unit_test(no_kernel_reads_past_its_operands),
        cmocka_unit_test(as_on_a_zen_3),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
