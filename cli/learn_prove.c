/* rung learn compare and prove: counts beside counts, and the course put to the test. */
#include "cli/learn.h"
#include "lab/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t learn_seed(const learn_request *r)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return r->seed ? (uint64_t)r->seed : (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- compare ---- */

static const cli_column compare_columns[] = {
    {"quantity", "quantity", 48, -1}, {"yours", "yours", 12, 4}, {"theirs", "theirs", 12, 4}, {0}};

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static void row(cli_table *table, const char *quantity, double yours, double theirs)
{
    if (isnan(yours) && isnan(theirs))
        return;
    cli_text(table, quantity);
    cli_number(table, yours);
    cli_number(table, theirs);
}

static void print_counts(cli_table *table, const lab_grade_result *a, const lab_grade_result *b)
{
    const lab_lens_totals *x = &a->totals, *y = &b->totals;
    row(table, "global load requests", x->global_load_requests + x->async_requests,
        y->global_load_requests + y->async_requests);
    row(table, "sectors a global load request",
        ratio(x->global_load_sectors + x->async_sectors, x->global_load_requests + x->async_requests),
        ratio(y->global_load_sectors + y->async_sectors, y->global_load_requests + y->async_requests));
    row(table, "global load bytes used of bytes moved (%)", 100 * ratio(x->global_load_used, x->global_load_moved),
        100 * ratio(y->global_load_used, y->global_load_moved));
    row(table, "global loads a result (floats)", x->global_load_bytes / 4 / a->results,
        y->global_load_bytes / 4 / b->results);
    row(table, "sectors a global store request", ratio(x->global_store_sectors, x->global_store_requests),
        ratio(y->global_store_sectors, y->global_store_requests));
    row(table, "shared load passes an FMA of a warp", x->shared_load_wavefronts / (a->products / 32),
        y->shared_load_wavefronts / (b->products / 32));
    row(table, "shared load passes lost to bank conflicts", x->shared_load_wavefronts - x->shared_load_ideal,
        y->shared_load_wavefronts - y->shared_load_ideal);
    row(table, "shared store passes lost to bank conflicts", x->shared_store_wavefronts - x->shared_store_ideal,
        y->shared_store_wavefronts - y->shared_store_ideal);
    row(table, "barriers a block", a->barriers, b->barriers);
}

int learn_compare(const learn_request *r)
{
    static lab_grade_result yours, theirs;
    const lab_exercise *e = r->exercise;
    char own[700], solution[600];
    if (e->problem == LAB_EXERCISE_PREDICT)
        return cli_usage("%s is a prediction: there is nothing to compare", e->name);
    rung_status status = lab_learner_file(e, own, sizeof own);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    lab_attempt attempt = {.exercise = e, .course = r->course, .file = r->file ? r->file : own, .seed = learn_seed(r)};
    status = lab_grade(&attempt, &yours);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    if (!yours.counted)
        return cli_fail("%s has to be right before it can be compared: %s", e->name, yours.sentence);
    attempt.kernel = e->rung[0] ? e->rung : NULL;
    attempt.file = lab_exercise_file(e, "solution.cu", solution, sizeof solution);
    status = lab_grade(&attempt, &theirs);
    if (status != RUNG_SUCCESS || !theirs.counted)
        return cli_fail("%s cannot be counted: %s", e->rung[0] ? e->rung : "the solution",
                        status != RUNG_SUCCESS ? lab_error() : theirs.sentence);
    cli_table table;
    cli_table_begin(&table, (cli_format)r->format, compare_columns);
    print_counts(&table, &yours, &theirs);
    cli_note(&table, "\ntheirs: %s", e->rung[0] ? e->rung : "the exercise's solution");
    return CLI_PASS;
}

/* ---- prove ---- */

static const cli_column prove_columns[] = {{"exercise", "exercise", 26, -1},
                                           {"result", "result", 6, -1},
                                           {"start", "start fails with", 26, -1},
                                           {"goals", "goals", 5, 0},
                                           {"seconds", "longest s", 9, 2},
                                           {"note", "note", 40, -1},
                                           {0}};

