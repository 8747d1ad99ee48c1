/* rung learn: exercises in CUDA C, graded under the lens by what the code does. */
#include "cli/commands.h"
#include "cli/learn.h"
#include "lab/progress.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OWN_FILE_BYTES = 700 };

static const cli_column list_columns[] = {{"exercise", "exercise", 26, -1},
                                          {"state", "state", 6, -1},
                                          {"tries", "tries", 5, 0},
                                          {"title", "title", 50, -1},
                                          {0}};
static const cli_column check_columns[] = {{"exercise", "exercise", 26, -1},  {"result", "result", 6, -1},
                                           {"failure", "fails with", 20, -1}, {"cases", "cases", 5, 0},
                                           {"error_u", "error u", 8, 2},      {"seconds", "seconds", 7, 2},
                                           {"note", "note", 40, -1},          {0}};

static int list_all(const learn_request *r)
{
    cli_table table;
    int passed = 0;
    const lab_exercise *next = NULL;
    cli_table_begin(&table, (cli_format)r->format, list_columns);
    for (int i = 0; i < r->course->count; i++) {
        const lab_exercise *e = &r->course->exercises[i];
        lab_progress progress;
        rung_status status = lab_progress_read(e, &progress);
        if (status != RUNG_SUCCESS)
            return cli_fail_status(status, "learn");
        cli_text(&table, e->name);
        cli_text(&table, progress.passed ? "passed" : progress.tries ? "tried" : "new");
        cli_number(&table, progress.tries);
        cli_text(&table, e->title);
        passed += progress.passed;
        next = next || progress.passed ? next : e;
    }
    if (next)
        cli_note(&table, "\n%d of %d passed. Next: rung learn %02d", passed, r->course->count, next->number);
    else
        cli_note(&table, "\nall %d passed", passed);
    return CLI_PASS;
}

/* ---- one exercise ---- */

static int terminal_width(void)
{
    struct winsize size = {0};
    int known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40;
    return !known ? 0 : size.ws_col > 100 ? 100 : size.ws_col;
}

/* Prints the words of one line, after `used` columns of the paragraph so far; returns the columns used then. */
static int print_words(const char *text, const char *end, int used, int width)
{
    while (text < end) {
        int word = (int)strcspn(text, " \n");
        if (used && used + 1 + word > width) {
            putchar('\n');
            used = 0;
        }
        printf("%s%.*s", used ? " " : "", word, text);
        used += (used > 0) + word;
        text += word + strspn(text + word, " ");
    }
    return used;
}

/* Breaks paragraphs anew for the terminal; drawings, lists and tables (indented) stay as they are. */
static void print_text(const char *text)
{
    int width = terminal_width(), used = 0;
    for (const char *end; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        if (width && end > text && *text != ' ' && *text != '#') {
            used = print_words(text, end, used, width);
            continue;
        }
        printf("%s%.*s\n", used ? "\n" : "", (int)(end - text), text);
        used = 0;
    }
    printf("%s", used ? "\n" : "");
}

static void print_goals(const lab_exercise *e)
{
    if (e->case_count + e->draws > 0)
        printf("Checked: results at %d sizes, some of them new each time, and every access: the lens runs the kernel "
               "here, without a GPU,\n         and finds races, missing barriers and what is not the kernel's own.\n",
               e->case_count + e->draws);
    for (int i = 0; i < e->goal_count; i++) {
        const lab_goal *g = &e->goals[i];
        printf("Goal:    %s %.6g %s%s%s\n", lab_relation_words(g->relation), g->limit, lab_metric_words(g->metric),
               g->array[0] ? " of " : "", g->array);
    }
    for (int i = 0; i < e->answer_count; i++)
        printf("Answer:  %s\n", e->answers[i].name);
}

