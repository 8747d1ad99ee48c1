/* The CUDA backend's host side against a stand-in for libcuda: discovery and its failures, launches, staging of host
 * operands, mixed pointers, capture, and every driver call failing once. Runs without a GPU. */
#include "../support.h"
#include "core/wrote.h"
#include "fake_libcuda.h"
#include "rung_catalog.h"
#include "rung_tools.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *stand_in, *old_stand_in;
static fake *gpu;

static fake *open_fake(const char *path)
{
    setenv("RUNG_LIBCUDA", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    fake_state_function *state;
    *(void **)&state = library ? dlsym(library, "fake_state") : NULL;
    return state ? state() : NULL;
}

static rung_status open_context(int device, rung_context **context)
{
    rung_config config;
    rung_config_init(&config);
    config.device = device;
    return rung_context_create(context, &config);
}

static void *stream_of(int device)
{
    void *driver = dlopen(stand_in, RTLD_NOW), *stream, *popped;
    int (*push)(void *), (*pop)(void **), (*create)(void **, unsigned, int);
    *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
    *(void **)&create = dlsym(driver, "cuStreamCreateWithPriority");
    push((void *)(uintptr_t)(device + 1));
    assert_int_equal(create(&stream, 1, 0), 0);
    pop(&popped);
    return stream;
}

/* Discovery happens once a process: each case has a process of its own. Returns 0, or says on stderr what differs. */
static int discover(rung_status wanted, const char *words)
{
    rung_context *context;
    rung_status status = open_context(0, &context);
    if (status != wanted || !strstr(rung_last_error(), words)) {
        fprintf(stderr, "%s: '%s' (wanted %s, '%s')\n", rung_status_name(status), rung_last_error(),
                rung_status_name(wanted), words);
        return 1;
    }
    if (open_context(RUNG_DEVICE_BEST, &context) != RUNG_SUCCESS || rung_context_device(context) != RUNG_DEVICE_CPU) {
        fprintf(stderr, "the best device is not the CPU\n");
        return 1;
    }
    rung_context_destroy(context);
    return 0;
}

typedef struct discovery {
    int kind;
    rung_status status;
    const char *words;
} discovery;

enum { NO_LIBRARY, OLD_DRIVER, NO_START, NO_GPU, OLD_GPU, NO_CONTEXT, NO_POOL };

static const discovery discoveries[] = {
    {NO_LIBRARY, RUNG_NO_DEVICE, "no NVIDIA driver"},
    {OLD_DRIVER, RUNG_NO_DEVICE,
     "the NVIDIA driver is too old: it has no cuLibraryLoadData (Rung needs CUDA 12 or later)"},
    {NO_START, RUNG_NO_DEVICE, "the NVIDIA driver does not start: cuInit returned CUDA_ERROR_NO_DEVICE"},
    {NO_GPU, RUNG_NO_DEVICE, "the NVIDIA driver sees no GPU"},
    {OLD_GPU, RUNG_NO_DEVICE, "has compute capability 7.0: Rung needs 8.0 (Ampere) or later, its first rungs 7.5"},
    {NO_CONTEXT, RUNG_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {NO_POOL, RUNG_DEVICE_ERROR, "CUDA_ERROR_LAUNCH_FAILED"},
};

static int discovery_child(const discovery *d)
{
    if (d->kind == NO_LIBRARY) {
        setenv("RUNG_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
        return discover(d->status, d->words);
    }
    fake *f = open_fake(d->kind == OLD_DRIVER ? old_stand_in : stand_in);
    f->init_result = d->kind == NO_START ? 100 : 0;
    f->devices = d->kind == NO_GPU ? 0 : 1;
    f->arch = d->kind == OLD_GPU ? 70 : 80;
    f->fail_name = d->kind == NO_CONTEXT ? "cuDevicePrimaryCtxRetain"
                   : d->kind == NO_POOL  ? "cuMemPoolSetAttribute"
                                         : NULL;
    f->fail_result = d->kind == NO_CONTEXT ? 2 : 719;
    if (discover(d->status, d->words))
        return 1;
    if (f->pools || f->memory || f->primaries) {
        fprintf(stderr, "%d pools, %d blocks of memory and %d primary contexts are left\n", f->pools, f->memory,
                f->primaries);
        return 1;
    }
    rung_context *context;
    f->fail_name = NULL; /* the next try, once the cause is gone, beside another thread's recording */
    f->recording = 1;
    if (d->kind >= NO_CONTEXT && open_context(0, &context) != RUNG_SUCCESS) {
        fprintf(stderr, "does not recover: %s\n", rung_last_error());
        return 1;
    }
    if (f->faults || f->relaxed) {
        fprintf(stderr, "%d calls end a recording; %d capture modes are not put back\n", f->faults, f->relaxed);
        return 1;
    }
    return 0;
}

static void discovery_failures_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof discoveries / sizeof discoveries[0]; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(discovery_child(&discoveries[i]));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("discovery case '%s'", discoveries[i].words);
    }
}

/* What a chip runs: Hopper's kernels on Hopper alone, others on their chip and all later ones; the first rungs on
 * Turing, where they are asked for: the library does not take such a GPU by itself. What is planned is found in the
 * chip's module. Launches overlap on Hopper, with a driver that can record that. */
static int chip_child(int arch, int driver_version)
{
    static const int64_t sizes[][3] = {
        {128, 128, 128}, {1000, 1000, 1000}, {1, 4096, 4096}, {40, 40, 40}, {4096, 4096, 512}};
    rung_context *context;
    fake *f = open_fake(stand_in);
    int overlapped = 0;
    f->arch = arch, f->driver_version = driver_version, f->idle = 1;
    if (open_context(RUNG_DEVICE_BEST, &context) != RUNG_SUCCESS ||
        rung_context_device(context) != (arch == 75 ? RUNG_DEVICE_CPU : 0)) {
        fprintf(stderr, "the best device is %s: %s\n", arch == 75 ? "a GPU of 7.5" : "not the GPU", rung_last_error());
        return 1;
    }
    rung_context_destroy(context);
    if (open_context(0, &context) != RUNG_SUCCESS) {
        fprintf(stderr, "it cannot be asked for: %s\n", rung_last_error());
        return 1;
    }
    int wrong = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        const char *why = rung_kernel_unusable(context, k);
        if (k->backend == RUNG_BACKEND_CUDA ? (why == NULL) != (k->arch == 90 ? arch == 90 : k->arch <= arch)
                                            : !why || strcmp(why, "a CPU kernel") != 0)
            fprintf(stderr, "%s: %s\n", k->name, why ? why : "may be used"), wrong++;
    }
    rung_context_set_pointers(context, RUNG_POINTERS_DEVICE);
    for (size_t i = 0; i < 3 * sizeof sizes / sizeof sizes[0] && arch != 75; i++) {
        rung_gemm g;
        rung_gemm_init(&g);
        g.m = g.lda = g.ldc = sizes[i / 3][0], g.n = sizes[i / 3][1], g.k = g.ldb = sizes[i / 3][2];
        g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
        rung_context_set_math(context, (rung_math)(i % 3));
        if (rung_gemm_run(context, &g) != RUNG_SUCCESS ||
            (rung_kernel_find(rung_last_kernel(context))->arch == 90 && arch != 90))
            fprintf(stderr, "%lld x %lld x %lld by %s: %s\n", (long long)g.m, (long long)g.n, (long long)g.k,
                    rung_last_kernel(context), rung_last_error()),
                wrong++;
        overlapped |= f->overlapped;
    }
    if (overlapped != (arch == 90 && driver_version >= 12030))
        fprintf(stderr, "launches %s\n", overlapped ? "overlap" : "wait for each other"), wrong++;
    rung_context_destroy(context);
    return wrong != 0;
}

static void chips_have_their_kernels(void **state)
{
    (void)state;
    static const int chips[][2] = {{75, 13000}, {80, 13000}, {86, 13000},  {89, 12030},  {90, 12000},  {90, 12029},
                                   {90, 12030}, {90, 13000}, {100, 13000}, {103, 13000}, {120, 13000}, {121, 13000}};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(chip_child(chips[i][0], chips[i][1]));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("a GPU of compute capability %d.%d with a driver of version %d", chips[i][0] / 10,
                     chips[i][0] % 10, chips[i][1]);
    }
}

static void empty_log(void)
{
    gpu->log[0] = 0;
    gpu->calls = gpu->fail_call = 0;
    gpu->fail_name = NULL;
}

static int open_gpu(void **state)
{
    (void)state;
    gpu = open_fake(stand_in);
    assert_non_null(gpu);
    gpu->devices = 2;
    return 0;
}

static void devices_are_numbered(void **state)
{
    (void)state;
    rung_context *context;
    for (int i = 0; i < 2; i++) {
        assert_ok(open_context(i, &context));
        assert_int_equal(rung_context_device(context), i);
        rung_context_destroy(context);
    }
    assert_int_equal(open_context(2, &context), RUNG_NO_DEVICE);
    assert_non_null(strstr(rung_last_error(), "GPU 2 was asked for, this machine has 2"));
    assert_int_equal(open_context(1000, &context), RUNG_NO_DEVICE);
    assert_string_equal(rung_last_error(), "GPU 1000 was asked for: numbers go from 0 to 63");
    assert_int_equal(gpu->pushed, 0);
}

/* Finds a ladder rung that takes rung_args and has one block a tile: the stand-in can compute such ones. */
static const char rung[] = "l02_coalesced";

static rung_status run_kernel(rung_context *context, const rung_gemm *gemm, const char *kernel)
{
    rung_plan *plan;
    rung_status status = rung_plan_create_kernel(&plan, context, gemm, kernel);
    if (status == RUNG_SUCCESS)
        status = rung_plan_run(plan, gemm);
    rung_plan_destroy(plan);
    return status;
}

/* The first production kernel of such arithmetic that takes all operands, has stages, runs on the architecture, and
 * whose threads have results of their own, so that k may be short. */
static const char *tile_with(rung_arith arith, int arch)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (k->backend == RUNG_BACKEND_CUDA && k->role == RUNG_PRODUCTION && k->arith == arith && k->arch <= arch &&
            (k->accepts & RUNG_ACCEPTS_ALL) == RUNG_ACCEPTS_ALL && k->stages > 1 &&
            (!k->tm || k->threads == k->bm / k->tm * (k->bn / k->tn)))
            return k->name;
    }
    fail_msg("no production kernel for architecture %d takes all operands", arch);
    return NULL;
}

static rung_status run_rung(rung_context *context, const rung_gemm *gemm)
{
    return run_kernel(context, gemm, rung);
}

/* Allocates memory of the stand-in's device, through its own cuMemAlloc. */
static void *device_memory(int device, size_t bytes)
{
    typedef int push_function(void *), pop_function(void **), alloc_function(unsigned long long *, size_t);
    push_function *push;
    pop_function *pop;
    alloc_function *alloc;
    void *library = dlopen(stand_in, RTLD_NOW), *popped;
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
    unsigned long long at;
    push((void *)(uintptr_t)(device + 1));
    assert_int_equal(alloc(&at, bytes), 0);
    pop(&popped);
    return (void *)(uintptr_t)at;
}

static void free_device(void *memory)
{
    int (*release)(unsigned long long);
    *(void **)&release = dlsym(dlopen(stand_in, RTLD_NOW), "cuMemFree_v2");
    assert_int_equal(release((unsigned long long)(uintptr_t)memory), 0);
}

static void device_operands_are_launched_on_the_stream(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 70, 33, 40, 0, 1, 1);
    product_reset(&p);
    rung_gemm g = p.gemm;
    float *a = device_memory(0, p.count_a * 4), *b = device_memory(0, p.count_b * 4),
          *c = device_memory(0, p.count_c * 4);
    memcpy(a, g.a, p.count_a * 4);
    memcpy(b, g.b, p.count_b * 4);
    g.a = a, g.b = b, g.c = c;
    empty_log();
    assert_ok(run_rung(context, &g));
    assert_string_equal(gpu->kernel, rung);
    assert_null(gpu->stream);
    const rung_kernel *row = rung_kernel_find(rung);
    assert_int_equal(gpu->threads, row->threads);
    assert_int_equal(gpu->grid[0], (33 + row->bn - 1) / row->bn);
    assert_int_equal(gpu->grid[1], (70 + row->bm - 1) / row->bm);
    assert_null(strstr(gpu->log, "Synchronize")); /* queued, not waited for */
    assert_null(strstr(gpu->log, "cuMemAlloc"));
    assert_true(isnan(c[0])); /* the stand-in has not run it yet */
    assert_ok(rung_context_synchronize(context));
    memcpy(p.gemm.c, c, p.count_c * 4);
    product_check(&p, "device operands");
    rung_context_destroy(context);
    free_device(a);
    free_device(b);
    free_device(c);
    product_free(&p);
    assert_int_equal(gpu->memory, 0);
    assert_int_equal(gpu->pushed, 0);
}

static void travel(const char *kernel, int form, int64_t m, int64_t n, int64_t k)
{
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    product_new(&p, form & 1, form >> 4 & 1, form >> 5 & 1, m, n, k, form & 2 ? 5 : 0, 1, (uint64_t)form);
    p.gemm.beta = form & 4 ? 0.0f : -0.5f;
    p.gemm.alpha = form & 8 ? 1.0f : 0.25f;
    for (int round = 0; round < 2; round++) {
        product_reset(&p);
        assert_ok(run_kernel(context, &p.gemm, kernel));
        product_check(&p, "host operands");
    }
    product_free(&p);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults, 0);
}

/* Multiplies under every mixture of streams that hurry and streams that dawdle: whatever was not ordered comes out
 * wrong. */
static void host_operands_travel(void **state)
{
    (void)state;
    for (gpu->eager = 0; gpu->eager < 8; gpu->eager++) {
        for (int form = 0; form < 16; form++)
            travel(rung, form, form % 3 ? 45 : 600, form % 5 ? 61 : 300, 37);
        travel(rung, 2, 4200, 2, 2500); /* more pieces than the ring has slots */
        travel(rung, 3, 2, 4200, 2500);
        travel(rung, 5, 4200, 2500, 2);
    }
    /* Lines of any length, of every orientation: one size alone is no multiple of 4. */
    for (int form = 0; form < 64; form += form % 16 < 2 ? 1 : 14)
        for (int odd = 0; odd < 3; odd++)
            travel(tile_with(RUNG_F32, 80), form, odd == 0 ? 45 : 44, odd == 1 ? 61 : 60, odd == 2 ? 37 : 36);
    gpu->eager = 0;
    assert_int_equal(gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->pushed, 0);
}

/* Allocates pinned memory of the host, or frees it where there is some. */
static void *pinned(void *old, size_t bytes)
{
    void *driver = dlopen(stand_in, RTLD_NOW), *popped, *memory = NULL;
    int (*push)(void *), (*pop)(void **), (*allocate)(void **, size_t, unsigned), (*release)(void *);
    *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
    *(void **)&allocate = dlsym(driver, "cuMemHostAlloc");
    *(void **)&release = dlsym(driver, "cuMemFreeHost");
    push((void *)(uintptr_t)1);
    assert_int_equal(old ? release(old) : allocate(&memory, bytes, 1), 0);
    pop(&popped);
    return memory;
}

/* Pinned operands need no ring of buffers: copies read and write them where they lie. Any of the three may be pinned.
 */
