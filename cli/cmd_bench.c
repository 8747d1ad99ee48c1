/* rung bench: a list of shapes, each verified and timed beside the peers. It ends with the ratios' geometric mean and
 * the worst. */
#include "cli/bench_multi.h"
#include "cli/commands.h"
#include "lab/names.h"
#include "lab/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *device, *against, *shapes, *kernel, *output;
    int math, format, graph, cold, layout, data, no_verify;
    int64_t threads, pad, budget_ms;
    float beta;
    char command[1024];
} options;

typedef struct summary {
    double *best; /* the ratio against the fastest peer, for each shape */
    double *peer[LAB_PEERS];
    int count, failed, refused, above_peak;
    char worst_shape[LAB_SHAPE_TEXT];
    double worst;
} summary;

typedef struct layout_of_table {
    cli_column columns[CLI_COLUMNS + 1];
    char titles[2 * LAB_PEERS][32], keys[2 * LAB_PEERS][32];
    int count;
} layout_of_table;

static void add_column(layout_of_table *l, const char *key, const char *title, int width, int decimals)
{
    l->columns[l->count++] = (cli_column){key, title, width, decimals};
}

static void make_columns(layout_of_table *l, const lab_bench *bench)
{
    int gpu = bench->place->tools != NULL;
    add_column(l, "shape", "shape", 24, -1);
    add_column(l, "kernel", "kernel", 32, -1);
    add_column(l, "us", "us", 10, 2);
    add_column(l, gpu ? "tflops" : "gflops", gpu ? "TFLOP/s" : "GFLOP/s", 7, gpu ? 2 : 1);
    add_column(l, gpu ? "sm_mhz" : "share_of_peak", gpu ? "MHz" : "of peak", 7, gpu ? 0 : 2);
    add_column(l, "share_of_floor", "of floor", 8, 2);
    if (gpu)
        add_column(l, "host_us", "host us", 7, 2);
    add_column(l, "noise_percent", "noise %", 7, 2);
    add_column(l, "error_u", "error u", 7, 2);
    for (int i = 0; i < bench->peer_count; i++) {
        snprintf(l->titles[2 * i], 32, "%s us", bench->peers[i].name);
        snprintf(l->keys[2 * i], 32, "%s_us", bench->peers[i].name);
        snprintf(l->titles[2 * i + 1], 32, "x %s", bench->peers[i].name);
        snprintf(l->keys[2 * i + 1], 32, "%s_ratio", bench->peers[i].name);
        add_column(l, l->keys[2 * i], l->titles[2 * i], 14, 2);
        add_column(l, l->keys[2 * i + 1], l->titles[2 * i + 1], 10, 3);
    }
    add_column(l, "best_ratio", "x best", 7, 3);
}

static void print_row(cli_table *table, const lab_bench *bench, const lab_bench_row *row)
{
    char shape[LAB_SHAPE_TEXT];
    int gpu = bench->place->tools != NULL;
    lab_shape_print(&row->shape, shape);
    cli_text(table, shape);
    cli_text(table, row->kernel);
    cli_number(table, row->us);
    cli_number(table, gpu ? row->gflops * 1e-3 : row->gflops);
    if (gpu)
        cli_number(table, row->time.sm_mhz ? (double)row->time.sm_mhz : NAN);
    else
        cli_number(table, row->gflops / bench->peak_gflops);
    const rung_kernel *kernel = rung_kernel_find(row->kernel); /* it is the floor of FP32: tensor cores go below it */
    cli_number(table, kernel && kernel->arith != RUNG_F32 ? NAN : row->floor_us / row->us);
    if (gpu)
        cli_number(table, row->time.host_us[0] > 0.0 ? row->time.host_us[0] : NAN);
    cli_number(table, row->time.us[0].noise * 100.0);
    cli_number(table, row->bound_u > 0.0 ? row->error_u : NAN);
    for (int i = 0; i < bench->peer_count; i++) {
        cli_number(table, row->ratio[i] > 0.0 ? row->peer_us[i] : NAN);
        cli_number(table, row->ratio[i] > 0.0 ? row->ratio[i] : NAN);
    }
    cli_number(table, row->best_ratio > 0.0 ? row->best_ratio : NAN);
}

