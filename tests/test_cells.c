/* What the cells of a table become in CSV and in JSON: who reads them back by those formats' rules has the same texts
 * and numbers, whatever the texts hold; a number that is none is empty, and null. */
#include "cli/cli.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 2000, TEXT = 64, COLUMNS = 3 };

static uint64_t dice = 1;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

static const cli_column columns[] = {{"first", "", 5, -1}, {"second", "", 5, 1}, {"third", "", 5, -1}, {0}};

/* cli/table.c asks these of the rest of the command. */
int cli_usage(const char *format, ...)
{
    (void)format;
    return CLI_USAGE;
}

int cli_fail(const char *format, ...)
{
    (void)format;
    return CLI_FAIL;
}

static void draw_text(char text[TEXT])
{
    static const char *const pieces[] = {"a",    " ", ",",        "\"", "\\", "\n",  "\t",
                                         "\x01", "'", "\xc3\xa9", "0",  "/",  "\x1f"};
    text[0] = 0;
    for (int i = draw(6); i > 0; i--)
        strcat(text, pieces[draw(13)]);
}

/* Writes one row; returns what was written, which is the caller's. */
static char *row_of(cli_format format, const char *first, double second, const char *third)
{
    char *said = NULL;
    size_t bytes;
    cli_table table = {.format = format, .columns = columns, .count = COLUMNS, .to = open_memstream(&said, &bytes)};
    assert_non_null(table.to);
    cli_text(&table, first);
    cli_number(&table, second);
    cli_text(&table, third);
    fclose(table.to);
    return said;
}

/* Reads one field of CSV (RFC 4180) and what ends it; returns what comes behind. */
static const char *csv_field(const char *at, char value[TEXT], char end)
{
    const int quoted = *at == '"';
    size_t used = 0;
    for (at += quoted; *at && (quoted || (*at != ',' && *at != '\n')); at++) {
        if (quoted && *at == '"' && *++at != '"')
            break;
        assert_true(quoted || *at != '"');
        value[used++] = *at;
    }
    value[used] = 0;
    assert_int_equal(*at, end);
    return at + 1;
}

/* Reads one string of JSON; returns what comes behind it. */
static const char *json_string(const char *at, char value[TEXT])
{
    size_t used = 0;
    assert_int_equal(*at++, '"');
    for (; *at != '"'; at++) {
        unsigned code = (unsigned char)*at;
        assert_true(code >= 0x20);
        if (code == '\\') {
            code = (unsigned char)*++at;
            if (code == 'u') {
                assert_int_equal(sscanf(at + 1, "%4x", &code), 1);
                at += 4;
            } else {
                assert_true(code == '"' || code == '\\');
            }
        }
        value[used++] = (char)code;
    }
    value[used] = 0;
    return at + 1;
}

static const char *expect(const char *at, const char *words)
{
    assert_memory_equal(at, words, strlen(words));
    return at + strlen(words);
}

static double draw_number(void)
{
    static const double numbers[] = {0.0, 1.0, -0.5, 1e9, 123456.789, 1e-7};
    return numbers[draw(6)];
}

static void csv_is_read_back(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        char first[TEXT], third[TEXT], read[TEXT];
        draw_text(first), draw_text(third);
        const double number = draw_number();
        char *row = row_of(CLI_CSV, first, number, third);
        const char *at = csv_field(row, read, ',');
        assert_string_equal(read, first);
        at = csv_field(at, read, ',');
        assert_true(strtod(read, NULL) == number);
        at = csv_field(at, read, '\n');
        assert_string_equal(read, third);
        assert_int_equal(*at, 0);
        free(row);
    }
}

static void json_is_read_back(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        char first[TEXT], third[TEXT], read[TEXT], *end;
        draw_text(first), draw_text(third);
        const double number = draw_number();
        char *row = row_of(CLI_JSON, first, number, third);
        const char *at = json_string(expect(row, "{\"first\": "), read);
        assert_string_equal(read, first);
        at = expect(at, ", \"second\": ");
        assert_true(strtod(at, &end) == number && end != at);
        at = json_string(expect(end, ", \"third\": "), read);
        assert_string_equal(read, third);
        assert_string_equal(at, "}\n");
        free(row);
    }
}

static void no_number_is_empty_or_null(void **state)
{
    (void)state;
    static const double none[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        char *row = row_of(CLI_CSV, "x", none[i], "y");
        assert_string_equal(row, "x,,y\n");
        free(row);
        row = row_of(CLI_JSON, "x", none[i], "y");
        assert_string_equal(row, "{\"first\": \"x\", \"second\": null, \"third\": \"y\"}\n");
        free(row);
    }
}

/* A column is as wide as its title at least, in characters, and has one character where it has neither. */
static void columns_have_room_for_their_titles(void **state)
{
    (void)state;
    static const cli_column titled[] = {{"a", "a long title", 3, -1}, {"b", "x", 9, 2}, {"c", "\xc2\xb5s", 1, 1},
                                        {"d", "same", 4, 0},          {"e", "", 0, -1}, {0}};
    static const int widths[] = {12, 9, 2, 4, 1};
    cli_table table;
    cli_table_begin(&table, CLI_CSV, titled);
    for (int i = 0; i < 5; i++)
        assert_int_equal(table.width[i], widths[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_is_read_back),
        cmocka_unit_test(json_is_read_back),
        cmocka_unit_test(no_number_is_empty_or_null),
        cmocka_unit_test(columns_have_room_for_their_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
