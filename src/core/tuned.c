/* The table of tuned shapes: JSON lines in the user's cache folder, written whole and renamed into place. */
#include "core/tuned.h"
#include "core/status.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT = 1, LINE = 512 };
static const char *const math_names[] = {"strict", "accurate", "fast"};

static void find_path(rung_tuned *t)
{
    const char *own = getenv("RUNG_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char name[160];
    size_t i = 0;
    for (; t->identity[i] && i + 1 < sizeof name; i++)
        name[i] = isalnum((unsigned char)t->identity[i]) ? (char)tolower((unsigned char)t->identity[i]) : '-';
    name[i] = '\0';
    int length = 0;
    if (own && *own)
        length = snprintf(t->path, sizeof t->path, "%s/tuned-%s.jsonl", own, name);
    else if (xdg && *xdg)
        length = snprintf(t->path, sizeof t->path, "%s/rung/tuned-%s.jsonl", xdg, name);
    else if (home && *home)
        length = snprintf(t->path, sizeof t->path, "%s/.cache/rung/tuned-%s.jsonl", home, name);
    if (length <= 0 || (size_t)length >= sizeof t->path) /* what is cut off would be another file */
        t->path[0] = '\0';
}

/* Returns the value behind "key": in a flat JSON object; NULL when it is missing. */
static const char *value_of(const char *line, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(line, quoted);
    if (!found)
        return NULL;
    found += strlen(quoted);
    return found + strspn(found, " ");
}

static int read_number(const char *line, const char *key, double *value)
{
    const char *text = value_of(line, key);
    char *end;
    *value = text ? strtod(text, &end) : 0;
    return text && end != text;
}

static int read_text(const char *line, const char *key, char *value, size_t bytes)
{
    const char *text = value_of(line, key);
    if (!text || *text != '"')
        return 0;
    size_t length = strcspn(++text, "\"");
    if (text[length] != '"' || length >= bytes)
        return 0;
    memcpy(value, text, length);
    value[length] = '\0';
    return 1;
}

static int read_sizes(const char *line, rung_tuned_row *row)
{
    double m, n, k, batch;
    if (!read_number(line, "m", &m) || !read_number(line, "n", &n) || !read_number(line, "k", &k) ||
        !read_number(line, "batch", &batch) || !read_number(line, "us", &row->us))
        return 0;
    const double most = 0x1p53; /* beyond it not every number is a double */
    if (!(m >= 1 && m < most && n >= 1 && n < most && k >= 0 && k < most && batch >= 1 && batch < most && row->us > 0))
        return 0;
    row->m = (int64_t)m;
    row->n = (int64_t)n;
    row->k = (int64_t)k;
    row->batch = (int64_t)batch;
    return 1;
}

/* Reads a line. Returns 1, or 0 where it is damaged. A kernel that this library does not have makes a row with kernel
 * NULL, which is dropped. */
static int read_row(const char *line, rung_tuned_row *row)
{
    char op[4], math[16], kernel[96];
    size_t length = strlen(line);
    memset(row, 0, sizeof *row);
    if (length < 3 || line[0] != '{' || strncmp(line + length - 2, "}\n", 2) != 0)
        return 0;
    if (!read_sizes(line, row) || !read_text(line, "op", op, sizeof op) ||
        !read_text(line, "math", math, sizeof math) || !read_text(line, "kernel", kernel, sizeof kernel))
        return 0;
    if (strlen(op) != 2 || !strchr("NT", op[0]) || !strchr("NT", op[1]))
        return 0;
    row->trans_a = op[0] == 'T';
    row->trans_b = op[1] == 'T';
    int known = 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(math, math_names[i]) == 0) {
            row->math = (rung_math)i;
            known = 1;
        }
    row->kernel = rung_kernel_find(kernel);
    return known;
}

static int push(rung_tuned *t, const rung_tuned_row *row)
{
    if (t->count == t->capacity) {
        int capacity = t->capacity ? t->capacity * 2 : 64;
        rung_tuned_row *rows = realloc(t->rows, (size_t)capacity * sizeof *rows);
        if (!rows)
            return 0;
        t->rows = rows;
        t->capacity = capacity;
    }
    t->rows[t->count++] = *row;
    return 1;
}

static int is_ours(const rung_tuned *t, const char *header, const char **why)
{
    double format;
    char version[32], device[sizeof t->identity];
    if (!read_number(header, "format", &format) || !read_text(header, "rung", version, sizeof version) ||
        !read_text(header, "device", device, sizeof device))
        *why = "its first line is damaged";
    else if (format != FORMAT || strcmp(version, rung_version()) != 0)
        *why = "it was made by another version of Rung";
    else if (strcmp(device, t->identity) != 0)
        *why = "it was made on another device or driver";
    else
        return 1;
    return 0;
}

