/* rung explain: what the library would do with a product, and why. It prints the whole plan, ranking and refusals. */
#include "cli/commands.h"
#include "cli/explain.h"
#include "lab/check.h"
#include "lab/explain.h"
#include "lab/names.h"
#include "lab/shape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *device, *kernel;
    int math, layout, chip, format, data; /* data -1: the product is not run */
    int64_t threads, pad;
} options;

/* A plan asks only the alignment of its operands: any aligned address that is not NULL will do. */
static void describe(const options *o, const lab_shape *s, rung_gemm *g)
{
    float *anywhere = (float *)(uintptr_t)4096;
    lab_shape_gemm(s, (rung_layout)o->layout, s->pad, g);
    g->a = g->b = g->c = anywhere;
}

static const cli_column columns[] = {{"shape", "shape", 24, -1},
                                     {"kernel", "kernel", 36, -1},
                                     {"workspace_bytes", "workspace", 12, 0},
                                     {"plan", "plan", 0, -1},
                                     {0}};

static int print_plan(const rung_plan *plan, const lab_shape *s, cli_format format)
{
    char shape[LAB_SHAPE_TEXT];
    int length = rung_plan_print(plan, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text)
        return cli_fail("no memory for the plan's text (%d bytes)", length);
    if (rung_plan_print(plan, text, (size_t)length + 1) > length) { /* the first time it had no memory for its list */
        free(text);
        return cli_fail("no memory to list the candidates");
    }
    if (format == CLI_TABLE) {
        fputs(text, stdout);
        format = CLI_COPY_ONLY;
    }
    cli_table table;
    lab_shape_print(s, shape);
    cli_table_begin(&table, format, columns);
    cli_text(&table, shape);
    cli_text(&table, rung_plan_kernel(plan));
    cli_number(&table, (double)rung_plan_workspace_bytes(plan));
    cli_text(&table, text);
    free(text);
    return CLI_PASS;
}

/* Lets the lens's Hopper stand in for a real one: plans depend on the device's count of multiprocessors and its
 * generation only. */
static int stand_in(const lab_chip *chip, rung_config *config)
{
    if (chip->arch != 90)
        return cli_usage("no plan for %s without it at hand: the lens stands in for h100 and h200 only", chip->name);
    if (lab_lens_open() != RUNG_SUCCESS)
        return cli_fail("%s", lab_error());
    config->device = 0;
    return CLI_PASS;
}

static int explain(const options *o, const lab_shape *shape, rung_context *context, const rung_kernel **chosen)
{
    rung_gemm g;
    rung_plan *plan;
    if (lab_sizes_check(shape->m, shape->n, shape->k, shape->batch, shape->pad) != RUNG_SUCCESS)
        return cli_usage("%s", lab_error());
    describe(o, shape, &g);
    rung_status status =
        o->kernel ? rung_plan_create_kernel(&plan, context, &g, o->kernel) : rung_plan_create(&plan, context, &g);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "explain");
    int code = print_plan(plan, shape, (cli_format)o->format);
    *chosen = rung_kernel_find(rung_plan_kernel(plan));
    rung_plan_destroy(plan);
    return code;
}

/* Returns the place of element (line, k) of an operand: a line is a row of op(A), a column of op(B). */
static lab_view view_of(float *at, int64_t ld, int k_is_contiguous)
{
    return k_is_contiguous ? (lab_view){at, ld, 1} : (lab_view){at, 1, ld};
}

