/* The lens from the lab's side: opens it at run time, feeds it with operands, and checks its results against FP64. */
#define _GNU_SOURCE /* environ */
#include "lab/lens.h"
#include "lab/device/lab_shared.h"
#include "lab/host.h"
#include "lab/library.h"
#include "lab/place.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHECK_MOST = 1 << 16, DOT_BUDGET = 1 << 27, SHADOWED = 3, FINISH_THREADS = 256, OWN_OBJECTS = 2 };

const char *const lab_lens_faults[] = {
    "out of bounds", "never written", "race", "divergent barrier", "endless loop", "deadlock",
    "trap",          "misaligned",    NULL};

typedef struct lens_calls {
    void *library;
    int (*version)(void);
    void (*configure)(const rung_lens_options *options);
    void (*reset)(void);
    void (*operand)(const char *name, const void *at, int64_t rows, int64_t columns, int64_t ld);
    int (*launch_count)(void);
    const rung_lens_launch *(*launch_at)(int index);
    const char *(*missing)(const char *kernel);
    const char *(*compiler)(void);
    const char *(*gemm)(const rung_lens_own *own);
    const char *(*sum)(const rung_lens_own_sum *own);
} lens_calls;

static lens_calls lens;
static rung_tools *tools;
static rung_context *context;
static int made; /* own objects, so far */
static char scratch[512];
static volatile pid_t compiler; /* that runs now, or 0 */

/* Finds the lens: beside the library that this program uses, or where RUNG_LENS says. */
static const char *library_path(char *path, size_t bytes)
{
    char folder[PATH_MAX];
    const char *named = lab_named("RUNG_LENS");
    if (named)
        return named;
    lab_library_folder(folder, sizeof folder);
    snprintf(path, bytes, "%s/rung-lens/librung_lens.so", folder);
    return path;
}

static void find(void *call, const char *name)
{
    *(void **)call = dlsym(lens.library, name);
}

static rung_status load(const char *path)
{
    if (access(path, R_OK) != 0 && strchr(path, '/'))
        return lab_fail(RUNG_MISSING_LIBRARY,
                        "this build has no lens: %s is not there (it runs on x86-64 and is left out of builds with a "
                        "sanitizer)",
                        path);
    setenv("RUNG_LIBCUDA", path, 1);
    lens.library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!lens.library)
        return lab_fail(RUNG_MISSING_LIBRARY, "the lens does not load: %s", dlerror());
    find(&lens.version, "rung_lens_version");
    find(&lens.configure, "rung_lens_configure");
    find(&lens.reset, "rung_lens_reset");
    find(&lens.operand, "rung_lens_operand");
    find(&lens.launch_count, "rung_lens_launch_count");
    find(&lens.launch_at, "rung_lens_launch_at");
    find(&lens.missing, "rung_lens_missing");
    find(&lens.compiler, "rung_lens_compiler");
    find(&lens.gemm, "rung_lens_gemm");
    find(&lens.sum, "rung_lens_sum");
    if (!lens.version || lens.version() != RUNG_LENS_VERSION || !lens.gemm || !lens.sum)
        return lab_fail(RUNG_MISSING_LIBRARY, "%s is not the lens of this version", path);
    return RUNG_SUCCESS;
}

rung_status lab_lens_open(void)
{
    char path[PATH_MAX + 32];
    if (context)
        return RUNG_SUCCESS;
    if (!lens.library)
        LAB_TRY(load(library_path(path, sizeof path)));
    LAB_TRY(rung_tools_open(&tools, 0));
    rung_config config;
    rung_config_init(&config);
    config.device = 0;
    config.pointers = RUNG_POINTERS_DEVICE;
    config.stream = rung_tools_stream(tools);
    return rung_context_create(&context, &config);
}

const char *lab_lens_missing(const rung_kernel *kernel)
{
    return lens.missing(kernel->name);
}

int lab_lens_launches(void)
{
    return lens.launch_count();
}

const rung_lens_launch *lab_lens_launch(int index)
{
    return lens.launch_at(index);
}

/* The lens's device memory is this process's own: operands are filled and read in place. */

typedef struct operands {
    float *memory[3];
    float *a, *b, *c, *c_start;
    int64_t lda, ldb, ldc;
    int64_t words[2]; /* of A and of B, gaps between lines too, and what they were: */
    uint64_t hash[2];
} operands;