static int show(const learn_request *r)
{
    const lab_exercise *e = r->exercise;
    char path[OWN_FILE_BYTES];
    int copied;
    char *text = lab_exercise_text(e);
    if (!text)
        return cli_fail("%s/text.md cannot be read", e->folder);
    rung_status status = lab_learner_begin(e, path, sizeof path, &copied);
    if (status == RUNG_SUCCESS) {
        print_text(text);
        printf("\n");
        print_goals(e);
        printf("File:    %s%s\nThen:    rung learn check %02d (again at every save: --watch; a hint: rung learn hint "
               "%02d)\n",
               path, copied ? "" : " (yours, as you left it)", e->number, e->number);
    }
    free(text);
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, "learn");
}

static int hint(const learn_request *r)
{
    lab_progress progress;
    rung_status status = lab_progress_read(r->exercise, &progress);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    char *text = lab_exercise_hint(r->exercise, progress.hints);
    if (text) {
        progress.hints++;
    } else if (progress.hints > 0) { /* the last one is shown again */
        printf("There is no further hint. The last one was:\n\n");
        text = lab_exercise_hint(r->exercise, progress.hints - 1);
    }
    if (!text)
        return cli_fail("%s has no hint", r->exercise->name);
    print_text(text);
    free(text);
    status = lab_progress_write(r->exercise, &progress);
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, "learn");
}

static int solution(const learn_request *r)
{
    char path[600], line[400];
    lab_progress progress;
    rung_status status = lab_progress_read(r->exercise, &progress);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    if (!progress.tries && !r->now)
        return cli_fail("%s has not been tried: rung learn check %02d first, or rung learn solution %02d --now",
                        r->exercise->name, r->exercise->number, r->exercise->number);
    FILE *from = fopen(lab_exercise_file(r->exercise, "solution.cu", path, sizeof path), "r");
    if (!from)
        return cli_fail("%s cannot be read", path);
    while (fgets(line, sizeof line, from))
        fputs(line, stdout);
    int unread = ferror(from);
    fclose(from);
    return unread ? cli_fail("%s cannot be read", path) : CLI_PASS;
}

static int reset(const learn_request *r)
{
    char path[OWN_FILE_BYTES];
    int kept;
    rung_status status = lab_learner_reset(r->exercise, path, sizeof path, &kept);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    if (kept)
        printf("%s is the starting file again; what was there is %s.old\n", path, path);
    else
        printf("%s is the starting file\n", path);
    return CLI_PASS;
}

/* ---- check ---- */

/* Finds the file to grade: the one that was named, or the learner's own. */
static int file_of(const learn_request *r, char path[OWN_FILE_BYTES])
{
    if (r->file) {
        snprintf(path, OWN_FILE_BYTES, "%s", r->file);
        FILE *there = fopen(path, "r");
        struct stat s;
        if (!there || fstat(fileno(there), &s) != 0)
            return cli_usage("cannot read %s", path);
        fclose(there);
        return S_ISDIR(s.st_mode) ? cli_usage("%s is a folder: name the file to check", path) : 0;
    }
    rung_status status = lab_learner_file(r->exercise, path, OWN_FILE_BYTES);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    FILE *there = fopen(path, "r");
    if (!there)
        return cli_usage("%s is not there: rung learn %02d puts the starting file there", path, r->exercise->number);
    fclose(there);
    return 0;
}

static void print_verdict(const learn_request *r, const lab_grade_result *v)
{
    const lab_exercise *e = r->exercise;
    if (r->format != CLI_TABLE) {
        cli_table table;
        cli_table_begin(&table, (cli_format)r->format, check_columns);
        cli_text(&table, e->name);
        cli_text(&table, v->passed ? "pass" : "FAIL");
        cli_text(&table, v->failure);
        cli_number(&table, v->cases);
        cli_number(&table, v->error_u);
        cli_number(&table, v->seconds);
        cli_text(&table, v->sentence);
        return;
    }
    if (v->cases > 0)
        printf("%s: right at %d size%s\n", e->name, v->cases, v->cases == 1 ? "" : "s");
    for (int i = 0; i < v->goal_count; i++) {
        const lab_goal_result *g = &v->goals[i];
        if (e->problem == LAB_EXERCISE_PREDICT)
            printf("  %-8s %s = %.6g\n", g->met ? "right" : "not yet", g->words, g->value);
        else if (isnan(g->value))
            printf("  %-8s no %s (%s %.6g)\n", "not yet", g->words, lab_relation_words(g->relation), g->limit);
        else
            printf("  %-8s %.6g %s (%s %.6g)\n", g->met ? "met" : "not yet", g->value, g->words,
                   lab_relation_words(g->relation), g->limit);
    }
}

