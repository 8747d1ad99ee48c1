/* rung tune: times the planner's best candidates on each shape and keeps the fastest in the user's cache folder, where
 * the library finds it from then on. With --times it keeps nothing and writes all candidates' times to a file, from
 * which costs are fitted. */
#include "cli/commands.h"
#include "lab/names.h"
#include "lab/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIED = 16, MOST_TIMED = 128 };

typedef struct tune_options {
    const char *device, *shapes, *times;
    char command[1024];
    int math, format, dry, graph;
    float beta;
    int64_t candidates, budget_ms;
} tune_options;

static const cli_column columns[] = {{"shape", "shape", 24, -1},  {"planned", "planned", 34, -1},
                                     {"planned_us", "us", 10, 2}, {"fastest", "fastest", 34, -1},
                                     {"fastest_us", "us", 10, 2}, {"gain_percent", "gain %", 8, 1},
                                     {"tried", "tried", 6, 0},    {0}};

static rung_gemm product_of(const lab_shape *s, float beta)
{
    rung_gemm g;
    lab_shape_gemm(s, RUNG_COL_MAJOR, s->pad, &g);
    /* Nobody looks at these addresses but for their alignment. */
    g.a = g.b = (const float *)(uintptr_t)256;
    g.c = (float *)(uintptr_t)256;
    g.beta = beta;
    return g;
}

static rung_status time_kernel(lab_bench *bench, const lab_shape *shape, const char *kernel, int verified,
                               lab_bench_row *row)
{
    bench->options.kernel = kernel ? rung_kernel_find(kernel) : NULL;
    bench->options.unverified = !verified;
    LAB_TRY(lab_bench_shape(bench, shape, row));
    char why[200];
    if (verified && lab_bench_wrong(row, why, sizeof why))
        return lab_fail(RUNG_INTERNAL, "the result of %s is wrong: %s", row->kernel, why);
    return RUNG_SUCCESS;
}

/* Finds the fastest of the candidates; *best starts as the plan's own choice. A gain within the noise is no gain. */
static int try_candidates(const tune_options *o, lab_bench *bench, const lab_shape *shape, lab_bench_row *best)
{
    const char *kernels[MOST_TRIED];
    rung_gemm gemm = product_of(shape, o->beta);
    int tried = 1, count = rung_tune_candidates(bench->context, &gemm, kernels, (int)o->candidates);
    char planned[sizeof best->kernel];
    memcpy(planned, best->kernel, sizeof planned);
    for (int i = 0; i < count; i++) {
        lab_bench_row row;
        if (strcmp(kernels[i], planned) == 0)
            continue;
        cli_progress("%s (%d of %d)", kernels[i], i + 1, count);
        tried++;
        if (time_kernel(bench, shape, kernels[i], 0, &row) != RUNG_SUCCESS || !(row.us < best->us * 0.98))
            continue;
        if (time_kernel(bench, shape, kernels[i], 1, &row) == RUNG_SUCCESS && row.us < best->us * 0.98)
            *best = row;
    }
    return tried;
}

static int tune_shape(const tune_options *o, lab_bench *bench, const lab_shape *shape, cli_table *table)
{
    char text[LAB_SHAPE_TEXT];
    lab_bench_row planned, best;
    lab_shape_print(shape, text);
    cli_progress("%s ...", text);
    rung_status status = time_kernel(bench, shape, NULL, 1, &planned);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, text);
    best = planned;
    int tried = try_candidates(o, bench, shape, &best);
    rung_gemm gemm = product_of(shape, o->beta);
    status = rung_tune_record(bench->context, &gemm, best.kernel, best.us);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, text);
    cli_text(table, text);
    cli_text(table, planned.kernel);
    cli_number(table, planned.us);
    cli_text(table, best.kernel);
    cli_number(table, best.us);
    cli_number(table, (planned.us / best.us - 1.0) * 100.0);
    cli_number(table, tried);
    return CLI_PASS;
}

/* Writes one line: the product, the vendor's time, and the time of every candidate, best first by prediction. */
static int record_times(const tune_options *o, lab_bench *bench, const lab_shape *shape, FILE *file)
{
    const char *kernels[MOST_TIMED];
    char text[LAB_SHAPE_TEXT];
    rung_gemm gemm = product_of(shape, o->beta);
    int peers = bench->peer_count;
    int count = rung_tune_candidates(bench->context, &gemm, kernels, (int)o->candidates);
    lab_json json = {.to = file};
    lab_bench_row row;
    lab_shape_print(shape, text);
    cli_progress("%s, %d kernels ...", text, count);
    lab_record_begin(&json, "times", o->command, bench->place, &bench->monitor);
    lab_json_text(&json, "shape", text);
    lab_json_text(&json, "math", lab_math_names[o->math]);
    if (o->beta != 0.0f)
        lab_json_number(&json, "beta", (double)o->beta);
    rung_status status = time_kernel(bench, shape, NULL, 0, &row);
    lab_json_text(&json, "chosen", row.kernel);
    lab_json_number(&json, "chosen_us", row.us);
    if (status == RUNG_SUCCESS && peers && !row.peer_refused[0])
        lab_json_number(&json, bench->peers[0].name, row.peer_us[0]);
    lab_json_open(&json, "kernels");
    bench->peer_count = 0;
    for (int i = 0; i < count && status == RUNG_SUCCESS; i++) {
        rung_status timed = time_kernel(bench, shape, kernels[i], 0, &row);
        lab_json_number(&json, kernels[i], timed == RUNG_SUCCESS ? row.us : NAN); /* what is not finite becomes null */
    }
    bench->peer_count = peers;
    lab_json_close(&json);
    lab_json_close(&json);
    lab_json_end_line(&json);
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, text);
}

