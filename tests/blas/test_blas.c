/* The BLAS drop-in as programs meet it: every name, argument errors at this program's own xerbla, beta = 0 over NaN,
 * many threads, and RUNG_DISABLE handing on to the next library. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FORTRAN(name, integer)                                                                                         \
    void name(const char *, const char *, const integer *, const integer *, const integer *, const float *,            \
              const float *, const integer *, const float *, const integer *, const float *, float *,                  \
              const integer *);
#define CBLAS(name, integer)                                                                                           \
    void name(int, int, int, integer, integer, integer, float, const float *, integer, const float *, integer, float,  \
              float *, integer);
FORTRAN(sgemm_, int)
FORTRAN(sgemm_64_, int64_t)
FORTRAN(scipy_sgemm_, int)
FORTRAN(scipy_sgemm_64_, int64_t)
CBLAS(cblas_sgemm, int)
CBLAS(cblas_sgemm64_, int64_t)
CBLAS(scipy_cblas_sgemm, int)
CBLAS(scipy_cblas_sgemm64_, int64_t)

enum { ROW = 101, COLUMN = 102, N = 111, T = 112 };

/* This is what the program's own handlers were told. */
static int64_t told_info;
static char told_name[32], told_text[64];

#pragma GCC visibility push(default)
void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    told_info = *info;
    memcpy(told_name, name, length < 31 ? length : 31);
}

void xerbla_64_(const char *name, const int64_t *info, size_t length);
void xerbla_64_(const char *name, const int64_t *info, size_t length)
{
    told_info = *info;
    memcpy(told_name, name, length < 31 ? length : 31);
}

void cblas_xerbla(int info, const char *name, const char *form, ...);
void cblas_xerbla(int info, const char *name, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    vsnprintf(told_text, sizeof told_text, form, list);
    va_end(list);
    told_info = info;
    strncpy(told_name, name, 31);
}

extern int RowMajorStrg;
#pragma GCC visibility pop

static float a[64], b[64], c[64];

static void fill(float of_c)
{
    for (int i = 0; i < 64; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
        c[i] = of_c;
    }
    told_info = 0;
    memset(told_name, 0, sizeof told_name);
}

/* Computes C of the 4 x 3 product with k = 5, A and B column-major and unpadded. */
static float want(int i, int j, int ta, int tb)
{
    float sum = 0;
    for (int p = 0; p < 5; p++)
        sum += a[ta ? i * 5 + p : p * 4 + i] * b[tb ? p * 3 + j : j * 5 + p];
    return sum;
}

static void check(int ta, int tb)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            assert_true(c[j * 4 + i] == want(i, j, ta, tb));
    assert_int_equal(told_info, 0);
}

#define CHECK_FORTRAN(name, integer)                                                                                   \
    for (int form = 0; form < 4; form++) {                                                                             \
        integer m = 4, n = 3, k = 5, lda = form & 1 ? 5 : 4, ldb = form & 2 ? 3 : 5, ldc = 4;                          \
        float one = 1, zero = 0;                                                                                       \
        fill(NAN);                                                                                                     \
        name(form & 1 ? "t" : "N", form & 2 ? "C" : "n", &m, &n, &k, &one, a, &lda, b, &ldb, &zero, c, &ldc);          \
        check(form & 1, form & 2);                                                                                     \
    }
#define CHECK_CBLAS(name)                                                                                              \
    for (int form = 0; form < 4; form++) {                                                                             \
        fill(NAN);                                                                                                     \
        name(COLUMN, form & 1 ? T : N, form & 2 ? T : N, 4, 3, 5, 1, a, form & 1 ? 5 : 4, b, form & 2 ? 3 : 5, 0, c,   \
             4);                                                                                                       \
        check(form & 1, form & 2);                                                                                     \
        fill(NAN); /* the transposed product in rows is the same memory */                                             \
        name(ROW, form & 2 ? T : N, form & 1 ? T : N, 3, 4, 5, 1, b, form & 2 ? 3 : 5, a, form & 1 ? 5 : 4, 0, c, 4);  \
        check(form & 1, form & 2);                                                                                     \
    }

