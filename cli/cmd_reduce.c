/* rung reduce: the ladder of sums, each rung checked against FP64, then timed beside CUB. */
#include "cli/commands.h"
#include "lab/record.h"
#include "lab/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 16, MOST_KERNELS = 64, BAR_CELLS = 20 };

typedef struct options {
    const char *device, *kernels, *output;
    int format, quick;
    int64_t budget_ms;
    char command[1024];
    int64_t sizes[MOST_SIZES];
    int size_count;
} options;

static const cli_column columns[] = {{"kernel", "kernel", 32, -1}, {"n", "n", 11, 0},
                                     {"us", "us", 10, 2},          {"gbytes_per_s", "GB/s", 8, 1},
                                     {"cub_us", "CUB us", 10, 2},  {"cub_ratio", "x CUB", 7, 3},
                                     {"error_u", "error u", 8, 2}, {"cub_error_u", "CUB u", 8, 2},
                                     {"same_bits", "bits", 6, -1}, {"verdict", "check", 5, -1},
                                     {"bar", "", BAR_CELLS, -1},   {0}};

static void print_row(cli_table *table, const char *kernel, const lab_reduce_row *row, int failed, double peak)
{
    char bar[160];
    cli_text(table, kernel ? kernel : "rung_ssum");
    cli_number(table, (double)row->n);
    cli_number(table, row->us);
    cli_number(table, row->gbytes_per_s);
    cli_number(table, row->ratio > 0.0 ? row->cub_us : NAN);
    cli_number(table, row->ratio > 0.0 ? row->ratio : NAN);
    cli_number(table, row->error_u);
    cli_number(table, row->ratio > 0.0 ? row->cub_error_u : NAN);
    cli_text(table, row->same_bits ? "same" : "differ");
    cli_text(table, failed ? "FAIL" : "ok");
    cli_bar(bar, sizeof bar, row->gbytes_per_s / peak, BAR_CELLS);
    cli_text(table, table->format == CLI_TABLE ? bar : "");
}

static void record(FILE *to, const options *o, const lab_reduce *r, const char *kernel, const lab_reduce_row *row)
{
    lab_json json = {.to = to};
    lab_record_begin(&json, "reduce", o->command, r->place, &r->monitor);
    lab_json_text(&json, "kernel", kernel ? kernel : "rung_ssum");
    lab_json_integer(&json, "n", row->n);
    lab_json_number(&json, "us", row->us);
    lab_json_number(&json, "noise", row->time.us[0].noise);
    lab_json_number(&json, "gbytes_per_s", row->gbytes_per_s);
    lab_json_number(&json, "cub_us", row->ratio > 0.0 ? row->cub_us : NAN);
    lab_json_number(&json, "cub_ratio", row->ratio > 0.0 ? row->ratio : NAN);
    lab_json_number(&json, "error_u", row->error_u);
    lab_json_number(&json, "cub_error_u", row->ratio > 0.0 ? row->cub_error_u : NAN);
    lab_json_integer(&json, "same_bits", row->same_bits);
    lab_json_integer(&json, "operand_sets", row->sets);
    lab_json_integer(&json, "sm_mhz", row->time.sm_mhz);
    lab_json_close(&json);
    lab_json_end_line(&json);
}

static rung_status reduce_kernel(const options *o, lab_reduce *r, const char *kernel, cli_table *table, FILE *to,
                                 int *failed)
{
    int edges_failed = 0, ran = 0;
    char why[320];
    double peak = r->place->tools ? 4800.0 : 50.0; /* the bar's full length, in GB/s */
    if (!o->quick)
        LAB_TRY(lab_reduce_edges(r, kernel, &ran, &edges_failed, why, sizeof why));
    if (edges_failed) {
        cli_progress(NULL);
        fprintf(stderr, "FAIL %s: %s\n", kernel ? kernel : "rung_ssum", why);
    }
    for (int i = 0; i < o->size_count; i++) {
        lab_reduce_row row = {0};
        cli_progress("%s: %lld floats", kernel ? kernel : "rung_ssum", (long long)o->sizes[i]);
        LAB_TRY(lab_reduce_check(r, kernel, o->sizes[i], 0, LAB_POSITIVE, &row));
        LAB_TRY(lab_reduce_time(r, kernel, o->sizes[i], &row));
        /* The library's sum promises the same bits each time; those of a rung are only shown. */
        int bad = edges_failed || !(row.error_u <= row.bound_u) || (!kernel && !row.same_bits);
        print_row(table, kernel, &row, bad, peak);
        if (to)
            record(to, o, r, kernel, &row);
        *failed += bad;
    }
    return RUNG_SUCCESS;
}

