/* rung lens: a GPU kernel on the CPU, lane by lane: what each line asks of memory, and what is wrong with it. */
#define _GNU_SOURCE /* getline */
#include "cli/commands.h"
#include "lab/lens.h"
#include "lab/lens_html.h"
#include "lab/lens_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *file, *tile, *symbol, *svg, *html, *pictures;
    float alpha, beta;
    int64_t threads, shared, pad, offset, blocks, patience;
    int all, check, format;
} options;

static const cli_column site_columns[] = {{"line", "line", 4, 0},
                                          {"access", "access", 19, -1},
                                          {"operand", "of", 8, -1},
                                          {"requests", "requests", 10, 0},
                                          {"lanes", "lanes", 5, 1},
                                          {"sectors_per_request", "sectors", 7, 2},
                                          {"used_percent", "used %", 6, 1},
                                          {"wavefronts_per_request", "passes", 6, 2},
                                          {"ways", "n-way", 5, 0},
                                          {"source", "source", 60, -1},
                                          {0}};
static const cli_column total_columns[] = {{"quantity", "quantity", 52, -1}, {"value", "value", 14, 3}, {0}};
static const cli_column check_columns[] = {{"kernel", "kernel", 36, -1},
                                           {"result", "result", 6, -1},
                                           {"cases", "cases", 5, 0},
                                           {"error_u", "error u", 8, 2},
                                           {"findings", "findings", 8, 0},
                                           {"note", "note", 40, -1},
                                           {0}};

/* Reads the text of a source line, without its indent. */
static void source_line(const char *file, int number, char *text, size_t bytes)
{
    FILE *from = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    text[0] = 0;
    for (int i = 1; from && i <= number && getline(&line, &room, from) >= 0; i++) {
        if (i < number)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(text, bytes, "%.*s", (int)bytes - 1, line + strspn(line, " \t"));
    }
    free(line);
    if (from)
        fclose(from);
}

static void print_site(cli_table *table, const rung_lens_site *s)
{
    static const char *const spaces[] = {"global", "shared"};
    static const char *const kinds[] = {"load", "store", "atomic", "cp.async", "bulk", "mma"};
    char access[48], source[160];
    snprintf(access, sizeof access, "%s %s %d B", spaces[s->space], kinds[s->kind], s->bytes);
    source_line(s->file, s->line, source, sizeof source);
    cli_number(table, s->line);
    cli_text(table, access);
    cli_text(table, s->name);
    cli_number(table, s->requests);
    cli_number(table, s->lanes / s->requests);
    int global = s->space == RUNG_LENS_GLOBAL;
    cli_number(table, global ? s->sectors / s->requests : NAN);
    cli_number(table, s->bytes_moved > 0 ? 100.0 * s->bytes_used / s->bytes_moved : NAN);
    cli_number(table, global || s->wavefronts == 0 ? NAN : s->wavefronts / s->requests);
    cli_number(table, global || s->wavefronts == 0 ? NAN : (double)s->ways);
    cli_text(table, source);
}