/* Tries each letter that BLAS knows, and CBLAS's conjugate transpose, which is a transpose of what is real. */
static void every_letter_is_known(void **state)
{
    (void)state;
    static const char letters[] = "NnTtCc";
    for (int i = 0; i < 36; i++) {
        char ta[] = {letters[i / 6], 0}, tb[] = {letters[i % 6], 0};
        int m = 4, n = 3, k = 5, turned_a = i / 6 >= 2, turned_b = i % 6 >= 2, lda = turned_a ? 5 : 4,
            ldb = turned_b ? 3 : 5, ldc = 4;
        float one = 1, zero = 0;
        fill(NAN);
        sgemm_(ta, tb, &m, &n, &k, &one, a, &lda, b, &ldb, &zero, c, &ldc);
        check(turned_a, turned_b);
    }
    for (int form = 0; form < 4; form++) {
        enum { CONJ = 113 };
        fill(NAN);
        cblas_sgemm(COLUMN, form & 1 ? CONJ : N, form & 2 ? CONJ : N, 4, 3, 5, 1, a, form & 1 ? 5 : 4, b,
                    form & 2 ? 3 : 5, 0, c, 4);
        check(form & 1, form & 2);
    }
}

static void every_name_computes(void **state)
{
    (void)state;
    CHECK_FORTRAN(sgemm_, int)
    CHECK_FORTRAN(sgemm_64_, int64_t)
    CHECK_FORTRAN(scipy_sgemm_, int)
    CHECK_FORTRAN(scipy_sgemm_64_, int64_t)
    CHECK_CBLAS(cblas_sgemm)
    CHECK_CBLAS(cblas_sgemm64_)
    CHECK_CBLAS(scipy_cblas_sgemm)
    CHECK_CBLAS(scipy_cblas_sgemm64_)
}

static void untouched(void)
{
    for (int i = 0; i < 64; i++)
        assert_true(c[i] == 7.0f);
}

static void wrong_arguments_reach_xerbla(void **state)
{
    (void)state;
    static const int positions[] = {3, 4, 5, 8, 10, 13};
    for (int at = 0; at < 6; at++) {
        int v[6] = {4, 4, 4, 4, 4, 4};
        int64_t w[6] = {4, 4, 4, 4, 4, 4};
        v[at] = -1, w[at] = INT64_MIN;
        float one = 1;
        fill(7.0f);
        sgemm_("N", "N", &v[0], &v[1], &v[2], &one, a, &v[3], b, &v[4], &one, c, &v[5]);
        assert_int_equal(told_info, positions[at]);
        assert_string_equal(told_name, "SGEMM ");
        fill(7.0f);
        sgemm_64_("N", "N", &w[0], &w[1], &w[2], &one, a, &w[3], b, &w[4], &one, c, &w[5]);
        assert_int_equal(told_info, positions[at]);
        fill(7.0f);
        cblas_sgemm(COLUMN, N, N, v[0], v[1], v[2], 1, a, v[3], b, v[4], 1, c, v[5]);
        assert_int_equal(told_info, positions[at] + 1);
        assert_string_equal(told_name, "cblas_sgemm");
        assert_int_equal(RowMajorStrg, 0);
        untouched();
    }
}

static void row_major_positions_follow_the_reference(void **state)
{
    (void)state;
    fill(7.0f);
    cblas_sgemm(ROW, N, N, -1, 4, 4, 1, a, 4, b, 4, 1, c, 4);
    assert_int_equal(told_info, 5); /* m is n of the exchanged call; RowMajorStrg says so */
    assert_int_equal(RowMajorStrg, 1);
    cblas_sgemm(ROW, N, N, 4, 4, 4, 1, a, 3, b, 4, 1, c, 4);
    assert_int_equal(told_info, 11);
    untouched();
}

