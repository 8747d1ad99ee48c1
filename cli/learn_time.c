/* rung learn check --gpu: the timing. It runs in a process of its own, since in the grader's the lens stands in for the
 * driver. */
#include "cli/learn.h"
#include "lab/learn_gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMED_SIZE = 2048, WORDS = 11 };

static const cli_column time_columns[] = {{"who", "who", 24, -1},
                                          {"us", "us", 12, 2},
                                          {"tflops", "TFLOP/s", 8, 2},
                                          {"times_faster", "times yours", 11, 3},
                                          {0}};

/* The words that learn_time takes say all that the counted run told about the attempt. */
static void words_of(const learn_request *r, const char *file, const lab_grade_result *v, char text[WORDS][700])
{
    const lab_exercise *e = r->exercise;
    lab_extent3 size = e->own_parts ? e->count : (lab_extent3){TIMED_SIZE, TIMED_SIZE, TIMED_SIZE};
    const long long numbers[] = {v->bm, v->bn, v->threads, v->shared_bytes, v->parts, size.m, size.n, size.k};
    snprintf(text[0], 700, "%s", e->name);
    snprintf(text[1], 700, "%s", file);
    snprintf(text[2], 700, "%s", lab_lens_sources());
    for (int i = 0; i < 8; i++)
        snprintf(text[3 + i], 700, "%lld", numbers[i]);
}

int learn_check_gpu(const learn_request *r, const char *file, const lab_grade_result *v)
{
    static char text[WORDS][700];
    char *arguments[WORDS + 5] = {"rung", "learn", "time"},
                            *format[] = {"--format=table", "--format=csv", "--format=json"};
    int status = 0;
    if (r->exercise->problem != LAB_EXERCISE_PRODUCT)
        return cli_fail("%s passes; only products are timed: this one has no rung and no cuBLAS to stand beside",
                        r->exercise->name);
    words_of(r, file, v, text);
    for (int i = 0; i < WORDS; i++)
        arguments[3 + i] = text[i];
    arguments[3 + WORDS] = format[r->format];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (r->driver)
            setenv("RUNG_LIBCUDA", r->driver, 1);
        else
            unsetenv("RUNG_LIBCUDA");
        execv("/proc/self/exe", arguments);
        _exit(CLI_FAIL);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return cli_fail("no process to time %s in", r->exercise->name);
    return WIFEXITED(status) ? WEXITSTATUS(status) : cli_fail("timing %s crashed", r->exercise->name);
}

int learn_time(const learn_request *r, const char **words, int count)
{
    static lab_learn_times times;
    const lab_exercise *e = count == WORDS ? lab_exercise_find(r->course, words[0]) : NULL;
    char finish[72];
    if (!e)
        return cli_usage("learn time is what rung learn check NN --gpu runs; say that instead");
    snprintf(finish, sizeof finish, "%s_finish", e->name);
    lab_learn_gpu what = {.file = words[1],
                          .symbol = e->name,
                          .finish = e->two_kernels ? finish : NULL,
                          .includes = words[2],
                          .rung = e->rung[0] ? e->rung : NULL,
                          .bm = atoi(words[3]),
                          .bn = atoi(words[4]),
                          .threads = atoi(words[5]),
                          .shared_bytes = atoi(words[6]),
                          .parts = atoi(words[7]),
                          .m = atoll(words[8]),
                          .n = atoll(words[9]),
                          .k = atoll(words[10])};
    rung_status status = lab_learn_time(&what, &times);
    if (status != RUNG_SUCCESS)
        return cli_fail("%s passes, but was not timed: %s", e->name, lab_error());
    cli_table table;
    if (r->format == CLI_TABLE)
        printf("on one %s at m, n, k = %lld, %lld, %lld (checked there too: %.2f u):\n", times.device,
               (long long)what.m, (long long)what.n, (long long)what.k, times.error_u);
    cli_table_begin(&table, (cli_format)r->format, time_columns);
    for (int i = 0; i < times.count; i++) {
        double us = times.time.us[i].median;
        cli_text(&table, times.names[i]);
        cli_number(&table, us);
        cli_number(&table, 2e-6 * (double)what.m * (double)what.n * (double)what.k / us);
        cli_number(&table, times.time.us[0].median / us);
    }
    if (times.without[0])
        fprintf(stderr, "without cuBLAS: %s\n", times.without);
    return CLI_PASS;
}