static int remember(const lab_exercise *e, const lab_grade_result *v)
{
    lab_progress progress;
    rung_status status = lab_progress_read(e, &progress);
    if (status == RUNG_SUCCESS) {
        progress.tries++;
        progress.passed |= v->passed;
        status = lab_progress_write(e, &progress);
    }
    return status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, "learn");
}

/* Says what to read next, and where the documents lie unless that is here: installed, by a package, or in the source
 * tree. */
static void print_next(const lab_exercise *e)
{
    static const char *const places[] = {"../../../doc/rung", "../../../doc/rung-doc", "../.."};
    char here[OWN_FILE_BYTES], path[2 * OWN_FILE_BYTES], folder[PATH_MAX];
    int length = (int)strcspn(e->next, ", ");
    printf("passed. Read next: %s", e->next);
    snprintf(here, sizeof here, "%.*s", length, e->next);
    if (access(here, R_OK) != 0 && realpath(e->folder, folder))
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            char place[PATH_MAX];
            snprintf(path, sizeof path, "%.600s/%s/%s", folder, places[i], here);
            if (access(path, R_OK) != 0)
                continue;
            snprintf(path, sizeof path, "%.600s/%s", folder, places[i]);
            if (realpath(path, place))
                printf(" (in %s)", place);
            break;
        }
    printf("\n");
}

static int check_once(const learn_request *r, const char *file)
{
    static lab_grade_result v;
    lab_attempt attempt = {
        .exercise = r->exercise, .course = r->course, .file = file, .seed = learn_seed(r), .html = r->html};
    cli_progress("%s", r->exercise->name);
    rung_status status = lab_grade(&attempt, &v);
    cli_progress(NULL);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    print_verdict(r, &v);
    if (r->html && v.html_written)
        fprintf(stderr, "wrote %s\n", r->html);
    else if (r->html)
        fprintf(stderr, "no page: %s\n", v.html_failed[0] ? v.html_failed : "nothing ran that could be shown");
    int kept = remember(r->exercise, &v);
    if (kept != CLI_PASS)
        return kept;
    if (!v.passed)
        return cli_fail("%s: %s", r->exercise->name, v.sentence);
    if (r->format == CLI_TABLE)
        print_next(r->exercise);
    return r->gpu ? learn_check_gpu(r, file, &v) : CLI_PASS;
}

/* Returns when the file was last saved; 0 while an editor has it moved away. */
static struct timespec saved_at(const char *file)
{
    struct stat s;
    return stat(file, &s) == 0 ? s.st_mtim : (struct timespec){0};
}

static int check(const learn_request *r)
{
    char file[OWN_FILE_BYTES];
    int code = file_of(r, file);
    if (code)
        return code;
    for (;;) {
        struct timespec seen = saved_at(file), now = seen;
        code = check_once(r, file);
        if (!r->watch || code == CLI_PASS)
            return code;
        fprintf(stderr, "waiting for the next save of %s (Ctrl-C ends)\n", file);
        while (now.tv_sec == 0 || (now.tv_sec == seen.tv_sec && now.tv_nsec == seen.tv_nsec)) {
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
            now = saved_at(file);
        }
    }
}

/* ---- the verb ---- */

typedef struct action {
    const char *name;
    int (*run)(const learn_request *r);
    int takes_file;
    const char *options; /* those that do something for it */
} action;

static const action actions[] = {
    {"check", check, 1, "watch html gpu seed format o"}, {"hint", hint, 0, ""},   {"solution", solution, 0, "now"},
    {"compare", learn_compare, 1, "seed format o"},      {"reset", reset, 0, ""},
};

