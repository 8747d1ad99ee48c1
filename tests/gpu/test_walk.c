/* The CUDA backend's host side, taken through many lives: contexts, streams, limits and modes come and go in an order
 * that a seed draws, while work is queued and driver's calls fail. What must hold at any time is asserted, not one
 * story at a time: a context that has run much launches what a new one launches; results are right; nothing is freed,
 * handed on or closed under queued work; nothing stays open. usage: test_walk STAND_IN [SEED]: the walk of one seed
 * alone */
#include "../support.h"
#include "fake_libcuda.h"
#include "rung_catalog.h"
#include "rung_tools.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *stand_in;
static fake *gpu;
static uint64_t only_seed;

static struct {
    int (*alloc)(unsigned long long *, size_t), (*release)(unsigned long long), (*synchronize)(void);
    int (*create)(void **, unsigned, int), (*destroy)(void *), (*exchange)(int *);
} driver;

static void *symbol(const char *name)
{
    void *found = dlsym(stand_in, name);
    if (!found)
        fail_msg("the stand-in has no %s", name);
    return found;
}

static uint64_t dice;

/* Returns a number from 0 to `below` - 1. */
static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)below);
}

static float *device_memory(size_t floats)
{
    unsigned long long at;
    assert_int_equal(driver.alloc(&at, floats * sizeof(float)), 0);
    return (float *)(uintptr_t)at;
}

static void free_device(void *memory)
{
    assert_int_equal(driver.release((unsigned long long)(uintptr_t)memory), 0);
}

enum { AMPERE, HOPPER }; /* the stand-in computes what kernels for the first make */

static rung_context *new_context(int device)
{
    static const int archs[] = {80, 90};
    rung_context *context;
    rung_config config;
    rung_config_init(&config);
    config.device = device;
    config.pointers = device == HOPPER ? RUNG_POINTERS_DEVICE : RUNG_POINTERS_AUTO;
    gpu->arch = archs[device];
    assert_ok(rung_context_create(&context, &config));
    return context;
}

/* ---- a plan is its GPU's ---- */

static const rung_kernel *planned(rung_context *context, int64_t n, rung_math math)
{
    static float memory[4]; /* nothing is run */
    rung_plan *plan;
    rung_gemm g;
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = n;
    g.a = g.b = memory, g.c = memory + 2;
    assert_ok(rung_context_set_math(context, math));
    assert_ok(rung_plan_create(&plan, context, &g));
    const rung_kernel *kernel = rung_kernel_find(rung_plan_kernel(plan));
    assert_null(rung_kernel_unusable(context, kernel));
    rung_plan_destroy(plan);
    return kernel;
}

/* One thread plans a shape for a GPU, and then the same shape for a GPU of another chip. */
static void plans_are_of_their_gpu(void **state)
{
    (void)state;
    rung_context *of[] = {new_context(AMPERE), new_context(HOPPER)};
    assert_ok(rung_context_set_pointers(of[AMPERE], RUNG_POINTERS_DEVICE));
    for (int64_t n = 2048; n < 2056; n++)
        for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
            const int first = n % 2 ? AMPERE : HOPPER;
            const rung_kernel *kernels[2];
            kernels[first] = planned(of[first], n, (rung_math)math);
            kernels[!first] = planned(of[!first], n, (rung_math)math);
            assert_int_equal(kernels[AMPERE]->arch, 80);
            assert_int_equal(kernels[HOPPER]->arch, 90);
        }
    rung_context_destroy(of[AMPERE]);
    rung_context_destroy(of[HOPPER]);
}

/* ---- a context's history does not show in what it launches ---- */

enum { OF_A_KERNEL = 24, RUNS_OF_A_CALL = 3, MOST_FLOATS = 2200 * 2200, KERNELS = 256, FIELDS = 13 };

