/* A library that computes wrongly, to judge the judge: preloaded before librung it runs each plan and then does to the
 * result what RUNG_WRONG says. It knows host memory, sums, and single products but for "entry=".
 */
#define _GNU_SOURCE
#include "rung.h"
#include "rung_multi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef rung_status run_function(rung_plan *plan, const rung_gemm *g);

static float *element(float *at, int64_t ld, int by_rows, int64_t row, int64_t col)
{
    return by_rows ? at + row * ld + col : at + row + col * ld;
}

static float *of_a(const rung_gemm *g, int64_t i, int64_t p)
{
    int by_rows = (g->layout == RUNG_ROW_MAJOR) != (g->trans_a == RUNG_TRANS);
    return element((float *)(uintptr_t)g->a, g->lda, by_rows, i, p);
}

static float *of_b(const rung_gemm *g, int64_t p, int64_t j)
{
    int by_rows = (g->layout == RUNG_ROW_MAJOR) != (g->trans_b == RUNG_TRANS);
    return element((float *)(uintptr_t)g->b, g->ldb, by_rows, p, j);
}

static float *of_c(const rung_gemm *g, int64_t i, int64_t j)
{
    return element(g->c, g->ldc, g->layout == RUNG_ROW_MAJOR, i, j);
}

/* Every element errs by so many units of 2^-24 of the sum of its products' sizes. alpha is 1 for it, and beta 0. */
static void err_by(const rung_gemm *g, double units)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < g->k; p++) {
                double product = (double)*of_a(g, i, p) * *of_b(g, p, j);
                sum += product;
                size += fabs(product);
            }
            *of_c(g, i, j) = (float)(sum + units * size * 0x1p-24);
        }
}

/* A chain of additions that round toward zero. alpha is 1 for it, and beta 0. */
static void truncate(const rung_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float chain = 0.0f;
            for (int64_t p = 0; p < g->k; p++) {
                double sum = chain + (double)*of_a(g, i, p) * *of_b(g, p, j);
                chain = (float)sum;
                if (fabs((double)chain) > fabs(sum))
                    chain = nextafterf(chain, 0.0f);
            }
            *of_c(g, i, j) = chain;
        }
}

/* Rounds to as many bits as bf16 keeps, as a kernel on tensor cores would without being asked. */
static float half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x8000u) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Operands lose the lower half of their bits; sums are exact. alpha is 1 for it, and beta 0. */
static void halve(const rung_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += (double)half_of(*of_a(g, i, p)) * half_of(*of_b(g, p, j));
            *of_c(g, i, j) = (float)sum;
        }
}

/* Two rows change their places. */
static void swap_rows(const rung_gemm *g)
{
    for (int64_t j = 0; j < g->n && g->m > 1; j++) {
        float *x = of_c(g, 0, j), *y = of_c(g, g->m - 1, j), kept = *x;
        *x = *y;
        *y = kept;
    }
}

/* Changes every element of a kind: as a kernel does that knows no numbers below the normal range, no NaN, or no Inf. */
static void change_each(const rung_gemm *g, const char *how)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float *c = of_c(g, i, j);
            if (!strcmp(how, "flush") && fabsf(*c) < 0x1p-126f)
                *c = 0.0f;
            else if (!strcmp(how, "swallow") && isnan(*c))
                *c = 0.0f;
            else if (!strcmp(how, "saturate") && isinf(*c))
                *c = copysignf(0x1.fffffep127f, *c);
        }
}

/* What depends on the C that was there before. */
static void mix_old(const rung_gemm *g, const char *how, float old)
{
    float *c = of_c(g, g->m / 2, g->n / 2);
    if (!strcmp(how, "left")) /* an element is not written */
        *c = old;
    else if (!strcmp(how, "old") && g->beta == 0.0f) /* C is read where beta is 0 */
        *c += 0.0f * old;
    else if (!strcmp(how, "beta")) /* and not read where it is not */
        *c -= g->beta * old;
}

static int is_old(const char *how)
{
    return !strcmp(how, "left") || !strcmp(how, "old") || !strcmp(how, "beta");
}

