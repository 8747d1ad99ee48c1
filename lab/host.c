/* The lab's checks on the CPU. The reference keeps strips of a row's FP64 sums, magnitudes and FP32 chain in the first
 * cache and runs down k; it is compiled for what the CPU has, since fused multiply-adds in software would take hours.
 */
#include "lab/host.h"
#include "lab/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = 256, MAX_THREADS = 64 };

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
    pthread_t ids[MAX_THREADS];
    part parts[MAX_THREADS];
    int started[MAX_THREADS] = {0};
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    if (threads > count)
        threads = count > 0 ? (int)count : 1;
    for (int i = 0; i < threads; i++) {
        parts[i] = (part){work, state, count * i / threads, count * (i + 1) / threads};
        if (i > 0)
            started[i] = pthread_create(&ids[i], NULL, run_part, &parts[i]) == 0;
    }
    for (int i = 0; i < threads; i++) {
        if (!started[i])
            run_part(&parts[i]);
    }
    for (int i = 1; i < threads; i++)
        if (started[i])
            pthread_join(ids[i], NULL);
}

static void fill_lines(void *state, int64_t first, int64_t end)
{
    const lab_fill_args *f = state;
    for (int64_t line = first; line < end; line++)
        for (int64_t position = 0; position < f->length; position++)
            f->view.at[line * f->view.line_step + position * f->view.step] = lab_value(f, line, position);
}

void lab_host_fill(const lab_fill_args *args, int threads)
{
    lab_parallel(args->lines * args->length > 1 << 16 ? threads : 1, args->lines, fill_lines, (void *)(uintptr_t)args);
}

typedef struct strip {
    const float *b; /* k rows of `width`, ldb apart */
    int64_t ldb, k;
    const float *a;
    int64_t step_a;
    int width;
    double sum[STRIP], size[STRIP];
    float chain[STRIP], low[STRIP], high[STRIP];
} strip;

static inline __attribute__((always_inline)) void run_strip(strip *s)
{
    for (int64_t p = 0; p < s->k; p++) {
        float x = s->a[p * s->step_a];
        double x64 = x, magnitude = fabs((double)x);
        const float *b = &s->b[p * s->ldb];
        for (int j = 0; j < s->width; j++) {
            s->sum[j] = fma(x64, (double)b[j], s->sum[j]);
            s->size[j] = fma(magnitude, fabs((double)b[j]), s->size[j]);
            s->chain[j] = fmaf(x, b[j], s->chain[j]);
            s->low[j] = s->chain[j] < s->low[j] ? s->chain[j] : s->low[j];
            s->high[j] = s->chain[j] > s->high[j] ? s->chain[j] : s->high[j];
        }
    }
}

static void run_strip_plain(strip *s)
{
    run_strip(s);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void run_strip_avx2(strip *s)
{
    run_strip(s);
}

__attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512"))) static void run_strip_avx512(strip *s)
{
    run_strip(s);
}

static void (*pick_strip(void))(strip *)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return run_strip_avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? run_strip_avx2 : run_strip_plain;
}
#else
static void (*pick_strip(void))(strip *)
{
    return run_strip_plain;
}
#endif

typedef struct reference_job {
    const lab_reference_args *args;
    const float *b; /* row-major k x n */
    int64_t ldb;
    void (*run)(strip *);
} reference_job;

static void reference_rows(void *state, int64_t first, int64_t end)
{
    const reference_job *job = state;
    const lab_reference_args *r = job->args;
    strip s = {.ldb = job->ldb, .k = r->k, .step_a = r->a.step};
    for (int64_t j0 = 0; j0 < r->n; j0 += STRIP) {
        s.b = job->b + j0;
        s.width = r->n - j0 < STRIP ? (int)(r->n - j0) : STRIP;
        for (int64_t i = first; i < end; i++) {
            s.a = r->a.at + i * r->a.line_step;
            memset(s.sum, 0, sizeof s.sum);
            memset(s.size, 0, sizeof s.size);
            memset(s.chain, 0, sizeof s.chain);
            memset(s.low, 0, sizeof s.low);
            memset(s.high, 0, sizeof s.high);
            job->run(&s);
            for (int j = 0; j < s.width; j++)
                lab_finish(r, i, j0 + j, (lab_sums){s.sum[j], s.size[j], s.chain[j], s.low[j], s.high[j]});
        }
    }
}

static void pack_b(const lab_reference_args *r, float *packed)
{
    for (int64_t p = 0; p < r->k; p++)
        for (int64_t j = 0; j < r->n; j++)
            packed[p * r->n + j] = r->b.at[p * r->b.line_step + j * r->b.step];
}

rung_status lab_host_reference(const lab_reference_args *args, int threads)
{
    reference_job job = {.args = args, .b = args->b.at, .ldb = args->b.line_step, .run = pick_strip()};
    float *packed = NULL;
    if (args->b.step != 1 && args->k > 0) {
        packed = malloc((size_t)args->k * (size_t)args->n * sizeof *packed);
        if (!packed)
            return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the reference's copy of B (%lld x %lld)",
                            (long long)args->k, (long long)args->n);
        pack_b(args, packed);
        job.b = packed;
        job.ldb = args->n;
    }
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

void lab_host_hash(const lab_region_args *r)
{
    for (int64_t i = 0; i < r->words; i++)
        r->tally->hash += lab_mix((uint64_t)i << 32 ^ r->words_at[i] ^ (uint64_t)i >> 32);
}

void lab_host_sum(const float *x, int64_t n, lab_tally *tally)
{
    for (int64_t i = 0; i < n; i++) {
        tally->sum += x[i];
        tally->magnitude += fabs((double)x[i]);
    }
}
