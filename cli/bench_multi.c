/* rung bench --gpus and --distributed: products over several ranks, with operands distributed or in host memory. Random
 * projections check each. Beside the times stand the efficiency against one GPU, the vendor's cuBLAS-XT and the bits of
 * C. */
#include "cli/bench_multi.h"
#include "lab/multi.h"
#include "lab/names.h"
#include "lab/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COUNTS = 8, MOST_PANELS = 8, MOST_RANKS = 64 };

typedef struct session {
    const bench_multi_options *options;
    cli_table table;
    FILE *record;
    rung_multi *owner; /* whose memory the host memory is */
    int counts[MOST_COUNTS], count_count;
    char panels_text[256];
    const char *panels[MOST_PANELS]; /* those to try; none: as the environment says */
    int panel_count;
    int cpu, failed, printed;
} session;

static const cli_column columns[] = {{"shape", "shape", 20, -1},
                                     {"math", "math", 8, -1},
                                     {"operands", "operands", 11, -1},
                                     {"ranks", "ranks", 5, 0},
                                     {"grid", "grid", 5, -1},
                                     {"ms", "ms", 10, 3},
                                     {"noise_percent", "noise %", 7, 2},
                                     {"tflops", "TFLOP/s", 8, 2},
                                     {"efficiency", "of ranks x one", 14, 3},
                                     {"error_u", "error u", 8, 4},
                                     {"cublasxt_ratio", "x cublasXt", 10, 3},
                                     {"bits", "bits of C", 16, -1},
                                     {"panels", "panels", 14, -1},
                                     {0}};

static const char *panels_now(void)
{
    const char *text = getenv("RUNG_MULTI_PANEL");
    return text ? text : "default";
}

typedef struct result {
    const lab_shape *shape;
    const char *operands;
    int ranks, rows, cols, xt_block;
    lab_multi_row row;
    double one_us, xt_us; /* 0: it was not measured */
} result;

static void record(const session *s, const result *r)
{
    lab_json json = {.to = s->record};
    char text[LAB_SHAPE_TEXT], bits[24];
    lab_shape_print(r->shape, text);
    snprintf(bits, sizeof bits, "%016llx", (unsigned long long)r->row.bits);
    lab_json_open(&json, NULL);
    lab_json_text(&json, "kind", "bench-multi");
    lab_json_text(&json, "command", s->options->command);
    lab_json_text(&json, "rung", rung_version());
    lab_json_text(&json, "commit", lab_commit());
    lab_json_text(&json, "shape", text);
    lab_json_text(&json, "math", lab_math_names[s->options->math]);
    lab_json_text(&json, "operands", r->operands);
    lab_json_text(&json, "panels", panels_now());
    lab_json_text(&json, "devices", s->cpu ? "CPU" : "GPU");
    lab_json_integer(&json, "ranks", r->ranks);
    lab_json_integer(&json, "grid_rows", r->rows);
    lab_json_integer(&json, "grid_cols", r->cols);
    lab_json_number(&json, "us", r->row.us.median);
    lab_json_number(&json, "us_min", r->row.us.min);
    lab_json_number(&json, "us_max", r->row.us.max);
    lab_json_integer(&json, "samples", r->row.us.samples);
    lab_json_number(&json, "tflops", lab_shape_flops(r->shape) / r->row.us.median * 1e-6);
    lab_json_number(&json, "one_gpu_us", r->one_us > 0.0 ? r->one_us : NAN);
    lab_json_number(&json, "cublasxt_us", r->xt_us > 0.0 ? r->xt_us : NAN);
    lab_json_integer(&json, "cublasxt_block", r->xt_block);
    lab_json_number(&json, "projection_error_u", r->row.error_u);
    lab_json_number(&json, "projection_bound_u", r->row.bound_u);
    lab_json_text(&json, "bits", bits);
    lab_json_close(&json);
    lab_json_end_line(&json);
    fflush(s->record);
}

