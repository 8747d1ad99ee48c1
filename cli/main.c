/* rung: each verb has one cmd_*.c. */
#include "cli/commands.h"
#include "lab/record.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

const cli_verb cli_verbs[] = {
    {"list", "the kernels there are, from the catalog",
     "rung list [NAME...] [--device cpu|gpu] [--role ladder|production|reduce]", cmd_list},
    {"climb", "the ladder, rung by rung: verified, then timed beside the vendor",
     "rung climb [--device cpu|gpu] [--size N] [-o results/FILE.jsonl]", cmd_climb},
    {"bench", "times products beside the vendor, verified first, one table with ratios",
     "rung bench [SHAPE|FILE...] [--device cpu|gpu] [--against openblas,blis|cublas,cublaslt] [--math MODE | --kernel "
     "NAME]\n"
     "       SHAPE: MxNxK[:NT][xBATCH][+PAD], FILE: lines 'NT m n k [batch] [pad=P]' (lab/shapes/), both "
     "column-major;\n"
     "       NT: two letters, for A and for B, N as it lies, T transposed",
     cmd_bench},
    {"verify", "checks kernels against FP64 and the contract; exit 1 on a failure",
     "rung verify [--device cpu|gpu] [--kernel NAME,... | --math strict|accurate|fast] [--quick | --huge] [--case "
     "CASE]",
     cmd_verify},
    {"fuzz", "random calls, checked as verify does; a failure becomes one short line; exit 1 on a failure",
     "rung fuzz [--device cpu|gpu] [--math MODE | --kernel NAME] [--calls N] [--seconds N] [--seed N]", cmd_fuzz},
    {"lens", "a GPU kernel on the CPU, lane by lane: its memory accesses line by line, and its faults",
     "rung lens KERNEL [MxNxK] [--svg FILE]\n       rung lens --file OWN.cu --tile BMxBN --threads N [MxNxK]\n       "
     "rung lens --check [KERNEL...]",
     cmd_lens},
    {"learn", "exercises in CUDA C, graded by what the code does; no GPU needed",
     "rung learn                     the exercises and how far you are\n       rung learn 07                  one of "
     "them, "
     "with a file to work on\n       rung learn check 07 [FILE]     graded: results, faults, memory traffic\n       "
     "rung learn "
     "hint|solution|compare|reset 07\n       rung learn prove [07...]      for authors: is the course sound?",
     cmd_learn},
    {"reduce", "the ladder of sums: checked, then timed beside CUB",
     "rung reduce [N|2^P...] [--device cpu|gpu] [--kernel NAME,...]", cmd_reduce},
    {"explain", "what the library would do with a product, and why; what limits a kernel",
     "rung explain MxNxK[:NT][xBATCH] [--device cpu|gpu] [--math MODE | --kernel NAME]\n       rung explain KERNEL "
     "[MxNxK] [--gpu CHIP]",
     cmd_explain},
    {"doctor", "what this machine has, what is missing, and what that would give", "rung doctor", cmd_doctor},
    {"tune", "times candidates on shapes and keeps the fastest for this GPU",
     "rung tune SHAPE... [--shapes FILE] [--math strict|accurate|fast] [--dry-run]", cmd_tune},
    {"profile", "hardware counters beside what the lens predicts",
     "rung profile KERNEL... [MxNxK] | --ladder [MxNxK]\n       rung profile r0N... [N|2^P] | --ladder N|2^P      the "
     "rungs for sums\n       rung profile c0N... MxNxK --counters FILE         the rungs of the CPU, from their counts",
     cmd_profile},
    {"report", "one self-contained page of charts from result files",
     "rung report RESULTS.jsonl... [-o report.html]\n       rung report MINE.jsonl THEIRS.jsonl   what both measured, "
     "side by side",
     cmd_report},
    {"run", "a program with Rung in front of its BLAS and cuBLAS", "rung run [options] -- PROGRAM [arguments]",
     cmd_run},
    {"version", "the library's version", "rung version", cmd_version},
    {"help", "what a verb does and takes", "rung help [VERB]", cmd_help},
    {NULL, NULL, NULL, NULL},
};

static int print_overview(FILE *to)
{
    fprintf(to,
            "rung %s: single-precision matrix products, their ladder of kernels, and an honest measurement of both\n\n"
            "usage: rung VERB [options]\n\n",
            rung_version());
    for (const cli_verb *verb = cli_verbs; verb->name; verb++)
        fprintf(to, "  %-9s %s\n", verb->name, verb->idea);
    fprintf(to, "\n'rung help VERB' tells a verb's options. Exit codes: 0 pass, 1 fail, 2 usage,\n"
                "or a file that is named and cannot be opened.\n");
    return CLI_PASS;
}

static int unknown_verb(const char *word)
{
    const char *names[32] = {0};
    for (int i = 0; cli_verbs[i].name && i < 31; i++)
        names[i] = cli_verbs[i].name;
    return cli_unknown("verb", word, names);
}

int cmd_help(int argc, char **argv)
{
    const cli_verb *verb = argc < 2 ? NULL : cli_find_verb(argv[1]);
    if (argc < 2)
        return print_overview(stdout);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_overview(stdout);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return cmd_version(1, argv);
    if (argc > 2)
        return cli_usage("help takes one verb: '%s' is one too many", argv[2]);
    if (!verb)
        return unknown_verb(argv[1]);
    if (verb->run == cmd_help)
        return print_overview(stdout);
    char *arguments[] = {argv[1], "--help", NULL};
    return verb->run(2, arguments);
}

int cmd_version(int argc, char **argv)
{
    static const cli_column columns[] = {{"version", "version", 8, -1}, {"commit", "commit", 12, -1}, {0}};
    int format = CLI_TABLE;
    const cli_option options[] = {CLI_FORMAT(format), {0}};
    int code = cli_parse("version", options, argc, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (format == CLI_TABLE)
        printf("rung %s (%s)\n", rung_version(), lab_commit());
    cli_table table;
    cli_table_begin(&table, format == CLI_TABLE ? CLI_COPY_ONLY : (cli_format)format, columns);
    cli_text(&table, rung_version());
    cli_text(&table, lab_commit());
    return CLI_PASS;
}

/* Keeps the number of a standard file that the caller closed from going to a file of results. The number is opened the
 * wrong way round, so that using it fails as before. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return print_overview(stdout);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_overview(stdout);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return cmd_version(1, argv);
    const cli_verb *verb = cli_find_verb(argv[1]);
    if (!verb)
        return unknown_verb(argv[1]);
    return verb->run(argc - 1, argv + 1);
}

int cli_was_deaf;

int main(int argc, char **argv)
{
    cli_was_deaf = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    hold_standard_files();
    return cli_finish(run(argc, argv));
}
