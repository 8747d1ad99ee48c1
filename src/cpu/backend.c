/* The CPU backend: answers the core's table of functions. */
#include "cpu/cpu.h"
#include "core/status.h"

#include <stdlib.h>

typedef struct cpu_state {
    int threads;
} cpu_state;

static rung_status cpu_open(const rung_config *config, void **state)
{
    cpu_state *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a CPU context");
    cpu->threads = config->threads ? config->threads : 1;
    *state = cpu;
    return RUNG_SUCCESS;
}

static void cpu_close(void *state)
{
    free(state);
}

static rung_status cpu_configure(void *state, const rung_config *config)
{
    ((cpu_state *)state)->threads = config->threads ? config->threads : 1;
    return RUNG_SUCCESS;
}

static int cpu_threads(const void *state)
{
    return ((const cpu_state *)state)->threads;
}

static int cpu_device(const void *state)
{
    (void)state;
    return RUNG_DEVICE_CPU;
}

static const char *cpu_unusable(void *state, const rung_kernel *kernel)
{
    (void)state, (void)kernel;
    return NULL;
}

static const char *cpu_estimate(void *state, const rung_kernel *kernel, const rung_problem *p, rung_choice *choice)
{
    (void)state, (void)kernel;
    choice->cost_us = 2e-4 * (double)p->m * (double)p->n * (double)p->k;
    choice->threads = 1;
    return NULL;
}

static rung_status cpu_run(void *state, const rung_choice *choice, const rung_problem *p)
{
    (void)state;
    rung_cpu_args args = {p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, p->c, p->ldc, p->alpha, p->beta,
                          p->trans_a, p->trans_b, choice->threads};
    return choice->kernel->cpu_entry(&args);
}

static rung_status cpu_ssum(void *state, int64_t n, const float *x, float *result)
{
    (void)state;
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    *result = sum;
    return RUNG_SUCCESS;
}

static rung_status cpu_synchronize(void *state)
{
    (void)state;
    return RUNG_SUCCESS;
}

const rung_backend rung_cpu_backend = {
    .name = "CPU",
    .open = cpu_open,
    .close = cpu_close,
    .configure = cpu_configure,
    .threads = cpu_threads,
    .device = cpu_device,
    .unusable = cpu_unusable,
    .estimate = cpu_estimate,
    .run = cpu_run,
    .ssum = cpu_ssum,
    .synchronize = cpu_synchronize,
};