static uint64_t hash_of(const float *at, int64_t words)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < words; i++) {
        uint32_t bits;
        memcpy(&bits, at + i, sizeof bits);
        hash = lab_mix(hash ^ bits);
    }
    return hash;
}

static rung_status make_one(float **memory, float **at, int64_t rows, int64_t ld, int64_t offset)
{
    void *block = NULL;
    LAB_TRY(rung_tools_alloc(tools, (size_t)(rows * ld + offset) * 4 + 4, &block));
    *memory = block;
    *at = *memory + offset;
    return RUNG_SUCCESS;
}

static void fill(float *at, int64_t lines, int64_t length, int64_t line_step, int64_t step, uint64_t seed)
{
    lab_fill_args f = {
        .view = {at, line_step, step}, .lines = lines, .length = length, .seed = seed, .data = LAB_SIGNED};
    lab_host_fill(&f, 2);
}

typedef struct extent {
    int64_t rows, columns;
} extent;

static extent extent_of_a(const lab_lens_case *c)
{
    return c->problem == LAB_LENS_PRODUCT ? (extent){c->m, c->k}
           : c->problem == LAB_LENS_ADD   ? (extent){c->m, c->n}
                                          : (extent){c->n, c->m};
}

static rung_status make_operands(const lab_lens_case *c, operands *x)
{
    extent a = extent_of_a(c);
    uint64_t seed = c->seed;
    x->lda = (a.columns > 0 ? a.columns : 1) + c->pad;
    x->ldb = c->n + c->pad;
    x->ldc = c->n + c->pad;
    int64_t floats = a.rows * x->lda + (c->k > 0 ? c->k : 1) * x->ldb + c->m * x->ldc;
    if (floats > (int64_t)1 << 50 || lab_memory_lacks(floats * 4 * SHADOWED))
        return lab_fail(RUNG_OUT_OF_MEMORY,
                        "no memory for operands of %lld bytes, of which the lens notes every access",
                        (long long)floats * 4);
    LAB_TRY(make_one(&x->memory[0], &x->a, a.rows, x->lda, c->offset));
    LAB_TRY(make_one(&x->memory[1], &x->b, c->k > 0 ? c->k : 1, x->ldb, c->offset));
    LAB_TRY(make_one(&x->memory[2], &x->c, c->m, x->ldc, c->offset));
    fill(x->a, a.rows, a.columns, x->lda, 1, seed + 11);
    fill(x->b, c->n, c->k, 1, x->ldb, seed + 22);
    uint32_t poison = LAB_POISON;
    for (int64_t i = 0; i < c->m * x->ldc; i++)
        memcpy(&x->c[i], &poison, 4);
    x->c_start = NULL;
    if (c->beta != 0.0f) {
        fill(x->c, c->m, c->n, x->ldc, 1, seed + 33);
        x->c_start = malloc((size_t)(c->m * x->ldc) * 4);
        if (!x->c_start)
            return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a copy of C");
        memcpy(x->c_start, x->c, (size_t)(c->m * x->ldc) * 4);
    }
    x->words[0] = a.rows * x->lda;
    x->words[1] = (c->k > 0 ? c->k : 1) * x->ldb;
    x->hash[0] = hash_of(x->a, x->words[0]);
    x->hash[1] = hash_of(x->b, x->words[1]);
    lens.operand("A", x->a, a.rows, a.columns, x->lda);
    lens.operand("B", x->b, c->k, c->n, x->ldb);
    lens.operand("C", x->c, c->m, c->n, x->ldc);
    return RUNG_SUCCESS;
}

static void free_operands(operands *x)
{
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, x->memory[i]);
    free(x->c_start);
}

static int is_poison(const float *at)
{
    uint32_t bits;
    memcpy(&bits, at, 4);
    return bits == LAB_POISON;
}

/* Returns whether arithmetic made this NaN: that of memory which nobody has written keeps what stands behind its first
 * bits. */
static int is_made_of_numbers(float nan)
{
    uint32_t bits;
    memcpy(&bits, &nan, 4);
    return (bits & 0x3fffff) == 0;
}

