/* The CPU backend: answers the core's table of functions. */
#include "cpu/cpu.h"
#include "core/status.h"
#include "cpu/threads.h"

#include <stdlib.h>

typedef struct cpu_state {
    int threads, asked;  /* `asked` is what the configuration says; 0: it names no number */
    const void *creator; /* an address in the code that made the context */
    unsigned features;
    rung_processor processor;
    rung_pool *pool;
    rung_gemm_plans *plans;
    rung_tiny_ways *ways;
    const rung_kernel *best; /* production kernel that this CPU can run; rows stand best first */
    rung_cpu_args plain;     /* of a plain product, but for its operands and threads */
} cpu_state;

static const char *cpu_unusable(void *state, const rung_kernel *kernel)
{
    const cpu_state *cpu = state;
    unsigned needs = rung_cpu_feature_bits(kernel->cpu_needs);
    if (needs & ~(unsigned)RUNG_CPU_KNOWN)
        return "needs a CPU feature that this version of Rung does not know";
    if (needs & ~cpu->features & RUNG_CPU_AVX512)
        return "needs AVX-512 (F, VL, BW, DQ), or RUNG_CPU_FEATURES hides it";
    if (needs & ~cpu->features & RUNG_CPU_AVX2)
        return "needs AVX2 and FMA, or RUNG_CPU_FEATURES hides them";
    if (needs & ~cpu->features & RUNG_CPU_AVX)
        return "needs AVX, or RUNG_CPU_FEATURES hides it";
    if (needs & ~cpu->features & RUNG_CPU_NEON)
        return "needs NEON, or RUNG_CPU_FEATURES hides it";
    return NULL;
}

static const rung_kernel *find_best(cpu_state *cpu)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->backend == RUNG_BACKEND_CPU && kernel->role == RUNG_PRODUCTION && !cpu_unusable(cpu, kernel))
            return kernel;
    }
    return NULL;
}

/* Returns the functions of a kernel that suit the processor. Both kinds compute the same bits. */
static const rung_cpu_kernel *family_of(const cpu_state *cpu, const rung_kernel *kernel)
{
    const rung_cpu_kernel *family = rung_cpu_kernel_of(kernel);
    return family && family->of_four && cpu->processor.units_of_four ? family->of_four : family;
}

static void cpu_close(void *state)
{
    cpu_state *cpu = state;
    rung_pool_destroy(cpu->pool);
    free(cpu->plans);
    free(cpu->ways);
    free(cpu);
}

static rung_status cpu_open(const rung_config *config, void **state)
{
    RUNG_TRY(rung_cpu_check_threads());
    RUNG_TRY(rung_cpu_check_features());
    cpu_state *cpu = calloc(1, sizeof *cpu);
    rung_pool *pool = cpu ? rung_pool_create() : NULL;
    if (!pool) {
        free(cpu);
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a CPU context");
    }
    *cpu = (cpu_state){.threads = config->threads ? config->threads : rung_cpu_default_threads(),
                       .asked = config->threads,
                       .features = rung_cpu_features(),
                       .processor = rung_cpu_processor(),
                       .pool = pool,
                       .plans = rung_gemm_plans_create(), /* without memory for them each is made anew */
                       .ways = rung_tiny_ways_create()};
    cpu->best = find_best(cpu);
    cpu->plain = (rung_cpu_args){.pool = pool, .cpu = &cpu->processor, .batch = 1};
    cpu->plain.plans = cpu->plans;
    cpu->plain.ways = cpu->ways;
    cpu->plain.kernel = cpu->best ? family_of(cpu, cpu->best) : NULL;
    *state = cpu;
    return RUNG_SUCCESS;
}

static rung_status cpu_configure(void *state, const rung_config *config)
{
    cpu_state *cpu = state;
    if (config->threads !=
        cpu->asked) { /* counting processors reads files, so it is not done when something else changes */
        cpu->threads = config->threads ? config->threads : rung_cpu_default_threads();
        cpu->asked = config->threads;
    }
    return RUNG_SUCCESS;
}

static void cpu_made_by(void *state, const void *return_address)
{
    ((cpu_state *)state)->creator = return_address;
}

static int cpu_threads(const void *state)
{
    const cpu_state *cpu = state;
    return rung_cpu_threads_now(cpu->asked, cpu->threads);
}

static int cpu_device(const void *state)
{
    (void)state;
    return RUNG_DEVICE_CPU;
}

/* Returns how many threads a product may have, and sends it to those that are to do it. */
static int choose_team(const cpu_state *cpu)
{
    int threads = rung_cpu_threads_now(cpu->asked, cpu->threads);
    const rung_team *team = threads > 1 ? rung_team_of_call(cpu->creator) : NULL;
    rung_pool_use_team(cpu->pool, team);
    return team ? rung_cpu_threads_of_team(team, cpu->asked, threads) : threads;
}

