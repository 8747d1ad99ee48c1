/* rung fuzz: random calls, judged as rung verify judges; a failure becomes one line that rung verify --case takes. */
#include "cli/commands.h"
#include "lab/fuzz.h"
#include "lab/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

typedef struct options {
    const char *device, *kernel;
    int math, via, format;
    int64_t calls, seed, size, threads, seconds, from, jobs;
} options;

enum { MOST_FAILURES = 5, MOST_JOBS = 64 }; /* after so many failures, made smaller and told, it stops */

/* What the jobs share. Each takes the next number, on a place and in a context of its own. */
typedef struct session {
    const options *o;
    int device;
    time_t end; /* 0: none */
    atomic_llong next, calls, passed, refused, failed;
    pthread_mutex_t one_at_a_time; /* who tells something */
    rung_status status;            /* the first that ended a job */
    char why[320];
} session;

static void tell(session *s, const char *device, const lab_verdict *verdict, const lab_case *c, int64_t number)
{
    const options *o = s->o;
    char text[LAB_CASE_TEXT];
    lab_case_print(c, text);
    FILE *to = o->format == CLI_TABLE ? stdout : stderr; /* beside rows it would be none */
    pthread_mutex_lock(&s->one_at_a_time);
    fprintf(
        to,
        "FAIL %s: %s\n     call %lld of --seed %lld; made smaller:\n     rung verify --device %s%s%s%s%s --case '%s'\n",
        verdict->kernel, verdict->why, (long long)number, (long long)o->seed, device, o->via ? " --via " : "",
        o->via ? lab_via_names[o->via] : "", o->kernel ? " --kernel " : " --math ",
        o->kernel ? o->kernel : lab_math_names[o->math], text);
    fflush(to);
    pthread_mutex_unlock(&s->one_at_a_time);
}

static rung_status fuzz(session *s, lab_verifier *v, const char *device)
{
    const options *o = s->o;
    const rung_kernel *kernel = o->kernel ? rung_kernel_find(o->kernel) : NULL;
    while (atomic_load(&s->failed) < MOST_FAILURES && (!s->end || time(NULL) < s->end)) {
        lab_case c;
        lab_verdict verdict;
        int64_t i = atomic_fetch_add(&s->next, 1);
        if (i >= o->from + o->calls)
            break;
        lab_fuzz_case((uint64_t)o->seed, (uint64_t)i, o->size, &c);
        if (lab_via_refuses((lab_via)o->via, &c))
            lab_fuzz_plain(&c);
        LAB_TRY(lab_verify(v, kernel, &c, &verdict));
        atomic_fetch_add(&s->calls, 1);
        atomic_fetch_add(&s->passed, verdict.outcome == LAB_PASS);
        atomic_fetch_add(&s->refused, verdict.outcome == LAB_SKIP);
        if (verdict.outcome != LAB_FAIL)
            continue;
        atomic_fetch_add(&s->failed, 1);
        LAB_TRY(lab_fuzz_shrink(v, kernel, &c, &verdict));
        tell(s, device, &verdict, &c, i);
    }
    return RUNG_SUCCESS;
}

/* Keeps the first failure that ended a job. */
static void note_end(session *s, rung_status status)
{
    pthread_mutex_lock(&s->one_at_a_time);
    if (status != RUNG_SUCCESS && s->status == RUNG_SUCCESS) {
        snprintf(s->why, sizeof s->why, "%s", lab_error());
        s->status = status;
    }
    pthread_mutex_unlock(&s->one_at_a_time);
}

static void *job(void *state)
{
    session *s = state;
    lab_place place;
    lab_verifier verifier;
    rung_status status = lab_place_open(&place, s->device, (int)s->o->threads);
    if (status == RUNG_SUCCESS) {
        status = lab_verifier_open(&verifier, &place, (rung_math)s->o->math, NULL);
        if (status == RUNG_SUCCESS)
            status = lab_verifier_set_via(&verifier, (lab_via)s->o->via);
        if (status == RUNG_SUCCESS)
            status = fuzz(s, &verifier, place.tools ? "gpu" : "cpu");
        note_end(s, status);
        lab_verifier_close(&verifier);
        lab_place_close(&place);
    } else {
        note_end(s, status);
    }
    return NULL;
}

