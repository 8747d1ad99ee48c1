/* Tells what the CUDA backend's host side does for drawn products, in front of the stand-in for libcuda: which kernel,
 * its launches, a sum over all that launches, copies and fills are given, one over the names of the driver's calls in
 * their order, and one over the plan as it is printed; of a kernel that refuses, the sentence. Every production kernel
 * and the planner's own choice is asked, with operands on the device and in host memory; of some products also the
 * least workspace limit that leaves their plan as it is, and what is said where one of the driver's calls fails, and
 * done when the same is asked for again. tests/gpu/launches.sh compares this with results/launches-gpu.txt. usage:
 * launches STAND_IN [every] (every: also the products that are summed up, and plans). Built with RUNGS it asks the
 * rungs of the ladder and of the sums instead, of which results/launches-ladder.txt tells. */
#include "fake_libcuda.h"
#include "sums.h"
#include "rung.h"
#include "rung_catalog.h"
#include "rung_tools.h"

#include "cuda/device/args.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERAND_FLOATS = 1 << 22, PLAN_BYTES = 1 << 16, MOST_BATCH = 8 };
enum { LIMITS_OF = 5, FAILS_OF = 3 }; /* of so many products, for time's sake, one */

#ifdef RUNGS
static const int are_rungs = 1; /* products are plain ones of operands on the device, as rungs take no others */
#else
static const int are_rungs;
#endif
static int are_folded;   /* rungs, once more: so many tiles along m that a grid's y has no room for them */
static int prints_plans; /* which are summed up otherwise */
static int has_few_sms;  /* rungs, once more: the first device has FEW_SMS multiprocessors, an odd number */
enum { FEW_SMS = 7 };

static fake *gpu;
static float *on_device[3], *on_host[3];
static void *arrays[3];

/* ---- products ---- */

typedef struct call {
    const char *kernel; /* NULL: the planner chooses */
    int arch, in_host, arrays, device_scalars;
    int huge;       /* it is planned and not run: there is no memory for it here */
    int capturing;  /* into a graph */
    int number;     /* among those of its kernel */
    int backwards;  /* one of its operands goes so through the batch */
    int64_t memory; /* bytes that the device still gives; negative: enough */
    rung_math math;
    int64_t limit;
    rung_gemm gemm;
    char said[2 * FAKE_LAUNCHED_BYTES];
} call;

static uint64_t dice;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)below);
}

/* Draws a size between 1 and 2^powers - 1, as often between 1 and 2 as in the upper half; half of the larger ones are
 * whole fours. */
static int near_powers; /* sizes are powers of two, one less, or one more: where rules change what they say */

static int are_tall; /* m or n passes what other products reach: rules that count a chip's threads say something else */

static int are_far; /* rows and matrices of a batch lie so far apart that 32 bits do not count it */

static int at_limits; /* sizes, tiles, steps and matrices are as many as a grid or a counter holds, or one off */

static int64_t draw_size(int powers)
{
    int64_t least = (int64_t)1 << draw(powers), size = least + draw((int)least);
    if (near_powers)
        return 2 * least + draw(3) - 1;
    return size > 8 && draw(2) ? size & -4 : size;
}

static void draw_operand(int64_t *ld, int64_t *stride, int64_t lines, int64_t length, int pad)
{
    *ld = length + pad;
    if (are_far && draw(3))
        *ld += (int64_t)1 << (27 + draw(11));
    if (at_limits && draw(8) == 0 && *ld < 1 << 27)
        *ld = ((int64_t)1 << (draw(2) ? 28 : 30)) + draw(3) - 1;
    *stride = lines * *ld + (pad ? 4 * draw(3) : 0);
    if (are_far && draw(3) == 0)
        *stride += (int64_t)1 << (27 + draw(11));
}

/* Draws sizes whose tiles, with the steps of each, are a power of two, or a size or a batch where what holds it ends.
 */
