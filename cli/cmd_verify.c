/* rung verify: runs the contract's cases, from each kernel's own row, and prints failures as lines that can be run
 * again. */
#include "cli/commands.h"
#include "lab/bits.h"
#include "lab/measure.h"
#include "lab/names.h"
#include "lab/reduce.h"
#include "lab/refusals.h"
#include "lab/verify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 256, MOST_SHOWN = 3, MOST_CASES = 32 };

typedef struct options {
    const char *device, *kernels, *cases, *bits;
    int math, quick, huge, pairs, format, verbose, no_vendor, via, wrong_calls;
    const lab_cases *only; /* what `cases` names, read */
    int64_t threads, workspace_mb, repeats;
} options;

typedef struct totals {
    int passed, failed, skipped;
    double worst_u, worst_share; /* of the accuracy cases: the largest error, and the largest share of the bound */
    char note[160];              /* why the first case was refused, which is told where none passed */
} totals;

static const cli_column columns[] = {{"kernel", "kernel", 36, -1},   {"result", "result", 6, -1},
                                     {"passed", "passed", 6, 0},     {"failed", "failed", 6, 0},
                                     {"refused", "refused", 7, 0},   {"error_u", "error u", 8, 2},
                                     {"of_bound", "of bound", 8, 2}, {"seconds", "s", 7, 2},
                                     {"note", "note", 30, -1},       {0}};

static void count(totals *t, const lab_case *c, const lab_verdict *verdict)
{
    if (verdict->outcome == LAB_SKIP) {
        if (t->skipped++ == 0)
            snprintf(t->note, sizeof t->note, "%.150s", verdict->why);
        return;
    }
    t->passed += verdict->outcome == LAB_PASS;
    t->failed += verdict->outcome == LAB_FAIL;
    if (c->accuracy && verdict->bound_u > 0.0) {
        double share = verdict->error_u / verdict->bound_u;
        t->worst_u = fmax(t->worst_u, verdict->error_u);
        t->worst_share = fmax(t->worst_share, share);
    }
}

static void print_totals(cli_table *table, const char *name, const totals *t, double seconds)
{
    cli_text(table, name);
    cli_text(table, t->failed ? "FAIL" : t->passed ? "pass" : "none");
    cli_number(table, t->passed);
    cli_number(table, t->failed);
    cli_number(table, t->skipped);
    cli_number(table, t->worst_share > 0.0 ? t->worst_u : NAN);
    cli_number(table, t->worst_share > 0.0 ? t->worst_share : NAN);
    cli_number(table, seconds);
    cli_text(table, t->passed && t->skipped ? "" : t->note);
}

/* What one run of the verb works with. */
typedef struct session {
    const options *o;
    lab_place place;
    lab_peer vendor;
    lab_verifier verifier;
    cli_table table;
    rung_math math;
    int covering;          /* the quick cases do, after all of them by the same kernels */
    int ran, failed, lost; /* lost: the machine failed, and the run stops */
} session;

/* Prints a line on stderr; `before` is what accurate mode's guard had counted until this case. */
static void report_case(session *s, const lab_case *c, const lab_verdict *verdict, rung_guard_counts *before)
{
    static const char *const words[] = {"ok", "FAIL", "-"};
    char text[LAB_CASE_TEXT];
    rung_guard_counts now = {0};
    lab_case_print(c, text);
    cli_progress(NULL);
    fprintf(stderr, "%-4s %-34s %-60s %.2f u of %.2f (chain %.2f", words[verdict->outcome], verdict->kernel, text,
            verdict->error_u, verdict->bound_u, verdict->chain_u);
    if (verdict->vendor_u >= 0.0)
        fprintf(stderr, ", vendor %.2f", verdict->vendor_u);
    fprintf(stderr, ")%s%s", verdict->why[0] ? " " : "", verdict->why);
    if (s->place.tools && rung_context_guard_counts(s->verifier.context, &now) == RUNG_SUCCESS &&
        now.blocks > before->blocks)
        fprintf(stderr, "guard: %lld of %lld blocks, %lld elements strict",
                (long long)(now.strict_blocks - before->strict_blocks), (long long)(now.blocks - before->blocks),
                (long long)(now.strict_elements - before->strict_elements));
    fputc('\n', stderr);
    *before = now;
}

