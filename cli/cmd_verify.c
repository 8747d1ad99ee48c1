/* rung verify: the contract's cases, from each kernel's own row; failures as lines that can be run again. */
#include "cli/commands.h"
#include "lab/names.h"
#include "lab/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_KERNELS = 256, MAX_SHOWN = 3 };

typedef struct options {
    const char *device, *kernels, *one_case;
    int math, quick, huge, format, verbose, no_vendor;
    const lab_cases *only; /* one_case as a list of its own */
    int64_t threads;
} options;

typedef struct totals {
    int passed, failed, skipped;
    double worst_u, worst_share; /* of the accuracy cases: error, and error over bound */
    char first_skip[160];
} totals;

static const cli_column columns[] = {{"kernel", "kernel", 36, -1}, {"result", "result", 6, -1},
                                     {"passed", "passed", 6, 0}, {"failed", "failed", 6, 0},
                                     {"refused", "refused", 7, 0}, {"error_u", "error u", 8, 2},
                                     {"of_bound", "of bound", 8, 2}, {"seconds", "s", 7, 2}, {"note", "note", 30, -1}};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void report_failure(const options *o, const lab_case *c, const lab_verdict *verdict, const rung_kernel *kernel)
{
    char text[LAB_CASE_TEXT];
    lab_case_print(c, text);
    cli_progress(NULL);
    fprintf(stderr, "FAIL %s: %s\n     rung verify --device %s %s %s --case '%s'\n", verdict->kernel, verdict->why, o->device,
            kernel ? "--kernel" : "--math", kernel ? kernel->name : lab_math_names[o->math], text);
}

static void count(totals *t, const lab_case *c, const lab_verdict *verdict)
{
    if (verdict->outcome == LAB_SKIP) {
        if (t->skipped++ == 0)
            snprintf(t->first_skip, sizeof t->first_skip, "%.150s", verdict->why);
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
    cli_text(table, t->passed ? "" : t->first_skip);
}

/* All cases of one kernel. *lost: the machine failed, stop. */
static totals verify_kernel(const options *o, lab_verifier *v, const rung_kernel *kernel, const lab_cases *cases, int *lost)
{
    totals t = {0};
    for (int i = 0; i < cases->count && !*lost; i++) {
        lab_verdict verdict;
        cli_progress("%s: case %d of %d", kernel ? kernel->name : "the library's choice", i + 1, cases->count);
        *lost = lab_verify(v, kernel, &cases->list[i], &verdict) != RUNG_SUCCESS;
        count(&t, &cases->list[i], &verdict);
        if (verdict.outcome == LAB_FAIL && t.failed <= MAX_SHOWN)
            report_failure(o, &cases->list[i], &verdict, kernel);
        if (o->verbose) {
            char text[LAB_CASE_TEXT];
            lab_case_print(&cases->list[i], text);
            fprintf(stderr, "%-4s %-34s %-60s %.2f u of %.2f (chain %.2f, vendor %.2f) %s\n",
                    verdict.outcome == LAB_PASS ? "ok" : verdict.outcome == LAB_FAIL ? "FAIL" : "-", verdict.kernel, text,
                    verdict.error_u, verdict.bound_u, verdict.chain_u, verdict.vendor_u, verdict.why);
        }
    }
    return t;
}

static int verify_list(const options *o, lab_place *place, lab_verifier *v, const rung_kernel **kernels, int kernel_count)
{
    cli_table table;
    int failed = 0, lost = 0, ran = 0;
    lab_depth depth = o->quick ? LAB_QUICK : o->huge ? LAB_HUGE : LAB_FULL;
    cli_table_begin(&table, (cli_format)o->format, columns, (int)(sizeof columns / sizeof columns[0]));
    for (int i = 0; i < kernel_count && !lost; i++) {
        lab_cases cases = {0};
        double start = now_s();
        rung_status status = RUNG_SUCCESS;
        if (!o->one_case)
            status = lab_cases_for(kernels[i], place->tools ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU, depth, &cases);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "verify");
        if (o->one_case)
            cases = *o->only;
        totals t = verify_kernel(o, v, kernels[i], &cases, &lost);
        print_totals(&table, kernels[i] ? kernels[i]->name : "(library)", &t, now_s() - start);
        failed += t.failed;
        ran += t.passed + t.failed;
        if (!o->one_case)
            free(cases.list);
    }
    if (lost)
        return cli_fail("the device failed: %s", lab_error());
    if (!ran)
        return cli_fail("nothing was verified: no case was accepted");
    return failed ? CLI_FAIL : CLI_PASS;
}