typedef struct call {
    const char *kernel; /* NULL: the planner chooses */
    int64_t m, n, k, batch, pad, limit;
    int layout, trans_a, trans_b, odd, math, bias, shares_b;
    float alpha, beta;
    char alone[FAKE_LAUNCHED_BYTES]; /* what it launches as the first call of a thread and a context */
} call;

static float *operands[3];

/* Draws one field of a call anew. */
static void draw_field(call *c, int field)
{
    static const int64_t sizes[] = {1, 7, 33, 64, 128, 129, 200, 520, 1025},
                         depths[] = {1, 16, 64, 100, 300, 700, 1100, 2100};
    static const int64_t limits[] = {0, 0, 0, 0, -1, 1 << 20, 12 << 20};
    switch (field) {
    case 0: c->m = sizes[draw(9)]; break;
    case 1: c->n = sizes[draw(9)]; break;
    case 2: c->k = depths[draw(8)]; break;
    case 3: c->batch = draw(2) ? 1 : 1 + draw(6); break;
    case 4: c->pad = draw(3) ? 0 : 1 + draw(4); break;
    case 5: c->limit = limits[draw(7)]; break;
    case 6: c->layout = draw(2); break;
    case 7: c->trans_a = draw(2); break;
    case 8: c->trans_b = draw(2); break;
    case 9: c->odd = draw(2) ? 0 : 1 + draw(3); break;
    case 10: c->math = draw(3); break;
    case 11: c->bias = draw(3), c->shares_b = draw(2); break;
    default: c->alpha = draw(6) ? 1.0f : 0.0f, c->beta = draw(2) ? 0.0f : 0.5f; break;
    }
}

static rung_gemm product_of(const call *c)
{
    rung_gemm g;
    rung_gemm_init(&g);
    const int row = c->layout == RUNG_ROW_MAJOR;
    g.layout = (rung_layout)c->layout, g.trans_a = (rung_transpose)c->trans_a, g.trans_b = (rung_transpose)c->trans_b;
    g.m = c->m, g.n = c->n, g.k = c->k, g.batch = c->batch;
    g.lda = (row != c->trans_a ? c->k : c->m) + c->pad;
    g.ldb = (row != c->trans_b ? c->n : c->k) + c->pad;
    g.ldc = (row ? c->n : c->m) + c->pad;
    g.stride_a = (row != c->trans_a ? c->m : c->k) * g.lda;
    g.stride_b = c->shares_b ? 0 : (row != c->trans_b ? c->k : c->n) * g.ldb;
    g.stride_c = (row ? c->m : c->n) * g.ldc;
    g.alpha = c->alpha, g.beta = c->beta;
    g.a = operands[0] + c->odd / 2, g.b = operands[1] + c->odd % 2, g.c = operands[2];
    g.bias_kind = (rung_bias)c->bias, g.bias = c->bias ? operands[0] : NULL;
    return g;
}

/* Runs the call; returns 0 where its kernel refuses it. */
static int launches_of(rung_context *context, const call *c, char *text)
{
    const rung_gemm g = product_of(c);
    rung_plan *plan;
    assert_ok(rung_context_set_math(context, (rung_math)c->math));
    assert_ok(rung_context_set_workspace_limit(context, c->limit));
    gpu->launched[0] = 0;
    gpu->log[0] = 0;
    if (!c->kernel) {
        assert_ok(rung_gemm_run(context, &g));
    } else {
        if (rung_plan_create_kernel(&plan, context, &g, c->kernel) != RUNG_SUCCESS)
            return 0;
        assert_ok(rung_plan_run(plan, &g));
        rung_plan_destroy(plan);
    }
    memcpy(text, gpu->launched, sizeof gpu->launched);
    return 1;
}

/* Plans are remembered by a thread for all its contexts. */
static void *as_the_first(void *of)
{
    call *c = of;
    rung_context *context = new_context(HOPPER);
    if (!launches_of(context, c, c->alone))
        c->m = 0;
    rung_context_destroy(context);
    return NULL;
}

