/* Fills lab/lens_page.html: what the lens saw goes into it as one JSON object. */
#define _GNU_SOURCE /* open_memstream, getline */
#include "lab/lens_html.h"
#include "lab/json.h"
#include "lab/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 8 };

extern const char rung_lens_page[];

typedef struct files {
    const char *path[MOST_FILES];
    int count;
} files;

static int file_index(files *f, const char *path)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->path[i], path) == 0)
            return i;
    if (!path[0] || f->count == MOST_FILES)
        return -1;
    f->path[f->count] = path;
    return f->count++;
}

static void put_lines(lab_json *json, const char *path)
{
    FILE *from = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    lab_json_list(json, "lines");
    while (from && getline(&line, &room, from) >= 0) {
        line[strcspn(line, "\n")] = 0;
        lab_json_text(json, NULL, line);
    }
    lab_json_list_end(json);
    free(line);
    if (from)
        fclose(from);
}

static void put_files(lab_json *json, const files *f)
{
    lab_json_list(json, "files");
    for (int i = 0; i < f->count; i++) {
        const char *slash = strrchr(f->path[i], '/');
        lab_json_open(json, NULL);
        lab_json_text(json, "name", slash ? slash + 1 : f->path[i]);
        put_lines(json, f->path[i]);
        lab_json_close(json);
    }
    lab_json_list_end(json);
}

static void put_lanes(lab_json *json, const char *key, const int64_t *values, int64_t shift)
{
    lab_json_list(json, key);
    for (int i = 0; i < RUNG_LENS_LANES; i++)
        lab_json_integer(json, NULL, values[i] + shift);
    lab_json_list_end(json);
}

static void put_site(lab_json *json, const rung_lens_site *s, files *f, const lab_lens_case *c)
{
    /* Sectors begin at multiples of 32 of the address; an operand that misses alignment begins a little later. */
    const int lane = s->sample_mask ? __builtin_ctz(s->sample_mask) : 0;
    int64_t shift = s->space == RUNG_LENS_GLOBAL && s->sample_row[lane] >= 0 ? c->offset * 4 : 0;
    lab_json_open(json, NULL);
    lab_json_integer(json, "file", file_index(f, s->file));
    lab_json_integer(json, "line", s->line);
    lab_json_integer(json, "global", s->space == RUNG_LENS_GLOBAL);
    lab_json_integer(json, "kind", s->kind);
    lab_json_text(json, "name", s->name);
    lab_json_integer(json, "bytes", s->bytes);
    lab_json_number(json, "requests", s->requests);
    lab_json_number(json, "sectors", s->sectors);
    lab_json_number(json, "used", s->bytes_used);
    lab_json_number(json, "moved", s->bytes_moved);
    lab_json_number(json, "passes", s->wavefronts);
    lab_json_number(json, "ideal", s->ideal_wavefronts);
    lab_json_integer(json, "mask", s->sample_mask);
    put_lanes(json, "offsets", s->sample_offset, shift);
    put_lanes(json, "rows", s->sample_row, 0);
    put_lanes(json, "columns", s->sample_column, 0);
    lab_json_close(json);
}

static void put_sites(lab_json *json, files *f, const lab_lens_case *c)
{
    lab_json_list(json, "sites");
    for (int i = 0; i < lab_lens_launches(); i++)
        for (int j = 0; j < lab_lens_launch(i)->site_count; j++)
            put_site(json, &lab_lens_launch(i)->sites[j], f, c);
    lab_json_list_end(json);
}

static void put_findings(lab_json *json, files *f)
{
    lab_json_list(json, "findings");
    for (int i = 0; i < lab_lens_launches(); i++)
        for (int j = 0; j < lab_lens_launch(i)->finding_count; j++) {
            const rung_lens_finding *finding = &lab_lens_launch(i)->findings[j];
            lab_json_open(json, NULL);
            lab_json_integer(json, "file", file_index(f, finding->file));
            lab_json_integer(json, "line", finding->line);
            lab_json_text(json, "text", finding->text);
            lab_json_close(json);
        }
    lab_json_list_end(json);
}

static void put_all(FILE *to, const lab_lens_case *c, const char *verdict)
{
    lab_json json = {.to = to};
    const rung_lens_launch *l = lab_lens_launch(0);
    files f = {0};
    char shape[96];
    if (c->kernel && c->kernel->role == RUNG_REDUCE)
        snprintf(shape, sizeof shape, "%lld floats", (long long)(c->m * c->n));
    else if (c->problem == LAB_LENS_PRODUCT && c->n * c->k > 1)
        snprintf(shape, sizeof shape, "%lld x %lld x %lld", (long long)c->m, (long long)c->n, (long long)c->k);
    else if (c->n > 1)
        snprintf(shape, sizeof shape, "%lld x %lld", (long long)c->m, (long long)c->n);
    else
        snprintf(shape, sizeof shape, "%lld", (long long)c->m);
    lab_json_open(&json, NULL);
    lab_json_text(&json, "kernel", l->kernel);
    lab_json_text(&json, "shape", shape);
    lab_json_list(&json, "grid");
    for (int i = 0; i < 3; i++)
        lab_json_integer(&json, NULL, l->grid[i]);
    lab_json_list_end(&json);
    lab_json_integer(&json, "threads", l->threads);
    lab_json_integer(&json, "shared", l->static_shared_bytes + l->dynamic_shared_bytes);
    lab_json_integer(&json, "blocks", l->blocks);
    lab_json_integer(&json, "run", l->blocks_run);
    lab_json_text(&json, "verdict", verdict ? verdict : "");
    put_sites(&json, &f, c);
    put_findings(&json, &f);
    put_files(&json, &f);
    lab_json_close(&json);
}

/* Puts a text into JSON. A "<" within a script could end it, so it is written in JSON's other way. */
static void put_escaped(FILE *to, const char *json)
{
    for (; *json; json++)
        if (*json == '<')
            fputs("\\u003c", to);
        else
            fputc(*json, to);
}

rung_status lab_lens_html(const char *path, const lab_lens_case *c, const char *verdict)
{
    static const char mark[] = "/*DATA*/";
    const char *at = strstr(rung_lens_page, mark);
    char *json = NULL;
    size_t bytes = 0;
    lab_output output;
    if (lab_lens_launches() == 0)
        return lab_fail(RUNG_INVALID_ARGUMENT, "nothing ran: there is nothing to show in %s", path);
    FILE *memory = open_memstream(&json, &bytes);
    if (!memory)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the page");
    put_all(memory, c, verdict);
    fclose(memory);
    rung_status status = lab_output_open(&output, path);
    if (status == RUNG_SUCCESS) {
        fwrite(rung_lens_page, 1, (size_t)(at - rung_lens_page), output.to);
        put_escaped(output.to, json);
        fputs(at + sizeof mark - 1, output.to);
        status = lab_output_close(&output);
    }
    free(json);
    return status;
}
