/* Checks result lines with jansson, then fills the page (lab/report/page.html): data and Chart.js both inside it. */
#define _GNU_SOURCE /* getline, strdup */
#include "lab/report.h"
#include "lab/explain.h"
#include "lab/names.h"
#include "lab/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RUNG_HAVE_JANSSON

rung_status lab_report(const char *const *files, int count, const char *output)
{
    (void)files, (void)count, (void)output;
    return lab_fail(RUNG_MISSING_LIBRARY, "this build has no report: libjansson-dev was not there");
}

int lab_report_built(void)
{
    return 0;
}

#else

#include <jansson.h>

extern const char rung_report_page[], rung_report_chart[];

int lab_report_built(void)
{
    return 1;
}

/* Returns the text of Chart.js: the build puts it into the program where Debian's package is there, else it is read
 * from where the package installs it. */
static char *chart_text(void)
{
    static const char *const places[] = {"/usr/share/javascript/chart.js/chart.min.js",
                                         "/usr/share/javascript/chart.js/Chart.min.js"};
    if (rung_report_chart[0])
        return strdup(rung_report_chart);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        FILE *file = fopen(places[i], "rb");
        char *text = file && fseek(file, 0, SEEK_END) == 0 ? calloc(1, (size_t)ftell(file) + 1) : NULL;
        if (text) {
            size_t bytes = (size_t)ftell(file);
            rewind(file);
            text[fread(text, 1, bytes, file)] = 0;
        }
        if (file)
            fclose(file);
        if (text)
            return text;
    }
    return NULL;
}

static rung_status damaged(const char *file, int line, const char *what)
{
    return lab_fail(RUNG_INVALID_ARGUMENT, "%s line %d: %s", file, line, what);
}

static int is_number(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

/* Checks a line. One of another kind is carried along; one that claims to be a measurement must be whole and of this
 * version. */
static rung_status check(const char *file, int line, const json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const char *version = json_string_value(json_object_get(record, "rung"));
    char why[160];
    if (!json_is_object(record) || !kind)
        return damaged(file, line, "is no result of Rung's: it has no \"kind\"");
    int drawn = strcmp(kind, "bench") == 0 || strcmp(kind, "climb") == 0 || strcmp(kind, "counters") == 0;
    if (drawn && (!version || atoi(version) != RUNG_VERSION_MAJOR)) {
        snprintf(why, sizeof why, "comes from another version of Rung (%.40s, this is %s)",
                 version ? version : "none named", rung_version());
        return damaged(file, line, why);
    }
    if (strcmp(kind, "bench") == 0 || strcmp(kind, "climb") == 0) {
        if (!is_number(record, "m") || !is_number(record, "n") || !is_number(record, "k") ||
            !json_is_string(json_object_get(record, "kernel")) || !is_number(json_object_get(record, "us"), "median"))
            return damaged(file, line, "is a measurement without its shape, kernel or time");
    } else if (strcmp(kind, "counters") == 0) {
        if (!json_is_object(json_object_get(record, "counter")) || !json_is_object(json_object_get(record, "lens")))
            return damaged(file, line, "is a line of counters without counters");
    }
    return RUNG_SUCCESS;
}

static rung_status read_file(const char *name, json_t *records)
{
    FILE *file = fopen(name, "r");
    char *line = NULL;
    size_t room = 0;
    int number = 0, before = (int)json_array_size(records);
    rung_status status = RUNG_SUCCESS;
    if (!file)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read %s: %s", name, strerror(errno));
    while (status == RUNG_SUCCESS && getline(&line, &room, file) >= 0) {
        json_error_t error;
        number++;
        if (line[strspn(line, " \t\r\n")] == 0)
            continue;
        json_t *record = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (!record) {
            char why[200];
            snprintf(why, sizeof why, "is damaged: %.150s", error.text);
            status = damaged(name, number, why);
            break;
        }
        status = check(name, number, record);
        json_object_set_new(record, "from", json_string(name));
        json_array_append_new(records, record);
    }
    if (status == RUNG_SUCCESS && ferror(file)) /* a folder opens, and cannot be read */
        status = lab_fail(RUNG_INVALID_ARGUMENT, "cannot read %s: %s", name, strerror(errno));
    free(line);
    fclose(file);
    if (status == RUNG_SUCCESS && (int)json_array_size(records) == before)
        return lab_fail(RUNG_INVALID_ARGUMENT, "%s holds no results", name);
    return status;
}

/* Puts JSON inside a script element. "</script" would end it and "<!--<script" hide its end, so '<' is written by its
 * number; only strings can hold one. */
static void put_json(FILE *to, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    for (const char *at = text; at && *at; at++)
        if (*at == '<')
            fputs("\\u003c", to);
        else
            fputc(*at, to);
    free(text);
}

static void put_kernels(FILE *to)
{
    json_t *all = json_object();
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        json_object_set_new(all, k->name,
                            json_pack("{s:s,s:s,s:i,s:i,s:i}", "role", lab_role_names[k->role], "arith",
                                      lab_arith_names[k->arith], "bm", k->bm, "bn", k->bn, "bk", k->bk));
    }
    put_json(to, all);
    json_decref(all);
}