/* Draws a call of a kernel, mostly as the one before it but for one field, and notes what it launches alone. */
static void draw_call(call *c, const call *before, const char *kernel)
{
    do {
        pthread_t thread;
        const int alike = before && draw(4);
        if (alike)
            *c = *before;
        for (int field = alike ? draw(FIELDS) : 0; field < FIELDS; field += alike ? FIELDS : 1)
            draw_field(c, field);
        c->kernel = kernel;
        if (c->batch * c->m * c->n > MOST_FLOATS / 8 || c->batch * (c->m + c->n) * c->k > MOST_FLOATS / 8)
            c->batch = 1;
        assert_int_equal(pthread_create(&thread, NULL, as_the_first, c), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    } while (!c->m);
}

/* Lists the production kernels; the first place is the planner's own choice's. */
static int list_kernels(const char *names[KERNELS])
{
    int count = 0;
    names[count++] = NULL;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        const int times = k->arith == RUNG_F16X3 ? 4 : 1; /* what these launch together is kept as a graph */
        for (int t = 0; t < times && count < KERNELS && k->backend == RUNG_BACKEND_CUDA && k->role == RUNG_PRODUCTION;
             t++)
            names[count++] = k->name;
    }
    return count;
}

/* Whatever is kept between calls - plans, graphs, buffers, settings - has all that it depends on in its key. */
static void history_does_not_show(void **state)
{
    (void)state;
    const char *kernels[KERNELS];
    const int count = list_kernels(kernels), of_planner = 12 * OF_A_KERNEL, all = of_planner + count * OF_A_KERNEL;
    call *calls = calloc((size_t)all, sizeof *calls);
    assert_true(count > 20 && calls);
    gpu->idle = 1; /* launches are compared; nothing is computed */
    for (int i = 0; i < 3; i++)
        operands[i] = device_memory(MOST_FLOATS + 8);
    dice = 11;
    for (int i = 0; i < all; i++) {
        const int which = i < of_planner ? 0 : (i - of_planner) / OF_A_KERNEL,
                  first = i >= of_planner && i % OF_A_KERNEL == 0;
        draw_call(&calls[i], i && !first ? &calls[i - 1] : NULL, kernels[which]);
    }
    rung_context *context = new_context(HOPPER);
    for (int run = 0, at = 0; run < RUNS_OF_A_CALL * all; run++) {
        static char now[FAKE_LAUNCHED_BYTES];
        at = draw(2) ? (at + all - 1 + 2 * draw(2)) % all : draw(all); /* often its neighbour */
        const call *c = &calls[at];
        if (run % 64 == 0) /* buffers that a smaller limit replaced are free from here on */
            assert_int_equal(rung_context_synchronize(context), RUNG_SUCCESS);
        assert_true(launches_of(context, c, now));
        if (strcmp(now, c->alone) != 0)
            fail_msg("run %d, %s: layout %d, %c%c %lldx%lldx%lld pad %lld batch %lld, math %d, limit %lld: behind "
                     "other calls it launches\n%sand alone\n%s",
                     run, c->kernel ? c->kernel : "planned", c->layout, c->trans_a ? 'T' : 'N', c->trans_b ? 'T' : 'N',
                     (long long)c->m, (long long)c->n, (long long)c->k, (long long)c->pad, (long long)c->batch, c->math,
                     (long long)c->limit, now, c->alone);
    }
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        free_device(operands[i]);
    free(calls);
    gpu->idle = 0;
    assert_int_equal(gpu->faults + gpu->memory + gpu->graphs + gpu->pushed, 0);
}

/* ---- a plan may run with an alpha of 0, and a product may run out of memory ---- */

static rung_gemm square(int64_t n, float alpha)
{
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = n;
    g.a = operands[0], g.b = operands[1], g.c = operands[2];
    g.alpha = alpha, g.beta = 2.0f;
    return g;
}

static void get_operands(int64_t n)
{
    gpu->idle = 1; /* launches are looked at; nothing is computed */
    for (int i = 0; i < 3; i++)
        operands[i] = device_memory((size_t)(n * n));
}