static void pinned_operands_travel_directly(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int form = 0; form < 32; form++)
        for (int which = 1; which < 8; which++) {
            product p;
            gpu->eager = form & 7;
            product_new(&p, form & 1, form >> 2 & 1, form >> 3 & 1, 45, 61, 37, form >> 4 ? 3 : 0, 1, (uint64_t)form);
            p.gemm.beta = form & 2 ? 0.0f : -0.5f;
            product_reset(&p);
            rung_gemm g = p.gemm;
            float *a = which & 1 ? pinned(NULL, p.count_a * 4) : NULL,
                  *b = which & 2 ? pinned(NULL, p.count_b * 4) : NULL,
                  *c = which & 4 ? pinned(NULL, p.count_c * 4) : NULL;
            if (a)
                g.a = memcpy(a, g.a, p.count_a * 4);
            if (b)
                g.b = memcpy(b, g.b, p.count_b * 4);
            if (c)
                g.c = memcpy(c, g.c, p.count_c * 4);
            empty_log();
            assert_ok(run_kernel(context, &g, tile_with(RUNG_F32, 80)));
            if (c)
                memcpy(p.gemm.c, c, p.count_c * 4);
            product_check(&p, "pinned operands");
            for (int i = 0; i < 3; i++) {
                float *const all[] = {a, b, c};
                if (all[i])
                    pinned(all[i], 0);
            }
            product_free(&p);
        }
    rung_context_destroy(context);
    gpu->eager = 0;
    assert_int_equal(gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->pushed + gpu->faults, 0);
}

/* Whatever call of the driver fails, the program has its memory back with the answer: of what was queued nothing writes
 * there any more. */
static void what_has_failed_leaves_operands_alone(void **state)
{
    (void)state;
    const char *kernel = tile_with(RUNG_F32, 80);
    int failed = 0;
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int form = 0; form < 8; form++) { /* which streams work at once; pinned, or as the program has it */
        product p;
        product_new(&p, RUNG_COL_MAJOR, 0, 0, 45, 61, 37, form & 1 ? 3 : 0, 1, 5);
        const size_t counts[] = {p.count_a, p.count_b, p.count_c};
        float *at[3], *seen = malloc(p.count_c * sizeof(float));
        rung_gemm g = p.gemm;
        g.beta = -0.5f;
        for (int i = 0; i < 3; i++)
            at[i] = form < 4 ? pinned(NULL, counts[i] * sizeof(float)) : malloc(counts[i] * sizeof(float));
        g.a = at[0], g.b = at[1], g.c = at[2];
        gpu->eager = form & 2 ? 5 : 0;
        for (long call = 0, calls = 1; call <= calls; call++) {
            product_reset(&p);
            memcpy(at[0], p.gemm.a, p.count_a * sizeof(float));
            memcpy(at[1], p.gemm.b, p.count_b * sizeof(float));
            memcpy(at[2], p.gemm.c, p.count_c * sizeof(float));
            empty_log();
            gpu->fail_call = call; /* none at first */
            gpu->fail_result = 719;
            const rung_status status = run_kernel(context, &g, kernel);
            calls = call ? calls : gpu->calls;
            gpu->fail_call = 0;
            memcpy(seen, at[2], p.count_c * sizeof(float));
            pinned(pinned(NULL, 64), 0); /* which lets all that is queued run */
            if (memcmp(seen, at[2], p.count_c * sizeof(float)) != 0)
                fail_msg("form %d, call %ld of %ld failing: C is written after the answer '%s'", form, call, calls,
                         rung_status_name(status));
            failed += status != RUNG_SUCCESS;
        }
        for (int i = 0; i < 3; i++)
            form < 4 ? (void)pinned(at[i], 0) : free(at[i]);
        free(seen);
        product_free(&p);
    }
    assert_true(failed > 50);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults, 0);
    gpu->eager = gpu->relaxed = 0; /* a driver that fails keeps its mode, and what it was to take back */
    gpu->memory = gpu->pinned = gpu->streams = gpu->events = gpu->pushed = 0;
    empty_log();
}

/* Several panels, the last one smaller, of every orientation; and of a batch, whose entries have a B each or share it.
 */
static void panels_travel(void **state)
{
    (void)state;
    const char *kernel = tile_with(RUNG_F32, 80);
    enum { ROWS = 33000, COLUMNS = 160, ENTRIES = 1100, EDGE = 64, STEPS = 5 };
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int form = 0; form < 6; form++) {
        product p;
        int batched = form >= 4;
        product_new(&p, RUNG_ROW_MAJOR, form & 1, form >> 1 & 1, batched ? EDGE : ROWS, batched ? EDGE : COLUMNS, STEPS,
                    form % 3, batched ? ENTRIES : 1, (uint64_t)form + 7);
        if (form == 5)
            p.gemm.stride_b = 0;
        p.gemm.beta = form % 2 ? 0.5f : 0.0f;
        product_reset(&p);
        assert_ok(run_kernel(context, &p.gemm, kernel));
        product_check(&p, "a product in panels");
        product_free(&p);
    }
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* A line that is longer than a buffer of the ring goes in several pieces, of each operand and back. */
static void long_lines_travel(void **state)
{
    (void)state;
    enum { LONG = (2 << 20) + 5 };
    static const int64_t sizes[][3] = {{2, 2, LONG}, {2, LONG, 1}, {LONG, 1, 2}};
    const char *kernel = tile_with(RUNG_F32, 80);
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int i = 0; i < 6; i++) {
        const int64_t *s = sizes[i % 3];
        product p;
        product_new(&p, RUNG_ROW_MAJOR, i == 2, i > 2, s[0], s[1], s[2], 1, 1, (uint64_t)i + 3);
        p.gemm.beta = 0.5f;
        product_reset(&p);
        assert_ok(run_kernel(context, &p.gemm, kernel));
        product_check(&p, "lines longer than a buffer");
        product_free(&p);
    }
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* The product's parts meet in workspace while its operands lie in workspace, too. */
static void staged_operands_and_parts_lie_apart(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int time = 0; time < 2; time++) {
        product p;
        product_new(&p, RUNG_ROW_MAJOR, 0, 0, 50, 60, 4096, 0, 1, 3);
        product_reset(&p);
        gpu->workspace_bytes = 0;
        assert_ok(run_kernel(context, &p.gemm, tile_with(RUNG_F32, 80)));
        product_check(&p, "operands from the host, k in parts");
        assert_true(gpu->workspace_bytes > 0);
        product_free(&p);
    }
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

static void mixed_operands_are_refused(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 8, 8, 8, 0, 1, 1);
    product_reset(&p);
    rung_gemm g = p.gemm;
    void *here = device_memory(0, 256), *elsewhere = device_memory(1, 256);
    g.a = here;
    assert_int_equal(run_rung(context, &g), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "operand a"));
    assert_non_null(strstr(rung_last_error(), "host memory"));
    g.a = elsewhere;
    assert_int_equal(run_rung(context, &g), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), " lies on another GPU than the context's GPU 0"));
    assert_memory_equal(p.gemm.c, p.before, p.count_c * 4);
    /* Where nothing is multiplied nobody looks where A and B are. */
    const float *const places[] = {here, elsewhere, p.gemm.a, (float *)4096};
    for (int i = 0; i < 32; i++) {
        product_reset(&p);
        g = p.gemm;
        g.k = i & 16 ? 0 : g.k, g.alpha = i & 16 ? 1.0f : 0.0f;
        g.a = places[i & 3], g.b = places[i >> 2 & 3];
        g.beta = 0.0f;
        assert_ok(run_rung(context, &g));
        for (int64_t j = 0; j < 8; j++)
            assert_true(g.c[j] == 0.0f);
    }
    free_device(here);
    free_device(elsewhere);
    product_free(&p);
    rung_context_destroy(context);
    assert_int_equal(gpu->pushed, 0);
}

/* What only kernels read must be there for them: a kernel that reads host memory ends the program's work on the GPU. */
static void what_kernels_read_is_on_their_gpu(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *here[4], *elsewhere = device_memory(1, 256), on_host[64] = {0};
    for (int i = 0; i < 4; i++)
        here[i] = device_memory(0, 256);
    for (int which = 0; which < 3; which++)
        for (int where = 0; where < 3; where++) {
            rung_gemm g;
            rung_gemm_init(&g);
            g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 8;
            g.a = here[0], g.b = here[1], g.c = here[2];
            const float *at = where == 0 ? here[3] : where == 1 ? on_host : elsewhere;
            g.bias_kind = which == 0 ? RUNG_BIAS_PER_COLUMN : RUNG_NO_BIAS;
            g.bias = which == 0 ? at : NULL;
            g.alpha_device = which == 1 ? at : NULL;
            g.beta_device = which == 2 ? at : NULL;
            static const char *const names[] = {"bias (", "alpha_device (", "beta_device ("};
            if (where == 0) {
                assert_ok(rung_gemm_run(context, &g));
                continue;
            }
            empty_log();
            assert_int_equal(rung_gemm_run(context, &g), RUNG_INVALID_ARGUMENT);
            assert_ptr_equal(strstr(rung_last_error(), names[which]), rung_last_error());
            assert_non_null(strstr(rung_last_error(), where == 1 ? ") is host memory, the operands lie on GPU 0"
                                                                 : ") is another GPU's memory, the operands"));
            assert_null(strstr(gpu->log, "cuLaunchKernelEx"));
            assert_ok(rung_context_set_pointers(context, RUNG_POINTERS_DEVICE)); /* who says so is not asked */
            assert_ok(rung_gemm_run(context, &g));
            assert_ok(rung_context_set_pointers(context, RUNG_POINTERS_AUTO));
        }
    assert_ok(rung_context_synchronize(context));
    rung_context_destroy(context);
    for (int i = 0; i < 4; i++)
        free_device(here[i]);
    free_device(elsewhere);
    assert_int_equal(gpu->pushed, 0);
}

static void kernels_of_newer_chips_are_refused(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        const char *why = rung_kernel_unusable(context, k);
        if (k->backend == RUNG_BACKEND_CPU || k->arch == 90)
            assert_non_null(why);
        else
            assert_null(why);
        if (k->backend == RUNG_BACKEND_CUDA && k->arch == 90)
            assert_string_equal(why, "needs a Hopper GPU (compute capability 9.0)");
    }
    rung_context_destroy(context);
}

static rung_context *open_idle_hopper(float *memory[3], size_t floats);
static void close_idle_hopper(rung_context *context, float *memory[3]);

/* What lies out of the copy engine's reach is refused by the plan, or copied first: no launch fails of it. */
static void no_launch_is_out_of_the_copy_engines_reach(void **state)
{
    (void)state;
    static const int64_t reach = ((int64_t)1 << 38) - 4;
    enum { SIZE = 256, CASES = 5 };
    int refused = 0, taken[CASES] = {0};
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, SIZE * SIZE * 2);
    for (int i = 0; i < rung_kernel_count(); i++)
        for (int wrong = 0; wrong < CASES && rung_kernel_at(i)->role == RUNG_PRODUCTION &&
                            rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA;
             wrong++) {
            rung_gemm g;
            rung_gemm_init(&g);
            g.layout = RUNG_ROW_MAJOR;
            g.m = g.n = g.k = g.lda = g.ldb = g.ldc = SIZE;
            g.batch = 2, g.stride_a = g.stride_b = g.stride_c = SIZE * SIZE;
            *(int64_t *[]){&g.lda, &g.ldb, &g.stride_a, &g.stride_b, &g.stride_c}[wrong] = reach + 4;
            g.a = memory[0], g.b = memory[1], g.c = memory[2];
            const rung_status status = run_kernel(context, &g, rung_kernel_at(i)->name);
            const char *said = status == RUNG_SUCCESS ? "" : rung_last_error();
            if (status != RUNG_SUCCESS && !strstr(said, "cannot run this product"))
                fail_msg("%s, case %d: %s", rung_kernel_at(i)->name, wrong, said);
            refused += strstr(said, "results lie farther apart than the copy engine reaches") != NULL;
            taken[wrong] += status == RUNG_SUCCESS && strstr(gpu->launched, "row_copy");
            gpu->launched[0] = 0;
        }
    for (int wrong = 0; wrong < CASES - 1; wrong++)
        assert_true(taken[wrong] > 0);
    assert_true(refused > 0);
    close_idle_hopper(context, memory);
}

static void out_of_device_memory_is_said(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 50, 50, 50, 0, 1, 1);
    product_reset(&p);
    int64_t left = gpu->memory_left;
    gpu->memory_left = 1000;
    assert_int_equal(run_rung(context, &p.gemm), RUNG_OUT_OF_MEMORY);
    gpu->memory_left = left;
    assert_memory_equal(p.gemm.c, p.before, p.count_c * 4);
    assert_ok(run_rung(context, &p.gemm));
    product_check(&p, "after memory came back");
    product_free(&p);
    rung_context_destroy(context);
    assert_int_equal(gpu->memory, 0);
}

enum { DEEP = 4096, WIDEST = 256 };

/* Runs a product whose k is cut into parts, which meet in workspace, and returns the bytes of that. */
static rung_gemm deep(const float *a, const float *b, float *c, int64_t size)
{
    rung_gemm g;
    rung_gemm_init(&g);
    g.m = g.n = g.ldb = g.ldc = size, g.k = g.lda = DEEP;
    g.layout = RUNG_ROW_MAJOR;
    g.a = a, g.b = b, g.c = c;
    return g;
}

static int64_t run_deep(rung_context *context, float *a, float *b, float *c, int64_t size)
{
    rung_plan *plan;
    const rung_gemm g = deep(a, b, c, size);
    assert_ok(rung_plan_create(&plan, context, &g));
    int64_t bytes = rung_plan_workspace_bytes(plan);
    assert_ok(rung_plan_run(plan, &g));
    rung_plan_destroy(plan);
    return bytes;
}

/* Another thread's stream may be recording a graph: waiting for the GPU, or freeing at once, would end that. */
static void assert_nothing_waited(void)
{
    assert_null(strstr(gpu->log, "Synchronize"));
    assert_null(strstr(gpu->log, "cuMemAlloc_v2"));
    assert_null(strstr(gpu->log, "cuMemFree_v2"));
}

/* Longer products need more workspace than the ones before, which have not run yet. */
static void workspace_grows_under_queued_work(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, WIDEST * DEEP * 4), *b = device_memory(0, WIDEST * DEEP * 4),
          *c = device_memory(0, WIDEST * WIDEST * 4);
    int64_t most = 0;
    gpu->eager = 0;
    empty_log();
    for (int64_t size = 16; size <= WIDEST; size *= 4) {
        int64_t bytes = run_deep(context, a, b, c, size);
        most = bytes > most ? bytes : most;
    }
    assert_true(most > 1 << 20); /* more than the first buffer has */
    assert_nothing_waited();
    assert_ok(rung_context_synchronize(context));
    assert_true(gpu->workspace_bytes >= most);
    assert_int_equal(gpu->faults, 0);
    rung_context_destroy(context);
    free_device(a);
    free_device(b);
    free_device(c);
}

/* A buffer that was given back and could not be had again, larger, is not given back once more. */
static void workspace_survives_failed_growth(void **state)
{
    (void)state;
    rung_context *context;
    rung_plan *plan;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, WIDEST * DEEP * 4), *b = device_memory(0, WIDEST * DEEP * 4),
          *c = device_memory(0, WIDEST * WIDEST * 4);
    int64_t small = run_deep(context, a, b, c, 16), left = gpu->memory_left;
    rung_gemm g;
    rung_gemm_init(&g);
    g.m = g.n = g.ldb = g.ldc = WIDEST, g.k = g.lda = DEEP;
    g.layout = RUNG_ROW_MAJOR;
    g.a = a, g.b = b, g.c = c;
    assert_ok(rung_plan_create(&plan, context, &g));
    assert_true(rung_plan_workspace_bytes(plan) > small);
    for (int time = 0; time < 2; time++) {
        gpu->memory_left = 1000;
        rung_status status = rung_plan_run(plan, &g); /* another kernel may do without */
        gpu->memory_left = left;
        assert_true(status == RUNG_SUCCESS || status == RUNG_OUT_OF_MEMORY);
        assert_ok(rung_context_synchronize(context));
        assert_int_equal(gpu->faults, 0);
    }
    assert_ok(rung_plan_run(plan, &g));
    assert_ok(rung_context_synchronize(context));
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    free_device(a);
    free_device(b);
    free_device(c);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* More streams than a context keeps buffers for, in turn, some of them gone by the time their buffer passes on. */
