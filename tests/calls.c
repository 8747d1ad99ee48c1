/* Tells what the library answers to drawn calls, of which most are wrong in an argument or two or lay C on an operand:
 * status, argument to blame, sentence, and a sum over all memory afterwards. The numbers are small and whole, so that
 * every kernel gives the same sums. tests/gpu/launches.sh compares this with results/calls.txt.
 * usage: calls STAND_IN_FOR_LIBCUDA [every] (every: also the calls that are summed up) */
#define _GNU_SOURCE
#include "gpu/sums.h"
#include "rung.h"
#include "rung_multi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA_FLOATS = 1 << 14, PARTS = 12, PART_FLOATS = 1 << 10, MOST_BATCH = 4, SAID_BYTES = 2048 };

static const size_t AROUND_BYTES = (size_t)1 << 40; /* is reserved, so that lines and matrices may lie far apart */
static float *arena;                                /* always at the same address: sentences tell addresses */
static char said[SAID_BYTES];
static uint64_t dice;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)below);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    size_t length = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + length, sizeof said - length, format, list);
    va_end(list);
}

static void fill(void)
{
    for (int i = 0; i < ARENA_FLOATS; i++)
        arena[i] = (float)(i * 7 % 5 - 2);
}

static void say_answer(rung_status status)
{
    uint64_t sum = 1;
    for (int i = 0; i < ARENA_FLOATS; i++) {
        uint32_t bits;
        const float value = arena[i] + 0.0f; /* one zero */
        memcpy(&bits, &value, sizeof bits);
        sum = (sum ^ bits) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    say(": %s", rung_status_name(status));
    if (status != RUNG_SUCCESS)
        say(" %d '%s'", rung_last_error_argument(), rung_last_error());
    say(" memory %08x", folded(sum));
}

/* Draws a number that is likely to be wrong, near what it was or at the end of a range. A size is never so large that
 * the product would take long; a distance may be. */
static int64_t spoiled(int64_t value, int is_size)
{
    static const int64_t far[] = {INT64_MIN, INT64_MAX, -1, 0, (int64_t)1 << 61, 4096, INT32_MAX, (int64_t)1 << 31};
    return draw(4) ? value + draw(7) - 3 : far[draw(is_size ? 6 : 8)];
}

/* ---- contexts ---- */

static void draw_config(void)
{
    static const int devices[] = {-1, -1, -1, -2, 0, 1, 2, -3, 100}, threads[] = {0, 1, 3, -1, 4096, 4097, -2};
    rung_context *context = NULL;
    rung_config config;
    rung_config_init(&config);
    config.device = devices[draw(9)];
    config.threads = threads[draw(7)];
    config.math = (rung_math)(draw(3) ? draw(3) : draw(6) - 2);
    config.pointers = (rung_pointers)(draw(3) ? draw(3) : draw(6) - 2);
    config.workspace_limit_bytes = draw(3) - 1;
    say("device %d threads %d math %d pointers %d limit %lld", config.device, config.threads, (int)config.math,
        (int)config.pointers, (long long)config.workspace_limit_bytes);
    say_answer(rung_context_create(draw(30) ? &context : NULL, draw(30) ? &config : NULL));
    for (int i = 0; i < 3; i++) {
        const int value = draw(8) - 2, which = draw(5);
        rung_status status = RUNG_SUCCESS;
        if (which == 0)
            status = rung_context_set_math(context, (rung_math)value);
        else if (which == 1)
            status = rung_context_set_threads(context, value);
        else if (which == 2)
            status = rung_context_set_pointers(context, (rung_pointers)value);
        else if (which == 3)
            status = rung_context_set_workspace_limit(context, value);
        else
            status = rung_process_set_threads(value);
        say("; set %d to %d", which, value);
        say_answer(status);
        say(" device %d threads %d math %d", rung_context_device(context), rung_context_threads(context),
            (int)rung_context_math(context));
    }
    rung_process_set_threads(0);
    rung_context_destroy(context);
}

/* ---- products on the CPU ---- */

static const float *array_a[MOST_BATCH], *array_b[MOST_BATCH];
static float *array_c[MOST_BATCH];

static void spoil(rung_gemm *g)
{
    int64_t *const numbers[] = {&g->m,   &g->n,     &g->k,        &g->lda,      &g->ldb,
                                &g->ldc, &g->batch, &g->stride_a, &g->stride_b, &g->stride_c};
    const int which = draw(20);
    if (which < 10)
        *numbers[which] = spoiled(*numbers[which], which < 3 || which == 6);
    else if (which == 10)
        g->trans_a = (rung_transpose)(draw(5) - 2);
    else if (which == 11)
        g->trans_b = (rung_transpose)(draw(5) - 2);
    else if (which == 12)
        g->layout = (rung_layout)(draw(5) - 2);
    else if (which == 13)
        g->bias_kind = (rung_bias)(draw(6) - 2);
    else if (which == 14)
        g->activation = (rung_activation)(draw(2) ? draw(4) - 2 : 3);
    else if (which == 15)
        g->bias = NULL;
    else if (which == 16)
        *(draw(3) ? draw(2) ? &g->a : &g->b : (const float **)&g->c) = NULL;
    else if (which == 17)
        *(draw(3) ? draw(2) ? &g->a : &g->b : (const float **)&g->c) = (float *)((char *)arena + 16385 + draw(3));
    else if (which == 18)
        *(draw(2) ? &g->alpha_device : &g->beta_device) = arena;
    else
        *(draw(3) ? draw(2) ? &array_a[0] : &array_b[0] : (const float **)&array_c[0]) = NULL;
}

/* Draws a right product of whole small numbers. C is near A or B, often enough on it; other places are apart. */
static rung_gemm draw_gemm(void)
{
    static const float factors[] = {1.0f, 0.0f, 2.0f, -1.0f};
    rung_gemm g;
    rung_gemm_init(&g);
    const int row = draw(2), ta = draw(2), tb = draw(2), pads[] = {0, 0, 1, 3};
    g.layout = row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
    g.trans_a = ta ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = tb ? RUNG_TRANS : RUNG_NO_TRANS;
    g.m = draw(12) ? 1 + draw(9) : 0, g.n = draw(12) ? 1 + draw(9) : 0, g.k = draw(8) ? 1 + draw(9) : 0;
    g.lda = (row != ta ? g.k : g.m) + pads[draw(4)], g.ldb = (row != tb ? g.n : g.k) + pads[draw(4)];
    g.ldc = (row ? g.n : g.m) + pads[draw(4)];
    g.lda += !g.lda, g.ldb += !g.ldb, g.ldc += !g.ldc;
    g.batch = draw(2) ? 1 : draw(MOST_BATCH + 1);
    g.stride_a = g.lda * (row != ta ? g.m : g.k) + draw(3), g.stride_b = g.ldb * (row != tb ? g.k : g.n) + draw(3);
    g.stride_c = g.ldc * (row ? g.m : g.n) + draw(3);
    if (draw(5) == 0)
        *(draw(2) ? &g.stride_a : &g.stride_b) = draw(9) - 4;
    if (draw(5) == 0)
        g.ldc = 20 + draw(4), g.lda = draw(2) ? g.ldc : g.lda, g.ldb = draw(2) ? g.ldc : g.ldb;
    if (draw(9) == 0)
        g.stride_c = draw(3) ? g.n + draw(3) - 1 : -g.stride_c;
    g.a = arena + 4096 + draw(4), g.b = arena + 8192 + draw(4), g.c = arena + 12288;
    if (draw(2)) /* C begins before, within or behind an operand */
        g.c = (float *)(uintptr_t)(draw(2) ? g.a : g.b) + draw(700) - 350;
    g.alpha = factors[draw(4)], g.beta = factors[draw(4)];
    g.bias_kind = draw(3) ? RUNG_NO_BIAS : draw(2) ? RUNG_BIAS_PER_ROW : RUNG_BIAS_PER_COLUMN;
    g.bias = arena + draw(9);
    g.activation = draw(2) ? RUNG_IDENTITY : RUNG_RELU;
    for (int i = 0; i < MOST_BATCH; i++)
        array_a[i] = g.a + 90 * i, array_b[i] = g.b + 90 * i, array_c[i] = arena + 12288 + 250 * i;
    return g;
}

static void say_gemm(const rung_gemm *g)
{
    say("layout %d trans %d %d %lldx%lldx%lld a %lld b %lld c %lld ld %lld,%lld,%lld batch %lld strides %lld,%lld,%lld "
        "alpha %g beta %g bias %d act %d",
        (int)g->layout, (int)g->trans_a, (int)g->trans_b, (long long)g->m, (long long)g->n, (long long)g->k,
        g->a ? (long long)(g->a - arena) : -1, g->b ? (long long)(g->b - arena) : -1,
        g->c ? (long long)(g->c - arena) : -1, (long long)g->lda, (long long)g->ldb, (long long)g->ldc,
        (long long)g->batch, (long long)g->stride_a, (long long)g->stride_b, (long long)g->stride_c, (double)g->alpha,
        (double)g->beta, (int)g->bias_kind, (int)g->activation);
}

/* ---- whether C lies on what is read, float by float ---- */

enum { NEAR_FLOATS = 2 * ARENA_FLOATS };
static unsigned char
    lies[NEAR_FLOATS]; /* around the arena: 0, or one more than the entry of the batch whose C lies there */
static int wrong_overlaps, judged;

/* Looks whether a batch of matrices lies on another entry's C; of C's own, its floats are marked. Returns -1 where one
 * of them is far away. */
static int lies_on_c(const float *at, int64_t lines, int64_t length, int64_t ld, int64_t stride, int64_t batch,
                     int is_c)
{
    int found = 0;
    for (int64_t e = 0; e < batch; e++)
        for (int64_t i = 0; i < lines; i++)
            for (int64_t j = 0; j < length; j++) {
                const __int128 offset = (at - arena) + NEAR_FLOATS / 4 + (__int128)e * stride + (__int128)i * ld + j;
                if (offset < 0 || offset >= NEAR_FLOATS)
                    return -1;
                found |= lies[offset] && !(is_c && lies[offset] == e + 1);
                if (is_c)
                    lies[offset] = (unsigned char)(e + 1);
            }
    return found;
}

/* Judges the answer to a product that is right, but for where C lies. */
static void judge_overlap(const rung_gemm *g, rung_status status)
{
    const int row = g->layout == RUNG_ROW_MAJOR, a_lines = row != (g->trans_a == RUNG_TRANS),
              b_lines = row != (g->trans_b == RUNG_TRANS);
    const int64_t k = g->alpha == 0.0f ? 0 : g->k, shared_a = g->stride_a ? g->batch : 1,
                  shared_b = g->stride_b ? g->batch : 1;
    const int is_refused = status == RUNG_INVALID_ARGUMENT && strstr(rung_last_error(), "overlap") != NULL;
    if ((status != RUNG_SUCCESS && !is_refused) || g->m * g->n * g->batch == 0 || (k == 0 && g->beta == 1.0f))
        return;
    memset(lies, 0, sizeof lies);
    int met[3] = {0}; /* the batch's results each other, A, B */
    met[0] = lies_on_c(g->c, row ? g->m : g->n, row ? g->n : g->m, g->ldc, g->stride_c, g->batch, 1);
    if (k > 0 && met[0] >= 0) {
        met[1] = lies_on_c(g->a, a_lines ? g->m : k, a_lines ? k : g->m, g->lda, g->stride_a, shared_a, 0);
        met[2] = lies_on_c(g->b, b_lines ? k : g->n, b_lines ? g->n : k, g->ldb, g->stride_b, shared_b, 0);
    }
    if (met[0] < 0 || met[1] < 0 || met[2] < 0)
        return;
    judged++;
    if ((met[0] || met[1] || met[2]) != is_refused) {
        wrong_overlaps++;
        printf("wrong: %s%s%s overlap: %s\n", met[0] ? "results " : "", met[1] ? "A " : "", met[2] ? "B " : "", said);
    }
}

/* Runs a plan of one product with another one, and says what the plan is for. */
static void run_plan(rung_context *context, const rung_gemm *g)
{
    static const char *const kernels[] = {NULL,        "c01_naive", "c05_packing", "c02_loop_order",
                                          "l01_naive", "no_such",   "r05_shuffle"};
    rung_plan *plan = NULL;
    rung_gemm other = *g;
    const int which = draw(2) ? 0 : 1 + draw(6);
    if (draw(3) == 0)
        spoil(&other);
    rung_status status =
        which ? rung_plan_create_kernel(&plan, context, g, kernels[which]) : rung_plan_create(&plan, context, g);
    say(" plan %s", which ? kernels[which] : "of any kernel");
    say_answer(status);
    say("; run");
    fill();
    say_answer(rung_plan_run(plan, &other));
    rung_plan_destroy(plan);
}

static void draw_product(rung_context *context)
{
    rung_gemm g = draw_gemm();
    for (int wrong = draw(3); wrong > 0; wrong--)
        spoil(&g);
    const int entry = draw(6);
    say("entry %d ", entry);
    if (entry < 4) /* these take no bias, no activation and no scalars of a device */
        g.bias_kind = RUNG_NO_BIAS, g.activation = RUNG_IDENTITY, g.alpha_device = g.beta_device = NULL;
    if (entry == 5 && draw(3) == 0)
        g.a_array = array_a, g.b_array = array_b, g.c_array = array_c;
    if (entry == 3 || g.a_array) { /* nobody looks whether these lie on each other: each has places of its own */
        g.batch = g.batch > MOST_BATCH ? MOST_BATCH : g.batch;
        if (g.ldc > 23 || g.m > 9 || g.n > 9)
            g.m = -1;
    }
    say_gemm(&g);
    fill();
    rung_status status = RUNG_INTERNAL; /* of calls whose overlap is looked for */
    if (entry == 0)
        status = rung_sgemm(context, g.layout, g.trans_a, g.trans_b, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb,
                            g.beta, g.c, g.ldc);
    else if (entry < 3)
        status =
            rung_sgemm_strided_batched(context, g.layout, g.trans_a, g.trans_b, g.m, g.n, g.k, g.alpha, g.a, g.lda,
                                       g.stride_a, g.b, g.ldb, g.stride_b, g.beta, g.c, g.ldc, g.stride_c, g.batch);
    else if (entry == 3)
        status = rung_sgemm_batched(context, g.layout, g.trans_a, g.trans_b, g.m, g.n, g.k, g.alpha,
                                    draw(20) ? array_a : NULL, g.lda, draw(20) ? array_b : NULL, g.ldb, g.beta,
                                    draw(20) ? array_c : NULL, g.ldc, g.batch);
    else if (entry == 4)
        run_plan(context, &g);
    else
        status = rung_gemm_run(context, &g);
    if (entry != 4)
        say_answer(status);
    if (entry != 3 && entry != 4 && !g.a_array && g.activation == RUNG_IDENTITY && !g.bias_kind) {
        g.batch = entry == 0 ? 1 : g.batch;
        judge_overlap(&g, status);
    }
}

static void draw_sum(rung_context *context)
{
    const int64_t n = draw(3) ? draw(5000) : spoiled(0, 1);
    const float *x = draw(9) ? arena + draw(90) : NULL;
    float *result = draw(9) ? arena + 10000 : NULL;
    if (n > ARENA_FLOATS && x) /* there are not so many */
        return;
    say("sum of %lld at %lld", (long long)n, x ? (long long)(x - arena) : -1);
    fill();
    say_answer(rung_ssum(context, n, x, result));
}

/* ---- ranks in one process, on the CPU ---- */

static rung_matrix draw_matrix(int64_t m, int64_t n, int ranks)
{
    rung_matrix d;
    const int rows = 1 + draw(ranks), cols = 1 + draw(ranks / rows);
    rung_matrix_init(&d, m, n, 1 + draw(6), 1 + draw(6), rows, cols);
    d.row_source = draw(rows), d.col_source = draw(cols);
    const int64_t most = m > 1 ? m : 1;
    d.ld = draw(4) ? most : most - draw(3); /* may be too short */
    if (draw(9) == 0) {
        int64_t *const numbers[] = {&d.m, &d.n, &d.mb, &d.nb, &d.ld};
        int *const places[] = {&d.grid_rows, &d.grid_cols, &d.row_source, &d.col_source};
        if (draw(2))
            numbers[draw(5)][0] += draw(5) - 3;
        else
            places[draw(4)][0] += draw(5) - 3;
    }
    if (d.ld > 20)
        d.ld = 20;
    return d;
}

static void say_matrix(const rung_matrix *d)
{
    say(" %lldx%lld blocks %lldx%lld grid %dx%d from %d,%d ld %lld", (long long)d->m, (long long)d->n, (long long)d->mb,
        (long long)d->nb, d->grid_rows, d->grid_cols, d->row_source, d->col_source, (long long)d->ld);
}

static void draw_distributed(rung_multi *multi)
{
    const int ranks = rung_multi_ranks(multi), what = draw(5), ta = draw(2), tb = draw(2);
    const int64_t m = draw(9), n = draw(9), k = draw(9), edge = draw(3);
    const int64_t rows[] = {ta ? k : m, tb ? n : k, m}, cols[] = {ta ? m : k, tb ? k : n, n};
    static const char *const names[] = {"psgemm", "redistribute", "scatter", "gather", "multi_sgemm"};
    rung_matrix d[3];
    float *parts[3][4];
    int64_t at[6];
    rung_status status;
    say("%d ranks, %s %d %d %lldx%lldx%lld", ranks, names[what], ta, tb, (long long)m, (long long)n, (long long)k);
    for (int i = 0; i < 3; i++) {
        d[i] = draw_matrix(rows[what == 0 ? i : 2] + edge, cols[what == 0 ? i : 2] + edge, ranks);
        for (int r = 0; r < ranks; r++)
            parts[i][r] = draw(90) ? arena + (i * 4 + r) * PART_FLOATS : NULL;
        if (what < 4)
            say_matrix(&d[i]);
    }
    for (int i = 0; i < 6; i++) {
        at[i] = draw(9) ? 1 + draw((int)edge + 1) : draw(5) - 1;
        say(" %lld", (long long)at[i]);
    }
    const float alpha = (float)draw(3), beta = (float)draw(3);
    const int root = draw(9) ? draw(ranks) : draw(7) - 2;
    float *const whole = draw(20) ? arena + 13 * PART_FLOATS : NULL;
    const int64_t ld = draw(9) ? d[0].m + draw(3) + !d[0].m : d[0].m - draw(3);
    say(" alpha %g beta %g root %d ld %lld", (double)alpha, (double)beta, root, (long long)ld);
    fill();
    if (what == 0)
        status = rung_psgemm(multi, ta ? RUNG_TRANS : RUNG_NO_TRANS, tb ? RUNG_TRANS : RUNG_NO_TRANS, m, n, k, alpha,
                             (const float *const *)parts[0], at[0], at[1], &d[0], (const float *const *)parts[1], at[2],
                             at[3], &d[1], beta, draw(12) ? parts[2] : NULL, at[4], at[5], draw(90) ? &d[2] : NULL);
    else if (what == 1)
        status = rung_redistribute(multi, m, n, (const float *const *)parts[0], at[0], at[1], &d[0],
                                   draw(90) ? parts[1] : NULL, at[2], at[3], draw(90) ? &d[1] : NULL);
    else if (what == 2)
        status = rung_scatter(multi, root, whole, ld, parts[0], &d[0]);
    else if (what == 3)
        status = rung_gather(multi, root, (const float *const *)parts[0], &d[0], whole, ld);
    else
        status = rung_multi_sgemm(multi, draw(2) ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR, ta ? RUNG_TRANS : RUNG_NO_TRANS,
                                  tb ? RUNG_TRANS : RUNG_NO_TRANS, m, n, draw(9) ? k : -1, alpha, arena, 9 + draw(2),
                                  arena + 4096, 9 - draw(2), beta, arena + 8192, draw(9) ? 9 : 3);
    say_answer(status);
}

static void draw_ranks_config(void)
{
    enum { MOST = 64 };
    static const int mixed[3] = {-1, -1, 0}, counts[] = {0, 1, 2, 3, 3, -1, 16, MOST, MOST + 1};
    int cpus[MOST + 1];
    for (int i = 0; i <= MOST; i++)
        cpus[i] = RUNG_DEVICE_CPU;
    rung_multi *multi = NULL;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = counts[draw(9)];
    config.devices = config.ranks == 3 && draw(2) ? mixed : cpus;
    config.threads = draw(8) ? 1 : -1;
    config.math = (rung_math)(draw(5) ? draw(3) : draw(5) - 1);
    config.timeout_s = draw(5) ? draw(4) : draw(2) ? -1.0 : 2e9;
    config.memory_bytes = draw(5) ? 0 : draw(3) - 1;
    say("%d ranks %s threads %d math %d timeout %g memory %lld", config.ranks,
        config.devices == cpus ? "on the CPU" : "mixed", config.threads, (int)config.math, config.timeout_s,
        (long long)config.memory_bytes);
    say_answer(rung_multi_create(draw(40) ? &multi : NULL, &config));
    if (multi) {
        void *memory = NULL;
        const int held = draw(5) - 1;
        const int64_t bytes = draw(4) ? draw(100) : -1;
        say(" %d ranks from %d, %d held, device of %d is %d; alloc %lld", rung_multi_ranks(multi),
            rung_multi_first_rank(multi), rung_multi_held_ranks(multi), held, rung_multi_device(multi, held),
            (long long)bytes);
        rung_status status = rung_multi_alloc(multi, held, bytes, &memory);
        say_answer(status);
        if (status == RUNG_SUCCESS) {
            memset(memory, 0, (size_t)bytes);
            say("; upload");
            say_answer(rung_multi_upload(multi, draw(5) ? held : draw(5) - 1, memory, arena, draw(5) ? bytes : -1));
            say("; download");
            say_answer(
                rung_multi_download(multi, draw(5) ? held : draw(5) - 1, arena + 64, memory, draw(5) ? bytes : -1));
        }
        rung_multi_free(multi, held, memory);
    }
    rung_multi_destroy(multi);
}

/* ---- all of them ---- */

static rung_context *on_cpu;
static rung_multi *ranks[4];

static void draw_call(int kind)
{
    if (kind == 0)
        draw_config();
    else if (kind == 1)
        draw_product(on_cpu);
    else if (kind == 2)
        draw_sum(on_cpu);
    else if (kind == 3)
        draw_ranks_config();
    else
        draw_distributed(ranks[draw(4)]);
}

int main(int count, char **words)
{
    static const char *const kinds[] = {"contexts", "products", "sums", "ranks", "distributed"};
    static const int printed[] = {40, 100, 10, 20, 60}, summed_up[] = {300, 20000, 300, 200, 8000};
    const int every = count > 2 && strcmp(words[2], "every") == 0;
    rung_config config;
    if (count < 2)
        return 2;
    setenv("RUNG_LIBCUDA", words[1], 1);
    setenv("RUNG_NUM_THREADS", "2", 1);
    void *around = mmap((void *)((uintptr_t)1 << 44), AROUND_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (around == MAP_FAILED)
        return 2;
    arena = (float *)((char *)around + AROUND_BYTES / 2);
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = 1;
    if (rung_context_create(&on_cpu, &config) != RUNG_SUCCESS)
        return 2;
    for (int i = 0; i < 4; i++) {
        const int devices[] = {-1, -1, -1, -1};
        rung_multi_config of_ranks;
        rung_multi_config_init(&of_ranks);
        of_ranks.ranks = i + 1;
        of_ranks.devices = devices;
        of_ranks.threads = 1;
        if (rung_multi_create(&ranks[i], &of_ranks) != RUNG_SUCCESS)
            return 2;
    }
    for (int kind = 0; kind < 5; kind++) {
        uint64_t all = 1;
        dice = (uint64_t)kind + 1;
        fill();
        for (int i = 0; i < printed[kind] + summed_up[kind]; i++) {
            said[0] = 0;
            draw_call(kind);
            if (i < printed[kind] || every)
                printf("%s %s\n", kinds[kind], said);
            if (i >= printed[kind])
                all = mix_text(all, said);
        }
        printf("%s %d more %08x\n", kinds[kind], summed_up[kind], folded(all));
    }
    printf("%d products' overlaps looked for float by float, %d are told wrongly\n", judged, wrong_overlaps);
    for (int i = 0; i < 4; i++)
        rung_multi_destroy(ranks[i]);
    rung_context_destroy(on_cpu);
    return wrong_overlaps != 0;
}
