/* The CPU product: plan, split over threads, run. Every path adds up each element of C in the same order of k
 * whatever the strips are, so the thread count never changes a bit; only long-k products are cut along k, at places
 * the shape alone decides. */
#include "cpu/gemm.h"
#include "core/status.h"

#include <string.h>

static const char *const path_names[] = {
    [PATH_DIRECT] = "operands in place",
    [PATH_STREAM] = "B streams past C, in place",
    [PATH_PACK_B] = "B packed, A in place",
    [PATH_PACKED] = "both operands packed",
    [PATH_DOT] = "dot products",
    [PATH_SWAPPED] = "as the transposed product",
    [PATH_LONG_K] = "cut along k",
};

typedef struct job {
    const gemm_product *p;
    const gemm_plan *d;
    int64_t rows, columns; /* of a strip */
    int64_t strips_along_n;
    float *parts; /* PATH_LONG_K: one m x n result a piece */
    int64_t part_k;
} job;

static void run_strip(void *argument, int64_t task, float *workspace)
{
    const job *j = argument;
    gemm_product strip = *j->p;
    int64_t i = task / j->strips_along_n * j->rows, column = task % j->strips_along_n * j->columns;
    strip.m = min64(j->rows, j->p->m - i);
    strip.n = min64(j->columns, j->p->n - column);
    strip.a = a_at(j->p, i, 0);
    strip.b = b_at(j->p, 0, column);
    strip.c += i * strip.ldc + column;
    rung_gemm_strip(&strip, j->d, workspace);
}

static void run_part(void *argument, int64_t task, float *workspace)
{
    const job *j = argument;
    gemm_product part = *j->p;
    int64_t step = task * j->part_k;
    part.k = min64(j->part_k, j->p->k - step);
    part.a = a_at(j->p, 0, step);
    part.b = b_at(j->p, step, 0);
    part.c = j->parts + task * part.m * part.n;
    part.ldc = part.n;
    part.beta = 0.0f;
    rung_gemm_strip(&part, j->d, workspace);
}

/* In order of the pieces, so that the sum does not depend on who finished first. */
static void add_parts(const job *j, int64_t parts)
{
    const gemm_product *p = j->p;
    for (int64_t i = 0; i < p->m; i++) {
        float *c = p->c + i * p->ldc;
        for (int64_t part = 0; part < parts; part++) {
            const float *from = j->parts + (part * p->m + i) * p->n;
            if (part == 0 && p->beta == 0.0f)
                memcpy(c, from, (size_t)p->n * sizeof *c);
            else if (part == 0 && p->beta != 1.0f)
                for (int64_t k = 0; k < p->n; k++)
                    c[k] = p->beta * c[k] + from[k];
            else
                for (int64_t k = 0; k < p->n; k++)
                    c[k] += from[k];
        }
    }
}

static rung_status no_memory(int slots, int64_t floats)
{
    return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for packing: %d times %lld bytes", slots,
                     (long long)floats * (long long)sizeof(float));
}

static rung_status run_long_k(const gemm_product *p, const gemm_plan *d, const rung_cpu_args *args, int threads)
{
    int64_t parts = d->parts, floats = rung_gemm_workspace(p, d, p->m, p->n), extra = parts * p->m * p->n;
    /* The caller's slot holds the pieces behind its own workspace. */
    int64_t base = round_up(floats, 16);
    if (!rung_pool_reserve(args->pool, 1, base + extra) || !rung_pool_reserve(args->pool, threads, floats))
        return no_memory(threads, base + extra);
    job j = {.p = p, .d = d, .part_k = round_up(divide_up(p->k, parts), 16)};
    j.parts = rung_pool_workspace(args->pool, 0) + base;
    parts = divide_up(p->k, j.part_k);
    rung_pool_run(args->pool, threads, parts, run_part, &j);
    add_parts(&j, parts);
    return RUNG_SUCCESS;
}

static void scale(const gemm_product *p)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float *c = p->c + i * p->ldc + j;
            *c = p->beta == 0.0f ? 0.0f : p->beta * *c;
        }
}

/* Threads earn their wake-up only on products of some length: a few microseconds when the workers still spin, more
 * when they sleep. */
static int choose_threads(double work_us, const rung_cpu_args *args)
{
    if (args->threads <= 1)
        return 1;
    double least_us = rung_pool_is_hot(args->pool) ? 3.0 : 12.0;
    double most = work_us / least_us;
    return most < 2.0 ? 1 : most < args->threads ? (int)most : args->threads;
}

/* A guess at one thread's time, from 3 GHz and 40 GB/s: only good for telling short from long. */
static double product_us(const gemm_product *p)
{
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return 2.0 * m * n * k / (p->x->vl * 12e3) + 4.0 * (m * k + k * n + m * n) / 40e3;
}

enum { STRIPS_A_THREAD = 4, STRIP_LEAST = 192 };

/* Strips of whole tiles along one dimension. More strips than threads even out a thread that is held up, but each
 * packs for itself, so none is made narrow. */