/* Returns an error in u, which is 2^-24 of the summands' sizes. */
static double in_u(double error, double size)
{
    return error / (size > 0 ? size : 1) * 16777216.0;
}

static void sum_in_double(const float *values, int64_t n, double *sum, double *size)
{
    *sum = *size = 0;
    for (int64_t i = 0; i < n; i++) {
        *sum += values[i];
        *size += fabs(values[i]);
    }
}

/* Returns |c - c64| / (|A||B|) of one element in u, and gives c64. It is negative when it is not a number. */
static double element_error(const lab_lens_case *c, const operands *x, int64_t i, int64_t j, double *exact)
{
    double sum = 0, size = 0;
    for (int64_t p = 0; c->problem == LAB_LENS_PRODUCT && p < c->k; p++) {
        double product = (double)x->a[i * x->lda + p] * x->b[p * x->ldb + j];
        sum += product;
        size += fabs(product);
    }
    if (c->problem != LAB_LENS_PRODUCT) {
        sum = c->problem == LAB_LENS_ADD ? x->a[i * x->lda + j] : x->a[j * x->lda + i];
        size = fabs(sum);
    }
    sum *= c->alpha;
    size *= fabs(c->alpha);
    if (c->beta != 0.0f) {
        double old = (double)c->beta * x->c_start[i * x->ldc + j];
        sum += old;
        size += fabs(old);
    }
    *exact = sum;
    double error = in_u(fabs(x->c[i * x->ldc + j] - sum), size);
    return error >= 0 ? error : -1;
}

/* Returns whether blocks were left out of one of the first `count` launches. */
static int left_out(int count)
{
    for (int i = 0; i < count; i++)
        if (lens.launch_at(i)->blocks_run < lens.launch_at(i)->blocks)
            return 1;
    return 0;
}

/* Returns true where each block computes one tile of C and nothing else: a kernel of the plain launcher, or a user's
 * own without parts. */
static int is_tile_a_block(const lab_lens_case *c)
{
    if (c->kernel)
        return c->kernel->launch && strcmp(c->kernel->launch, "tiles") == 0;
    return c->problem == LAB_LENS_PRODUCT && !c->finish && c->parts <= 1;
}

/* Returns true where a tile was written in part, and says where. Tiles of which nothing was written are those of blocks
 * that did not run; a block that ran owes all of its tile. */
static int is_tile_in_part(const lab_lens_case *c, const operands *x, char *why, size_t why_bytes)
{
    const int64_t bm = c->kernel ? c->kernel->bm : c->bm, bn = c->kernel ? c->kernel->bn : c->bn;
    for (int64_t row = 0; row < c->m; row += bm)
        for (int64_t column = 0; column < c->n; column += bn) {
            int64_t lacking_i = -1, lacking_j = -1, written = 0;
            for (int64_t i = row; i < row + bm && i < c->m; i++)
                for (int64_t j = column; j < column + bn && j < c->n; j++) {
                    if (!is_poison(&x->c[i * x->ldc + j]))
                        written++;
                    else if (lacking_i < 0)
                        lacking_i = i, lacking_j = j;
                }
            if (written && lacking_i >= 0) {
                snprintf(why, why_bytes,
                         "C[%lld][%lld] was never written, and other results of its tile of %lld x %lld were",
                         (long long)lacking_i, (long long)lacking_j, (long long)bm, (long long)bn);
                return 1;
            }
        }
    return 0;
}

/* Returns whether a launch has touched an operand. */
static int touches_operands(void)
{
    static const char *const names[] = {"A", "B", "C"};
    for (int i = 0; i < lens.launch_count(); i++) {
        const rung_lens_launch *launch = lens.launch_at(i);
        for (int j = 0; j < launch->site_count; j++)
            for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
                if (launch->sites[j].space == RUNG_LENS_GLOBAL && strcmp(launch->sites[j].name, names[n]) == 0)
                    return 1;
    }
    return 0;
}

/* Says that an element was never written; returns 0. */
static int tell_missing(lab_lens_result *result, int64_t i, int64_t j)
{
    result->untouched = !touches_operands();
    snprintf(result->why, sizeof result->why, "C[%lld][%lld] was never written%s", (long long)i, (long long)j,
             result->untouched ? ", nor an operand touched: does the kernel take one parameter, "
                                 "'const __grid_constant__ rung_args g'?"
                               : "");
    return 0;
}