static void note_row(summary *s, const lab_bench *bench, const lab_bench_row *row)
{
    for (int i = 0; i < bench->peer_count; i++)
        s->peer[i][s->count] = row->ratio[i];
    s->best[s->count++] = row->best_ratio;
    s->above_peak += !bench->place->tools && row->gflops > bench->peak_gflops;
    if (row->best_ratio > 0.0 && (s->worst == 0.0 || row->best_ratio < s->worst)) {
        s->worst = row->best_ratio;
        lab_shape_print(&row->shape, s->worst_shape);
    }
}

static double least_of(const double *ratios, int count)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        if (ratios[i] > 0.0 && ratios[i] < least)
            least = ratios[i];
    return least;
}

static void print_summary(const cli_table *table, const lab_bench *bench, const summary *s)
{
    for (int i = 0; i < bench->peer_count && s->count; i++) {
        const double worst = least_of(s->peer[i], s->count);
        if (isfinite(worst))
            cli_note(table, "against %-14s %-20s geometric mean %.3f, worst %.3f", bench->peers[i].name,
                     bench->peers[i].version, lab_geometric_mean(s->peer[i], s->count), worst);
        else
            cli_note(table, "against %-14s %-20s which takes none of the shapes", bench->peers[i].name,
                     bench->peers[i].version);
    }
    if (bench->peer_count && s->count && s->worst > 0.0)
        cli_note(table, "against the best of them                    geometric mean %.3f, worst %.3f (%s), %d shape%s",
                 lab_geometric_mean(s->best, s->count), s->worst, s->worst_shape, s->count, s->count == 1 ? "" : "s");
    if (bench->options.beta != 0.0f)
        cli_note(table, "timed with beta %g: C is read, too", (double)bench->options.beta);
    if (!bench->place->tools)
        cli_note(table, "FMA peak in this run: %.1f GFLOP/s on %d thread%s of %s", bench->peak_gflops,
                 bench->place->threads, bench->place->threads > 1 ? "s" : "", bench->place->name);
    if (s->above_peak)
        cli_note(table,
                 "%d of %d above that peak: the processor had other work, or a lower clock, when it was measured; "
                 "ratios hold, shares of peak and floor do not",
                 s->above_peak, s->count);
}

static void record_summary(FILE *to, const options *o, const lab_bench *bench, const summary *s)
{
    lab_json json = {.to = to};
    lab_record_begin(&json, "bench-summary", o->command, bench->place, &bench->monitor);
    lab_json_integer(&json, "shapes", s->count);
    if (!bench->place->tools)
        lab_json_number(&json, "fma_peak_gflops", bench->peak_gflops);
    for (int i = 0; i < bench->peer_count; i++) {
        const double worst = least_of(s->peer[i], s->count); /* of a peer that takes none of the shapes both are null */
        lab_json_open(&json, bench->peers[i].name);
        lab_json_number(&json, "geometric_mean", isfinite(worst) ? lab_geometric_mean(s->peer[i], s->count) : NAN);
        lab_json_number(&json, "worst", worst);
        lab_json_close(&json);
    }
    lab_json_number(&json, "best_geometric_mean", s->worst > 0.0 ? lab_geometric_mean(s->best, s->count) : NAN);
    lab_json_number(&json, "best_worst", s->worst > 0.0 ? s->worst : NAN);
    lab_json_text(&json, "worst_shape", s->worst_shape);
    lab_json_close(&json);
    lab_json_end_line(&json);
}

static int bench_one(const options *o, lab_bench *bench, const lab_shape *shape, cli_table *table, FILE *record,
                     summary *s)
{
    char text[LAB_SHAPE_TEXT];
    lab_bench_row row;
    lab_shape_print(shape, text);
    cli_progress("%s ...", text);
    rung_status status = lab_bench_shape(bench, shape, &row);
    if (status == RUNG_UNSUPPORTED || status == RUNG_OUT_OF_MEMORY) {
        s->refused++;
        cli_progress(NULL);
        fprintf(stderr, "rung: %s left out: %s\n", text, lab_error());
        return CLI_PASS;
    }
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, text);
    note_row(s, bench, &row);
    print_row(table, bench, &row);
    if (record)
        lab_record_bench(record, "bench", o->command, bench, &row);
    char why[200];
    if (!o->no_verify && lab_bench_wrong(&row, why, sizeof why)) {
        s->failed++;
        fprintf(stderr, "FAIL %s: %s: %s\n", text, row.kernel, why);
    }
    return CLI_PASS;
}

