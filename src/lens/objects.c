/* Finds a kernel's object for the lens by the list of kernel files, and has it compiled where it is missing or older
 * than its sources. Objects stand beside librung_lens.so, or in the user's cache folder where that is not writable. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lens.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 600, LINE_BYTES = 1024, MOST_FLAGS = 32 };

extern char **environ;

/* Reads a line of kernels.txt: "STEM SOURCE [FLAG...]". The first line is "root FOLDER", which sources are relative to.
 */
typedef struct kernel_file {
    char stem[96], source[PATH_BYTES];
    char line[LINE_BYTES];
    char *flags[MOST_FLAGS];
    int flag_count;
} kernel_file;

/* Finds the folder of this library: the list of kernel files and their objects lie there. */
static void own_folder(char *path, size_t bytes)
{
    Dl_info info;
    const char *slash = NULL;
    if (dladdr((void *)(uintptr_t)own_folder, &info) && info.dli_fname)
        slash = strrchr(info.dli_fname, '/');
    snprintf(path, bytes, "%.*s", slash ? (int)(slash - info.dli_fname) : 1, slash ? info.dli_fname : ".");
}

/* Returns what the environment names; NULL where the variable is not set, or empty. */
static const char *named(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* Returns the folder that the caller names. Its objects were made before: nothing is compiled there. */
static const char *given_folder(void)
{
    return lens_options.kernels ? lens_options.kernels : named("RUNG_LENS_KERNELS");
}

static FILE *open_list(char *root, size_t root_bytes)
{
    char folder[PATH_BYTES], path[PATH_BYTES + 16], line[LINE_BYTES];
    own_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/kernels.txt", folder);
    FILE *list = fopen(path, "re");
    if (!list)
        return NULL;
    if (!fgets(line, sizeof line, list) || strncmp(line, "root ", 5) != 0) {
        fclose(list);
        return NULL;
    }
    line[strcspn(line, "\n")] = 0;
    if (line[5] == '/')
        snprintf(root, root_bytes, "%.560s", line + 5);
    else
        snprintf(root, root_bytes, "%.250s/%.300s", folder, line + 5);
    return list;
}

static bool read_line(kernel_file *file, const char *stem, const char *root)
{
    char *rest = file->line, *word = strsep(&rest, " \n"), *source = strsep(&rest, " \n");
    if (!word || strcmp(word, stem) != 0 || !source)
        return false;
    snprintf(file->stem, sizeof file->stem, "%s", stem);
    if (source[0] == '/')
        snprintf(file->source, sizeof file->source, "%s", source);
    else
        snprintf(file->source, sizeof file->source, "%.300s/%.280s", root, source);
    for (char *flag; file->flag_count < MOST_FLAGS && (flag = strsep(&rest, " \n"));)
        if (flag[0])
            file->flags[file->flag_count++] = flag;
    return true;
}

/* Finds the file of a symbol. A symbol is its file's stem, with suffixes for variants: they are dropped until a file
 * has that name. */
static bool find_kernel(const char *symbol, kernel_file *file)
{
    char root[PATH_BYTES], stem[96];
    snprintf(stem, sizeof stem, "%s", symbol);
    for (char *cut = stem; cut; cut = strrchr(stem, '_')) {
        if (cut != stem)
            *cut = 0;
        FILE *list = open_list(root, sizeof root);
        if (!list)
            return false;
        bool found = false;
        while (!found && fgets(file->line, sizeof file->line, list)) {
            file->flag_count = 0;
            found = read_line(file, stem, root);
        }
        fclose(list);
        if (found)
            return true;
    }
    return false;
}

/* Objects of different sources, or for processors with and without FMA, must not meet in one cache: its folder is named
 * by a hash of where the list stands and of which processor this is. */
static bool cache_folder(char *path, size_t bytes)
{
    char list[PATH_BYTES];
    const char *own = named("RUNG_CACHE_DIR"), *xdg = named("XDG_CACHE_HOME"), *home = named("HOME");
    own_folder(list, sizeof list);
    unsigned hash = 2166136261u ^ (__builtin_cpu_supports("fma") != 0);
    for (const char *c = list; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    char base[PATH_BYTES];
    if (own)
        snprintf(base, sizeof base, "%.500s", own);
    else if (xdg)
        snprintf(base, sizeof base, "%.500s/rung", xdg);
    else if (home)
        snprintf(base, sizeof base, "%.500s/.cache/rung", home);
    else
        return false;
    snprintf(path, bytes, "%.540s/lens-%08x", base, hash);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool object_folder(char *path, size_t bytes)
{
    own_folder(path, bytes);
    return access(path, W_OK) == 0 || cache_folder(path, bytes);
}

static bool newer_than(const char *path, const struct timespec *when)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return true; /* it is gone, so whoever included it has changed */
    return file.st_mtim.tv_sec > when->tv_sec ||
           (file.st_mtim.tv_sec == when->tv_sec && file.st_mtim.tv_nsec > when->tv_nsec);
}

/* Reads the next word of a make rule, in which a space of a file's name stands behind a backslash. */
static bool rule_word(FILE *list, char *word, size_t bytes)
{
    size_t length = 0;
    for (int c; (c = fgetc(list)) != EOF;) {
        int next = c == '\\' ? fgetc(list) : 0;
        if (c == '\\' && next != ' ' && next != '\n') {
            ungetc(next, list);
            next = 0;
        }
        bool ends = next == '\n' || (!next && (c == ' ' || c == '\n'));
        if (ends && length)
            break;
        if (!ends && length + 1 < bytes)
            word[length++] = (char)(next == ' ' ? ' ' : c);
    }
    word[length] = 0;
    return length > 0;
}

/* Returns whether an object is newer than all that the compiler read for it, which stands in a make rule beside it. */
static bool fresh(const char *object)
{
    char rule[PATH_BYTES + 8], word[PATH_BYTES];
    struct stat file;
    if (stat(object, &file) != 0)
        return false;
    snprintf(rule, sizeof rule, "%.*s.d", (int)(strlen(object) - 3), object);
    FILE *list = fopen(rule, "re");
    if (!list)
        return false;
    bool good = true;
    while (good && rule_word(list, word, sizeof word))
        if (word[strlen(word) - 1] != ':')
            good = !newer_than(word, &file.st_mtim);
    fclose(list);
    return good;
}

const char *rung_lens_compiler(void)
{
    static char path[PATH_BYTES + 32];
    char root[PATH_BYTES];
    const char *given = named("RUNG_LENS_CC");
    if (given)
        return given;
    FILE *list = open_list(root, sizeof root);
    if (!list)
        return NULL;
    fclose(list);
    snprintf(path, sizeof path, "%s/src/lens/lens_cc.sh", root);
    return path;
}

static bool compile(const kernel_file *file, const char *object)
{
    const char *script = rung_lens_compiler();
    char *arguments[MOST_FLAGS + 4] = {(char *)(uintptr_t)script, (char *)(uintptr_t)file->source,
                                       (char *)(uintptr_t)object};
    for (int i = 0; i < file->flag_count; i++)
        arguments[3 + i] = file->flags[i];
    fprintf(stderr, "rung: compiling %s for the lens, this once\n", file->stem);
    pid_t child;
    int status;
    if (!script || posix_spawn(&child, script, NULL, NULL, arguments, environ) != 0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void why_not(const char *symbol, const char *object, char *why, size_t why_bytes)
{
    const char *compiler = rung_lens_compiler();
    char path[PATH_BYTES + 8], line[300] = "";
    snprintf(path, sizeof path, "%.*s.why", (int)(strlen(object) - 3), object);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file))
        line[strcspn(line, "\n")] = 0;
    if (file)
        fclose(file);
    if (!line[0])
        snprintf(line, sizeof line, "its compiler, %.200s, did not run", compiler ? compiler : "lens_cc.sh");
    snprintf(why, why_bytes, "%s could not be compiled for the lens: %s", symbol, line);
}

static bool in_given_folder(const char *symbol, lens_object *object, char *why, size_t why_bytes)
{
    snprintf(object->stem, sizeof object->stem, "%s", symbol);
    for (char *cut = object->stem; cut; cut = strrchr(object->stem, '_')) {
        if (cut != object->stem)
            *cut = 0;
        snprintf(object->path, sizeof object->path, "%.480s/%s.so", given_folder(), object->stem);
        if (access(object->path, R_OK) == 0)
            return true;
    }
    snprintf(why, why_bytes, "%s was not compiled for the lens: no %s.so in %s", symbol, symbol, given_folder());
    return false;
}

bool lens_object_find(const char *symbol, lens_object *object, char *why, size_t why_bytes)
{
    /* the object that could not be made last: it is not tried again for the same question */
    static char failed[PATH_BYTES];
    kernel_file file;
    char folder[PATH_BYTES];
    if (given_folder())
        return in_given_folder(symbol, object, why, why_bytes);
    if (!find_kernel(symbol, &file)) {
        snprintf(why, why_bytes, "no kernel file of the lens's list is called %s", symbol);
        return false;
    }
    if (!object_folder(folder, sizeof folder)) {
        snprintf(why, why_bytes, "no folder to put %s's object into: set RUNG_CACHE_DIR", symbol);
        return false;
    }
    snprintf(object->stem, sizeof object->stem, "%s", file.stem);
    snprintf(object->path, sizeof object->path, "%.480s/%s.so", folder, file.stem);
    if (fresh(object->path))
        return true;
    if (strcmp(failed, object->path) != 0 && compile(&file, object->path))
        return true;
    snprintf(failed, sizeof failed, "%s", object->path);
    why_not(symbol, object->path, why, why_bytes);
    return false;
}

const char *rung_lens_missing(const char *kernel)
{
    static char why[600];
    lens_object object;
    return lens_object_find(kernel, &object, why, sizeof why) ? NULL : why;
}
