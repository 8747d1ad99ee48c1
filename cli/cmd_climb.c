/* rung climb: the ladder of one device. Each rung is verified against FP64, then timed beside the vendor. */
#define _GNU_SOURCE /* for memfd_create */
#include "cli/commands.h"
#include "lab/case.h"
#include "lab/names.h"
#include "lab/output.h"
#include "lab/record.h"
#include "lab/report.h"
#include "lab/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_NAMED = 64, BAR_CELLS = 24, GPU_SIZE = 4096, CPU_SIZE = 1024, TRIAL_SIZE = 192, TRIAL_ROWS = 32 };

/* How long one product may take: at a size that nobody asked for, and at one that somebody did. */
static const double UNASKED_S = 0.5, ASKED_S = 10.0;

typedef struct climb {
    lab_place place;
    lab_bench bench;
    lab_verifier verifier;
    cli_table table;
    cli_format format;
    FILE *record;
    const char *command, *named[MOST_NAMED]; /* only these rungs are climbed, where there are any */
    int named_count;
    int64_t size;
    double budget_s, slowest_s;           /* for all of a rung; for one product, else the rung runs at a smaller size */
    double first, previous, last, vendor; /* GFLOP/s: of the first rung, the one before, this one, the best peer */
    char first_name[64], last_name[64];
    int rungs, cases, failed;
} climb;

static const cli_column columns[] = {{"rung", "rung", 34, -1},
                                     {"n", "m=n=k", 6, 0},
                                     {"gflops", "GFLOP/s", 9, 1},
                                     {"us", "us", 12, 1},
                                     {"step", "x before", 8, 2},
                                     {"of_vendor", "of vendor", 9, 3},
                                     {"error_u", "error u", 7, 2},
                                     {"cases", "cases", 5, 0},
                                     {"verdict", "check", 5, -1},
                                     {"bar", "", BAR_CELLS, -1},
                                     {0}};

static const char *paint(int failed, int production)
{
    if (!cli_colour())
        return "";
    return failed ? "\033[31m" : production ? "\033[32m" : "\033[36m";
}

static void print_line(climb *x, const char *name, int64_t n, double gflops, double us, double error_u, int cases,
                       int failed, int production)
{
    char bar[160], painted[192];
    cli_text(&x->table, name);
    cli_number(&x->table, (double)n);
    cli_number(&x->table, gflops);
    cli_number(&x->table, us);
    cli_number(&x->table, x->previous > 0.0 && gflops > 0.0 ? gflops / x->previous : NAN);
    cli_number(&x->table, x->vendor > 0.0 && gflops > 0.0 ? gflops / x->vendor : NAN);
    cli_number(&x->table, error_u);
    cli_number(&x->table, cases > 0 ? (double)cases : NAN);
    cli_text(&x->table, failed ? "FAIL" : "ok");
    cli_bar(bar, sizeof bar, x->vendor > 0.0 ? gflops / x->vendor : 0.0, BAR_CELLS);
    snprintf(painted, sizeof painted, "%s%s%s", paint(failed, production), bar, cli_colour() ? "\033[0m" : "");
    cli_text(&x->table, x->format == CLI_TABLE ? painted : "");
}

/* Verifies one kernel with the quick set, and says how many cases ran and whether one failed. */
static rung_status verify_quick(climb *x, const rung_kernel *kernel, int *ran, int *failed)
{
    lab_cases cases;
    rung_status status =
        lab_cases_for(kernel, RUNG_STRICT, x->place.tools ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU, LAB_QUICK, &cases);
    for (int i = 0; i < cases.count && status == RUNG_SUCCESS; i++) {
        lab_verdict verdict;
        cli_progress("%s: checking, case %d of %d", kernel ? kernel->name : "rung", i + 1, cases.count);
        status = lab_verify(&x->verifier, kernel, &cases.list[i], &verdict);
        *ran += verdict.outcome != LAB_SKIP;
        if (verdict.outcome == LAB_FAIL && (*failed)++ == 0)
            cli_failed_case(&x->verifier, x->place.tools ? "gpu" : "cpu", kernel, &cases.list[i], &verdict);
    }
    free(cases.list);
    return status;
}

/* Estimates the seconds of one product with m = n = k = size from its first rows alone. Leading dimensions are those of
 * the whole product, and so are the caches' conflicts, which can slow a naive loop ten times. */
