/* Draws what a kernel did under the lens: one block's results by warp and thread, a warp's sectors for each global
 * access, its banks for each shared one. Numbers in the picture are those of rung lens. */
#define _GNU_SOURCE /* open_memstream, getline */
#include "lab/lens_svg.h"
#include "lab/output.h"

#include <stdbool.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 900, MARGIN = 24, LANES = 32, CELL = 14, MOST_LINES = 32, MARKED_LANE = 5 };

typedef struct page {
    FILE *to;
    int y;
    int64_t offset; /* elements by which operands miss alignment */
} page;

static void escaped(FILE *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

static void text_at(page *p, int x, const char *class, const char *text)
{
    fprintf(p->to, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, p->y, class);
    escaped(p->to, text);
    fputs("</text>\n", p->to);
}

static void box(page *p, double x, double y, double width, double height, const char *class)
{
    fprintf(p->to, "<rect x=\"%.4g\" y=\"%.5g\" width=\"%.4g\" height=\"%.4g\" class=\"%s\"/>\n", x, y, width, height,
            class);
}

/* Makes a caption of the text of a source line; a line that is too long ends in dots. */
static void source_line(const rung_lens_site *s, char *text, size_t bytes)
{
    enum { MOST_CHARACTERS = 92 };
    FILE *from = fopen(s->file, "r");
    char *line = NULL;
    size_t room = 0;
    for (int i = 0; from && i < s->line && getline(&line, &room, from) >= 0; i++)
        ;
    if (from)
        fclose(from);
    if (line)
        line[strcspn(line, "\n")] = 0;
    const char *words = line ? line + strspn(line, " \t") : "";
    bool fits = strlen(words) <= MOST_CHARACTERS;
    snprintf(text, bytes, "%.*s%s", fits ? MOST_CHARACTERS : MOST_CHARACTERS - 1, words, fits ? "" : "…");
    free(line);
}

/* Accesses whose pictures would be the same are drawn once: a loop's and those before it, a tile's four stores. */

static bool is_drawable(const rung_lens_site *s)
{
    return s->sample_mask != 0 && s->kind != RUNG_LENS_BULK && s->kind != RUNG_LENS_MMA;
}

/* Whether two counts look the same in a caption, which has three digits. */
static bool reads_alike(double x, double y)
{
    return fabs(x - y) <= 0.005 * fmax(fabs(x), fabs(y));
}

static bool looks_alike(const rung_lens_site *s, const rung_lens_site *t)
{
    if (s->space != t->space || s->kind != t->kind || s->bytes != t->bytes || s->sample_mask != t->sample_mask ||
        strcmp(s->name, t->name) != 0 || strcmp(s->file, t->file) != 0 || (s->ways > 1) != (t->ways > 1) ||
        !reads_alike(s->sectors / s->requests, t->sectors / t->requests) ||
        !reads_alike(s->wavefronts / s->requests, t->wavefronts / t->requests) ||
        !reads_alike(s->merged_requests / s->requests, t->merged_requests / t->requests))
        return false;
    int first = __builtin_ctz(s->sample_mask);
    for (int lane = first; lane < LANES; lane++)
        if ((s->sample_mask >> lane & 1) &&
            s->sample_offset[lane] - s->sample_offset[first] != t->sample_offset[lane] - t->sample_offset[first])
            return false;
    return true;
}

/* Returns the first access that looks like the j-th: j itself if that is the first. */
static int first_alike(const rung_lens_launch *l, int j)
{
    int i = 0;
    while (i < j && !(is_drawable(&l->sites[i]) && looks_alike(&l->sites[i], &l->sites[j])))
        i++;
    return i;
}

/* Writes the lines of the source that share the j-th access's picture: "line 39", "lines 39, 55". */
static void lines_alike(const rung_lens_launch *l, int j, char *text, size_t bytes)
{
    int told[8] = {0}, count = 0, more = 0;
    for (int i = j; i < l->site_count; i++) {
        if (!is_drawable(&l->sites[i]) || first_alike(l, i) != j)
            continue;
        bool known = false;
        for (int n = 0; n < count; n++)
            known |= told[n] == l->sites[i].line;
        if (!known && count == 8)
            more++;
        else if (!known)
            told[count++] = l->sites[i].line;
    }
    int at = snprintf(text, bytes, count > 1 ? "lines %d" : "line %d", told[0]);
    for (int n = 1; n < count && at < (int)bytes; n++)
        at += snprintf(text + at, bytes - (size_t)at, ", %d", told[n]);
    if (more && at < (int)bytes)
        snprintf(text + at, bytes - (size_t)at, " and %d more", more);
}

/* Draws one block of C: which warp has which results, and one thread's own. */

typedef struct tile {
    int64_t row0, column0, rows, columns;
} tile;

static tile bounds(const rung_lens_launch *l)
{
    int64_t r0 = INT64_MAX, c0 = INT64_MAX, r1 = -1, c1 = -1;
    for (int i = 0; i < l->owner_count; i++) {
        const rung_lens_owner *o = &l->owners[i];
        r0 = o->row < r0 ? o->row : r0;
        c0 = o->column < c0 ? o->column : c0;
        r1 = o->row > r1 ? o->row : r1;
        c1 = o->column > c1 ? o->column : c1;
    }
    return (tile){r0, c0, r1 - r0 + 1, c1 - c0 + 1};
}

/* Neighbours that are alike become one rectangle, along the row and over the same rows below it. */

static int kind_of(const int *owner)
{
    return *owner < 0 ? -2 : *owner == MARKED_LANE ? -1 : *owner / 32;
}

static bool same_rows(const int *owner, const tile *t, int64_t r, int64_t s)
{
    for (int64_t c = 0; c < t->columns; c++)
        if (kind_of(&owner[r * t->columns + c]) != kind_of(&owner[s * t->columns + c]))
            return false;
    return true;
}

static void draw_runs(page *p, const int *owner, const tile *t, double cell, int y0)
{
    for (int64_t r = 0, next; r < t->rows; r = next) {
        for (next = r + 1; next < t->rows && same_rows(owner, t, r, next); next++)
            ;
        for (int64_t c = 0, end; c < t->columns; c = end) {
            int kind = kind_of(&owner[r * t->columns + c]);
            for (end = c + 1; end < t->columns && kind_of(&owner[r * t->columns + end]) == kind; end++)
                ;
            char class[16];
            snprintf(class, sizeof class, kind == -1 ? "mark" : "w%d", kind < 0 ? 8 : kind % 8);
            box(p, MARGIN + (double)c * cell, y0 + (double)r * cell, (double)(end - c) * cell,
                (double)(next - r) * cell, class);
        }
    }
}

/* Says who computes the block's results: not all of its warps need have some. */
static void say_who(const rung_lens_launch *l, char *text, size_t bytes)
{
    bool writes[32] = {false}; /* a block has at most 1024 threads */
    unsigned warps = (l->threads + LANES - 1) / LANES, writing = 0;
    for (int i = 0; i < l->owner_count; i++)
        writes[l->owners[i].thread / LANES % 32] = true;
    for (int i = 0; i < 32; i++)
        writing += writes[i];
    int at = writing < warps ? snprintf(text, bytes, "%u of %u warps", writing, warps)
                             : snprintf(text, bytes, "%u warp%s", warps, warps > 1 ? "s" : "");
    snprintf(text + at, bytes - (size_t)at, "%s",
             writing > 8   ? ", eight colours in turn"
             : writing > 1 ? ", a colour each"
                           : "");
}

static void draw_tile(page *p, const rung_lens_launch *l)
{
    if (l->owner_count == 0)
        return;
    tile t = bounds(l);
    if (t.rows * t.columns > 1 << 20)
        return;
    int *owner = malloc((size_t)(t.rows * t.columns) * sizeof *owner);
    char caption[200], who[80];
    int per_thread = 0;
    if (!owner)
        return;
    memset(owner, 0xff, (size_t)(t.rows * t.columns) * sizeof *owner);
    for (int i = 0; i < l->owner_count; i++) {
        owner[(l->owners[i].row - t.row0) * t.columns + l->owners[i].column - t.column0] = l->owners[i].thread;
        per_thread += l->owners[i].thread == MARKED_LANE;
    }
    double cell = fmin(384.0 / (double)(t.columns > t.rows ? t.columns : t.rows), 12.0);
    say_who(l, who, sizeof who);
    snprintf(caption, sizeof caption, "What one block computes: %lld x %lld of C by %u threads (%s)", (long long)t.rows,
             (long long)t.columns, l->threads, who);
    p->y += 26;
    text_at(p, MARGIN, "h", caption);
    p->y += 16;
    snprintf(caption, sizeof caption, "thread %d writes %d of the results", MARKED_LANE, per_thread);
    text_at(p, MARGIN, "s", caption);
    p->y += 10;
    draw_runs(p, owner, &t, cell, p->y);
    box(p, MARGIN, p->y, (double)t.columns * cell, (double)t.rows * cell, "frame");
    p->y += (int)((double)t.rows * cell) + 12;
    free(owner);
}

/* Draws global accesses: the 128-byte lines that a warp touches, their sectors, and the bytes that it wanted. */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int distinct(int64_t *values, int count)
{
    int kept = 0;
    qsort(values, (size_t)count, sizeof *values, by_value);
    for (int i = 0; i < count; i++)
        if (kept == 0 || values[kept - 1] != values[i])
            values[kept++] = values[i];
    return kept;
}

/* Returns the byte that a lane wants, from a multiple of 128 on: an operand that misses alignment begins a little
 * behind one. */
static int64_t byte_of(const page *p, const rung_lens_site *s, int lane)
{
    return s->sample_offset[lane] + (s->sample_row[lane] >= 0 ? p->offset * 4 : 0);
}

static int lines_of(const page *p, const rung_lens_site *s, int64_t *lines)
{
    int n = 0;
    for (int lane = 0; lane < LANES; lane++)
        if (s->sample_mask >> lane & 1) {
            lines[n++] = byte_of(p, s, lane) / 128;
            lines[n++] = (byte_of(p, s, lane) + s->bytes - 1) / 128;
        }
    return distinct(lines, n);
}

static int sectors_of(const page *p, const rung_lens_site *s)
{
    int64_t sectors[2 * LANES];
    int n = 0;
    for (int lane = 0; lane < LANES; lane++)
        if (s->sample_mask >> lane & 1) {
            sectors[n++] = byte_of(p, s, lane) / 32;
            sectors[n++] = (byte_of(p, s, lane) + s->bytes - 1) / 32;
        }
    return distinct(sectors, n);
}

/* One request is drawn, and the caption counts all of a line: says so where they differ. */
static void say_drawn(page *p, const rung_lens_site *s, int drawn, double mean, const char *what)
{
    char note[120];
    if (reads_alike(drawn, mean))
        return;
    p->y += s->space == RUNG_LENS_GLOBAL ? 4 : 0; /* clear of the number of the last line */
    snprintf(note, sizeof note, "drawn is a request of %d %s; the mean of all is %.3g", drawn, what, mean);
    p->y += 10;
    text_at(p, MARGIN, "s",
            s->kind == RUNG_LENS_ASYNC
                ? "a copy counts the sectors that it fills in shared memory where these are more "
                  "than those that it reads, which are drawn"
                : note);
}

static void draw_line(page *p, const rung_lens_site *s, int64_t line, double height)
{
    int wanted[LANES] = {0}, moved[4] = {0};
    for (int lane = 0; lane < LANES; lane++)
        for (int b = 0; (s->sample_mask >> lane & 1) && b < s->bytes; b += 4) {
            int64_t at = byte_of(p, s, lane) + b - line * 128;
            if (at >= 0 && at < 128) {
                wanted[at / 4] = lane + 1;
                moved[at / 32] = 1;
            }
        }
    for (int sector = 0; sector < 4; sector++)
        box(p, MARGIN + 80 + sector * (8 * CELL + 6), p->y, 8 * CELL - 1, height - 1, moved[sector] ? "waste" : "idle");
    for (int word = 0; word < LANES; word++)
        if (wanted[word])
            box(p, MARGIN + 80 + word * CELL + word / 8 * 6, p->y, CELL - 1, height - 1,
                wanted[word] - 1 == MARKED_LANE ? "mark" : "used");
}

static const char *const kinds[] = {"load", "store", "atomic", "cp.async", "bulk copy", "mma"};

static void draw_global(page *p, const rung_lens_launch *l, int j)
{
    const rung_lens_site *s = &l->sites[j];
    int64_t lines[2 * LANES];
    char caption[256], source[100], where[80];
    int count = lines_of(p, s, lines);
    source_line(s, source, sizeof source);
    lines_alike(l, j, where, sizeof where);
    p->y += 26;
    snprintf(caption, sizeof caption,
             "Global %s of %s, %s: %.3g sector%s a request, %.3g%% of the bytes moved are used", kinds[s->kind],
             s->name, where, s->sectors / s->requests, s->sectors > s->requests ? "s" : "",
             100 * s->bytes_used / s->bytes_moved);
    text_at(p, MARGIN, "h", caption);
    p->y += 15;
    text_at(p, MARGIN, "c", source);
    p->y += 8;
    double height = count > 8 ? 7 : CELL;
    for (int i = 0; i < count && i < MOST_LINES; i++) {
        draw_line(p, s, lines[i], height);
        if (i == 0 || i == count - 1) {
            snprintf(caption, sizeof caption, "byte %lld", (long long)lines[i] * 128);
            p->y += (int)height;
            text_at(p, MARGIN, "t", caption);
            p->y -= (int)height;
        }
        p->y += (int)height;
    }
    say_drawn(p, s, sectors_of(p, s), s->sectors / s->requests, "sectors");
    p->y += 6;
}

/* Draws shared accesses: what each of 32 banks gives, pass by pass. A second word in a bank costs one more pass. */

static void banks_of_part(const rung_lens_site *s, int first, int end, int64_t words[32][32], int counts[32])
{
    memset(counts, 0, 32 * sizeof *counts);
    for (int lane = first; lane < end; lane++)
        for (int b = 0; (s->sample_mask >> lane & 1) && b < s->bytes; b += 4) {
            int64_t word = s->sample_offset[lane] / 4 + b / 4;
            int bank = (int)(word % 32), known = 0;
            for (int i = 0; i < counts[bank]; i++)
                known |= words[bank][i] == word;
            if (!known && counts[bank] < 32)
                words[bank][counts[bank]++] = word;
        }
}

static bool pairs_agree(const rung_lens_site *s, int first, int end, int distance)
{
    for (int lane = first; lane < end; lane++) {
        int partner = lane ^ distance;
        if ((s->sample_mask >> lane & 1) && (s->sample_mask >> partner & 1) &&
            s->sample_offset[lane] != s->sample_offset[partner])
            return false;
    }
    return true;
}

static int draw_part(page *p, const rung_lens_site *s, int first, int end)
{
    int64_t words[32][32];
    int counts[32], most = 0;
    char label[40];
    banks_of_part(s, first, end, words, counts);
    for (int bank = 0; bank < 32; bank++)
        most = counts[bank] > most ? counts[bank] : most;
    double height = most > 8 ? 5 : 9;
    p->y += 9;
    snprintf(label, sizeof label, end - first == 32 ? "all lanes" : "lanes %d-%d", first, end - 1);
    text_at(p, MARGIN, "t", label);
    p->y -= 9;
    for (int i = 0; i < (most > 0 ? most : 1); i++)
        box(p, MARGIN + 80, p->y + i * height, 32 * CELL - 1, height - 1, "idle");
    for (int bank = 0; bank < 32; bank++)
        for (int i = 0; i < counts[bank]; i++)
            box(p, MARGIN + 80 + bank * CELL, p->y + i * height, CELL - 1, height - 1,
                i == 0 || (s->kind == RUNG_LENS_ASYNC && s->ways <= 1) ? "used" : "conflict");
    p->y += (int)(most * height) + 4;
    return most;
}

static void draw_shared(page *p, const rung_lens_launch *l, int j)
{
    const rung_lens_site *s = &l->sites[j];
    char caption[256], source[100], where[80];
    source_line(s, source, sizeof source);
    lines_alike(l, j, where, sizeof where);
    p->y += 26;
    snprintf(caption, sizeof caption, "Shared %s of %s (%d bytes a lane), %s: %.3g pass%s a request, %s",
             kinds[s->kind], s->name, s->bytes, where, s->wavefronts / s->requests,
             s->wavefronts > s->requests ? "es" : "", s->ways > 1 ? "bank conflicts" : "no bank conflict");
    text_at(p, MARGIN, "h", caption);
    p->y += 15;
    text_at(p, MARGIN, "c", source);
    p->y += 8;
    int step = s->bytes <= 4 ? 32 : s->bytes == 8 ? 16 : 8, drawn = 0;
    for (int first = 0; first < LANES;) {
        int end = first + step;
        /* Two parts whose neighbouring lanes agree go together. */
        int pair_end = s->bytes == 16 ? first + 16 : 32;
        if (step < 32 && first % (pair_end - first) == 0 &&
            (pairs_agree(s, first, pair_end, 1) || pairs_agree(s, first, pair_end, 2)))
            end = pair_end;
        drawn += draw_part(p, s, first, end);
        first = end;
    }
    if (s->kind == RUNG_LENS_ASYNC && s->wavefronts > drawn * s->requests) {
        p->y += 10;
        text_at(p, MARGIN, "s",
                "drawn is where a copy writes; pieces from different lines of memory take turns as well");
    }
    if (s->kind != RUNG_LENS_ASYNC)
        say_drawn(p, s, drawn, s->wavefronts / s->requests, "passes");
    if (s->merged_requests < 0.75 * s->requests && s->bytes == 4) {
        p->y += 10;
        text_at(p, MARGIN, "s", "nvcc merges these accesses to wider ones: fewer requests than drawn");
    }
    p->y += 6;
}

/* ---- the page ---- */

/* Colours are plain: many programs that draw SVG know no variables. */
static const char style[] =
    "<style>\n"
    ".h{font:600 12px DejaVu Sans,Verdana,sans-serif}.s{font:11px DejaVu Sans,Verdana,sans-serif}\n"
    ".t{font:10px DejaVu Sans,Verdana,sans-serif}.c{font:10px DejaVu Sans Mono,monospace}\n"
    ".b{font:700 15px DejaVu Sans,Verdana,sans-serif}\n"
    ".h,.b{fill:#1b1f24}.s,.t,.c{fill:#59636e}.bg{fill:#fff}.frame{fill:none;stroke:#59636e}\n"
    ".used{fill:#3b82c4}.waste{fill:#f3c9b5}.idle{fill:#eceff2}.conflict{fill:#d1403c}.mark{fill:#14283c}\n"
    ".w0{fill:#b9d7f0}.w1{fill:#f6d7a8}.w2{fill:#c4e3c2}.w3{fill:#e7c6e0}\n"
    ".w4{fill:#f3c3bd}.w5{fill:#cfd3ee}.w6{fill:#e6e0a6}.w7{fill:#bfe4e0}.w8{fill:#eceff2}\n"
    "@media(prefers-color-scheme:dark){\n"
    ".h,.b{fill:#e6e9ed}.s,.t,.c{fill:#9aa4af}.bg{fill:#14181d}.frame{fill:none;stroke:#9aa4af}\n"
    ".used{fill:#5aa2e0}.waste{fill:#6e4636}.idle{fill:#252b32}.conflict{fill:#f0605a}.mark{fill:#fff}\n"
    ".w0{fill:#24445f}.w1{fill:#5f4a22}.w2{fill:#2a5130}.w3{fill:#553a55}\n"
    ".w4{fill:#5e3733}.w5{fill:#363d68}.w6{fill:#54502a}.w7{fill:#275350}.w8{fill:#252b32}\n"
    "}\n"
    "</style>\n";

static void legend(page *p)
{
    static const struct {
        const char *class, *text;
    } entries[] = {{"used", "wanted"},
                   {"waste", "moved, not wanted"},
                   {"conflict", "another pass: bank conflict"},
                   {"mark", "thread 5"}};
    int x = MARGIN;
    p->y += 20;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        box(p, x, p->y - 9, 10, 10, entries[i].class);
        text_at(p, x + 15, "s", entries[i].text);
        x += 40 + 7 * (int)strlen(entries[i].text);
    }
}

