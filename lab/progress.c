/* Keeps progress with jansson: the file is written whole and renamed into place. Without jansson nothing is kept, and
 * every exercise is new. */
#include "lab/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 600, FILE_BYTES = PATH_BYTES + 100 }; /* of a folder of the user's, and of a file in it */

static rung_status user_folder(const char *named, const char *under_home, const char *tail, char path[PATH_BYTES])
{
    const char *home = getenv("HOME");
    int used = named && named[0] ? snprintf(path, PATH_BYTES, "%s%s", named, tail)
               : home && home[0] ? snprintf(path, PATH_BYTES, "%s/%s%s", home, under_home, tail)
                                 : 0;
    if (used <= 0 || used >= PATH_BYTES)
        return lab_fail(RUNG_INVALID_ARGUMENT, "no folder of the user's: HOME is not set, or its path is too long");
    return RUNG_SUCCESS;
}

/* Makes all folders of a path that ends with a slash. */
static rung_status make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int made = mkdir(path, 0777) == 0 || errno == EEXIST || errno == EISDIR;
        rung_status status = made ? RUNG_SUCCESS
                                  : lab_fail(RUNG_INTERNAL,
                                             "cannot make %s: %s; RUNG_LEARN_DIR and XDG_DATA_HOME name other folders "
                                             "for your files and for what is kept of them",
                                             path, strerror(errno));
        *slash = '/';
        LAB_TRY(status);
    }
    return RUNG_SUCCESS;
}

#ifdef RUNG_HAVE_JANSSON

#include <jansson.h>

static rung_status progress_path(char path[PATH_BYTES])
{
    return user_folder(getenv("XDG_DATA_HOME"), ".local/share", "/rung/learn.json", path);
}

/* Reads the file's object. It is {} where there is no file. */
static rung_status read_all(const char *path, json_t **all)
{
    json_error_t error;
    if (access(path, F_OK) != 0) {
        *all = json_object();
        return RUNG_SUCCESS;
    }
    *all = json_load_file(path, 0, &error);
    if (json_is_object(*all))
        return RUNG_SUCCESS;
    json_decref(*all);
    *all = NULL;
    return lab_fail(RUNG_INVALID_ARGUMENT, "%s is damaged in line %d: %s. Mend it, or remove it to begin anew", path,
                    error.line > 0 ? error.line : 1, error.text[0] ? error.text : "it is no object");
}

static int integer_of(const json_t *entry, const char *key)
{
    return (int)json_integer_value(json_object_get(entry, key));
}

rung_status lab_progress_read(const lab_exercise *exercise, lab_progress *progress)
{
    char path[PATH_BYTES];
    json_t *all = NULL;
    memset(progress, 0, sizeof *progress);
    LAB_TRY(progress_path(path));
    LAB_TRY(read_all(path, &all));
    const json_t *entry = json_object_get(json_object_get(all, "exercises"), exercise->name);
    progress->tries = integer_of(entry, "tries");
    progress->hints = integer_of(entry, "hints");
    progress->passed = json_is_true(json_object_get(entry, "passed"));
    json_decref(all);
    return RUNG_SUCCESS;
}

static rung_status replace(const char *path, const json_t *all)
{
    char unfinished[PATH_BYTES + 32]; /* a name of this process's own: another one may write, too */
    snprintf(unfinished, sizeof unfinished, "%s.%ld.part", path, (long)getpid());
    if (json_dump_file(all, unfinished, JSON_INDENT(2) | JSON_SORT_KEYS) == 0 && rename(unfinished, path) == 0)
        return RUNG_SUCCESS;
    remove(unfinished);
    return lab_fail(RUNG_INTERNAL, "cannot write %s: %s", path, strerror(errno));
}

