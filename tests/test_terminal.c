/* The command's bars: as many cells as the share says, up to one and a half times all of them; nothing for a share that
 * is negative or no number; in letters where the language has no blocks; and never more than there is room for. */
#include "cli/cli.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CELLS = 20, ROOM = 200 };

static int whole_cells(const char *text, const char *cell)
{
    int count = 0;
    for (; strncmp(text, cell, strlen(cell)) == 0; text += strlen(cell))
        count++;
    return count;
}

static void bars_have_their_length(void **state)
{
    static const struct {
        double share;
        int cells, eighths;
    } all[] = {{0.0, 0, 0},
               {-1.0, 0, 0},
               {NAN, 0, 0},
               {-NAN, 0, 0},
               {0.5, 10, 0},
               {1.0, 20, 0},
               {1.5, 30, 0},
               {1.6, 30, 0},
               {INFINITY, 30, 0},
               {1e300, 30, 0},
               {0.049, 0, 7},
               {0.5 + 1 / 160.0, 10, 1},
               {0.5 + 7 / 160.0, 10, 7},
               {1 / 160.0, 0, 1}};
    (void)state;
    for (int utf8 = 0; utf8 < 2; utf8++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            const char *cell = utf8 ? "\u2588" : "#";
            char text[ROOM];
            setenv("LC_ALL", utf8 ? "C.UTF-8" : "C", 1);
            cli_bar(text, sizeof text, all[i].share, CELLS);
            const int cells = whole_cells(text, cell);
            const char *rest = text + cells * (int)strlen(cell);
            assert_int_equal(cells, all[i].cells);
            if (!utf8 || !all[i].eighths)
                assert_string_equal(rest, "");
            else /* the blocks of one to seven eighths follow each other downwards */
                assert_true(strlen(rest) == 3 && rest[2] == (char)(0x90 - all[i].eighths));
        }
}

static void languages_are_asked_in_their_order(void **state)
{
    static const struct {
        const char *all, *characters, *language;
        int utf8;
    } settings[] = {{"de_DE.UTF-8", "C", "C", 1}, {"C", "de_DE.UTF-8", "de_DE.UTF-8", 0},
                    {"", NULL, "de_DE.UTF-8", 1}, {NULL, NULL, "de_DE.utf8", 1},
                    {NULL, "C.UTF-8", "C", 1},    {NULL, "C", "de_DE.UTF-8", 0},
                    {"", "", "de_DE.UTF-8", 1},   {NULL, "C.UTF-8", NULL, 1},
                    {NULL, NULL, NULL, 0},        {"", "", "", 0},
                    {NULL, NULL, "C", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char text[ROOM];
        settings[i].all ? setenv("LC_ALL", settings[i].all, 1) : unsetenv("LC_ALL");
        settings[i].characters ? setenv("LC_CTYPE", settings[i].characters, 1) : unsetenv("LC_CTYPE");
        settings[i].language ? setenv("LANG", settings[i].language, 1) : unsetenv("LANG");
        cli_bar(text, sizeof text, 0.1, CELLS);
        assert_string_equal(text, settings[i].utf8 ? "\u2588\u2588" : "##");
    }
}

static void bars_end_where_their_room_does(void **state)
{
    (void)state;
    for (int utf8 = 0; utf8 < 2; utf8++)
        for (size_t bytes = 1; bytes < 100; bytes++) {
            char text[ROOM];
            setenv("LC_ALL", utf8 ? "C.UTF-8" : "C", 1);
            memset(text, 'x', sizeof text);
            cli_bar(text, bytes, 1.43, CELLS);
            assert_non_null(memchr(text, 0, bytes));
            for (size_t i = bytes; i < sizeof text; i++)
                assert_true(text[i] == 'x');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bars_have_their_length),
                                       cmocka_unit_test(languages_are_asked_in_their_order),
                                       cmocka_unit_test(bars_end_where_their_room_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