static void workspace_passes_between_streams(void **state)
{
    (void)state;
    enum { STREAMS = 7 };
    int (*create)(void **, unsigned, int), (*destroy)(void *);
    *(void **)&create = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamCreateWithPriority");
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, 64 * DEEP * 4), *b = device_memory(0, 64 * DEEP * 4), *c[STREAMS];
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        c[i] = device_memory(0, 64 * 64 * 4);
    gpu->eager = 0;
    gpu->recording = 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < STREAMS; i++)
            assert_int_equal(create(&streams[i], 1, 0), 0);
        empty_log();
        for (int turn = 0; turn < 2 * STREAMS; turn++) {
            int i = turn * 3 % STREAMS;
            assert_ok(rung_context_set_stream(context, streams[i]));
            assert_true(run_deep(context, a, b, c[i], turn % 2 ? 64 : 16) > 0);
        }
        assert_nothing_waited();
        assert_ok(rung_context_set_stream(context, NULL));
        for (int i = 0; i < STREAMS; i++)
            assert_int_equal(destroy(streams[i]), 0);
    }
    rung_context_destroy(context);
    assert_int_equal(gpu->faults, 0);
    gpu->recording = 0;
    assert_int_equal(gpu->events, 0);
    free_device(a);
    free_device(b);
    for (int i = 0; i < STREAMS; i++)
        free_device(c[i]);
    assert_int_equal(gpu->faults, 0);
    assert_int_equal(gpu->memory, 0);
}