/* The kernels asked for by name, or all that this place can run; then the library's own choice as kernel NULL. */
static int pick_kernels(const options *o, lab_place *place, rung_context *context, const rung_kernel **kernels, int *count_out)
{
    char copy[2048];
    const char *words[MAX_KERNELS];
    int n = 0;
    if (o->kernels) {
        int names = cli_split(o->kernels, copy, sizeof copy, words, MAX_KERNELS);
        for (int i = 0; i < names; i++) {
            kernels[n] = rung_kernel_find(words[i]);
            if (!kernels[n++])
                return cli_unknown_kernel(words[i]);
        }
    } else if (o->math >= 0) {
        kernels[n++] = NULL;
    } else {
        for (int i = 0; i < rung_kernel_count() && n < MAX_KERNELS - 1; i++) {
            const rung_kernel *k = rung_kernel_at(i);
            if (k->role != RUNG_REDUCE && (k->backend == RUNG_BACKEND_CUDA) == (place->tools != NULL) &&
                !rung_kernel_unusable(context, k))
                kernels[n++] = k;
        }
        kernels[n++] = NULL;
    }
    *count_out = n;
    return 0;
}

static int run(const options *o, int device)
{
    lab_place place;
    lab_verifier verifier = {0};
    lab_peer vendor = {0};
    const rung_kernel *kernels[MAX_KERNELS];
    int kernel_count = 0;
    rung_status status = lab_place_open(&place, device, (int)o->threads);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "verify");
    const char *vendor_name = place.tools ? "cublas" : "openblas";
    int have_vendor = !o->no_vendor && lab_peer_open(&place, vendor_name, &vendor) == RUNG_SUCCESS;
    if (!have_vendor && !o->no_vendor)
        fprintf(stderr, "rung: without a vendor to compare errors with: %s\n", lab_error());
    status = lab_verifier_open(&verifier, &place, o->math < 0 ? RUNG_STRICT : (rung_math)o->math,
                               have_vendor ? &vendor : NULL);
    int code = status == RUNG_SUCCESS ? pick_kernels(o, &place, verifier.context, kernels, &kernel_count)
                                      : cli_fail_status(status, "verify");
    if (code == 0)
        code = verify_list(o, &place, &verifier, kernels, kernel_count);
    lab_verifier_close(&verifier);
    lab_peer_close(&vendor);
    lab_place_close(&place);
    return code;
}

int cmd_verify(int argc, char **argv)
{
    options o = {.device = "best", .math = -1, .format = CLI_TABLE};
    int device;
    lab_case one;
    lab_cases only = {&one, 1, 1};
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"kernel", CLI_TEXT, &o.kernels, NULL, "only these kernels, comma-separated"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "the library's own choice under strict, accurate or fast"},
        {"quick", CLI_FLAG, &o.quick, NULL, "a small covering set"},
        {"huge", CLI_FLAG, &o.huge, NULL, "operands beyond 2^31 elements too (tens of GB)"},
        {"case", CLI_TEXT, &o.one_case, NULL, "one case, as a failure prints it"},
        {"threads", CLI_INTEGER, &o.threads, NULL, "CPU threads"},
        {"no-vendor", CLI_FLAG, &o.no_vendor, NULL, "judge errors by the FP32 chain alone"},
        {"verbose", CLI_FLAG, &o.verbose, NULL, "a line a case on stderr"},
        CLI_FORMAT(o.format), {0}};
    int code = cli_parse("verify", list, argc, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (o.quick && o.huge)
        return cli_usage("verify takes --quick or --huge, not both");
    if (o.one_case && lab_case_parse(o.one_case, &one) != RUNG_SUCCESS)
        return cli_usage("%s", lab_error());
    o.only = &only;
    code = cli_device(o.device, &device);
    return code ? code : run(&o, device);
}
