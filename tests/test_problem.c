/* What a checked call becomes, for drawn calls of every layout, form and stride: each element of an operand and of C
 * lies in the row-major problem where it lies in the call; what is said of alignment holds for the address of every
 * line of every matrix, and leaves nothing out; scalars, bias and what is not to be looked at. And what may pass for
 * the call before it: the same call on other operands, and no other. */
#include "core/again.h"
#include "core/overlap.h"
#include "core/plain.h"
#include "core/validate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 20000 };

static uint64_t dice = 1;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

/* An operand, or C, of the call: where its element (row, column) of a matrix lies, as the layout has it. */
typedef struct stored {
    const float *at;
    int64_t ld, stride;
    int lines_are_rows;
    int64_t rows, columns;
} stored;

static const float *element(const stored *x, int64_t entry, int64_t row, int64_t column)
{
    return x->at + entry * x->stride + (x->lines_are_rows ? row * x->ld + column : row + column * x->ld);
}

/* Returns the largest power of two up to 16 of which the first float of every line is a multiple. */
static int alignment_of(const stored *x, int64_t batch)
{
    uintptr_t bits = 16;
    for (int64_t e = 0; e < batch; e++)
        for (int64_t line = 0; line < (x->lines_are_rows ? x->rows : x->columns); line++)
            bits |= (uintptr_t)(x->lines_are_rows ? element(x, e, line, 0) : element(x, e, 0, line));
    return (int)(bits & -bits);
}

static stored draw_stored(int lines_are_rows, int64_t rows, int64_t columns)
{
    static _Alignas(64) float memory[16];
    const int64_t lines = lines_are_rows ? rows : columns, length = lines_are_rows ? columns : rows;
    const int pads[] = {0, 0, 1, 2, 3, 4, 8};
    stored x = {
        .at = memory + draw(draw(2) ? 5 : 1), .lines_are_rows = lines_are_rows, .rows = rows, .columns = columns};
    x.ld = draw(3) ? (length + 3 + pads[draw(7)]) & -4 : length + pads[draw(7)];
    x.stride = lines * x.ld + pads[draw(7)];
    if (draw(6) == 0)
        x.stride = -x.stride;
    return x;
}

/* A call, and its matrices as they are stored. */
typedef struct call {
    rung_gemm g;
    stored a, b, c;
} call;

static call draw_call(void)
{
    call k;
    rung_gemm *g = &k.g;
    rung_gemm_init(g);
    const int row = draw(2);
    g->layout = row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
    g->trans_a = draw(2) ? RUNG_TRANS : RUNG_NO_TRANS;
    g->trans_b = draw(2) ? RUNG_TRANS : RUNG_NO_TRANS;
    g->m = 1 + draw(20), g->n = 1 + draw(20), g->k = 1 + draw(20), g->batch = draw(2) ? 1 : 2 + draw(3);
    /* op(A) is m x k; lines of what is stored are its rows or its columns */
    k.a = draw_stored(row != (g->trans_a == RUNG_TRANS), g->m, g->k);
    k.b = draw_stored(row != (g->trans_b == RUNG_TRANS), g->k, g->n);
    k.c = draw_stored(row, g->m, g->n);
    g->a = k.a.at, g->lda = k.a.ld, g->stride_a = k.a.stride;
    g->b = k.b.at, g->ldb = k.b.ld, g->stride_b = k.b.stride;
    g->c = (float *)(uintptr_t)k.c.at, g->ldc = k.c.ld, g->stride_c = k.c.stride;
    if (draw(8) == 0)
        g->stride_a = k.a.stride = 0;
    if (draw(8) == 0)
        g->stride_b = k.b.stride = 0;
    g->alpha = draw(8) ? 0.5f : 0.0f, g->beta = (float)draw(3);
    g->alpha_device = draw(6) ? NULL : k.a.at, g->beta_device = draw(6) ? NULL : k.b.at;
    g->bias_kind = (rung_bias)draw(3);
    g->bias = g->bias_kind ? k.a.at : NULL;
    g->activation = (rung_activation)draw(3);
    return k;
}

static rung_problem checked(const call *k, int *nothing)
{
    rung_problem p;
    memset(&p, 0, sizeof p);
    assert_int_equal(rung_validate(&k->g, RUNG_ACCURATE, &p, nothing), RUNG_SUCCESS);
    return p;
}

