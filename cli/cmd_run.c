/* rung run: starts a program with the drop-ins in front of its BLAS and cuBLAS. Without a report it becomes the
 * program; with one it waits for it, then writes what the drop-ins of all its processes had to say. */
#define _GNU_SOURCE
#include "cli/commands.h"
#include "cpu/others.h"
#include "lab/library.h"
#include "lab/output.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNSAID = -1 };

static const char *const maths[] = {"accurate", "strict", "fast", NULL}; /* the default first */
enum { BOTH, CUBLAS_ONLY, BLAS_ONLY };
static const char *const drop_ins[] = {"both", "cublas", "blas", NULL};

typedef struct run_options {
    int math, only, report, time, compare, no_audit;
    const char *report_file;
} run_options;

/* Puts a word in front of what the variable already lists. */
static void list_first(const char *variable, const char *word)
{
    char value[4 * PATH_MAX];
    const char *before = getenv(variable);
    snprintf(value, sizeof value, "%s%s%s", word, before && *before ? ":" : "", before ? before : "");
    setenv(variable, value, 1);
}

/* Puts folder/file in front of what the variable already lists. Returns 0 where there is no such file. LD_PRELOAD ends
 * a path at a blank: then it lists the file's name alone, which is looked for in LD_LIBRARY_PATH. */
static int prepend(const char *variable, const char *folder, const char *file)
{
    char path[PATH_MAX + 32];
    int named = strcmp(variable, "LD_PRELOAD") == 0 && strchr(folder, ' ');
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (access(path, R_OK) != 0)
        return 0;
    list_first(variable, named ? file : path);
    if (named)
        list_first("LD_LIBRARY_PATH", folder);
    return 1;
}

/* Keeps OpenBLAS's workers from spinning long, unless the user has said how long. */
static void settle_other_threads(void)
{
    setenv("OPENBLAS_THREAD_TIMEOUT", rung_spins_of_openblas(), 0);
}

/* --math first, then what the user has set. */
static void settle_math(int math)
{
    const char *set = getenv("RUNG_MATH");
    if (math != UNSAID || !set || !*set)
        setenv("RUNG_MATH", maths[math == UNSAID ? 0 : math], 1);
}

static int set_up(const run_options *o)
{
    char folder[PATH_MAX];
    if (!lab_library_folder(folder, sizeof folder))
        return cli_fail("the folder of librung.so cannot be found");
    if (strchr(folder, ':'))
        return cli_fail("LD_PRELOAD cannot name a file in '%s', which has a colon: install Rung in another folder",
                        folder);
    int wants_cublas = o->only != BLAS_ONLY, wants_blas = o->only != CUBLAS_ONLY;
    int cublas = wants_cublas && prepend("LD_PRELOAD", folder, "librung_cublas.so");
    int blas = wants_blas && prepend("LD_PRELOAD", folder, "librung_blas.so");
    if (o->only == CUBLAS_ONLY && !cublas)
        return cli_fail("%s has no librung_cublas.so: a build with a sanitizer leaves it out", folder);
    if (!cublas && !blas)
        return cli_fail(
            "%s holds neither librung_cublas.so nor librung_blas.so: './dev build' or the component drop-ins "
            "puts them there",
            folder);
    if (cublas && !o->no_audit)
        prepend("LD_AUDIT", folder, "librung_audit.so");
    settle_math(o->math);
    if (blas)
        settle_other_threads();
    if (o->time)
        setenv("RUNG_REPORT_TIME", "1", 1);
    if (o->compare)
        setenv("RUNG_REPORT_COMPARE", "1", 1);
    return CLI_PASS;
}

enum { NOT_FOUND = 127, NOT_STARTED = 126, BY_SIGNAL = 128 }; /* as shells, env and nohup have them */

static int start(char **program)
{
    if (cli_was_deaf)
        signal(SIGCHLD, SIG_IGN);
    execvp(program[0], program);
    int missing = errno == ENOENT || errno == ENOTDIR;
    cli_fail("cannot start %s: %s", program[0], strerror(errno));
    return missing ? NOT_FOUND : NOT_STARTED;
}

static volatile sig_atomic_t child;

static void hand_on(int signal)
{
    if (child > 0)
        kill(child, signal);
}

/* Returns its exit code, or 128 and the signal that ended it. The keyboard's signals reach the program by themselves.
 * Others that come before it is known whom to hand them to wait so long.
 */
