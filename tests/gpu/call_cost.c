/* What a call costs on the CPU: products of random shapes, each called for the first time and then again, in
 * microseconds without what the GPU does. With a stand-in for libcuda no GPU is needed, and the driver's own time is
 * left out; with a peer the peer's calls are timed too. The number of estimates that a choice takes is the same on
 * every machine, and a test limits it. --slowest prints the N slowest calls; --plans prints the choices instead.
 * Usage: call_cost [--stand-in FILE] [--peer NAME] [--math MODE] [--shapes N] [--seed S] [--most-estimates X]
 * [--slowest N] [--plans] */
#include "fake_libcuda.h"
#include "lab/peer.h"
#include "rung_tools.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SIZE = 3000, MOST_FLOATS = (MOST_SIZE + 64) * (MOST_SIZE + 64), TEXT = 1 << 16 };

typedef struct options {
    const char *stand_in, *peer;
    rung_math math;
    int shapes, plans, slowest;
    uint64_t seed;
    double most_estimates;
} options;

static fake *stand_in; /* NULL: a real driver */
static float *operands[3];

static int fail(const char *what)
{
    fprintf(stderr, "call_cost: %s: %s\n", what, rung_last_error());
    return 1;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static uint64_t next(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t z = *seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Draws a size, as often between 1 and 2 as between 1024 and 2048. */
static int64_t size_of(uint64_t *seed)
{
    return (int64_t)pow(MOST_SIZE, (double)(next(seed) >> 11) * 0x1p-53);
}

/* Half of the shapes are whole sixteens, as models have them; the others are of any size, some of them at odd
 * addresses. One in eight is a matrix times a vector. */
static rung_gemm product_of(uint64_t *seed)
{
    rung_gemm g;
    rung_gemm_init(&g);
    int whole = next(seed) & 1;
    int64_t sizes[3];
    for (int i = 0; i < 3; i++) {
        sizes[i] = size_of(seed);
        if (whole)
            sizes[i] = (sizes[i] + 15) / 16 * 16;
    }
    if (next(seed) % 8 == 0)
        sizes[next(seed) & 1] = 1;
    g.layout = RUNG_COL_MAJOR;
    g.m = sizes[0], g.n = sizes[1], g.k = sizes[2];
    g.trans_a = next(seed) & 1 ? RUNG_TRANS : RUNG_NO_TRANS;
    g.trans_b = next(seed) & 1 ? RUNG_TRANS : RUNG_NO_TRANS;
    int64_t pad = whole ? (int64_t)(next(seed) % 3) * 16 : (int64_t)(next(seed) % 4);
    g.lda = (g.trans_a ? g.k : g.m) + pad;
    g.ldb = (g.trans_b ? g.n : g.k) + pad;
    g.ldc = g.m + pad;
    g.a = operands[0], g.b = operands[1], g.c = operands[2];
    g.beta = next(seed) % 4 ? 0.0f : 1.0f;
    return g;
}

static void forget_calls(void)
{
    if (stand_in)
        stand_in->log[0] = '\0';
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Prints the slowest calls of a pass, with their shapes. */
static void print_slowest(const double *us, const options *o, uint64_t first_seed)
{
    double below = INFINITY;
    for (int n = 0; n < o->slowest; n++) {
        double most = 0.0;
        uint64_t seed = first_seed;
        rung_gemm its = product_of(&seed);
        seed = first_seed;
        for (int i = 0; i < o->shapes; i++) {
            const rung_gemm g = product_of(&seed);
            if (us[i] > most && us[i] < below) {
                most = us[i];
                its = g;
            }
        }
        if (most == 0.0)
            return;
        printf("  %9.2f us  %c%c %lld %lld %lld ld %lld %lld\n", most, its.trans_a ? 'T' : 'N', its.trans_b ? 'T' : 'N',
               (long long)its.m, (long long)its.n, (long long)its.k, (long long)its.lda, (long long)its.ldb);
        below = most;
    }
}

static void print(const char *name, const char *what, double *us, int count)
{
    qsort(us, (size_t)count, sizeof *us, ascending);
    printf("%-10s %-12s  median %7.2f  p90 %7.2f  p99 %7.2f  most %9.2f us of CPU time a call\n", name, what,
           us[count / 2], us[count * 9 / 10], us[count * 99 / 100], us[count - 1]);
}

typedef rung_status call(void *with, const rung_gemm *g);

static rung_status call_rung(void *with, const rung_gemm *g)
{
    return rung_gemm_run(with, g);
}

static rung_status call_peer(void *with, const rung_gemm *g)
{
    return ((lab_peer *)with)->run(with, g);
}

/* Makes two passes over the shapes. It waits for the GPU between calls, so that none meets a full queue. */
static int time_calls(const options *o, rung_tools *tools, const char *name, call *function, void *with)
{
    double *us = malloc((size_t)o->shapes * sizeof *us);
    static const char *const passes[] = {"first uses", "first seen", "seen before"};
    for (int pass = 0; us && pass < 3; pass++) {
        uint64_t seed = pass ? o->seed : o->seed + 1; /* the first pass loads kernels, for other shapes */
        for (int i = 0; i < o->shapes; i++) {
            rung_gemm g = product_of(&seed);
            forget_calls();
            double before = now_us();
            if (function(with, &g) != RUNG_SUCCESS)
                return fail(name);
            us[i] = now_us() - before;
            rung_tools_synchronize(tools);
        }
        print_slowest(us, o, pass ? o->seed : o->seed + 1);
        print(name, passes[pass], us, o->shapes);
    }
    free(us);
    return 0;
}

static int count_estimates(const options *o, rung_context *context)
{
    rung_recent_counts before, after;
    uint64_t seed = o->seed + 2;
    rung_recent_count(&before);
    for (int i = 0; i < o->shapes; i++) {
        rung_gemm g = product_of(&seed);
        forget_calls();
        if (rung_gemm_run(context, &g) != RUNG_SUCCESS)
            return fail("rung");
    }
    rung_recent_count(&after);
    double each = (double)(after.estimated - before.estimated) / (double)(after.planned - before.planned);
    printf("%.2f estimates a choice, over %lld choices\n", each, (long long)(after.planned - before.planned));
    if (o->most_estimates == 0.0 || each <= o->most_estimates)
        return 0;
    fprintf(stderr, "call_cost: at most %.2f were asked for\n", o->most_estimates);
    return 1;
}

/* Who was not asked could not have won: the choice costs what the first of the whole ranking does, or less where C is
 * cut. */
static int check_choices(const options *o, rung_context *context)
{
    static char text[TEXT];
    uint64_t seed = o->seed + 3;
    for (int i = 0; i < o->shapes; i++) {
        rung_gemm g = product_of(&seed);
        rung_plan *plan;
        double chosen, first;
        if (rung_plan_create(&plan, context, &g) != RUNG_SUCCESS)
            return fail("plan");
        rung_plan_print(plan, text, sizeof text);
        rung_plan_destroy(plan);
        const char *predicted = strstr(text, "predicted "), *ranking = strstr(text, "predicted us  kernel\n");
        if (!predicted || !ranking || sscanf(predicted, "predicted %lf", &chosen) != 1 ||
            sscanf(ranking, "predicted us  kernel %lf", &first) != 1 || chosen > first + 0.006 ||
            (chosen < first - 0.006 && !strstr(text, "rows and columns by"))) {
            fprintf(stderr, "call_cost: the choice is not the ranking's first:\n%s", text);
            return 1;
        }
    }
    return 0;
}

static int print_plans(const options *o, rung_context *context)
{
    static char text[TEXT];
    uint64_t seed = o->seed;
    for (int i = 0; i < o->shapes; i++) {
        rung_gemm g = product_of(&seed);
        rung_plan *plan;
        if (rung_plan_create(&plan, context, &g) != RUNG_SUCCESS)
            return fail("plan");
        rung_plan_print(plan, text, sizeof text);
        rung_plan_destroy(plan);
        char *ranking = strstr(text, "ranking ");
        printf("%.*s", ranking ? (int)(ranking - text) : (int)strlen(text), text);
    }
    return 0;
}

/* A Hopper GPU with memory enough, whose kernels do nothing. */
static int open_stand_in(const char *path)
{
    setenv("RUNG_LIBCUDA", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    fake_state_function *state;
    *(void **)&state = library ? dlsym(library, "fake_state") : NULL;
    if (!state) {
        fprintf(stderr, "call_cost: %s: %s\n", path, dlerror());
        return 1;
    }
    stand_in = state();
    stand_in->arch = 90;
    stand_in->idle = 1;
    stand_in->eager = ~0u;
    return 0;
}

static int run(const options *o, rung_tools *tools, rung_context *context)
{
    for (int i = 0; i < 3; i++)
        if (rung_tools_alloc(tools, (size_t)MOST_FLOATS * sizeof(float), (void **)&operands[i]) != RUNG_SUCCESS)
            return fail("memory");
    if (o->plans)
        return print_plans(o, context);
    lab_place place = {.tools = tools};
    lab_peer peer;
    int code = time_calls(o, tools, "rung", call_rung, context);
    if (!code && o->peer) {
        if (lab_peer_open(&place, o->peer, &peer) != RUNG_SUCCESS)
            return fail(o->peer);
        code = time_calls(o, tools, o->peer, call_peer, &peer);
        lab_peer_close(&peer);
    }
    code = code ? code : count_estimates(o, context);
    return code ? code : check_choices(o, context);
}

static int parse(int count, char **words, options *o)
{
    static const char *const modes[] = {"strict", "accurate", "fast"};
    for (int i = 1; i < count; i++) {
        const char *name = words[i], *value = i + 1 < count ? words[i + 1] : "";
        i++;
        if (strcmp(name, "--plans") == 0)
            o->plans = 1, i--;
        else if (strcmp(name, "--stand-in") == 0)
            o->stand_in = value;
        else if (strcmp(name, "--peer") == 0)
            o->peer = value;
        else if (strcmp(name, "--shapes") == 0)
            o->shapes = atoi(value);
        else if (strcmp(name, "--slowest") == 0)
            o->slowest = atoi(value);
        else if (strcmp(name, "--seed") == 0)
            o->seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--most-estimates") == 0)
            o->most_estimates = atof(value);
        else if (strcmp(name, "--math") == 0)
            for (int mode = 0; mode < 3; mode++)
                o->math = strcmp(value, modes[mode]) == 0 ? (rung_math)mode : o->math;
        else
            return 0;
    }
    return o->shapes > 0;
}

int main(int count, char **words)
{
    options o = {.shapes = 2000, .seed = 1};
    if (!parse(count, words, &o)) {
        fprintf(stderr, "usage: call_cost [--stand-in FILE] [--peer NAME] [--math strict|accurate|fast] [--shapes N] "
                        "[--seed S] [--most-estimates X] [--slowest N] [--plans]\n");
        return 2;
    }
    if (o.stand_in && open_stand_in(o.stand_in))
        return 1;
    rung_tools *tools;
    rung_context *context;
    rung_config config;
    if (rung_tools_open(&tools, 0) != RUNG_SUCCESS)
        return fail("GPU");
    rung_config_init(&config);
    config.device = 0;
    config.math = o.math;
    config.pointers = RUNG_POINTERS_DEVICE;
    config.stream = rung_tools_stream(tools);
    if (rung_context_create(&context, &config) != RUNG_SUCCESS)
        return fail("context");
    int code = run(&o, tools, context);
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, operands[i]);
    rung_tools_close(tools);
    return code;
}