static int unknown_action(const char *word)
{
    static const char *const names[] = {"list", "check", "hint", "solution", "compare", "reset", "prove", NULL};
    return cli_unknown("exercise or action", word, names);
}

static int no_exercise(const lab_course *course, const char *word)
{
    return cli_usage("no exercise is called '%s': there are %02d to %02d; 'rung learn' lists them", word,
                     course->exercises[0].number, course->exercises[course->count - 1].number);
}

/* Finds the exercise that a word names; a file's name, such as e02_one_too_many.cu, names its exercise too. */
static const lab_exercise *exercise_of(learn_request *r, const char *word, int takes_file)
{
    const char *slash = strrchr(word, '/'), *last = slash ? slash + 1 : word, *ending = strrchr(last, '.');
    char name[64];
    if (!takes_file || r->file || !ending || strcmp(ending, ".cu") != 0)
        return lab_exercise_find(r->course, word);
    snprintf(name, sizeof name, "%.*s", (int)(ending - last), last);
    r->file = word;
    return lab_exercise_find(r->course, name);
}

/* Refuses what does nothing for an action or a text: its own options are `options`. */
static int refuse_idle(const char *what, const char *options)
{
    char where[64];
    snprintf(where, sizeof where, "for %s", what);
    return cli_idle_but("learn", options, where);
}

static int dispatch(learn_request *r, const char **words, int count)
{
    if (count == 0 || (count == 1 && strcmp(words[0], "list") == 0))
        return refuse_idle("the list", "format o") ? CLI_USAGE : list_all(r);
    if (strcmp(words[0], "prove") == 0)
        return refuse_idle("prove", "seed format o") ? CLI_USAGE : learn_prove(r, words + 1, count - 1);
    if (strcmp(words[0], "time") == 0)
        return learn_time(r, words + 1, count - 1);
    if ((r->exercise = lab_exercise_find(r->course, words[0])))
        return count == 1
                   ? (refuse_idle("an exercise's text", "") ? CLI_USAGE : show(r))
                   : cli_usage("learn does not know what to do with '%s': rung learn check %s?", words[1], words[0]);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(words[0], actions[i].name) != 0)
            continue;
        if (count < 2)
            return cli_usage("learn %s needs an exercise, such as 01; 'rung learn' lists them", words[0]);
        if (count > 2 + actions[i].takes_file)
            return cli_usage("learn %s does not know what to do with '%s'", words[0], words[2 + actions[i].takes_file]);
        r->file = count > 2 ? words[2] : NULL;
        if (!(r->exercise = exercise_of(r, words[1], actions[i].takes_file)))
            return no_exercise(r->course, words[1]);
        return refuse_idle(actions[i].name, actions[i].options) ? CLI_USAGE : actions[i].run(r);
    }
    return words[0][strspn(words[0], "0123456789")] ? unknown_action(words[0]) : no_exercise(r->course, words[0]);
}

int cmd_learn(int argc, char **argv)
{
    static lab_course course;
    learn_request r = {.format = CLI_TABLE, .course = &course, .driver = getenv("RUNG_LIBCUDA")};
    const char *words[CLI_WORDS];
    int count = 0;
    const cli_option list[] = {
        {"watch", CLI_FLAG, &r.watch, NULL, "check: again at every save, until it passes"},
        {"html", CLI_TEXT, &r.html, NULL,
         "check: the source with its counts, and each access lane by lane, as one page"},
        {"gpu", CLI_FLAG, &r.gpu, NULL, "check: what passes is also timed on the GPU, beside the rung and cuBLAS"},
        {"now", CLI_FLAG, &r.now, NULL, "solution: before a try"},
        {"seed", CLI_AMOUNT, &r.seed, NULL, "check: of data and drawn sizes; default: another each time"},
        CLI_FORMAT(r.format),
        {0}};
    int code = cli_parse("learn", list, argc, argv, words, &count, CLI_WORDS);
    if (code)
        return code < 0 ? CLI_PASS : code;
    rung_status status = lab_course_read(&course);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "learn");
    return dispatch(&r, words, count);
}