static int run_and_wait(char **program)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, forward = {.sa_handler = hand_on}, before[4];
    sigset_t handed_on, blocked_before;
    int state;
    sigemptyset(&handed_on);
    sigaddset(&handed_on, SIGTERM);
    sigaddset(&handed_on, SIGHUP);
    sigprocmask(SIG_BLOCK, &handed_on, &blocked_before);
    sigaction(SIGINT, &ignore, &before[0]);
    sigaction(SIGQUIT, &ignore, &before[1]);
    sigaction(SIGTERM, &forward, &before[2]);
    sigaction(SIGHUP, &forward, &before[3]);
    pid_t pid = fork();
    if (pid == 0) {
        sigaction(SIGINT, &before[0], NULL);
        sigaction(SIGQUIT, &before[1], NULL);
        sigaction(SIGTERM, &before[2], NULL);
        sigaction(SIGHUP, &before[3], NULL);
        sigprocmask(SIG_SETMASK, &blocked_before, NULL);
        _exit(start(program));
    }
    child = pid;
    sigprocmask(SIG_SETMASK, &blocked_before, NULL);
    if (pid < 0)
        return cli_fail("cannot start a process: %s", strerror(errno));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(state) ? WEXITSTATUS(state) : BY_SIGNAL + WTERMSIG(state);
}

static rung_status copy_report(int from, FILE *to, const char *name)
{
    char part[4096];
    ssize_t got;
    lseek(from, 0, SEEK_SET);
    if (lseek(from, 0, SEEK_END) == 0)
        fprintf(to,
                "Rung %s: 0 calls answered: the program ended without asking BLAS for sgemm or cuBLAS for a product, "
                "or did not end by itself\n",
                rung_version());
    lseek(from, 0, SEEK_SET);
    while ((got = read(from, part, sizeof part)) > 0)
        fwrite(part, 1, (size_t)got, to);
    if (to != stderr)
        return lab_close(to, name);
    return RUNG_SUCCESS;
}

/* Runs the program with a report. The drop-ins append to a file in memory, which is gone however this program ends. */
static int run_reported(const run_options *o, char **program)
{
    char path[64];
    FILE *to = o->report_file ? fopen(o->report_file, "w") : stderr;
    if (!to) {
        lab_cannot_write(o->report_file);
        return cli_usage("%s", lab_error());
    }
    int memory = memfd_create("rung-report", MFD_CLOEXEC);
    if (memory < 0)
        return cli_fail("no memory for the report: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), memory);
    setenv("RUNG_REPORT", path, 1);
    int code = run_and_wait(program);
    if (copy_report(memory, to, o->report_file) != RUNG_SUCCESS) {
        int failed = cli_fail("%s", lab_error());
        code = code ? code : failed;
    }
    close(memory);
    return code;
}

/* Returns the place of the first word that is neither an option nor its value; argc where there is none. What follows
 * are the program's own options. */
static int program_at(const cli_option *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-')
            return i;
        const cli_option *option = options;
        while (option->name && strcmp(option->name, argv[i] + strspn(argv[i], "-")) != 0)
            option++;
        if (option->name && option->kind != CLI_FLAG)
            i++;
    }
    return argc;
}

static int refuse_idle(const run_options *o)
{
    const char *set = getenv("RUNG_REPORT");
    int code = o->only == BLAS_ONLY ? cli_idle("run", "math time compare", "beside --only blas") : CLI_PASS;
    return code || o->report || o->report_file || (set && *set)
               ? code
               : cli_idle("run", "time compare", "without --report or --report-file");
}

int cmd_run(int argc, char **argv)
{
    run_options o = {.math = UNSAID, .only = BOTH};
    const cli_option options[] = {
        {"math", CLI_CHOICE, &o.math, maths,
         "accurate, strict or fast; what FP32 products on a GPU promise (default RUNG_MATH, else accurate)"},
        {"only", CLI_CHOICE, &o.only, drop_ins, "both (default), cublas or blas; which drop-ins"},
        {"report", CLI_FLAG, &o.report, NULL, "say at exit, on stderr, which calls were answered by what"},
        {"report-file", CLI_TEXT, &o.report_file, NULL, "the same into a file"},
        {"o", CLI_TEXT, &o.report_file, NULL, "as --report-file"},
        {"time", CLI_FLAG, &o.time, NULL, "with GPU times in the report"},
        {"compare", CLI_FLAG, &o.compare, NULL, "and those of the same calls on cuBLAS (they run twice)"},
        {"no-audit", CLI_FLAG, &o.no_audit, NULL, "leave functions taken with dlsym alone"},
        {0},
    };
    int split = 1;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    const int program = program_at(options, split, argv); /* before -- it is not looked for */
    int code = cli_parse("run", options, program, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (program < split)
        return cli_usage("the program goes behind --: rung run -- %s ...", argv[program]);
    if (split + 1 >= argc)
        return cli_usage("no program to run: rung run [options] -- PROGRAM [arguments]");
    code = refuse_idle(&o);
    if (!code)
        code = set_up(&o);
    if (code)
        return code;
    if (o.report || o.report_file)
        return run_reported(&o, argv + split + 1);
    return start(argv + split + 1);
}
