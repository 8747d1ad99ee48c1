/* Operands whose rows, or matrices of a batch, lie so far apart that offsets pass 2^31 and 2^32 elements, in memory
 * that is reserved and hardly touched: a machine with 2 GiB runs it. Whole numbers, so that every kernel's result is
 * exact. On a GPU, or under the lens, which reserves as well. usage: far cpu|gpu [--seconds N] [all | KERNEL...]; by
 * default the library's choice and a production kernel of each family; all: these and every other kernel. A line a
 * kernel; after N seconds no other one begins. */
#define _GNU_SOURCE
#include "rung_catalog.h"
#include "rung_tools.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LONGEST = 512, MATRICES = 3, GUARD = 4, POISON = 0x7fc0dead };

#define FAR_BYTES (((size_t)17 << 30) + ((size_t)1 << 26))
#define NEAR_BYTES ((size_t)1 << 20)

typedef enum form { SINGLE, STRIDED, ARRAYS } form;

typedef struct operand {
    int64_t lines, length, ld, stride, batch;
    float *at, *values; /* at: in far memory; values: dense, on the host */
    size_t bytes;
} operand;

static rung_tools *tools; /* NULL: the CPU */
static uint64_t state = 1;
static int passed, refused, failed;
static float *scalars; /* alpha and beta in device memory; NULL: the call has them */

static void need(rung_status status, const char *what)
{
    if (status == RUNG_SUCCESS)
        return;
    printf("%s: %s\n", what, rung_last_error());
    exit(1);
}

/* On a GPU, whose driver takes long to map so much, blocks are kept for the next case: all are as large as the largest.
 */
static float *kept[3];
static int kept_count, keeps; /* not under the lens, which knows what was never written */

static float *device_memory(size_t bytes)
{
    void *memory = NULL;
    if (bytes > FAR_BYTES)
        need(RUNG_INVALID_ARGUMENT, "FAR_BYTES is too small");
    if (bytes > NEAR_BYTES && kept_count > 0)
        return kept[--kept_count];
    need(rung_tools_alloc(tools, keeps && bytes > NEAR_BYTES ? FAR_BYTES : bytes, &memory), "no memory");
    return memory;
}

