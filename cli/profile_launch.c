/* rung profile --launch: the part that ncu watches. */
#include "cli/commands.h"
#include "cli/profile.h"
#include "lab/host.h"
#include "lab/measure.h"

#include <stdlib.h>

enum { MOST = 128 };

static rung_status run_product(rung_context *context, const char *name, const profile_size *s, const float *a,
                               const float *b, float *c)
{
    rung_plan *plan = NULL;
    rung_gemm g;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = s->m, g.n = s->n, g.k = s->k;
    g.a = a, g.b = b, g.c = c;
    g.lda = s->k, g.ldb = s->n, g.ldc = s->n;
    rung_status status = rung_plan_create_kernel(&plan, context, &g, name);
    if (status == RUNG_SUCCESS)
        status = rung_plan_run(plan, &g);
    rung_plan_destroy(plan);
    return status;
}

/* Gives the device so many random floats, as `host` has them. */
static rung_status operand(rung_tools *tools, int64_t floats, float *host, void **at)
{
    lab_fill_args f = {.view = {host, floats, 1}, .lines = 1, .length = floats, .seed = 5, .data = LAB_SIGNED};
    LAB_TRY(rung_tools_alloc(tools, (size_t)floats * 4, at));
    lab_host_fill(&f, 4);
    return rung_tools_upload(tools, *at, host, (size_t)floats * 4);
}

static rung_status launch_one(rung_tools *tools, rung_context *context, const char *name, const profile_size *s)
{
    void *a = NULL, *b = NULL, *c = NULL;
    int sum = profile_is_sum(s);
    int64_t a_floats = sum ? s->n : s->m * s->k, b_floats = s->k * s->n, c_floats = sum ? 1 : s->m * s->n;
    float *host = malloc((size_t)(a_floats > b_floats ? a_floats : b_floats) * 4);
    rung_status status = host ? operand(tools, a_floats, host, &a) : lab_fail(RUNG_OUT_OF_MEMORY, "no host memory");
    if (status == RUNG_SUCCESS && !sum)
        status = operand(tools, b_floats, host, &b);
    if (status == RUNG_SUCCESS)
        status = rung_tools_alloc(tools, (size_t)c_floats * 4, &c);
    if (status == RUNG_SUCCESS)
        status = sum ? rung_tools_reduce(tools, name, s->n, a, c) : run_product(context, name, s, a, b, c);
    if (status == RUNG_SUCCESS)
        status = rung_tools_synchronize(tools);
    free(host);
    rung_tools_free(tools, a);
    rung_tools_free(tools, b);
    rung_tools_free(tools, c);
    return status;
}

static rung_status open_gpu(rung_tools **tools, rung_context **context)
{
    rung_config config;
    LAB_TRY(rung_tools_open(tools, 0));
    rung_config_init(&config);
    config.device = 0;
    config.pointers = RUNG_POINTERS_DEVICE;
    config.stream = rung_tools_stream(*tools);
    return rung_context_create(context, &config);
}

int cli_profile_launch(const char *list, const profile_size *size)
{
    char copy[4096];
    const char *names[MOST];
    rung_tools *tools = NULL;
    rung_context *context = NULL;
    int count = cli_split(list, copy, sizeof copy, names, MOST), failed = 0;
    if (count < 0)
        return 1;
    rung_status status = open_gpu(&tools, &context);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "profile");
    for (int i = 0; i < count; i++) {
        status = launch_one(tools, context, names[i], size);
        if (status != RUNG_SUCCESS) {
            cli_fail_status(status, names[i]);
            failed = 1;
        }
    }
    rung_context_destroy(context);
    rung_tools_close(tools);
    return failed;
}
