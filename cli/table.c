/* Prints rows as an aligned table, as CSV, or as one JSON object a line. */
#define _GNU_SOURCE /* for strdup */
#include "cli/cli.h"
#include "lab/output.h"
#include "lab/record.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *copy; /* the file of -o, which gets rows as JSON lines */
static const char *copy_file, *copy_kind;
static const char *made; /* the file of -o, where this command has made it */

static void quote_csv(FILE *to, const char *text)
{
    fputc('"', to);
    for (const char *at = text; *at; at++)
        if (*at == '"')
            fputs("\"\"", to);
        else
            fputc(*at, to);
    fputc('"', to);
}

/* Returns how many columns a terminal gives the text: UTF-8's following bytes take none. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* ---- -o: the same rows as JSON lines ---- */

int cli_copy_rows(const char *kind, const char *file)
{
    copy = cli_open_record(file);
    copy_file = file;
    copy_kind = kind;
    return copy ? CLI_PASS : cli_usage("%s", lab_error());
}

static void copy_cell(const cli_table *table, const char *text, int is_text)
{
    if (!copy)
        return;
    if (table->at == 0)
        fprintf(copy, "{\"kind\": \"%s\"", copy_kind);
    fprintf(copy, ", \"%s\": ", table->columns[table->at].key);
    if (is_text)
        lab_json_quote(copy, text);
    else
        fputs(text[0] ? text : "null", copy);
    if (table->at + 1 == table->count) {
        fputs("}\n", copy);
        fflush(copy); /* a whole line at once: others may append to the file, and this may be interrupted */
    }
}

FILE *cli_open_record(const char *file)
{
    struct stat there;
    const int is_new = lstat(file, &there) != 0;
    FILE *record = lab_record_open(file);
    made = record && is_new ? file : NULL;
    return record;
}

int cli_close_record(FILE *record, const char *file, int code)
{
    const int idle =
        record && file == made && code != CLI_PASS && fseek(record, 0, SEEK_END) == 0 && ftell(record) == 0;
    if (idle)
        unlink(file);
    if (!record || lab_close(record, file) == RUNG_SUCCESS)
        return code;
    int failed = cli_fail("%s", lab_error());
    return code == CLI_PASS ? failed : code;
}

int cli_finish(int code)
{
    code = cli_close_record(copy, copy_file, code);
    copy = NULL;
    int lost = ferror(stdout);
    if (fclose(stdout) == 0 && !lost)
        return code;
    fprintf(stderr, "rung: cannot write all of the output: %s\n",
            lost ? "a write failed, as on a full disk" : strerror(errno));
    return code == CLI_PASS ? CLI_FAIL : code;
}

/* ---- a terminal narrower than the table: columns get narrower and their texts are wrapped; what is dispensable goes
 * ---- */

