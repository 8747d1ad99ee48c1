/* Grades a learner's file. It is compiled here and runs in a child process, which may loop, crash or leave without
 * harm. */
#define _GNU_SOURCE
#include "lab/learn.h"
#include "lab/lens_html.h"
#include "lab/measure.h"
#include "lab/metric.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a grading may compute, and how long it may take on a machine that has other work. */
enum { MOST_SECONDS = 20, LONGEST_SECONDS = 200 };
static const double patience_seconds = 1.0;

static void fail(lab_grade_result *v, const char *failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(lab_grade_result *v, const char *failure, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    snprintf(v->failure, sizeof v->failure, "%s", failure);
    vsnprintf(v->sentence, sizeof v->sentence, format, list);
    va_end(list);
    v->passed = 0;
}

/* ---- one case ---- */

static int is_sum(lab_exercise_problem problem)
{
    return problem == LAB_EXERCISE_SUM || problem == LAB_EXERCISE_ONE_SUM;
}

static lab_exercise_problem counted_problem(const lab_exercise *e)
{
    return e->problem == LAB_EXERCISE_PREDICT ? e->counted_problem : e->problem;
}

static lab_lens_problem lens_problem(lab_exercise_problem problem)
{
    return problem == LAB_EXERCISE_ADD         ? LAB_LENS_ADD
           : problem == LAB_EXERCISE_TRANSPOSE ? LAB_LENS_TRANSPOSE
           : is_sum(problem)                   ? LAB_LENS_SUM
                                               : LAB_LENS_PRODUCT;
}

/* Reads what the learner's file says of itself (device/exercise.h): its tile, its shared memory, and how many parts k
 * is cut into. */
static int read_own_plan(const lab_exercise *e, const char *object, lab_lens_case *c, lab_grade_result *v)
{
    const int *tile = e->own_tile ? lab_lens_symbol(object, "exercise_tile") : NULL;
    const int *shared = e->own_shared ? lab_lens_symbol(object, "exercise_shared") : NULL;
    int (*parts)(int64_t, int64_t, int64_t, int) = NULL;
    *(void **)&parts = e->own_parts ? lab_lens_symbol(object, "exercise_parts") : NULL;
    const char *lacks = e->own_tile && !tile       ? "EXERCISE_TILE(BM, BN, THREADS)"
                        : e->own_shared && !shared ? "EXERCISE_SHARED(BYTES)"
                        : e->own_parts && !parts   ? "EXERCISE_PARTS(m, n, k, sms)"
                                                   : NULL;
    if (lacks) {
        fail(v, "compile", "the file no longer has its %s", lacks);
        return 0;
    }
    if (tile)
        c->bm = tile[0], c->bn = tile[1], c->threads = tile[2];
    if (shared)
        c->shared_bytes = *shared;
    if (parts)
        c->parts = parts(c->m, c->n, c->k, 132);
    if (c->bm < 1 || c->bn < 1 || c->threads < 1 || c->threads > 1024 || c->shared_bytes < 0)
        fail(v, "wrong",
             "a tile of %d x %d with %d threads and %d bytes of shared memory cannot be: 1 to 1024 threads, and at "
             "least one result",
             c->bm, c->bn, c->threads, c->shared_bytes);
    else if (parts && (c->parts < 1 || c->parts > 1024))
        fail(v, "wrong", "EXERCISE_PARTS says %d parts for m, n, k = %lld, %lld, %lld: 1 to 1024 can be", c->parts,
             (long long)c->m, (long long)c->n, (long long)c->k);
    return !v->failure[0];
}

static lab_lens_case case_of(const lab_exercise *e, const lab_extent3 *size, uint64_t seed, int i, char finish[72])
{
    static const float alphas[] = {1.0f, -0.5f, 2.0f}, betas[] = {0.0f, 1.0f, -0.5f};
    lab_exercise_problem problem = counted_problem(e);
    snprintf(finish, 72, "%s_finish", e->name);
    return (lab_lens_case){.m = size->m,
                           .n = size->n,
                           .k = size->k,
                           .pad = i % 2 ? 3 : 0,
                           .alpha = e->plain ? 1.0f : alphas[i % 3],
                           .beta = e->plain ? 0.0f : betas[i % 3],
                           .seed = seed,
                           .patience_seconds = patience_seconds,
                           .problem = lens_problem(problem),
                           .symbol = e->name,
                           .bm = e->bm,
                           .bn = e->bn > 0 ? e->bn : 1,
                           .threads = e->threads,
                           .shared_bytes = e->shared_bytes,
                           .parts = e->parts,
                           .finish = e->two_kernels ? finish : NULL,
                           .one_result = problem == LAB_EXERCISE_ONE_SUM};
}

static const rung_lens_finding *first_finding(void)
{
    for (int i = 0; i < lab_lens_launches(); i++)
        if (lab_lens_launch(i)->finding_count > 0)
            return &lab_lens_launch(i)->findings[0];
    return NULL;
}

static void size_words(const lab_exercise *e, const lab_lens_case *c, char text[96])
{
    if (is_sum(counted_problem(e)))
        snprintf(text, 96, "%lld floats", (long long)c->m);
    else if (counted_problem(e) != LAB_EXERCISE_PRODUCT)
        snprintf(text, 96, "%lld x %lld", (long long)c->m, (long long)c->n);
    else
        snprintf(text, 96, "m, n, k = %lld, %lld, %lld", (long long)c->m, (long long)c->n, (long long)c->k);
    if (c->alpha != 1.0f || c->beta != 0.0f)
        snprintf(text + strlen(text), 96 - strlen(text), ", alpha %g, beta %g", (double)c->alpha, (double)c->beta);
}

/* Returns whether the case went well; the verdict says what did not. */
static int judge_case(const lab_exercise *e, const lab_lens_case *c, rung_status status, const lab_lens_result *result,
                      lab_grade_result *v)
{
    const rung_lens_finding *finding = first_finding();
    char size[96];
    int more = result->findings + result->findings_left_out - 1;
    size_words(e, c, size);
    if (finding && more > 0)
        fail(v, lab_lens_faults[finding->fault], "%s\n%d more like it; at %s", finding->text, more, size);
    else if (finding)
        fail(v, lab_lens_faults[finding->fault], "%s\nat %s", finding->text, size);
    else if (status != RUNG_SUCCESS)
        fail(v, "wrong", "it does not run: %s\nat %s", lab_error(), size);
    else if (!result->right)
        fail(v, "wrong", "wrong at %s: %s%s", size, result->why,
             c->beta == 0.0f && !e->plain && !result->untouched && strstr(result->why, "never written")
                 ? ", or it was computed from what C held before (beta is 0: the old C must not be read)"
                 : "");
    else
        return 1;
    return 0;
}

/* Draws sizes from the seed, at least 1, that nobody knows beforehand. */
static lab_extent3 draw(const lab_extent3 *most, uint64_t *state)
{
    int64_t limits[] = {most->m, most->n, most->k}, drawn[3];
    for (int i = 0; i < 3; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        drawn[i] = 1 + (int64_t)((*state >> 33) % (uint64_t)(limits[i] > 0 ? limits[i] : 1));
    }
    return (lab_extent3){drawn[0], drawn[1], drawn[2]};
}

static void write_page(const lab_attempt *attempt, const lab_lens_case *c, lab_grade_result *v)
{
    if (!attempt->html)
        return;
    v->html_written = lab_lens_html(attempt->html, c, v->failure[0] ? v->sentence : NULL) == RUNG_SUCCESS;
    if (!v->html_written)
        snprintf(v->html_failed, sizeof v->html_failed, "%s", lab_error());
}

static int run_cases(const lab_attempt *attempt, const char *object, lab_grade_result *v)
{
    const lab_exercise *e = attempt->exercise;
    uint64_t state = attempt->seed;
    char finish[72];
    for (int i = 0; i < e->case_count + e->draws; i++) {
        lab_extent3 size = i < e->case_count ? e->cases[i] : draw(&e->drawn, &state);
        lab_lens_case c = case_of(e, &size, attempt->seed + (uint64_t)i, i, finish);
        lab_lens_result result;
        c.object = object;
        if (!read_own_plan(e, object, &c, v))
            return 0;
        rung_status status = lab_lens_run(&c, &result);
        if (!judge_case(e, &c, status, &result, v)) {
            write_page(attempt, &c, v);
            return 0;
        }
        v->error_u = fmax(v->error_u, result.error_u);
        v->cases++;
    }
    return 1;
}

/* Judges goals and answers. */

static int holds(double value, const char *relation, double limit)
{
    double slack = 1e-9 * fabs(limit);
    if (relation[0] == '<')
        return value <= limit + slack;
    if (relation[0] == '>')
        return value >= limit - slack;
    return fabs(value - limit) <= slack;
}

const char *lab_relation_words(const char *relation)
{
    return relation[0] == '<' ? "at most" : relation[0] == '>' ? "at least" : "exactly";
}

static lab_metric_run metric_run(const lab_exercise *e, const lab_lens_case *c, double error_u)
{
    lab_metric_run run = {
        .of = c, .products = (double)c->m * (double)c->n * (double)c->k, .error_u = error_u, .registers = e->registers};
    for (int i = 0; i < e->chip_count; i++)
        for (int j = 0; lab_chips[j].name; j++)
            if (strcmp(lab_chips[j].name, e->chips[i]) == 0)
                run.chips[run.chip_count++] = &lab_chips[j];
    return run;
}

static void judge_goals(const lab_exercise *e, const lab_metric_run *run, lab_grade_result *v)
{
    for (int i = 0; i < e->goal_count; i++) {
        const lab_goal *g = &e->goals[i];
        lab_goal_result *r = &v->goals[v->goal_count++];
        const char *words = lab_metric_words(g->metric);
        snprintf(r->words, sizeof r->words, "%s%s%s", words ? words : g->metric, g->array[0] ? " of " : "", g->array);
        snprintf(r->relation, sizeof r->relation, "%s", g->relation);
        r->limit = g->limit;
        r->value = lab_metric_value(g->metric, g->array, run);
        r->met = holds(r->value, g->relation, g->limit);
        if (r->met)
            continue;
        lab_metric_why(g->metric, g->array, r->why, sizeof r->why);
        if (v->failure[0])
            continue;
        char failure[64];
        snprintf(failure, sizeof failure, "goal %.50s", g->metric);
        if (isnan(r->value))
            fail(v, failure,
                 "right, but there are no %s, where %s %.6g is asked: is all still done by the means, and under the "
                 "name, "
                 "that the exercise speaks of?",
                 r->words, lab_relation_words(g->relation), g->limit);
        else
            fail(v, failure, "right, but %.6g %s where %s %.6g is asked%s%s", r->value, r->words,
                 lab_relation_words(g->relation), g->limit, r->why[0] ? "\n" : "", r->why);
    }
}

static void judge_answers(const lab_exercise *e, const char *object, const lab_metric_run *run, lab_grade_result *v)
{
    for (int i = 0; i < e->answer_count; i++) {
        const lab_answer *a = &e->answers[i];
        const double *given = lab_lens_symbol(object, a->name);
        lab_goal_result *r = &v->goals[v->goal_count++];
        snprintf(r->words, sizeof r->words, "%s", a->name);
        snprintf(r->relation, sizeof r->relation, "==");
        r->limit = lab_metric_value(a->metric, a->array, run);
        r->value = given ? *given : NAN;
        r->met = fabs(r->value - r->limit) <= 0.005 * fabs(r->limit);
        if (r->met || v->failure[0])
            continue;
        char failure[64];
        snprintf(failure, sizeof failure, "answer %.50s", a->name);
        if (!given)
            fail(v, failure, "the file no longer has its ANSWER(%s, ...)", a->name);
        else
            fail(v, failure, "%s is not %.6g. Count again: what do the 32 lanes of one warp ask for at once?", a->name,
                 *given);
    }
}

/* Runs the kernel once more and counts. Some blocks stand for the rest. */
static int count(const lab_attempt *attempt, const char *object, lab_grade_result *v)
{
    const lab_exercise *e = attempt->exercise;
    char finish[72];
    lab_lens_case c = case_of(e, &e->count, attempt->seed, 0, finish);
    lab_lens_result result;
    c.object = object;
    c.max_blocks = is_sum(counted_problem(e)) ? 0 : 2; /* a sum needs all of its blocks */
    c.kernel = attempt->kernel ? rung_kernel_find(attempt->kernel) : NULL;
    if (!c.kernel && e->problem != LAB_EXERCISE_PREDICT && !read_own_plan(e, object, &c, v))
        return 0;
    rung_status status = lab_lens_run(&c, &result);
    /* A prediction's kernel only moves things about; where parts are added, some blocks do not stand for the rest. */
    result.right |= e->problem == LAB_EXERCISE_PREDICT || e->two_kernels;
    if (!judge_case(e, &c, status, &result, v))
        return 0;
    lab_metric_run run = metric_run(e, &c, v->error_u);
    lab_lens_sum(&v->totals);
    v->products = run.products;
    v->results = (double)c.m * (double)c.n;
    v->barriers = lab_metric_value("barriers", "", &run);
    v->counted = 1;
    v->bm = c.bm, v->bn = c.bn, v->threads = c.threads, v->shared_bytes = c.shared_bytes, v->parts = c.parts;
    judge_goals(e, &run, v);
    if (e->problem != LAB_EXERCISE_PREDICT) /* it would give the answers away */
        write_page(attempt, &c, v);
    return 1;
}

/* Judges a prediction: the exercise's own kernel runs, whatever stands in the learner's file. */
static void predict(const lab_attempt *attempt, const char *object, const char *counted, lab_grade_result *v)
{
    const lab_exercise *e = attempt->exercise;
    if (!count(attempt, counted, v))
        return;
    char finish[72];
    lab_lens_case c = case_of(e, &e->count, attempt->seed, 0, finish);
    lab_metric_run run = metric_run(e, &c, 0);
    judge_answers(e, object, &run, v);
}

/* Returns whether the file is this exercise's: another exercise's file has that one's kernel or answers. */
static int is_own_file(const lab_attempt *attempt, const char *object, lab_grade_result *v)
{
    const lab_exercise *e = attempt->exercise;
    const char *wanted = e->problem == LAB_EXERCISE_PREDICT ? e->answers[0].name : e->name;
    if (lab_lens_symbol(object, wanted))
        return 1;
    for (int i = 0; i < attempt->course->count; i++) {
        const lab_exercise *other = &attempt->course->exercises[i];
        const char *has = other->problem == LAB_EXERCISE_PREDICT ? other->answers[0].name : other->name;
        if (!lab_lens_symbol(object, has))
            continue;
        fail(v, "other exercise", "this file is of exercise %02d (%s), not of %02d: rung learn check %02d %s",
             other->number, other->name, e->number, other->number, attempt->file);
        return 0;
    }
    fail(v, "other exercise", "there is no %s in this file: exercise %02d grades %s of that name", wanted, e->number,
         e->problem == LAB_EXERCISE_PREDICT ? "answers" : "the kernel");
    return 0;
}

static void grade_here(const lab_attempt *attempt, const char *object, const char *counted, lab_grade_result *v)
{
    rung_status status = lab_lens_open();
    if (status != RUNG_SUCCESS) {
        fail(v, "no lens", "%s", lab_error());
    } else if (attempt->kernel) {
        count(attempt, NULL, v);
    } else if (is_own_file(attempt, object, v)) {
        if (attempt->exercise->problem == LAB_EXERCISE_PREDICT)
            predict(attempt, object, counted, v);
        else if (run_cases(attempt, object, v))
            count(attempt, object, v);
    }
    v->passed = !v->failure[0];
}

/* This is the child. Nobody reads what it prints; its verdict comes through a pipe. */

static void child(const lab_attempt *attempt, const char *object, const char *counted, int to)
{
    static lab_grade_result v;
    struct rlimit cpu = {MOST_SECONDS, MOST_SECONDS + 5}, core = {0, 0};
    int nothing = open("/dev/null", O_RDWR);
    fcntl(to, F_SETFD, FD_CLOEXEC); /* what the learner's program starts does not hold the pipe open */
    setpgid(0, 0);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    grade_here(attempt, object, counted, &v);
    const char *at = (const char *)&v;
    for (size_t left = sizeof v; left > 0;) {
        ssize_t wrote = write(to, at, left);
        if (wrote <= 0)
            break;
        at += wrote;
        left -= (size_t)wrote;
    }
    _exit(0);
}

/* Returns 1 for a whole verdict, 0 where the child ended without one, -1 when time is up. */
static int receive(int from, lab_grade_result *v)
{
    char *at = (char *)v;
    size_t left = sizeof *v;
    double end = lab_now_s() + LONGEST_SECONDS;
    while (left > 0) {
        struct pollfd waiting = {.fd = from, .events = POLLIN};
        double rest = end - lab_now_s();
        int ready = rest > 0 ? poll(&waiting, 1, (int)(rest * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return -1;
        ssize_t got = read(from, at, left);
        if (got <= 0)
            return 0;
        at += got;
        left -= (size_t)got;
    }
    return 1;
}

static void judge_end(int received, int status, lab_grade_result *v)
{
    if (received == 1)
        return;
    memset(v, 0, sizeof *v);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        fail(v, "endless loop", "it did not come to an end within %d seconds of computing and was stopped",
             MOST_SECONDS);
    else if (received < 0)
        fail(v, "endless wait",
             "it did not come to an end within %d seconds, of which it computed for less than %d: it waits for "
             "something, or this machine has other work",
             LONGEST_SECONDS, MOST_SECONDS);
    else if (WIFSIGNALED(status))
        fail(v, "crash", "it crashed: %s", strsignal(WTERMSIG(status)));
    else
        fail(v, "crash", "it left the program before it was graded (exit code %d)", WEXITSTATUS(status));
}

static rung_status run_apart(const lab_attempt *attempt, const char *object, const char *counted, lab_grade_result *v)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return lab_fail(RUNG_INTERNAL, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(attempt, object, counted, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return lab_fail(RUNG_INTERNAL, "no process: %s", strerror(errno));
    }
    setpgid(pid, pid); /* whichever of the two comes first */
    int received = receive(ends[0], v);
    close(ends[0]);
    kill(-pid, SIGKILL); /* with all that it has started */
    waitpid(pid, &status, 0);
    judge_end(received, status, v);
    return strcmp(v->failure, "no lens") == 0 ? lab_fail(RUNG_MISSING_LIBRARY, "%s", v->sentence) : RUNG_SUCCESS;
}

rung_status lab_grade(const lab_attempt *attempt, lab_grade_result *v)
{
    char object[600] = "", counted[600] = "", path[600];
    double begin = lab_now_s();
    memset(v, 0, sizeof *v);
    if (!attempt->kernel) {
        rung_status status = lab_lens_compile(attempt->file, object, sizeof object);
        if (status == RUNG_INVALID_ARGUMENT && access(attempt->file, R_OK) == 0) {
            const char *error = lab_error(), *first = strstr(error, ": ");
            fail(v, "compile", "it does not compile: %s", first ? first + 2 : error);
            lab_lens_close();
            return RUNG_SUCCESS;
        }
        LAB_TRY(status);
    }
    if (attempt->exercise->problem == LAB_EXERCISE_PREDICT && !attempt->kernel)
        LAB_TRY(lab_lens_compile(lab_exercise_file(attempt->exercise, "counted.cu", path, sizeof path), counted,
                                 sizeof counted));
    rung_status status = run_apart(attempt, object, counted, v);
    lab_lens_close();
    v->seconds = lab_now_s() - begin;
    return status;
}
