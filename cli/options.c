/* Reads --name, --name value, --name=value and -x, by one table for each verb. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "lab/names.h"
#include "lab/record.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

const char *const cli_formats[] = {"table", "csv", "json", NULL};

const cli_verb *cli_find_verb(const char *name)
{
    for (const cli_verb *verb = cli_verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static const char *value_word(const cli_option *option)
{
    switch (option->kind) {
    case CLI_TEXT: return " TEXT";
    case CLI_INTEGER:
    case CLI_AMOUNT:
    case CLI_COUNT: return " N";
    case CLI_REAL: return " X";
    case CLI_CHOICE: return " NAME";
    default: return "";
    }
}

/* Verbs that make no table have no rows to append. */
static int takes_copies(const cli_verb *verb)
{
    return strcmp(verb->name, "run") != 0 && strcmp(verb->name, "help") != 0;
}

static const cli_option *find_option(const cli_option *options, const char *name, size_t length)
{
    if (length == 6 && strncmp(name, "output", 6) == 0)
        name = "o", length = 1;
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static void print_help(const char *name, const cli_option *options)
{
    const cli_verb *verb = cli_find_verb(name);
    printf("rung %s: %s\n\nusage: %s\n", name, verb->idea, verb->usage);
    printf("\noptions:\n");
    for (const cli_option *o = options; o->name; o++) {
        char left[48];
        snprintf(left, sizeof left, "%s%s%s", o->name[1] ? "--" : "-", o->name[1] ? o->name : "o, --output",
                 value_word(o));
        printf("  %-20s %s\n", left, o->help);
    }
    if (takes_copies(verb) && !find_option(options, "o", 1))
        printf("  %-20s %s\n", "-o, --output TEXT", "append the rows to this file too, as JSON lines");
    printf("  %-20s %s\n  %-20s %s\n", "-h, --help", "this text", "-V, --version", "the version");
}

static int unknown_option(const char *verb, const cli_option *options, const char *given)
{
    const char *names[48] = {"help", "version", "output"};
    int count = 3;
    for (const cli_option *o = options; o->name && count < 47; o++)
        names[count++] = o->name;
    const char *plain = given + strspn(given, "-");
    char word[64];
    if (given[1] >= '0' && given[1] <= '9')
        return cli_usage("%s has no option '%s', and sizes begin at 1; 'rung help %s' tells its usage", verb, given,
                         verb);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(plain, "="), plain);
    const char *nearest = word[0] ? lab_name_nearest(names, word) : NULL; /* "--" alone is near to none */
    if (nearest)
        return cli_usage("%s has no option '%s'; did you mean '%s%s'?", verb, given, nearest[1] ? "--" : "-", nearest);
    return cli_usage("%s has no option '%s'; 'rung help %s' lists them", verb, given, verb);
}

static int unknown_word(const char *verb, const cli_option *options, const char *word)
{
    for (const cli_option *o = options; o->name; o++)
        if (strcmp(o->name, "kernel") == 0 && rung_kernel_find(word))
            return cli_usage("%s does not know what to do with '%s': a kernel is named with --kernel", verb, word);
    return cli_usage("%s does not know what to do with '%s'; 'rung help %s' tells its usage", verb, word, verb);
}

const char *cli_read_integer(const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end = NULL;
    int digit = isdigit((unsigned char)text[text[0] == '-']); /* strtoll() takes blanks and a plus, too */
    long long read = digit ? strtoll(text, &end, 10) : 0; /* what is too large becomes the largest, which is no size */
    if (!digit || read < least || read > most)
        return NULL;
    *value = read;
    return end;
}

int cli_is_integer(const char *text, int64_t least, int64_t most, int64_t *value)
{
    const char *end = cli_read_integer(text, least, most, value);
    return end && !*end;
}

int cli_read_pair(const char *text, int64_t most, int64_t *first, int64_t *second)
{
    const char *end = cli_read_integer(text, 1, most, first);
    return end && *end == 'x' && cli_is_integer(end + 1, 1, most, second);
}