rung_status lab_progress_write(const lab_exercise *exercise, const lab_progress *progress)
{
    char path[PATH_BYTES];
    json_t *all = NULL;
    LAB_TRY(progress_path(path));
    LAB_TRY(read_all(path, &all));
    json_t *exercises = json_object_get(all, "exercises");
    if (!json_is_object(exercises)) {
        exercises = json_object();
        json_object_set_new(all, "exercises", exercises);
    }
    json_object_set_new(
        exercises, exercise->name,
        json_pack("{s:i,s:i,s:b}", "tries", progress->tries, "hints", progress->hints, "passed", progress->passed));
    json_object_set_new(all, "version", json_integer(1));
    rung_status status = make_folders(path);
    if (status == RUNG_SUCCESS)
        status = replace(path, all);
    json_decref(all);
    return status;
}

#else

rung_status lab_progress_read(const lab_exercise *exercise, lab_progress *progress)
{
    (void)exercise;
    memset(progress, 0, sizeof *progress);
    return RUNG_SUCCESS;
}

rung_status lab_progress_write(const lab_exercise *exercise, const lab_progress *progress)
{
    (void)exercise, (void)progress;
    return RUNG_SUCCESS;
}

#endif

/* Looks at the learner's files. */

rung_status lab_learner_file(const lab_exercise *exercise, char *path, size_t bytes)
{
    char folder[PATH_BYTES];
    const char *named = getenv("RUNG_LEARN_DIR");
    LAB_TRY(user_folder(named, "rung-learn", "/", folder));
    snprintf(path, bytes, "%s%s.cu", folder, exercise->name);
    return RUNG_SUCCESS;
}

static rung_status copy_file(const char *from_path, const char *to_path)
{
    char block[4096];
    size_t got;
    FILE *from = fopen(from_path, "rb"), *to = from ? fopen(to_path, "wb") : NULL;
    int bad = !to;
    while (to && (got = fread(block, 1, sizeof block, from)) > 0)
        bad |= fwrite(block, 1, got, to) != got;
    if (from) {
        bad |= ferror(from) != 0;
        fclose(from);
    }
    if (to)
        bad |= fclose(to) != 0;
    if (!bad)
        return RUNG_SUCCESS;
    int error = errno;
    if (to)
        remove(to_path); /* from the next time on a piece of it would count as the learner's own */
    return lab_fail(RUNG_INTERNAL, "cannot copy %s to %s: %s", from_path, to_path, strerror(error));
}

rung_status lab_learner_begin(const lab_exercise *exercise, char *path, size_t bytes, int *copied)
{
    char start[PATH_BYTES];
    LAB_TRY(lab_learner_file(exercise, path, bytes));
    *copied = access(path, F_OK) != 0;
    if (!*copied)
        return RUNG_SUCCESS;
    LAB_TRY(make_folders(path));
    return copy_file(lab_exercise_file(exercise, "start.cu", start, sizeof start), path);
}

/* Returns whether two files hold the same. */
static int are_alike(const char *path, const char *other)
{
    FILE *one = fopen(path, "rb"), *two = fopen(other, "rb");
    int alike = one && two, byte = 0;
    while (alike && byte != EOF) {
        byte = getc(one);
        alike = byte == getc(two);
    }
    if (one)
        fclose(one);
    if (two)
        fclose(two);
    return alike;
}

rung_status lab_learner_reset(const lab_exercise *exercise, char *path, size_t bytes, int *kept)
{
    char old[FILE_BYTES + 8], start[PATH_BYTES];
    int copied;
    const lab_progress none = {0};
    LAB_TRY(lab_learner_file(exercise, path, bytes));
    snprintf(old, sizeof old, "%s.old", path);
    /* The starting file itself is not kept: it would take the place of the work that an earlier reset has kept. */
    *kept = access(path, F_OK) == 0 && !are_alike(path, lab_exercise_file(exercise, "start.cu", start, sizeof start));
    if (*kept && rename(path, old) != 0)
        return lab_fail(RUNG_INTERNAL, "cannot keep %s as %s: %s", path, old, strerror(errno));
    LAB_TRY(lab_learner_begin(exercise, path, bytes, &copied));
    return lab_progress_write(exercise, &none);
}