static rung_status run_once(lab_place *place, rung_context *context, const options *o, const lab_shape *s,
                            lab_buffer *memory, rung_guard_counts *counts)
{
    rung_gemm g;
    rung_plan *plan;
    int row = o->layout == RUNG_ROW_MAJOR;
    describe(o, s, &g);
    const int64_t bytes[] = {g.stride_a * s->batch * 4, g.stride_b * s->batch * 4, g.stride_c * s->batch * 4};
    for (int i = 0; i < 3; i++) {
        LAB_TRY(lab_buffer_reserve(place, &memory[i], bytes[i]));
        LAB_TRY(lab_pattern(place, memory[i].at, LAB_POISON, (size_t)bytes[i] / 4)); /* between rows, too */
    }
    float *a = memory[0].at, *b = memory[1].at;
    for (int64_t e = 0; e < s->batch; e++) {
        lab_fill_args of_a = {view_of(a + e * g.stride_a, g.lda, row != (int)s->trans_a), s->m, s->k,
                              (uint64_t)e * 2 + 1, o->data};
        lab_fill_args of_b = {view_of(b + e * g.stride_b, g.ldb, row == (int)s->trans_b), s->n, s->k,
                              (uint64_t)e * 2 + 2, o->data | LAB_OF_B};
        LAB_TRY(lab_fill(place, &of_a));
        LAB_TRY(lab_fill(place, &of_b));
    }
    g.a = a;
    g.b = b;
    g.c = memory[2].at;
    LAB_TRY(o->kernel ? rung_plan_create_kernel(&plan, context, &g, o->kernel) : rung_plan_create(&plan, context, &g));
    rung_status status = rung_plan_run(plan, &g);
    rung_plan_destroy(plan);
    return status == RUNG_SUCCESS ? rung_context_guard_counts(context, counts) : status;
}

/* Runs the product once to tell which way the guard of accurate mode takes: the device decides that by the data. */
static int explain_guard(const options *o, const lab_shape *s, int device)
{
    lab_place place;
    lab_buffer memory[3] = {{0}};
    rung_context *context = NULL;
    rung_guard_counts counts = {0};
    rung_status status = lab_place_open(&place, device, (int)o->threads);
    if (status != RUNG_SUCCESS)
        return cli_fail("explain: %s", lab_error());
    status = lab_place_context(&place, (rung_math)o->math, &context);
    if (status == RUNG_SUCCESS)
        status = run_once(&place, context, o, s, memory, &counts);
    for (int i = 0; i < 3; i++)
        lab_buffer_free(&place, &memory[i]);
    rung_context_destroy(context);
    lab_place_close(&place);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "explain");
    if (counts.blocks == 0)
        printf("guard      not asked: strict arithmetic all over\n");
    else
        printf("guard      on '%s' data: %lld of %lld blocks of 128 x 128 in strict FP32, and %lld single elements\n",
               lab_data_names[o->data], (long long)counts.strict_blocks, (long long)counts.blocks,
               (long long)counts.strict_elements);
    return CLI_PASS;
}

/* Prints the text on a kernel; as csv and json it is one cell of a row. */
static int print_kernel(const options *o, const rung_kernel *kernel, const lab_shape *at)
{
    static const cli_column cells[] = {
        {"kernel", "kernel", 36, -1}, {"gpu", "gpu", 8, -1}, {"shape", "shape", 24, -1}, {"text", "text", 0, -1}, {0}};
    int chip = o->chip < 0 ? 0 : o->chip;
    char *text = NULL, shape[LAB_SHAPE_TEXT];
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return cli_fail("no memory for the kernel's text");
    int code = explain_kernel(memory, kernel, chip, (double)at->m, (double)at->n, (double)at->k);
    fclose(memory);
    if (code == CLI_PASS && o->format == CLI_TABLE)
        fputs(text, stdout);
    if (code == CLI_PASS) {
        cli_table table;
        lab_shape_print(at, shape);
        cli_table_begin(&table, o->format == CLI_TABLE ? CLI_COPY_ONLY : (cli_format)o->format, cells);
        cli_text(&table, kernel->name);
        cli_text(&table, lab_chips[chip].name);
        cli_text(&table, shape);
        cli_text(&table, text);
    }
    free(text);
    return code;
}

/* A chip that is named stands in for the best device; beside a device that is named too it has floors only. */
static int refuse_idle_gpu(const options *o, const lab_shape *shape, int device)
{
    const char *where = device == RUNG_DEVICE_BEST  ? NULL
                        : device == RUNG_DEVICE_CPU ? "on a CPU"
                        : o->format != CLI_TABLE    ? "as csv or json beside --device: they hold the plan alone"
                        : shape->batch > 1          ? "for a batch beside --device: floors are of one product"
                                                    : NULL;
    return where ? cli_idle("explain", "gpu", where) : CLI_PASS;
}

