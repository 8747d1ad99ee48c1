/* The command line under random words: no signal, no hang, exit code 0, 1 or 2 (and run's own 126, 127), and not 0
 * where it has complained. Each list runs in a child of its own, in an empty folder. usage: cli_fuzz <lists> [seed];
 * cli_fuzz options: every option of every verb's help; or cli_fuzz FOLDER: libFuzzer's inputs again. Built with
 * -fsanitize=fuzzer (target fuzz_words, needs clang) it is libFuzzer's, which runs in the current folder: the first
 * byte says which verb, each line behind it is a word. FUZZ_SEEDS=FOLDER writes inputs to begin with.
 */
#define _GNU_SOURCE
#include "rung.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int rung_main(int argc, char **argv);

enum { MOST = 12, SECONDS = 60, LONGEST = 256, COMPLAINED = 99 };

static int complaints; /* The linker puts what follows in the way of every sentence that says what was wrong. */

int __real_cli_usage(const char *format, ...);
int __wrap_cli_usage(const char *format, ...);
int __real_cli_fail(const char *format, ...);
int __wrap_cli_fail(const char *format, ...);
int __real_cli_fail_status(rung_status status, const char *what);
int __wrap_cli_fail_status(rung_status status, const char *what);
int __real_cli_fail_file(rung_status status);
int __wrap_cli_fail_file(rung_status status);

#define COUNTS_AND_SAYS(function)                                                                                      \
    int __wrap_##function(const char *format, ...)                                                                     \
    {                                                                                                                  \
        char text[4096];                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, format);                                                                                        \
        vsnprintf(text, sizeof text, format, list);                                                                    \
        va_end(list);                                                                                                  \
        complaints++;                                                                                                  \
        return __real_##function("%s", text);                                                                          \
    }

COUNTS_AND_SAYS(cli_usage)
COUNTS_AND_SAYS(cli_fail)

int __wrap_cli_fail_status(rung_status status, const char *what)
{
    complaints++;
    return __real_cli_fail_status(status, what);
}

int __wrap_cli_fail_file(rung_status status)
{
    complaints++;
    return __real_cli_fail_file(status);
}

/* Runs the command; a complaint and the exit code 0 do not go together. */
static int run_command(int count, char **list)
{
    complaints = 0;
    int code = rung_main(count, list);
    return code == 0 && complaints ? COMPLAINED : code;
}

static unsigned long long state;

static unsigned draw(unsigned most)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % most;
}

/* What keeps a list that happens to be right short. It comes first: what is drawn may overrule it. */
static const struct {
    const char *verb, *words[6];
} verbs[] = {
    {"list", {NULL}},
    {"climb", {"--device", "cpu", "--size", "8", "--against", "nosuch"}},
    {"bench", {"8x8x8", "--device", "cpu", "--budget-ms", "1", "--no-verify"}},
    {"verify", {"--device", "cpu", "--case", "NN:3x4x5:row", NULL}},
    {"lens", {"l01_naive", NULL}},
    {"reduce", {"1000", "--device", "cpu", "--quick", "--budget-ms", "1"}},
    {"explain", {"--device", "cpu", NULL}},
    {"doctor", {NULL}},
    {"tune", {NULL}},
    {"profile", {"--no-counters", NULL}},
    {"report", {NULL}},
    {"learn", {NULL}},
    {"fuzz", {"--device", "cpu", "--calls", "1", "--seconds", "1"}},
    {"run", {NULL}},
    {"version", {NULL}},
    {"help", {NULL}},
    {"frobnicate", {NULL}},
};