typedef struct proof {
    const learn_request *request;
    const lab_exercise *exercise;
    lab_grade_result start;
    int failed, refused;
    double longest;
    char note[1000];
} proof;

static void complain(proof *p, const char *what, const char *sentence)
{
    if (!p->failed++)
        snprintf(p->note, sizeof p->note, "%.200s%.790s", what, sentence);
}

static int grade(proof *p, const char *file, const char *kernel, lab_grade_result *v)
{
    char path[600];
    lab_attempt attempt = {.exercise = p->exercise,
                           .course = p->request->course,
                           .kernel = kernel,
                           .file = file ? lab_exercise_file(p->exercise, file, path, sizeof path) : NULL,
                           .seed = learn_seed(p->request)};
    rung_status status = lab_grade(&attempt, v);
    if (status != RUNG_SUCCESS)
        complain(p, "", lab_error());
    p->longest = fmax(p->longest, v->seconds);
    return status == RUNG_SUCCESS;
}

static void prove_ends(proof *p)
{
    static lab_grade_result v;
    char note[200];
    if (grade(p, "start.cu", NULL, &p->start) && strcmp(p->start.failure, p->exercise->start) != 0) {
        snprintf(note, sizeof note, "the start should fail with '%s', but %s%s: ", p->exercise->start,
                 p->start.passed ? "passes" : "fails with ", p->start.failure);
        complain(p, note, p->start.sentence);
    }
    if (grade(p, "solution.cu", NULL, &v) && !v.passed)
        complain(p, "the solution does not pass: ", v.sentence);
}

/* Checks that each goal is not met by the start or the rung that it names. */
static void prove_goals(proof *p)
{
    static lab_grade_result v;
    const lab_exercise *e = p->exercise;
    for (int i = 0; i < e->goal_count; i++) {
        const char *who = e->goals[i].refuses;
        const lab_grade_result *judged = &p->start;
        int is_file = strlen(who) > 3 && strcmp(who + strlen(who) - 3, ".cu") == 0;
        if (strcmp(who, "start") != 0) {
            if (!grade(p, is_file ? who : NULL, is_file ? NULL : who, &v))
                return;
            judged = &v;
        }
        if (!judged->counted)
            complain(p, who, ": its counts cannot be taken, so no goal can refuse it");
        else if (judged->goals[i].met)
            complain(p, who, ": meets a goal that should refuse it");
        else
            p->refused++;
    }
    for (int i = 0; i < e->answer_count; i++) {
        if (p->start.counted && p->start.goals[i].met)
            complain(p, e->answers[i].name, ": the start already has the answer");
        p->refused += p->start.counted;
    }
}

static int prove_one(cli_table *table, const learn_request *r, const lab_exercise *e)
{
    static proof p;
    memset(&p, 0, sizeof p);
    p.request = r;
    p.exercise = e;
    cli_progress("%s", e->name);
    prove_ends(&p);
    prove_goals(&p);
    if (!p.failed && p.refused == 0 && e->goal_count + e->answer_count > 0)
        complain(&p, "", "no goal refused anybody");
    char *hint = lab_exercise_hint(e, 0);
    if (!hint)
        complain(&p, "", "text.md has no hint");
    free(hint);
    cli_progress(NULL);
    cli_text(table, e->name);
    cli_text(table, p.failed ? "FAIL" : "pass");
    cli_text(table, p.start.failure);
    cli_number(table, p.refused);
    cli_number(table, p.longest);
    cli_text(table, p.note);
    return p.failed;
}

int learn_prove(const learn_request *r, const char **words, int count)
{
    cli_table table;
    int failed = 0;
    for (int i = 0; i < count; i++)
        if (!lab_exercise_find(r->course, words[i]))
            return cli_usage("no exercise is called '%s'; 'rung learn' lists them", words[i]);
    cli_table_begin(&table, (cli_format)r->format, prove_columns);
    for (int i = 0; i < r->course->count; i++) {
        const lab_exercise *e = &r->course->exercises[i];
        int named = count == 0;
        for (int j = 0; j < count; j++)
            named |= lab_exercise_find(r->course, words[j]) == e;
        if (named)
            failed += prove_one(&table, r, e);
    }
    return failed ? CLI_FAIL : CLI_PASS;
}