static void print(session *s, const result *r)
{
    char text[LAB_SHAPE_TEXT], bits[24], grid[24];
    lab_shape_print(r->shape, text);
    snprintf(grid, sizeof grid, "%dx%d", r->rows, r->cols);
    snprintf(bits, sizeof bits, r->row.bits ? "%016llx" : "", (unsigned long long)r->row.bits);
    cli_text(&s->table, text);
    cli_text(&s->table, lab_math_names[s->options->math]);
    cli_text(&s->table, r->operands);
    cli_number(&s->table, r->ranks);
    cli_text(&s->table, grid);
    cli_number(&s->table, r->row.us.median * 1e-3);
    cli_number(&s->table, r->row.us.noise * 100.0);
    cli_number(&s->table, lab_shape_flops(r->shape) / r->row.us.median * 1e-6);
    cli_number(&s->table, r->one_us > 0.0 ? r->one_us / r->row.us.median / r->ranks : NAN);
    cli_number(&s->table, r->row.error_u);
    cli_number(&s->table, r->xt_us > 0.0 ? r->xt_us / r->row.us.median : NAN);
    cli_text(&s->table, bits);
    cli_text(&s->table, panels_now());
    s->printed++;
    if (s->record)
        record(s, r);
    if (!(r->row.error_u <= r->row.bound_u)) {
        s->failed++;
        fprintf(stderr, "FAIL %s, %s, %d ranks: the projection errs %.4g u, the bound is %.4g u\n", text, r->operands,
                r->ranks, r->row.error_u, r->row.bound_u);
    }
}

static int write_timeline(const session *s, const rung_multi *multi)
{
    const rung_span *spans;
    int count = rung_multi_spans(multi, &spans);
    if (!s->options->timeline || rung_multi_first_rank(multi) != 0)
        return CLI_PASS;
    rung_status status = lab_timeline_write(s->options->timeline, spans, count);
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_file(status);
}

static int wants(const session *s, const char *operands)
{
    return strstr(s->options->operands, operands) != NULL;
}

static int read_grid(const session *s, int ranks, int *rows, int *cols)
{
    int64_t of_rows, of_cols;
    if (!cli_read_pair(s->options->grid, ranks, &of_rows, &of_cols) || of_rows * of_cols > ranks)
        return cli_usage("--grid %s: expected such as 2x2, at most %d ranks", s->options->grid, ranks);
    *rows = (int)of_rows;
    *cols = (int)of_cols;
    return CLI_PASS;
}

static int choose_grid(const session *s, result *r)
{
    lab_multi_grid(r->shape, r->ranks, &r->rows, &r->cols);
    return s->options->grid ? read_grid(s, r->ranks, &r->rows, &r->cols) : CLI_PASS;
}

static int bench_context(session *s, rung_multi *multi, const lab_whole *whole, double one_us, double xt_us,
                         int xt_block)
{
    const bench_multi_options *o = s->options;
    rung_math math = (rung_math)o->math;
    result r = {.shape = &whole->shape, .ranks = rung_multi_ranks(multi), .one_us = one_us};
    int trace = o->timeline != NULL, code = choose_grid(s, &r), mine = rung_multi_first_rank(multi) == 0;
    if (code)
        return code;
    if (wants(s, "distributed")) {
        r.operands = "distributed";
        rung_status status =
            lab_multi_distributed(multi, whole, r.rows, r.cols, o->block, (int)o->repeats, trace, math, &r.row);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "bench");
        if (mine)
            print(s, &r);
        code = write_timeline(s, multi);
    }
    if (code == CLI_PASS && wants(s, "host")) {
        r.operands = "host";
        r.xt_us = xt_us;
        r.xt_block = xt_block;
        rung_status status = lab_multi_host(multi, whole, (int)o->repeats, trace, math, &r.row);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "bench");
        print(s, &r);
        code = write_timeline(s, multi);
    }
    return code;
}

/* Nothing is whole anywhere, so there is nothing to compare: this gives one time on each number of ranks, and the
 * check. */
static int bench_parts(session *s, rung_multi *multi, const lab_shape *shape)
{
    const bench_multi_options *o = s->options;
    result r = {.shape = shape, .operands = "parts", .ranks = rung_multi_ranks(multi)};
    int code = choose_grid(s, &r);
    if (code)
        return code;
    rung_status status = lab_multi_parts(multi, shape, r.rows, r.cols, (int)o->repeats, (rung_math)o->math, &r.row);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "bench");
    print(s, &r);
    return CLI_PASS;
}