static const char *const words[] = {
    "8x8x8",
    "16x16x16",
    "0x8x8",
    "-1x8x8",
    "9223372036854775807x1x1",
    "4294967296x4294967296x1",
    "1x1x4294967296",
    "64x64x64+9223372036854775807",
    "3x4x5:TN",
    "3x4x5:TNx2",
    "8x8x8:NNx99999999999",
    "8x8x8x",
    "x",
    "",
    " ",
    "%s%n",
    "/tmp",
    "/dev/null",
    "nonexistent/x",
    "nosuch.txt",
    "1",
    "0",
    "-1",
    "7",
    "1000",
    "2^4",
    "2^63",
    "99999999999999999999",
    "1e9",
    "nan",
    "cpu",
    "gpu",
    "gpu0",
    "gpu99999999999",
    "best",
    "tpu",
    "strict",
    "accurate",
    "fast",
    "row",
    "col",
    "l01_naive",
    "c01_naive",
    "l02",
    "no_such_kernel",
    "avx512_f32_8x48",
    "l01_naive,c01_naive",
    ",",
    ",,",
    "openblas",
    "openblas,blis",
    "cublas",
    "01",
    "77",
    "check",
    "hint",
    "solution",
    "reset",
    "e05_predict_sectors",
    "32x32",
    "0x0",
    "-5x7",
    "NN:3x4x5:row",
    "NN:3x4x5:row;TT:1x1x1:col,pad=3",
    "NN:x",
    "NN:9223372036854775807x9x9:row",
    "NN:3x4x5:row,pad=9223372036854775807",
    "cpu2",
    "cpu9999",
    "1,2,4",
    "2x2",
    "h200",
    "h100",
    "positive",
    "normal",
    "json",
    "csv",
    "table",
    "xml",
    "true",
    "./missing",
    "--",
    "-",
    "---",
    "-x",
    "=",
    "--=",
    "--format",
    "--format=json",
    "--device",
    "--device=cpu",
    "--kernel",
    "--math",
    "--math=fast",
    "--threads",
    "--threads=100000",
    "--threads=2",
    "--pad",
    "--pad=1099511627776",
    "--pad=3",
    "--layout",
    "--data",
    "--graph",
    "--cold",
    "--no-verify",
    "--against",
    "--shapes",
    "--budget-ms=1",
    "--gpus",
    "--gpus=cpu2",
    "--distributed",
    "--operands",
    "--grid",
    "--block",
    "--panels",
    "--repeats=1",
    "--repeats=99999",
    "--memory-mib=1",
    "--no-peer",
    "--timeline",
    "-o",
    "-o=out.jsonl",
    "--output",
    "--output=out",
    "--case",
    "--quick",
    "--huge",
    "--repeat=1",
    "--workspace-mb=1",
    "--via",
    "--wrong-calls",
    "--no-vendor",
    "--verbose",
    "--file",
    "--tile",
    "--tile=4x4",
    "--shared",
    "--symbol",
    "--svg",
    "--html",
    "--now",
    "--calls",
    "--seed",
    "--alpha",
    "--beta",
    "--offset=1",
    "--offset=1099511627776",
    "--blocks=1",
    "--patience=1",
    "--gpu",
    "--role",
    "--candidates",
    "--dry-run",
    "--counters",
    "--launch",
    "--report",
    "--report-file",
    "--time",
    "--compare",
    "--only",
    "--no-audit",
    "--size",
    "--size=8",
    "--size=99999999",
    "--help",
    "-h",
    "--version",
    "-V",
    "--verb\xff",
    "\xf0\x9f\x98",
};

static int begin(char **list, unsigned verb)
{
    int count = 0;
    list[count++] = (char *)"rung";
    list[count++] = (char *)verbs[verb].verb;
    for (int i = 0; i < 6 && verbs[verb].words[i]; i++)
        list[count++] = (char *)verbs[verb].words[i];
    return count;
}

static int end(char **list, int count)
{
    if (strcmp(list[1], "lens") == 0 || strcmp(list[1], "profile") == 0) /* else 1024 in each direction */
        list[count++] = (char *)"8x8x8";
    list[count] = NULL;
    return count;
}

static void surroundings(const char *folder)
{
    setenv("RUNG_NUM_THREADS", "1", 1);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    setenv("RUNG_LEARN_DIR", folder, 1);
}

/* Sizes of three digits at most, or absurd ones; files in this folder; no program, and no climb, which takes seconds.
 */
static int is_harmless(const char *word)
{
    size_t digits = 0;
    for (const char *at = word; *at; at++) {
        digits = *at >= '0' && *at <= '9' ? digits + 1 : 0;
        if ((digits > 3 && (at[1] < '0' || at[1] > '9') && digits < 17) || *at == '/' || *at == '^')
            return 0;
    }
    return 1;
}

/* The words of an input, in `text`; 0: none that may run. */
static int read_words(const unsigned char *data, size_t bytes, char text[LONGEST], char **list)
{
    char *save = NULL;
    if (!bytes || bytes > LONGEST)
        return 0;
    memcpy(text, data + 1, bytes - 1);
    int count = begin(list, data[0] % (sizeof verbs / sizeof verbs[0]));
    for (char *word = strtok_r(text, "\n", &save); word && count < MOST; word = strtok_r(NULL, "\n", &save)) {
        if (!is_harmless(word))
            return 0;
        list[count++] = word;
    }
    count = end(list, count);
    return strcmp(list[1], "run") == 0 || strcmp(list[1], "climb") == 0 ? 0 : count;
}