/* Returns whether C is as it was before. */
static int is_as_it_was(const lab_lens_case *c, const operands *x)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            const float *at = &x->c[i * x->ldc + j];
            if (x->c_start ? *at != x->c_start[i * x->ldc + j] : !is_poison(at))
                return 0;
        }
    return 1;
}

static int check(const lab_lens_case *c, const operands *x, lab_lens_result *result)
{
    const int launches = lens.launch_count();
    const int all_blocks =
        c->max_blocks == 0 || (launches > 0 && !left_out(launches)); /* asked for, or there are few */
    for (int i = 0; i < 2; i++)
        if (hash_of(i ? x->b : x->a, x->words[i]) != x->hash[i]) {
            snprintf(result->why, sizeof result->why, "operand %s was changed", i ? "B" : "A");
            return 0;
        }
    /* Launches that follow read what nobody wrote, and results mean nothing. */
    result->unjudged = left_out(launches - 1);
    if (result->unjudged)
        return 1;
    if (!all_blocks && !x->c_start && is_tile_a_block(c) && is_tile_in_part(c, x, result->why, sizeof result->why))
        return 0;
    int64_t elements = c->m * c->n, most = DOT_BUDGET / (c->k > 0 ? c->k : 1);
    most = most > CHECK_MOST ? CHECK_MOST : most < 64 ? 64 : most;
    /* A step prime to most widths walks over all rows and columns. */
    int64_t step = elements > most ? elements / most | 1 : 1;
    double bound = (c->kernel && c->kernel->arith == RUNG_TF32 ? 16400.0 : 0.0) + (double)c->k + 8.0;
    for (int64_t e = 0; e < elements; e += step) {
        int64_t i = e / c->n, j = e % c->n;
        if (is_poison(&x->c[i * x->ldc + j])) {
            if (!all_blocks)
                continue;
            return tell_missing(result, i, j);
        }
        if (!all_blocks && x->c_start && x->c[i * x->ldc + j] == x->c_start[i * x->ldc + j])
            continue;
        double exact, error = element_error(c, x, i, j, &exact);
        result->checked++;
        if (isnan(x->c[i * x->ldc + j])) {
            snprintf(result->why, sizeof result->why, "C[%lld][%lld] is not a number: %s", (long long)i, (long long)j,
                     is_made_of_numbers(x->c[i * x->ldc + j]) ? "the kernel makes one of numbers, as 0 / 0 does"
                     : c->pad > 0
                         ? "it comes from memory that nobody has written, such as the gaps behind rows of A and B"
                         : "it comes from memory that nobody has written");
            return 0;
        }
        if (!(error >= 0 && error <= bound)) {
            snprintf(result->why, sizeof result->why,
                     "C[%lld][%lld] is %.9g, not %.9g (off by %.3g u, allowed %.3g; u is 2^-24 of the summands' sizes)",
                     (long long)i, (long long)j, (double)x->c[i * x->ldc + j], exact, error, bound);
            return 0;
        }
        result->error_u = error > result->error_u ? error : result->error_u;
    }
    /* Of blocks that did not run nothing is expected, but those that ran owe something. */
    double exact, error;
    if (elements == 0 || result->checked || !is_as_it_was(c, x))
        return 1;
    error = x->c_start ? element_error(c, x, 0, 0, &exact) : -1; /* alpha 0 and beta 1 leave all as it was */
    return error >= 0 && error <= bound ? 1 : tell_missing(result, 0, 0);
}

static void configure(const lab_lens_case *c)
{
    rung_lens_options options = {.max_blocks = c->max_blocks, .patience_seconds = c->patience_seconds, .sms = c->sms};
    lens.configure(&options);
    lens.reset();
}

static void count_findings(lab_lens_result *result)
{
    result->launches = lens.launch_count();
    for (int i = 0; i < result->launches; i++) {
        const rung_lens_launch *launch = lens.launch_at(i);
        result->findings += launch->finding_count;
        result->findings_left_out += launch->findings_left_out;
    }
}