static void draw_at_limit(const call *c, rung_gemm *g)
{
    static const int64_t ends[] = {1 << 28, 1 << 30, INT32_MAX - 256, INT32_MAX - 65536, 1LL << 31, 1LL << 32},
                         batches[] = {65535, 65536, 1 << 20, 1LL << 31};
    const rung_kernel *k = c->kernel ? rung_kernel_find(c->kernel) : NULL;
    const int64_t bm = k && k->bm ? k->bm : 64, bn = k && k->bn ? k->bn : 64, bk = k && k->bk ? k->bk : 32;
    const int steps = draw(8), tiles = (draw(2) ? 31 : 12 + draw(21)) - steps, along_m = draw(tiles + 1), one = draw(3);
    int64_t *const sizes[] = {&g->m, &g->n, &g->k};
    g->layout = RUNG_ROW_MAJOR; /* m and n are the kernel's own */
    g->m = bm << along_m, g->n = bn << (tiles - along_m), g->k = bk << steps;
    *sizes[one] += draw(3) - 1;
    if (draw(3) == 0) {
        g->m = g->n = g->k = 1 + draw(40);
        *sizes[one] = ends[draw(6)] + draw(3) - 1;
    }
    g->batch = 1;
    if (draw(4) == 0) {
        g->m = 1 + draw(40), g->n = 1 + draw(40), g->k = 1 + draw(40);
        g->batch = batches[draw(4)] + draw(3) - 1;
    }
}

static int64_t floats_of(const rung_gemm *g, int64_t stride, int64_t lines, int64_t ld)
{
    return (g->batch - 1) * stride + lines * ld + 4;
}

/* Returns whether rows or matrices of an operand, or of C, lie 2^40 bytes apart or more, which is out of a tensor map's
 * reach. */
static int is_out_of_reach(const rung_gemm *g)
{
    const int64_t strides = g->batch > 1 ? g->stride_a | g->stride_b | g->stride_c : 0;
    return (g->lda | g->ldb | g->ldc | strides) >> 38 != 0;
}

/* Has one of the three operands go backwards through the batch, from the place of its last matrix on. */
static void go_backwards(rung_gemm *g, int which)
{
    int64_t *const strides[] = {&g->stride_a, &g->stride_b, &g->stride_c}, back = (g->batch - 1) * *strides[which];
    if (which == 0)
        g->a += back;
    else if (which == 1)
        g->b += back;
    else
        g->c += back;
    *strides[which] = -*strides[which];
}