/* One product needs more than a buffer may have, on a stream that has none: no other stream loses its own. */
static void a_large_workspace_takes_no_buffer(void **state)
{
    (void)state;
    enum { STREAMS = 5, LARGE = 8192, SMALL = 64 };
    int (*destroy)(void *);
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    rung_context *context;
    rung_plan *plan;
    rung_gemm g;
    void *streams[STREAMS];
    float *memory[3];
    gpu->devices = 3;
    gpu->arch = 90;
    gpu->eager = 0;
    gpu->idle = 1; /* nobody touches most of this memory */
    for (int i = 0; i < 3; i++)
        memory[i] = device_memory(2, (size_t)LARGE * LARGE * 4);
    gpu->idle = 0;
    for (int i = 0; i < SMALL * DEEP; i++)
        memory[0][i] = memory[1][i] = 1.0f;
    assert_ok(open_context(2, &context));
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.ldb = g.ldc = SMALL, g.k = g.lda = DEEP;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_ok(rung_plan_create_kernel(&plan, context, &g, tile_with(RUNG_F32, 90)));
    assert_true(rung_plan_workspace_bytes(plan) > 0);
    for (int turn = 0; turn < 2 * STREAMS; turn++) {
        int i = turn % STREAMS;
        streams[i] = turn < STREAMS ? stream_of(2) : streams[i];
        g.c = memory[2] + i * SMALL * SMALL;
        assert_ok(rung_context_set_stream(context, streams[i]));
        assert_ok(rung_plan_run(plan, &g));
    }
    rung_plan_destroy(plan);
    void *last = stream_of(2);
    assert_ok(rung_context_set_stream(context, last));
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = LARGE;
    g.c = memory[2];
    gpu->idle = 1;
    gpu->most_pooled = 0;
    assert_ok(rung_plan_create_kernel(&plan, context, &g, tile_with(RUNG_F16X3, 90)));
    assert_ok(rung_plan_run(plan, &g));
    assert_true(gpu->most_pooled > 160 << 20);
    rung_plan_destroy(plan);
    assert_ok(rung_context_synchronize(context)); /* of the last stream alone: the others may still wait */
    gpu->idle = 0;
    assert_ok(rung_context_set_stream(context, NULL));
    rung_context_destroy(context);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(destroy(streams[i]), 0);
    assert_int_equal(destroy(last), 0);
    assert_int_equal(gpu->faults, 0);
    for (int i = 0; i < 3; i++)
        free_device(memory[i]);
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

/* Makes a product and returns it with operands on GPU 0. */
static rung_gemm on_device(product *p)
{
    product_new(p, RUNG_COL_MAJOR, 0, 0, 40, 30, 20, 1, 1, 1);
    rung_gemm g = p->gemm;
    g.a = device_memory(0, 64 * DEEP * 4), g.b = device_memory(0, 64 * DEEP * 4), g.c = device_memory(0, 64 * 64 * 4);
    return g;
}

static void free_on_device(product *p, const rung_gemm *g)
{
    product_free(p);
    free_device((void *)(uintptr_t)g->a);
    free_device((void *)(uintptr_t)g->b);
    free_device(g->c);
}

/* Its launches would fail one by one: nothing is launched, and the context works on with a stream of its own GPU. */
static void streams_of_another_gpu_are_refused(void **state)
{
    (void)state;
    void *here = stream_of(0), *elsewhere = stream_of(1);
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    rung_gemm g = on_device(&p);
    for (int on_host = 0; on_host < 2; on_host++) {
        assert_ok(rung_context_set_stream(context, elsewhere));
        empty_log();
        for (int time = 0; time < 2; time++) { /* what is refused once is refused again */
            assert_int_equal(run_rung(context, on_host ? &p.gemm : &g), RUNG_INVALID_ARGUMENT);
            assert_non_null(strstr(rung_last_error(), ") is one of GPU 1, the context's GPU is 0"));
        }
        assert_null(strstr(gpu->log, "cuLaunchKernelEx"));
        assert_ok(rung_context_set_stream(context, here));
        assert_ok(run_rung(context, on_host ? &p.gemm : &g));
    }
    assert_ok(rung_context_synchronize(context));
    assert_int_equal(gpu->pushed, 0);
    rung_context_destroy(context);
    free_on_device(&p, &g);
}

/* A stream is destroyed, and another GPU's gets its address. */
static void a_streams_address_may_be_anothers(void **state)
{
    (void)state;
    int (*destroy)(void *);
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    void *here = stream_of(0);
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    rung_gemm g = on_device(&p);
    assert_ok(rung_context_set_stream(context, here));
    for (int i = 0; i < 3; i++) /* again, and as it was launched before */
        assert_ok(run_rung(context, &g));
    assert_ok(rung_context_synchronize(context));
    assert_int_equal(destroy(here), 0);
    assert_ptr_equal(stream_of(1), here);
    assert_ok(rung_context_set_stream(context, here));
    for (int i = 0; i < 3; i++) {
        g.k = i == 2 ? 19 : 20;
        assert_int_equal(run_rung(context, &g), RUNG_INVALID_ARGUMENT);
        assert_non_null(strstr(rung_last_error(), ") is one of GPU 1, the context's GPU is 0"));
    }
    assert_int_equal(destroy(here), 0);
    assert_ptr_equal(stream_of(0), here); /* and this GPU's again */
    assert_ok(run_rung(context, &g));
    assert_ok(rung_context_synchronize(context));
    assert_int_equal(gpu->pushed, 0);
    rung_context_destroy(context);
    assert_int_equal(destroy(here), 0);
    free_on_device(&p, &g);
}

enum { UNOPENED = 5 };

static void *open_another(void *context)
{
    return (void *)(uintptr_t)open_context(UNOPENED, context);
}

/* libcuda refuses a process that was forked all that its parent has started. The best device is the CPU there, also
 * where a thread of the parent was opening a GPU just then. */
static void a_forked_process_has_no_gpu(void **state)
{
    (void)state;
    rung_context *here, *there = NULL;
    pthread_t thread;
    void *opened;
    int status = -1;
    assert_ok(open_context(0, &here));
    const int devices = gpu->devices;
    gpu->devices = UNOPENED + 1;
    gpu->hold = 1;
    empty_log();
    assert_int_equal(pthread_create(&thread, NULL, open_another, &there), 0);
    for (int ms = 0; ms < 100000 && !strstr(gpu->log, "cuDevicePrimaryCtxRetain"); ms++)
        usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
        rung_context *best;
        alarm(60);            /* where it waits for a thread that it does not have */
        gpu->init_result = 3; /* CUDA_ERROR_NOT_INITIALIZED */
        if (open_context(0, &best) != RUNG_NO_DEVICE ||
            strcmp(rung_last_error(),
                   "this process was forked after its parent had started the NVIDIA driver, which then has no GPU for "
                   "it: start it anew ('spawn' in Python's multiprocessing), or use the CPU") != 0)
            _exit(1);
        _exit(rung_tools_gpu_count() != 0 || open_context(RUNG_DEVICE_BEST, &best) != RUNG_SUCCESS ||
              rung_context_device(best) != RUNG_DEVICE_CPU);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    gpu->hold = 0;
    pthread_join(thread, &opened);
    gpu->devices = devices;
    assert_int_equal((uintptr_t)opened, RUNG_SUCCESS);
    assert_int_equal(status, 0);
    rung_context_destroy(there);
    rung_context_destroy(here);
}

/* A program that works in another context of the GPU: what it allocated there is not touched. Another GPU's is no
 * matter. */
static void foreign_contexts_are_refused(void **state)
{
    (void)state;
    int (*push)(void *), (*pop)(void **);
    void *popped;
    *(void **)&push = dlsym(dlopen(stand_in, RTLD_NOW), "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(dlopen(stand_in, RTLD_NOW), "cuCtxPopCurrent_v2");
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    rung_gemm g = on_device(&p);
    push((void *)(uintptr_t)(1 + FAKE_OTHER_CONTEXT));
    empty_log();
    assert_int_equal(run_rung(context, &g), RUNG_UNSUPPORTED);
    assert_non_null(
        strstr(rung_last_error(),
               "the calling thread's CUDA context is not the primary one of GPU 0: its memory is out of Rung's reach"));
    assert_int_equal(rung_ssum(context, 40, g.a, g.c), RUNG_UNSUPPORTED);
    assert_non_null(strstr(rung_last_error(), "its memory is out of Rung's reach"));
    assert_null(strstr(gpu->log, "cuLaunchKernelEx"));
    assert_ok(run_rung(context, &p.gemm)); /* from host memory: in the primary context */
    assert_int_equal(gpu->pushed, 1);
    pop(&popped);
    push((void *)(uintptr_t)2);
    assert_ok(run_rung(context, &g));
    pop(&popped);
    rung_context_destroy(context);
    free_on_device(&p, &g);
}

/* Calls that wait, allocate and load, while another thread records a graph: in relaxed mode all of them, and the thread
 * has its own mode back whenever a call of Rung's ends. */
static void recordings_of_other_threads_go_on(void **state)
{
    (void)state;
    rung_context *context;
    rung_guard_counts counts;
    float *a = device_memory(0, 64 * DEEP * 4), *b = device_memory(0, 64 * DEEP * 4),
          *c = device_memory(0, 64 * 64 * 4);
    product p;
    product_new(&p, RUNG_COL_MAJOR, 0, 0, 40, 30, 20, 1, 1, 1);
    gpu->recording = 1;
    for (int time = 0; time < 2; time++) {
        assert_ok(open_context(0, &context));
        assert_true(run_deep(context, a, b, c, 64) > 0);
        assert_int_equal(gpu->relaxed, 0);
        assert_ok(run_rung(context, &p.gemm));
        assert_ok(rung_context_guard_counts(context, &counts));
        assert_ok(rung_context_synchronize(context));
        assert_int_equal(gpu->relaxed, 0);
        rung_context_destroy(context);
        assert_int_equal(gpu->relaxed, 0);
        assert_int_equal(gpu->faults, 0);
    }
    gpu->recording = 0;
    product_free(&p);
    free_device(a);
    free_device(b);
    free_device(c);
}

/* While a stream is captured nothing may wait and nothing may be allocated but in stream order. */
static void capture_is_not_disturbed(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 64;
    float *memory = device_memory(0, 3 * 64 * 64 * 4);
    g.a = memory, g.b = memory + 64 * 64, g.c = memory + 2 * 64 * 64;
    gpu->capturing = 1;
    empty_log();
    assert_ok(run_rung(context, &g));
    gpu->capturing = 0;
    assert_non_null(strstr(gpu->log, "cuLaunchKernelEx"));
    assert_nothing_waited();
    free_device(memory);
    rung_context_destroy(context);
}

/* What lies in host memory is copied by way of streams and waits that a graph cannot hold. */
static void host_operands_are_not_recorded(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    product p;
    product_new(&p, 1, 0, 0, 40, 40, 40, 0, 1, 7);
    for (int round = 0; round < 3; round++) {
        product_reset(&p);
        gpu->capturing = round == 1;
        empty_log();
        rung_status status = run_rung(context, &p.gemm);
        gpu->capturing = 0;
        if (round == 1) {
            assert_int_equal(status, RUNG_UNSUPPORTED);
            assert_non_null(strstr(rung_last_error(), "the stream ("));
            assert_non_null(strstr(rung_last_error(), ") records a graph, and operands are in host memory, which Rung "
                                                      "copies by itself: give operands in device memory"));
            assert_null(strstr(gpu->log, "cuLaunchKernelEx"));
            assert_null(strstr(gpu->log, "cuMemcpy"));
            assert_nothing_waited();
        } else {
            assert_ok(status);
            product_check(&p, "host operands");
        }
    }
    product_free(&p);
    rung_context_destroy(context);
}

static int times_called(const char *name)
{
    int times = 0;
    for (const char *at = gpu->log; (at = strstr(at, name)); at++)
        times++;
    return times;
}

/* A graph may run whenever it likes: its workspace is its own, and no buffer of the context's before or after. Products
 * of one stream share it. When the graph is gone the next one gets it, cleared anew. */
static void workspace_of_a_graph_is_its_own(void **state)
{
    (void)state;
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, WIDEST * DEEP * 4), *b = device_memory(0, WIDEST * DEEP * 4),
          *c = device_memory(0, WIDEST * WIDEST * 4);
    void *other = stream_of(0);
    for (int time = 0; time < 2; time++) {
        gpu->capturing = 1 + time;
        gpu->recording = 1;
        empty_log();
        for (int turn = 0; turn < 3; turn++)
            assert_true(run_deep(context, a, b, c, 64) > 0);
        assert_int_equal(times_called("cuMemsetD32Async "), 1);
        assert_int_equal(times_called("cuMemAllocAsync "), 1); /* one executable graph at a time */
        assert_int_equal(gpu->user_objects, 1);
        assert_ok(rung_context_set_stream(context, other));
        assert_true(run_deep(context, a, b, c, 64) > 0); /* it may run beside those of the first stream */
        assert_ok(rung_context_set_stream(context, NULL));
        assert_int_equal(gpu->user_objects, 2);
        assert_true(run_deep(context, a, b, c, WIDEST) > 0); /* of more parts than the buffer has room for */
        assert_int_equal(gpu->user_objects, 3);
        assert_int_equal(times_called("cuMemsetD32Async "), 3);
        assert_int_equal(times_called("cuMemAlloc_v2 "), time == 0 ? 3 : 0);
        gpu->capturing = gpu->recording = 0;
        assert_ok(rung_context_synchronize(context));
        assert_int_equal(gpu->user_objects, 0);
        empty_log();
        assert_true(run_deep(context, a, b, c, 64) > 0); /* now the context keeps a buffer */
        assert_int_equal(times_called("cuMemAllocFromPoolAsync "), time == 0);
        assert_ok(rung_context_synchronize(context));
    }
    free_device(a);
    free_device(b);
    free_device(c);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* Where the driver keeps no memory for a graph, the graph's nodes allocate and clear it. */
static void a_graph_without_a_buffer_allocates(void **state)
{
    (void)state;
    static const char *const failing[] = {"cuStreamGetCaptureInfo_v2", "cuMemAlloc_v2", "cuUserObjectCreate",
                                          "cuGraphRetainUserObject"};
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, 64 * DEEP * 4), *b = device_memory(0, 64 * DEEP * 4),
          *c = device_memory(0, 64 * 64 * 4);
    const int held = gpu->memory;
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        empty_log();
        gpu->capturing = 1;
        gpu->fail_name = failing[i];
        gpu->fail_result = 2;
        gpu->most_pooled = 0;
        const int64_t bytes = run_deep(context, a, b, c, 64);
        assert_true(bytes > 0 && gpu->most_pooled >= bytes);
        gpu->capturing = 0;
        gpu->fail_name = NULL;
        assert_ok(rung_context_synchronize(context));
        assert_int_equal(gpu->user_objects, 0);
        rung_context *opened;
        assert_ok(open_context(0, &opened));
        rung_context_destroy(opened); /* which frees what is idle */
        assert_int_equal(gpu->memory, held);
    }
    free_device(a);
    free_device(b);
    free_device(c);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

static void run_accurate(rung_context *context, rung_plan *plan, rung_gemm *g, float *memory, int which_c,
                         const char *refused)
{
    enum { EDGE = 128, SIZE = EDGE * EDGE };
    g->c = memory + (2 + which_c) * SIZE;
    for (int i = 0; i < SIZE; i++)
        memory[i] = (float)(i % 7 - 3), memory[SIZE + i] = (float)(i % 5 - 2), g->c[i] = NAN;
    empty_log();
    gpu->fail_name = refused;
    gpu->fail_result = 801; /* CUDA_ERROR_NOT_SUPPORTED */
    gpu->launched[0] = 0;
    assert_ok(rung_plan_run(plan, g));
    assert_ok(rung_context_synchronize(context));
    for (int i = 0; i < SIZE; i++) {
        float sum = 0.0f;
        for (int k = 0; k < EDGE; k++)
            sum += memory[i / EDGE * EDGE + k] * memory[SIZE + k * EDGE + i % EDGE];
        assert_true(g->c[i] == sum);
    }
}

/* Split, product and strict tiles: queued as one graph, kept for each stream; singly where the driver makes none.
 * Either way the launches are the same: their grids, shared memory, clusters and priority. */
static void launches_in_a_row_are_one_graph(void **state)
{
    (void)state;
    static const char *const refusing[] = {NULL, "cuGraphCreate", "cuGraphAddKernelNode_v2",
                                           "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2"};
    enum { STREAMS = 33 }; /* more than a context keeps graphs */
    int (*destroy)(void *);
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    gpu->devices = 3;
    gpu->arch = 90;
    for (int i = 0; i < 5; i++) {
        const char *refused = refusing[i];
        static char as_a_graph[FAKE_LAUNCHED_BYTES];
        int makes = i == 0 || i == 4; /* a graph, once */
        rung_context *context;
        rung_plan *plan;
        void *streams[STREAMS];
        assert_ok(open_context(2, &context));
        assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
        rung_gemm g;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 128;
        float *memory = device_memory(2, 4 * 128 * 128 * 4);
        g.a = memory, g.b = memory + 128 * 128, g.c = memory + 2 * 128 * 128;
        assert_ok(rung_plan_create_kernel(&plan, context, &g, tile_with(RUNG_F16X3, 90)));
        run_accurate(context, plan, &g, memory, 0, refused);
        assert_int_equal(times_called("cuLaunchKernelEx "), makes ? 0 : 3);
        assert_int_equal(times_called("cuGraphLaunch "), makes);
        if (i == 0)
            memcpy(as_a_graph, gpu->launched, sizeof as_a_graph);
        assert_non_null(strstr(as_a_graph, " 2 -1\n")); /* a cluster of two, the stream's priority */
        assert_string_equal(gpu->launched, as_a_graph);
        /* Elsewhere in C: the split is as it was, product and strict tiles are not. */
        run_accurate(context, plan, &g, memory, 1, refused);
        assert_int_equal(times_called("cuGraphExecKernelNodeSetParams_v2 "), i == 0 ? 2 : i == 4);
        assert_int_equal(times_called("cuLaunchKernelEx "), i == 0 ? 0 : 3);
        assert_int_equal(times_called("cuGraphCreate "), 0);
        gpu->recording = 1;
        const int count = i == 0 ? STREAMS : 1;
        for (int s = 0; s < count; s++) {
            streams[s] = stream_of(2);
            assert_ok(rung_context_set_stream(context, streams[s]));
            run_accurate(context, plan, &g, memory, 0, NULL);
            assert_int_equal(times_called("cuGraphCreate "), i == 0);
        }
        for (int s = count - 2; s > 0; s -= 15) { /* those that were used of late are still there */
            assert_ok(rung_context_set_stream(context, streams[s]));
            run_accurate(context, plan, &g, memory, 0, NULL);
            assert_int_equal(times_called("cuGraphCreate "), 0);
        }
        rung_plan_destroy(plan);
        rung_context_destroy(context);
        gpu->recording = 0;
        for (int s = 0; s < count; s++)
            assert_int_equal(destroy(streams[s]), 0);
        free_device(memory);
        assert_int_equal(gpu->faults + gpu->graphs + gpu->memory, 0);
    }
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

/* Runs an accurate product while its stream is recorded and calls of this name fail; returns what the launches were
 * given. */
static uint64_t record_accurate(rung_plan *plan, const rung_gemm *g, const char *failing, int may_fail)
{
    empty_log();
    gpu->fail_name = failing;
    gpu->fail_result = may_fail ? 719 : 801;
    gpu->launched[0] = 0;
    gpu->given = 0;
    assert_int_equal(rung_plan_run(plan, g), may_fail ? RUNG_DEVICE_ERROR : RUNG_SUCCESS);
    gpu->fail_name = NULL;
    return gpu->given;
}

/* Opens the third GPU, a Hopper, and plans an accurate product of 128 in each direction; a fourth matrix is behind C.
 */
static float *accurate_product(rung_context **context, rung_plan **plan, rung_gemm *g)
{
    enum { SIDE = 128 };
    gpu->devices = 3;
    gpu->arch = 90;
    assert_ok(open_context(2, context));
    assert_ok(rung_context_set_math(*context, RUNG_ACCURATE));
    rung_gemm_init(g);
    g->layout = RUNG_ROW_MAJOR;
    g->m = g->n = g->k = g->lda = g->ldb = g->ldc = SIDE;
    float *memory = device_memory(2, 4 * SIDE * SIDE * 4);
    g->a = memory, g->b = memory + SIDE * SIDE, g->c = memory + 2 * SIDE * SIDE;
    assert_ok(rung_plan_create_kernel(plan, *context, g, tile_with(RUNG_F16X3, 90)));
    return memory;
}

/* Returns the kernels that were launched, each with what it waits for where that is told. */
static const char *launched_names(void)
{
    static char names[1024];
    size_t length = 0;
    for (const char *line = gpu->launched; *line; line = strchr(line, '\n') + 1) {
        const char *after = strstr(line, " after"), *end = strchr(line, '\n');
        after = after && after < end ? after : end;
        length += (size_t)snprintf(names + length, sizeof names - length, "%.*s%.*s\n", (int)strcspn(line, " "), line,
                                   (int)(end - after), after);
    }
    return names;
}

/* Where k is innermost in both operands, large tiles compute what the guard refuses as a whole: what they read turned
 * is turned beside the product, and they follow it there; both ways the copies for marked tiles and these come last. */
static void refused_operands_are_turned_beside_the_product(void **state)
{
    (void)state;
    enum { ROWS = 4096, COLUMNS = 3000, DEPTH = 512 };
    static const char *const wanted[2][2] = {
        {"f16x3_split\nsm90_wgmma_f16x3_128x128x32_s6\nf16x3_turn\nsm90_tmak_f32_256x128x16_s8\n"
         "sm90_markwarp_f32_64x64x64_s3_nt\n",
         "f16x3_split\nsm90_wgmma_f16x3_128x128x32_s6\nf16x3_turn\nsm90_tma_f32_128x256x16_s8\nrow_copy_two\n"
         "sm90_markwarp_f32_64x64x64_s3_nt\n"},
        {"f16x3_look\nsm90_wgmma_f16x3_128x128x32_s6\nf16x3_turn after 1\nsm90_tmak_f32_256x128x16_s8\n"
         "sm90_markwarp_f32_64x64x64_s3_nt after 2 4\n",
         "f16x3_look\nsm90_wgmma_f16x3_128x128x32_s6\nf16x3_turn after 1\nsm90_tma_f32_128x256x16_s8\n"
         "row_copy_two after 2 4\nsm90_markwarp_f32_64x64x64_s3_nt\n"}};
    gpu->devices = 3;
    gpu->arch = 90;
    gpu->idle = 1;
    for (int odd = 0; odd < 2; odd++) {
        rung_context *context;
        rung_plan *plan;
        rung_gemm g;
        assert_ok(open_context(2, &context));
        assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
        float *memory = device_memory(2, ((ROWS + COLUMNS) * (DEPTH + 1) + ROWS * COLUMNS) * 4);
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.trans_b = RUNG_TRANS;
        g.m = ROWS, g.n = g.ldc = COLUMNS;
        g.k = g.lda = g.ldb = DEPTH + odd;
        g.a = memory, g.b = g.a + ROWS * (DEPTH + 1), g.c = memory + (ROWS + COLUMNS) * (DEPTH + 1);
        assert_ok(rung_plan_create_kernel(&plan, context, &g, tile_with(RUNG_F16X3, 90)));
        for (int recorded = 0; recorded < 2; recorded++) {
            gpu->capturing = recorded;
            gpu->launched[0] = 0;
            assert_ok(rung_plan_run(plan, &g));
            assert_string_equal(launched_names(), wanted[recorded][odd]);
        }
        gpu->capturing = 0;
        assert_ok(rung_context_synchronize(context));
        rung_plan_destroy(plan);
        rung_context_destroy(context);
        free_device(memory);
    }
    gpu->idle = 0;
    assert_int_equal(gpu->faults + gpu->graphs + gpu->memory, 0);
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

/* The accurate products of a graph share zeros, which a replay clears once; each has a record of its own, so the launch
 * that splits may look first. After one that failed the next product gets other zeros. Without zeros of the graph's
 * each product clears its own, and looks at nothing. */
static void accurate_products_of_a_graph_share_zeros(void **state)
{
    (void)state;
    rung_context *context;
    rung_plan *plan;
    rung_gemm g;
    float *memory = accurate_product(&context, &plan, &g);
    run_accurate(context, plan, &g, memory, 0, NULL);
    for (int without = 0; without < 2; without++) {
        uint64_t given[3];
        gpu->capturing = 1 + without;
        for (int turn = 0; turn < 3; turn++) {
            given[turn] = record_accurate(plan, &g, without ? "cuUserObjectCreate" : NULL, 0);
            /* One clears the zeros and the records now, one at each replay. */
            assert_true(without || times_called("cuMemsetD32Async ") == (turn == 0 ? 2 : 0));
            assert_int_equal(times_called("cuGraphLaunch "), 0);
            assert_int_equal(strstr(gpu->launched, "f16x3_clear ") != NULL, without);
            assert_int_equal(strstr(gpu->launched, "f16x3_look ") != NULL, !without);
            assert_int_equal(gpu->user_objects, !without);
        }
        if (!without)
            assert_true(given[0] != given[1] && given[1] != given[2] && given[0] != given[2]);
        if (!without) {
            record_accurate(plan, &g, "cuLaunchKernelEx", 1);
            record_accurate(plan, &g, NULL, 0);
            assert_int_equal(gpu->user_objects, 2);
        }
        gpu->capturing = 0;
        assert_ok(rung_context_synchronize(context));
    }
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    free_device(memory);
    assert_int_equal(gpu->faults + gpu->graphs + gpu->memory + gpu->user_objects, 0);
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

/* What a failed product would still have brought to host memory does not come with the next one. */
static void a_failed_product_is_forgotten(void **state)
{
    (void)state;
    rung_context *context;
    product p, q;
    product_new(&p, RUNG_COL_MAJOR, 0, 0, 40, 30, 20, 1, 1, 1);
    product_new(&q, RUNG_COL_MAJOR, 0, 0, 50, 20, 10, 1, 1, 2);
    float *were = malloc(p.count_c * 4);
    assert_ok(open_context(1, &context));
    product_reset(&p);
    assert_ok(run_rung(context, &p.gemm));
    empty_log();
    product_reset(&p);
    assert_ok(run_rung(context, &p.gemm));
    const long calls = gpu->calls;
    assert_true(calls > 10);
    for (long call = 1; call <= calls; call++) {
        empty_log();
        product_reset(&p);
        product_reset(&q);
        gpu->fail_call = call;
        gpu->fail_result = 719;
        run_rung(context, &p.gemm);
        empty_log();
        memcpy(were, p.gemm.c, p.count_c * 4);
        assert_ok(run_rung(context, &q.gemm));
        product_check(&q, "after one that failed");
        if (memcmp(were, p.gemm.c, p.count_c * 4) != 0)
            fail_msg("call %ld of %ld failing: the next product wrote into the failed one's C", call, calls);
    }
    rung_context_destroy(context);
    free(were);
    product_free(&p);
    product_free(&q);
    empty_log();
}

/* Kept memory that is zero between launches is cleared again where a call failed, whichever of the driver's, and only
 * then. */
static void zeros_are_cleared_after_a_failure(void **state)
{
    (void)state;
    rung_context *context;
    rung_plan *plan;
    rung_gemm g;
    float *memory = accurate_product(&context, &plan, &g);
    run_accurate(context, plan, &g, memory, 0, NULL);
    assert_int_equal(gpu->filled_bytes, 1 << 20); /* all that there are, for larger products too */
    const long calls = gpu->calls;
    for (long call = 1; call <= calls; call++) {
        run_accurate(context, plan, &g, memory, 0, NULL);
        assert_int_equal(times_called("cuMemsetD32Async "), 0);
        empty_log();
        gpu->fail_call = call;
        gpu->fail_result = 719;
        const int failed = rung_plan_run(plan, &g) != RUNG_SUCCESS, launched = times_called("cuGraphLaunch ") > 0;
        empty_log();
        run_accurate(context, plan, &g, memory, 0, NULL);
        assert_true(!failed || !launched || times_called("cuMemsetD32Async ") == 1);
    }
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    free_device(memory);
    assert_int_equal(gpu->faults + gpu->graphs + gpu->memory, 0);
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

enum { PANEL_M = 300, PANEL_N = 200, PANEL_K = 2600 };

/* C = 2 op(A) op(B) + C / 2 in accurate mode with so much workspace, in whole numbers; returns how many panels it took.
 */
/* Finds the blocks of the launches of a kernel since gpu->launched was last emptied; returns how many launches. */
static int blocks_of(const char *kernel, unsigned *blocks, int room)
{
    int count = 0;
    for (const char *line = gpu->launched; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, kernel, strlen(kernel)) == 0 && count < room)
            count += sscanf(line + strlen(kernel), " %u", &blocks[count]) == 1;
    return count;
}

/* Of two panels that share one operand's image the first one's split is of both operands, the other one's of the other
 * operand alone. Four panels are two such pairs. */
static void assert_split_once(int panels)
{
    unsigned blocks[4];
    assert_true(panels <= 4);
    assert_int_equal(blocks_of("f16x3_split", blocks, 4), panels);
    for (int i = 1; i < panels; i++)
        assert_true(panels == 4 && i % 2 ? blocks[i] < blocks[0] : blocks[i] == blocks[0]);
}

static int run_in_panels(rung_context *context, float *memory, rung_transpose trans, rung_bias kind, int relu,
                         int64_t limit)
{
    rung_plan *plan;
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.trans_a = g.trans_b = trans;
    g.m = PANEL_M, g.n = g.ldc = PANEL_N, g.k = PANEL_K;
    g.lda = trans ? g.m : g.k;
    g.ldb = trans ? g.k : g.n;
    float *a = memory, *b = a + g.m * g.k, *c = b + g.k * g.n;
    g.a = a, g.b = b, g.c = c, g.alpha = 2.0f, g.beta = 0.5f;
    for (int64_t i = 0; i < g.m * g.k; i++)
        a[i] = (float)(i % 7 - 3);
    for (int64_t i = 0; i < g.k * g.n; i++)
        b[i] = (float)(i % 5 - 2);
    for (int64_t i = 0; i < g.m * g.n; i++)
        c[i] = (float)(i % 11);
    float *bias = c + g.m * g.n;
    for (int64_t i = 0; i < g.m; i++)
        bias[i] = (float)(i % 13);
    g.bias = bias, g.bias_kind = kind, g.activation = relu ? RUNG_RELU : RUNG_IDENTITY;
    assert_ok(rung_context_set_workspace_limit(context, limit));
    assert_ok(rung_plan_create_kernel(&plan, context, &g, tile_with(RUNG_F16X3, 90)));
    assert_true(rung_plan_workspace_bytes(plan) <= limit);
    empty_log();
    gpu->launched[0] = 0;
    assert_ok(rung_plan_run(plan, &g));
    assert_ok(rung_context_synchronize(context));
    rung_plan_destroy(plan);
    assert_split_once(times_called("cuGraphLaunch "));
    for (int64_t i = 0; i < g.m * g.n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < g.k; k++)
            sum += (double)(a[trans ? k * g.lda + i / g.n : i / g.n * g.lda + k] *
                            b[trans ? i % g.n * g.ldb + k : k * g.ldb + i % g.n]);
        double added = kind == RUNG_BIAS_PER_ROW ? bias[i / g.n] : kind == RUNG_BIAS_PER_COLUMN ? bias[i % g.n] : 0.0;
        const float value = (float)(2 * sum + (double)(i % 11) / 2 + added);
        assert_true(c[i] == (relu && value < 0.0f ? 0.0f : value));
    }
    return times_called("cuGraphLaunch ");
}

static void accurate_products_go_in_panels(void **state)
{
    (void)state;
    rung_context *context;
    int least = 1 << 20, most = 0;
    gpu->devices = 3;
    gpu->arch = 90;
    assert_ok(open_context(2, &context));
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    float *memory = device_memory(2, (PANEL_M * PANEL_K + PANEL_K * PANEL_N + PANEL_M * PANEL_N + PANEL_M) * 4);
    for (int64_t limit = 11 << 20; limit <= 17 << 20; limit += 3 << 20)
        for (int form = 0; form < 4; form++) {
            int panels = run_in_panels(context, memory, form & 1 ? RUNG_TRANS : RUNG_NO_TRANS,
                                       (rung_bias)(((limit >> 20) / 3 + form) % 3), form >> 1, limit);
            least = panels < least ? panels : least;
            most = panels > most ? panels : most;
        }
    assert_int_equal(least, 1);
    assert_int_equal(most, 4); /* 11 MiB hold no panel of whole k: two of k, each of two of C */
    free_device(memory);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
    gpu->devices = 2;
    gpu->arch = 80;
    empty_log();
}

enum { HOPPER_MULTIPROCESSORS = 132 };

/* Opens a Hopper whose kernels do nothing, and on it three matrices of so many floats that nobody touches. */
static rung_context *open_idle_hopper(float *memory[3], size_t floats)
{
    rung_context *context;
    gpu->devices = 3;
    gpu->arch = 90;
    gpu->idle = 1;
    assert_ok(open_context(2, &context));
    for (int i = 0; i < 3; i++)
        memory[i] = device_memory(2, floats * 4);
    return context;
}

static void close_idle_hopper(rung_context *context, float *memory[3])
{
    for (int i = 0; i < 3; i++)
        free_device(memory[i]);
    rung_context_destroy(context);
    gpu->devices = 2;
    gpu->arch = 80;
    gpu->idle = 0;
    empty_log();
}

/* The streams record, or no more, under a driver that keeps no memory for graphs: so a product's workspace is its own,
 * and of the size that it asks for. */
static void record_with_nodes(int recording)
{
    gpu->capturing = recording;
    gpu->fail_name = recording ? "cuStreamGetCaptureInfo_v2" : NULL;
    gpu->fail_result = 801;
}

/* Runs a plan with a limit, recorded. Returns what it took; -1: the kernel refuses. */
static int64_t taken_within(rung_context *context, const char *kernel, const rung_gemm *g, int64_t limit)
{
    rung_plan *plan;
    assert_ok(rung_context_set_workspace_limit(context, limit));
    if (rung_plan_create_kernel(&plan, context, g, kernel) != RUNG_SUCCESS)
        return -1;
    gpu->most_pooled = 0;
    record_with_nodes(1);
    assert_ok(rung_plan_run(plan, g));
    record_with_nodes(0);
    assert_ok(rung_context_synchronize(context)); /* gives the workspace back */
    assert_int_equal(gpu->most_pooled > 0, rung_plan_workspace_bytes(plan) > 0);
    rung_plan_destroy(plan);
    return gpu->most_pooled;
}

/* As many blocks as a unit of the workspace has bytes: the marks fill it, and what says that there are any needs
 * another. */
static void marks_of_many_blocks_have_room(void **state)
{
    (void)state;
    enum { SIZE = 4096, K = 64 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, (size_t)SIZE * SIZE);
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.ldb = g.ldc = SIZE, g.k = g.lda = K;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    empty_log();
    gpu->launched[0] = 0;
    assert_true(taken_within(context, tile_with(RUNG_F16X3, 90), &g, 0) > 0);
    assert_non_null(strstr(gpu->launched, "_mark"));
    assert_int_equal(gpu->faults, 0);
    close_idle_hopper(context, memory);
}

/* A plan that took workspace when it was made takes none once the context allows none. */
static void a_plan_keeps_to_a_later_limit(void **state)
{
    (void)state;
    enum { M = 40, N = 60, K = 9000 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, (size_t)N * K + (size_t)M * K);
    rung_gemm g;
    rung_plan *plan;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = M, g.n = g.ldb = g.ldc = N, g.k = g.lda = K;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_ok(rung_plan_create(&plan, context, &g));
    const int64_t bytes = rung_plan_workspace_bytes(plan), limits[] = {0, bytes, bytes / 2, 1, -1};
    assert_true(bytes > 1);
    for (int i = 0; i < 5; i++) {
        assert_ok(rung_context_set_workspace_limit(context, limits[i]));
        gpu->most_pooled = 0;
        record_with_nodes(1);
        assert_ok(rung_plan_run(plan, &g));
        record_with_nodes(0);
        assert_ok(rung_context_synchronize(context));
        assert_true(i == 0 ? gpu->most_pooled >= bytes : gpu->most_pooled <= (limits[i] > 0 ? limits[i] : 0));
    }
    rung_plan_destroy(plan);
    close_idle_hopper(context, memory);
}

/* What a product takes, its counters included, never exceeds the limit, and is no more than it takes without one. */
static void products_keep_to_their_workspace(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 3000, 5000}, {5000, 1, 3000}, {4096, 1, 8192}, {40, 60, 9000}, {300, 200, 2600}};
    enum { COUNTERS = 65536, MOST = 3000 * 5000 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, MOST);
    int within = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->backend != RUNG_BACKEND_CUDA || kernel->role != RUNG_PRODUCTION)
            continue;
        for (size_t s = 0; s < 4 * sizeof sizes / sizeof sizes[0]; s++) {
            rung_gemm g;
            rung_gemm_init(&g);
            g.layout = RUNG_ROW_MAJOR;
            g.trans_a = s & 1 ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = s & 2 ? RUNG_TRANS : RUNG_NO_TRANS;
            g.m = sizes[s / 4][0], g.n = g.ldc = sizes[s / 4][1], g.k = sizes[s / 4][2];
            g.lda = g.trans_a ? g.m : g.k, g.ldb = g.trans_b ? g.k : g.n;
            g.a = memory[0], g.b = memory[1], g.c = memory[2];
            const int64_t free_of = taken_within(context, kernel->name, &g, 0);
            const int64_t limits[] = {free_of,     free_of - 1, free_of - COUNTERS, free_of - COUNTERS + 1,
                                      free_of / 2, COUNTERS};
            for (int l = 0; free_of > 0 && l < 6; l++) {
                const int64_t limit = limits[l] > 0 ? limits[l] : 1,
                              took = taken_within(context, kernel->name, &g, limit);
                if (took > limit || took > free_of)
                    fail_msg("%s, %lld x %lld x %lld: takes %lld bytes, %lld without a limit; the limit is %lld",
                             kernel->name, (long long)g.m, (long long)g.n, (long long)g.k, (long long)took,
                             (long long)free_of, (long long)limit);
                within += took > 0;
            }
        }
    }
    assert_true(within > 1000);
    close_idle_hopper(context, memory);
}