static int set_number(const char *verb, const cli_option *option, const char *text)
{
    const int64_t least = option->kind != CLI_INTEGER,
                  most = option->kind == CLI_COUNT ? RUNG_MOST_THREADS : (int64_t)1 << 40;
    if (!cli_is_integer(text, least, most, option->value))
        return cli_usage("%s --%s: '%s' is not a number from %lld to %lld", verb, option->name, text, (long long)least,
                         (long long)most);
    return 0;
}

static int set_real(const char *verb, const cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    float value = strtof(text, &end);
    int is_number = end != text && !*end && !isspace((unsigned char)text[0]);
    if (!is_number || !isfinite(value) || (errno == ERANGE && value == 0.0f))
        return cli_usage("%s --%s: '%s' is not a number that FP32 has", verb, option->name, text);
    *(float *)option->value = value;
    return 0;
}

static int set_value(const char *verb, const cli_option *option, const char *text)
{
    if (option->kind == CLI_TEXT) {
        *(const char **)option->value = text;
    } else if (option->kind == CLI_REAL) {
        return set_real(verb, option, text);
    } else if (option->kind != CLI_CHOICE) {
        return set_number(verb, option, text);
    } else {
        int index = lab_name_find(option->choices, text);
        if (index < 0) {
            char what[48];
            snprintf(what, sizeof what, "value of --%s", option->name);
            return cli_unknown(what, text, option->choices);
        }
        *(int *)option->value = index;
    }
    return 0;
}

enum { MOST_GIVEN = 48 }; /* more than a verb has */

static const char *given[MOST_GIVEN];
static int given_count;

/* Returns whether it was given before. */
static int note_given(const char *name)
{
    for (int i = 0; i < given_count; i++)
        if (strcmp(given[i], name) == 0)
            return 1;
    if (given_count < MOST_GIVEN)
        given[given_count++] = name;
    return 0;
}

/* Returns whether a list, "one two three", has the word. */
static int lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

static int refuse_given(const char *verb, const char *names, int refused, const char *where)
{
    for (int i = 0; i < given_count; i++)
        if (lists(names, given[i]) == refused)
            return cli_usage("%s %s%s does nothing %s", verb, given[i][1] ? "--" : "-", given[i], where);
    return CLI_PASS;
}

int cli_idle(const char *verb, const char *names, const char *where)
{
    return refuse_given(verb, names, 1, where);
}

int cli_idle_but(const char *verb, const char *names, const char *where)
{
    return refuse_given(verb, names, 0, where);
}

/* Sets one option from argv[*i] and, where it takes a value of its own word, argv[*i + 1]. */
static int take_option(const char *verb, const cli_option *options, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *name = word + (word[1] == '-' ? 2 : 1), *equals = strchr(name, '=');
    const char *copy = NULL;
    const cli_option copies[] = {{"o", CLI_TEXT, &copy, NULL, ""}, {0}};
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *option = find_option(options, name, length);
    if (!option && takes_copies(cli_find_verb(verb)))
        option = find_option(copies, name, length);
    if (!option)
        return unknown_option(verb, options, word);
    const int again = note_given(option->name);
    if (option->kind == CLI_FLAG) {
        if (equals)
            return cli_usage("%s --%s takes no value", verb, option->name);
        *(int *)option->value = 1;
        return 0;
    }
    if (!equals && *i + 1 >= argc) {
        char list[512];
        cli_join(list, sizeof list, option->choices);
        return cli_usage("%s %s%s needs a value%s%s", verb, option->name[1] ? "--" : "-", option->name,
                         list[0] ? ": one of " : "", list);
    }
    if (again) /* the first value would do nothing */
        return cli_usage("%s: %s%s is given twice", verb, option->name[1] ? "--" : "-", option->name);
    int code = set_value(verb, option, equals ? equals + 1 : argv[++*i]);
    return copy ? cli_copy_rows(verb, copy) : code;
}

int cli_parse(const char *verb, const cli_option *options, int argc, char **argv, const char **words, int *count,
              int capacity)
{
    int found = 0;
    given_count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(verb, options);
            return -1;
        }
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            printf("rung %s (%s)\n", rung_version(), lab_commit());
            return -1;
        }
        if (argv[i][0] == '-' && argv[i][1]) {
            int code = take_option(verb, options, argc, argv, &i);
            if (code)
                return code;
        } else if (found < capacity) {
            words[found++] = argv[i];
        } else {
            return unknown_word(verb, options, argv[i]);
        }
    }
    if (count)
        *count = found;
    return 0;
}