static int record_all(const tune_options *o, lab_bench *bench, const lab_shapes *shapes)
{
    FILE *file = cli_open_record(o->times);
    if (!file)
        return cli_usage("%s", lab_error());
    int code = CLI_PASS;
    for (int i = 0; i < shapes->count && code == CLI_PASS; i++)
        code = record_times(o, bench, &shapes->list[i], file);
    cli_progress(NULL);
    return cli_close_record(file, o->times, code);
}

static int tune_all(const tune_options *o, lab_bench *bench, const lab_shapes *shapes)
{
    cli_table table;
    cli_table_begin(&table, (cli_format)o->format, columns);
    int code = CLI_PASS, tuned = 0;
    while (tuned < shapes->count && (code = tune_shape(o, bench, &shapes->list[tuned], &table)) == CLI_PASS)
        tuned++;
    cli_progress(NULL);
    if (o->dry || tuned == 0)
        return code;
    rung_status status = rung_tune_save(bench->context); /* also what came before a shape that failed */
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "tune");
    cli_note(&table, "%d shape%s kept in %s", tuned, tuned == 1 ? "" : "s", rung_tune_path(bench->context));
    return code;
}

static int run(const tune_options *o, int device, const lab_shapes *shapes)
{
    lab_place place;
    lab_bench bench = {0};
    char missing[256];
    rung_status status = lab_place_open(&place, device, 0);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "tune");
    lab_bench_options how = {.math = (rung_math)o->math,
                             .alpha = 1.0f,
                             .beta = o->beta,
                             .budget_s = (double)o->budget_ms * 1e-3,
                             .graph = o->graph};
    status = lab_bench_open(&bench, &place, &how, o->times ? "cublas" : "", missing, sizeof missing);
    int code = status != RUNG_SUCCESS ? cli_fail_status(status, "tune")
               : o->times             ? record_all(o, &bench, shapes)
                                      : tune_all(o, &bench, shapes);
    lab_bench_close(&bench);
    lab_place_close(&place);
    return code;
}

int cmd_tune(int argc, char **argv)
{
    tune_options o = {.device = "gpu", .candidates = 8, .budget_ms = 100};
    lab_shapes shapes = {0};
    const char *words[CLI_WORDS];
    int count, device;
    const cli_option options[] = {
        {"device", CLI_TEXT, &o.device, NULL, "gpu (default), gpu1 ..."},
        {"shapes", CLI_TEXT, &o.shapes, NULL, "shapes or files, comma-separated (or as plain words)"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "strict (default), accurate or fast"},
        {"candidates", CLI_AMOUNT, &o.candidates, NULL,
         "how many of the ranking are timed (default 8, at most 16; with --times 128)"},
        {"budget-ms", CLI_AMOUNT, &o.budget_ms, NULL, "time for a kernel on a shape (default 100)"},
        {"graph", CLI_FLAG, &o.graph, NULL, "replay captured graphs, so that launches cost the host nothing"},
        {"beta", CLI_REAL, &o.beta, NULL, "with --times: what C's old numbers are multiplied by (default 0)"},
        {"dry-run", CLI_FLAG, &o.dry, NULL, "measure, keep nothing"},
        {"times", CLI_TEXT, &o.times, NULL, "append every candidate's time to this file (results/...), keep nothing"},
        CLI_FORMAT(o.format),
        {0}};
    int code = cli_parse("tune", options, argc, argv, words, &count, CLI_WORDS);
    if (code)
        return code < 0 ? CLI_PASS : code;
    cli_command(o.command, sizeof o.command, argc, argv);
    if (o.times && cli_idle("tune", "format o", "beside --times, which prints no rows"))
        return CLI_USAGE;
    if (!o.times && cli_idle("tune", "beta", "without --times: what is kept holds for any beta"))
        return CLI_USAGE;
    const int most = o.times ? MOST_TIMED : MOST_TRIED;
    if (o.candidates > most)
        return cli_usage("--candidates %lld: at most %d%s", (long long)o.candidates, most,
                         o.times ? "" : ", or with --times 128");
    code = cli_device(o.device, &device);
    if (!code)
        code = cli_shapes(o.shapes, words, count, &shapes);
    if (!code)
        code = run(&o, device, &shapes);
    free(shapes.list);
    return code;
}