/* Asks the driver that RUNG_LIBCUDA names. */
static int lies_on_host(const void *memory)
{
    enum { MEMORY_TYPE = 2 };
    typedef int function(void *value, int attribute, unsigned long long at);
    const char *name = getenv("RUNG_LIBCUDA");
    void *driver = name ? dlopen(name, RTLD_NOW) : NULL;
    function *get = driver ? (function *)(uintptr_t)dlsym(driver, "cuPointerGetAttribute") : NULL;
    unsigned type;
    return !get || get(&type, MEMORY_TYPE, (uintptr_t)memory) != 0;
}

static void damage(const rung_gemm *g, const char *how)
{
    static int calls;
    const int later = calls > 1; /* than the first case */
    int again =
        calls++ % 2; /* verify runs a case twice: what the first call changes shows as other bits in the second */
    int64_t i = g->m / 2, j = g->n / 2;
    int by_rows = g->layout == RUNG_ROW_MAJOR;
    double power;
    if (!strcmp(how, "product") || (!strcmp(how, "later") && later))
        *of_c(g, i, j) -= g->alpha * *of_a(g, i, g->k - 1) * *of_b(g, g->k - 1, j);
    else if (!strcmp(how, "edge"))
        *of_c(g, g->m - 1, g->n - 1) = *of_c(g, 0, 0);
    else if (!strncmp(how, "dies=", 5) && calls == atoi(how + 5))
        _Exit(77);
    else if (!strncmp(how, "dies=", 5))
        *of_c(g, i, j) = NAN;
    else if (!strcmp(how, "nan"))
        *of_c(g, i, j) = NAN;
    else if (!strcmp(how, "inf"))
        *of_c(g, i, j) = INFINITY;
    else if ((!strcmp(how, "second") && again) || (!strcmp(how, "once") && again && !later))
        *of_c(g, i, j) = nextafterf(*of_c(g, i, j), INFINITY);
    else if (!strcmp(how, "outside"))
        *(by_rows ? of_c(g, g->m - 1, g->n) : of_c(g, g->m, g->n - 1)) = 1.0f;
    else if (!strcmp(how, "host") && lies_on_host(g->a))
        *of_c(g, i, j) = NAN;
    else if (!strcmp(how, "before"))
        g->c[-1] = 1.0f;
    else if (!strcmp(how, "a") && again)
        *of_a(g, i, g->k - 1) += 1.0f;
    else if (!strcmp(how, "b") && again)
        *of_b(g, g->k - 1, j) += 1.0f;
    else if (!strcmp(how, "first_a") && !again)
        *of_a(g, i, g->k - 1) += 1.0f;
    else if (!strcmp(how, "first_b") && !again)
        *of_b(g, g->k - 1, j) += 1.0f;
    else if (!strcmp(how, "truncate"))
        truncate(g);
    else if (!strcmp(how, "halves"))
        halve(g);
    else if (!strcmp(how, "swap"))
        swap_rows(g);
    else if (!strncmp(how, "err=", 4))
        err_by(g, atof(how + 4));
    else if (sscanf(how, "grow=%lf", &power) == 1 && g->m == g->n && g->n == g->k && g->k >= 16 &&
             (g->k & (g->k - 1)) == 0 && g->alpha == 1.0f && g->beta == 0.0f && !g->bias_kind && !g->activation)
        err_by(g, pow((double)g->k / 16.0, power));
    else if (sscanf(how, "cube=%" SCNd64, &i) == 1 && g->m == i && g->n == i && g->k == i)
        *of_c(g, i - 1, 0) = 1.0f;
    else if (sscanf(how, "at=%" SCNd64 ",%" SCNd64, &i, &j) == 2 && i < g->m && j < g->n)
        *of_c(g, i, j) += g->alpha * *of_a(g, i, 0) * *of_b(g, 0, j);
}

/* Of a batch one product. */
static void damage_entry(const rung_gemm *g, const char *how)
{
    rung_gemm one = *g;
    int64_t entry;
    if (!strcmp(how, "first") && g->stride_c) /* all entries are the first one's */
        for (entry = 1; entry < g->batch && !g->c_array; entry++)
            for (int64_t i = 0; i < g->m; i++)
                for (int64_t j = 0; j < g->n; j++)
                    of_c(g, i, j)[entry * g->stride_c] = *of_c(g, i, j);
    if (sscanf(how, "entry=%" SCNd64, &entry) != 1 || entry >= g->batch)
        return;
    one.a += entry * g->stride_a;
    one.b += entry * g->stride_b;
    one.c += entry * g->stride_c;
    damage(&one, "product");
}