static const char *read_file(rung_tuned *t, FILE *file)
{
    char line[LINE];
    static const char unread[] = "it cannot be read";
    const char *why = "it is empty";
    if (!fgets(line, sizeof line, file))
        return ferror(file) ? unread : why;
    if (!is_ours(t, line, &why))
        return why;
    while (fgets(line, sizeof line, file)) {
        rung_tuned_row row;
        if (!read_row(line, &row))
            return "a line is damaged";
        if (row.kernel && !push(t, &row))
            return "there is no memory for it";
    }
    return ferror(file) ? unread : NULL;
}

void rung_tuned_load(rung_tuned *t, const char *identity)
{
    memset(t, 0, sizeof *t);
    snprintf(t->identity, sizeof t->identity, "%s", identity);
    find_path(t);
    FILE *file = t->path[0] ? fopen(t->path, "r") : NULL;
    if (!file) {
        snprintf(t->state, sizeof t->state, "no tuned shapes for this device (`rung tune` makes them)");
        return;
    }
    const char *why = read_file(t, file);
    fclose(file);
    if (why) {
        t->count = 0;
        snprintf(t->state, sizeof t->state, "%s was ignored: %s (`rung tune` makes a new one)", t->path, why);
    } else {
        snprintf(t->state, sizeof t->state, "%d tuned shapes from %s", t->count, t->path);
    }
}

void rung_tuned_free(rung_tuned *t)
{
    free(t->rows);
    memset(t, 0, sizeof *t);
}

static int is_row_of(const rung_tuned_row *row, const rung_problem *p)
{
    return row->m == p->m && row->n == p->n && row->k == p->k && row->batch == p->batch && row->trans_a == p->trans_a &&
           row->trans_b == p->trans_b && row->math == p->math;
}

const rung_tuned_row *rung_tuned_find(const rung_tuned *t, const rung_problem *p)
{
    for (int i = 0; i < t->count; i++)
        if (is_row_of(&t->rows[i], p))
            return &t->rows[i];
    return NULL;
}

rung_status rung_tuned_record(rung_tuned *t, const rung_problem *p, const rung_kernel *kernel, double us)
{
    rung_tuned_row row = {p->m, p->n, p->k, p->batch, p->trans_a, p->trans_b, p->math, kernel, us};
    for (int i = 0; i < t->count; i++)
        if (is_row_of(&t->rows[i], p)) {
            t->rows[i] = row;
            return RUNG_SUCCESS;
        }
    return push(t, &row) ? RUNG_SUCCESS : rung_fail(RUNG_OUT_OF_MEMORY, "no memory for another tuned shape");
}

/* Makes the folders above a path, like mkdir -p. */
static void make_folders(const char *path)
{
    char part[sizeof((rung_tuned *)0)->path];
    for (size_t i = 1; path[i] && i < sizeof part; i++)
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            mkdir(part, 0755);
        }
}

static int write_rows(const rung_tuned *t, FILE *file)
{
    fprintf(file, "{\"format\": %d, \"rung\": \"%s\", \"device\": \"%s\"}\n", FORMAT, rung_version(), t->identity);
    for (int i = 0; i < t->count; i++) {
        const rung_tuned_row *r = &t->rows[i];
        fprintf(file,
                "{\"op\": \"%c%c\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"batch\": %lld, \"math\": \"%s\", "
                "\"kernel\": \"%s\", \"us\": %.6g}\n",
                r->trans_a ? 'T' : 'N', r->trans_b ? 'T' : 'N', (long long)r->m, (long long)r->n, (long long)r->k,
                (long long)r->batch, math_names[r->math], r->kernel->name, r->us);
    }
    int failed = ferror(file);
    return fclose(file) == 0 && !failed;
}

rung_status rung_tuned_save(const rung_tuned *t)
{
    if (!t->path[0])
        return rung_fail(RUNG_UNSUPPORTED, "no cache folder: set RUNG_CACHE_DIR, XDG_CACHE_HOME or HOME");
    make_folders(t->path);
    static _Atomic unsigned saves; /* of this process; another machine or container may have its number */
    char temporary[sizeof t->path + 32];
    FILE *file;
    do {
        snprintf(temporary, sizeof temporary, "%s.%ld.%u", t->path, (long)getpid(), saves++);
        file = fopen(temporary, "wx");
    } while (!file && errno == EEXIST);
    if (!file)
        return rung_fail(RUNG_UNSUPPORTED, "cannot write %s: %s", temporary, strerror(errno));
    if (!write_rows(t, file) || rename(temporary, t->path) != 0) {
        int error = errno;
        unlink(temporary);
        return rung_fail(RUNG_UNSUPPORTED, "cannot write %s: %s", t->path, strerror(error));
    }
    return RUNG_SUCCESS;
}