static rung_status launch_own(const lab_lens_case *c, const operands *x)
{
    int parts = c->parts > 1 ? c->parts : 1;
    void *workspace = NULL;
    if (c->finish) {
        LAB_TRY(rung_tools_alloc(tools, (size_t)(parts * c->m * c->n) * 4, &workspace));
        lens.operand("parts", workspace, parts * c->m, c->n, c->n);
    }
    rung_lens_own own = {.object = c->object,
                         .symbol = c->symbol,
                         .bm = c->bm,
                         .bn = c->bn,
                         .threads = c->threads,
                         .shared_bytes = c->shared_bytes,
                         .m = c->m,
                         .n = c->n,
                         .k = c->k,
                         .lda = x->lda,
                         .ldb = x->ldb,
                         .ldc = x->ldc,
                         .a = x->a,
                         .b = x->b,
                         .c = x->c,
                         .alpha = c->alpha,
                         .beta = c->beta,
                         .parts = parts,
                         .workspace = workspace};
    const char *why = lens.gemm(&own);
    if (!why && c->finish) {
        rung_lens_own finish = own;
        finish.symbol = c->finish;
        finish.bm = 1, finish.bn = finish.threads = FINISH_THREADS;
        finish.shared_bytes = 0; /* as on a GPU: the bytes that were asked for are the first kernel's */
        finish.parts = 1, finish.split_k = parts;
        why = lens.gemm(&finish);
    }
    rung_tools_free(tools, workspace);
    return why ? lab_fail(RUNG_DEVICE_ERROR, "%s", why) : RUNG_SUCCESS;
}

static rung_status launch_row(const lab_lens_case *c, const operands *x)
{
    rung_gemm gemm;
    rung_plan *plan = NULL;
    rung_gemm_init(&gemm);
    gemm.layout = RUNG_ROW_MAJOR;
    gemm.m = c->m, gemm.n = c->n, gemm.k = c->k;
    gemm.a = x->a, gemm.b = x->b, gemm.c = x->c;
    gemm.lda = x->lda, gemm.ldb = x->ldb, gemm.ldc = x->ldc;
    gemm.alpha = c->alpha, gemm.beta = c->beta;
    LAB_TRY(rung_plan_create_kernel(&plan, context, &gemm, c->kernel->name));
    rung_status status = rung_plan_run(plan, &gemm);
    rung_plan_destroy(plan);
    return status;
}

const char *lab_lens_whole(const rung_kernel *kernel)
{
    if (!kernel)
        return NULL;
    if (kernel->arith == RUNG_F16X3 || kernel->arith == RUNG_F16X3_CHAIN || kernel->arith == RUNG_F16X3_ALONE)
        return "they look at all data"; /* a guard finds lines that no block wrote, and sends its tiles the other way */
    return kernel->launch && strcmp(kernel->launch, "ladder_one_kernel") == 0 ? "they wait for each other" : NULL;
}

static rung_status run_product(const lab_lens_case *c, lab_lens_result *result)
{
    const double most = 1024.0 * 1024.0 * 1024.0; /* multiply-adds that take half a minute */
    lab_lens_case whole = *c;
    operands x = {0};
    memset(result, 0, sizeof *result);
    if (c->max_blocks && lab_lens_whole(c->kernel)) {
        if ((double)c->m * (double)c->n * (double)c->k > most)
            return lab_fail(RUNG_UNSUPPORTED,
                            "no block of %s stands for others, since %s: run every block (--all), or take a smaller "
                            "shape",
                            c->kernel->name, lab_lens_whole(c->kernel));
        whole.max_blocks = 0;
        c = &whole;
    }
    configure(c);
    rung_status status = make_operands(c, &x);
    if (status == RUNG_SUCCESS) {
        status = c->kernel ? launch_row(c, &x) : launch_own(c, &x);
        count_findings(result);
        if (status == RUNG_SUCCESS)
            result->right = check(c, &x, result);
        if (status == RUNG_DEVICE_ERROR &&
            result->findings) { /* what the lens stopped is a result, no failure of the lab */
            snprintf(result->why, sizeof result->why, "%s", lab_error());
            status = RUNG_SUCCESS;
        }
    }
    free_operands(&x);
    return status;
}