static int bench_all(const options *o, lab_bench *bench, const lab_shapes *shapes, FILE *record)
{
    layout_of_table l = {0};
    cli_table table;
    summary s = {0};
    double *ratios = calloc((size_t)shapes->count * (LAB_PEERS + 1), sizeof *ratios);
    if (!ratios)
        return cli_fail("no memory for %d results", shapes->count);
    s.best = ratios;
    for (int i = 0; i < LAB_PEERS; i++)
        s.peer[i] = ratios + (size_t)shapes->count * (size_t)(i + 1);
    make_columns(&l, bench);
    cli_table_begin(&table, (cli_format)o->format, l.columns);
    int code = CLI_PASS;
    for (int i = 0; i < shapes->count && code == CLI_PASS; i++)
        code = bench_one(o, bench, &shapes->list[i], &table, record, &s);
    cli_progress(NULL);
    print_summary(&table, bench, &s);
    if (record)
        record_summary(record, o, bench, &s);
    if (code == CLI_PASS && s.count == 0)
        code = cli_fail("nothing was measured: every shape was refused");
    free(ratios);
    return code == CLI_PASS && s.failed ? CLI_FAIL : code;
}

/* These few squares are taken where no shape is given. */
static int read_shapes(const options *o, const char **words, int count, lab_shapes *shapes)
{
    static const char *usual[] = {"256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048"};
    if (count == 0 && !o->shapes)
        return cli_shapes(NULL, usual, 4, shapes);
    return cli_shapes(o->shapes, words, count, shapes);
}

static int run(const options *o, int device, const lab_shapes *shapes)
{
    lab_place place;
    lab_bench bench = {0};
    char missing[1024];
    FILE *record = NULL;
    rung_status status = lab_place_open(&place, device, (int)o->threads);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "bench");
    const rung_kernel *kernel = o->kernel ? rung_kernel_find(o->kernel) : NULL;
    if (kernel && (kernel->backend == RUNG_BACKEND_CPU) == (place.tools != NULL)) {
        lab_place_close(&place);
        return cli_other_device("bench", kernel);
    }
    if (!place.tools && cli_idle("bench", "graph", "on a CPU")) {
        lab_place_close(&place);
        return CLI_USAGE;
    }
    lab_bench_options how = {.math = (rung_math)o->math,
                             .layout = (rung_layout)o->layout,
                             .data = (lab_data)o->data,
                             .kernel = kernel,
                             .alpha = 1.0f,
                             .beta = o->beta,
                             .graph = o->graph,
                             .cold = o->cold,
                             .unverified = o->no_verify,
                             .budget_s = (double)o->budget_ms * 1e-3};
    const char *peers = o->against ? o->against : place.tools ? "cublas" : "openblas,openblas_pypi,mkl,aocl,blis";
    status = lab_bench_open(&bench, &place, &how, peers, missing, sizeof missing);
    int code = CLI_PASS;
    if (status == RUNG_INVALID_ARGUMENT)
        code = cli_usage("%s", lab_error());
    else if (status != RUNG_SUCCESS)
        code = cli_fail_status(status, "bench");
    if (code == CLI_PASS && missing[0])
        fprintf(stderr, "rung: not compared: %s\n", missing);
    if (code == CLI_PASS)
        cli_told_peers(bench.peers, bench.peer_count);
    if (code == CLI_PASS && o->output && !(record = cli_open_record(o->output)))
        code = cli_usage("%s", lab_error());
    if (code == CLI_PASS)
        code = bench_all(o, &bench, shapes, record);
    code = cli_close_record(record, o->output, code);
    lab_bench_close(&bench);
    lab_place_close(&place);
    return code;
}

/* What several ranks take no notice of, and what one product on one device does not; of several ranks bench_multi.c
 * knows more. */
static int refuse_idle(const bench_multi_options *several)
{
    static const char of_one[] = "device against kernel threads layout data pad beta graph cold no-verify budget-ms",
                      of_several[] = "operands grid block panels repeats memory-mib no-peer timeline";
    return several->gpus || several->distributed
               ? cli_idle("bench", of_one, "over several ranks: leave it out, or --gpus and --distributed")
               : cli_idle("bench", of_several, "on one device: it is for --gpus and --distributed");
}