int cmd_explain(int argc, char **argv)
{
    options o = {.device = "best", .chip = -1, .data = -1};
    const char *words[2];
    int count = 0;
    lab_shape shape;
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "strict (default), accurate or fast"},
        {"kernel", CLI_TEXT, &o.kernel, NULL, "this kernel instead of the library's choice"},
        {"layout", CLI_CHOICE, &o.layout, lab_layout_names, "col (default) or row"},
        CLI_FORMAT(o.format),
        {"threads", CLI_COUNT, &o.threads, NULL, "CPU threads"},
        {"gpu", CLI_CHOICE, &o.chip, lab_chip_names(),
         "floors and occupancy of this chip: h200 (default), h100, a100 ...; a shape's plan without it at hand"},
        {"pad", CLI_INTEGER, &o.pad, NULL, "elements added to every leading dimension"},
        {"data", CLI_CHOICE, &o.data, lab_data_names,
         CLI_DATA "run the product once on such data: how often the guard of accurate stepped in"},
        {0}};
    int code = cli_parse("explain", list, argc, argv, words, &count, 2);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count == 0)
        return cli_usage("explain needs a shape such as 4096x4096x4096 or 512x64x512:TN");
    const rung_kernel *kernel = rung_kernel_find(words[0]);
    code = kernel && kernel->backend == RUNG_BACKEND_CPU
               ? cli_idle_but("explain", "format o", "where a kernel of the CPU is explained")
           : kernel || count > 1   ? cli_idle_but("explain", "gpu format o", "where a kernel itself is explained")
           : o.format != CLI_TABLE ? cli_idle("explain", "data", "as csv or json, which hold the plan alone")
                                   : CLI_PASS;
    if (code)
        return code;
    if (kernel || count > 1) {
        lab_shape at = {.m = 4096, .n = 4096, .k = 4096, .batch = 1};
        if (!kernel)
            return cli_unknown_kernel(words[0]);
        if (count > 1 && lab_shape_parse(words[1], &at) != RUNG_SUCCESS)
            return cli_usage("%s", lab_error());
        if (at.trans_a || at.trans_b || at.batch > 1 || at.pad)
            return cli_usage("explain %s: a kernel is explained at MxNxK alone, not at '%s'", kernel->name, words[1]);
        return print_kernel(&o, kernel, &at);
    }
    if (lab_shape_parse(words[0], &shape) != RUNG_SUCCESS)
        return isalpha((unsigned char)words[0][0]) ? cli_unknown_kernel(words[0]) : cli_usage("%s", lab_error());
    shape.pad += o.pad;
    if (o.kernel && !rung_kernel_find(o.kernel))
        return cli_unknown_kernel(o.kernel);
    rung_config config;
    rung_context *context;
    rung_config_init(&config);
    code = cli_device(o.device, &config.device);
    if (code)
        return code;
    if (o.chip >= 0 && (code = refuse_idle_gpu(&o, &shape, config.device)))
        return code;
    if (o.chip >= 0 && config.device == RUNG_DEVICE_BEST && (code = stand_in(&lab_chips[o.chip], &config)))
        return code;
    config.threads = (int)o.threads;
    config.math = (rung_math)o.math;
    config.pointers = config.device == RUNG_DEVICE_CPU ? RUNG_POINTERS_AUTO : RUNG_POINTERS_DEVICE;
    rung_status status = rung_context_create(&context, &config);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "explain");
    const rung_kernel *chosen = NULL;
    code = explain(&o, &shape, context, &chosen);
    if (code == CLI_PASS && o.format == CLI_TABLE && o.data >= 0)
        code = explain_guard(&o, &shape, rung_context_device(context));
    if (code == CLI_PASS && o.format == CLI_TABLE && rung_context_device(context) != RUNG_DEVICE_CPU &&
        shape.batch == 1)
        explain_floors(stdout, &lab_chips[o.chip < 0 ? 0 : o.chip], chosen ? chosen->arith : RUNG_F32, (double)shape.m,
                       (double)shape.n, (double)shape.k);
    rung_context_destroy(context);
    return code;
}