/* Runs a rung of the ladder of sums. */
static rung_status run_sum(const lab_lens_case *c, lab_lens_result *result)
{
    const int64_t n = c->m * c->n;
    void *x = NULL, *sum = NULL;
    double exact, size;
    memset(result, 0, sizeof *result);
    configure(c);
    LAB_TRY(rung_tools_alloc(tools, (size_t)(n + c->offset) * 4 + 4, &x));
    rung_status status = rung_tools_alloc(tools, 4, &sum);
    float *values = (float *)x + c->offset;
    if (status == RUNG_SUCCESS) {
        fill(values, 1, n, n, 1, 44);
        sum_in_double(values, n, &exact, &size);
        lens.operand("x", values, 1, n, n > 0 ? n : 1);
        lens.operand("sum", sum, 1, 1, 1);
        status = rung_tools_reduce(tools, c->kernel->name, n, values, sum);
        count_findings(result);
        double error = in_u(fabs(*(float *)sum - exact), size);
        int whole = c->max_blocks == 0; /* the sum needs all of its blocks */
        result->error_u = whole ? error : 0;
        result->checked = whole;
        result->right = status == RUNG_SUCCESS && (!whole || error <= (double)n + 8);
        if (!result->right)
            snprintf(result->why, sizeof result->why, "the sum of %lld floats is %.9g: off by %.3g u%s%s", (long long)n,
                     (double)*(float *)sum, error, status ? "; " : "", status ? lab_error() : "");
        if (status == RUNG_DEVICE_ERROR && result->findings)
            status = RUNG_SUCCESS;
    }
    rung_tools_free(tools, x);
    rung_tools_free(tools, sum);
    return status;
}

/* Compares with FP64 the sums that a kernel of the user's own left in out[]. */
static void check_sums(const lab_lens_case *c, const float *values, int64_t n, const float *out, int blocks,
                       lab_lens_result *result)
{
    double exact, size, sum = 0;
    int results = c->one_result ? 1 : blocks;
    sum_in_double(values, n, &exact, &size);
    result->checked = results;
    for (int i = 0; i < results; i++) {
        sum += out[i];
        if (!isnan(out[i]))
            continue;
        snprintf(result->why, sizeof result->why,
                 is_poison(&out[i]) ? "out[%d] was never written" : "out[%d] is not a number", i);
        return;
    }
    result->error_u = in_u(fabs(sum - exact), size);
    result->right = result->error_u <= (double)n + 8;
    if (!result->right)
        snprintf(result->why, sizeof result->why, "the sum of %lld floats is %.9g, not %.9g: off by %.3g u",
                 (long long)n, sum, exact, result->error_u);
}

static rung_status run_own_sum(const lab_lens_case *c, lab_lens_result *result)
{
    const int64_t n = c->m * c->n;
    int64_t by_tile = (n + c->bm - 1) / (c->bm > 0 ? c->bm : 1);
    int blocks = c->parts > 0 ? c->parts : by_tile > 0 ? (int)by_tile : 1;
    void *x = NULL, *out = NULL;
    const uint32_t poison = LAB_POISON;
    memset(result, 0, sizeof *result);
    configure(c);
    /* `x` comes first, then `out`, which has the blocks' results, their partial sums and the ticket. */
    LAB_TRY(rung_tools_alloc(tools, (size_t)(n + c->offset) * 4 + 4, &x));
    rung_status status = rung_tools_alloc(tools, (size_t)(2 * blocks + 1) * 4, &out);
    if (status == RUNG_SUCCESS) {
        float *values = (float *)x + c->offset, *results = out;
        fill(values, 1, n, n, 1, c->seed + 44);
        for (int i = 0; i < 2 * blocks; i++)
            memcpy(&results[i], &poison, 4);
        memset(&results[2 * blocks], 0, 4);
        lens.operand("x", values, 1, n, n > 0 ? n : 1);
        lens.operand("out", results, 1, c->one_result ? 1 : blocks, blocks);
        lens.operand("partials", results + blocks, 1, blocks, blocks);
        lens.operand("ticket", results + 2 * blocks, 1, 1, 1);
        rung_lens_own_sum own = {.object = c->object,
                                 .symbol = c->symbol,
                                 .blocks = blocks,
                                 .threads = c->threads,
                                 .shared_bytes = c->shared_bytes,
                                 .n = n,
                                 .x = values,
                                 .out = results,
                                 .partials = results + blocks,
                                 .ticket = (unsigned *)(results + 2 * blocks)};
        const char *why = lens.sum(&own);
        count_findings(result);
        if (!why && c->max_blocks == 0)
            check_sums(c, values, n, results, blocks, result);
        else if (why)
            snprintf(result->why, sizeof result->why, "%s", why);
        result->right |= !why && c->max_blocks != 0;
        if (why && !result->findings)
            status = lab_fail(RUNG_DEVICE_ERROR, "%s", why);
    }
    rung_tools_free(tools, x);
    rung_tools_free(tools, out);
    return status;
}