static void total(cli_table *table, const char *quantity, double value)
{
    cli_text(table, quantity);
    cli_number(table, value);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static void print_totals(const options *o, const lab_lens_case *c)
{
    lab_lens_totals t;
    cli_table table;
    double results = (double)c->m * (double)c->n, products = results * (double)c->k;
    int sum = c->kernel && c->kernel->role == RUNG_REDUCE; /* it sums m * n floats */
    lab_lens_sum(&t);
    if (o->format == CLI_TABLE)
        printf("\n");
    cli_table_begin(&table, (cli_format)o->format, total_columns);
    total(&table, sum ? "global loads per float of x" : "global loads per result (floats)",
          t.global_load_bytes / 4 / results);
    total(&table, sum ? "shared loads per float of x" : "shared loads per result (floats)",
          t.shared_load_bytes / 4 / results);
    if (!sum)
        total(&table, "reuse: operands of FMAs per float loaded from global",
              ratio(2 * products, t.global_load_bytes / 4));
    total(&table, "global load requests of warps", t.global_load_requests + t.async_requests);
    total(&table, "sectors per global load request",
          ratio(t.global_load_sectors + t.async_sectors, t.global_load_requests + t.async_requests));
    total(&table, "global load bytes used of bytes moved (%)", 100 * ratio(t.global_load_used, t.global_load_moved));
    total(&table, "bulk copies", t.bulk_requests);
    total(&table, "global store requests of warps", t.global_store_requests);
    total(&table, "sectors per global store request", ratio(t.global_store_sectors, t.global_store_requests));
    total(&table, "shared load requests as written", t.written_shared_load_requests);
    total(&table, "shared load requests as nvcc merges them", t.shared_load_requests);
    total(&table, "shared load passes", t.shared_load_wavefronts);
    total(&table, "shared load passes lost to bank conflicts", t.shared_load_wavefronts - t.shared_load_ideal);
    total(&table, "shared store passes", t.shared_store_wavefronts);
    total(&table, "shared store passes lost to bank conflicts", t.shared_store_wavefronts - t.shared_store_ideal);
    if (!sum)
        total(&table, "shared load passes per FMA of a warp", t.shared_load_wavefronts / (products / 32));
    total(&table, "barriers a block", ratio(t.barriers, t.blocks));
}

static void print_findings(void)
{
    cli_progress(NULL);
    for (int i = 0; i < lab_lens_launches(); i++) {
        const rung_lens_launch *launch = lab_lens_launch(i);
        for (int j = 0; j < launch->finding_count; j++)
            fprintf(stderr, "%s: %s\n", launch->kernel, launch->findings[j].text);
        if (launch->findings_left_out)
            fprintf(stderr, "%s: %d more\n", launch->kernel, launch->findings_left_out);
    }
}

static int print_run(const options *o, const lab_lens_case *c, const lab_lens_result *result, const char *name)
{
    for (int i = 0; i < lab_lens_launches(); i++) {
        const rung_lens_launch *l = lab_lens_launch(i);
        cli_table table;
        char work[96];
        if (c->kernel && c->kernel->role == RUNG_REDUCE)
            snprintf(work, sizeof work, ", launch %d of %d for the sum of %lld floats,", i + 1, lab_lens_launches(),
                     (long long)(c->m * c->n));
        else
            snprintf(work, sizeof work, " at %lld x %lld x %lld", (long long)c->m, (long long)c->n, (long long)c->k);
        if (o->format == CLI_TABLE)
            printf("%s%s under the lens: grid %u x %u x %u, %u threads, %d B shared; %lld of %lld blocks ran%s\n",
                   l->kernel, work, l->grid[0], l->grid[1], l->grid[2], l->threads,
                   l->static_shared_bytes + l->dynamic_shared_bytes, (long long)l->blocks_run, (long long)l->blocks,
                   l->blocks_run < l->blocks ? " and stand for the rest" : "");
        cli_table_begin(&table, (cli_format)o->format, site_columns);
        for (int j = 0; j < l->site_count; j++)
            print_site(&table, &l->sites[j]);
    }
    if (lab_lens_launches())
        print_totals(o, c);
    print_findings();
    if (result->findings || !result->right)
        return cli_fail("%s: %s%s%d finding%s", name, result->right ? "" : result->why, result->right ? "" : "; ",
                        result->findings + result->findings_left_out,
                        result->findings + result->findings_left_out == 1 ? "" : "s");
    if (o->format == CLI_TABLE && result->unjudged)
        printf("\nno result judged, since blocks that did not run write what others read (--all runs every block); "
               "nothing out of bounds, unwritten, racing or divergent\n");
    else if (o->format == CLI_TABLE)
        printf("\n%lld results checked against FP64: worst error %.2f u; nothing out of bounds, unwritten, racing or "
               "divergent\n",
               (long long)result->checked, result->error_u);
    return CLI_PASS;
}

/* ---- --check: a rung's edges, every block, small enough for every build ---- */

typedef struct edge {
    int m, n, k; /* they count tiles */
    int dm, dn, dk, pad, offset;
    float alpha, beta;
} edge;

enum { ROUND = -1 }; /* as k: twice round the ring of stages, and a step more; fewer steps never meet a stage again */

static const edge edges[] = {
    {0, 0, 0, 1, 1, 1, 0, 0, 1.0f, 0.0f},     {1, 1, 1, -1, 1, 1, 3, 0, -0.5f, 1.0f},
    {1, 1, 2, 0, 0, 0, 4, 0, 1.0f, -0.5f},    {1, 1, 1, 1, -1, -1, 0, 1, 1.0f, 0.0f},
    {2, 1, 2, 1, 1, 1, 0, 0, 1.0f, 1.0f},     {1, 2, 4, 0, 0, 3, 1, 0, 2.0f, 0.0f},
    {1, 1, ROUND, 0, 0, 1, 0, 0, 1.0f, 0.0f}, {1, 1, 2, 0, 0, 4, 4, 0, 1.0f, 0.0f}, /* whole tiles but for k's end */
};

static int64_t at_least_1(int64_t x)
{
    return x > 1 ? x : 1;
}

static lab_lens_case edge_case(const rung_kernel *kernel, const edge *e)
{
    int bk = kernel->bk > 0 ? kernel->bk : 8;
    bk = bk < 4 ? 4 : bk;
    const int64_t steps = e->k == ROUND ? 2 * (int64_t)kernel->stages + 1 : e->k;
    return (lab_lens_case){.kernel = kernel,
                           .m = at_least_1((int64_t)e->m * kernel->bm + e->dm),
                           .n = at_least_1((int64_t)e->n * kernel->bn + e->dn),
                           .k = at_least_1(steps * bk + e->dk),
                           .pad = e->pad,
                           .offset = e->offset,
                           .alpha = e->alpha,
                           .beta = e->beta,
                           .sms = 3};
}

typedef struct checked {
    int cases, findings, failed;
    double error_u;
    char note[400];
} checked;

static void check_one(const lab_lens_case *c, checked *sum)
{
    lab_lens_result result;
    rung_status status = lab_lens_run(c, &result);
    if (status == RUNG_UNSUPPORTED)
        return; /* the kernel refuses such shapes, as it may */
    sum->cases++;
    sum->findings += result.findings + result.findings_left_out;
    sum->error_u = fmax(sum->error_u, result.error_u);
    if (status == RUNG_SUCCESS && result.right && !result.findings)
        return;
    print_findings();
    const char *why = status != RUNG_SUCCESS ? lab_error() : result.why[0] ? result.why : "right, with findings";
    if (!sum->failed++ && c->kernel->role != RUNG_REDUCE)
        snprintf(sum->note, sizeof sum->note, "%lldx%lldx%lld: %.300s", (long long)c->m, (long long)c->n,
                 (long long)c->k, why);
    else if (sum->failed == 1)
        snprintf(sum->note, sizeof sum->note, "%.300s", why);
}

/* Production kernels load fragments that they may not use, before these were written. In their launches such values are
 * poison and no finding: a use shows as a wrong result. */
static void settle_findings(const rung_kernel *kernel)
{
    static int mine;
    const int reads_ahead = kernel && kernel->role == RUNG_PRODUCTION;
    if (getenv("RUNG_LENS_FINDINGS") && !mine)
        return;
    mine = reads_ahead;
    if (reads_ahead)
        setenv("RUNG_LENS_FINDINGS", "fail", 1);
    else
        unsetenv("RUNG_LENS_FINDINGS");
}

static int check_kernel(cli_table *table, const rung_kernel *kernel)
{
    static const int64_t lengths[] = {0, 1, 31, 32, 33, 255, 256, 257, 1000, 2047, 2048, 2049, 4099, 70001};
    checked sum = {0};
    cli_progress("%s", kernel->name);
    settle_findings(kernel);
    const char *missing = lab_lens_missing(kernel);
    if (missing) {
        /* Tensor-core rungs may use instructions that the lens has no words for; FP32 ones may not. */
        sum.failed = kernel->arith == RUNG_F32;
        snprintf(sum.note, sizeof sum.note, "%.390s", missing);
    } else if (kernel->role == RUNG_REDUCE) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            lab_lens_case c = {.kernel = kernel, .m = 1, .n = lengths[i], .offset = (int64_t)i % 3, .sms = 3};
            check_one(&c, &sum);
        }
    } else {
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
            lab_lens_case c = edge_case(kernel, &edges[i]);
            check_one(&c, &sum);
        }
    }
    cli_progress(NULL);
    cli_text(table, kernel->name);
    cli_text(table, sum.failed ? "FAIL" : sum.cases ? "pass" : "no");
    cli_number(table, sum.cases);
    cli_number(table, sum.error_u);
    cli_number(table, sum.findings);
    cli_text(table, sum.note);
    fflush(stdout);
    return sum.failed;
}