/* Draws a product whose operands have room here. */
static rung_gemm draw_product(call *c)
{
    static const int64_t limits[] = {0, 0, 0, 0, 0, -1, 1 << 20, 12 << 20}, memories[] = {0, 1 << 18, 1 << 21, 1 << 24};
    rung_gemm g;
    int64_t lines[3];
    c->huge = at_limits || (!are_far && !are_folded && draw(8) == 0);
    do {
        const int pads[] = {0, 0, 0, 1, 2, 3, 4};
        int row = draw(2);
        rung_gemm_init(&g);
        g.layout = row ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
        g.trans_a = !are_rungs && draw(2) ? RUNG_TRANS : RUNG_NO_TRANS;
        g.trans_b = !are_rungs && draw(2) ? RUNG_TRANS : RUNG_NO_TRANS;
        const int powers = are_far ? 9 : 12;
        g.m = draw_size(powers), g.n = draw_size(powers), g.k = draw(40) ? draw_size(powers) : 0;
        if (c->huge)
            *(draw(3) ? &g.k : draw(2) ? &g.m : &g.n) <<= draw(14);
        if (draw(6) == 0)
            *(draw(2) ? &g.m : &g.n) = 1;
        if (are_tall) {
            g.m = 12000 + draw(4000), g.n = 1 + draw(250), g.k = 32 * (1 + draw(8));
            if (draw(2))
                g.n = g.m, g.m = 1 + draw(250);
        }
        if (are_folded) {
            g.layout = RUNG_ROW_MAJOR;
            const int bm = rung_kernel_find(c->kernel)->bm;
            g.m = bm * 65535LL * (1 + draw(3)) + draw(2 * bm + 1) - bm;
            g.n = 1 + draw(300), g.k = 1 + draw(40);
        }
        g.batch = are_rungs || draw(3) ? 1 : 1 + draw(MOST_BATCH);
        if (at_limits)
            draw_at_limit(c, &g);
        row = g.layout == RUNG_ROW_MAJOR;
        const int a_lines = row != (g.trans_a == RUNG_TRANS), b_lines = row != (g.trans_b == RUNG_TRANS);
        lines[0] = a_lines ? g.m : g.k, lines[1] = b_lines ? g.k : g.n, lines[2] = row ? g.m : g.n;
        draw_operand(&g.lda, &g.stride_a, lines[0], a_lines ? g.k : g.m, pads[draw(7)]);
        draw_operand(&g.ldb, &g.stride_b, lines[1], b_lines ? g.n : g.k, pads[draw(7)]);
        draw_operand(&g.ldc, &g.stride_c, lines[2], row ? g.n : g.m, pads[draw(7)]);
        g.lda += g.lda == 0, g.ldb += g.ldb == 0;
        if (draw(8) == 0)
            *(draw(2) ? &g.stride_a : &g.stride_b) = 0;
        if (at_limits && g.batch > 1 && draw(4) == 0)
            g.stride_b = -g.stride_b;
    } while (are_far ? is_out_of_reach(&g)
                     : !c->huge && !are_folded &&
                           (floats_of(&g, g.stride_a, lines[0], g.lda) > OPERAND_FLOATS ||
                            floats_of(&g, g.stride_b, lines[1], g.ldb) > OPERAND_FLOATS ||
                            floats_of(&g, g.stride_c, lines[2], g.ldc) > OPERAND_FLOATS));
    c->in_host = !c->kernel && !are_far && draw(4) == 0;
    float **at = c->in_host ? on_host : on_device;
    g.a = at[0] + (draw(4) ? 0 : draw(4)), g.b = at[1] + (draw(4) ? 0 : draw(4)), g.c = at[2] + (draw(6) ? 0 : draw(4));
    if (are_folded) /* nothing is read there: addresses will do */
        g.b += (int64_t)1 << 36, g.c += (int64_t)1 << 37;
    g.alpha = draw(8) ? 0.5f : 0.0f, g.beta = draw(2) ? 0.0f : 2.0f;
    c->arrays = !are_rungs && !c->in_host && draw(8) == 0;
    if (c->arrays)
        g.a_array = arrays[0], g.b_array = arrays[1], g.c_array = arrays[2];
    c->device_scalars = !are_rungs && !c->in_host && draw(8) == 0 ? 1 + draw(3) : 0; /* alpha, beta, both */
    g.alpha_device = c->device_scalars & 1 ? on_device[0] : NULL;
    g.beta_device = c->device_scalars & 2 ? on_device[0] + 1 : NULL;
    g.bias_kind = are_rungs || draw(3) ? RUNG_NO_BIAS : draw(2) ? RUNG_BIAS_PER_ROW : RUNG_BIAS_PER_COLUMN;
    g.bias = g.bias_kind ? at[0] + 8 : NULL;
    g.activation = are_rungs || draw(4) ? RUNG_IDENTITY : draw(2) ? RUNG_RELU : RUNG_GELU;
    c->math = are_rungs ? RUNG_FAST : (rung_math)draw(3);
    c->limit = limits[draw(8)];
    c->capturing = draw(10) == 0;
    c->memory = draw(6) ? -1 : memories[draw(4)];
    c->backwards = g.batch > 1 && !c->huge && !c->arrays && !are_far && !are_folded && c->number % 3 == 0;
    if (c->backwards)
        go_backwards(&g, c->number / 3 % 3);
    return g;
}

/* ---- what is said of one ---- */