static int64_t strip_length(const gemm_product *p, const gemm_plan *d, int threads)
{
    int64_t length = d->split_m ? p->m : p->n;
    int64_t unit = d->split_m ? p->x->mr : (int64_t)p->x->nv * p->x->vl;
    if (threads <= 1)
        return length;
    int64_t strips = threads * max64(1, min64(STRIPS_A_THREAD, length / (threads * STRIP_LEAST)));
    return round_up(divide_up(length, strips), unit);
}

/* Tiny products come first: for them every test before the tiles counts. */
static rung_status run_one(gemm_product *p, const rung_cpu_args *args, int threads)
{
    if (p->k == 0 || p->alpha == 0.0f) {
        scale(p);
        return RUNG_SUCCESS;
    }
    if (is_tiny(p)) {
        rung_gemm_tiny(p);
        return RUNG_SUCCESS;
    }
    gemm_plan d = rung_gemm_plan(p, args->caches);
    if (d.path == PATH_LONG_K)
        return run_long_k(p, &d, args, threads);
    int64_t length = strip_length(p, &d, threads);
    job j = {.p = p, .d = &d, .rows = d.split_m ? length : p->m, .columns = d.split_m ? p->n : length};
    int64_t floats = rung_gemm_workspace(p, &d, j.rows, j.columns);
    if (floats > 0 && !rung_pool_reserve(args->pool, threads, floats))
        return no_memory(threads, floats);
    if (threads == 1) {
        rung_gemm_strip(p, &d, floats > 0 ? rung_pool_workspace(args->pool, 0) : NULL);
        return RUNG_SUCCESS;
    }
    j.strips_along_n = divide_up(p->n, j.columns);
    rung_pool_run(args->pool, threads, divide_up(p->m, j.rows) * j.strips_along_n, run_strip, &j);
    return RUNG_SUCCESS;
}

static void select_item(gemm_product *p, const rung_cpu_args *args, int64_t item)
{
    p->a = args->a_array ? args->a_array[item] : args->a + item * args->stride_a;
    p->b = args->b_array ? args->b_array[item] : args->b + item * args->stride_b;
    p->c = args->c_array ? args->c_array[item] : args->c + item * args->stride_c;
}

typedef struct batch_job {
    const rung_cpu_args *args;
    gemm_product p;
    gemm_plan d;
    int64_t run; /* products a task takes */
} batch_job;

static void run_items(void *argument, int64_t task, float *workspace)
{
    const batch_job *j = argument;
    gemm_product p = j->p;
    for (int64_t item = task * j->run; item < min64((task + 1) * j->run, j->args->batch); item++) {
        select_item(&p, j->args, item);
        rung_gemm_strip(&p, &j->d, workspace);
    }
}

enum { TASKS_A_THREAD = 8 };

/* Whole products go to threads when there are enough of them; else each product is shared out in turn. */
static rung_status run_batch(gemm_product *p, const rung_cpu_args *args)
{
    batch_job j = {.args = args, .p = *p};
    double work_us = product_us(p) * (double)args->batch;
    int threads = choose_threads(work_us, args);
    if (p->k > 0 && p->alpha != 0.0f) {
        j.d = rung_gemm_plan(p, args->caches);
        j.d.stream = 0; /* alignment differs from product to product */
    }
    if (p->k == 0 || p->alpha == 0.0f || j.d.path == PATH_LONG_K || args->batch < 2 * threads) {
        for (int64_t item = 0; item < args->batch; item++) {
            select_item(p, args, item);
            RUNG_TRY(run_one(p, args, choose_threads(product_us(p), args)));
        }
        return RUNG_SUCCESS;
    }
    int64_t floats = rung_gemm_workspace(p, &j.d, p->m, p->n);
    if (floats > 0 && !rung_pool_reserve(args->pool, threads, floats))
        return no_memory(threads, floats);
    j.run = threads == 1 ? args->batch : divide_up(args->batch, (int64_t)threads * TASKS_A_THREAD);
    rung_pool_run(args->pool, threads, divide_up(args->batch, j.run), run_items, &j);
    return RUNG_SUCCESS;
}

rung_status rung_cpu_gemm(const rung_cpu_args *args, const rung_cpu_kernel *kernel)
{
    gemm_product p = {kernel,      args->m,    args->n,       args->k,       args->a,
                      args->lda,   args->b,    args->ldb,     args->c,       args->ldc,
                      args->alpha, args->beta, args->trans_a, args->trans_b, args->in_order};
    if (args->note) {
        int small = is_tiny(&p) && args->batch <= 1;
        args->note->threads = small ? 1 : choose_threads(product_us(&p) * (double)max64(args->batch, 1), args);
        args->note->path = p.k == 0 ? "C is scaled" : path_names[rung_gemm_plan(&p, args->caches).path];
        return RUNG_SUCCESS;
    }
    if (args->batch > 1 || args->a_array)
        return run_batch(&p, args);
    return run_one(&p, args, args->threads > 1 && !is_tiny(&p) ? choose_threads(product_us(&p), args) : 1);
}