static int check_all(const options *o, const char **words, int count)
{
    cli_table table;
    int failed = 0, ran = 0, code = cli_check_kernels(words, count);
    if (code)
        return code;
    cli_table_begin(&table, (cli_format)o->format, check_columns);
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        int wanted = count ? cli_is_among(words, count, kernel->name) : kernel->role != RUNG_PRODUCTION;
        if (!wanted || kernel->backend != RUNG_BACKEND_CUDA)
            continue;
        failed += check_kernel(&table, kernel);
        ran++;
    }
    if (!ran)
        return cli_fail("no GPU kernel to check");
    return failed ? CLI_FAIL : CLI_PASS;
}

/* ---- --pictures: the figures of docs/ladder ---- */
static int draw_all(const options *o, const char **words, int count)
{
    char path[600];
    int code = cli_check_kernels(words, count);
    if (code)
        return code;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        int wanted = count == 0 || cli_is_among(words, count, kernel->name);
        if (!wanted || kernel->backend != RUNG_BACKEND_CUDA || kernel->role == RUNG_PRODUCTION ||
            lab_lens_missing(kernel))
            continue;
        lab_lens_case c = {.kernel = kernel, .m = 1024, .n = 1024, .k = 1024, .alpha = 1.0f, .max_blocks = 2};
        lab_lens_result result;
        if (kernel->role == RUNG_REDUCE)
            c.max_blocks = 0; /* the last block of a sum reads what all others wrote */
        cli_progress("%s", kernel->name);
        rung_status status = lab_lens_run(&c, &result);
        snprintf(path, sizeof path, "%s/%s.svg", o->pictures, kernel->name);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, kernel->name);
        if ((status = lab_lens_svg(path, &c)) != RUNG_SUCCESS)
            return cli_fail_file(status);
    }
    cli_progress(NULL);
    return CLI_PASS;
}