static int scales(const rung_gemm *g)
{
    return g->alpha == 0.0f && !g->alpha_device;
}

/* Returns the problem's operands and C as they are stored: row-major, and lines of a transposed one are its columns. */
static void stored_of(const rung_problem *p, stored *a, stored *b, stored *c)
{
    *a = (stored){p->a, p->lda, p->stride_a, !p->trans_a, p->m, p->k};
    *b = (stored){p->b, p->ldb, p->stride_b, !p->trans_b, p->k, p->n};
    *c = (stored){p->c, p->ldc, p->stride_c, 1, p->m, p->n};
}

static void each_element_lies_where_the_call_has_it(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        const call k = draw_call();
        int nothing;
        const rung_problem p = checked(&k, &nothing);
        const int swap = k.g.layout == RUNG_COL_MAJOR; /* C' = B' A' */
        if (nothing)
            continue;
        assert_int_equal(p.m, swap ? k.g.n : k.g.m);
        assert_int_equal(p.n, swap ? k.g.m : k.g.n);
        assert_int_equal(p.batch, k.g.batch);
        stored a, b, c;
        stored_of(&p, &a, &b, &c);
        for (int i = 0; i < 8; i++) {
            const int64_t row = draw((int)k.g.m), column = draw((int)k.g.n), step = draw((int)k.g.k);
            const int64_t entry = draw((int)k.g.batch);
            const float *of_a = element(&k.a, entry, row, step), *of_b = element(&k.b, entry, step, column);
            const int64_t i0 = swap ? column : row, j0 = swap ? row : column;
            assert_ptr_equal(element(&a, entry, i0, step), swap ? of_b : of_a);
            assert_ptr_equal(element(&b, entry, step, j0), swap ? of_a : of_b);
            assert_ptr_equal(element(&c, entry, i0, j0), element(&k.c, entry, row, column));
        }
    }
}

/* A matrix of one line, or a batch of one, has a step that leads nowhere: it may be counted, and no more. */
static void check_alignment(const stored *x, int64_t batch, int told)
{
    const int64_t lines = x->lines_are_rows ? x->rows : x->columns;
    const int true_one = alignment_of(x, batch);
    assert_true(told == 4 || told == 8 || told == 16);
    assert_true(told <= true_one);
    if (lines > 1)
        assert_int_equal(told, true_one);
}

static void alignment_is_that_of_every_line(void **state)
{
    int times[17] = {0};
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        call k = draw_call();
        int nothing;
        const rung_problem p = checked(&k, &nothing);
        const int swap = k.g.layout == RUNG_COL_MAJOR;
        if (nothing)
            continue;
        check_alignment(&k.a, k.g.batch, swap ? p.align_b : p.align_a);
        check_alignment(&k.b, k.g.batch, swap ? p.align_a : p.align_b);
        check_alignment(&k.c, k.g.batch, p.align_c);
        times[p.align_a]++;
        k.g.a_array = &k.g.a, k.g.b_array = &k.g.b, k.g.c_array = &k.g.c; /* nobody knows what these lists hold */
        const rung_problem listed = checked(&k, &nothing);
        assert_true(listed.arrays && listed.align_a == 4 && listed.align_b == 4 && listed.align_c == 4);
    }
    assert_true(times[4] > TRIALS / 20 && times[8] > TRIALS / 20 && times[16] > TRIALS / 20);
}