#ifdef RUNG_LIBFUZZER
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *seeds = getenv("FUZZ_SEEDS");
    (void)argc, (void)argv;
    surroundings(".");
    state = 1;
    for (int i = 0; seeds && i < 400; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", seeds, i);
        FILE *to = fopen(path, "w");
        if (!to)
            exit(2);
        fputc((int)('A' + draw(sizeof verbs / sizeof verbs[0])), to);
        for (unsigned n = 1 + draw(4); n; n--)
            fprintf(to, "%s\n", words[draw(sizeof words / sizeof words[0])]);
        fclose(to);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
    char *list[MOST + 8], text[LONGEST] = "";
    int count = read_words(data, bytes, text, list);
    if (count && (count = run_command(count, list)) > 2)
        abort();
    return 0;
}
#else
static int make(char **list)
{
    unsigned verb = draw(sizeof verbs / sizeof verbs[0]);
    int drawn = (int)draw(5);
    if (strcmp(verbs[verb].verb, "climb") == 0 && draw(16)) /* seconds each */
        verb = 0;
    int count = begin(list, verb);
    for (int i = 0; i < drawn && count < MOST; i++)
        list[count++] = (char *)words[draw(sizeof words / sizeof words[0])];
    return end(list, count);
}

static void print(char **list)
{
    for (int i = 0; list[i]; i++)
        printf(" '%s'", list[i]);
    printf("\n");
}

static void child(int count, char **list, const char *output)
{
    int nowhere = open("/dev/null", O_RDWR), to = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(nowhere, 0);
    dup2(to, 1);
    dup2(nowhere, 2);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS}); /* on a busy machine a second takes long */
    alarm(10 * SECONDS);
    exit(run_command(count, list));
}

/* Runs a list in a child, whose output goes to the file; returns how it ended, as waitpid() says it. */
static int run_in_child(int count, char **list, const char *output)
{
    int code;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(count, list, output);
    waitpid(pid, &code, 0);
    return code;
}

/* Returns 1 where a list does not end as it should. */
static int is_wrong(int count, char **list, int codes[3])
{
    int code = run_in_child(count, list, "output");
    int exited = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
    int fine = exited >= 0 && (exited <= 2 || (strcmp(list[1], "run") == 0 && (exited == 126 || exited == 127)));
    if (fine && exited <= 2)
        codes[exited]++;
    if (!fine) {
        if (exited == COMPLAINED)
            printf("complained, and the exit code was 0:");
        else
            printf("%s %d:", exited < 0 ? "ended by signal" : "exit code", exited < 0 ? WTERMSIG(code) : exited);
        print(list);
    }
    return !fine;
}

/* What has output has not succeeded where that cannot be written. */
static int is_wrong_when_full(int count, char **list)
{
    struct stat said;
    int code;
    if (stat("output", &said) != 0 || said.st_size == 0 || strcmp(list[1], "run") == 0)
        return 0;
    code = run_in_child(count, list, "/dev/full");
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
        return 0;
    printf("wrote to a full disk, and the exit code was 0:");
    print(list);
    return 1;
}

/* Words that are no number of the kind that an option takes must be refused as a wrong call: some for each option,
 * others for the next one. Returns how many lists. */
static int try_no_numbers(unsigned verb, const char *name, int is_real, int *failed, int codes[3])
{
    static const char *const none[] = {"",    "x",   "1x", "1 ",  " 1",  "1,5",
                                       "-",   "--1", "1e", "nan", "inf", "99999999999999999999999999999999999999999",
                                       "1e3", "+1",  "-1", "2^4", "1.5", "0x10"};
    enum { OF_BOTH = 12, OF_INTEGERS = sizeof none / sizeof *none, AT_ONCE = 4 };
    static int next;
    for (int i = 0; i < AT_ONCE; i++, next++) {
        char word[128], *list[MOST + 8];
        int count = begin(list, verb), code;
        snprintf(word, sizeof word, "%s=%s", name, none[next % (is_real ? OF_BOTH : OF_INTEGERS)]);
        list[count++] = word;
        count = end(list, count);
        code = run_in_child(count, list, "output");
        if (WIFEXITED(code) && WEXITSTATUS(code) == 2) {
            codes[2]++;
            continue;
        }
        ++*failed;
        printf("this is taken for a number:");
        print(list);
    }
    return AT_ONCE;
}

