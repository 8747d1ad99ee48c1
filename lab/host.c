/* The lab's checks on the CPU. The reference keeps the FP64 sums, magnitudes and FP32 chains of a few results in
 * registers or the first cache and runs down k; it is compiled for what the CPU has, since fused multiply-adds in
 * software would take hours.
 */
#include "lab/host.h"
#include "lab/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
enum { ROWS = 3, COLUMNS = 16 }; /* of the reference's blocks: their sums stay in registers along k */
#else
enum { ROWS = 1, COLUMNS = 256 }; /* in the first cache */
#endif

typedef struct part {
    void (*work)(void *state, int64_t first, int64_t end);
    void *state;
    int64_t first, end;
} part;

static void *run_part(void *argument)
{
    part *p = argument;
    p->work(p->state, p->first, p->end);
    return NULL;
}

void lab_parallel(int threads, int64_t count, void (*work)(void *state, int64_t first, int64_t end), void *state)
{
    pthread_t ids[RUNG_MOST_THREADS];
    part parts[RUNG_MOST_THREADS];
    int started[RUNG_MOST_THREADS];
    threads = threads < 1 ? 1 : threads > RUNG_MOST_THREADS ? RUNG_MOST_THREADS : threads;
    if (threads > count)
        threads = count > 0 ? (int)count : 1;
    for (int i = 0; i < threads; i++) {
        parts[i] = (part){work, state, count * i / threads, count * (i + 1) / threads};
        started[i] = i > 0 && pthread_create(&ids[i], NULL, run_part, &parts[i]) == 0;
    }
    for (int i = 0; i < threads; i++) {
        if (!started[i])
            run_part(&parts[i]);
    }
    for (int i = 1; i < threads; i++)
        if (started[i])
            pthread_join(ids[i], NULL);
}

/* What is many words long is compiled for what the CPU has, too: AVX-512 multiplies 64-bit words. */
#if defined(__x86_64__)
#define LAB_WIDE __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
}
#else
#define LAB_WIDE

static int has_avx512(void)
{
    return 0;
}
#endif

/* Fills a line with data of the usual kind. */
static inline __attribute__((always_inline)) void fill_signed(const lab_fill_args *f, int64_t line)
{
    const lab_fill_args known = {.seed = f->seed, .data = LAB_SIGNED};
    float *at = f->view.at + line * f->view.line_step;
    int64_t step = f->view.step;
    if (step == 1)
        for (int64_t position = 0; position < f->length; position++)
            at[position] = lab_value(&known, line, position);
    else
        for (int64_t position = 0; position < f->length; position++)
            at[position * step] = lab_value(&known, line, position);
}

LAB_WIDE static void fill_signed_wide(const lab_fill_args *f, int64_t line)
{
    fill_signed(f, line);
}

static void fill_lines(void *state, int64_t first, int64_t end)
{
    const lab_fill_args *f = state;
    const int is_signed = (f->data & ~LAB_OF_B) == LAB_SIGNED, wide = has_avx512();
    for (int64_t line = first; line < end; line++)
        if (is_signed && wide)
            fill_signed_wide(f, line);
        else if (is_signed)
            fill_signed(f, line);
        else
            for (int64_t position = 0; position < f->length; position++)
                f->view.at[line * f->view.line_step + position * f->view.step] = lab_value(f, line, position);
}

void lab_host_fill(const lab_fill_args *args, int threads)
{
    lab_parallel(args->lines * args->length > 1 << 16 ? threads : 1, args->lines, fill_lines, (void *)(uintptr_t)args);
}

/* A part of the reference: ROWS rows of up to COLUMNS results. */
typedef struct block {
    const float *b; /* k lines of COLUMNS, ldb apart; those past `width` are zeros */
    int64_t ldb, k;
    const float *a[ROWS];
    int64_t step_a;
    int rows, width; /* of C; those that are left over have the last row again */
    double sum[ROWS][COLUMNS], size[ROWS][COLUMNS];
    float chain[ROWS][COLUMNS], low[ROWS][COLUMNS], high[ROWS][COLUMNS];
} block;

static inline __attribute__((always_inline)) void run_block(block *s, int rows, int width)
{
    double sum[ROWS][COLUMNS] = {{0}}, size[ROWS][COLUMNS] = {{0}};
    float chain[ROWS][COLUMNS] = {{0}}, low[ROWS][COLUMNS] = {{0}}, high[ROWS][COLUMNS] = {{0}};
    for (int64_t p = 0; p < s->k; p++) {
        const float *b = &s->b[p * s->ldb];
        for (int i = 0; i < rows; i++) {
            float x = s->a[i][p * s->step_a];
            double x64 = x, magnitude = fabs((double)x);
            for (int j = 0; j < width; j++) {
                sum[i][j] = fma(x64, (double)b[j], sum[i][j]);
                size[i][j] = fma(magnitude, fabs((double)b[j]), size[i][j]);
                chain[i][j] = fmaf(x, b[j], chain[i][j]);
                low[i][j] = chain[i][j] < low[i][j] ? chain[i][j] : low[i][j];
                high[i][j] = chain[i][j] > high[i][j] ? chain[i][j] : high[i][j];
            }
        }
    }
    memcpy(s->sum, sum, sizeof sum);
    memcpy(s->size, size, sizeof size);
    memcpy(s->chain, chain, sizeof chain);
    memcpy(s->low, low, sizeof low);
    memcpy(s->high, high, sizeof high);
}