static void scalars_and_ends_are_the_calls(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        call k = draw_call();
        int64_t *const sizes[] = {&k.g.k, &k.g.m, &k.g.n, &k.g.batch};
        for (int i = 0; i < 4; i++) /* any of them may be nothing */
            if (draw(8) == 0)
                *sizes[i] = 0;
        if (draw(8) == 0)
            k.g.alpha = INFINITY;
        const rung_gemm *g = &k.g;
        int nothing;
        const rung_problem p = checked(&k, &nothing);
        const int plain_end = g->bias_kind == RUNG_NO_BIAS && g->activation == RUNG_IDENTITY;
        const int is_empty = g->m == 0 || g->n == 0 || g->batch == 0, no_sum = scales(g) || g->k == 0;
        assert_int_equal(nothing, is_empty || (no_sum && g->beta == 1.0f && !g->beta_device && plain_end));
        assert_int_equal(p.k, no_sum ? 0 : g->k);
        assert_true(p.alpha == (no_sum ? 0.0f : g->alpha) && p.beta == g->beta);
        assert_ptr_equal(p.alpha_device, no_sum ? NULL : g->alpha_device);
        assert_ptr_equal(p.beta_device, g->beta_device);
        assert_int_equal(p.device_scalars, g->alpha_device || g->beta_device);
        assert_int_equal(p.beta_zero, g->beta == 0.0f && !g->beta_device);
        assert_int_equal(p.math, RUNG_ACCURATE);
        assert_int_equal(p.activation, g->activation);
        assert_ptr_equal(p.bias, g->bias);
        const int is_turned = g->layout == RUNG_COL_MAJOR && g->bias_kind != RUNG_NO_BIAS;
        assert_int_equal(p.bias_kind, !is_turned                          ? g->bias_kind
                                      : g->bias_kind == RUNG_BIAS_PER_ROW ? RUNG_BIAS_PER_COLUMN
                                                                          : RUNG_BIAS_PER_ROW);
    }
}

/* Plans of one shape are found again whatever a single product's strides say. */
static void strides_of_a_single_product_mean_nothing(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS / 10; trial++) {
        call k = draw_call();
        int nothing;
        k.g.batch = 1;
        k.g.alpha = 0.5f, k.g.beta = 0.0f;
        const rung_problem p = checked(&k, &nothing);
        k.g.stride_a = 1 + draw(9), k.g.stride_b = 0, k.g.stride_c = 0;
        const rung_problem again = checked(&k, &nothing);
        assert_int_equal(nothing, 0);
        assert_memory_equal(&p, &again, sizeof p);
    }
}

/* ---- the call before ---- */

/* Returns the bytes from the first float of a matrix, or of a batch, to behind the last. */
static int64_t span_of(const stored *x, int64_t batch)
{
    return 4 + 4 * (element(x, batch - 1, x->rows - 1, x->columns - 1) - x->at);
}

/* Operands that nobody reads lie far apart, each at some float. */
static call draw_kept(void)
{
    for (;;) {
        call k = draw_call();
        rung_gemm *g = &k.g;
        g->alpha = 0.5f; /* else there is nothing to multiply, and the call is not kept */
        g->a = (const float *)(uintptr_t)((1 << 20) + 4 * draw(5));
        g->b = (const float *)(uintptr_t)((2 << 20) + 4 * draw(5));
        g->c = (float *)(uintptr_t)((3 << 20) + 4 * draw(5));
        k.a.at = g->a, k.b.at = g->b, k.c.at = g->c;
        if (g->stride_a >= 0 && g->stride_b >= 0 && g->stride_c > 0)
            return k;
    }
}

/* Puts one matrix of the call right behind or before another one, give or take a few floats. */
static void put_close(call *k)
{
    stored *const of[] = {&k->a, &k->b};
    stored *near = of[draw(2)], *c = &k->c;
    const int64_t span = draw(2) ? span_of(near, k->g.batch) : -span_of(c, k->g.batch);
    c->at = (const float *)(uintptr_t)((int64_t)(uintptr_t)near->at + span + 4 * (draw(9) - 4));
    k->g.c = (float *)(uintptr_t)c->at;
}

static int lie_apart(const stored *x, const stored *y, int64_t batch)
{
    const int64_t at_x = (int64_t)(uintptr_t)x->at, at_y = (int64_t)(uintptr_t)y->at;
    return at_x + span_of(x, batch) <= at_y || at_y + span_of(y, batch) <= at_x;
}

/* Operands that a check refuses never pass, those that lie apart and as well aligned do; what passes is the problem
 * that a check makes. */