static float *far_memory(size_t bytes)
{
    void *memory = NULL;
    if (tools)
        return device_memory(bytes);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("left out: %zu bytes of address space cannot be reserved here\n", bytes);
        exit(77);
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static void far_free(float *memory, size_t bytes)
{
    if (keeps && bytes > NEAR_BYTES && kept_count < 3)
        kept[kept_count++] = memory;
    else if (tools)
        rung_tools_free(tools, memory);
    else
        munmap(memory, bytes);
}

static void put(float *to, const float *from, size_t bytes)
{
    if (tools)
        need(rung_tools_upload(tools, to, from, bytes), "upload");
    else
        memcpy(to, from, bytes);
}

static void get(float *to, const float *from, size_t bytes)
{
    if (tools)
        need(rung_tools_download(tools, to, from, bytes), "download");
    else
        memcpy(to, from, bytes);
}

static float *line_of(const operand *x, int64_t matrix, int64_t line)
{
    return x->at + matrix * x->stride + line * x->ld;
}

/* Each line holds small whole numbers, and poison behind them. */
static void fill(operand *x)
{
    float line[LONGEST + GUARD];
    const uint32_t poison = POISON;
    for (int64_t i = 0; i < x->batch * x->lines; i++) {
        for (int64_t j = 0; j < x->length; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            line[j] = x->values[i * x->length + j] = (float)((int)(state >> 40) % 9 - 4);
        }
        for (int j = 0; j < GUARD; j++)
            memcpy(&line[x->length + j], &poison, 4);
        put(line_of(x, i / x->lines, i % x->lines), line, (size_t)(x->length + GUARD) * 4);
    }
}

/* The last line lies beyond 2^32 elements from the first, or twice as far: rows of a single matrix, or matrices of a
 * batch. */
static operand operand_new(int64_t lines, int64_t length, form f, int odd)
{
    operand x = {.lines = lines, .length = length, .batch = f == SINGLE ? 1 : MATRICES};
    int64_t reach = ((int64_t)1 << (tools ? 32 : 33)) + 64; /* on a CPU blocks of rows begin out there, too */
    x.ld = f != SINGLE || lines == 1 ? length + GUARD + odd : ((reach / (lines - 1) + 4) / 4 * 4) + odd;
    x.stride = f == SINGLE ? 0 : (reach / (MATRICES - 1) + 4) / 4 * 4 + odd;
    x.bytes = (size_t)(x.stride * (x.batch - 1) + x.ld * (lines - 1) + length + GUARD) * 4;
    x.at = far_memory(x.bytes);
    x.values = malloc((size_t)(x.batch * lines * length) * 4);
    fill(&x);
    return x;
}

static void operand_free(operand *x)
{
    far_free(x->at, x->bytes);
    free(x->values);
}

static double entry(const operand *x, int64_t matrix, int64_t i, int64_t j, int turned)
{
    int64_t line = turned ? j : i, column = turned ? i : j;
    return (double)x->values[(matrix * x->lines + line) * x->length + column];
}

/* Returns where C differs from what it has to be; 0: nowhere. */
static int is_wrong(const rung_gemm *g, const operand *a, const operand *b, const operand *c, const char *what)
{
    float line[LONGEST + GUARD];
    for (int64_t i = 0; i < c->batch * g->m; i++) {
        int64_t matrix = i / g->m, row = i % g->m;
        get(line, line_of(c, matrix, row), (size_t)(g->n + GUARD) * 4);
        for (int64_t j = 0; j < g->n + GUARD; j++) {
            uint32_t bits;
            double sum = 0.0;
            memcpy(&bits, &line[j], 4);
            for (int64_t l = 0; j < g->n && l < g->k; l++)
                sum += entry(a, matrix, row, l, g->trans_a != 0) * entry(b, matrix, l, j, g->trans_b != 0);
            if (j < g->n)
                sum = 2.0 * sum + 0.5 * entry(c, matrix, row, j, 0);
            if (j < g->n ? !((double)line[j] == sum) : bits != POISON) {
                printf("FAILED: %s: C[%lld][%lld] of matrix %lld is %g, not %g\n", what, (long long)row, (long long)j,
                       (long long)matrix, (double)line[j], j < g->n ? sum : (double)NAN);
                return 1;
            }
        }
    }
    return 0;
}

static float **list_of(const operand *x)
{
    float *list[MATRICES], *at = far_memory(sizeof list);
    for (int i = 0; i < MATRICES; i++)
        list[i] = line_of(x, i, 0);
    put(at, (const float *)(const void *)list, sizeof list);
    return (float **)(void *)at;
}

static void run_case(rung_context *context, const char *kernel, const int64_t size[3], int trans, form f, int odd)
{
    char what[160];
    rung_gemm g;
    rung_plan *plan = NULL;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = size[0], g.n = size[1], g.k = size[2];
    g.trans_a = trans & 2 ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = trans & 1 ? RUNG_TRANS : RUNG_NO_TRANS;
    g.alpha = 2.0f, g.beta = 0.5f;
    if (scalars)
        g.alpha = g.beta = NAN, g.alpha_device = scalars, g.beta_device = scalars + 1;
    operand a = operand_new(g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k, f, odd);
    operand b = operand_new(g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n, f, odd), c = operand_new(g.m, g.n, f, odd);
    g.a = a.at, g.b = b.at, g.c = c.at;
    g.lda = a.ld, g.ldb = b.ld, g.ldc = c.ld;
    g.stride_a = a.stride, g.stride_b = b.stride, g.stride_c = c.stride;
    g.batch = a.batch;
    if (f == ARRAYS) {
        g.a_array = (const float *const *)list_of(&a);
        g.b_array = (const float *const *)list_of(&b);
        g.c_array = list_of(&c);
    }
    rung_status status =
        kernel ? rung_plan_create_kernel(&plan, context, &g, kernel) : rung_plan_create(&plan, context, &g);
    snprintf(what, sizeof what, "%s %c%c:%lldx%lldx%lld %s%s", status == RUNG_SUCCESS ? rung_plan_kernel(plan) : kernel,
             trans & 2 ? 'T' : 'N', trans & 1 ? 'T' : 'N', (long long)g.m, (long long)g.n, (long long)g.k,
             f == SINGLE    ? "rows"
             : f == STRIDED ? "matrices"
                            : "matrices of arrays",
             odd ? " at odd addresses" : "");
    if (status == RUNG_SUCCESS && rung_plan_run(plan, &g) == RUNG_SUCCESS &&
        rung_context_synchronize(context) == RUNG_SUCCESS) {
        int wrong = is_wrong(&g, &a, &b, &c, what);
        failed += wrong;
        passed += !wrong;
    } else if (status == RUNG_UNSUPPORTED && kernel) {
        refused++;
    } else {
        failed++;
        printf("FAILED: %s: %s\n", what, rung_last_error());
    }
    rung_plan_destroy(plan);
    if (f == ARRAYS) {
        far_free((float *)(uintptr_t)g.a_array, MATRICES * sizeof(float *));
        far_free((float *)(uintptr_t)g.b_array, MATRICES * sizeof(float *));
        far_free((float *)(uintptr_t)g.c_array, MATRICES * sizeof(float *));
    }
    operand_free(&a);
    operand_free(&b);
    operand_free(&c);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Products with so little workspace that they go in panels: of C's rows, of its columns, and of k, whose panels begin
 * far out in A and B. Of whole k a single tile has too much then. Where beta is not known k
 * stays whole, so the last one is refused with scalars in device memory. */
static void run_in_panels(rung_context *context, const char *kernel)
{
    static const struct {
        int64_t size[3];
        int trans;
    } cases[] = {{{300, 20, 64}, 0}, {{20, 300, 64}, 1}, {{20, 12, 2048}, 2}};
    for (int i = 0; i < 3; i++) {
        rung_plan *plan;
        rung_gemm g;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = cases[i].size[0], g.n = g.ldc = cases[i].size[1], g.k = cases[i].size[2];
        g.trans_a = cases[i].trans & 2 ? RUNG_TRANS : RUNG_NO_TRANS,
        g.trans_b = cases[i].trans & 1 ? RUNG_TRANS : RUNG_NO_TRANS;
        g.lda = g.trans_a ? g.m : g.k, g.ldb = g.trans_b ? g.k : g.n;
        g.a = (const float *)(uintptr_t)((size_t)1 << 40); /* planning touches nothing */
        g.b = g.a + ((size_t)1 << 24), g.c = (float *)(uintptr_t)(g.b + ((size_t)1 << 24));
        need(rung_plan_create_kernel(&plan, context, &g, kernel), "no plan for a product in panels");
        need(rung_context_set_workspace_limit(context, rung_plan_workspace_bytes(plan) - 1), "workspace");
        rung_plan_destroy(plan);
        run_case(context, kernel, cases[i].size, cases[i].trans, SINGLE, 0);
        const float values[2] = {2.0f, 0.5f};
        scalars = device_memory(sizeof values);
        put(scalars, values, sizeof values);
        run_case(context, kernel, cases[i].size, cases[i].trans, SINGLE, 0);
        rung_tools_free(tools, scalars);
        scalars = NULL;
        need(rung_context_set_workspace_limit(context, 0), "workspace");
    }
}

/* kernel NULL: the library's choice. A kernel has one of the pairs of transposes in turn, the library all of them. */
static void run_kernel(rung_context *context, const char *kernel)
{
    static const int64_t sizes[][3] = {{67, 70, 36}, {130, 9, 200}, {6, 150, 70}, {70, 1, 300}, {1, 70, 300}};
    static int turn;
    int were[3] = {passed, failed, refused};
    double since = seconds_now();
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < (kernel ? 1 : 4); t++, turn++) {
            int trans = kernel ? turn % 4 : t, odd = turn >> 2 & 1;
            run_case(context, kernel, sizes[i], trans, SINGLE, odd);
            if (i < 2)
                run_case(context, kernel, sizes[i], trans, turn & 2 ? ARRAYS : STRIDED, odd);
        }
    printf("%-36s %3d passed, %d failed, %d refused, %.2f s\n", kernel ? kernel : "(library)", passed - were[0],
           failed - were[1], refused - were[2], seconds_now() - since);
}

static int is_first_of_family(const rung_kernel *k)
{
    for (int i = 0; rung_kernel_at(i) != k; i++) {
        const rung_kernel *other = rung_kernel_at(i);
        if (other->role == k->role && other->backend == k->backend &&
            (k->launch ? other->launch && strcmp(other->launch, k->launch) == 0 : 0))
            return 0;
    }
    return 1;
}

static int is_named(const rung_kernel *k, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], k->name) == 0)
            return 1;
    return 0;
}