/* RUNG_WRONG=modes=FILE: everything is right, and the file gets a line for each product that is planned or run and for
 * each multi context: in which mode. RUNG_WRONG=plans=FILE: so, too, and no product can be planned, so that nothing
 * takes time. */
static void note_mode(rung_math math)
{
    const char *how = getenv("RUNG_WRONG");
    FILE *file = how && (!strncmp(how, "modes=", 6) || !strncmp(how, "plans=", 6)) ? fopen(how + 6, "a") : NULL;
    if (file) {
        fprintf(file, "%d\n", (int)math);
        fclose(file);
    }
}

static int plans_nothing(void)
{
    const char *how = getenv("RUNG_WRONG");
    return how && !strncmp(how, "plans=", 6);
}

rung_status rung_plan_create(rung_plan **plan, rung_context *context, const rung_gemm *g)
{
    typedef rung_status function(rung_plan **, rung_context *, const rung_gemm *);
    note_mode(rung_context_math(context));
    return plans_nothing() ? RUNG_UNSUPPORTED
                           : ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_plan_create"))(plan, context, g);
}

rung_status rung_plan_create_kernel(rung_plan **plan, rung_context *context, const rung_gemm *g, const char *kernel)
{
    typedef rung_status function(rung_plan **, rung_context *, const rung_gemm *, const char *);
    return plans_nothing()
               ? RUNG_UNSUPPORTED
               : ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_plan_create_kernel"))(plan, context, g, kernel);
}

rung_status rung_multi_create(rung_multi **multi, const rung_multi_config *config)
{
    typedef rung_status function(rung_multi **, const rung_multi_config *);
    note_mode(config->math);
    return ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_multi_create"))(multi, config);
}

/* What is refused counts as done. */
rung_status rung_gemm_run(rung_context *context, const rung_gemm *g)
{
    typedef rung_status function(rung_context *, const rung_gemm *);
    const char *how = getenv("RUNG_WRONG");
    note_mode(rung_context_math(context));
    rung_status status = ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_gemm_run"))(context, g);
    if (how && !strcmp(how, "writes") && status != RUNG_SUCCESS && g->c)
        g->c[g->m > 1 && g->n > 1 ? g->m * g->n - 1 : 0] += 1.0f; /* C is not the refused call's to change */
    return how && !strcmp(how, "accepts") && status == RUNG_INVALID_ARGUMENT ? RUNG_SUCCESS : status;
}

