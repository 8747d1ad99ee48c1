/* See support.h. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

rung_context *test_context(int threads)
{
    rung_config config;
    rung_config_init(&config);
    const char *device = getenv("RUNG_TEST_DEVICE");
    config.device = device ? atoi(device) : RUNG_DEVICE_CPU;
    config.threads = threads;
    rung_context *context;
    assert_ok(rung_context_create(&context, &config));
    return context;
}

float random_float(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(*state >> 40) - (1 << 23)) * 0x1p-23f;
}

static size_t mapped_bytes(size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (count * sizeof(float) + page - 1) / page * page + page;
}

float *guarded_new(size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = mapped_bytes(count);
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(mprotect(base + bytes - page, page, PROT_NONE), 0);
    float *memory = (float *)(base + bytes - page) - count;
    for (size_t i = 0; i < count; i++)
        memory[i] = NAN;
    return memory;
}

void guarded_free(float *memory, size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = mapped_bytes(count);
    munmap((char *)(memory + count) + page - bytes, bytes);
}

/* A matrix as it is stored: lines of `length` elements that carry data, ld apart. The last line has no padding after
 * it. */
static size_t extent(int64_t lines, int64_t length, int64_t ld, int64_t stride, int64_t batch)
{
    return lines && length ? (size_t)(stride * (batch - 1) + ld * (lines - 1) + length) : 0;
}

static void fill(float *memory, int64_t lines, int64_t length, int64_t ld, int64_t stride, int64_t batch,
                 uint64_t *seed)
{
    for (int64_t e = 0; e < batch; e++)
        for (int64_t i = 0; i < lines; i++)
            for (int64_t j = 0; j < length; j++)
                memory[e * stride + i * ld + j] = random_float(seed);
}

static int64_t line_c(const rung_gemm *g)
{
    return g->layout == RUNG_ROW_MAJOR ? g->n : g->m;
}

void product_new(product *p, rung_layout layout, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, int pad,
                 int64_t batch, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    rung_gemm_init(&p->gemm);
    rung_gemm *g = &p->gemm;
    int row = layout == RUNG_ROW_MAJOR;
    int64_t length_a = row != trans_a ? k : m, lines_a = row != trans_a ? m : k;
    int64_t length_b = row != trans_b ? n : k, lines_b = row != trans_b ? k : n;
    int64_t length_c = row ? n : m, lines_c = row ? m : n;
    g->layout = layout;
    g->trans_a = trans_a;
    g->trans_b = trans_b;
    g->m = m, g->n = n, g->k = k;
    g->lda = (length_a ? length_a : 1) + pad;
    g->ldb = (length_b ? length_b : 1) + pad;
    g->ldc = (length_c ? length_c : 1) + pad;
    g->batch = batch;
    g->stride_a = lines_a * g->lda + pad;
    g->stride_b = lines_b * g->ldb + pad;
    g->stride_c = lines_c * g->ldc + pad;
    p->count_a = extent(lines_a, length_a, g->lda, g->stride_a, batch);
    p->count_b = extent(lines_b, length_b, g->ldb, g->stride_b, batch);
    p->count_c = extent(lines_c, length_c, g->ldc, g->stride_c, batch);
    float *a = guarded_new(p->count_a), *b = guarded_new(p->count_b); /* padding stays NaN: it must not be used */
    fill(a, lines_a, length_a, g->lda, g->stride_a, batch, &seed);
    fill(b, lines_b, length_b, g->ldb, g->stride_b, batch, &seed);
    g->a = a;
    g->b = b;
    g->c = guarded_new(p->count_c);
    p->before = calloc(p->count_c + 1, sizeof(float));
    assert_non_null(p->before);
}

void product_free(product *p)
{
    guarded_free((float *)(uintptr_t)p->gemm.a, p->count_a);
    guarded_free((float *)(uintptr_t)p->gemm.b, p->count_b);
    guarded_free(p->gemm.c, p->count_c);
    free(p->before);
}

void product_reset(product *p)
{
    uint64_t seed = 99;
    for (size_t i = 0; i < p->count_c; i++)
        p->before[i] = p->gemm.c[i] = p->gemm.beta == 0.0f ? NAN : random_float(&seed);
}

static double element(const float *x, int by_lines, int64_t ld, int64_t i, int64_t j)
{
    return by_lines ? x[i * ld + j] : x[j * ld + i];
}

static double activated(rung_activation activation, double x)
{
    if (activation == RUNG_RELU)
        return x > 0 ? x : 0;
    if (activation == RUNG_GELU)
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
}

