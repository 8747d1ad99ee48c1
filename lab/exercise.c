/* Reads the folders of learn/: a line of `goals` is a word and what belongs to it. */
#define _GNU_SOURCE /* scandir, getline */
#include "lab/exercise.h"
#include "lab/library.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the course. RUNG_LEARN names another one; else it is found from where the library lies: installed, then in a
 * build folder. */
static const char *course_folder(char *path, size_t bytes)
{
    static const char *const places[] = {RUNG_SHARE, "../share/rung"};
    char library[PATH_MAX];
    const char *named = lab_named("RUNG_LEARN");
    if (named)
        return named;
    lab_library_folder(library, sizeof library);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, bytes, "%s/%s/learn", library, places[i]);
        if (access(path, R_OK) == 0)
            break;
    }
    return path;
}

static int read_extent(const char *text, lab_extent3 *e)
{
    long long m = 1, n = 1, k = 1;
    int read = sscanf(text, "%lldx%lldx%lld", &m, &n, &k);
    *e = (lab_extent3){m, n, k};
    return read >= 1 && m >= 0 && n >= 0 && k >= 0;
}

/* Takes METRIC or METRIC:ARRAY apart. */
static void split_metric(const char *word, char metric[40], char array[24])
{
    const char *colon = strchr(word, ':');
    snprintf(metric, 40, "%.*s", colon ? (int)(colon - word) : (int)strlen(word), word);
    snprintf(array, 24, "%s", colon ? colon + 1 : "");
}

static int read_goal(lab_exercise *e, const char *rest)
{
    lab_goal *g = &e->goals[e->goal_count];
    char word[64];
    if (e->goal_count == LAB_GOALS ||
        sscanf(rest, "%63s %2s %lf refuses %47s", word, g->relation, &g->limit, g->refuses) != 4)
        return 0;
    split_metric(word, g->metric, g->array);
    e->goal_count++;
    return strcmp(g->relation, "<=") == 0 || strcmp(g->relation, ">=") == 0 || strcmp(g->relation, "==") == 0;
}

static int read_answer(lab_exercise *e, const char *rest)
{
    lab_answer *a = &e->answers[e->answer_count];
    char word[64];
    if (e->answer_count == LAB_GOALS || sscanf(rest, "%39s %63s", a->name, word) != 2)
        return 0;
    split_metric(word, a->metric, a->array);
    e->answer_count++;
    return 1;
}

static int read_problem(const char *rest, lab_exercise_problem *problem)
{
    static const char *const names[] = {"product", "add", "transpose", "sum", "one_sum"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(rest, names[i]) == 0) {
            *problem = (lab_exercise_problem)i;
            return 1;
        }
    return 0;
}

static int read_cases(lab_exercise *e, char *rest)
{
    char *save = NULL;
    for (char *word = strtok_r(rest, " ", &save); word; word = strtok_r(NULL, " ", &save))
        if (e->case_count == LAB_CASES || !read_extent(word, &e->cases[e->case_count++]))
            return 0;
    return e->case_count > 0;
}

static int read_drawn(lab_exercise *e, const char *rest)
{
    char word[64];
    return sscanf(rest, "%d %63s", &e->draws, word) == 2 && read_extent(word, &e->drawn);
}