static void finish_line(session *s, const char *name, const totals *t, double start)
{
    print_totals(&s->table, name, t, lab_now_s() - start);
    s->failed += t->failed;
    s->ran += t->passed + t->failed;
}

/* Verifies a case. Of pairs of choices, one whose k is too short for a kernel is one of a longer k: else a kernel that
 * takes no short ones would be tried on few of them. */
static int verify_case(session *s, const rung_kernel *kernel, lab_case *c, lab_verdict *verdict)
{
    enum { TURNS = 3, STEPS = 8 };
    int64_t longer = kernel && kernel->bk ? STEPS * kernel->bk : 0;
    rung_status status = lab_verify(&s->verifier, kernel, c, verdict);
    for (int turn = 0; s->o->pairs && longer && turn < TURNS; turn++, longer *= 2) {
        if (status != RUNG_SUCCESS || verdict->outcome != LAB_SKIP)
            break;
        c->k += longer;
        status = lab_verify(&s->verifier, kernel, c, verdict);
    }
    return status == RUNG_SUCCESS;
}

static void verify_cases(session *s, const char *name, const rung_kernel *kernel, const lab_cases *cases)
{
    totals t = {0};
    double start = lab_now_s();
    rung_guard_counts guard = {0};
    if (s->o->verbose && s->place.tools)
        s->lost = rung_context_guard_counts(s->verifier.context, &guard) != RUNG_SUCCESS;
    for (int i = 0; i < cases->count && !s->lost; i++) {
        lab_verdict verdict;
        lab_case c = cases->list[i];
        cli_progress("%s: case %d of %d", name, i + 1, cases->count);
        s->lost = !verify_case(s, kernel, &c, &verdict);
        count(&t, &c, &verdict);
        if (verdict.outcome == LAB_FAIL && t.failed <= MOST_SHOWN)
            cli_failed_case(&s->verifier, s->o->device, kernel, &c, &verdict);
        if (s->o->verbose)
            report_case(s, &c, &verdict, &guard);
    }
    finish_line(s, name, &t, start);
}

static int verify_kernel(session *s, const char *name, const rung_kernel *kernel)
{
    const options *o = s->o;
    lab_cases cases = {0};
    lab_depth depth = o->quick || s->covering || s->verifier.via != LAB_DIRECT ? LAB_QUICK
                      : o->huge                                                ? LAB_HUGE
                                                                               : LAB_FULL;
    depth = o->pairs ? LAB_PAIRS : depth;
    if (o->cases) {
        verify_cases(s, name, kernel, o->only);
        return CLI_PASS;
    }
    rung_status status =
        lab_cases_for(kernel, s->math, s->place.tools ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU, depth, &cases);
    if (status == RUNG_SUCCESS)
        verify_cases(s, name, kernel, &cases);
    free(cases.list);
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, "verify");
}

/* Grades the growth of errors: squares of U(0,1) from 16 up give the exponent of the error against n, by least squares;
 * it is at most 1. */
static void verify_growth(session *s, const char *name)
{
    totals t = {0};
    double start = lab_now_s(), sx = 0, sy = 0, sxx = 0, sxy = 0, count_n = 0;
    int64_t most = s->place.tools ? 4096 : 512;
    for (int64_t n = 16; n <= most && !s->lost; n *= 2) {
        char text[LAB_CASE_TEXT];
        lab_case c;
        lab_verdict verdict;
        snprintf(text, sizeof text, "NN:%lldx%lldx%lld:row,data=positive,judge=accuracy", (long long)n, (long long)n,
                 (long long)n);
        cli_progress("%s: n = %lld", name, (long long)n);
        s->lost =
            lab_case_parse(text, &c) != RUNG_SUCCESS || lab_verify(&s->verifier, NULL, &c, &verdict) != RUNG_SUCCESS;
        if (s->lost)
            break;
        count(&t, &c, &verdict);
        if (verdict.outcome == LAB_FAIL)
            cli_failed_case(&s->verifier, s->o->device, NULL, &c, &verdict);
        double x = log2((double)n), y = log2(fmax(verdict.error_u, 0.01));
        sx += x, sy += y, sxx += x * x, sxy += x * y, count_n++;
    }
    double exponent = (count_n * sxy - sx * sy) / (count_n * sxx - sx * sx);
    if (s->math != RUNG_FAST && !(exponent <= 1.0)) { /* fast mode, one pass of 11 bits, promises no such thing */
        t.failed++;
        cli_progress(NULL);
        fprintf(stderr, "FAIL %s: the error grows as n^%.2f, more than n\n", name, exponent);
    }
    snprintf(t.note, sizeof t.note, "grows as n^%.2f", exponent);
    finish_line(s, name, &t, start);
}