rung_status lab_lens_run(const lab_lens_case *c, lab_lens_result *result)
{
    if (c->kernel)
        return c->kernel->role == RUNG_REDUCE ? run_sum(c, result) : run_product(c, result);
    return c->problem == LAB_LENS_SUM ? run_own_sum(c, result) : run_product(c, result);
}

/* Adds up what sites counted. */

static void add_global(lab_lens_totals *t, const rung_lens_site *s)
{
    double asked = s->lanes * s->bytes;
    t->global_lines += s->lines;
    if (s->kind == RUNG_LENS_STORE || s->kind == RUNG_LENS_ATOMIC) {
        t->global_store_requests += s->requests;
        t->global_store_sectors += s->sectors;
        t->global_atomic_requests += s->kind == RUNG_LENS_ATOMIC ? s->requests : 0;
        t->global_atomic_sectors += s->kind == RUNG_LENS_ATOMIC ? s->sectors : 0;
        t->global_store_bytes += asked;
        t->global_store_used += s->bytes_used;
        t->global_store_moved += s->bytes_moved;
        return;
    }
    if (s->kind == RUNG_LENS_BULK) {
        t->bulk_requests += s->requests;
        t->bulk_bytes += s->bytes_used;
    } else if (s->kind == RUNG_LENS_ASYNC) {
        t->async_requests += s->requests;
        t->async_sectors += s->sectors;
    } else {
        t->global_load_requests += s->requests;
        t->global_load_sectors += s->sectors;
        t->global_load_lanes += s->lanes;
    }
    t->global_load_bytes += s->kind == RUNG_LENS_BULK ? s->bytes_used : asked;
    t->global_load_used += s->bytes_used;
    t->global_load_moved += s->bytes_moved;
}

static void add_shared(lab_lens_totals *t, const rung_lens_site *s)
{
    if (s->kind == RUNG_LENS_LOAD) {
        t->written_shared_load_requests += s->requests;
        t->written_shared_load_wavefronts += s->wavefronts;
        t->shared_load_requests += s->merged_requests;
        t->shared_load_wavefronts += s->merged_wavefronts;
        t->shared_load_ideal += s->merged_ideal;
        t->shared_load_bytes += s->lanes * s->bytes;
    } else if (s->kind == RUNG_LENS_ASYNC) {
        t->async_wavefronts += s->merged_wavefronts;
        t->async_ideal += s->merged_ideal;
    } else if (s->kind != RUNG_LENS_BULK) {
        t->shared_store_requests += s->merged_requests;
        t->shared_store_wavefronts += s->merged_wavefronts;
        t->shared_store_ideal += s->merged_ideal;
    }
}

void lab_lens_sum(lab_lens_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    for (int i = 0; i < lens.launch_count(); i++) {
        const rung_lens_launch *launch = lens.launch_at(i);
        totals->barriers += launch->barriers;
        totals->blocks += (double)launch->blocks;
        for (int j = 0; j < launch->site_count; j++) {
            const rung_lens_site *s = &launch->sites[j];
            if (s->space == RUNG_LENS_SHARED)
                add_shared(totals, s);
            else
                add_global(totals, s);
        }
    }
}

/* ---- a user's kernel file ---- */

/* Removes the scratch folder. It runs on a signal too, so it calls only what a handler may. */
static void remove_scratch(void)
{
    static const char *const left[] = {"own0.so", "own0.d", "own0.why", "own1.so", "own1.d", "own1.why"};
    char path[sizeof scratch + 16];
    size_t length = strlen(scratch);
    for (size_t i = 0; length && i < sizeof left / sizeof left[0]; i++) {
        memcpy(path, scratch, length);
        path[length] = '/';
        memcpy(path + length + 1, left[i], strlen(left[i]) + 1);
        unlink(path);
    }
    if (length)
        rmdir(scratch);
    scratch[0] = 0;
}