/* What came of all calls: a sentence, or a row; -o takes the row. */
static void sum_up(session *s)
{
    static const cli_column columns[] = {{"calls", "calls", 8, 0},   {"seed", "seed", 8, 0},
                                         {"passed", "passed", 8, 0}, {"refused", "refused", 8, 0},
                                         {"failed", "failed", 8, 0}, {0}};
    const long long values[] = {atomic_load(&s->calls), s->o->seed, atomic_load(&s->passed), atomic_load(&s->refused),
                                atomic_load(&s->failed)};
    if (s->o->format == CLI_TABLE)
        printf("%lld call%s of --seed %lld: %lld passed, %lld refused, %lld failed\n", values[0],
               values[0] == 1 ? "" : "s", values[1], values[2], values[3], values[4]);
    cli_table table;
    cli_table_begin(&table, s->o->format == CLI_TABLE ? CLI_COPY_ONLY : (cli_format)s->o->format, columns);
    for (int i = 0; columns[i].key; i++)
        cli_number(&table, (double)values[i]);
}

static int run(const options *o, int device)
{
    session s = {.o = o, .device = device, .end = o->seconds ? time(NULL) + o->seconds : 0};
    pthread_t ids[MOST_JOBS];
    int started = 0;
    pthread_mutex_init(&s.one_at_a_time, NULL);
    atomic_store(&s.next, o->from);
    while (started < o->jobs - 1 && pthread_create(&ids[started], NULL, job, &s) == 0)
        started++;
    job(&s);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    if (s.status != RUNG_SUCCESS)
        return cli_fail("fuzz: %s: %s", rung_status_name(s.status), s.why);
    sum_up(&s);
    if (atomic_load(&s.passed) + atomic_load(&s.failed) == 0)
        return cli_fail("nothing was computed: every call was refused");
    return atomic_load(&s.failed) ? CLI_FAIL : CLI_PASS;
}

int cmd_fuzz(int argc, char **argv)
{
    options o = {.device = "best", .math = RUNG_STRICT, .calls = 1000, .seed = 1, .size = 300, .jobs = 1};
    int device, count = 0;
    const char *words[1];
    const cli_option list[] = {
        {"device", CLI_TEXT, &o.device, NULL, "cpu, gpu, gpu1 ...; default: the best there is"},
        {"kernel", CLI_TEXT, &o.kernel, NULL, "this kernel in place of the library's choice"},
        {"math", CLI_CHOICE, &o.math, lab_math_names, "strict (default), accurate or fast"},
        {"via", CLI_CHOICE, &o.via, lab_via_names,
         "GPU: direct (default), host, graph or cublas (the drop-in); CPU: blas (the drop-in), ranks (four of this "
         "process)"},
        {"calls", CLI_AMOUNT, &o.calls, NULL, "so many (default 1000)"},
        {"seconds", CLI_AMOUNT, &o.seconds, NULL, "no longer than this"},
        {"seed", CLI_INTEGER, &o.seed, NULL, "which run: the same seed makes the same calls (default 1)"},
        {"from", CLI_INTEGER, &o.from, NULL, "the first call's number (default 0)"},
        {"size", CLI_AMOUNT, &o.size, NULL, "the largest m, n and k (default 300)"},
        {"jobs", CLI_COUNT, &o.jobs, NULL,
         "so many threads make calls at a time, each in a context of its own (default 1)"},
        {"threads", CLI_COUNT, &o.threads, NULL, "CPU threads (default: all)"},
        CLI_FORMAT(o.format),
        {NULL, 0, NULL, NULL, NULL}};
    int code = cli_parse("fuzz", list, argc, argv, words, &count, 1);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count)
        return cli_usage("fuzz takes options only, not '%s'", words[0]);
    if (o.kernel && !rung_kernel_find(o.kernel))
        return cli_unknown_kernel(o.kernel);
    if (lab_via_chooses((lab_via)o.via) && cli_idle("fuzz", "kernel", "beside --via, where the library chooses"))
        return CLI_USAGE;
    if (o.jobs > MOST_JOBS)
        return cli_usage("--jobs %lld: at most %d", (long long)o.jobs, MOST_JOBS);
    code = cli_device(o.device, &device);
    return code ? code : run(&o, device);
}