int cli_device(const char *text, int *device)
{
    static const char *const names[] = {"cpu", "gpu", "best", NULL};
    enum { MOST_GPUS = 9999 };
    int64_t number = 0;
    if (strcmp(text, "cpu") == 0)
        *device = RUNG_DEVICE_CPU;
    else if (strcmp(text, "best") == 0)
        *device = RUNG_DEVICE_BEST;
    else if (strncmp(text, "gpu", 3) == 0 && strlen(text) < 8 &&
             (!text[3] || cli_is_integer(text + 3, 0, MOST_GPUS, &number)))
        *device = (int)number;
    else
        return cli_unknown("device", text, names);
    return 0;
}

int cli_length(const char *verb, const char *word, int64_t *n)
{
    enum { MOST_BITS = 48 };
    int64_t power;
    const char *end = cli_read_integer(word, 1, (int64_t)1 << MOST_BITS, n);
    if (end && *n == 2 && *end == '^' && (end = cli_read_integer(end + 1, 0, MOST_BITS, &power)))
        *n = (int64_t)1 << power;
    if (!end || *end)
        return cli_usage("%s: '%s' is not a length such as 1000000 or 2^20, at most 2^48", verb, word);
    return 0;
}

int cli_split(const char *text, char *copy, size_t bytes, const char **words, int capacity)
{
    int count = 0, fits = snprintf(copy, bytes, "%s", text) < (int)bytes;
    char *save = NULL, *word = strtok_r(copy, ",", &save);
    for (; word && count < capacity; word = strtok_r(NULL, ",", &save))
        words[count++] = word;
    if (fits && !word)
        return count;
    cli_usage("the list '%.40s...' is too long: at most %d words and %zu characters", text, capacity, bytes - 1);
    return -1;
}

void cli_command(char *text, size_t bytes, int argc, char **argv)
{
    static const char *const settings[] = {"OPENBLAS_CORETYPE",        "BLIS_ARCH_TYPE",    "MKL_ENABLE_INSTRUCTIONS",
                                           "AOCL_ENABLE_INSTRUCTIONS", "RUNG_CPU_FEATURES", "RUNG_CPU_PLAN"};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (getenv(settings[i]) && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s=%s ", settings[i], getenv(settings[i]));
    if (sched_getscheduler(0) == SCHED_FIFO && used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "chrt -f 1 ");
    if (used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "rung");
    for (int i = 0; i < argc && used < bytes; i++) {
        int last = i + 1 == argc;
        if (!last && (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0))
            i++;
        else if (strncmp(argv[i], "-o=", 3) != 0 && strncmp(argv[i], "--output=", 9) != 0)
            used += (size_t)snprintf(text + used, bytes - used, " %s", argv[i]);
    }
    static const char cut[] = " ...";
    if (used >= bytes)
        memcpy(text + bytes - sizeof cut, cut, sizeof cut);
}

int cli_shapes(const char *list, const char **words, int count, lab_shapes *shapes)
{
    char copy[2048];
    const char *listed[CLI_WORDS];
    int listed_count = list ? cli_split(list, copy, sizeof copy, listed, CLI_WORDS) : 0;
    if (listed_count < 0)
        return CLI_USAGE;
    for (int i = 0; i < count + listed_count; i++) {
        const char *word = i < count ? words[i] : listed[i - count];
        lab_shape shape;
        int is_file = word[0] < '0' || word[0] > '9' || strchr(word, '/') || strchr(word, '.');
        rung_status status = is_file ? lab_shapes_read(word, shapes) : lab_shape_parse(word, &shape);
        if (status == RUNG_SUCCESS && !is_file)
            status = lab_shapes_add(shapes, &shape);
        if (status != RUNG_SUCCESS && rung_kernel_find(word))
            return cli_usage("'%s' is a kernel and no shape: --kernel %s", word, word);
        if (status != RUNG_SUCCESS)
            return cli_usage("%s", lab_error());
    }
    return shapes->count ? CLI_PASS : cli_usage("there is no shape to work on: MxNxK[:NT][xBATCH], or --shapes FILE");
}