/* Launches a plan for real, then as if recorded: returns the lines of its launches, and what it takes of workspace. */
static int64_t launches_of(rung_context *context, const rung_gemm *g, const char *kernel, char *lines, size_t bytes)
{
    rung_plan *plan;
    if (kernel && rung_plan_create_kernel(&plan, context, g, kernel) != RUNG_SUCCESS)
        return INT64_MAX; /* it refuses */
    if (!kernel)
        assert_ok(rung_plan_create(&plan, context, g));
    gpu->launched[0] = 0;
    gpu->most_pooled = 0;
    record_with_nodes(1);
    assert_ok(rung_plan_run(plan, g));
    record_with_nodes(0);
    assert_ok(rung_context_synchronize(context));
    rung_plan_destroy(plan);
    snprintf(lines, bytes, "%s", gpu->launched);
    return gpu->most_pooled;
}

/* A product whose last rows and columns are cut off launches each part as the product that it is, with room for it: of
 * the last two sizes an edge needs more than the main part. */
static void parts_are_launched_as_products(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{4097, 4097, 4097}, {2049, 1025, 192},  {2049, 1025, 4000},
                                       {2064, 1040, 4096}, {1024, 1028, 1400}, {1412, 1412, 1400}};
    enum { MOST = 4100 * 4100, TILE = 64, LINES = 4096 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, MOST);
    int edges = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        static char whole[LINES], part[LINES];
        rung_gemm g, below, right, tall;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = sizes[i][0], g.n = g.ldb = g.ldc = sizes[i][1], g.k = g.lda = sizes[i][2];
        g.a = memory[0], g.b = memory[1], g.c = memory[2];
        const int64_t cut_m = g.m / TILE * TILE, cut_n = g.n / TILE * TILE,
                      took = launches_of(context, &g, NULL, whole, LINES);
        below = right = g;
        below.m -= cut_m, below.a += cut_m * g.lda, below.c += cut_m * g.ldc;
        right.m = cut_m, right.n -= cut_n, right.b += cut_n, right.c += cut_n;
        tall = right; /* where no row is cut off */
        tall.m = g.m;
        const rung_gemm *const may_be[] = {&below, &right, &tall};
        char *save = NULL;
        int main_part = 1;
        for (char *line = strtok_r(whole, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            const char *name = NULL;
            int found = 0;
            for (int k = 0; k < rung_kernel_count() && !name; k++)
                if (strncmp(line, rung_kernel_at(k)->name, strlen(rung_kernel_at(k)->name)) == 0)
                    name = rung_kernel_at(k)->name;
            if (!name) /* a copy of operands */
                continue;
            for (int e = 0; e < 3 && !found && !main_part; e++) {
                const int64_t its = launches_of(context, may_be[e], name, part, LINES);
                char *last = strrchr(part, '\n'); /* the end of the product's own launch */
                if (last)
                    *last = 0;
                last = strrchr(part, '\n');
                found = strcmp(line, last ? last + 1 : part) == 0 && its <= took && its < INT64_MAX;
            }
            if (!found && !main_part)
                fail_msg("%lld x %lld x %lld: no part alone is launched as %s, or it takes more than %lld bytes of "
                         "workspace",
                         (long long)g.m, (long long)g.n, (long long)g.k, line, (long long)took);
            edges += found;
            main_part = 0;
        }
    }
    assert_true(edges > 4);
    close_idle_hopper(context, memory);
}

/* Launches so many blocks of a tile for each multiprocessor; returns the shared memory that one of them takes. */
static unsigned shared_of_a_block(rung_context *context, float *memory[3], const rung_kernel *kernel, int form,
                                  int blocks)
{
    char line[FAKE_LAUNCHED_BYTES];
    unsigned grid[3], threads, shared;
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.trans_a = form & 1 ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = form & 2 ? RUNG_TRANS : RUNG_NO_TRANS;
    g.m = HOPPER_MULTIPROCESSORS * kernel->bm, g.n = g.ldc = blocks * kernel->bn, g.k = kernel->bk;
    g.lda = g.trans_a ? g.m : g.k, g.ldb = g.trans_b ? g.k : g.n;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_true(launches_of(context, &g, kernel->name, line, sizeof line) < INT64_MAX);
    assert_int_equal(sscanf(strchr(line, ' '), " %ux%ux%u %u %u", &grid[0], &grid[1], &grid[2], &threads, &shared), 5);
    assert_int_equal(grid[0] * grid[1] * grid[2], blocks * HOPPER_MULTIPROCESSORS);
    return shared;
}

/* No multiprocessor has room for more blocks than its even share, if need be because each asks for more than it needs.
 * A crowd of five and more does not, for the sake of its cache, unless neither operand has k innermost. */
static void blocks_are_shared_out_evenly(void **state)
{
    (void)state;
    enum { MULTIPROCESSOR_BYTES = 228 * 1024, SYSTEM_BYTES = 1024, CROWD = 5, MOST_BLOCKS = 32, MOST = 1 << 27 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, MOST);
    int crowds = 0, evens = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        for (int form = 0; form < 4 && strstr(kernel->name, "_crowd_"); form++) {
            const unsigned needed = shared_of_a_block(context, memory, kernel, form, MOST_BLOCKS);
            for (int blocks = 1; blocks <= 7; blocks++) {
                const unsigned taken = shared_of_a_block(context, memory, kernel, form, blocks),
                               room = MULTIPROCESSOR_BYTES / (taken + SYSTEM_BYTES);
                const int crowd = blocks >= CROWD && form != 1;
                assert_true(taken >= needed && (int)room <= (crowd ? MOST_BLOCKS : blocks));
                assert_true(crowd ? taken == needed : (int)room == blocks || taken == needed);
                crowds += crowd && (int)room > blocks;
                evens += !crowd && taken > needed;
            }
        }
    }
    assert_true(crowds > 0 && evens > crowds);
    close_idle_hopper(context, memory);
}

/* A rung does not wait for the kernel before it, so it must not start while that one ends; the library's kernels do. */
static void those_that_wait_may_overlap(void **state)
{
    (void)state;
    float *memory[3];
    char line[FAKE_LAUNCHED_BYTES];
    rung_context *context = open_idle_hopper(memory, 64 * 64);
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 64;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_true(launches_of(context, &g, rung, line, sizeof line) < INT64_MAX);
    assert_false(gpu->overlapped);
    assert_true(launches_of(context, &g, NULL, line, sizeof line) < INT64_MAX);
    assert_true(gpu->overlapped);
    close_idle_hopper(context, memory);
}

/* What is launched, and with what. */
typedef struct launched {
    uint64_t given;
    void *stream;
    char lines[FAKE_LAUNCHED_BYTES];
} launched;

static void begin_launches(void)
{
    empty_log();
    gpu->given = 0;
    gpu->launched[0] = 0;
    gpu->stream = NULL;
}

