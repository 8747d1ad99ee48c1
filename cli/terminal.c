/* What a terminal gets besides rows: colour, a line of progress, bars. */
#include "cli/cli.h"

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
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"}; /* the first that says something counts */
    const char *language = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !(language && language[0]); i++)
        language = getenv(names[i]);
    int utf8 = language && (strstr(language, "UTF-8") || strstr(language, "utf8"));
    double filled = !(share > 0.0) ? 0.0 : share > 1.5 ? cells * 1.5 : share * cells;
    int whole = (int)filled;
    text[0] = 0;
    for (int i = 0; i < whole && strlen(text) + 4 < bytes; i++)
        strcat(text, utf8 ? "\u2588" : "#");
    if (utf8 && strlen(text) + 4 < bytes)
        strcat(text, eighths[(int)((filled - whole) * 8)]);
}