/* Returns the rungs asked for, or all of them, then NULL for rung_ssum. */
static int pick_kernels(const options *o, const lab_place *place, const char **kernels, int *count)
{
    static char copy[2048];
    *count = 0;
    if (o->kernels) {
        *count = cli_split(o->kernels, copy, sizeof copy, kernels, MOST_KERNELS);
        if (*count < 0)
            return CLI_USAGE;
        if (*count == 0)
            return cli_usage("reduce --kernel needs a rung's name");
        for (int i = 0; i < *count; i++) {
            const rung_kernel *k = rung_kernel_find(kernels[i]);
            if (!k || k->role != RUNG_REDUCE)
                return cli_usage("no kernel of the reduce ladder is called '%s'; 'rung list --role reduce' names them",
                                 kernels[i]);
        }
        for (int i = 0; i < *count; i++)
            if ((rung_kernel_find(kernels[i])->backend == RUNG_BACKEND_CPU) == (place->tools != NULL))
                return cli_other_device("reduce", rung_kernel_find(kernels[i]));
        return 0;
    }
    for (int i = 0; place->tools && i < rung_kernel_count() && *count < MOST_KERNELS - 1; i++)
        if (rung_kernel_at(i)->role == RUNG_REDUCE && rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA)
            kernels[(*count)++] = rung_kernel_at(i)->name;
    kernels[(*count)++] = NULL;
    return 0;
}

static int run_place(const options *o, lab_place *place, FILE *to)
{
    lab_reduce reduce;
    cli_table table;
    const char *kernels[MOST_KERNELS];
    int count, failed = 0;
    int code = pick_kernels(o, place, kernels, &count);
    if (code)
        return code;
    rung_status status = lab_reduce_open(&reduce, place);
    reduce.budget_s = (double)o->budget_ms * 1e-3;
    if (status == RUNG_SUCCESS && reduce.cub_missing[0])
        fprintf(stderr, "rung: not compared: %s\n", reduce.cub_missing);
    cli_table_begin(&table, (cli_format)o->format, columns);
    for (int i = 0; i < count && status == RUNG_SUCCESS; i++)
        status = reduce_kernel(o, &reduce, kernels[i], &table, to, &failed);
    lab_reduce_close(&reduce);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "reduce");
    return failed ? CLI_FAIL : CLI_PASS;
}

static int read_sizes(options *o, const char **words, int count)
{
    static const char *usual_gpu[] = {"2^16", "2^20", "2^24", "2^28"}, *usual_cpu[] = {"2^16", "2^20", "2^24"};
    int gpu = strncmp(o->device, "cpu", 3) != 0 && rung_tools_gpu_count() > 0;
    if (count == 0) {
        words = gpu ? usual_gpu : usual_cpu;
        count = gpu ? 4 : 3;
    }
    o->size_count = count;
    for (int i = 0; i < count; i++) {
        int code = cli_length("reduce", words[i], &o->sizes[i]);
        if (code)
            return code;
    }
    return 0;
}

int cmd_reduce(int argc, char **argv)
{
    options o = {.device = "best"};
    const char *words[MOST_SIZES];
    int count, device;
    FILE *to = NULL;
    lab_place place;
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"kernel", CLI_TEXT, &o.kernels, NULL, "only these rungs, comma-separated"},
        {"quick", CLI_FLAG, &o.quick, NULL, "skip the checks at the edges of sizes and alignment"},
        {"budget-ms", CLI_AMOUNT, &o.budget_ms, NULL, "time for a line"},
        {"o", CLI_TEXT, &o.output, NULL, "append JSON lines to this file (results/...)"},
        CLI_FORMAT(o.format),
        {0}};
    cli_command(o.command, sizeof o.command, argc, argv);
    int code = cli_parse("reduce", list, argc, argv, words, &count, MOST_SIZES);
    if (code)
        return code < 0 ? CLI_PASS : code;
    code = cli_device(o.device, &device);
    if (!code)
        code = read_sizes(&o, words, count);
    if (code)
        return code;
    if (o.output && !(to = cli_open_record(o.output)))
        return cli_usage("%s", lab_error());
    rung_status status = lab_place_open(&place, device, 0);
    if (status != RUNG_SUCCESS) {
        code = cli_fail_status(status, "reduce");
    } else {
        code = run_place(&o, &place, to);
        lab_place_close(&place);
    }
    return cli_close_record(to, o.output, code);
}