static void put_operands(void)
{
    for (int i = 0; i < 3; i++)
        free_device(operands[i]);
    gpu->idle = 0;
}

/* Whatever a plan was made for, with an alpha of 0 it launches what scales C: the same as a call without a plan, or,
 * where its kernel was named and takes such a product, as a plan of that kernel for it. */
static void an_alpha_of_zero_is_planned_anew(void **state)
{
    (void)state;
    static const int64_t sizes[] = {40, 300, 1000, 2048};
    static char without[FAKE_LAUNCHED_BYTES], named[FAKE_LAUNCHED_BYTES];
    const char *kernels[KERNELS];
    const int count = list_kernels(kernels);
    get_operands(2048);
    rung_context *context = new_context(HOPPER);
    int planned = 0, own = 0;
    for (int math = 0; math < 3; math++)
        for (int i = 0; i < 4 * count; i++) {
            const rung_gemm one = square(sizes[i % 4], 1.0f), zero = square(sizes[i % 4], 0.0f);
            const char *kernel = kernels[i / 4];
            rung_plan *plan, *for_zero = NULL;
            assert_ok(rung_context_set_math(context, (rung_math)math));
            if ((kernel ? rung_plan_create_kernel(&plan, context, &one, kernel)
                        : rung_plan_create(&plan, context, &one)) != RUNG_SUCCESS)
                continue;
            gpu->launched[0] = 0;
            assert_ok(rung_gemm_run(context, &zero));
            memcpy(without, gpu->launched, sizeof without);
            named[0] = gpu->launched[0] = 0;
            if (kernel && rung_plan_create_kernel(&for_zero, context, &zero, kernel) == RUNG_SUCCESS) {
                assert_ok(rung_plan_run(for_zero, &zero));
                memcpy(named, gpu->launched, sizeof named);
                own++;
            }
            for (int time = 0; time < 3; time++) { /* what is kept of a call must not stand for another one */
                gpu->launched[0] = 0;
                assert_ok(rung_plan_run(plan, time == 1 ? &one : &zero));
                if (time != 1 && (!gpu->launched[0] || strcmp(gpu->launched, for_zero ? named : without) != 0))
                    fail_msg("%s, %lld, math %d: with an alpha of 0 it launches\n%sand without a plan\n%s",
                             rung_plan_kernel(plan), (long long)sizes[i % 4], math, gpu->launched, without);
            }
            planned++;
            rung_plan_destroy(for_zero);
            rung_plan_destroy(plan);
        }
    assert_true(planned > 100 && own > 50);
    rung_context_destroy(context);
    put_operands();
}

/* Leaves the launches that may write C of a list. */
static void only_writers(char *launched)
{
    static const char *const prepare[] = {"f16x3_split", "f16x3_look", "f16x3_clear", "row_copy", "turn_"};
    char *to = launched;
    for (char *line = launched, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end != 0;
        int writes = 1;
        for (size_t i = 0; i < sizeof prepare / sizeof *prepare; i++)
            writes &= strncmp(line, prepare[i], strlen(prepare[i])) != 0;
        if (writes) {
            memmove(to, line, (size_t)(end - line));
            to += end - line;
        }
    }
    *to = 0;
}

/* An accurate product of several panels has one driver's call after the other run out of memory. Where the call gives
 * an answer nevertheless, C was written once: by the plan, or by another one from the first launch on. */