static void run_block_plain(block *s) /* fused multiply-adds may be software's here: none is made for nothing */
{
    run_block(s, s->rows, s->width);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void run_block_avx2(block *s)
{
    run_block(s, ROWS, COLUMNS);
}

LAB_WIDE static void run_block_avx512(block *s)
{
    run_block(s, ROWS, COLUMNS);
}

static void (*pick_block(void))(block *)
{
    if (has_avx512())
        return run_block_avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? run_block_avx2 : run_block_plain;
}
#else
static void (*pick_block(void))(block *)
{
    return run_block_plain;
}
#endif

typedef struct reference_job {
    const lab_reference_args *args;
    const float
        *packed; /* panels of COLUMNS columns of B: all of them, or the last one where the others lie as they must */
    void (*run)(block *);
} reference_job;

static void finish_block(const lab_reference_args *r, const block *s, int64_t i0, int64_t j0)
{
    for (int i = 0; i < s->rows; i++)
        for (int j = 0; j < s->width; j++)
            lab_finish(r, i0 + i, j0 + j,
                       (lab_sums){s->sum[i][j], s->size[i][j], s->chain[i][j], s->low[i][j], s->high[i][j]});
}

/* Returns whether the columns from j0 on are read where they lie. */
static int in_place(const lab_reference_args *r, int64_t j0)
{
    return r->b.step == 1 && r->n - j0 >= COLUMNS;
}

static void choose_columns(const reference_job *job, int64_t j0, block *s)
{
    const lab_reference_args *r = job->args;
    int direct = in_place(r, j0);
    s->b = direct ? r->b.at + j0 : r->b.step == 1 ? job->packed : job->packed + j0 * r->k;
    s->ldb = direct ? r->b.line_step : COLUMNS;
    s->width = r->n - j0 < COLUMNS ? (int)(r->n - j0) : COLUMNS;
}

static void reference_rows(void *state, int64_t first, int64_t end)
{
    const reference_job *job = state;
    const lab_reference_args *r = job->args;
    block s = {.k = r->k, .step_a = r->a.step};
    for (int64_t j0 = 0; j0 < r->n; j0 += COLUMNS) {
        choose_columns(job, j0, &s);
        for (int64_t i = first; i < end; i += ROWS) {
            s.rows = end - i < ROWS ? (int)(end - i) : ROWS;
            for (int row = 0; row < ROWS; row++)
                s.a[row] = r->a.at + (i + (row < s.rows ? row : s.rows - 1)) * r->a.line_step;
            job->run(&s);
            finish_block(r, &s, i, j0);
        }
    }
}

static void pack_b(const lab_reference_args *r, float *packed)
{
    for (int64_t j0 = 0; j0 < r->n; j0 += COLUMNS) {
        const float *from = r->b.at + j0 * r->b.step;
        int width = r->n - j0 < COLUMNS ? (int)(r->n - j0) : COLUMNS;
        for (int64_t p = 0; p < r->k && !in_place(r, j0); p++, packed += COLUMNS)
            for (int j = 0; j < COLUMNS; j++)
                packed[j] = j < width ? from[p * r->b.line_step + j * r->b.step] : 0.0f;
    }
}

rung_status lab_host_reference(const lab_reference_args *args, int threads)
{
    size_t panels = args->b.step == 1 ? 1 : ((size_t)args->n + COLUMNS - 1) / COLUMNS;
    float *packed = malloc((panels * (size_t)args->k * COLUMNS + 1) * sizeof *packed);
    reference_job job = {.args = args, .packed = packed, .run = pick_block()};
    if (!packed)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the reference's copy of B (%lld x %lld)", (long long)args->k,
                        (long long)args->n);
    pack_b(args, packed);
    lab_parallel(args->m * args->n * (args->k + 1) > 1 << 20 ? threads : 1, args->m, reference_rows, &job);
    free(packed);
    return RUNG_SUCCESS;
}

static void raise(uint64_t *worst, double error, int64_t at)
{
    float rounded = (float)error;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    uint64_t packed = (uint64_t)bits << 32 | (at < UINT32_MAX ? (uint64_t)at : UINT32_MAX);
    if (packed > *worst)
        *worst = packed;
}

void lab_host_compare(const lab_compare_args *x)
{
    double worst = 0.0, most = 0.0;
    for (int64_t i = 0, at = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++, at++) {
            double error = lab_error_of(x->c.at[i * x->c.line_step + j * x->c.step], x->c64[at], x->size[at]);
            if (error < 0.0) {
                if (x->tally->wrong++ == 0)
                    x->tally->wrong_at = (uint64_t)at;
                continue;
            }
            if (error > worst)
                raise(&x->tally->worst, worst = error, at);
            double share = x->reach ? error / lab_bound_of(&x->bound, x->size[at], x->reach[at]) : 0.0;
            if (share > most)
                raise(&x->tally->share, most = share, at);
        }
}

void lab_host_untouched(const lab_region_args *r)
{
    for (int64_t i = 0; i < r->words; i++)
        if (r->words_at[i] != LAB_POISON && !lab_may_write(r, i) && r->tally->touched++ == 0)
            r->tally->touched_at = (uint64_t)i;
}

static inline __attribute__((always_inline)) uint64_t hash_words(const uint32_t *words, int64_t count)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < count; i++)
        hash += lab_mix((uint64_t)i << 32 ^ words[i] ^ (uint64_t)i >> 32);
    return hash;
}

LAB_WIDE static uint64_t hash_words_wide(const uint32_t *words, int64_t count)
{
    return hash_words(words, count);
}

void lab_host_hash(const lab_region_args *r)
{
    r->tally->hash += has_avx512() ? hash_words_wide(r->words_at, r->words) : hash_words(r->words_at, r->words);
}

void lab_host_sum(const float *x, int64_t n, lab_tally *tally)
{
    for (int64_t i = 0; i < n; i++) {
        tally->sum += x[i];
        tally->magnitude += fabs((double)x[i]);
    }
}