/* Verifies the library's own choice in one mode. */
static int verify_library(session *s, rung_math math)
{
    char name[64];
    static const char *const ways[] = {"", ", from host", ", in a graph", ", by BLAS", ", by cuBLAS", ", on ranks"};
    snprintf(name, sizeof name, "(library, %s%s)", lab_math_names[math], ways[s->verifier.via]);
    if (rung_context_set_math(s->verifier.context, math) != RUNG_SUCCESS)
        return cli_fail("%s: %s", name, lab_error());
    s->math = math;
    int code = verify_kernel(s, name, NULL);
    if (code == CLI_PASS && !s->lost && !s->o->cases && s->verifier.via == LAB_DIRECT) {
        snprintf(name, sizeof name, "(growth of the error, %s)", lab_math_names[math]);
        verify_growth(s, name);
    }
    return code;
}

static int verify_via(session *s, lab_via via, rung_math math)
{
    if (lab_verifier_set_via(&s->verifier, via) != RUNG_SUCCESS)
        return cli_fail("verify: %s", lab_error());
    return verify_library(s, math);
}

static int verify_named(session *s)
{
    char copy[2048];
    const char *words[MOST_KERNELS];
    int names = cli_split(s->o->kernels, copy, sizeof copy, words, MOST_KERNELS), code = CLI_PASS;
    for (int i = 0; i < names && code == CLI_PASS && !s->lost; i++) {
        const rung_kernel *kernel = rung_kernel_find(words[i]);
        const char *why = rung_kernel_unusable(s->verifier.context, kernel);
        if ((kernel->backend == RUNG_BACKEND_CPU) == (s->place.tools != NULL))
            code = cli_other_device("verify", kernel);
        else if (why)
            code =
                cli_fail("%s cannot be verified on %s: %s", words[i], s->place.tools ? s->place.name : "the CPU", why);
        else
            code = verify_kernel(s, words[i], kernel);
    }
    return code;
}

/* Verifies sums: every rung of that ladder and rung_ssum. */
static void verify_sums(session *s)
{
    lab_reduce reduce;
    totals t = {0};
    double start = lab_now_s();
    rung_status status = lab_reduce_open(&reduce, &s->place);
    reduce.cub = NULL;
    for (int i = 0; i <= rung_kernel_count() && status == RUNG_SUCCESS; i++) {
        const rung_kernel *kernel = rung_kernel_at(i); /* it is NULL past the last rung: rung_ssum */
        char why[320];
        int ran = 0, failed = 0;
        if (kernel && (kernel->role != RUNG_REDUCE || !s->place.tools))
            continue;
        status = lab_reduce_edges(&reduce, kernel ? kernel->name : NULL, &ran, &failed, why, sizeof why);
        t.failed += failed;
        t.passed += ran - failed;
        if (failed)
            fprintf(stderr, "FAIL %s: %s\n", kernel ? kernel->name : "rung_ssum", why);
    }
    if (status != RUNG_SUCCESS) {
        t.failed++;
        fprintf(stderr, "FAIL sums: %s: %s\n", rung_status_name(status), lab_error());
    }
    lab_reduce_close(&reduce);
    finish_line(s, "(sums)", &t, start);
}

static void verify_refusals(session *s)
{
    totals t = {0};
    double start = lab_now_s();
    for (int i = 0; i < lab_refusals(); i++) {
        char why[512] = "";
        int good = lab_refusal_check(i, &s->place, why, sizeof why);
        t.passed += good > 0;
        t.skipped += good < 0;
        t.failed += good == 0;
        if (good == 0)
            fprintf(stderr, "FAIL a wrong call, %s: %s\n", lab_refusal_name(i), why);
        else if (s->o->verbose && good > 0)
            fprintf(stderr, "ok   a wrong call, %s: %s\n", lab_refusal_name(i), why);
    }
    finish_line(s, "(wrong calls)", &t, start);
}