static void run_out_of_memory(int capturing)
{
    enum { SIDE = 2048, PLANS = 3 };
    static char plans[PLANS][FAKE_LAUNCHED_BYTES];
    const int64_t limit = 24 << 20;
    int64_t limits[PLANS] = {limit, 0, -1};
    const char *first = NULL;
    int answered = 0, refused = 0, other = 0;
    get_operands(SIDE);
    const rung_gemm g = square(SIDE, 1.0f);
    for (int i = 0; i < PLANS; i++) {
        rung_context *context = new_context(HOPPER);
        rung_plan *plan;
        assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
        assert_ok(rung_context_set_workspace_limit(context, limits[i]));
        assert_ok(rung_plan_create(&plan, context, &g));
        if (i == 0)
            limits[1] = rung_plan_workspace_bytes(plan) / 8;
        rung_plan_destroy(plan);
        gpu->launched[0] = 0;
        gpu->capturing = capturing;
        assert_ok(rung_gemm_run(context, &g));
        gpu->capturing = 0;
        only_writers(gpu->launched);
        memcpy(plans[i], gpu->launched, sizeof plans[i]);
        rung_context_destroy(context);
    }
    const char *panel = strstr(plans[0], "sm90_wgmma_f16x3");
    assert_true(panel && strstr(panel + 1, "sm90_wgmma_f16x3")); /* two panels or more */
    for (long fails = 1;; fails++) {
        rung_context *context = new_context(HOPPER);
        assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
        assert_ok(rung_context_set_workspace_limit(context, limit));
        gpu->launched[0] = 0;
        gpu->calls = 0, gpu->fail_call = fails, gpu->fail_result = 2; /* CUDA_ERROR_OUT_OF_MEMORY */
        gpu->capturing = capturing;
        const rung_status status = rung_gemm_run(context, &g);
        const long made = gpu->calls;
        gpu->fail_call = gpu->capturing = 0;
        only_writers(gpu->launched);
        int as = 0;
        while (as < PLANS && strcmp(gpu->launched, plans[as]) != 0)
            as++;
        if (status == RUNG_SUCCESS && as == PLANS)
            fail_msg("call %ld runs out of memory, and what is launched is no plan's:\n%s", fails, gpu->launched);
        if (status == RUNG_SUCCESS && as > 0 && strncmp(rung_last_kernel(context), gpu->launched, 12) != 0)
            first = rung_last_kernel(context);
        answered += status == RUNG_SUCCESS, refused += status == RUNG_OUT_OF_MEMORY, other += as > 0 && as < PLANS;
        rung_context_destroy(context);
        if (made < fails)
            break;
    }
    if (first)
        fail_msg("the last kernel is said to be %s, and another one has run", first);
    assert_true(answered > 10 && refused > 5 && other > 3);
    put_operands();
}

/* What a stream does at once is a graph, or is recorded, launch by launch. */
static void memory_that_runs_out_scales_c_once(void **state)
{
    (void)state;
    run_out_of_memory(0);
    run_out_of_memory(1);
}

/* ---- walks ---- */

enum { WALKS = 40, STEPS = 60, CONTEXTS = 2, STREAMS = 7, SLOTS = 30, EDGE = 48, DEEPEST = 2048, HOST_EDGE = 20 };

/* A result that was queued, and what it must be; its C is nobody else's until all work is over. */
typedef struct slot {
    float *c;
    int64_t m, n, k;
    float beta;
    int used, failed;
} slot;

typedef struct walk {
    rung_context *contexts[CONTEXTS];
    void *streams[STREAMS], *current[CONTEXTS];
    float *a, *b;
    slot slots[SLOTS];
    product host;
    int injects, count;
    uint64_t seed;
} walk;

static void say_where(const walk *w, const char *what)
{
    fail_msg("walk %llu, step %d: %s", (unsigned long long)w->seed, w->count, what);
}

static void check_slot(const walk *w, slot *s)
{
    for (int64_t i = 0; i < s->m && !s->failed; i++)
        for (int64_t j = 0; j < s->n; j += 1 + j % 3) {
            float sum = 0.0f;
            for (int64_t p = 0; p < s->k; p++)
                sum += w->a[i * DEEPEST + p] * w->b[p * EDGE + j];
            if (s->c[i * EDGE + j] != sum + (s->beta != 0.0f ? 2.0f * s->beta : 0.0f))
                say_where(w, "a queued product has come out wrong");
        }
    s->used = s->failed = 0;
}