static int terminal_columns(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int width_of_table(const cli_table *table)
{
    int width = -2;
    for (int i = 0; i < table->count; i++)
        width += table->width[i] ? table->width[i] + 2 : 0;
    return width;
}

/* A bar is drawn whole or not at all: its colours are no text to wrap. */
static int is_bar(const cli_column *column)
{
    return strcmp(column->key, "bar") == 0;
}

/* Returns the widest text that can still give a column away; -1: there is none. */
static int widest_text(const cli_table *table)
{
    enum { LEAST = 12 };
    int widest = -1;
    for (int i = 0; i < table->count; i++)
        if (table->columns[i].decimals < 0 && table->width[i] > LEAST && !is_bar(&table->columns[i]) &&
            (widest < 0 || table->width[i] > table->width[widest]))
            widest = i;
    return widest;
}

static void fit(cli_table *table)
{
    static const char *const dispensable[] = {
        "bar",     "noise_percent", "host_us", "sm_mhz",         "cub_error_u", "panels", "seconds",
        "refused", "arch",          "role",    "share_of_floor", "threads",     "cases",  NULL};
    int columns = table->format == CLI_TABLE ? terminal_columns() : 0;
    for (int i = 0; i < table->count; i++) {
        int title = width_of(table->columns[i].title);
        table->width[i] = table->columns[i].width > title ? table->columns[i].width : title > 0 ? title : 1;
    }
    if (columns <= 0 || width_of_table(table) <= columns)
        return;
    table->narrow = 1;
    for (int i = -1; (i = widest_text(table)) >= 0 && width_of_table(table) > columns;)
        table->width[i]--;
    for (int d = 0; dispensable[d] && width_of_table(table) > columns; d++)
        for (int i = 0; i < table->count; i++)
            if (strcmp(table->columns[i].key, dispensable[d]) == 0)
                table->width[i] = 0;
}

/* Returns how many bytes of `text` fit into `width` columns: up to the last space that fits, else cut. */
static size_t line_of(const char *text, int width)
{
    size_t at = 0, space = 0;
    for (int taken = 0; text[at]; at++) {
        int begins = ((unsigned char)text[at] & 0xc0) != 0x80;
        if (begins && taken == width)
            return space ? space : at;
        taken += begins;
        if (text[at] == ' ')
            space = at;
    }
    return at;
}

static void wrapped_row(cli_table *table)
{
    const char *left[CLI_COLUMNS];
    int last = table->count - 1, more = 1;
    while (last > 0 && !table->width[last])
        last--;
    for (int i = 0; i < table->count; i++)
        left[i] = table->row[i] ? table->row[i] : "";
    while (more) {
        more = 0;
        for (int i = 0; i <= last; i++) {
            if (!table->width[i])
                continue;
            const int number = table->columns[i].decimals >= 0, whole = number || is_bar(&table->columns[i]);
            size_t bytes = whole ? strlen(left[i]) : line_of(left[i], table->width[i]);
            char part[512];
            snprintf(part, sizeof part, "%.*s", (int)bytes, left[i]);
            int pad = table->width[i] - width_of(part);
            pad = pad > 0 ? pad : 0;
            fprintf(table->to, "%*s%s%*s%s", number ? pad : 0, "", part, number || i == last ? 0 : pad, "",
                    i == last ? "\n" : "  ");
            left[i] += bytes + strspn(left[i] + bytes, " ");
            more |= *left[i] != 0;
        }
    }
    for (int i = 0; i < table->count; i++)
        free(table->row[i]);
    memset(table->row, 0, sizeof table->row);
}

/* ---- cells ---- */

static void table_cell(cli_table *table, const cli_column *column, const char *text)
{
    int pad = column->width - width_of(text), last = table->at + 1 == table->count;
    if (table->narrow) {
        table->row[table->at] = strdup(text);
        if (last)
            wrapped_row(table);
        return;
    }
    if (column->decimals >= 0)
        fprintf(table->to, "%*s%s", pad > 0 ? pad : 0, "", text);
    else
        fprintf(table->to, "%s%*s", text, pad > 0 && !last ? pad : 0, "");
    fputs(last ? "\n" : "  ", table->to);
}

static void cell(cli_table *table, const char *text, int is_text)
{
    const cli_column *column = &table->columns[table->at];
    int last = table->at + 1 == table->count;
    if (table->at == 0)
        cli_progress(NULL);
    if (table->format == CLI_TABLE) {
        table_cell(table, column, text);
    } else if (table->format == CLI_CSV) {
        if (strpbrk(text, ",\"\n"))
            quote_csv(table->to, text);
        else
            fputs(text, table->to);
        fputs(last ? "\n" : ",", table->to);
    } else if (table->format == CLI_JSON) {
        fprintf(table->to, "%s\"%s\": ", table->at ? ", " : "{", column->key);
        if (is_text)
            lab_json_quote(table->to, text);
        else
            fputs(text[0] ? text : "null", table->to);
        fputs(last ? "}\n" : "", table->to);
    }
    table->at = last ? 0 : table->at + 1;
    if (last)
        fflush(table->to);
}

void cli_table_begin(cli_table *table, cli_format format, const cli_column *columns)
{
    *table = (cli_table){.format = format, .columns = columns, .to = stdout};
    while (columns[table->count].key)
        table->count++;
    fit(table);
    if (format == CLI_JSON || format == CLI_COPY_ONLY)
        return;
    int bold = format == CLI_TABLE && cli_colour();
    fputs(bold ? "\033[1m" : "", table->to);
    for (int i = 0; i < table->count; i++)
        cell(table, format == CLI_CSV ? columns[i].key : columns[i].title, columns[i].decimals < 0);
    fputs(bold ? "\033[0m" : "", table->to);
}

void cli_text(cli_table *table, const char *text)
{
    copy_cell(table, strchr(text, '\033') || strcmp(table->columns[table->at].key, "bar") == 0 ? "" : text, 1);
    cell(table, text, 1);
}

void cli_number(cli_table *table, double value)
{
    char text[64] = "", exact[64] = "";
    if (isfinite(value)) {
        lab_json_digits(exact, sizeof exact, value, 9);
        snprintf(text, sizeof text, "%.*f", table->columns[table->at].decimals, value);
    }
    copy_cell(table, exact, 0);
    cell(table, table->format == CLI_TABLE ? text : exact, 0);
}

void cli_note(const cli_table *table, const char *format, ...)
{
    cli_progress(NULL);
    if (table->format != CLI_TABLE)
        return;
    va_list list;
    va_start(list, format);
    vfprintf(table->to, format, list);
    va_end(list);
    fputc('\n', table->to);
}