static launched end_launches(void)
{
    launched l = {.given = gpu->given, .stream = gpu->stream};
    memcpy(l.lines, gpu->launched, sizeof l.lines);
    return l;
}

/* Runs a product by a plan that was made before (NULL: there is none for it) and by the context alone: both must
 * launch what a new plan does. */
static void assert_as_a_new_plan(rung_context *context, rung_plan *plan, const rung_gemm *g)
{
    rung_plan *fresh;
    launched l[4];
    for (int i = 0; i < 4; i++) { /* the first one finds the stream's workspace not yet made */
        if (i < 2)
            assert_ok(rung_plan_create(&fresh, context, g));
        begin_launches();
        assert_ok(i < 2            ? rung_plan_run(fresh, g)
                  : i == 2 && plan ? rung_plan_run(plan, g)
                                   : rung_gemm_run(context, g));
        l[i] = end_launches();
        if (i < 2)
            rung_plan_destroy(fresh);
    }
    assert_true(l[1].lines[0] != 0);
    for (int i = 2; i < 4; i++) {
        assert_string_equal(l[i].lines, l[1].lines);
        assert_true(l[i].stream == l[1].stream);
        if (rung_context_math(context) == RUNG_STRICT) /* what accurate mode recalls moves from call to call */
            assert_true(l[i].given == l[1].given);
    }
}

static void assert_refused(rung_context *context, rung_plan *plan, const rung_gemm *g, int argument)
{
    assert_int_equal(rung_plan_run(plan, g), RUNG_INVALID_ARGUMENT);
    assert_true(argument == 0 || rung_last_error_argument() == argument);
    if (argument) { /* without a plan any alignment will do */
        assert_int_equal(rung_gemm_run(context, g), RUNG_INVALID_ARGUMENT);
        assert_int_equal(rung_last_error_argument(), argument);
    }
}

/* Runs a product again and again on operands that move, with something else each few times. */
static void repeat(rung_context *context, float *memory[3], const rung_gemm *of, void *streams[2])
{
    enum { FEW = 3, APART = 256 };
    /* How far before the first matrix of a batch the last one lies. */
    const int64_t back_a = of->stride_a < 0 ? -of->stride_a * (of->batch - 1) : 0,
                  back_b = of->stride_b < 0 ? -of->stride_b * (of->batch - 1) : 0,
                  back_c = of->stride_c < 0 ? -of->stride_c * (of->batch - 1) : 0;
    rung_gemm g = *of;
    rung_plan *plan;
    g.a = memory[0] + back_a, g.b = memory[1] + back_b, g.c = memory[2] + back_c;
    assert_ok(rung_plan_create(&plan, context, &g));
    for (int i = 0; i < 8 * FEW; i++) {
        g.a = memory[i / FEW % 2] + i * APART + back_a, g.b = memory[1 - i / FEW % 2] + (8 * FEW - i) * APART + back_b;
        if (i / FEW % 2 == 0 && i % FEW < FEW - 1 && back_a == back_b) /* which is which shows only in the next one */
            g.b = g.a;
        g.c = memory[2] + i * APART + back_c;
        g.alpha = i / FEW == 1 || i / FEW == 2 ? 2.0f : 1.0f;
        g.beta = i / FEW == 2 ? -1.0f : 0.0f;
        assert_ok(rung_context_set_stream(context, streams[i / FEW == 3]));
        gpu->capturing = i / FEW == 4;
        if (i == 6 * FEW || i == 7 * FEW)
            assert_ok(rung_context_set_workspace_limit(context, i / FEW == 6 ? -1 : 0));
        assert_ok(rung_context_set_math(context, i / FEW == 5 ? RUNG_ACCURATE : RUNG_STRICT));
        assert_as_a_new_plan(context, i / FEW == 2 || i / FEW == 5 ? NULL : plan, &g);
    }
    gpu->capturing = 0;
    rung_gemm wrong[] = {g, g, g, g, g, g, g};
    wrong[0].c = (float *)(uintptr_t)g.a, wrong[1].c = (float *)(uintptr_t)g.b;
    wrong[2].a = NULL, wrong[3].b = (const float *)((uintptr_t)g.b + 2);
    wrong[4].c = (float *)(uintptr_t)g.a - back_a, wrong[5].c = (float *)(uintptr_t)g.b - back_b;
    wrong[6].c++;
    const int arguments[] = {12, 12, 7, 9, 12, 12, 0};
    for (int i = 0; i < (g.ldc % 4 ? 6 : 7); i++) { /* rows of C at any address stay so */
        assert_refused(context, plan, &wrong[i], arguments[i]);
        assert_as_a_new_plan(context, plan, &g);
    }
    rung_plan_destroy(plan);
}

/* A product that comes again is launched from what was kept of it: as if it were new. */
static void repeated_products_are_launched_as_new_ones(void **state)
{
    (void)state;
    static const int sizes[][4] = {{64, 64, 64, 1},    {100, 96, 5000, 1}, {304, 1, 500, 1},  {1, 304, 500, 1},
                                   {1280, 2520, 2, 1}, {16, 12, 16, 400},  {400, 404, 80, 1}, {1024, 1000, 1000, 1}};
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, 1 << 23);
    void *streams[2] = {stream_of(2), stream_of(2)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int form = 0; form < 4; form++) {
            rung_gemm g;
            rung_gemm_init(&g);
            g.layout = form & 1 ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
            g.trans_b = form & 2 ? RUNG_TRANS : RUNG_NO_TRANS;
            g.m = sizes[i][0], g.n = sizes[i][1], g.k = sizes[i][2], g.batch = sizes[i][3];
            g.lda = form & 1 ? g.k : g.m, g.ldc = form & 1 ? g.n : g.m;
            g.ldb = (form & 1) != form / 2 ? g.n : g.k;
            g.stride_a = g.m * g.k, g.stride_b = g.k * g.n, g.stride_c = g.m * g.n;
            repeat(context, memory, &g, streams);
            for (int back = 0; back < 3 && g.batch > 1;
                 back++) { /* one of the three goes backwards through the batch */
                rung_gemm b = g;
                int64_t *const strides[] = {&b.stride_a, &b.stride_b, &b.stride_c};
                *strides[back] = -*strides[back];
                repeat(context, memory, &b, streams);
            }
        }
    assert_int_equal(gpu->faults, 0);
    close_idle_hopper(context, memory);
}

/* A product borrows so much, and so much stays: docs/drop_in.md says it. */
static void little_memory_is_held(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{8192, 8192, 8192}, {16384, 16384, 16384}, {4096, 4096, 65536}};
    rung_context *context;
    gpu->devices = 3;
    gpu->arch = 90;
    assert_ok(open_context(2, &context));
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        rung_plan *plan;
        rung_gemm g;
        rung_gemm_init(&g);
        g.m = g.lda = g.ldc = sizes[i][0], g.n = sizes[i][1], g.k = g.ldb = sizes[i][2];
        g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
        assert_ok(rung_plan_create(&plan, context, &g));
        assert_string_equal(rung_plan_kernel(plan), tile_with(RUNG_F16X3, 90));
        assert_in_range(rung_plan_workspace_bytes(plan), 1, 512 << 20);
        rung_plan_destroy(plan);
    }
    assert_int_equal(gpu->release_threshold, 160 << 20);
    rung_context_destroy(context);
    gpu->devices = 2;
    gpu->arch = 80;
}

/* Arithmetic that errs more than FP32 is for fast mode, whatever the shape; strict mode has FP32's alone. */
static void modes_choose_their_arithmetic(void **state)
{
    (void)state;
    static const int64_t sizes[] = {64, 256, 1000, 4096, 16384};
    rung_context *context;
    gpu->devices = 3;
    gpu->arch = 90;
    assert_ok(open_context(2, &context));
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
        int seen[RUNG_F16X3_ALONE + 1] = {0};
        assert_ok(rung_context_set_math(context, (rung_math)math));
        for (int i = 0; i < 125; i++) {
            rung_plan *plan;
            rung_gemm g;
            rung_gemm_init(&g);
            g.m = g.lda = g.ldc = sizes[i % 5], g.n = sizes[i / 5 % 5], g.k = g.ldb = sizes[i / 25];
            g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
            assert_ok(rung_plan_create(&plan, context, &g));
            seen[rung_kernel_find(rung_plan_kernel(plan))->arith]++;
            rung_plan_destroy(plan);
        }
        assert_true(math == RUNG_STRICT ? seen[RUNG_F32] == 125 : seen[RUNG_F32] < 125);
        if (math == RUNG_ACCURATE)
            assert_int_equal(seen[RUNG_TF32] + seen[RUNG_F16X3_CHAIN] + seen[RUNG_F16X3_ALONE], 0);
    }
    rung_context_destroy(context);
    gpu->devices = 2;
    gpu->arch = 80;
}

static const char *kernel_for(rung_context *context, const rung_gemm *g)
{
    rung_plan *plan;
    assert_ok(rung_plan_create(&plan, context, g));
    const char *kernel = rung_plan_kernel(plan);
    rung_plan_destroy(plan);
    return kernel;
}

/* Replaces the first `was` in the file by as many bytes. */
static void change_file(const char *path, const char *was, const char *now)
{
    char text[4096] = "";
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    char *at = strstr(text, was);
    assert_non_null(at);
    fseek(file, at - text, SEEK_SET);
    assert_int_equal(fwrite(now, 1, strlen(was), file), strlen(was));
    fclose(file);
}

/* Where the user has no folder, what was tuned lasts as long as the context. */
static void tuned_without_a_folder(const rung_gemm *g, const char *chosen)
{
    static const char *const names[] = {"XDG_CACHE_HOME", "HOME"};
    char before[2][512] = {"", ""};
    rung_context *context;
    for (int i = 0; i < 2; i++) {
        snprintf(before[i], sizeof before[i], "%s", getenv(names[i]) ? getenv(names[i]) : "");
        unsetenv(names[i]);
    }
    assert_ok(open_context(0, &context));
    assert_ok(rung_tune_record(context, g, chosen, 12.5));
    assert_string_equal(kernel_for(context, g), chosen);
    assert_int_equal(rung_tune_save(context), RUNG_UNSUPPORTED);
    assert_non_null(strstr(rung_last_error(), "no cache folder"));
    rung_context_destroy(context);
    for (int i = 0; i < 2; i++)
        if (before[i][0])
            setenv(names[i], before[i], 1);
}

/* Whoever is to be timed takes the product, and nobody is left out. */
static void assert_candidates_take(rung_context *context, const rung_gemm *g)
{
    const char *names[256];
    rung_plan *plan;
    const int count = rung_tune_candidates(context, g, names, 256);
    int takers = 0;
    for (int i = 0; i < count; i++) {
        assert_ok(rung_plan_create_kernel(&plan, context, g, names[i]));
        rung_plan_destroy(plan);
    }
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->role == RUNG_PRODUCTION && kernel->arith == RUNG_F32 &&
            rung_plan_create_kernel(&plan, context, g, kernel->name) == RUNG_SUCCESS) {
            takers++;
            rung_plan_destroy(plan);
        }
    }
    assert_int_equal(count, takers); /* in strict mode */
}

/* Where the table cannot take its place nothing is left beside it. */
static void tuned_where_a_folder_stands(const rung_gemm *g, const char *chosen, const char *path)
{
    char said[640];
    rung_context *context;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_ok(open_context(0, &context));
    assert_ok(rung_tune_record(context, g, chosen, 12.5));
    assert_int_equal(rung_tune_save(context), RUNG_UNSUPPORTED);
    snprintf(said, sizeof said, "cannot write %s: %s", path, strerror(EISDIR));
    assert_string_equal(rung_last_error(), said);
    rung_context_destroy(context);
    assert_int_equal(rmdir(path), 0);
}

/* What was fastest is kept in a file, for the shape it was measured with and for this device alone. */
static void tuned_shapes_are_kept_and_found(void **state)
{
    (void)state;
    char folder[] = "/tmp/rung-tuned-XXXXXX", path[512];
    const char *names[8];
    rung_context *context;
    assert_non_null(mkdtemp(folder));
    setenv("RUNG_CACHE_DIR", folder, 1);
    assert_ok(open_context(0, &context));
    enum { OTHERS = 6 };
    rung_gemm g, other[OTHERS];
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.trans_b = RUNG_TRANS;
    g.m = g.ldc = g.n = 304, g.k = g.lda = g.ldb = 200;
    g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
    for (int i = 0; i < OTHERS; i++)
        other[i] = g;
    other[0].m = 300, other[1].k = 196, other[2].trans_b = RUNG_NO_TRANS, other[2].ldb = 304;
    other[3].trans_a = RUNG_TRANS, other[3].lda = 304, other[4].layout = RUNG_COL_MAJOR, other[4].lda = 304,
    other[4].ldb = 304;
    other[5].batch = 2, other[5].stride_a = other[5].stride_b = 304 * 200, other[5].stride_c = 304 * 304;
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE)); /* for which a strict kernel would do, too */
    const char *accurate = kernel_for(context, &g);
    assert_ok(rung_context_set_math(context, RUNG_STRICT));
    const char *first = kernel_for(context, &g), *others[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        others[i] = kernel_for(context, &other[i]);
    const int count = rung_tune_candidates(context, &g, names, 8);
    assert_true(count > 1);
    assert_candidates_take(context, &g);
    const char *chosen = names[count - 1];
    assert_string_not_equal(first, chosen);
    assert_int_equal(rung_tune_record(context, &other[2], rung, 1.0),
                     RUNG_INVALID_ARGUMENT); /* it takes that product */
    assert_non_null(strstr(rung_last_error(), "is no production kernel"));
    assert_int_equal(rung_tune_record(context, &g, "r01_atomics", 1.0), RUNG_UNSUPPORTED);
    assert_non_null(strstr(rung_last_error(), "is a reduction, not a matrix product"));
    assert_ok(rung_tune_record(context, &g, names[0], 12.0));
    assert_ok(rung_tune_record(context, &g, chosen, 12.5)); /* of the same shape, and takes that one's place */
    assert_string_equal(kernel_for(context, &g), chosen);   /* at once, although the shape was asked for before */
    assert_ok(rung_tune_save(context));
    snprintf(path, sizeof path, "%s", rung_tune_path(context));
    rung_context_destroy(context);
    assert_ok(open_context(0, &context));
    assert_non_null(strstr(rung_tune_state(context), "1 tuned shapes"));
    assert_string_equal(kernel_for(context, &g), chosen);
    for (int i = 0; i < OTHERS; i++)
        assert_string_equal(kernel_for(context, &other[i]), others[i]);
    assert_ok(rung_context_set_math(context, RUNG_ACCURATE));
    assert_string_equal(kernel_for(context, &g), accurate);
    rung_context_destroy(context);
    static const char *const damages[][3] = {{"Stand-in", "Stand_in", "another device"},
                                             {"\"format\": 1", "\"format\": 2", "another version"},
                                             {"\"op\": \"NT\"", "\"op\": \"XT\"", "a line is damaged"},
                                             /* what no size holds */
                                             {"\"m\": 304, \"n\"", "\"m\": 1e99,\"n\"", "a line is damaged"},
                                             {"\"n\": 304, \"k\"", "\"n\": 1e99,\"k\"", "a line is damaged"},
                                             {"\"k\": 200, \"batch\"", "\"k\": 1e99,\"batch\"", "a line is damaged"},
                                             {"\"batch\": 1, \"math\"", "\"batch\":1e99\"math\"", "a line is damaged"},
                                             {"\"us\": 12.5", "\"us\": nan ", "a line is damaged"}};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        change_file(path, damages[i][0], damages[i][1]);
        assert_ok(open_context(0, &context));
        assert_non_null(strstr(rung_tune_state(context), damages[i][2]));
        assert_string_equal(kernel_for(context, &g), first);
        rung_context_destroy(context);
        change_file(path, damages[i][1], damages[i][0]);
    }
    unlink(path);
    tuned_where_a_folder_stands(&g, chosen, path);
    assert_int_equal(rmdir(folder), 0);
    unsetenv("RUNG_CACHE_DIR");
    tuned_without_a_folder(&g, chosen);
}