static rung_status open_context(const session *s, int ranks, rung_multi **multi)
{
    int devices[MOST_RANKS]; /* named, since without a GPU the ranks would be CPUs' */
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.math = (rung_math)s->options->math;
    config.ranks = ranks;
    config.memory_bytes = s->options->memory_mib << 20;
    for (int i = 0; i < MOST_RANKS; i++)
        devices[i] = s->cpu ? RUNG_DEVICE_CPU : i;
    config.devices = devices;
    return rung_multi_create(multi, &config);
}

typedef struct peers {
    lab_stats one, xt; /* one: one GPU alone; xt: cuBLAS-XT on as many GPUs */
    int xt_block;
} peers;

/* Returns how many ways of cutting k there are to try. */
static int cuts(const session *s)
{
    return s->panel_count ? s->panel_count : 1;
}

static rung_status open_cut(const session *s, int ranks, int cut, rung_multi **multi)
{
    if (s->panel_count)
        setenv("RUNG_MULTI_PANEL", s->panels[cut], 1);
    return open_context(s, ranks, multi);
}

static int bench_count(session *s, int ranks, const lab_whole *whole, const peers *p)
{
    int code = CLI_PASS;
    for (int i = 0; i < cuts(s) && code == CLI_PASS; i++) {
        rung_multi *multi;
        rung_status status = open_cut(s, ranks, i, &multi);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "bench");
        code = bench_context(s, multi, whole, p->one.median, p->xt.median, p->xt_block);
        rung_multi_destroy(multi);
    }
    return code;
}

/* Times the best that others do with the same operands: one GPU alone, and cuBLAS-XT on each number of GPUs. */
static int bench_local(session *s, const lab_whole *whole)
{
    const bench_multi_options *o = s->options;
    peers p = {.xt_block = 0};
    int code = CLI_PASS;
    if (!s->cpu && !o->no_peer && lab_multi_one_gpu(whole, (rung_math)o->math, (int)o->repeats, &p.one) != RUNG_SUCCESS)
        fprintf(stderr, "rung: one GPU alone was not measured: %s\n", lab_error());
    for (int i = 0; i < s->count_count && code == CLI_PASS; i++) {
        if (!s->cpu && !o->no_peer && wants(s, "host") &&
            lab_multi_cublasxt(whole, s->counts[i], (int)o->repeats, &p.xt, &p.xt_block) != RUNG_SUCCESS) {
            fprintf(stderr, "rung: not compared: %s\n", lab_error());
            p.xt = (lab_stats){0};
            p.xt_block = 0;
        }
        code = bench_count(s, s->counts[i], whole, &p);
    }
    return code;
}

static int bench_shape(session *s, const lab_shape *shape)
{
    lab_whole whole;
    for (int i = 0; wants(s, "parts") && i < s->count_count * cuts(s); i++) {
        rung_multi *multi;
        rung_status status = open_cut(s, s->counts[i / cuts(s)], i % cuts(s), &multi);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "bench");
        int code = bench_parts(s, multi, shape);
        rung_multi_destroy(multi);
        if (code)
            return code;
    }
    if (!wants(s, "distributed") && !wants(s, "host"))
        return CLI_PASS;
    rung_status status = lab_whole_new(&whole, shape, s->owner);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "bench");
    int code = s->options->distributed ? bench_context(s, s->owner, &whole, 0.0, 0.0, 0) : bench_local(s, &whole);
    lab_whole_free(&whole);
    return code;
}

static int read_counts(session *s)
{
    char copy[256];
    const char *words[MOST_COUNTS], *text = s->options->gpus;
    s->cpu = strncmp(text, "cpu", 3) == 0;
    s->count_count = cli_split(s->cpu ? text + 3 : text, copy, sizeof copy, words, MOST_COUNTS);
    if (s->count_count < 0)
        return CLI_USAGE;
    for (int i = 0; i < s->count_count; i++) {
        int64_t count;
        if (!cli_is_integer(words[i], 1, MOST_RANKS, &count))
            return cli_usage("--gpus %s: expected numbers of GPUs such as 4 or 1,2,4 (cpu4: CPU ranks)", text);
        s->counts[i] = (int)count;
    }
    return s->count_count ? CLI_PASS : cli_usage("--gpus needs a number");
}