static void draw(page *p, const lab_lens_case *c)
{
    char title[200];
    p->y = 34;
    for (int i = 0; i < lab_lens_launches(); i++) {
        const rung_lens_launch *l = lab_lens_launch(i);
        if (c->kernel && c->kernel->role == RUNG_REDUCE)
            snprintf(title, sizeof title, "%s: the sum of %lld floats, launch %d of %d", l->kernel,
                     (long long)(c->m * c->n), i + 1, lab_lens_launches());
        else
            snprintf(title, sizeof title, "%s at %lld x %lld x %lld", l->kernel, (long long)c->m, (long long)c->n,
                     (long long)c->k);
        text_at(p, MARGIN, "b", title);
        legend(p);
        draw_tile(p, l);
        for (int j = 0; j < l->site_count; j++) {
            const rung_lens_site *s = &l->sites[j];
            if (!is_drawable(s) || first_alike(l, j) != j)
                continue;
            if (s->space == RUNG_LENS_GLOBAL)
                draw_global(p, l, j);
            else
                draw_shared(p, l, j);
        }
        p->y += 40;
    }
}

rung_status lab_lens_svg(const char *path, const lab_lens_case *c)
{
    char *body = NULL;
    size_t bytes = 0;
    page p = {.to = open_memstream(&body, &bytes), .offset = c->offset};
    if (!p.to)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the picture");
    draw(&p, c);
    fclose(p.to);
    lab_output picture;
    rung_status status = lab_output_open(&picture, path);
    if (status != RUNG_SUCCESS) {
        free(body);
        return status;
    }
    fprintf(picture.to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
            "<title>%s under the lens: one block's results, and the bytes and banks of each access</title>\n%s",
            WIDTH, p.y, WIDTH, p.y, lab_lens_launches() > 0 ? lab_lens_launch(0)->kernel : "nothing", style);
    fprintf(picture.to, "<rect width=\"%d\" height=\"%d\" class=\"bg\"/>\n%s</svg>\n", WIDTH, p.y, body);
    free(body);
    return lab_output_close(&picture);
}