/* Runs the whole suite of a place: every kernel that it can run, the library in each mode, host memory, sums, wrong
 * calls. */
static int verify_everything(session *s)
{
    int code = CLI_PASS;
    for (int i = 0; i < rung_kernel_count() && code == CLI_PASS && !s->lost; i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (k->role != RUNG_REDUCE && !rung_kernel_unusable(s->verifier.context, k))
            code = verify_kernel(s, k->name, k);
    }
    for (int math = RUNG_STRICT; math <= RUNG_FAST && code == CLI_PASS && !s->lost; math++) {
        s->covering = !s->place.tools && math != RUNG_STRICT; /* a CPU has no other kernels for these */
        code = verify_library(s, (rung_math)math);
    }
    s->covering = 0;
    if (code != CLI_PASS || s->lost || s->o->cases)
        return code;
    verify_sums(s);
    verify_refusals(s);
    for (int via = LAB_HOST; s->place.tools && via <= LAB_GRAPH && code == CLI_PASS && !s->lost; via++)
        for (int math = RUNG_STRICT; math <= RUNG_ACCURATE && code == CLI_PASS && !s->lost; math++)
            code = verify_via(s, (lab_via)via, (rung_math)math);
    return code;
}

/* Prints the bits of the listed products; it fails where a kept hash is another one. */
static int verify_bits(session *s)
{
    lab_bits_counts counts;
    FILE *list = fopen(s->o->bits, "r");
    if (!list)
        return cli_usage("verify --bits: %s cannot be read: %s", s->o->bits, strerror(errno));
    rung_status status = lab_bits(&s->verifier, list, stdout, &counts);
    fclose(list);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "verify --bits");
    fprintf(stderr, "bits: %d the same, %d others, %d without a kept hash, %d refused, %d whose kernel is not here\n",
            counts.same, counts.differ, counts.new_ones, counts.refused, counts.unknown);
    if (counts.same + counts.differ + counts.new_ones == 0)
        return cli_fail("verify --bits: no product of %s was computed", s->o->bits);
    return counts.differ ? CLI_FAIL : CLI_PASS;
}

static int run_session(session *s)
{
    const options *o = s->o;
    int code;
    if (o->bits)
        return verify_bits(s);
    cli_table_begin(&s->table, (cli_format)o->format, columns);
    if ((o->math >= 0 && rung_context_set_math(s->verifier.context, (rung_math)o->math) != RUNG_SUCCESS) ||
        lab_verifier_set_via(&s->verifier, (lab_via)o->via) != RUNG_SUCCESS)
        return cli_fail("verify: %s", lab_error());
    if (o->wrong_calls)
        code = (verify_refusals(s), CLI_PASS);
    else if (o->kernels)
        code = verify_named(s);
    else if (o->math >= 0)
        code = verify_library(s, (rung_math)o->math);
    else
        code = verify_everything(s);
    if (code != CLI_PASS)
        return code;
    if (s->lost)
        return cli_fail("the device failed: %s", lab_error());
    if (!s->ran)
        return cli_fail("nothing was verified: no case was accepted");
    return s->failed ? CLI_FAIL : CLI_PASS;
}

static int run(const options *o, int device)
{
    session s = {.o = o};
    rung_status status = lab_place_open(&s.place, device, (int)o->threads);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "verify");
    int have_vendor =
        !o->no_vendor && lab_peer_open(&s.place, s.place.tools ? "cublas" : "openblas", &s.vendor) == RUNG_SUCCESS;
    if (!have_vendor && !o->no_vendor)
        fprintf(stderr, "rung: without a peer to compare errors with: %s\n", lab_error());
    status = lab_verifier_open(&s.verifier, &s.place, RUNG_STRICT, have_vendor ? &s.vendor : NULL);
    if (status == RUNG_SUCCESS && o->workspace_mb)
        s.verifier.workspace_bytes = o->workspace_mb << 20;
    s.verifier.repeats = o->repeats;
    int code = status == RUNG_SUCCESS ? run_session(&s) : cli_fail_status(status, "verify");
    lab_verifier_close(&s.verifier);
    lab_peer_close(&s.vendor);
    lab_place_close(&s.place);
    return code;
}