static void say_call(call *c)
{
    static const char *const maths[] = {"strict", "accurate", "fast"}, *const scalars[] = {"", " alpha there",
                                                                                           " beta there",
                                                                                           " scalars there"};
    const rung_gemm *g = &c->gemm;
    char few[64];
    snprintf(few, sizeof few, "%s-%s", are_folded ? "folded" : "few", c->kernel ? c->kernel : "planned");
    snprintf(c->said, sizeof c->said,
             "%s sm_%d %s %s %c%c %lldx%lldx%lld ld %lld,%lld,%lld batch %lld%s%s%s bias %d act %d alpha %g beta %g "
             "limit %lld%s memory %lld:",
             near_powers                 ? "edges"
             : at_limits                 ? "limits"
             : are_tall                  ? "tall"
             : are_far                   ? "far"
             : are_folded || has_few_sms ? few
             : c->kernel                 ? c->kernel
                                         : "planned",
             c->arch, maths[c->math], g->layout == RUNG_ROW_MAJOR ? "row" : "col", g->trans_a == RUNG_TRANS ? 'T' : 'N',
             g->trans_b == RUNG_TRANS ? 'T' : 'N', (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->lda,
             (long long)g->ldb, (long long)g->ldc, (long long)g->batch,
             c->arrays      ? " arrays"
             : c->backwards ? " back"
                            : "",
             scalars[c->device_scalars], c->in_host ? " host" : "", (int)g->bias_kind, (int)g->activation,
             (double)g->alpha, (double)g->beta, (long long)c->limit, c->capturing ? " capturing" : "",
             (long long)c->memory);
}

static void add(call *c, const char *text)
{
    size_t length = strlen(c->said);
    snprintf(c->said + length, sizeof c->said - length, " %s", text);
}

/* Runs a plan and adds what that did. */
static void add_run(call *c, rung_context *context, rung_plan *plan)
{
    char sum[48];
    gpu->launched[0] = gpu->log[0] = 0;
    gpu->given = 0;
    if (plan && !c->huge &&
        (rung_plan_run(plan, &c->gemm) != RUNG_SUCCESS || rung_context_synchronize(context) != RUNG_SUCCESS))
        add(c, rung_last_error());
    for (char *at = gpu->launched; *at; at++)
        *at = *at == '\n' ? ';' : *at;
    snprintf(sum, sizeof sum, "given %08x calls %08x", folded(gpu->given), folded(mix_text(1, gpu->log)));
    add(c, gpu->launched);
    add(c, sum);
}

/* Adds what is planned where so much workspace is allowed. */
static void add_limited(call *c, rung_context *context, int64_t bytes)
{
    char text[128];
    rung_plan *plan = NULL;
    rung_status status = rung_context_set_workspace_limit(context, bytes);
    if (status == RUNG_SUCCESS)
        status = c->kernel ? rung_plan_create_kernel(&plan, context, &c->gemm, c->kernel)
                           : rung_plan_create(&plan, context, &c->gemm);
    snprintf(text, sizeof text, "limit %lld: %s %lld", (long long)bytes,
             status == RUNG_SUCCESS ? rung_plan_kernel(plan) : "none",
             status == RUNG_SUCCESS ? (long long)rung_plan_workspace_bytes(plan) : 0);
    if (!are_rungs && status == RUNG_SUCCESS && rung_plan_workspace_bytes(plan) > bytes)
        gpu->faults++; /* it takes more than it may */
    add(c, text);
    rung_plan_destroy(plan);
}

/* Returns a sum over the plan where so much workspace is allowed, or over the sentence that refuses. */
static uint64_t plan_within(const call *c, rung_context *context, int64_t limit)
{
    char text[PLAN_BYTES];
    rung_plan *plan = NULL;
    rung_status status = rung_context_set_workspace_limit(context, limit);
    if (status == RUNG_SUCCESS)
        status = c->kernel ? rung_plan_create_kernel(&plan, context, &c->gemm, c->kernel)
                           : rung_plan_create(&plan, context, &c->gemm);
    if (status == RUNG_SUCCESS)
        rung_plan_print(plan, text, sizeof text);
    uint64_t sum = mix_text(1, status == RUNG_SUCCESS ? text : rung_last_error());
    rung_plan_destroy(plan);
    return sum;
}

/* Adds the least limit that leaves the plan as it is without one: what a plan counts against the limit shows there, to
 * the byte, also where it counts more than it takes. */
static void add_least_limit(call *c, rung_context *context)
{
    const int64_t most = (int64_t)1 << 36;
    const uint64_t wanted = plan_within(c, context, most);
    int64_t low = 0, high = most; /* 0 is no limit; it is not asked */
    char text[48];
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(plan_within(c, context, middle) == wanted ? &high : &low) = middle;
    }
    snprintf(text, sizeof text, "least limit %lld", (long long)high);
    add(c, text);
}

/* Makes one of the driver's calls of a run fail, in a context of its own, and adds which one, what is said, and what
 * the next run gives. */
static void add_failing_run(call *c, const rung_config *config)
{
    static const int results[] = {1, 2, 700, 719};
    rung_context *context = NULL;
    rung_plan *plan = NULL;
    char text[64];
    const uint64_t sum = mix_text(1, c->said);
    if (c->huge)
        return;
    rung_status status = rung_context_create(&context, config);
    if (status == RUNG_SUCCESS)
        status = c->kernel ? rung_plan_create_kernel(&plan, context, &c->gemm, c->kernel)
                           : rung_plan_create(&plan, context, &c->gemm);
    gpu->calls = 0;
    if (status == RUNG_SUCCESS)
        status = rung_plan_run(plan, &c->gemm);
    if (status == RUNG_SUCCESS)
        status = rung_context_synchronize(context);
    const long calls = gpu->calls;
    if (status == RUNG_SUCCESS && calls > 0) {
        rung_context_destroy(context); /* what the first run of a context does is what fails */
        if (rung_context_create(&context, config) != RUNG_SUCCESS)
            exit(2);
        rung_plan_destroy(plan);
        if ((c->kernel ? rung_plan_create_kernel(&plan, context, &c->gemm, c->kernel)
                       : rung_plan_create(&plan, context, &c->gemm)) != RUNG_SUCCESS)
            exit(2);
        gpu->calls = 0;
        gpu->fail_call = 1 + (long)(sum % (uint64_t)calls);
        gpu->fail_result = results[sum / (uint64_t)calls % 4];
        snprintf(text, sizeof text, "call %ld of %ld gives %d:", gpu->fail_call, calls, gpu->fail_result);
        add(c, text);
        status = rung_plan_run(plan, &c->gemm);
        if (status == RUNG_SUCCESS)
            status = rung_context_synchronize(context);
        add(c, status == RUNG_SUCCESS ? "done" : rung_last_error());
        gpu->fail_call = 0;
        add_run(c, context, plan);
    }
    rung_plan_destroy(plan);
    rung_context_destroy(context);
}

