/* The BLAS drop-in in a program with a xerbla_ of its own and no cblas_xerbla: random calls, most of them wrong in one
 * or two arguments. The first wrong one by position is told, as the reference BLAS tells it, and C stays as it was.
 * RUNG_DISABLE=0 is set: Rung answers.
 * usage: test_plain [REFERENCE_LIBBLAS]
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void fortran(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                     const int *, const float *, const int *, const float *, float *, const int *);
typedef void fortran64(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const float *,
                       const float *, const int64_t *, const float *, const int64_t *, const float *, float *,
                       const int64_t *);
fortran sgemm_;
fortran64 sgemm_64_;
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

enum { ROW = 101, COLUMN = 102, MOST = 12, CALLS = 20000 };

static int64_t told;

#pragma GCC visibility push(default)
void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    told = *info;
}
void xerbla_64_(const char *name, const int64_t *info, size_t length);
void xerbla_64_(const char *name, const int64_t *info, size_t length)
{
    (void)name, (void)length;
    told = *info;
}
#pragma GCC visibility pop

typedef struct call {
    char ta[2], tb[2];
    int m, n, k, lda, ldb, ldc;
} call;

static uint64_t dice = 1;

static int below(int count)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)count);
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

static int turned(char letter)
{
    return strchr("TtCc", letter) != NULL;
}

static call random_call(void)
{
    static const char letters[] = "NnTtCc";
    call c = {{letters[below(6)]}, {letters[below(6)]}, below(MOST), below(MOST), below(MOST), 0, 0, 0};
    c.lda = max(1, turned(c.ta[0]) ? c.k : c.m) + below(3);
    c.ldb = max(1, turned(c.tb[0]) ? c.n : c.k) + below(3);
    c.ldc = max(1, c.m) + below(3);
    int *const numbers[] = {&c.m, &c.n, &c.k, &c.lda, &c.ldb, &c.ldc};
    for (int wrongs = below(3); wrongs > 0; wrongs--) {
        int which = below(8);
        if (which == 6)
            c.ta[0] = "XQ1 \1"[below(5)];
        else if (which == 7)
            c.tb[0] = "XQ1 \1"[below(5)];
        else if (which < 3)
            *numbers[which] = below(2) ? -1 - below(5) : -2147483647 - 1;
        else
            *numbers[which] -= 1 + below(below(3) ? 4 : 40);
    }
    return c;
}

/* Returns BLAS's position of the first wrong argument; 0: none. */
static int wrong_of(const call *c)
{
    if (!strchr("NnTtCc", c->ta[0]))
        return 1;
    if (!strchr("NnTtCc", c->tb[0]))
        return 2;
    if (c->m < 0 || c->n < 0 || c->k < 0)
        return c->m < 0 ? 3 : c->n < 0 ? 4 : 5;
    if (c->lda < max(1, turned(c->ta[0]) ? c->k : c->m))
        return 8;
    if (c->ldb < max(1, turned(c->tb[0]) ? c->n : c->k))
        return 10;
    return c->ldc < max(1, c->m) ? 13 : 0;
}

static float a[64 * 64], b[64 * 64], c_now[64 * 64], c_first[64 * 64];

static int complain(const call *c, const char *who, int64_t expected)
{
    printf("%s('%s', '%s', %d, %d, %d, lda %d, ldb %d, ldc %d): told %lld, expected %lld%s\n", who, c->ta, c->tb, c->m,
           c->n, c->k, c->lda, c->ldb, c->ldc, (long long)told, (long long)expected,
           memcmp(c_now, c_first, sizeof c_now) ? "; C was changed" : "");
    return 1;
}

static int is_wrong(int64_t expected)
{
    return told != expected || (expected && memcmp(c_now, c_first, sizeof c_now));
}

static int number(char letter)
{
    return strchr("Nn", letter) ? 111 : strchr("Tt", letter) ? 112 : 113;
}

static int try_call(const call *c, fortran *reference)
{
    const float one = 1.0f, half = 0.5f;
    int expected = wrong_of(c), bad = 0;
    const int64_t w[] = {c->m, c->n, c->k, c->lda, c->ldb, c->ldc};
    memcpy(c_now, c_first, sizeof c_now), told = 0;
    sgemm_(c->ta, c->tb, &c->m, &c->n, &c->k, &one, a, &c->lda, b, &c->ldb, &half, c_now, &c->ldc);
    bad += is_wrong(expected) ? complain(c, "sgemm_", expected) : 0;
    memcpy(c_now, c_first, sizeof c_now), told = 0;
    sgemm_64_(c->ta, c->tb, &w[0], &w[1], &w[2], &one, a, &w[3], b, &w[4], &half, c_now, &w[5]);
    bad += is_wrong(expected) ? complain(c, "sgemm_64_", expected) : 0;
    if (expected != 1 && expected != 2) { /* whose layout does not count where BLAS's xerbla is told */
        memcpy(c_now, c_first, sizeof c_now), told = 0;
        cblas_sgemm(COLUMN, number(c->ta[0]), number(c->tb[0]), c->m, c->n, c->k, one, a, c->lda, b, c->ldb, half,
                    c_now, c->ldc);
        bad += is_wrong(expected) ? complain(c, "cblas_sgemm by columns", expected) : 0;
        memcpy(c_now, c_first, sizeof c_now), told = 0;
        cblas_sgemm(ROW, number(c->tb[0]), number(c->ta[0]), c->n, c->m, c->k, one, b, c->ldb, a, c->lda, half, c_now,
                    c->ldc);
        bad += is_wrong(expected) ? complain(c, "cblas_sgemm by rows", expected) : 0;
    }
    memcpy(c_now, c_first, sizeof c_now), told = 0;
    if (reference) {
        reference(c->ta, c->tb, &c->m, &c->n, &c->k, &one, a, &c->lda, b, &c->ldb, &half, c_now, &c->ldc);
        bad += is_wrong(expected) ? complain(c, "the reference's sgemm_", expected) : 0;
    }
    return bad;
}

int main(int argc, char **argv)
{
    fortran *reference = NULL;
    int bad = 0, wrong = 0;
    for (int i = 0; i < 64 * 64; i++)
        a[i] = (float)(i % 7), b[i] = (float)(i % 5), c_first[i] = (float)(i % 3) - 1.0f;
    for (int i = 0; i < CALLS && bad < 10; i++) {
        if (i == CALLS / 2 && argc > 1) { /* opened late: until here nobody else could have answered */
            void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
            *(void **)&reference = library ? dlsym(library, "sgemm_") : NULL;
        }
        call c = random_call();
        wrong += wrong_of(&c) != 0;
        bad += try_call(&c, reference);
    }
    printf("%d calls, %d of them wrong%s: %d findings\n", CALLS, wrong, reference ? ", beside the reference" : "", bad);
    return bad != 0;
}
