/* The CPU product: plan, split over threads, run. Every path adds up each element of C in the same order of k
 * whatever the strips are, so the thread count never changes a bit; only long-k products are cut along k, at places
 * the shape alone decides. */
#include "cpu/gemm_block.h"
#include "core/status.h"

typedef struct job {
    const rung_cpu_args *p;
    const gemm_plan *plan;
    int64_t rows, columns; /* of a strip */
    int64_t strips_along_n;
} job;

static void run_strip(void *argument, int64_t task, float *workspace)
{
    const job *j = argument;
    rung_cpu_args strip = *j->p;
    int64_t i = task / j->strips_along_n * j->rows, column = task % j->strips_along_n * j->columns;
    strip.m = min64(j->rows, j->p->m - i);
    strip.n = min64(j->columns, j->p->n - column);
    strip.a = a_at(j->p, i, 0);
    strip.b = b_at(j->p, 0, column);
    strip.c += i * strip.ldc + column;
    if (strip.bias_kind)
        strip.bias += strip.bias_kind == RUNG_BIAS_PER_ROW ? i : column;
    rung_gemm_strip(&strip, j->plan, workspace);
}

/* Returns whether there is nothing to multiply: C is scaled. */
static int only_scales(const rung_cpu_args *p)
{
    return p->k == 0 || p->alpha == 0.0f;
}

static void scale(const rung_cpu_args *p)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float *c = p->c + i * p->ldc + j;
            *c = p->beta == 0.0f ? 0.0f : p->beta * *c;
        }
    rung_gemm_finish(p, 0, p->m, 0, p->n);
}

/* As many threads as have work enough each for what calling them costs, which the pool knows. */
static int choose_threads(double work_us, const rung_cpu_args *p)
{
    enum { LEAST_US = 4 }; /* for two, however close they are */
    if (p->threads <= 1 || work_us < LEAST_US)
        return 1;
    double most = work_us / rung_pool_least_share_us(p->pool, p->note ? 0.0 : work_us);
    return most < 2.0 ? 1 : most < p->threads ? (int)most : p->threads;
}

/* Guesses one thread's time, from 3 GHz, vectors as long as the processor's units where it halves the kernel's, and
 * twice the 80 GB/s of an L2: of what passes the caches only half counts, for another thread must fetch its share from
 * this one's core; but a matrix that meets a single vector is all the work, and a C that stores wait for counts three
 * times. What L2 does not hold comes to any core at a quarter of that. It is good enough to tell short from long. */
static double product_us(const rung_cpu_args *p)
{
    const rung_cpu_kernel *unit = halves_vectors(p) ? p->kernel->half : p->kernel;
    double m = (double)p->m, n = (double)p->n, k = (double)p->k, l2 = (double)p->cpu->l2_bytes;
    double c_times = p->cpu->stores_wait && c_bytes(p) > p->cpu->l1_bytes ? 3.0 : 1.0;
    double bytes = 4.0 * (m * k + k * n + c_times * m * n), from_far = bytes > l2 ? bytes - l2 : 0.0;
    double bytes_a_us = p->m == 1 || p->n == 1 ? 80e3 : 160e3;
    return 2.0 * m * n * k / (unit->vl * 12e3) + (bytes - from_far) / bytes_a_us + from_far / 40e3;
}

enum {
    STRIPS_A_THREAD = 4,
    STRIPS_OF_COLD = 2,
    STRIP_LEAST = 192,
    STRIP_LEAST_OF_STREAM = 640,
    STRIP_LEAST_OF_ROWS = 8,
    UNITS_OF_EVEN = 8,
    ROWS_OF_DOTS = 4
};

/* Returns whether all threads should pack B together. That saves each thread from packing it alone, and costs a meeting
 * of all threads a slab. With few rows a slab would be read from the other cores' caches more often than it is used. */
static int is_worth_sharing(const rung_cpu_args *p, int threads)
{
    enum { LEAST_US = 700, ROWS_A_THREAD = 96 };
    return product_us(p) >= LEAST_US * threads && p->m >= (int64_t)ROWS_A_THREAD * threads;
}

/* Cuts one dimension into strips of whole tiles. More strips than threads even out a thread that is held up, but each
 * packs for itself, so none is made narrow, and where both operands are packed, or B comes from afar in panels, they
 * are fewer: each strip packs all of the other operand, and begins with columns that nobody has asked for. An operand
 * that streams past C is read in runs as long as a strip, which the hardware fetches ahead, if they are long. Few
 * columns are cut more finely: whole tiles would leave one thread far less than another. */