/* Whatever kernel the table names for a shape, it runs where the mode allows its arithmetic; where not, the shape is
 * planned as without the table. */
static void tuned_shapes_keep_to_the_mode(void **state)
{
    (void)state;
    int used[RUNG_FAST + 1] = {0}, left[RUNG_FAST + 1] = {0};
    rung_context *context;
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.ldb = g.ldc = 512, g.k = g.lda = 256;
    g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
    gpu->devices = 3;
    gpu->arch = 90;
    setenv("RUNG_CACHE_DIR", "/nonexistent", 1);
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
        assert_ok(open_context(2, &context));
        assert_ok(rung_context_set_math(context, (rung_math)math));
        const char *planned = kernel_for(context, &g);
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *kernel = rung_kernel_at(i);
            if (kernel->role != RUNG_PRODUCTION || rung_tune_record(context, &g, kernel->name, 1.0) != RUNG_SUCCESS)
                continue;
            const int errs_more =
                kernel->arith == RUNG_TF32 || kernel->arith == RUNG_F16X3_CHAIN || kernel->arith == RUNG_F16X3_ALONE;
            const int allowed = kernel->arith == RUNG_F32 || math == RUNG_FAST || (math == RUNG_ACCURATE && !errs_more);
            assert_string_equal(kernel_for(context, &g), allowed ? kernel->name : planned);
            *(allowed ? &used[math] : &left[math]) += 1;
        }
        rung_context_destroy(context);
    }
    assert_true(used[RUNG_STRICT] > 1 && used[RUNG_STRICT] < used[RUNG_ACCURATE]);
    assert_true(left[RUNG_STRICT] > left[RUNG_ACCURATE] && left[RUNG_ACCURATE] > 0 && left[RUNG_FAST] == 0);
    unsetenv("RUNG_CACHE_DIR");
    gpu->devices = 2;
    gpu->arch = 80;
}

/* What a call has been through shows in no plan that is made after it. */
static void assert_plans_as_a_new_one(rung_context *context)
{
    rung_context *fresh;
    assert_ok(open_context(rung_context_device(context), &fresh));
    for (int64_t size = 24; size <= 1536; size *= 4) {
        static char text[2][1 << 14];
        rung_gemm g;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = g.n = g.ldb = g.ldc = size, g.k = g.lda = DEEP + size; /* of no other test: not planned yet */
        g.a = (float *)4096, g.b = (float *)((int64_t)1 << 40), g.c = (float *)((int64_t)1 << 41);
        for (int i = 0; i < 2; i++) {
            rung_plan *plan;
            assert_ok(rung_plan_create(&plan, i ? fresh : context, &g));
            rung_plan_print(plan, text[i], sizeof text[i]);
            rung_plan_destroy(plan);
        }
        assert_string_equal(text[0], text[1]);
    }
    rung_context_destroy(fresh);
}

/* Where memory for packed operands or partial sums is not to be had, a kernel that needs none answers, this once. */
static void a_full_gpu_is_no_failure(void **state)
{
    (void)state;
    rung_context *context;
    rung_plan *plan;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, 64 * DEEP * 4), *b = device_memory(0, 64 * DEEP * 4),
          *c = device_memory(0, 64 * 64 * 4);
    for (int i = 0; i < 64 * DEEP; i++)
        a[i] = (float)(i % 7 - 3), b[i] = (float)(i % 5 - 2);
    int64_t left = gpu->memory_left;
    gpu->memory_left = 1000;
    assert_true(run_deep(context, a, b, c, 64) > 1000);
    assert_ok(rung_context_synchronize(context));
    gpu->memory_left = left;
    for (int i = 0; i < 64 * 64; i++) {
        float sum = 0.0f;
        for (int k = 0; k < DEEP; k++)
            sum += a[i / 64 * DEEP + k] * b[k * 64 + i % 64];
        assert_true(c[i] == sum);
    }
    for (int64_t rows = 1; rows <= 64; rows *= 8) { /* once there is room the planned kernel runs */
        rung_gemm g = deep(a, b, c, 64);
        g.m = rows;
        rung_context_destroy(context);
        assert_ok(open_context(0, &context));
        assert_ok(rung_plan_create(&plan, context, &g));
        gpu->memory_left = 1000;
        for (int i = 0; i < 4; i++) /* what comes again may be kept */
            assert_ok(i < 2 ? rung_plan_run(plan, &g) : rung_gemm_run(context, &g));
        gpu->memory_left = left;
        assert_as_a_new_plan(context, plan, &g);
        rung_plan_destroy(plan);
    }
    free_device(a);
    free_device(b);
    free_device(c);
    assert_plans_as_a_new_one(context);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* Where there is room for an eighth of the workspace, a kernel that needs no more answers, and the room is used. */
static void an_eighth_of_the_memory_will_do(void **state)
{
    (void)state;
    enum { SIZE = 110 }; /* an eighth holds two parts of its k */
    rung_context *context;
    assert_ok(open_context(0, &context));
    float *a = device_memory(0, SIZE * DEEP * 4), *b = device_memory(0, SIZE * DEEP * 4),
          *c = device_memory(0, SIZE * SIZE * 4);
    for (int i = 0; i < SIZE * DEEP; i++)
        a[i] = (float)(i % 7 - 3), b[i] = (float)(i % 5 - 2);
    const int64_t left = gpu->memory_left, room = (1 << 20) + 65536; /* the least that is kept, and its counters */
    gpu->workspace_bytes = 0;
    gpu->memory_left = room;
    int64_t asked = run_deep(context, a, b, c, SIZE);
    gpu->memory_left = left;
    assert_ok(rung_context_synchronize(context));
    assert_true(asked > room && asked / 8 < room);
    assert_in_range(gpu->workspace_bytes, 1, room);
    for (int i = 0; i < SIZE * SIZE; i += 37) {
        float sum = 0.0f;
        for (int k = 0; k < DEEP; k++)
            sum += a[i / SIZE * DEEP + k] * b[k * SIZE + i % SIZE];
        assert_true(c[i] == sum);
    }
    free_device(a);
    free_device(b);
    free_device(c);
    assert_plans_as_a_new_one(context);
    rung_context_destroy(context);
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

enum { HOPPER = 2 }; /* the number of a GPU that no other test opens first as another chip */

/* Launches on it are told and computed by nobody. */
static void begin_hopper(void)
{
    gpu->devices = HOPPER + 1, gpu->arch = 90, gpu->idle = 1;
}

static void end_hopper(void)
{
    gpu->devices = HOPPER, gpu->idle = 0;
}

/* What the guard has counted is told once all of the context's products are over, also those on a stream that it has
 * left since. */
static void guard_counts_wait_for_every_stream(void **state)
{
    (void)state;
    enum { EDGE = 256 };
    int (*copy)(uintptr_t, const void *, size_t, void *), (*destroy)(void *);
    *(void **)&copy = dlsym(dlopen(stand_in, RTLD_NOW), "cuMemcpyHtoDAsync_v2");
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    const float last = 7.0f;
    rung_context *context;
    rung_guard_counts counts;
    rung_gemm g;
    begin_hopper();
    gpu->eager = 0;
    void *stream = stream_of(HOPPER);
    float *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = device_memory(HOPPER, EDGE * EDGE * sizeof(float));
    assert_ok(open_context(HOPPER, &context));
    assert_ok(rung_context_set_stream(context, stream));
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = EDGE;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    assert_ok(run_kernel(context, &g, tile_with(RUNG_F16X3, 90)));
    assert_int_equal(copy((uintptr_t)memory[2], &last, sizeof last, stream), 0); /* behind the product */
    assert_true(memory[2][0] != last);
    assert_ok(rung_context_set_stream(context, NULL));
    assert_ok(rung_context_guard_counts(context, &counts));
    assert_true(memory[2][0] == last);
    rung_context_destroy(context);
    assert_int_equal(destroy(stream), 0);
    for (int i = 0; i < 3; i++)
        free_device(memory[i]);
    end_hopper();
    assert_int_equal(gpu->faults, 0);
}

/* Returns how many matrices the launches of a kernel took together, one a block along z; the list may end early. */
static int64_t matrices_of(const char *kernel)
{
    int64_t sum = 0;
    unsigned z;
    for (const char *line = gpu->launched; strchr(line, '\n'); line = strchr(line, '\n') + 1)
        if (strncmp(line, kernel, strlen(kernel)) == 0 && sscanf(strchr(line, ' '), " %*ux%*ux%u", &z) == 1)
            sum += z;
    return sum;
}

/* A grid has room for 65535 along y and z: each kernel takes batches around it and beyond, or refuses them. The
 * stand-in refuses other grids, and looks where an operand's copy goes on that takes several launches. */
static void any_batch_fits_its_grid(void **state)
{
    (void)state;
    static const int64_t batches[] = {65536, 140000};
    enum { EDGE = 4, MOST = 140000 };
    rung_context *context;
    begin_hopper();
    assert_ok(open_context(HOPPER, &context));
    float *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = device_memory(HOPPER, ((size_t)MOST * EDGE * EDGE + 4) * sizeof(float));
    int taken = 0, turned = 0;
    for (int i = 0; i < rung_kernel_count(); i++)
        for (int form = 0; form < 8; form++) {
            const rung_kernel *k = rung_kernel_at(i);
            rung_gemm g;
            rung_plan *plan;
            rung_gemm_init(&g);
            g.layout = RUNG_ROW_MAJOR;
            g.trans_a = (rung_transpose)(form & 1), g.trans_b = (rung_transpose)(form >> 1 & 1);
            g.m = form & 1 ? 1 : EDGE, g.n = g.k = EDGE;
            g.lda = g.ldb = g.ldc = EDGE;
            g.a = memory[0] + (form & 1), g.b = memory[1] + (form >> 1 & 1), g.c = memory[2];
            g.batch = batches[form >> 2];
            g.stride_a = g.stride_b = g.stride_c = EDGE * EDGE;
            if (k->backend != RUNG_BACKEND_CUDA || k->role != RUNG_PRODUCTION ||
                rung_plan_create_kernel(&plan, context, &g, k->name) != RUNG_SUCCESS)
                continue;
            gpu->launched[0] = 0;
            if (rung_plan_run(plan, &g) != RUNG_SUCCESS || gpu->faults)
                fail_msg("%s, form %d, %lld matrices: %s", k->name, form, (long long)g.batch, rung_last_error());
            if (matrices_of("turn_operand") % g.batch != 0)
                fail_msg("%s, form %d: %lld of %lld matrices are turned", k->name, form,
                         (long long)matrices_of("turn_operand"), (long long)g.batch);
            turned += matrices_of("turn_operand") > 0;
            rung_plan_destroy(plan);
            taken++;
        }
    assert_true(taken > 100 && turned > 4);
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        free_device(memory[i]);
    end_hopper();
    assert_int_equal(gpu->faults + gpu->memory, 0);
}

/* What a context is used for in a life of it. */
enum { STAGED, ON_A_STREAM_OF_ANOTHER_CONTEXT, ACCURATE, LIVES, LATER_CALLS = 2 };

typedef struct life {
    int kind;
    product p;
    float *memory[3]; /* on the device */
    void *stream;     /* made in another context of the same device */
    long later_calls; /* of the last product, when nothing fails any more */
    char said[256];   /* of the first product, where it failed */
} life;

static rung_status live(rung_context *context, life *l)
{
    if (l->kind == ACCURATE)
        return run_kernel(context, &l->p.gemm, tile_with(RUNG_F16X3, 90));
    product_reset(&l->p);
    rung_status status = run_rung(context, &l->p.gemm);
    if (status == RUNG_SUCCESS)
        product_check(&l->p, "although a call failed");
    return status;
}

/* Asks a context what is no product. */
static rung_status ask(rung_context *context)
{
    rung_guard_counts counts;
    rung_status status = rung_context_guard_counts(context, &counts);
    return status == RUNG_SUCCESS ? rung_context_synchronize(context) : status;
}

/* Returns what the first product answered; the context is opened, used and closed. What failed once fails no more:
 * later products make the calls that they make without a failure, so that nothing stays lent that failed. */
static rung_status whole_life(life *l)
{
    rung_context *context;
    rung_status status = open_context(l->kind == ACCURATE ? HOPPER : 1, &context);
    snprintf(l->said, sizeof l->said, "%s", status == RUNG_SUCCESS ? "" : rung_last_error());
    if (status != RUNG_SUCCESS)
        return status;
    if (l->kind == ACCURATE) /* pointers that the driver cannot tell of count as the host's */
        assert_ok(rung_context_set_pointers(context, RUNG_POINTERS_DEVICE));
    if (status == RUNG_SUCCESS && l->stream)
        status = rung_context_set_stream(context, l->stream);
    if (status == RUNG_SUCCESS)
        status = live(context, l);
    if (status == RUNG_SUCCESS)
        status = ask(context);
    snprintf(l->said, sizeof l->said, "%s", status == RUNG_SUCCESS ? "" : rung_last_error());
    for (int i = 0; i < LATER_CALLS && !gpu->lost_call; i++) {
        const long before = gpu->calls;
        if (gpu->fail_call > before)
            break;
        assert_ok(live(context, l));
        l->later_calls = gpu->calls - before;
    }
    rung_context_destroy(context);
    return status;
}

static void life_begins(life *l, int kind)
{
    int (*push)(void *), (*pop)(void **), (*create)(void **, unsigned, int);
    void *popped;
    *(void **)&push = dlsym(dlopen(stand_in, RTLD_NOW), "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(dlopen(stand_in, RTLD_NOW), "cuCtxPopCurrent_v2");
    *(void **)&create = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamCreateWithPriority");
    *l = (life){.kind = kind};
    product_new(&l->p, RUNG_COL_MAJOR, 0, 0, kind == ACCURATE ? 256 : 40, kind == ACCURATE ? 128 : 30,
                kind == ACCURATE ? 128 : 20, kind == ACCURATE ? 0 : 1, 1, 1);
    l->p.gemm.beta = 1.0f;
    if (kind == ON_A_STREAM_OF_ANOTHER_CONTEXT) {
        assert_int_equal(push((void *)(uintptr_t)(FAKE_OTHER_CONTEXT + 2)), 0);
        assert_int_equal(create(&l->stream, 1, 0), 0);
        assert_int_equal(pop(&popped), 0);
    }
    if (kind == ACCURATE) {
        begin_hopper();
        for (int i = 0; i < 3; i++)
            l->memory[i] = device_memory(HOPPER, 256 * 256 * sizeof(float));
        l->p.gemm.a = l->memory[0], l->p.gemm.b = l->memory[1], l->p.gemm.c = l->memory[2];
    }
}

static void life_ends(life *l)
{
    int (*destroy)(void *);
    *(void **)&destroy = dlsym(dlopen(stand_in, RTLD_NOW), "cuStreamDestroy_v2");
    if (l->stream)
        assert_int_equal(destroy(l->stream), 0);
    for (int i = 0; i < 3 && l->memory[i]; i++)
        free_device(l->memory[i]);
    end_hopper();
    product_free(&l->p);
}

/* Finds the call-th name of the log. */
static void name_of_call(long call, char *name, size_t bytes)
{
    const char *at = gpu->log;
    for (long i = 1; i < call && strchr(at, ' '); i++)
        at = strchr(at, ' ') + 1;
    snprintf(name, bytes, "%.*s", (int)strcspn(at, " "), at);
}

/* Where that fails, nobody can give the thing back, or reach its context to do so. */
static int gives_back(const char *name)
{
    return strstr(name, "Free") || strstr(name, "Destroy") || strstr(name, "cuCtx");
}

/* Where no graph could be made, later products do without. */
static int changes_what_follows(const char *name)
{
    return strstr(name, "Graph") || strcmp(name, "cuStreamGetPriority") == 0;
}

/* Where a call fails and all after it, as on a GPU that is lost, the first one is told, not what fails because of it.
 */
static void assert_the_first_is_told(const life *l, long call, const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        life lost = *l;
        gpu->lost_call = call;
        gpu->fail_result = 719;
        whole_life(&lost);
        if (strcmp(lost.said, l->said) != 0)
            print_error("alone: %s\nbefore others: %s\n", l->said, lost.said);
        _exit(strcmp(lost.said, l->said) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("call %ld, %s, and all after it failing: another one is told", call, name);
}

static void each_call_of_a_life_fails(life *l)
{
    empty_log();
    assert_ok(whole_life(l));
    const long calls = gpu->calls, later = l->later_calls;
    int lost = gpu->memory + gpu->pinned + gpu->streams + gpu->events;
    char name[64];
    assert_true(calls > 10);
    for (long call = 1; call <= calls; call++) {
        empty_log();
        gpu->fail_call = call;
        gpu->fail_result = 719;
        l->later_calls = later;
        rung_status status = whole_life(l);
        name_of_call(call, name, sizeof name);
        empty_log();
        if (status != RUNG_SUCCESS && call % 3 == 0) /* a child each: not for all */
            assert_the_first_is_told(l, call, name);
        if (status != RUNG_SUCCESS && status != RUNG_DEVICE_ERROR)
            fail_msg("call %ld of %ld failing: %s: %s", call, calls, rung_status_name(status), rung_last_error());
        const int left = gpu->memory + gpu->pinned + gpu->streams + gpu->events;
        if (left > lost && !gives_back(name))
            fail_msg("call %ld of %ld, %s, failing: %d things are left open", call, calls, name, left - lost);
        lost = left;
        if (gpu->faults || gpu->pushed)
            fail_msg("call %ld of %ld, %s, failing: %d faults, %d contexts left current", call, calls, name,
                     gpu->faults, gpu->pushed);
        if (l->later_calls != later && !changes_what_follows(name))
            fail_msg("call %ld of %ld, %s, failing: a later product makes %ld calls of the driver in place of %ld",
                     call, calls, name, l->later_calls, later);
    }
    print_message("%ld driver calls failed one by one\n", calls);
    assert_ok(whole_life(l));
}

static void every_driver_call_fails_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < LIVES; kind++) {
        life l;
        life_begins(&l, kind);
        each_call_of_a_life_fails(&l);
        life_ends(&l);
    }
}

/* ---- what the lab's tools take ---- */

/* Uses each of the tools' calls once, up to the first that fails. */
static rung_status use_all(rung_tools *tools, void **memory, void **events, void **module, void **graph)
{
    const unsigned grid[3] = {1, 1, 1};
    float values[16], back[32], ms;
    int64_t left;
    void *function;
    for (int i = 0; i < 16; i++)
        values[i] = (float)i + 1.0f;
    rung_status status = rung_tools_alloc(tools, 2 * sizeof values, memory);
#define NEXT(call) status = status == RUNG_SUCCESS ? (call) : status
    NEXT(rung_tools_free_bytes(tools, &left));
    NEXT(rung_tools_fill(tools, *memory, 0, 32));
    NEXT(rung_tools_upload(tools, *memory, values, sizeof values));
    NEXT(rung_tools_copy(tools, (float *)*memory + 16, *memory, sizeof values));
    NEXT(rung_tools_event_create(tools, &events[0]));
    NEXT(rung_tools_event_create(tools, &events[1]));
    NEXT(rung_tools_event_record(tools, events[0]));
    NEXT(rung_tools_load(tools, tile_with(RUNG_F32, 80), module));
    NEXT(rung_tools_function(tools, *module, "f16x3_clear", &function));
    NEXT(rung_tools_launch(tools, function, grid, 32, 0, &function));
    NEXT(rung_tools_capture_begin(tools));
    NEXT(rung_tools_capture_end(tools, graph));
    NEXT(rung_tools_graph_launch(tools, *graph));
    NEXT(rung_tools_fill(tools, *memory, 0, 4)); /* still to come when its end is recorded */
    NEXT(rung_tools_event_record(tools, events[1]));
    NEXT(rung_tools_event_elapsed(tools, events[0], events[1], &ms));
    NEXT(rung_tools_download(tools, back, *memory, sizeof back));
    for (int i = 0; status == RUNG_SUCCESS && i < 32; i++) /* it is there, and all that came before was done */
        assert_true(back[i] == (i < 4 ? 0.0f : values[i % 16]));
    NEXT(rung_tools_synchronize(tools));
#undef NEXT
    return status;
}

static int open_things(void)
{
    return gpu->memory + gpu->pinned + gpu->pools + gpu->streams + gpu->events + gpu->libraries + gpu->graphs +
           gpu->pushed;
}

/* A product in panels whose second launch fails has written its first rows: the drop-ins ask, and do not have another
 * library add to them. One whose first launch fails has not. */
static void what_is_half_done_is_told(void **state)
{
    (void)state;
    enum { MOST = 16 };
    rung_context *context;
    product p;
    long launches[MOST];
    int count = 0;
    char name[64];
    assert_ok(open_context(0, &context));
    product_new(&p, RUNG_ROW_MAJOR, 0, 0, 140000, 61, 4, 0, 1, 5);
    const size_t bytes = p.count_c * sizeof(float);
    float *was = malloc(bytes), *c = pinned(NULL, bytes); /* which results reach at once */
    p.gemm.beta = -0.5f;
    product_reset(&p);
    rung_gemm g = p.gemm;
    g.c = c;
    memcpy(was, p.gemm.c, bytes);
    for (int i = 0; i < 2; i++) { /* the first opens what the second has */
        memcpy(c, was, bytes);
        empty_log();
        assert_ok(run_rung(context, &g));
    }
    assert_true(memcmp(c, was, bytes) != 0);
    for (long call = 1; call <= gpu->calls && count < MOST; call++) {
        name_of_call(call, name, sizeof name);
        if (strstr(name, "cuLaunchKernel"))
            launches[count++] = call;
    }
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        memcpy(c, was, bytes);
        empty_log();
        gpu->fail_call = launches[i];
        gpu->fail_result = 719;
        assert_int_equal(run_rung(context, &g), RUNG_DEVICE_ERROR);
        gpu->fail_call = 0;
        assert_int_equal(rung_context_wrote(context), i > 0);
        assert_int_equal(memcmp(c, was, bytes) != 0, i > 0);
    }
    g.ldc--; /* a call that is refused has written nothing, whatever the one before did */
    assert_int_equal(rung_gemm_run(context, &g), RUNG_INVALID_ARGUMENT);
    assert_int_equal(rung_context_wrote(context), 0);
    g.ldc++;
    assert_ok(run_rung(context, &g));
    assert_int_equal(rung_context_wrote(context), 0);
    rung_context_destroy(context);
    pinned(c, 0);
    free(was);
    product_free(&p);
    empty_log();
}

