/* rung run: starts a program with the drop-ins in front of its BLAS and cuBLAS. */
#define _GNU_SOURCE
#include "cli/commands.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const maths[] = {"accurate", "strict", "fast", NULL};
static const char *const drop_ins[] = {"both", "cublas", "blas", NULL};

typedef struct run_options {
    int math, only, report, time, compare, no_audit;
    const char *report_file;
} run_options;

/* The folder librung.so was loaded from: the drop-ins lie beside it. */
static int library_folder(char *folder, size_t bytes)
{
    Dl_info info;
    char real[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)rung_version, &info) || !realpath(info.dli_fname, real))
        return 0;
    char *slash = strrchr(real, '/');
    if (!slash || (size_t)(slash - real) >= bytes)
        return 0;
    memcpy(folder, real, (size_t)(slash - real));
    folder[slash - real] = '\0';
    return 1;
}

/* Puts folder/file in front of what the variable already lists. 0: no such file. */
static int prepend(const char *variable, const char *folder, const char *file)
{
    char path[PATH_MAX + 32], value[4 * PATH_MAX];
    const char *before = getenv(variable);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (access(path, R_OK) != 0)
        return 0;
    snprintf(value, sizeof value, "%s%s%s", path, before && *before ? ":" : "", before ? before : "");
    setenv(variable, value, 1);
    return 1;
}

static int set_up(const run_options *o)
{
    char folder[PATH_MAX];
    if (!library_folder(folder, sizeof folder))
        return cli_fail("the folder of librung.so cannot be found");
    int wants_cublas = o->only != 2, wants_blas = o->only != 1;
    int cublas = wants_cublas && prepend("LD_PRELOAD", folder, "librung_cublas.so");
    int blas = wants_blas && prepend("LD_PRELOAD", folder, "librung_blas.so");
    if (o->only == 1 && !cublas)
        return cli_fail("%s has no librung_cublas.so: a build with a sanitizer leaves it out", folder);
    if (!cublas && !blas)
        return cli_fail("%s holds neither librung_cublas.so nor librung_blas.so", folder);
    if (cublas && !o->no_audit)
        prepend("LD_AUDIT", folder, "librung_audit.so");
    setenv("RUNG_MATH", maths[o->math], 1);
    if (o->report || o->report_file)
        setenv("RUNG_REPORT", o->report_file ? o->report_file : "stderr", 1);
    if (o->time)
        setenv("RUNG_REPORT_TIME", "1", 1);
    if (o->compare)
        setenv("RUNG_REPORT_COMPARE", "1", 1);
    return CLI_PASS;
}

int cmd_run(int argc, char **argv)
{
    run_options o = {0};
    const cli_option options[] = {
        {"math", CLI_CHOICE, &o.math, maths, "what FP32 products on a GPU promise (default accurate)"},
        {"only", CLI_CHOICE, &o.only, drop_ins, "which drop-ins (default both)"},
        {"report", CLI_FLAG, &o.report, NULL, "say at exit, on stderr, which calls were answered by what"},
        {"report-file", CLI_TEXT, &o.report_file, NULL, "the same into a file"},
        {"time", CLI_FLAG, &o.time, NULL, "with GPU times in the report"},
        {"compare", CLI_FLAG, &o.compare, NULL, "and those of the same calls on cuBLAS (they run twice)"},
        {"no-audit", CLI_FLAG, &o.no_audit, NULL, "leave functions taken with dlsym alone"},
        {0},
    };
    int split = 1;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    const char *words[1];
    int count = 0, code = cli_parse("run", options, split, argv, words, &count, 1);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count)
        return cli_usage("the program goes behind --: rung run -- %s ...", words[0]);
    if (split + 1 >= argc)
        return cli_usage("no program to run: rung run [options] -- PROGRAM [arguments]");
    code = set_up(&o);
    if (code)
        return code;
    execvp(argv[split + 1], argv + split + 1);
    return cli_fail("cannot start %s: %s", argv[split + 1], strerror(errno));
}