/* All work is done, whoever queued it. */
static void end_of_work(walk *w)
{
    const int recording = gpu->recording;
    const long fail_call = gpu->fail_call;
    gpu->recording = 0, gpu->fail_call = 0;
    assert_int_equal(driver.synchronize(), 0);
    gpu->recording = recording, gpu->fail_call = fail_call;
    for (int i = 0; i < SLOTS; i++)
        if (w->slots[i].used)
            check_slot(w, &w->slots[i]);
}

static slot *free_slot(walk *w)
{
    for (int i = 0; i < SLOTS; i++)
        if (!w->slots[i].used)
            return &w->slots[i];
    end_of_work(w);
    return &w->slots[0];
}

static void run_queued(walk *w, rung_context *context)
{
    static const int64_t sizes[] = {5, 16, 40, EDGE}, depths[] = {1, 30, 1000, DEEPEST};
    slot *s = free_slot(w);
    rung_gemm g;
    rung_gemm_init(&g);
    *s = (slot){.c = s->c,
                .m = sizes[draw(4)],
                .n = sizes[draw(4)],
                .k = depths[draw(4)],
                .beta = draw(2) ? 0.0f : 0.5f,
                .used = 1};
    for (int64_t i = 0; i < EDGE * EDGE; i++)
        s->c[i] = s->beta == 0.0f ? NAN : 2.0f;
    g.layout = RUNG_ROW_MAJOR;
    g.m = s->m, g.n = s->n, g.k = s->k, g.beta = s->beta;
    g.a = w->a, g.lda = DEEPEST, g.b = w->b, g.ldb = EDGE, g.c = s->c, g.ldc = EDGE;
    s->failed = rung_gemm_run(context, &g) != RUNG_SUCCESS;
    if (s->failed && !w->injects)
        say_where(w, rung_last_error());
}

static void run_staged(walk *w, rung_context *context)
{
    w->host.gemm.beta = draw(2) ? 0.0f : -0.5f;
    product_reset(&w->host);
    rung_status status = rung_gemm_run(context, &w->host.gemm);
    if (status == RUNG_SUCCESS)
        product_check(&w->host, "host operands in a walk");
    else if (!w->injects)
        say_where(w, rung_last_error());
}

static void choose_stream(walk *w, int which)
{
    w->current[which] = draw(4) ? w->streams[draw(STREAMS)] : NULL;
    assert_ok(rung_context_set_stream(w->contexts[which], w->current[which]));
}

/* Destroys a stream, which may have work, once no context names it, and makes another one. */
static void renew_stream(walk *w)
{
    const int i = draw(STREAMS);
    for (int c = 0; c < CONTEXTS; c++)
        if (w->current[c] == w->streams[i]) {
            w->current[c] = NULL;
            assert_ok(rung_context_set_stream(w->contexts[c], NULL));
        }
    assert_int_equal(driver.destroy(w->streams[i]), 0);
    assert_int_equal(driver.create(&w->streams[i], 1, 0), 0);
}

static void renew_context(walk *w, int which)
{
    rung_context_destroy(w->contexts[which]);
    w->contexts[which] = new_context(AMPERE);
    w->current[which] = NULL;
}

static void step(walk *w)
{
    static const int64_t limits[] = {0, -1, 100000, 1 << 20};
    const int which = draw(CONTEXTS);
    rung_context *context = w->contexts[which];
    const int what = draw(16), fails = w->injects && what < 9 && !draw(3);
    if (what < 7 && draw(2)) /* buffers pass on among more streams than a context keeps some for */
        choose_stream(w, which);
    if (fails) {
        gpu->calls = 0;
        gpu->fail_call = 1 + draw(12);
        gpu->fail_result = draw(2) ? 719 : 2;
    }
    if (what < 7)
        run_queued(w, context);
    else if (what < 9)
        run_staged(w, context);
    gpu->fail_call = 0;
    if (what == 9 || what == 10)
        choose_stream(w, which);
    else if (what == 11)
        assert_ok(rung_context_set_workspace_limit(context, limits[draw(4)]));
    else if (what == 12)
        assert_ok(rung_context_synchronize(context));
    else if (what == 13)
        renew_context(w, which);
    else if (what == 14)
        renew_stream(w);
    else if (what == 15)
        assert_ok(rung_context_set_math(context, (rung_math)draw(3)));
}