int cmd_bench(int argc, char **argv)
{
    options o = {.device = "best"};
    bench_multi_options several = {.operands = NULL, .repeats = 5};
    lab_shapes shapes = {0};
    const char *words[CLI_WORDS];
    int count, device;
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"shapes", CLI_TEXT, &o.shapes, NULL, "shapes or files, comma-separated (or as plain words)"},
        {"against", CLI_TEXT, &o.against, NULL,
         "peers: openblas,openblas_pypi,mkl,aocl,blis or cublas,cublaslt,cublas_tf32; name@setting; '' for none"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "strict (default), accurate or fast"},
        {"kernel", CLI_TEXT, &o.kernel, NULL, "one kernel by name instead of the library's choice"},
        {"threads", CLI_COUNT, &o.threads, NULL, "CPU threads, the peers' too"},
        {"layout", CLI_CHOICE, &o.layout, lab_layout_names, "col (default) or row"},
        {"data", CLI_CHOICE, &o.data, lab_data_names, CLI_DATA "distribution of the operands (default signed)"},
        {"pad", CLI_INTEGER, &o.pad, NULL, "elements added to every leading dimension"},
        {"beta", CLI_REAL, &o.beta, NULL, "what C's old numbers are multiplied by while it is timed (default 0)"},
        {"graph", CLI_FLAG, &o.graph, NULL, "GPU: replay captured graphs, so that launches cost the host nothing"},
        {"cold", CLI_FLAG, &o.cold, NULL, "CPU: rotate over more than the caches (a GPU always does)"},
        {"no-verify", CLI_FLAG, &o.no_verify, NULL, "skip the check against FP64"},
        {"budget-ms", CLI_AMOUNT, &o.budget_ms, NULL, "time for a shape, all contenders together"},
        {"gpus", CLI_TEXT, &several.gpus, NULL,
         "over so many GPUs of this process, such as 4 or 1,2,4 (cpu4: CPU ranks)"},
        {"distributed", CLI_FLAG, &several.distributed, NULL,
         "as one rank of several: mpirun -n N rung bench --distributed"},
        {"operands", CLI_TEXT, &several.operands, NULL,
         "several ranks: distributed (default), host, parts (made in place, never whole), or some by comma"},
        {"grid", CLI_TEXT, &several.grid, NULL, "several ranks: rows and columns, such as 2x2"},
        {"block", CLI_AMOUNT, &several.block, NULL, "several ranks: rows and columns of a block (default: one a rank)"},
        {"panels", CLI_TEXT, &several.panels, NULL,
         "several ranks: widths of the panels of k to try, such as 8192,2048:8192:4096 (RUNG_MULTI_PANEL)"},
        {"repeats", CLI_COUNT, &several.repeats, NULL, "several ranks: calls timed (default 5)"},
        {"memory-mib", CLI_AMOUNT, &several.memory_mib, NULL, "several ranks, host operands: what each GPU may use"},
        {"no-peer", CLI_FLAG, &several.no_peer, NULL, "several ranks: neither one GPU alone nor cuBLAS-XT beside"},
        {"timeline", CLI_TEXT, &several.timeline, NULL,
         "several ranks: copies and products as .svg, or a Chrome trace"},
        {"o", CLI_TEXT, &o.output, NULL, "append JSON lines to this file (results/...)"},
        CLI_FORMAT(o.format),
        {0}};
    cli_command(o.command, sizeof o.command, argc, argv);
    int code = cli_parse("bench", list, argc, argv, words, &count, CLI_WORDS);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (o.kernel && !rung_kernel_find(o.kernel))
        return cli_unknown_kernel(o.kernel);
    code = refuse_idle(&several);
    if (!code)
        code = cli_device(o.device, &device);
    if (!code)
        code = read_shapes(&o, words, count, &shapes);
    for (int i = 0; i < shapes.count; i++)
        shapes.list[i].pad += o.pad; /* rows and results say it with the shape */
    if (!code && (several.gpus || several.distributed)) {
        several.math = o.math;
        several.format = o.format;
        several.output = o.output;
        several.command = o.command;
        several.operands = several.operands ? several.operands : "distributed";
        code = cli_bench_multi(&several, &shapes);
    } else if (!code) {
        code = run(&o, device, &shapes);
    }
    free(shapes.list);
    return code;
}