static rung_cpu_args make_args(const cpu_state *cpu, const rung_kernel *kernel, const rung_problem *p)
{
    rung_cpu_args args = {.kernel = family_of(cpu, kernel),
                          .m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .a = p->a,
                          .lda = p->lda,
                          .b = p->b,
                          .ldb = p->ldb,
                          .c = p->c,
                          .ldc = p->ldc,
                          .alpha = p->alpha,
                          .beta = p->beta,
                          .trans_a = p->trans_a,
                          .trans_b = p->trans_b,
                          .threads = choose_team(cpu),
                          .in_order = p->in_order,
                          .pool = cpu->pool,
                          .cpu = &cpu->processor,
                          .plans = cpu->plans,
                          .ways = cpu->ways,
                          .batch = p->batch,
                          .stride_a = p->stride_a,
                          .stride_b = p->stride_b,
                          .stride_c = p->stride_c,
                          .bias_kind = p->bias_kind,
                          .activation = p->activation,
                          .bias = p->bias,
                          .a_array = p->arrays ? p->a_array : NULL,
                          .b_array = p->arrays ? p->b_array : NULL,
                          .c_array = p->arrays ? p->c_array : NULL};
    if (kernel->role == RUNG_PRODUCTION) /* rungs take nothing transposed */
        rung_cpu_lay_flat(&args);
    return args;
}

/* Rows stand best first, so the cost only has to fall with the width of what a kernel needs. */
static const char *cpu_estimate(void *state, const rung_kernel *kernel, const rung_problem *p, rung_choice *choice)
{
    const cpu_state *cpu = state;
    double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
    unsigned needs = rung_cpu_feature_bits(kernel->cpu_needs);
    double flops_a_us = needs & RUNG_CPU_AVX512                  ? 2e5
                        : needs & RUNG_CPU_AVX2                  ? 1e5
                        : needs & (RUNG_CPU_AVX | RUNG_CPU_NEON) ? 5e4
                                                                 : 2e4;
    choice->threads = 1;
    choice->cost_us = flops / flops_a_us;
    if (kernel->role == RUNG_PRODUCTION) {
        rung_cpu_note note;
        rung_cpu_args args = make_args(cpu, kernel, p);
        args.note = &note;
        (void)kernel->cpu_entry(&args);
        choice->threads = note.threads;
        rung_note(choice, "%s (%s)", note.path, note.rule);
    }
    return NULL;
}

static rung_status cpu_run(void *state, const rung_choice *choice, const rung_problem *p, rung_rerun *rerun)
{
    (void)rerun;
    rung_cpu_args args = make_args(state, choice->kernel, p);
    return choice->kernel->cpu_entry(&args);
}

static const rung_kernel *cpu_plain_kernel(const void *state)
{
    return ((const cpu_state *)state)->best;
}

static rung_status run_on(cpu_state *cpu, int threads, const rung_plain *s)
{
    rung_cpu_args *args = &cpu->plain;
    args->threads = threads;
    args->k = s->k;
    args->c = s->c;
    args->alpha = s->alpha;
    args->beta = s->beta;
    if (s->n == 1 && s->ldc == 1) { /* a column whose elements lie side by side is a row: vectors run along it */
        args->m = 1;
        args->n = args->ldc = s->m;
        args->a = s->b;
        args->lda = s->ldb;
        args->b = s->a;
        args->ldb = s->lda;
        args->trans_a = !s->trans_b;
        args->trans_b = !s->trans_a;
    } else {
        args->m = s->m;
        args->n = s->n;
        args->a = s->a;
        args->lda = s->lda;
        args->b = s->b;
        args->ldb = s->ldb;
        args->ldc = s->ldc;
        args->trans_a = s->trans_a;
        args->trans_b = s->trans_b;
    }
    rung_cpu_lay_flat(args);
    return rung_cpu_gemm_plain(args);
}

static rung_status cpu_run_plain(void *state, const rung_plain *plain)
{
    return run_on(state, choose_team(state), plain);
}

static rung_status cpu_run_small(void *state, const rung_plain *small)
{
    return run_on(state, 1, small);
}

enum { SUM_LANES = 64, SUM_BLOCK = 2048 };

/* A block is added in lanes of FP32, as many as any vector has. Each lane adds BLOCK / LANES numbers only, so its error
 * stays small. */
static double sum_block(const float *x, int64_t n)
{
    float lanes[SUM_LANES] = {0};
    int64_t i = 0;
    for (; i + SUM_LANES <= n; i += SUM_LANES)
        for (int lane = 0; lane < SUM_LANES; lane++)
            lanes[lane] += x[i + lane];
    for (int lane = 0; i < n; i++, lane++)
        lanes[lane] += x[i];
    double sum = 0.0;
    for (int lane = 0; lane < SUM_LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static rung_status cpu_ssum(void *state, int64_t n, const float *x, float *result)
{
    (void)state;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK)
        sum += sum_block(x + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    *result = (float)sum;
    return RUNG_SUCCESS;
}

static rung_status cpu_synchronize(void *state)
{
    (void)state;
    return RUNG_SUCCESS;
}

const rung_backend rung_cpu_backend = {
    .name = "CPU",
    .id = RUNG_BACKEND_CPU,
    .open = cpu_open,
    .close = cpu_close,
    .made_by = cpu_made_by,
    .configure = cpu_configure,
    .threads = cpu_threads,
    .device = cpu_device,
    .unusable = cpu_unusable,
    .estimate = cpu_estimate,
    .run = cpu_run,
    .run_plain = cpu_run_plain,
    .run_small = cpu_run_small,
    .plain_kernel = cpu_plain_kernel,
    .ssum = cpu_ssum,
    .synchronize = cpu_synchronize,
};