static void walk_once(uint64_t seed)
{
    walk w = {.seed = seed, .injects = seed % 3 == 2};
    dice = seed * 0x9e3779b97f4a7c15u + 1;
    gpu->eager = (unsigned)draw(64);
    w.a = device_memory(EDGE * DEEPEST), w.b = device_memory(DEEPEST * EDGE);
    for (int i = 0; i < EDGE * DEEPEST; i++)
        w.a[i] = (float)(i % 7 - 3), w.b[i] = (float)(i % 5 - 2);
    for (int i = 0; i < SLOTS; i++)
        w.slots[i].c = device_memory(EDGE * EDGE);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(driver.create(&w.streams[i], 1, 0), 0);
    product_new(&w.host, draw(2), draw(2), draw(2), HOST_EDGE + draw(5), HOST_EDGE, HOST_EDGE - draw(9), draw(3), 1,
                seed);
    for (int i = 0; i < CONTEXTS; i++)
        w.contexts[i] = new_context(AMPERE);
    gpu->recording =
        seed % 2 && !w.injects; /* another thread's graph, which no call may end; the call that sees to that may fail */
    for (w.count = 0; w.count < STEPS; w.count++) {
        gpu->log[0] = 0;
        step(&w);
        if (gpu->faults || gpu->pushed || (gpu->relaxed && !w.injects))
            say_where(
                &w, "memory is used that is not there, a mode or a context was not put back, or a recording has ended");
    }
    for (int i = 0; i < CONTEXTS; i++) /* with all that they have queued */
        rung_context_destroy(w.contexts[i]);
    gpu->recording = 0;
    int global = 0; /* a call that failed may not have been able to put it back */
    assert_int_equal(driver.exchange(&global), 0);
    end_of_work(&w);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(driver.destroy(w.streams[i]), 0);
    product_free(&w.host);
    for (int i = 0; i < SLOTS; i++)
        free_device(w.slots[i].c);
    free_device(w.a);
    free_device(w.b);
    if (gpu->faults)
        say_where(&w, "memory is used that is not there");
    const int open = gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->graphs;
    if (open && !w.injects)
        say_where(&w, "something is still open");
    gpu->memory = gpu->pinned = gpu->streams = gpu->events = gpu->graphs = 0; /* who could not be given back stays */
}

static void walks_end_well(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < WALKS; seed++)
        if (!only_seed || seed == only_seed)
            walk_once(seed);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    setenv("RUNG_LIBCUDA", arguments[1], 1);
    stand_in = dlopen(arguments[1], RTLD_NOW);
    only_seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    fake_state_function *state;
    *(void **)&state = stand_in ? dlsym(stand_in, "fake_state") : NULL;
    if (!state)
        return 2;
    gpu = state();
    *(void **)&driver.alloc = symbol("cuMemAlloc_v2");
    *(void **)&driver.release = symbol("cuMemFree_v2");
    *(void **)&driver.synchronize = symbol("cuCtxSynchronize");
    *(void **)&driver.create = symbol("cuStreamCreateWithPriority");
    *(void **)&driver.destroy = symbol("cuStreamDestroy_v2");
    *(void **)&driver.exchange = symbol("cuThreadExchangeStreamCaptureMode");
    gpu->devices = 2;
    if (only_seed)
        cmocka_set_test_filter("walks_*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_of_their_gpu),
        cmocka_unit_test(history_does_not_show),
        cmocka_unit_test(an_alpha_of_zero_is_planned_anew),
        cmocka_unit_test(walks_end_well),
        cmocka_unit_test(memory_that_runs_out_scales_c_once), /* a call that fails may leave a stream open */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
