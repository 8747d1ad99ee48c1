/* Says in one line what was wrong, and what would have been right. */
#include "cli/cli.h"
#include "lab/case.h"
#include "lab/names.h"

#include <stdarg.h>
#include <string.h>

static void say(const char *format, va_list list)
{
    cli_progress(NULL);
    fflush(stdout);
    fputs("rung: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

int cli_usage(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    return CLI_USAGE;
}

int cli_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    return CLI_FAIL;
}

/* A full disk is no error inside Rung, though nothing else in rung_status fits it: there the sentence says all. */
int cli_fail_status(rung_status status, const char *what)
{
    const char *sentence = lab_error();
    if (status == RUNG_INTERNAL && sentence[0])
        return cli_fail("%s: %s", what, sentence);
    return cli_fail("%s: %s: %s", what, rung_status_name(status), sentence);
}

/* A file that was named and cannot be opened is a wrong call; one that does not take everything is a failure. */
int cli_fail_file(rung_status status)
{
    return status == RUNG_INVALID_ARGUMENT ? cli_usage("%s", lab_error()) : cli_fail("%s", lab_error());
}

void cli_failed_case(const lab_verifier *v, const char *device, const rung_kernel *kernel, const lab_case *c,
                     const lab_verdict *verdict)
{
    char text[LAB_CASE_TEXT];
    lab_case_print(c, text);
    cli_progress(NULL);
    fprintf(stderr, "FAIL %s: %s\n     rung verify --device %s%s%s %s %s --case '%s'\n", verdict->kernel, verdict->why,
            device, v->via ? " --via " : "", v->via ? lab_via_names[v->via] : "", kernel ? "--kernel" : "--math",
            kernel ? kernel->name : lab_math_names[rung_context_math(v->context)], text);
}

int cli_other_device(const char *verb, const rung_kernel *kernel)
{
    if (kernel->backend == RUNG_BACKEND_CPU)
        return cli_fail("%s: %s is a CPU kernel: --device cpu", verb, kernel->name);
    return cli_fail("%s: %s is a GPU kernel, and this is the CPU; without a GPU 'rung lens %s' shows what it does, "
                    "'rung lens --check %s' whether it is right",
                    verb, kernel->name, kernel->name, kernel->name);
}

void cli_told_peers(const lab_peer *peers, int count)
{
    for (int i = 0; i < count; i++)
        if (peers[i].told)
            fprintf(stderr,
                    "rung: %s does not know this processor and would run kernels without AVX: it was told to take "
                    "%s's\n",
                    peers[i].name, peers[i].told);
}

void cli_join(char *list, size_t bytes, const char *const *names)
{
    list[0] = '\0';
    for (int i = 0; names && names[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, bytes - used, "%s%s", i ? ", " : "", names[i]);
    }
}

int cli_unknown(const char *what, const char *word, const char *const *names)
{
    const char *nearest = lab_name_nearest(names, word);
    if (nearest)
        return cli_usage("no %s is called '%s'; did you mean '%s'?", what, word, nearest);
    char list[512];
    cli_join(list, sizeof list, names);
    return cli_usage("no %s is called '%s'; there are: %s", what, word, list);
}

int cli_unknown_kernel(const char *word)
{
    const char *nearest = lab_kernel_nearest(word);
    if (nearest)
        return cli_usage("no kernel is called '%s'; did you mean '%s'?", word, nearest);
    return cli_usage("no kernel is called '%s'; 'rung list' names them", word);
}

int cli_check_kernels(const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (!rung_kernel_find(words[i]))
            return cli_unknown_kernel(words[i]);
    return CLI_PASS;
}

int cli_is_among(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return 1;
    return 0;
}