static void other_operands_pass_where_a_check_lets_them(void **state)
{
    int passed = 0, refused = 0;
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        call k = draw_kept();
        rung_again again;
        int nothing;
        const rung_problem kept = checked(&k, &nothing);
        memset(&again, 0, sizeof again);
        rung_again_keep(&again, &k.g, &kept);
        assert_int_equal(rung_again_fits(&again, &k.g), 1);
        put_close(&k);
        const rung_problem p = checked(&k, &nothing);
        const int is_wrong = rung_refuse_overlap(&p, &k.g) != RUNG_SUCCESS;
        const int must = lie_apart(&k.c, &k.a, k.g.batch) && lie_apart(&k.c, &k.b, k.g.batch) &&
                         p.align_a == kept.align_a && p.align_b == kept.align_b && p.align_c == kept.align_c;
        const int fits = rung_again_fits(&again, &k.g);
        /* results that overlap each other were refused when the call was checked first */
        assert_true(!must || fits);
        assert_true(!fits || !is_wrong || rung_refuse_overlap(&kept, &k.g) != RUNG_SUCCESS);
        if (fits)
            assert_memory_equal(&again.problem, &p, sizeof p);
        passed += fits, refused += is_wrong;
    }
    assert_true(passed > TRIALS / 10 && refused > TRIALS / 10);
}

/* One bit of one field is another one: then it is another call. */
static void no_other_call_passes(void **state)
{
#define FIELD(name)                                                                                                    \
    {                                                                                                                  \
        offsetof(rung_gemm, name), sizeof((rung_gemm *)0)->name, #name                                                 \
    }
    static const struct {
        size_t at, bytes;
        const char *name;
    } fields[] = {
        FIELD(layout),       FIELD(trans_a),     FIELD(trans_b),   FIELD(m),       FIELD(n),         FIELD(k),
        FIELD(lda),          FIELD(ldb),         FIELD(ldc),       FIELD(batch),   FIELD(stride_a),  FIELD(stride_b),
        FIELD(stride_c),     FIELD(a_array),     FIELD(b_array),   FIELD(c_array), FIELD(alpha),     FIELD(beta),
        FIELD(alpha_device), FIELD(beta_device), FIELD(bias_kind), FIELD(bias),    FIELD(activation)};
#undef FIELD
    enum { FIELDS = sizeof fields / sizeof fields[0] };
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        call k = draw_kept();
        rung_again again;
        int nothing;
        k.g.beta += 1.0f; /* a zero with a sign is the same number */
        const rung_problem kept = checked(&k, &nothing);
        memset(&again, 0, sizeof again);
        rung_again_keep(&again, &k.g, &kept);
        const int field = trial % FIELDS, bit = draw(8 * (int)fields[field].bytes);
        ((unsigned char *)&k.g)[fields[field].at + (size_t)bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (rung_again_fits(&again, &k.g))
            fail_msg("a call with another %s passes for the one before", fields[field].name);
    }
}

/* What may keep to the calling thread: sides of 32 at most, or as much work as 2^17 elements and FMAs, where elements
 * that are only copied count as well. */
static void so_much_is_small(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        int is_small;
    } shapes[] = {{1, 1, 1, 1},     {32, 32, 32, 1},   {49, 49, 49, 1},  {50, 50, 50, 0},   {1, 1, 1 << 15, 1},
                  {1, 1, 43690, 1}, {1, 1, 43691, 0},  {43690, 1, 1, 1}, {43691, 1, 1, 0},  {1, 43690, 1, 1},
                  {1, 43691, 1, 0}, {1000, 100, 1, 0}, {300, 200, 1, 1}, {100, 1000, 1, 0}, {2, 256, 256, 0},
                  {1, 209, 208, 1}, {256, 256, 1, 0},  {180, 2, 180, 1}, {255, 255, 1, 1},  {1 << 20, 1, 1, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const rung_plain plain = {.m = shapes[i].m, .n = shapes[i].n, .k = shapes[i].k};
        if (rung_is_small_shape(&plain) != shapes[i].is_small)
            fail_msg("%lld x %lld x %lld is %ssmall", (long long)shapes[i].m, (long long)shapes[i].n,
                     (long long)shapes[i].k, shapes[i].is_small ? "not " : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_operands_pass_where_a_check_lets_them),
        cmocka_unit_test(no_other_call_passes),
        cmocka_unit_test(each_element_lies_where_the_call_has_it),
        cmocka_unit_test(alignment_is_that_of_every_line),
        cmocka_unit_test(scalars_and_ends_are_the_calls),
        cmocka_unit_test(strides_of_a_single_product_mean_nothing),
        cmocka_unit_test(so_much_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