/* What is run in the first pass, and, of `all`, in the second. */
static int is_wanted(const rung_kernel *k, int pass, int count, char **names)
{
    int all = count == 1 && strcmp(names[0], "all") == 0;
    if (count && !all)
        return pass == 0 && is_named(k, count, names);
    return pass == 0 ? is_first_of_family(k) : all && !is_first_of_family(k);
}

static void run_kernels(rung_context *context, rung_backend_id backend, double until, int count, char **names)
{
    int left = 0;
    if (!count || strcmp(names[0], "all") == 0)
        run_kernel(context, NULL);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *k = rung_kernel_at(i);
            if (k->role != RUNG_PRODUCTION || k->backend != backend || !is_wanted(k, pass, count, names))
                continue;
            rung_context_set_math(context, k->arith == RUNG_F32 ? RUNG_STRICT : RUNG_ACCURATE);
            if (seconds_now() > until)
                left++;
            else if (!rung_kernel_unusable(context, k)) {
                run_kernel(context, k->name);
                if (k->arith == RUNG_F16X3)
                    run_in_panels(context, k->name);
            }
        }
    if (left)
        printf("%d kernels left out: the time was over\n", left);
}

int main(int argc, char **argv)
{
    rung_config config;
    rung_context *context;
    int gpu = argc > 1 && strcmp(argv[1], "gpu") == 0, at = 2;
    double until = INFINITY;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3 && strcmp(argv[2], "--seconds") == 0) {
        until = seconds_now() + atof(argv[3]);
        at = 4;
    }
    rung_config_init(&config);
    config.device = gpu ? 0 : RUNG_DEVICE_CPU;
    config.threads = 2;
    config.pointers = RUNG_POINTERS_DEVICE;
    keeps = gpu && !getenv("RUNG_LIBCUDA");
    if (gpu) {
        need(rung_tools_open(&tools, 0), "no GPU");
        config.stream = rung_tools_stream(tools);
    }
    need(rung_context_create(&context, &config), "no context");
    run_kernels(context, gpu ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU, until, argc > at ? argc - at : 0, argv + at);
    rung_context_destroy(context);
    while (kept_count > 0)
        rung_tools_free(tools, kept[--kept_count]);
    rung_tools_close(tools);
    printf("%d passed, %d failed, %d refused\n", passed, failed, refused);
    return failed || !passed;
}