/* The lab's tools give back what they took, whichever driver's call fails. */
static void tools_give_back_what_they_take(void **state)
{
    (void)state;
    rung_tools *tools;
    empty_log();
    assert_ok(rung_tools_open(&tools, 0)); /* the GPU itself stays open */
    rung_tools_close(tools);
    int lost = open_things();
    long calls = 0;
    char name[64];
    for (long call = 0; call <= calls; call++) {
        void *memory = NULL, *events[2] = {NULL, NULL}, *module = NULL, *graph = NULL;
        empty_log();
        gpu->fail_call = call;
        gpu->fail_result = 719;
        rung_status status = rung_tools_open(&tools, 0);
        if (status == RUNG_SUCCESS)
            status = use_all(tools, &memory, events, &module, &graph);
        if (call == 0) {
            assert_ok(status);
            calls = gpu->calls;
            assert_true(calls > 20);
        }
        name_of_call(call, name, sizeof name);
        empty_log();
        for (int i = 0; i < 2 && tools; i++)
            rung_tools_event_destroy(tools, events[i]);
        if (tools) {
            rung_tools_graph_destroy(tools, graph);
            rung_tools_unload(tools, module);
            rung_tools_free(tools, memory);
        }
        rung_tools_close(tools);
        const int left = open_things();
        if (left > lost && (call == 0 || !gives_back(name)))
            fail_msg("call %ld of %ld of the tools, %s, failing leaves %d blocks, %d streams, %d events, %d libraries, "
                     "%d graphs, %d contexts pushed",
                     call, calls, name, gpu->memory, gpu->streams, gpu->events, gpu->libraries, gpu->graphs,
                     gpu->pushed);
        lost = left;
    }
    empty_log();
}

/* Whichever call of the driver fails while a kernel is launched, a rung too, its next but one run makes the calls that
 * it always makes: workspace that was lent has come back, and nothing is kept for nobody. */
static void any_kernel_goes_on_after_a_failure(void **state)
{
    (void)state;
    enum { M = 264, N = 200, K = 320, MOST = 330 * 330 };
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, MOST);
    rung_gemm g;
    int kernels = 0;
    char name[64];
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = M, g.n = g.ldb = g.ldc = N, g.k = g.lda = K;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    for (int i = 0; i < rung_kernel_count(); i++) {
        rung_plan *plan;
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->backend != RUNG_BACKEND_CUDA || kernel->role == RUNG_REDUCE ||
            rung_plan_create_kernel(&plan, context, &g, kernel->name) != RUNG_SUCCESS)
            continue;
        kernels++;
        empty_log();
        assert_ok(rung_plan_run(plan, &g));
        assert_ok(rung_plan_run(plan, &g));
        empty_log();
        assert_ok(rung_plan_run(plan, &g));
        const long calls = gpu->calls;
        int lost = open_things();
        for (long call = 1; call <= calls; call++) {
            empty_log();
            gpu->fail_call = call;
            gpu->fail_result = 719;
            rung_plan_run(plan, &g);
            name_of_call(call, name, sizeof name);
            empty_log();
            assert_ok(rung_plan_run(plan, &g));
            empty_log();
            assert_ok(rung_plan_run(plan, &g));
            if (gpu->calls != calls && !changes_what_follows(name))
                fail_msg("%s, after call %ld of %ld, %s, had failed: it makes %ld calls", kernel->name, call, calls,
                         name, gpu->calls);
            if (open_things() > lost && !gives_back(name))
                fail_msg("%s, after call %ld of %ld, %s, had failed: %d things more are open", kernel->name, call,
                         calls, name, open_things() - lost);
            lost = open_things();
        }
        rung_plan_destroy(plan);
    }
    print_message("%d kernels\n", kernels);
    assert_true(kernels > 80);
    close_idle_hopper(context, memory);
}

/* Every kernel of the reduce ladder adds by its name, and no other one does. */
static void only_what_adds_is_taken_for_sums(void **state)
{
    (void)state;
    float *memory[3];
    rung_context *context = open_idle_hopper(memory, 1000);
    rung_tools *tools;
    assert_ok(rung_tools_open(&tools, 2));
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        gpu->launched[0] = 0;
        const rung_status status = rung_tools_reduce(tools, kernel->name, 1000, memory[0], memory[1]);
        assert_int_equal(status, kernel->role == RUNG_REDUCE ? RUNG_SUCCESS : RUNG_INVALID_ARGUMENT);
        if ((kernel->role == RUNG_REDUCE) != (strstr(gpu->launched, kernel->name) != NULL))
            fail_msg("%s: '%s' was launched", kernel->name, gpu->launched);
    }
    assert_int_equal(rung_tools_reduce(tools, "no_such", 1000, memory[0], memory[1]), RUNG_INVALID_ARGUMENT);
    assert_string_equal(rung_last_error(), "no kernel of the reduce ladder is called 'no_such'");
    assert_ok(rung_tools_reduce(tools, NULL, 1000, memory[0], memory[1]));
    rung_tools_close(tools);
    close_idle_hopper(context, memory);
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    stand_in = arguments[1];
    old_stand_in = arguments[2];
    if (count > 3) /* these tests alone, such as '*parts*' */
        cmocka_set_test_filter(arguments[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(discovery_failures_are_told),
        cmocka_unit_test(chips_have_their_kernels),
        cmocka_unit_test(devices_are_numbered),
        cmocka_unit_test(device_operands_are_launched_on_the_stream),
        cmocka_unit_test(host_operands_travel),
        cmocka_unit_test(pinned_operands_travel_directly),
        cmocka_unit_test(what_has_failed_leaves_operands_alone),
        cmocka_unit_test(what_is_half_done_is_told),
        cmocka_unit_test(panels_travel),
        cmocka_unit_test(long_lines_travel),
        cmocka_unit_test(guard_counts_wait_for_every_stream),
        cmocka_unit_test(any_batch_fits_its_grid),
        cmocka_unit_test(staged_operands_and_parts_lie_apart),
        cmocka_unit_test(mixed_operands_are_refused),
        cmocka_unit_test(what_kernels_read_is_on_their_gpu),
        cmocka_unit_test(streams_of_another_gpu_are_refused),
        cmocka_unit_test(a_streams_address_may_be_anothers),
        cmocka_unit_test(a_forked_process_has_no_gpu),
        cmocka_unit_test(kernels_of_newer_chips_are_refused),
        cmocka_unit_test(no_launch_is_out_of_the_copy_engines_reach),
        cmocka_unit_test(out_of_device_memory_is_said),
        cmocka_unit_test(workspace_grows_under_queued_work),
        cmocka_unit_test(workspace_survives_failed_growth),
        cmocka_unit_test(workspace_passes_between_streams),
        cmocka_unit_test(a_large_workspace_takes_no_buffer),
        cmocka_unit_test(foreign_contexts_are_refused),
        cmocka_unit_test(recordings_of_other_threads_go_on),
        cmocka_unit_test(capture_is_not_disturbed),
        cmocka_unit_test(host_operands_are_not_recorded),
        cmocka_unit_test(workspace_of_a_graph_is_its_own),
        cmocka_unit_test(a_graph_without_a_buffer_allocates),
        cmocka_unit_test(modes_choose_their_arithmetic),
        cmocka_unit_test(tuned_shapes_are_kept_and_found),
        cmocka_unit_test(tuned_shapes_keep_to_the_mode),
        cmocka_unit_test(launches_in_a_row_are_one_graph),
        cmocka_unit_test(refused_operands_are_turned_beside_the_product),
        cmocka_unit_test(accurate_products_of_a_graph_share_zeros),
        cmocka_unit_test(a_failed_product_is_forgotten),
        cmocka_unit_test(zeros_are_cleared_after_a_failure),
        cmocka_unit_test(accurate_products_go_in_panels),
        cmocka_unit_test(products_keep_to_their_workspace),
        cmocka_unit_test(marks_of_many_blocks_have_room),
        cmocka_unit_test(a_plan_keeps_to_a_later_limit),
        cmocka_unit_test(parts_are_launched_as_products),
        cmocka_unit_test(blocks_are_shared_out_evenly),
        cmocka_unit_test(those_that_wait_may_overlap),
        cmocka_unit_test(repeated_products_are_launched_as_new_ones),
        cmocka_unit_test(little_memory_is_held),
        cmocka_unit_test(a_full_gpu_is_no_failure),
        cmocka_unit_test(an_eighth_of_the_memory_will_do),
        cmocka_unit_test(tools_give_back_what_they_take),
        cmocka_unit_test(any_kernel_goes_on_after_a_failure),
        cmocka_unit_test(only_what_adds_is_taken_for_sums),
        cmocka_unit_test(every_driver_call_fails_once),
    };
    return cmocka_run_group_tests(tests, open_gpu, NULL);
}