/* A plan runs twice: where little memory is left or a graph is captured, and as usual. Plans are remembered by a
 * thread, buffers by a context: each product has new ones. */
static void *run(void *of)
{
    call *c = of;
    rung_context *context = NULL;
    rung_plan *plan = NULL;
    rung_config config;
    char text[PLAN_BYTES], sum[48];
    rung_config_init(&config);
    config.device = c->arch == 90 && !has_few_sms; /* what a device is like is asked once */
    gpu->sms = has_few_sms ? FEW_SMS : 0;
    gpu->arch = c->arch;
    c->gemm = draw_product(c);
    if (c->arch == 90) /* the operands are another device's, as far as the driver knows */
        config.pointers = c->in_host ? RUNG_POINTERS_HOST : RUNG_POINTERS_DEVICE;
    config.math = c->math;
    config.workspace_limit_bytes = c->limit;
    say_call(c);
    if (rung_context_create(&context, &config) != RUNG_SUCCESS) {
        add(c, rung_last_error());
        return NULL;
    }
    rung_status status = c->kernel ? rung_plan_create_kernel(&plan, context, &c->gemm, c->kernel)
                                   : rung_plan_create(&plan, context, &c->gemm);
    if (status != RUNG_SUCCESS)
        add(c, rung_last_error());
    const int64_t enough = gpu->memory_left;
    if (c->memory >= 0)
        gpu->memory_left = c->memory;
    gpu->capturing = c->capturing;
    add_run(c, context, plan);
    gpu->memory_left = enough;
    gpu->capturing = 0;
    add_run(c, context, plan);
    text[0] = 0;
    if (plan)
        rung_plan_print(plan, text, sizeof text);
    if (prints_plans)
        puts(text);
    snprintf(sum, sizeof sum, "plan %08x", folded(mix_text(1, text)));
    add(c, sum);
    const int64_t bytes = plan ? rung_plan_workspace_bytes(plan) : 0;
    gpu->log[0] = 0;
    rung_plan_destroy(plan);
    const int64_t beside[] = {-1, 0, RUNG_TICKET_BYTES - 1, RUNG_TICKET_BYTES}; /* some families count counters, too */
    for (size_t i = 0; i < sizeof beside / sizeof *beside && bytes > 1; i++)
        add_limited(c, context, bytes + beside[i]);
    if (bytes > 1 && c->number % LIMITS_OF == 0)
        add_least_limit(c, context);
    rung_context_destroy(context);
    snprintf(sum, sizeof sum, "end %08x", folded(mix_text(1, gpu->log)));
    add(c, sum);
    if (c->number % FAILS_OF == 0)
        add_failing_run(c, &config);
    return NULL;
}

/* ---- all of them ---- */

/* Some products are printed, more are summed up in a line. */
static void tell(const char *kernel, int arch, int printed, int summed_up, int every)
{
    static call c;
    uint64_t all = 1;
    for (int i = 0; i < printed + summed_up; i++) {
        pthread_t thread;
        c.kernel = kernel;
        c.number = i;
        c.arch = arch;
        if (pthread_create(&thread, NULL, run, &c) || pthread_join(thread, NULL))
            exit(2);
        if (i < printed || every)
            puts(c.said);
        if (i >= printed)
            all = mix_text(all, c.said);
    }
    printf("%s%s sm_%d: %d more products %08x\n",
           near_powers   ? "edges-"
           : at_limits   ? "limits-"
           : are_tall    ? "tall-"
           : are_far     ? "far-"
           : are_folded  ? "folded-"
           : has_few_sms ? "few-"
                         : "",
           kernel ? kernel : "planned", arch, summed_up, folded(all));
}

static const int archs[] = {80, 90};

/* The planner's own choices on each chip, then every kernel, which gets the same products whatever kernels come and go.
 */