/* Tries the option of a line of help, such as "  -o, --output TEXT  append ...": with some words of the kind that it
 * takes, or where it takes a name with the first words of what the line says. */
static int try_option(unsigned verb, char *line, int *failed, int codes[3])
{
    char name[64], kind[64], text[3][16] = {"cpu", "l01_naive", "8x8x8"}, word[96], *list[MOST + 8];
    const char *at = strstr(line, "--");
    int values = 3;
    if (!at || sscanf(at, "%63s %63s", name, kind) != 2)
        return 0;
    int is_number = strcmp(kind, "N") == 0 || strcmp(kind, "X") == 0;
    if (is_number)
        strcpy(text[0], "0"), strcpy(text[1], "1"), values = 2;
    else if (strcmp(kind, "NAME") == 0)
        values = sscanf(at, "%*s %*s %15[a-z0-9]%*[^a-z]%15[a-z0-9]%*[^a-z]%15[a-z0-9]", text[0], text[1], text[2]);
    else if (strcmp(kind, "TEXT") != 0)
        values = 1, text[0][0] = 0;
    for (int i = 0; i < values; i++) {
        snprintf(word, sizeof word, text[0][0] ? "%s=%s" : "%s", name, text[i]);
        int count = begin(list, verb);
        list[count++] = word;
        count = end(list, count);
        *failed += is_wrong(count, list, codes) || (i == 0 && is_wrong_when_full(count, list));
    }
    return (values > 0 ? values : 0) + (is_number ? try_no_numbers(verb, name, kind[0] == 'X', failed, codes) : 0);
}

static int every_option(int *failed, int codes[3])
{
    int lists = 0;
    for (unsigned verb = 0; verb < sizeof verbs / sizeof verbs[0]; verb++) {
        char text[8192] = "", *save = NULL,
             *asked[] = {(char *)"rung", (char *)verbs[verb].verb, (char *)"--help", NULL};
        if (strcmp(verbs[verb].verb, "climb") == 0) /* seconds each */
            continue;
        run_in_child(3, asked, "help");
        FILE *help = fopen("help", "r");
        if (!help || !fread(text, 1, sizeof text - 1, help))
            text[0] = 0;
        if (help)
            fclose(help); /* before children are made, which would share its place in the file */
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            if (strncmp(line, "  -", 3) == 0 && !strstr(line, "--help") && !strstr(line, "--version"))
                lists += try_option(verb, line, failed, codes);
    }
    return lists;
}

/* Returns how many inputs ran. */
static int replay(DIR *inputs, int *failed, int codes[3])
{
    int lists = 0;
    for (struct dirent *entry = readdir(inputs); entry; entry = readdir(inputs)) {
        unsigned char data[LONGEST];
        char *list[MOST + 8], text[LONGEST] = "";
        int fd = openat(dirfd(inputs), entry->d_name, O_RDONLY);
        ssize_t bytes = fd >= 0 ? read(fd, data, sizeof data) : -1;
        if (fd >= 0)
            close(fd);
        int count = bytes > 0 ? read_words(data, (size_t)bytes, text, list) : 0;
        lists += count > 0;
        *failed += count && is_wrong(count, list, codes);
    }
    closedir(inputs);
    return lists;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/rung-fuzz-XXXXXX", command[64];
    int lists = argc > 1 ? atoi(argv[1]) : 1000, failed = 0, codes[3] = {0};
    DIR *inputs = argc > 1 ? opendir(argv[1]) : NULL;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    surroundings(folder);
    int options = argc > 1 && strcmp(argv[1], "options") == 0;
    if (inputs)
        lists = replay(inputs, &failed, codes);
    else if (options)
        lists = every_option(&failed, codes);
    for (int i = 0; !inputs && !options && i < lists && failed < 20; i++) {
        char *list[MOST + 8];
        int count = make(list);
        failed += is_wrong(count, list, codes);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (chdir("/") != 0 || system(command) != 0)
        failed++;
    printf("%d lists: %d passed, %d failed, %d usage; %d wrong\n", lists, codes[0], codes[1], codes[2], failed);
    return failed > 0 || lists == 0;
}
#endif