/* Makes op(A)'s rows, or op(B)'s columns, of one entry of the batch, one behind the other. */
static float *lines_of(const product *p, int of_b, int64_t e)
{
    const rung_gemm *g = &p->gemm;
    int row = g->layout == RUNG_ROW_MAJOR, by_lines = row != (int)(of_b ? g->trans_b : g->trans_a);
    const float *from = of_b ? g->b + e * g->stride_b : g->a + e * g->stride_a;
    int64_t lines = of_b ? g->n : g->m, ld = of_b ? g->ldb : g->lda;
    float *to = malloc((size_t)(lines * g->k + 1) * sizeof *to);
    assert_non_null(to);
    for (int64_t line = 0; line < lines; line++)
        for (int64_t q = 0; q < g->k; q++)
            to[line * g->k + q] =
                (float)(of_b ? element(from, by_lines, ld, q, line) : element(from, by_lines, ld, line, q));
    return to;
}

/* Adds up in FP64, the terms and their magnitudes. There are four sums of each, so that none waits for the one before.
 */
TEST_UNWATCHED static double dot(const float *x, const float *y, int64_t k, double *size)
{
    double sum[4] = {0.0}, sizes[4] = {0.0};
    for (int64_t q = 0; q < k; q++) {
        double term = (double)x[q] * y[q];
        sum[q & 3] += term;
        sizes[q & 3] += fabs(term);
    }
    *size = sizes[0] + sizes[1] + sizes[2] + sizes[3];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Computes one element in FP64 and the sum of magnitudes that its rounding errors scale with. */
static double expect(const product *p, const float *row, const float *column, int64_t i, int64_t j, int64_t at,
                     double *magnitude)
{
    const rung_gemm *g = &p->gemm;
    double size, sum = dot(row, column, g->alpha != 0.0f ? g->k : 0, &size);
    double c = g->beta == 0.0f ? 0.0 : (double)g->beta * p->before[at];
    double bias = g->bias_kind == RUNG_BIAS_PER_ROW      ? g->bias[i]
                  : g->bias_kind == RUNG_BIAS_PER_COLUMN ? g->bias[j]
                                                         : 0;
    *magnitude = fabs(g->alpha) * size + fabs(c) + fabs(bias);
    return activated(g->activation, g->alpha * sum + c + bias);
}

static void check_untouched(const product *p, const char *what)
{
    const rung_gemm *g = &p->gemm;
    int64_t length = line_c(g), lines = g->layout == RUNG_ROW_MAJOR ? g->m : g->n;
    for (size_t at = 0; at < p->count_c; at++) {
        int64_t within = g->stride_c ? (int64_t)at % g->stride_c : (int64_t)at;
        if (within / g->ldc < lines && within % g->ldc < length)
            continue;
        if (memcmp(&g->c[at], &p->before[at], sizeof(float)) != 0)
            fail_msg("%s: padding of C was written at element %zu", what, at);
    }
}

static void check_element(const product *p, const char *what, int64_t e, int64_t i, int64_t j, const float *row,
                          const float *column)
{
    const rung_gemm *g = &p->gemm;
    int by_rows = g->layout == RUNG_ROW_MAJOR;
    int64_t at = e * g->stride_c + (by_rows ? i * g->ldc + j : j * g->ldc + i);
    double magnitude, want = expect(p, row, column, i, j, at, &magnitude), got = g->c[at];
    double bound = ((double)g->k + 8) * 0x1p-24 * magnitude + 1e-37;
    if (!(fabs(got - want) <= bound))
        fail_msg(
            "%s: %s-major %c%c %lldx%lldx%lld ld %lld %lld %lld alpha %g beta %g batch %lld: C(%lld,%lld) is %.9g, not "
            "%.9g (bound %.3g)",
            what, by_rows ? "row" : "column", g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', (long long)g->m,
            (long long)g->n, (long long)g->k, (long long)g->lda, (long long)g->ldb, (long long)g->ldc, g->alpha,
            g->beta, (long long)e, (long long)i, (long long)j, got, want, bound);
}

void product_check(const product *p, const char *what)
{
    const rung_gemm *g = &p->gemm;
    for (int64_t e = 0; e < g->batch; e++) {
        float *rows = lines_of(p, 0, e), *columns = lines_of(p, 1, e);
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                check_element(p, what, e, i, j, rows + i * g->k, columns + j * g->k);
        free(rows);
        free(columns);
    }
    check_untouched(p, what);
}
