/* What the verbs share: options, the output table, progress, and how to fail. Exit codes: 0 pass, 1 fail, 2 usage. */
#ifndef CLI_H
#define CLI_H

#include "lab/peer.h"
#include "lab/place.h"
#include "lab/shape.h"
#include "lab/verify.h"

#include <stdio.h>

enum { CLI_PASS = 0, CLI_FAIL = 1, CLI_USAGE = 2 };

typedef struct cli_verb {
    const char *name, *idea;
    const char *usage; /* the lines under "usage:" in its help */
    int (*run)(int argc, char **argv);
} cli_verb;
extern const cli_verb cli_verbs[];               /* its last entry has a NULL name */
const cli_verb *cli_find_verb(const char *name); /* NULL: there is none */

/* Whether who started the command ignores the ends of its children. The command does not: it could wait for none. */
extern int cli_was_deaf;

/* ---- failing: one line on stderr ---- */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2))); /* returns 2 */
/* Says what is wrong, and with which line it runs again, in the verifier's mode and by its way. kernel NULL: the
 * library. */
void cli_failed_case(const lab_verifier *v, const char *device, const rung_kernel *kernel, const lab_case *c,
                     const lab_verdict *verdict);
int cli_other_device(const char *verb, const rung_kernel *kernel); /* its device is not the one that was taken */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* returns 1 */
int cli_fail_status(rung_status status, const char *what);                   /* says the library's sentence */
int cli_fail_file(rung_status status); /* of a file that was named: returns 2 where it cannot be opened */
void cli_told_peers(const lab_peer *peers, int count);             /* says which peers are older than this processor */
void cli_join(char *list, size_t bytes, const char *const *names); /* "a, b, c"; of NULL "" */
/* Says "no X is called 'word'", with the nearest name, or with the list when none is near. Returns 2. */
int cli_unknown(const char *what, const char *word, const char *const *names);
int cli_unknown_kernel(const char *word);
/* Returns 0 where each word is a kernel; else it says which is none, and returns 2. */
int cli_check_kernels(const char *const *words, int count);
/* Returns whether one of the words is this one. */
int cli_is_among(const char *const *words, int count, const char *word);

/* ---- options: --name, --name value, --name=value ---- */
/* An integer is 0 or more and at most 2^40, an amount the same but at least 1, a count (of threads, of repeats) 1 to
 * RUNG_MOST_THREADS, a real number a finite one of FP32. */
typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_INTEGER, CLI_AMOUNT, CLI_COUNT, CLI_REAL, CLI_CHOICE } cli_kind;

typedef struct cli_option {
    const char *name; /* without dashes; one letter: -x */
    cli_kind kind;
    /* for flags and choices an int (a choice's position), for integers an int64_t, for real numbers a float, for texts
     * a const char * */
    void *value;
    const char *const *choices;
    const char *help;
} cli_option;

/* Reads the words of a verb. Every verb also takes --help and --version. -o and --output are one option, and where a
 * verb's own list has none, the rows of its tables are appended to that file as JSON lines. Options end with a NULL
 * name. What is no option goes to `words` (up to `capacity`). Returns 0, or 2 after saying why, or -1 when --help was
 * asked for and printed. */
int cli_parse(const char *verb, const cli_option *options, int argc, char **argv, const char **words, int *count,
              int capacity);

/* An option does something or is refused beside what makes it idle: of the options of the verb that were given, the
 * first that the list "kernel pad" names, or in the second function does not name, is told. `where` ends the sentence
 * "bench --pad does nothing ...". Return 2 then, 0 where no such option was given. */
int cli_idle(const char *verb, const char *names, const char *where);
int cli_idle_but(const char *verb, const char *names, const char *where);

/* Reads digits, with a minus before them or without. Returns where they end; NULL: it is no number from `least` to
 * `most`. */