static int64_t strip_length(const rung_cpu_args *p, const gemm_plan *plan, int threads)
{
    int64_t length = plan->split_m ? p->m : p->n;
    int64_t unit = plan->split_m ? p->kernel->mr : panel_columns(p->kernel), least = STRIP_LEAST;
    if (threads <= 1)
        return length;
    if (plan->path == PATH_RANK && plan->split_m) { /* rows are written one by one, and nothing is packed for them */
        unit = 1;
        least = STRIP_LEAST_OF_ROWS;
    }
    if (plan->path == PATH_TRANSPOSED && !plan->of_b && plan->inner == PATH_STREAM)
        least = STRIP_LEAST_OF_STREAM;
    if (plan->path == PATH_TRANSPOSED && plan->of_b) /* columns are rows of the transposed product */
        unit = p->kernel->mr;
    int begins_cold = plan->path == PATH_PACKED || (plan->path == PATH_AHEAD && p->cpu->far_l3);
    int64_t most = begins_cold ? STRIPS_OF_COLD : STRIPS_A_THREAD;
    int64_t strips = threads * max64(1, min64(most, length / (threads * least)));
    int64_t even = divide_up(length, strips);
    if (!plan->split_m && even < UNITS_OF_EVEN * unit)
        unit = plan->path == PATH_DOT ? ROWS_OF_DOTS : min64(unit, max64(p->kernel->vl, LINE_FLOATS));
    return round_up(even, unit);
}

/* Returns whether each row of C begins and ends with a line, so that no two threads write to one. */
static int ends_with_lines(const rung_cpu_args *p)
{
    return (uintptr_t)p->c % LINE_BYTES == 0 && p->ldc % LINE_FLOATS == 0;
}

/* Returns whether threads should cut rows although C has more columns. Where one's columns end and another one's begin
 * each row has a line that passes between their caches, which takes longer than reading, or packing, all of a small B
 * twice. */
static int should_cut_rows(const rung_cpu_args *p, const gemm_plan *plan)
{
    enum { ROWS_LEAST = 40, B_FLOATS_A_ROW = 200 };
    return (plan->path == PATH_DIRECT || plan->path == PATH_PACK_B) && !plan->split_m && !ends_with_lines(p) &&
           p->m >= ROWS_LEAST && p->k * p->n <= B_FLOATS_A_ROW * p->m;
}

/* Returns whether sums should lie apart from a C that is not read: it is written once a run of steps, and such lines
 * would pass between the caches as often. */
static int should_lie_apart(const rung_cpu_args *p, const gemm_plan *plan)
{
    return plan->path == PATH_DIRECT && !plan->split_m && !ends_with_lines(p) && plan->kc < p->k && p->beta == 0.0f;
}

/* Plans for several threads what moves no bit. */
static void plan_for_threads(const rung_cpu_args *p, gemm_plan *plan)
{
    plan->split_m |= should_cut_rows(p, plan);
    plan->apart |= should_lie_apart(p, plan);
}

/* Cuts C into so many cells, each of which packs its part of both operands: of all grids the one in which that, and the
 * FMAs of the largest cell, take least. */
static void cut_into_grid(const rung_cpu_args *p, int cells, job *j)
{
    enum { FMAS_OF_PACKING = 24 }; /* an element of either operand takes as long as so many lanes of FMAs */
    const int64_t panel = panel_columns(p->kernel);
    int64_t least = INT64_MAX;
    for (int down = 1; down <= cells; down++) {
        if (cells % down)
            continue;
        int64_t rows = round_up(divide_up(p->m, down), p->kernel->mr), even = divide_up(p->n, cells / down);
        int64_t columns = round_up(even, even < UNITS_OF_EVEN * panel ? p->kernel->vl : panel);
        int64_t cost = rows * columns + FMAS_OF_PACKING * (rows + columns);
        if (cost < least) {
            least = cost;
            j->rows = rows;
            j->columns = columns;
        }
    }
}

/* Runs one product that is not tiny. */
static rung_status run_planned(const rung_cpu_args *p, int threads)
{
    enum { THREADS_OF_GRID = 8 }; /* fewer pack one operand each in little time */
    enum { CELLS_A_THREAD = 4 };  /* so that one whose CPU others share holds up none */
    gemm_plan plan = rung_gemm_recent_plan(p);
    if (plan.path == PATH_LONG_K || plan.parts > 1)
        return rung_gemm_parts(p, &plan, threads);
    if (plan.path == PATH_PACKED && threads > 1 && is_worth_sharing(p, threads))
        return rung_packed_share(p, &plan, threads);
    if (threads > 1)
        plan_for_threads(p, &plan);
    int64_t length = strip_length(p, &plan, threads);
    job j = {.p = p, .plan = &plan, .rows = plan.split_m ? length : p->m, .columns = plan.split_m ? p->n : length};
    if (plan.path == PATH_PACKED && threads >= THREADS_OF_GRID)
        cut_into_grid(p, threads * CELLS_A_THREAD, &j);
    int64_t floats = rung_gemm_workspace(p, &plan, j.columns);
    RUNG_TRY(rung_gemm_reserve(p, threads, floats, floats));
    if (threads == 1) {
        rung_gemm_strip(p, &plan, floats > 0 ? rung_pool_workspace(p->pool, 0) : NULL);
        return RUNG_SUCCESS;
    }
    j.strips_along_n = divide_up(p->n, j.columns);
    rung_pool_run(p->pool, threads, divide_up(p->m, j.rows) * j.strips_along_n, run_strip, &j);
    return RUNG_SUCCESS;
}