rung_status rung_plan_run(rung_plan *plan, const rung_gemm *g)
{
    static run_function *real;
    const char *how = getenv("RUNG_WRONG");
    if (!real)
        real = (run_function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_plan_run");
    if (how && !strncmp(how, "skip=", 5) && !strcmp(rung_plan_kernel(plan), how + 5))
        return RUNG_SUCCESS; /* it computes nothing, and fast */
    const int writes = g->m > 0 && g->n > 0, is_alone = g->batch <= 1 && !g->c_array;
    const float old = how && writes && is_alone && is_old(how) ? *of_c(g, g->m / 2, g->n / 2) : 0.0f;
    rung_status status =
        how && (!strcmp(how, "error") || (!strncmp(how, "fails=", 6) && !strcmp(rung_plan_kernel(plan), how + 6)))
            ? RUNG_INTERNAL
        : how && !strcmp(how, "lost") ? RUNG_DEVICE_ERROR
                                      : real(plan, g);
    if (status == RUNG_SUCCESS && how && writes && is_alone && is_old(how))
        mix_old(g, how, old);
    if (status == RUNG_SUCCESS && how && writes && is_alone)
        change_each(g, how);
    if (status == RUNG_SUCCESS && how && g->m > 0 && g->n > 0 && g->k > 0)
        (g->batch <= 1 ? damage : damage_entry)(g, how);
    return status;
}

rung_status rung_ssum(rung_context *context, int64_t n, const float *x, float *result)
{
    typedef rung_status function(rung_context *, int64_t, const float *, float *);
    static int calls;
    const char *how = getenv("RUNG_WRONG");
    rung_status status = ((function *)(uintptr_t)dlsym(RTLD_NEXT, "rung_ssum"))(context, n, x, result);
    int again = calls++ % 2;
    int64_t wrong_n = 0;
    if (status != RUNG_SUCCESS || !how || n == 0)
        return status;
    if (!strcmp(how, "sum") || (sscanf(how, "sum=%" SCNd64, &wrong_n) == 1 && n == wrong_n))
        *result -= x[n - 1];
    else if (!strcmp(how, "sum_nan"))
        *result = NAN;
    else if (!strcmp(how, "sum_second") && again)
        *result = nextafterf(*result, INFINITY);
    return status;
}

static int64_t global_index(int64_t local, int64_t block, int part, int parts, int source)
{
    return (local / block * parts + (parts + part - source) % parts) * block + local % block;
}

/* Returns the first element of the ranks' parts that lies beside C's sub-matrix: above it, below, to the left, to the
 * right, or in a gap between the columns of a part. NULL: none does. */
static float *beside(rung_multi *multi, const char *side, int64_t m, int64_t n, float *const *c, int64_t ic, int64_t jc,
                     const rung_matrix *d)
{
    for (int r = 0; r < rung_multi_held_ranks(multi); r++)
        for (int64_t y = 0; y < rung_matrix_cols(d, r); y++)
            for (int64_t x = 0, rows = rung_matrix_rows(d, r); x < d->ld; x++) {
                const int64_t i = global_index(x, d->mb, r / d->grid_cols, d->grid_rows, d->row_source) - (ic - 1),
                              j = global_index(y, d->nb, r % d->grid_cols, d->grid_cols, d->col_source) - (jc - 1);
                const int is_row = x < rows && i >= 0 && i < m, is_column = j >= 0 && j < n;
                if (x >= rows ? !strcmp(side, "gap")
                              : (is_column && i == -1 && !strcmp(side, "above")) ||
                                    (is_column && i == m && !strcmp(side, "below")) ||
                                    (is_row && j == -1 && !strcmp(side, "left")) ||
                                    (is_row && j == n && !strcmp(side, "right")))
                    return &c[r][y * d->ld + x];
            }
    return NULL;
}

/* RUNG_WRONG=SIDE=VALUE: that value is written beside C; ranks_leave: the last of rank 0's first column is not written.
 */
rung_status rung_psgemm(rung_multi *multi, rung_transpose trans_a, rung_transpose trans_b, int64_t m, int64_t n,
                        int64_t k, float alpha, const float *const *a, int64_t ia, int64_t ja,
                        const rung_matrix *desc_a, const float *const *b, int64_t ib, int64_t jb,
                        const rung_matrix *desc_b, float beta, float *const *c, int64_t ic, int64_t jc,
                        const rung_matrix *desc_c)
{
    __typeof__(rung_psgemm) *real;
    const char *how = getenv("RUNG_WRONG"), *value = how ? strchr(how, '=') : NULL;
    char side[16] = "";
    *(void **)&real = dlsym(RTLD_NEXT, "rung_psgemm");
    float *last = how && !strcmp(how, "ranks_leave") ? c[0] + rung_matrix_rows(desc_c, 0) - 1 : NULL;
    const float old = last ? *last : 0.0f;
    rung_status status =
        real(multi, trans_a, trans_b, m, n, k, alpha, a, ia, ja, desc_a, b, ib, jb, desc_b, beta, c, ic, jc, desc_c);
    if (last)
        *last = old;
    if (!value)
        return status;
    snprintf(side, sizeof side, "%.*s", (int)(value - how), how);
    float *at = beside(multi, side, m, n, c, ic, jc, desc_c);
    if (at)
        *at = strtof(value + 1, NULL);
    return status;
}

/* RUNG_WRONG=host_leaves: with operands in host memory the last element is not written. */
rung_status rung_multi_sgemm(rung_multi *multi, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                             int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                             int64_t ldb, float beta, float *c, int64_t ldc)
{
    __typeof__(rung_multi_sgemm) *real;
    const char *how = getenv("RUNG_WRONG");
    *(void **)&real = dlsym(RTLD_NEXT, "rung_multi_sgemm");
    float *last = how && !strcmp(how, "host_leaves") ? element(c, ldc, layout == RUNG_ROW_MAJOR, m - 1, n - 1) : NULL;
    const float old = last ? *last : 0.0f;
    rung_status status = real(multi, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (last)
        *last = old;
    return status;
}