static int check_operands(const char *text)
{
    static const char *const known[] = {"distributed", "host", "parts", NULL};
    char copy[256];
    const char *words[MOST_COUNTS];
    int count = cli_split(text, copy, sizeof copy, words, MOST_COUNTS);
    if (count < 0)
        return CLI_USAGE;
    for (int i = 0; i < count; i++)
        if (lab_name_find(known, words[i]) < 0)
            return cli_unknown("kind of --operands", words[i], known);
    return count ? CLI_PASS : cli_usage("--operands needs a word: distributed, host or parts");
}

/* Has the library read each way of cutting k, before the first is timed: a context of one CPU costs little. */
static int check_panels(const session *s)
{
    const int cpu = RUNG_DEVICE_CPU;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = 1;
    config.devices = &cpu;
    for (int i = 0; i < s->panel_count; i++) {
        rung_multi *multi;
        setenv("RUNG_MULTI_PANEL", s->panels[i], 1);
        if (rung_multi_create(&multi, &config) != RUNG_SUCCESS)
            return cli_usage("--panels: %s", rung_last_error());
        rung_multi_destroy(multi);
    }
    return CLI_PASS;
}

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static rung_status open_owner(session *s)
{
    if (!s->options->distributed) {
        int most = 0;
        for (int i = 0; i < s->count_count; i++)
            most = s->counts[i] > most ? s->counts[i] : most;
        return open_context(s, most, &s->owner);
    }
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = is_set("RUNG_RANK") || is_set("RUNG_NCCL") ? RUNG_TRANSPORT_NCCL : RUNG_TRANSPORT_MPI;
    config.math = (rung_math)s->options->math;
    s->cpu = config.transport == RUNG_TRANSPORT_MPI;
    return rung_multi_create(&s->owner, &config);
}

static int refuse_idle(const session *s)
{
    int code = s->options->distributed
                   ? cli_idle("bench", "gpus", "beside --distributed, which counts its ranks itself")
                   : CLI_PASS;
    if (code == CLI_PASS && !wants(s, "distributed"))
        code = cli_idle("bench", wants(s, "parts") ? "block" : "block grid", "without distributed operands");
    return code || wants(s, "host") ? code : cli_idle("bench", "memory-mib", "without host operands");
}

int cli_bench_multi(const bench_multi_options *o, const lab_shapes *shapes)
{
    session s = {.options = o};
    if (o->repeats > LAB_MULTI_REPEATS)
        return cli_usage("--repeats %lld: at most %d", (long long)o->repeats, LAB_MULTI_REPEATS);
    int code = check_operands(o->operands);
    if (code == CLI_PASS && !o->distributed)
        code = read_counts(&s);
    if (code)
        return code;
    if (refuse_idle(&s))
        return CLI_USAGE;
    if (o->distributed && (wants(&s, "host") || wants(&s, "parts")))
        return cli_usage("--distributed has its operands distributed: --operands host is for --gpus, and so is parts");
    if (o->distributed && o->panels)
        return cli_usage("--distributed cuts k as RUNG_MULTI_PANEL says: --panels is for --gpus");
    if (o->timeline && !wants(&s, "distributed") && !wants(&s, "host"))
        return cli_usage("parts have no --timeline: it is drawn of distributed and of host operands");
    if (o->panels)
        s.panel_count = cli_split(o->panels, s.panels_text, sizeof s.panels_text, s.panels, MOST_PANELS);
    if (s.panel_count < 0)
        return CLI_USAGE;
    rung_status status = open_owner(&s);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "bench");
    int mine = rung_multi_first_rank(s.owner) == 0, rows, cols;
    if (o->grid)
        code = read_grid(&s, rung_multi_ranks(s.owner), &rows, &cols);
    if (code == CLI_PASS)
        code = check_panels(&s); /* the owner has been opened as the environment says */
    if (code == CLI_PASS && mine && o->output && !(s.record = cli_open_record(o->output)))
        code = cli_usage("%s", lab_error());
    if (code == CLI_PASS && mine)
        cli_table_begin(&s.table, (cli_format)o->format, columns);
    for (int i = 0; i < shapes->count && code == CLI_PASS; i++)
        code = bench_shape(&s, &shapes->list[i]);
    code = cli_close_record(s.record, o->output, code);
    rung_multi_destroy(s.owner);
    return code == CLI_PASS && s.failed ? CLI_FAIL : code;
}