static void tell_set(uint64_t seed, int printed, int planned, int of_kernel_printed, int of_kernel, int every)
{
    for (int i = 0; i < 2; i++) {
        dice = (uint64_t)archs[i];
        tell(NULL, archs[i], printed, planned, every);
    }
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        dice = seed;
        if (k->backend == RUNG_BACKEND_CUDA && k->role == RUNG_PRODUCTION)
            tell(k->name, 90, of_kernel_printed, of_kernel, every);
    }
}

static void tell_production(int every)
{
    tell_set(7, 60, 600, 3, 200, every);
    near_powers = 1;
    tell_set(8, 20, 400, 0, 60, every);
    near_powers = 0, are_tall = 1;
    tell_set(9, 6, 100, 0, 20, every);
    are_tall = 0, are_far = 1; /* the stand-in reads no operand on the device */
    tell_set(10, 10, 150, 0, 60, every);
    are_far = 0, at_limits = 1;
    tell_set(11, 12, 200, 0, 100, every);
}

/* ---- rungs ---- */

/* Sums of so many floats, around where the number of blocks or of levels changes. */
static void tell_sums(const char *kernel)
{
    static const int64_t sizes[] = {0,     1,     2,       255,     256,     257,     2047,    2048,     2049,
                                    65536, 65537, 4194303, 4194304, 1 << 24, 1 << 29, 1 << 30, 3LL << 30};
    rung_tools *tools;
    gpu->arch = 90;
    if (rung_tools_open(&tools, 1) != RUNG_SUCCESS)
        exit(2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int by = -1; by <= 1; by++) {
            if (sizes[i] + by < 0)
                continue;
            gpu->launched[0] = gpu->log[0] = 0;
            gpu->given = 0;
            rung_status status = rung_tools_reduce(tools, kernel, sizes[i] + by, on_device[0], on_device[1]);
            for (char *at = gpu->launched; *at; at++)
                *at = *at == '\n' ? ';' : *at;
            printf("%s %lld:%s %s given %08x calls %08x\n", kernel, (long long)sizes[i] + by,
                   status == RUNG_SUCCESS ? "" : rung_last_error(), gpu->launched, folded(gpu->given),
                   folded(mix_text(1, gpu->log)));
        }
    rung_tools_close(tools);
}

static void tell_rungs(int every)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        dice = 11;
        if (k->backend == RUNG_BACKEND_CUDA && k->role == RUNG_LADDER) {
            tell(k->name, 90, 2, 80, every);
            has_few_sms = 1;
            tell(k->name, 90, 1, 40, every);
            has_few_sms = 0, are_folded = 1;
            tell(k->name, 90, 1, 12, every);
            are_folded = 0, at_limits = 1;
            tell(k->name, 90, 1, 60, every);
            at_limits = 0;
        }
        if (k->role == RUNG_REDUCE)
            tell_sums(k->name);
    }
}

static void find(void *stand_in, const char *name, void *function)
{
    *(void **)function = dlsym(stand_in, name);
    if (!*(void **)function)
        exit(2);
}

int main(int count, char **words)
{
    void *stand_in = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    const int every = prints_plans = count > 2 && strcmp(words[2], "every") == 0;
    fake_state_function *state;
    int (*alloc)(unsigned long long *, size_t);
    unsigned long long at;
    if (!stand_in)
        return 2;
    setenv("RUNG_LIBCUDA", words[1], 1);
    find(stand_in, "fake_state", &state);
    find(stand_in, "cuMemAlloc_v2", &alloc);
    gpu = state();
    gpu->devices = 2;
    gpu->idle = gpu->in_order = 1; /* nothing is computed */
    for (int i = 0; i < 3; i++) {
        on_host[i] = calloc(OPERAND_FLOATS, sizeof(float));
        if (!on_host[i] || alloc(&at, OPERAND_FLOATS * sizeof(float)))
            return 2;
        on_device[i] = (float *)(uintptr_t)at;
        memset(on_device[i], 0, OPERAND_FLOATS * sizeof(float));
        if (alloc(&at, MOST_BATCH * 2 * sizeof(float *)))
            return 2;
        arrays[i] = (void *)(uintptr_t)at;
        for (int j = 0; j < 2 * MOST_BATCH; j++)
            ((float **)arrays[i])[j] = on_device[i];
    }
    if (are_rungs)
        tell_rungs(every);
    else
        tell_production(every);
    if (gpu->faults)
        printf("%d faults\n", gpu->faults);
    return gpu->faults != 0;
}