static void wrong_settings_reach_xerbla(void **state)
{
    (void)state;
    int four = 4;
    float one = 1;
    fill(7.0f);
    sgemm_("X", "N", &four, &four, &four, &one, a, &four, b, &four, &one, c, &four);
    assert_int_equal(told_info, 1);
    sgemm_("N", "", &four, &four, &four, &one, a, &four, b, &four, &one, c, &four);
    assert_int_equal(told_info, 2);
    cblas_sgemm(7, N, N, 4, 4, 4, 1, a, 4, b, 4, 1, c, 4);
    assert_int_equal(told_info, 1);
    assert_string_equal(told_text, "Illegal layout setting, 7\n");
    cblas_sgemm(COLUMN, 8, N, 4, 4, 4, 1, a, 4, b, 4, 1, c, 4);
    assert_int_equal(told_info, 2);
    assert_string_equal(told_text, "Illegal TransA setting, 8\n");
    cblas_sgemm(ROW, N, 9, 4, 4, 4, 1, a, 4, b, 4, 1, c, 4);
    assert_int_equal(told_info, 3);
    assert_string_equal(told_text, "Illegal TransB setting, 9\n");
    untouched();
}

/* BLAS leaves open what a C on top of A or B becomes: here it is what it would be elsewhere. */
static void a_result_on_its_operand_is_right(void **state)
{
    (void)state;
    for (int form = 0; form < 16; form++) { /* on A or on B, beta 0 or not, every transpose; no two sizes are alike */
        enum { MOST = 83 * 80 };
        static float both[MOST], other[MOST], apart[MOST];
        int on_b = form & 1, m = 80, n = 70, k = 60, ld = 81, ldc = 82 - on_b, ld_other = 83;
        float two = 2, of_c = form & 2 ? 0.5f : 0;
        const char *ta = form & 4 ? "T" : "N", *tb = form & 8 ? "c" : "n";
        for (int i = 0; i < MOST; i++)
            other[i] = (float)(i % 7), both[i] = (float)(i % 11);
        memcpy(apart, both, sizeof both);
        told_info = 0;
        const float *of_a = on_b ? other : both, *of_b = on_b ? both : other;
        int *lda = on_b ? &ld_other : &ld, *ldb = on_b ? &ld : &ld_other;
        sgemm_(ta, tb, &m, &n, &k, &two, of_a, lda, of_b, ldb, &of_c, apart, &ldc);
        sgemm_(ta, tb, &m, &n, &k, &two, of_a, lda, of_b, ldb, &of_c, both, &ldc);
        assert_int_equal(told_info, 0);
        assert_memory_equal(both, apart, sizeof both);
    }
}

static void *many_products(void *argument)
{
    (void)argument;
    float x[90 * 90], y[90 * 90], z[90 * 90];
    for (int i = 0; i < 90 * 90; i++)
        x[i] = 1.0f, y[i] = 2.0f;
    for (int round = 0; round < 20; round++) {
        cblas_sgemm(ROW, N, T, 90, 90, 90, 1, x, 90, y, 90, 0, z, 90);
        for (int i = 0; i < 90 * 90; i++)
            if (z[i] != 180.0f)
                return (void *)"wrong";
    }
    return NULL;
}

static void from_many_threads(void **state)
{
    (void)state;
    pthread_t thread[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, many_products, NULL), 0);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(thread[i], &result);
        assert_null(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_computes),
        cmocka_unit_test(every_letter_is_known),
        cmocka_unit_test(wrong_arguments_reach_xerbla),
        cmocka_unit_test(row_major_positions_follow_the_reference),
        cmocka_unit_test(wrong_settings_reach_xerbla),
        cmocka_unit_test(a_result_on_its_operand_is_right),
        cmocka_unit_test(from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
