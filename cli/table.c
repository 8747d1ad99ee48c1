/* Rows as an aligned table, as CSV, or as one JSON object a line; and what a terminal gets besides. */
#include "cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int progress_shown;

int cli_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]);
}

void cli_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = format != NULL;
    if (format) {
        va_list list;
        va_start(list, format);
        vfprintf(stderr, format, list);
        va_end(list);
    }
    fflush(stderr);
}

void cli_bar(char *text, size_t bytes, double share, int cells)
{
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    const char *language = getenv("LC_ALL");
    if (!language || !language[0])
        language = getenv("LANG");
    int utf8 = language && (strstr(language, "UTF-8") || strstr(language, "utf8"));
    double filled = !(share > 0.0) ? 0.0 : share > 1.5 ? cells * 1.5 : share * cells;
    int whole = (int)filled;
    text[0] = 0;
    for (int i = 0; i < whole && strlen(text) + 4 < bytes; i++)
        strcat(text, utf8 ? "\u2588" : "#");
    if (utf8 && strlen(text) + 4 < bytes)
        strcat(text, eighths[(int)((filled - whole) * 8)]);
}

static void cell(cli_table *table, const char *text, int is_text);

void cli_table_begin(cli_table *table, cli_format format, const cli_column *columns, int count)
{
    *table = (cli_table){.format = format, .columns = columns, .count = count, .to = stdout};
    if (format == CLI_JSON)
        return;
    int bold = format == CLI_TABLE && cli_colour();
    fputs(bold ? "\033[1m" : "", table->to);
    for (int i = 0; i < count; i++)
        cell(table, format == CLI_CSV ? columns[i].key : columns[i].title, columns[i].decimals < 0);
    fputs(bold ? "\033[0m" : "", table->to);
}

static void quote(FILE *to, const char *text, int json)
{
    fputc('"', to);
    for (const char *at = text; *at; at++) {
        if (json && (*at == '"' || *at == '\\'))
            fprintf(to, "\\%c", *at);
        else if (json && (unsigned char)*at < 0x20)
            fprintf(to, "\\u%04x", *at);
        else if (!json && *at == '"')
            fputs("\"\"", to);
        else
            fputc(*at, to);
    }
    fputc('"', to);
}

/* Columns a terminal gives the text: UTF-8's following bytes take none. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void table_cell(cli_table *table, const cli_column *column, const char *text)
{
    int pad = column->width - width_of(text), last = table->at + 1 == table->count;
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
            quote(table->to, text, 0);
        else
            fputs(text, table->to);
        fputs(last ? "\n" : ",", table->to);
    } else {
        fprintf(table->to, "%s\"%s\": ", table->at ? ", " : "{", column->key);
        if (is_text)
            quote(table->to, text, 1);
        else
            fputs(text[0] ? text : "null", table->to);
        fputs(last ? "}\n" : "", table->to);
    }
    table->at = last ? 0 : table->at + 1;
    if (last)
        fflush(table->to);
}

void cli_text(cli_table *table, const char *text)
{
    cell(table, text, 1);
}

void cli_number(cli_table *table, double value)
{
    char text[64] = "";
    int decimals = table->columns[table->at].decimals;
    if (isfinite(value))
        snprintf(text, sizeof text, table->format == CLI_TABLE ? "%.*f" : "%.*g",
                 table->format == CLI_TABLE ? decimals : 9, value);
    cell(table, text, 0);
}

void cli_note(const cli_table *table, const char *format, ...)
{
    if (table->format != CLI_TABLE)
        return;
    va_list list;
    va_start(list, format);
    vfprintf(table->to, format, list);
    va_end(list);
    fputc('\n', table->to);
}