const char *cli_read_integer(const char *text, int64_t least, int64_t most, int64_t *value);
int cli_is_integer(const char *text, int64_t least, int64_t most, int64_t *value); /* returns whether nothing follows */
/* Reads two numbers with an 'x' between them, "2x3", from 1 on. Returns whether they are that. */
int cli_read_pair(const char *text, int64_t most, int64_t *first, int64_t *second);

extern const char *const cli_formats[]; /* table, csv, json */
/* copy only: the rows go to -o's file alone */
typedef enum cli_format { CLI_TABLE, CLI_CSV, CLI_JSON, CLI_COPY_ONLY } cli_format;
#define CLI_FORMAT(variable)                                                                                           \
    {                                                                                                                  \
        "format", CLI_CHOICE, &(variable), cli_formats, "table, csv or json (one object a line)"                       \
    }

/* The kinds of lab_data_names, as a help lists them. */
#define CLI_DATA                                                                                                       \
    "signed, positive, normal, span10, span24, span40, span100, sparse, integers, scaled, spike, across, "             \
    "trap, unit, halves, constant, outliers, subnormal, large, softmax, fixed, fuzz or special; "

/* Reads "cpu", "gpu", "gpu1" or "best". Returns 0 and *device, or 2. */
int cli_device(const char *text, int *device);
/* Writes "rung verb words..." as it was typed, without where result lines go, after what else decides a CPU's figures:
 * settings of the peers and of Rung in the environment, real-time priority. */
void cli_command(char *text, size_t bytes, int argc, char **argv);
/* Reads a length, "1000000" or "2^20", at most 2^48. Returns 0, or 2 after saying what is wrong. */
int cli_length(const char *verb, const char *word, int64_t *n);
/* Splits a comma-separated list in a copy. Returns how many words it has; -1 after saying that they are too many. */
int cli_split(const char *text, char *copy, size_t bytes, const char **words, int capacity);

enum { CLI_WORDS = 64 };
/* Reads shapes and files of shapes, from words and from a comma-separated list (or NULL). Returns 0, or 2 after saying
 * what is wrong. */
int cli_shapes(const char *list, const char **words, int count, lab_shapes *shapes);

/* ---- output: rows that appear as they are made ---- */
typedef struct cli_column {
    const char *key, *title; /* a list of columns ends with a NULL key */
    int width;               /* its width on a terminal; the last column may run over */
    int decimals;            /* -1: it is text */
} cli_column;

enum { CLI_COLUMNS = 48 };

typedef struct cli_table {
    cli_format format;
    const cli_column *columns;
    int count, at;
    FILE *to;
    /* Where the terminal is narrower than the columns: their widths there (0: the column is left out), and the row
     * until it is whole. */
    int narrow, width[CLI_COLUMNS];
    char *row[CLI_COLUMNS];
} cli_table;

void cli_table_begin(cli_table *table, cli_format format, const cli_column *columns);
void cli_text(cli_table *table, const char *text); /* fills the next cell; the last cell ends the row */
void cli_number(cli_table *table, double value);   /* NaN leaves it empty */
/* prints in a table only */
void cli_note(const cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the end ---- */
/* Closes stdout and what -o opened. Returns CLI_FAIL instead of CLI_PASS when not all of it could be written. */
int cli_finish(int code);
/* Rows go to -o's file too, as JSON lines of this kind. */
int cli_copy_rows(const char *kind, const char *file);
/* Opens the file of -o to append to it; NULL with lab_error() set when that fails. */
FILE *cli_open_record(const char *file);
/* Closes a file of result lines; one that this command has made, and wrote nothing to before it failed or was refused,
 * goes. Returns `code`, or CLI_FAIL when not all of it could be written. record may be NULL.
 */
int cli_close_record(FILE *record, const char *file, int code);

/* ---- the terminal ---- */
int cli_colour(void); /* whether stdout takes colour: a terminal and no NO_COLOR */
/* Prints a line on stderr that the next one replaces; nothing when stderr is no terminal. NULL clears it. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Draws `share` of `cells` as a bar of UTF-8 eighths (or #) into text. */
void cli_bar(char *text, size_t bytes, double share, int cells);

#endif
