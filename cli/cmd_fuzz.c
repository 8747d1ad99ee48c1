/* rung fuzz: random calls, judged as rung verify judges; a failure becomes one line that rung verify --case takes. */
#include "cli/commands.h"
#include "lab/fuzz.h"
#include "lab/names.h"

#include <stdlib.h>
#include <time.h>

typedef struct options {
    const char *device, *kernel;
    int math, via;
    int64_t calls, seed, size, threads, seconds, from;
} options;

typedef struct counts {
    int64_t calls, passed, refused, failed;
} counts;

enum { MOST_FAILURES = 5 }; /* are made smaller and told; then it stops */

static void tell(const options *o, const char *device, const lab_verdict *verdict, const lab_case *c, int64_t number)
{
    char text[LAB_CASE_TEXT];
    lab_case_print(c, text);
    printf(
        "FAIL %s: %s\n     call %lld of --seed %lld; made smaller:\n     rung verify --device %s%s%s%s%s --case '%s'\n",
        verdict->kernel, verdict->why, (long long)number, (long long)o->seed, device, o->via ? " --via " : "",
        o->via ? lab_via_names[o->via] : "", o->kernel ? " --kernel " : " --math ",
        o->kernel ? o->kernel : lab_math_names[o->math], text);
}

static rung_status fuzz(const options *o, lab_verifier *v, const char *device, counts *n)
{
    const rung_kernel *kernel = o->kernel ? rung_kernel_find(o->kernel) : NULL;
    time_t end = o->seconds ? time(NULL) + o->seconds : 0;
    for (int64_t i = o->from; i < o->from + o->calls && n->failed < MOST_FAILURES && (!end || time(NULL) < end); i++) {
        lab_case c;
        lab_verdict verdict;
        lab_fuzz_case((uint64_t)o->seed, (uint64_t)i, o->size, &c);
        if (lab_via_refuses((lab_via)o->via, &c))
            lab_fuzz_plain(&c);
        LAB_TRY(lab_verify(v, kernel, &c, &verdict));
        n->calls++;
        n->passed += verdict.outcome == LAB_PASS;
        n->refused += verdict.outcome == LAB_SKIP;
        if (verdict.outcome != LAB_FAIL)
            continue;
        n->failed++;
        LAB_TRY(lab_fuzz_shrink(v, kernel, &c, &verdict));
        tell(o, device, &verdict, &c, i);
    }
    return RUNG_SUCCESS;
}

static int run(const options *o, int device)
{
    lab_place place;
    lab_verifier verifier;
    counts n = {0, 0, 0, 0};
    rung_status status = lab_place_open(&place, device, (int)o->threads);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "fuzz");
    status = lab_verifier_open(&verifier, &place, (rung_math)o->math, NULL);
    if (status == RUNG_SUCCESS)
        status = lab_verifier_set_via(&verifier, (lab_via)o->via);
    if (status == RUNG_SUCCESS)
        status = fuzz(o, &verifier, place.tools ? "gpu" : "cpu", &n);
    lab_verifier_close(&verifier);
    lab_place_close(&place);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "fuzz");
    printf("%lld calls of --seed %lld: %lld passed, %lld refused, %lld failed\n", (long long)n.calls,
           (long long)o->seed, (long long)n.passed, (long long)n.refused, (long long)n.failed);
    if (n.passed + n.failed == 0)
        return cli_fail("nothing was computed: every call was refused");
    return n.failed ? CLI_FAIL : CLI_PASS;
}

int cmd_fuzz(int argc, char **argv)
{
    options o = {.device = "best", .math = RUNG_STRICT, .calls = 1000, .seed = 1, .size = 300};
    int device, count = 0;
    const char *words[1];
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"kernel", CLI_TEXT, &o.kernel, NULL, "this kernel in place of the library's choice"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "strict (default), accurate or fast"},
        {"via", CLI_CHOICE, &o.via, lab_via_names,
         "GPU: direct (default), host, graph or cublas (the drop-in); CPU: blas (the drop-in), ranks (four of this "
         "process)"},
        {"calls", CLI_INTEGER, &o.calls, NULL, "so many (default 1000)"},
        {"seconds", CLI_INTEGER, &o.seconds, NULL, "no longer than this"},
        {"seed", CLI_INTEGER, &o.seed, NULL, "which run: the same seed makes the same calls (default 1)"},
        {"from", CLI_INTEGER, &o.from, NULL, "the first call's number (default 0)"},
        {"size", CLI_INTEGER, &o.size, NULL, "the largest m, n and k (default 300)"},
        {"threads", CLI_COUNT, &o.threads, NULL, "CPU threads (default: all)"},
        {NULL, 0, NULL, NULL, NULL}};
    int code = cli_parse("fuzz", list, argc, argv, words, &count, 1);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count)
        return cli_usage("fuzz takes options only, not '%s'", words[0]);
    if (o.kernel && !rung_kernel_find(o.kernel))
        return cli_unknown_kernel(o.kernel);
    if (o.calls < 1 || o.size < 1)
        return cli_usage("--calls and --size must be at least 1");
    code = cli_device(o.device, &device);
    return code ? code : run(&o, device);
}