static rung_status estimate_s(climb *x, int64_t rows, int64_t size, double *seconds)
{
    lab_bench_row row;
    lab_shape trial = {.m = rows, .n = size, .k = size, .batch = 1};
    int peers = x->bench.peer_count;
    x->bench.peer_count = 0;
    x->bench.options.unverified = 1;
    x->bench.options.budget_s = 0.02;
    rung_status status = lab_bench_shape(&x->bench, &trial, &row);
    x->bench.peer_count = peers;
    x->bench.options.unverified = 0;
    x->bench.options.budget_s = x->budget_s;
    *seconds = row.us * 1e-6 * (double)size / (double)rows;
    return status;
}

/* Finds the size at which one product takes no longer than slowest_s. The size is halved until it fits: first by the
 * time of a small product, which costs next to nothing, then by that of a few rows of what is left. */
static rung_status affordable_size(climb *x, int64_t *size)
{
    double seconds;
    *size = x->size;
    if (x->place.tools || x->size <= TRIAL_SIZE)
        return RUNG_SUCCESS;
    LAB_TRY(estimate_s(x, TRIAL_SIZE, TRIAL_SIZE, &seconds));
    while (*size > TRIAL_SIZE && seconds * pow((double)*size / TRIAL_SIZE, 3.0) > x->slowest_s)
        *size /= 2;
    for (; *size > TRIAL_SIZE; *size /= 2) {
        LAB_TRY(estimate_s(x, TRIAL_ROWS, *size, &seconds));
        if (seconds <= x->slowest_s)
            break;
    }
    return RUNG_SUCCESS;
}

static rung_status climb_one(climb *x, const rung_kernel *kernel, const char *name)
{
    int ran = 0, failed = 0;
    int64_t size;
    lab_bench_row row;
    LAB_TRY(verify_quick(x, kernel, &ran, &failed));
    x->cases += ran;
    x->bench.options.kernel = kernel;
    LAB_TRY(affordable_size(x, &size));
    lab_shape shape = {.m = size, .n = size, .k = size, .batch = 1};
    if (size != x->size) {
        cli_progress(NULL);
        fprintf(stderr, "rung: %s is timed at %lld: one product of %lld would take more than %.1f s\n", name,
                (long long)size, (long long)x->size, x->slowest_s);
    }
    cli_progress("%s: timing at %lld", name, (long long)size);
    rung_status status = lab_bench_shape(&x->bench, &shape, &row);
    if (status == RUNG_UNSUPPORTED) {
        cli_note(&x->table, "%-34s left out: %s", name, lab_error());
        return RUNG_SUCCESS;
    }
    LAB_TRY(status);
    char why[200];
    if (lab_bench_wrong(&row, why, sizeof why)) {
        cli_progress(NULL);
        fprintf(stderr, "FAIL %s at %lld: %s\n", name, (long long)size, why);
        failed++;
    }
    double best_us = row.best_ratio * row.us;
    x->vendor = best_us > 0.0 ? lab_shape_flops(&shape) / best_us * 1e-3 : x->vendor;
    print_line(x, name, size, row.gflops, row.us, row.error_u, ran, failed, !kernel || kernel->role == RUNG_PRODUCTION);
    if (x->record)
        lab_record_bench(x->record, "climb", x->command, &x->bench, &row);
    if (x->first == 0.0) {
        x->first = row.gflops;
        snprintf(x->first_name, sizeof x->first_name, "%s", name);
    }
    x->previous = x->last = row.gflops;
    snprintf(x->last_name, sizeof x->last_name, "%s", name);
    x->rungs++;
    x->failed += failed > 0;
    return RUNG_SUCCESS;
}

/* Prints the vendor's own line, from the last interleaved measurement at full size. */
static rung_status print_vendor(climb *x)
{
    lab_bench_row row;
    lab_shape shape = {.m = x->size, .n = x->size, .k = x->size, .batch = 1};
    x->bench.options.kernel = NULL;
    cli_progress("the vendor, at %lld", (long long)x->size);
    rung_status status = lab_bench_shape(&x->bench, &shape, &row);
    if (status == RUNG_UNSUPPORTED)
        return RUNG_SUCCESS;
    LAB_TRY(status);
    x->vendor = 0.0;
    for (int i = 0; i < x->bench.peer_count; i++)
        if (!row.peer_refused[i])
            x->vendor = fmax(x->vendor, lab_shape_flops(&shape) / row.peer_us[i] * 1e-3);
    for (int i = 0; i < x->bench.peer_count; i++) {
        char name[80];
        if (row.peer_refused[i])
            continue;
        snprintf(name, sizeof name, "%s %s", x->bench.peers[i].name, x->bench.peers[i].version);
        x->previous = 0.0;
        print_line(x, name, x->size, lab_shape_flops(&shape) / row.peer_us[i] * 1e-3, row.peer_us[i],
                   row.peer_error_u[i], 0, 0, 0);
    }
    return RUNG_SUCCESS;
}