/* ---- one kernel ---- */

static int parse_shape(const char *text, lab_lens_case *c)
{
    long long m, n, k;
    char rest;
    if (sscanf(text, "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 0)
        return cli_usage("'%s' is no shape: MxNxK, such as 1024x1024x1024, M and N from 1 on", text);
    if (lab_sizes_check(m, n, k, 1, c->pad > c->offset ? c->pad : c->offset) != RUNG_SUCCESS)
        return cli_usage("%s", lab_error());
    c->m = m, c->n = n, c->k = k;
    return 0;
}

/* Chooses the kernel of a file of the user's own: that of the file's name, else the only one. */
static int own_symbol(const options *o, const char *object, char *symbol, size_t symbol_bytes)
{
    enum { MOST = 8 };
    char names[MOST][LAB_LENS_NAME_BYTES];
    if (lab_lens_kernels(object, symbol, names, MOST))
        return 0;
    int count = lab_lens_kernels(object, NULL, names, MOST);
    if (count > 1)
        return cli_usage("%s has the kernels %s and %s%s: --symbol says which", o->file, names[0], names[1],
                         count > 2 ? " and others" : "");
    if (count == 1)
        snprintf(symbol, symbol_bytes, "%s", names[0]);
    return 0;
}

static int own_kernel(const options *o, lab_lens_case *c, char *object, size_t object_bytes, char *symbol,
                      size_t symbol_bytes)
{
    enum { SIDE_MOST = 1 << 20, SHARED_MOST = 1 << 30 };
    int64_t bm = 0, bn = 0;
    if (o->tile && !cli_read_pair(o->tile, SIDE_MOST, &bm, &bn))
        return cli_usage("lens --tile: '%s' is not BMxBN, such as 32x32", o->tile);
    if (!o->tile || o->threads < 1)
        return cli_usage(
            "--file needs --tile BMxBN and --threads N: what a block of your kernel computes, and with how many");
    if (o->shared > SHARED_MOST) /* the lens says what a block has; this is more than it counts */
        return cli_usage("lens --shared %lld: no block has so many bytes", (long long)o->shared);
    c->bm = (int)bm;
    c->bn = (int)bn;
    const char *name = strrchr(o->file, '/');
    snprintf(symbol, symbol_bytes, "%.*s", (int)strcspn(name ? name + 1 : o->file, "."), name ? name + 1 : o->file);
    rung_status status = lab_lens_compile(o->file, object, object_bytes);
    if (status != RUNG_SUCCESS)
        return status == RUNG_INVALID_ARGUMENT ? cli_fail_file(status) : cli_fail_status(status, "lens");
    c->object = object;
    c->symbol = o->symbol ? o->symbol : symbol;
    int code = o->symbol ? 0 : own_symbol(o, object, symbol, symbol_bytes);
    if (code)
        return code;
    c->threads = (int)o->threads;
    c->shared_bytes = (int)o->shared;
    return 0;
}

/* Results that nobody writes are often those of a tile that is not as large as it was said to be. */
static void doubt_tile(const lab_lens_case *c, const lab_lens_result *result)
{
    const rung_kernel *kernel = c->kernel;
    if (strstr(result->why, "never written") && !result->untouched)
        fprintf(stderr, "rung: %s that a block of %d threads computes %d x %d results: does the kernel?\n",
                kernel ? "its row says (.threads, .bm, .bn)" : "--threads and --tile say",
                kernel ? kernel->threads : c->threads, kernel ? kernel->bm : c->bm, kernel ? kernel->bn : c->bn);
}

static int run_one(const options *o, const char **words, int count)
{
    char object[600], symbol[96];
    lab_lens_case c = {.m = 1024,
                       .n = 1024,
                       .k = 1024,
                       .alpha = o->alpha,
                       .beta = o->beta,
                       .pad = o->pad,
                       .offset = o->offset,
                       .max_blocks = o->all          ? 0
                                     : o->blocks > 0 ? o->blocks
                                                     : 2,
                       .patience_seconds = (double)o->patience};
    int shape = o->file ? 0 : 1;
    if (count > shape + 1 || (!o->file && count == 0))
        return cli_usage("lens takes a kernel and a shape, or --file and a shape, or --check");
    if (count > shape && parse_shape(words[shape], &c))
        return CLI_USAGE;
    const char *name = o->file ? o->file : words[0];
    if (!o->file && (o->tile || o->threads || o->shared || o->symbol))
        return cli_usage("--tile, --threads, --shared and --symbol describe a kernel of your own: they need --file");
    if (!o->file && !(c.kernel = rung_kernel_find(words[0])))
        return cli_unknown_kernel(words[0]);
    if (c.kernel && c.kernel->role == RUNG_REDUCE && cli_idle("lens", "alpha beta pad", "for a sum"))
        return CLI_USAGE;
    if (c.kernel && c.kernel->backend != RUNG_BACKEND_CUDA)
        return cli_usage(
            "%s is a CPU kernel: the lens is for GPU kernels; 'rung bench --device cpu --kernel %s' times it", name,
            name);
    settle_findings(c.kernel);
    if (o->file) {
        int code = own_kernel(o, &c, object, sizeof object, symbol, sizeof symbol);
        if (code)
            return code;
    } else if (lab_lens_missing(c.kernel)) {
        return cli_fail("%s", lab_lens_missing(c.kernel));
    }
    lab_lens_result result;
    if (c.kernel && c.kernel->role == RUNG_REDUCE && o->blocks <= 0)
        c.max_blocks = 0; /* a sum needs all of its blocks */
    if (c.max_blocks && lab_lens_whole(c.kernel))
        cli_progress("every block of %s, since %s: half a minute", name, lab_lens_whole(c.kernel));
    rung_status status = lab_lens_run(&c, &result);
    cli_progress(NULL);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, name);
    int code = print_run(o, &c, &result, name);
    doubt_tile(&c, &result);
    if (o->svg && (status = lab_lens_svg(o->svg, &c)) != RUNG_SUCCESS)
        return cli_fail_file(status);
    if (o->html && (status = lab_lens_html(o->html, &c, result.why[0] ? result.why : NULL)) != RUNG_SUCCESS)
        return cli_fail_file(status);
    return code;
}

static int refuse_idle(const options *o)
{
    static const char of_one[] = "file tile threads shared symbol svg html alpha beta pad offset blocks all patience";
    int code = o->check || o->pictures ? cli_idle("lens", of_one, o->check ? "beside --check" : "beside --pictures")
                                       : CLI_PASS;
    if (code == CLI_PASS && o->pictures)
        code = o->check ? cli_idle("lens", "pictures", "beside --check")
                        : cli_idle("lens", "format o", "beside --pictures: it prints no rows");
    if (code == CLI_PASS && o->all)
        code = cli_idle("lens", "blocks", "beside --all");
    return code;
}

int cmd_lens(int argc, char **argv)
{
    options o = {.format = CLI_TABLE, .alpha = 1.0f};
    const char *words[64];
    int count = 0;
    const cli_option list[] = {
        {"check", CLI_FLAG, &o.check, NULL,
         "the ladder (or the kernels named) at sizes with edges: results and findings"},
        {"file", CLI_TEXT, &o.file, NULL, "a kernel file of your own, taking rung_args; with --tile and --threads"},
        {"tile", CLI_TEXT, &o.tile, NULL, "BMxBN that one block of --file computes"},
        {"threads", CLI_COUNT, &o.threads, NULL, "threads of a block of --file"},
        {"shared", CLI_INTEGER, &o.shared, NULL, "dynamic shared memory of --file in bytes"},
        {"symbol", CLI_TEXT, &o.symbol, NULL, "the kernel's name in --file; default: the file's, else its only one"},
        {"svg", CLI_TEXT, &o.svg, NULL, "draw the tiles, sectors and banks into this file"},
        {"html", CLI_TEXT, &o.html, NULL, "the source with its counts, and each access lane by lane, as one page"},
        {"pictures", CLI_TEXT, &o.pictures, NULL,
         "draw every rung of the GPU ladder (or the kernels named) into this folder"},
        {"alpha", CLI_REAL, &o.alpha, NULL, "default 1"},
        {"beta", CLI_REAL, &o.beta, NULL, "default 0"},
        {"pad", CLI_INTEGER, &o.pad, NULL, "elements added to each leading dimension"},
        {"offset", CLI_INTEGER, &o.offset, NULL, "elements by which operands miss alignment"},
        {"blocks", CLI_AMOUNT, &o.blocks, NULL, "blocks to run of each kind (inside, edges, corner); default 2"},
        {"all", CLI_FLAG, &o.all, NULL, "run every block"},
        {"patience", CLI_AMOUNT, &o.patience, NULL, "seconds until a lane counts as an endless loop; default 10"},
        CLI_FORMAT(o.format),
        {0}};
    int code = cli_parse("lens", list, argc, argv, words, &count, 64);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if ((code = refuse_idle(&o)))
        return code;
    rung_status status = lab_lens_open();
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "lens");
    code = o.check ? check_all(&o, words, count) : o.pictures ? draw_all(&o, words, count) : run_one(&o, words, count);
    lab_lens_close();
    return code;
}