static void put_chips(FILE *to)
{
    json_t *all = json_array();
    for (const lab_chip *c = lab_chips; c->name; c++) {
        const char *match = strrchr(c->title, ' ');
        if (strstr(c->title, "GB") || strstr(c->title, "SXM"))
            match = strchr(c->title, ' ');
        if (strcmp(match, " Ti") == 0) /* which alone would fit others, too */
            while (*--match != ' ')
                ;
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(match + 1, " "), match + 1);
        json_array_append_new(all, json_pack("{s:s,s:f,s:f}", "match", word, "tflops",
                                             2e-3 * c->fma_lanes * c->sms * c->clock_ghz, "memory", c->memory_tb_s));
    }
    put_json(to, all);
    json_decref(all);
}

static void put_page(FILE *to, const json_t *records, const char *chart)
{
    const char *at = rung_report_page;
    while (*at) {
        const char *mark = strstr(at, "/*");
        if (!mark) {
            fputs(at, to);
            return;
        }
        fwrite(at, 1, (size_t)(mark - at), to);
        at = mark;
        if (strncmp(at, "/*CHART*/", 9) == 0) {
            fputs(chart, to);
            at += 9;
        } else if (strncmp(at, "/*DATA*/", 8) == 0) {
            put_json(to, records);
            at += 8;
        } else if (strncmp(at, "/*CHIPS*/", 9) == 0) {
            put_chips(to);
            at += 9;
        } else if (strncmp(at, "/*KERNELS*/", 11) == 0) {
            put_kernels(to);
            at += 11;
        } else {
            fputs("/*", to);
            at += 2;
        }
    }
}

rung_status lab_report(const char *const *files, int count, const char *output)
{
    json_t *records = json_array();
    rung_status status = RUNG_SUCCESS;
    char *chart = NULL;
    for (int i = 0; i < count && status == RUNG_SUCCESS; i++)
        status = lab_is_same_file(files[i], output)
                     ? lab_fail(RUNG_INVALID_ARGUMENT, "the page would take the place of the results in %s", files[i])
                     : read_file(files[i], records);
    if (status == RUNG_SUCCESS && !(chart = chart_text()))
        status = lab_fail(RUNG_MISSING_LIBRARY,
                          "the report draws with Chart.js, which is not installed (apt install libjs-chart.js)");
    if (status == RUNG_SUCCESS) {
        lab_output page;
        status = lab_output_open(&page, output);
        if (status == RUNG_SUCCESS) {
            put_page(page.to, records, chart);
            status = lab_output_close(&page);
        }
    }
    free(chart);
    json_decref(records);
    return status;
}

#endif