static rung_status climb_library(climb *x, rung_math math)
{
    char name[64];
    x->bench.options.math = math;
    LAB_TRY(rung_context_set_math(x->bench.context, math));
    LAB_TRY(rung_context_set_math(x->verifier.context, math));
    snprintf(name, sizeof name, "Rung, %s", lab_math_names[math]);
    return climb_one(x, NULL, name);
}

/* Of rungs that are named those of another device are told to be left out, too. */
static int is_asked_for(const climb *x, const rung_kernel *kernel)
{
    if (x->named_count)
        return cli_is_among(x->named, x->named_count, kernel->name);
    return kernel->role == RUNG_LADDER && (kernel->backend == RUNG_BACKEND_CUDA) == (x->place.tools != NULL);
}

static rung_status climb_all(climb *x)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (!is_asked_for(x, kernel))
            continue;
        const char *why = rung_kernel_unusable(x->bench.context, kernel);
        if (why)
            cli_note(&x->table, "%-34s left out: %s", kernel->name, why);
        else
            LAB_TRY(climb_one(x, kernel, kernel->name));
    }
    if (!x->named_count)
        LAB_TRY(climb_library(x, RUNG_STRICT));
    if (!x->named_count && x->place.tools)
        LAB_TRY(climb_library(x, RUNG_ACCURATE));
    return print_vendor(x);
}

static rung_status open_climb(climb *x, int device, int64_t threads, int64_t size, const char *peers)
{
    char missing[1024];
    LAB_TRY(lab_place_open(&x->place, device, (int)threads));
    x->size = size ? size : x->place.tools ? GPU_SIZE : CPU_SIZE;
    x->budget_s = x->place.tools ? 0.3 : 3.0;
    x->slowest_s = size ? ASKED_S : UNASKED_S;
    lab_bench_options options = {.math = RUNG_STRICT, .layout = RUNG_ROW_MAJOR, .alpha = 1.0f, .budget_s = x->budget_s};
    if (!peers)
        peers = x->place.tools ? "cublas,cublaslt" : "openblas,blis";
    LAB_TRY(lab_bench_open(&x->bench, &x->place, &options, peers, missing, sizeof missing));
    if (missing[0])
        fprintf(stderr, "rung: not compared: %s\n", missing);
    cli_told_peers(x->bench.peers, x->bench.peer_count);
    return lab_verifier_open(&x->verifier, &x->place, RUNG_STRICT, x->bench.peer_count ? &x->bench.peers[0] : NULL);
}

/* Says above the table what will be done, and which libraries stand behind "of vendor": the fastest of them. */
static void print_head(climb *x)
{
    char peers[200] = "";
    for (int i = 0; i < x->bench.peer_count; i++) {
        size_t used = strlen(peers);
        snprintf(peers + used, sizeof peers - used, "%s%s", i ? ", " : " in turn with ", x->bench.peers[i].name);
    }
    cli_note(&x->table, "on %s%s: every rung checked against FP64, then timed%s", x->place.name,
             x->place.tools || x->place.threads > 1 ? "" : ", one thread", peers);
}

static void print_end(climb *x, double seconds)
{
    char step[200] = "";
    if (x->rungs > 1 && x->first > 0.0)
        snprintf(step, sizeof step, " %s runs at %.0f times the rate of %s;", x->last_name, x->last / x->first,
                 x->first_name);
    cli_note(&x->table, "%d line%s, %d cases checked, %d failed;%s %.0f s", x->rungs, x->rungs == 1 ? "" : "s",
             x->cases, x->failed, step, seconds);
}