static int read_chips(lab_exercise *e, char *rest)
{
    char *save = NULL;
    for (char *word = strtok_r(rest, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (e->chip_count == LAB_CHIPS)
            return 0;
        snprintf(e->chips[e->chip_count++], sizeof e->chips[0], "%s", word);
    }
    return e->chip_count > 0;
}

static int read_tile(lab_exercise *e, const char *rest)
{
    e->own_tile = strcmp(rest, "own") == 0;
    return e->own_tile || sscanf(rest, "%dx%d", &e->bm, &e->bn) >= 1;
}

static int read_shared(lab_exercise *e, const char *rest)
{
    e->own_shared = strcmp(rest, "own") == 0;
    return e->own_shared || sscanf(rest, "%d", &e->shared_bytes) == 1;
}

static int read_parts(lab_exercise *e, const char *rest)
{
    e->own_parts = strcmp(rest, "own") == 0;
    return e->own_parts || sscanf(rest, "%d", &e->parts) == 1;
}

static int read_text(char *to, size_t bytes, const char *rest)
{
    return rest[0] && (size_t)snprintf(to, bytes, "%s", rest) < bytes;
}

static int read_line(lab_exercise *e, const char *key, char *rest)
{
    if (strcmp(key, "title") == 0)
        return read_text(e->title, sizeof e->title, rest);
    if (strcmp(key, "problem") == 0)
        return read_problem(rest, &e->problem);
    if (strcmp(key, "predict") == 0)
        return e->problem = LAB_EXERCISE_PREDICT, read_problem(rest, &e->counted_problem);
    if (strcmp(key, "tile") == 0)
        return read_tile(e, rest);
    if (strcmp(key, "threads") == 0)
        return sscanf(rest, "%d", &e->threads) == 1;
    if (strcmp(key, "shared") == 0)
        return read_shared(e, rest);
    if (strcmp(key, "registers") == 0)
        return sscanf(rest, "%d", &e->registers) == 1;
    if (strcmp(key, "parts") == 0)
        return read_parts(e, rest);
    if (strcmp(key, "plain") == 0)
        return e->plain = 1;
    if (strcmp(key, "finish") == 0)
        return e->two_kernels = 1;
    if (strcmp(key, "chips") == 0)
        return read_chips(e, rest);
    if (strcmp(key, "cases") == 0)
        return read_cases(e, rest);
    if (strcmp(key, "drawn") == 0)
        return read_drawn(e, rest);
    if (strcmp(key, "count") == 0)
        return read_extent(rest, &e->count);
    if (strcmp(key, "goal") == 0)
        return read_goal(e, rest);
    if (strcmp(key, "answer") == 0)
        return read_answer(e, rest);
    if (strcmp(key, "start") == 0)
        return read_text(e->start, sizeof e->start, rest);
    if (strcmp(key, "rung") == 0)
        return read_text(e->rung, sizeof e->rung, rest);
    return strcmp(key, "next") == 0 && read_text(e->next, sizeof e->next, rest);
}

static rung_status read_goals(lab_exercise *e)
{
    char path[600], *line = NULL;
    size_t room = 0;
    FILE *from = fopen(lab_exercise_file(e, "goals", path, sizeof path), "r");
    rung_status status = RUNG_SUCCESS;
    if (!from)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read %s", path);
    for (int number = 1; status == RUNG_SUCCESS && getline(&line, &room, from) >= 0; number++) {
        char *end = line + strlen(line);
        while (end > line && isspace((unsigned char)end[-1]))
            *--end = 0;
        if (line[0] == 0 || line[0] == '#')
            continue;
        char key[24] = "";
        int used = 0;
        sscanf(line, "%23s %n", key, &used);
        if (!read_line(e, key, line + used)) {
            for (char *at = line; at < end; at++) /* it is told whole, though its words were taken apart */
                *at = *at ? *at : ' ';
            status = lab_fail(RUNG_INVALID_ARGUMENT, "%s line %d cannot be read: %s", path, number, line);
        }
    }
    if (status == RUNG_SUCCESS && ferror(from))
        status = lab_fail(RUNG_INVALID_ARGUMENT, "cannot read %s", path);
    free(line);
    fclose(from);
    return status;
}

static int is_exercise(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return name[0] == 'e' && isdigit((unsigned char)name[1]) && isdigit((unsigned char)name[2]) && name[3] == '_';
}

rung_status lab_course_read(lab_course *course)
{
    char path[PATH_MAX + 512];
    const char *folder = course_folder(path, sizeof path);
    struct dirent **entries = NULL;
    memset(course, 0, sizeof *course);
    int count = scandir(folder, &entries, is_exercise, alphasort);
    rung_status status = RUNG_SUCCESS;
    if (count <= 0)
        status =
            lab_fail(RUNG_MISSING_LIBRARY, "there are no exercises in %s (RUNG_LEARN names another folder)", folder);
    for (int i = 0; i < count; i++) {
        if (status == RUNG_SUCCESS && course->count < LAB_EXERCISES) {
            lab_exercise *e = &course->exercises[course->count++];
            snprintf(e->name, sizeof e->name, "%.63s", entries[i]->d_name);
            snprintf(e->folder, sizeof e->folder, "%.440s/%.63s", folder, entries[i]->d_name);
            e->number = atoi(e->name + 1);
            status = read_goals(e);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

const lab_exercise *lab_exercise_find(const lab_course *course, const char *word)
{
    char *end;
    const char *digits = word[0] == 'e' ? word + 1 : word; /* e04, as files are named, is 04 */
    long number = strtol(digits, &end, 10);
    for (int i = 0; i < course->count; i++) {
        const lab_exercise *e = &course->exercises[i];
        if ((end != digits && *end == 0 && number == e->number) || strcmp(word, e->name) == 0 ||
            strcmp(word, e->name + 4) == 0)
            return e;
    }
    return NULL;
}

const char *lab_exercise_file(const lab_exercise *exercise, const char *file, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/%s", exercise->folder, file);
    return path;
}

/* ---- the text ---- */

static char *read_whole(const char *path)
{
    FILE *from = fopen(path, "r");
    char *text = NULL;
    size_t bytes = 0;
    if (!from)
        return NULL;
    if (getdelim(&text, &bytes, 0, from) < 0) {
        free(text);
        text = NULL;
    }
    fclose(from);
    return text;
}

static const char hint_mark[] = "\n## Hint\n";

char *lab_exercise_text(const lab_exercise *exercise)
{
    char path[600];
    char *text = read_whole(lab_exercise_file(exercise, "text.md", path, sizeof path));
    char *hints = text ? strstr(text, hint_mark) : NULL;
    if (hints)
        hints[1] = 0;
    return text;
}

char *lab_exercise_hint(const lab_exercise *exercise, int i)
{
    char path[600];
    char *text = read_whole(lab_exercise_file(exercise, "text.md", path, sizeof path)), *hint = NULL;
    char *at = text ? strstr(text, hint_mark) : NULL;
    for (; at && i > 0; i--)
        at = strstr(at + 1, hint_mark);
    if (at) {
        at += sizeof hint_mark - 1;
        at += strspn(at, "\n");
        char *end = strstr(at, hint_mark);
        if (end)
            end[1] = 0;
        hint = strdup(at);
    }
    free(text);
    return hint;
}