/* Runs one product. Tiny ones are asked about first: for them every test before the tiles counts. */
static rung_status run_one(const rung_cpu_args *p, int threads)
{
    if (only_scales(p)) {
        scale(p);
        return RUNG_SUCCESS;
    }
    if (rung_gemm_if_tiny(p, threads)) {
        rung_gemm_finish(p, 0, p->m, 0, p->n);
        return RUNG_SUCCESS;
    }
    return run_planned(p, threads);
}

/* Selects one product of a batch. */
static void select_item(rung_cpu_args *one, const rung_cpu_args *p, int64_t item)
{
    one->a = p->a_array ? p->a_array[item] : p->a + item * p->stride_a;
    one->b = p->b_array ? p->b_array[item] : p->b + item * p->stride_b;
    one->c = p->c_array ? p->c_array[item] : p->c + item * p->stride_c;
}

typedef struct batch_job {
    const rung_cpu_args *p;
    gemm_plan plan;
    int64_t run; /* products a task takes */
} batch_job;

static void run_items(void *argument, int64_t task, float *workspace)
{
    const batch_job *j = argument;
    rung_cpu_args one = *j->p;
    for (int64_t item = task * j->run; item < min64((task + 1) * j->run, j->p->batch); item++) {
        select_item(&one, j->p, item);
        rung_gemm_strip(&one, &j->plan, workspace);
    }
}

enum { TASKS_A_THREAD = 8 };

/* Whole products go to threads when there are enough of them; else each product is shared out in turn. */
static rung_status run_batch(const rung_cpu_args *p)
{
    batch_job j = {.p = p};
    int threads = choose_threads(product_us(p) * (double)p->batch, p);
    if (!only_scales(p))
        j.plan = rung_gemm_recent_plan(p);
    if (only_scales(p) || j.plan.path == PATH_LONG_K || j.plan.parts > 1 || p->batch < 2 * threads) {
        rung_cpu_args one = *p;
        for (int64_t item = 0; item < p->batch; item++) {
            select_item(&one, p, item);
            RUNG_TRY(run_one(&one, choose_threads(product_us(p), p)));
        }
        return RUNG_SUCCESS;
    }
    int64_t floats = rung_gemm_workspace(p, &j.plan, p->n);
    RUNG_TRY(rung_gemm_reserve(p, threads, floats, floats));
    j.run = threads == 1 ? p->batch : divide_up(p->batch, (int64_t)threads * TASKS_A_THREAD);
    rung_pool_run(p->pool, threads, divide_up(p->batch, j.run), run_items, &j);
    return RUNG_SUCCESS;
}

/* Returns the product that computes a C of one column, whose elements lie side by side, as a row: vectors run along it.
 */
static rung_cpu_args column_as_row(const rung_cpu_args *p)
{
    rung_cpu_args t = transposed(p);
    t.ldc = p->m;
    rung_cpu_lay_flat(&t);
    return t;
}

rung_status rung_cpu_gemm(const rung_cpu_args *p)
{
    if (p->n == 1 && p->ldc == 1 && p->m > 1 && !p->in_order) {
        rung_cpu_args row = column_as_row(p);
        return rung_cpu_gemm(&row);
    }
    if (p->note) {
        int small = is_tiny(p) && p->batch <= 1;
        p->note->threads = small ? 1 : choose_threads(product_us(p) * (double)max64(p->batch, 1), p);
        p->note->path = "C is scaled";
        p->note->rule = "k or alpha is 0";
        if (!only_scales(p)) {
            gemm_plan plan = rung_gemm_plan(p);
            p->note->path = rung_gemm_path_name(plan.path);
            p->note->rule = rung_gemm_rule_name(plan.rule);
        }
        return RUNG_SUCCESS;
    }
    if (p->batch > 1 || p->c_array)
        return run_batch(p);
    return run_one(p, p->threads > 1 ? choose_threads(product_us(p), p) : 1);
}

rung_status rung_cpu_gemm_plain(const rung_cpu_args *p)
{
    int threads = p->threads > 1 ? choose_threads(product_us(p), p) : 1;
    return rung_gemm_if_tiny(p, threads) ? RUNG_SUCCESS : run_planned(p, threads);
}

/* The catalog's entries. The product's args name the micro-kernels, so that all entries do the same. */
#define RUNG_CPU(name, ...)                                                                                            \
    extern const rung_cpu_kernel name##_family;                                                                        \
    rung_status name(const void *args);                                                                                \
    rung_status name(const void *args)                                                                                 \
    {                                                                                                                  \
        return rung_cpu_gemm(args);                                                                                    \
    }
#include "cpu/kernels/rows.inc"
#undef RUNG_CPU

const rung_cpu_kernel *rung_cpu_kernel_of(const rung_kernel *row)
{
#define RUNG_CPU(name, ...)                                                                                            \
    if (row->cpu_entry == name)                                                                                        \
        return &name##_family;
#include "cpu/kernels/rows.inc"
#undef RUNG_CPU
    return NULL;
}