/* All names must be known before anything is opened. */
static int check_names(const char *kernels)
{
    char copy[2048];
    const char *words[MOST_KERNELS];
    int count = kernels ? cli_split(kernels, copy, sizeof copy, words, MOST_KERNELS) : 0;
    return count < 0 ? CLI_USAGE : cli_check_kernels(words, count);
}

static int read_cases(const char *text, lab_cases *cases)
{
    char copy[MOST_CASES * LAB_CASE_TEXT], *save = NULL;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return cli_usage("too many cases");
    for (char *one = strtok_r(copy, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        if (cases->count == cases->capacity)
            return cli_usage("more than %d cases", cases->capacity);
        if (lab_case_parse(one, &cases->list[cases->count]) != RUNG_SUCCESS)
            return cli_usage("%s", lab_error());
        cases->count++;
    }
    return cases->count ? CLI_PASS : cli_usage("no case is named");
}

static int refuse_idle(const options *o)
{
    int code = CLI_PASS;
    if (o->bits)
        code = cli_idle_but("verify", "bits device threads workspace-mb", "beside --bits");
    else if (o->wrong_calls)
        code = cli_idle_but("verify", "wrong-calls device threads verbose format o", "beside --wrong-calls");
    else if (o->cases)
        code = cli_idle("verify", "quick pairs huge", "beside --case");
    else if (o->via != LAB_DIRECT)
        code = cli_idle("verify", "huge", "beside --via, which has its own cases");
    if (code == CLI_PASS && lab_via_chooses((lab_via)o->via))
        code = cli_idle("verify", "kernel", "beside --via, where the library chooses");
    return code;
}

int cmd_verify(int argc, char **argv)
{
    options o = {.device = "best", .math = -1, .format = CLI_TABLE};
    int device;
    lab_case some[MOST_CASES];
    lab_cases only = {some, 0, MOST_CASES};
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"kernel", CLI_TEXT, &o.kernels, NULL, "only these kernels, comma-separated"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "the library's own choice under strict, accurate or fast"},
        {"quick", CLI_FLAG, &o.quick, NULL, "a small covering set"},
        {"pairs", CLI_FLAG, &o.pairs, NULL,
         "only cases at a tile's edges in which every two choices meet (part of the default)"},
        {"huge", CLI_FLAG, &o.huge, NULL, "operands beyond 2^31 elements too (tens of GB)"},
        {"case", CLI_TEXT, &o.cases, NULL, "only this case, as a failure prints it, or several with ';' between"},
        {"bits", CLI_TEXT, &o.bits, NULL,
         "print the bits of the products listed in this file; fail where a kept hash differs"},
        {"repeat", CLI_COUNT, &o.repeats, NULL, "calls a case, which must give the same bits; default 2"},
        {"threads", CLI_COUNT, &o.threads, NULL, "CPU threads"},
        {"workspace-mb", CLI_AMOUNT, &o.workspace_mb, NULL, "MB of device memory a product may borrow; default 4096"},
        {"via", CLI_CHOICE, &o.via, lab_via_names,
         "GPU: direct (default), host (operands in host memory), graph (captured), cublas (the drop-in); CPU: blas "
         "(the "
         "drop-in), ranks (four of this process)"},
        {"wrong-calls", CLI_FLAG, &o.wrong_calls, NULL, "only the calls that must be refused"},
        {"no-vendor", CLI_FLAG, &o.no_vendor, NULL, "judge errors by the FP32 chain alone"},
        {"verbose", CLI_FLAG, &o.verbose, NULL, "a line a case on stderr"},
        CLI_FORMAT(o.format),
        {0}};
    int code = cli_parse("verify", list, argc, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (o.quick + o.huge + o.pairs > 1)
        return cli_usage("verify takes one of --quick, --huge and --pairs");
    if (o.cases && (code = read_cases(o.cases, &only)))
        return code;
    o.only = &only;
    code = refuse_idle(&o);
    if (code == CLI_PASS)
        code = check_names(o.kernels);
    if (code == CLI_PASS)
        code = cli_device(o.device, &device);
    return code ? code : run(&o, device);
}