static int run(climb *x, int device, int64_t threads, int64_t size, const char *peers)
{
    double start = lab_now_s();
    rung_status status = open_climb(x, device, threads, size, peers);
    if (status == RUNG_SUCCESS) {
        cli_table_begin(&x->table, x->format, columns);
        print_head(x);
        status = climb_all(x);
    }
    int code = x->failed ? CLI_FAIL : CLI_PASS;
    if (status == RUNG_SUCCESS && x->rungs == 0)
        code = cli_fail("climb: none of the rungs named runs on %s", x->place.name);
    else if (status == RUNG_INVALID_ARGUMENT)
        code = cli_usage("climb: %s", lab_error());
    else if (status != RUNG_SUCCESS)
        code = cli_fail_status(status, "climb");
    else
        print_end(x, lab_now_s() - start);
    lab_verifier_close(&x->verifier);
    lab_bench_close(&x->bench);
    lab_place_close(&x->place);
    return code;
}

/* The names must be of rungs; whether they are of this device shows when none is climbed. */
static int read_names(climb *x, const char *list, char *copy, size_t bytes)
{
    x->named_count = cli_split(list, copy, bytes, x->named, MOST_NAMED);
    if (x->named_count < 0)
        return CLI_USAGE;
    for (int i = 0; i < x->named_count; i++) {
        const rung_kernel *kernel = rung_kernel_find(x->named[i]);
        if (!kernel)
            return cli_unknown_kernel(x->named[i]);
        if (kernel->role != RUNG_LADDER)
            return cli_usage("climb --kernel: %s is no rung; 'rung list --role ladder' names them", x->named[i]);
    }
    return x->named_count ? CLI_PASS : cli_usage("climb --kernel needs a rung's name");
}

/* A page that cannot be written is told before the climb, which takes a while. */
static int check_report(const char *report)
{
    lab_output page;
    rung_status status = lab_output_open(&page, report);
    if (status != RUNG_SUCCESS)
        return cli_fail_file(status);
    fclose(page.to);
    if (page.unfinished[0])
        remove(page.unfinished);
    return CLI_PASS;
}

int cmd_climb(int argc, char **argv)
{
    climb x = {0};
    const char *device_name = "best", *output = NULL, *peers = NULL, *report = NULL;
    const char *kernels = NULL;
    char command[1024], unnamed[32] = "", names[2048];
    int format = CLI_TABLE, device;
    int64_t size = 0, threads = 0;
    const cli_option list[] = {
        {"device", CLI_TEXT, &device_name, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"size", CLI_AMOUNT, &size, NULL, "m = n = k (default 4096 on a GPU, 1024 on a CPU)"},
        {"threads", CLI_COUNT, &threads, NULL, "CPU threads, the vendor's too"},
        {"kernel", CLI_TEXT, &kernels, NULL, "only these rungs, comma-separated, and not the library"},
        {"against", CLI_TEXT, &peers, NULL, "peers: openblas,blis or cublas,cublaslt"},
        {"o", CLI_TEXT, &output, NULL, "append JSON lines to this file (results/...)"},
        {"report", CLI_TEXT, &report, NULL, "then make this page of charts from the results (rung report)"},
        CLI_FORMAT(format),
        {0}};
    cli_command(command, sizeof command, argc, argv);
    int code = cli_parse("climb", list, argc, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    code = cli_device(device_name, &device);
    if (code)
        return code;
    if (kernels && (code = read_names(&x, kernels, names, sizeof names)))
        return code;
    x.format = (cli_format)format;
    x.command = command;
    if (size && lab_sizes_check(size, size, size, 1, 0) != RUNG_SUCCESS)
        return cli_usage("%s", lab_error());
    if (report && (code = check_report(report)))
        return code;
    if (report && !output) { /* the results stay in memory, so that nothing is left behind however this ends */
        int memory = memfd_create("rung-climb", MFD_CLOEXEC);
        if (memory < 0)
            return cli_fail("no memory for the report's results");
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", memory);
        output = unnamed;
    }
    if (output && !(x.record = cli_open_record(output)))
        return cli_usage("%s", lab_error());
    if (report && lab_is_same_file(report, output))
        return cli_close_record(x.record, output,
                                cli_usage("climb: the page would take the place of the results in %s", output));
    code = run(&x, device, threads, size, peers);
    code = cli_close_record(x.record, output, code);
    rung_status made = report && code == CLI_PASS ? lab_report(&output, 1, report) : RUNG_SUCCESS;
    if (made != RUNG_SUCCESS)
        code = cli_fail_file(made);
    else if (report && code == CLI_PASS)
        fprintf(stderr, "charts: %s\n", report);
    return code;
}