/* Ends the compiler first, which would go on writing into the folder, then removes the folder and ends. */
static void remove_and_end(int signal)
{
    if (compiler > 0 && kill(compiler, SIGTERM) == 0)
        waitpid(compiler, NULL, 0);
    remove_scratch();
    raise(signal); /* the handler was for once */
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof ending[0] };

static void remove_on_signals(void)
{
    struct sigaction once = {.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND}, before;
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending[i], &once, NULL);
}

static rung_status make_scratch(void)
{
    const char *under = lab_named("TMPDIR") ? lab_named("TMPDIR") : "/tmp";
    if (scratch[0])
        return RUNG_SUCCESS;
    snprintf(scratch, sizeof scratch, "%.400s/rung-lens-XXXXXX", under);
    if (!mkdtemp(scratch)) {
        scratch[0] = 0;
        return lab_fail(RUNG_INTERNAL, "cannot make a folder under %s", under);
    }
    remove_on_signals();
    return RUNG_SUCCESS;
}

/* Finds what the compiler said first. */
static void first_error(const char *object, char *why, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%.*s.why", (int)(strrchr(object, '.') - object), object);
    FILE *from = fopen(path, "r");
    why[0] = 0;
    if (from && fgets(why, (int)bytes, from))
        why[strcspn(why, "\n")] = 0;
    if (from)
        fclose(from);
}

/* Runs the compiler and returns whether it succeeded. It may compute for two minutes, and take ten where the machine
 * has other work. system() would ignore the keyboard's signal meanwhile. */
static int run_compiler(const char *cc, const char *source, const char *object)
{
    const char *const words[] = {"timeout", "600",  "sh",   "-c", "ulimit -St 120; exec \"$0\" \"$@\"",
                                 cc,        source, object, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t block, before;
    pid_t child;
    int status = -1;
    sigemptyset(&block);
    for (int i = 0; i < ENDING; i++)
        sigaddset(&block, ending[i]);
    sigprocmask(SIG_BLOCK, &block, &before); /* until the handler knows the child */
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &before);
    if (posix_spawnp(&child, words[0], &files, &attributes, (char *const *)words, environ) == 0)
        compiler = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    while (compiler > 0 && waitpid(compiler, &status, 0) < 0 && errno == EINTR)
        continue;
    compiler = 0;
    return status == 0;
}

rung_status lab_lens_compile(const char *source, char *object, size_t object_bytes)
{
    char path[PATH_MAX + 32], why[400];
    if (!lens.library)
        LAB_TRY(load(library_path(path, sizeof path)));
    const char *cc = lens.compiler();
    if (access(source, R_OK) != 0)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read %s", source);
    if (strchr(source, '\''))
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot compile %s: the lens takes no path with a ' in it", source);
    if (!cc || access(cc, X_OK) != 0)
        return lab_fail(RUNG_MISSING_LIBRARY, "cannot compile %s: the lens's compiler %s is not there", source,
                        cc ? cc : "lens_cc.sh");
    LAB_TRY(make_scratch());
    snprintf(object, object_bytes, "%s/own%d.so", scratch, made++ % OWN_OBJECTS);
    if (run_compiler(cc, source, object))
        return RUNG_SUCCESS;
    first_error(object, why, sizeof why);
    return lab_fail(RUNG_INVALID_ARGUMENT, "%s could not be compiled for the lens: %s", source,
                    why[0] ? why : "the compiler did not end within ten minutes: has this machine much other work?");
}

const char *lab_lens_sources(void)
{
    static char folder[700];
    const char *cc = lens.library ? lens.compiler() : NULL, *slash = cc ? strrchr(cc, '/') : NULL;
    snprintf(folder, sizeof folder, "%.*s/../cuda", slash ? (int)(slash - cc) : 1, slash ? cc : ".");
    return folder;
}

void *lab_lens_symbol(const char *object, const char *name)
{
    void *module = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    return module ? dlsym(module, name) : NULL;
}

void lab_lens_close(void)
{
    rung_context_destroy(context);
    context = NULL;
    if (tools)
        rung_tools_close(tools);
    tools = NULL;
    remove_scratch();
}
