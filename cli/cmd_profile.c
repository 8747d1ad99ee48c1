/* rung profile: a kernel's hardware counters beside what the lens predicts. Without counters it says what timing alone
 * can say. */
#include "cli/commands.h"
#include "cli/profile.h"
#include "lab/profile.h"
#include "lab/record.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROFILES = 128, SUM_WHOLE = 1 << 22 };

typedef struct options {
    const char *launch, *json, *saved;
    int ladder, format, no_counters, ports;
} options;

static const cli_column columns[] = {{"kernel", "kernel", 26, -1},
                                     {"metric", "metric", 32, -1},
                                     {"counter", "counter", 14, 2},
                                     {"lens", "lens", 14, 2},
                                     {"lens_over_counter", "lens/counter", 12, 3},
                                     {"meaning", "", 40, -1},
                                     {0}};

/* ---- what is printed ---- */

static void print_profile(cli_table *table, const lab_profile *p)
{
    for (int i = 0; lab_counters[i].key; i++) {
        double measured = p->measured[i], predicted = p->predicted[i];
        int nothing = (isnan(measured) || measured == 0) && (isnan(predicted) || predicted == 0);
        if (nothing)
            continue;
        cli_text(table, p->kernel);
        cli_text(table, lab_counters[i].what);
        cli_number(table, measured);
        cli_number(table, predicted);
        cli_number(table, measured > 0 ? predicted / measured : NAN);
        cli_text(table, lab_counters[i].meaning ? lab_counters[i].meaning : "");
    }
}

static void write_json(FILE *to, const lab_profile *profiles, int count, const char *command, const profile_size *s)
{
    for (int i = 0; i < count; i++) {
        lab_json json = {.to = to};
        lab_json_open(&json, NULL);
        lab_json_text(&json, "kind", "counters");
        lab_json_text(&json, "command", command);
        lab_json_text(&json, "rung", rung_version());
        lab_json_text(&json, "commit", lab_commit());
        lab_json_text(&json, "kernel", profiles[i].kernel);
        if (!profile_is_sum(s))
            lab_json_integer(&json, "m", s->m);
        lab_json_integer(&json, "n", s->n);
        if (!profile_is_sum(s))
            lab_json_integer(&json, "k", s->k);
        lab_json_open(&json, "counter");
        for (int j = 0; lab_counters[j].key; j++)
            if (!isnan(profiles[i].measured[j]))
                lab_json_number(&json, lab_counters[j].key, profiles[i].measured[j]);
        lab_json_close(&json);
        lab_json_open(&json, "lens");
        for (int j = 0; lab_counters[j].key; j++)
            if (!isnan(profiles[i].predicted[j]))
                lab_json_number(&json, lab_counters[j].key, profiles[i].predicted[j]);
        lab_json_close(&json);
        lab_json_close(&json);
        lab_json_end_line(&json);
    }
}

/* Times the kernels where there are no counters: a product against its two floors, a sum beside CUB. */
static void timing_alone(const lab_profile *profiles, int count, const char *shape, const profile_size *s)
{
    char self[512], command[1024];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return;
    self[length] = 0;
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        snprintf(command, sizeof command, "env -u RUNG_LIBCUDA '%s' %s --device gpu --kernel %.95s %s >&2", self,
                 profile_is_sum(s) ? "reduce --quick" : "bench", profiles[i].kernel, shape);
        if (system(command) != 0)
            fprintf(stderr, "rung: nor could %s be timed\n", profiles[i].kernel);
    }
}

static int counters(const char *names, const char *shape, lab_profile *profiles, int count)
{
    char self[512], list[4096], where[96];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return cli_fail("cannot find this program's own file");
    self[length] = 0;
    snprintf(list, sizeof list, "%s", names);
    snprintf(where, sizeof where, "%s", shape);
    char *command[] = {self, "profile", "--launch", list, where, NULL};
    rung_status status = lab_ncu_run(command, profiles, count);
    if (status == RUNG_SUCCESS)
        return CLI_PASS;
    fprintf(stderr, "rung: no counters: %s\n", lab_error());
    return CLI_FAIL;
}

static int without_prediction(const char *why)
{
    cli_progress(NULL);
    fprintf(stderr, "rung: without the lens's prediction: %s\n", why);
    return CLI_FAIL;
}

/* A long sum is sampled, as large products are. */
static int predict(lab_profile *profiles, int count, const profile_size *s)
{
    int outcome = CLI_PASS;
    for (int i = 0; i < count; i++) {
        int sum = profile_is_sum(s);
        lab_lens_case c = {.kernel = rung_kernel_find(profiles[i].kernel),
                           .m = sum ? 1 : s->m,
                           .n = s->n,
                           .k = sum ? 1 : s->k,
                           .alpha = 1.0f,
                           .max_blocks = sum && s->n <= SUM_WHOLE ? 0 : 2};
        lab_lens_result result;
        for (int j = 0; j < LAB_COUNTERS; j++)
            profiles[i].predicted[j] = NAN;
        cli_progress("lens: %s", profiles[i].kernel);
        const char *missing = lab_lens_missing(c.kernel);
        if (missing)
            outcome = without_prediction(missing);
        else if (!sum && lab_lens_whole(c.kernel))
            continue; /* such a product would take half a minute: its counters stand alone */
        else if (lab_lens_run(&c, &result) == RUNG_SUCCESS)
            lab_profile_predict(&profiles[i]);
        else
            outcome = without_prediction(lab_error());
    }
    cli_progress(NULL);
    return outcome;
}

static int pick(const options *o, const char **words, int count, const profile_size *s, lab_profile *profiles,
                char *names, size_t bytes)
{
    int n = 0;
    names[0] = 0;
    for (int i = 0; i < rung_kernel_count() && n < MOST_PROFILES; i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        int wanted = o->ladder && kernel->role == (profile_is_sum(s) ? RUNG_REDUCE : RUNG_LADDER);
        if ((!wanted && !cli_is_among(words, count, kernel->name)) || kernel->backend != RUNG_BACKEND_CUDA)
            continue;
        snprintf(profiles[n].kernel, sizeof profiles[n].kernel, "%s", kernel->name);
        snprintf(names + strlen(names), bytes - strlen(names), "%s%s", n ? "," : "", kernel->name);
        n++;
    }
    return n;
}

static int profile_kernels(const options *o, const char **words, int count, const profile_size *s)
{
    static lab_profile profiles[MOST_PROFILES];
    static char names[4096];
    char shape[96], command[4400];
    int kernels = pick(o, words, count, s, profiles, names, sizeof names);
    if (kernels == 0)
        return cli_usage("profile takes the name of a kernel, or --ladder");
    FILE *to = NULL; /* counting takes minutes: what cannot be written is told before */
    if (o->json && !(to = cli_open_record(o->json)))
        return cli_usage("%s", lab_error());
    if (profile_is_sum(s))
        snprintf(shape, sizeof shape, "%lld", (long long)s->n);
    else
        snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)s->m, (long long)s->n, (long long)s->k);
    snprintf(command, sizeof command, "rung profile %s %s%s%s", o->ladder ? "--ladder" : names, shape,
             o->saved ? " --counters " : "", o->saved ? o->saved : "");
    for (int i = 0; i < kernels; i++)
        for (int j = 0; j < LAB_COUNTERS; j++)
            profiles[i].measured[j] = profiles[i].predicted[j] = NAN;
    void *driver = o->saved ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    int blocked = CLI_FAIL, found;
    if (o->saved) {
        rung_status read = lab_counters_read(o->saved, s->m, s->n, s->k, profiles, kernels, &found);
        if (read != RUNG_SUCCESS)
            return cli_close_record(to, o->json, cli_fail_file(read));
        blocked = CLI_PASS;
    } else if (!driver && !o->no_counters)
        fprintf(stderr, "rung: no NVIDIA driver on this machine, so no counters: only what the lens predicts "
                        "(--no-counters asks for just that, --counters FILE takes those of an earlier run)\n");
    else if (!o->no_counters)
        blocked = counters(names, shape, profiles, kernels);
    if (driver && blocked && !o->no_counters)
        timing_alone(profiles, kernels, shape, s);
    int predicted = lab_lens_open() == RUNG_SUCCESS ? predict(profiles, kernels, s) : without_prediction(lab_error());
    cli_table table;
    cli_table_begin(&table, (cli_format)o->format, columns);
    for (int i = 0; i < kernels; i++)
        print_profile(&table, &profiles[i]);
    if (to)
        write_json(to, profiles, kernels, command, s);
    int kept = cli_close_record(to, o->json, CLI_PASS);
    return kept ? kept : o->no_counters ? predicted : blocked;
}

/* Reads MxNxK, or the length of a sum. Returns 0 where the last word was a size, -1 where there was none, or 2. */
static int read_size(const char *word, profile_size *s)
{
    long long m, n, k;
    char rest;
    if (sscanf(word, "%lldx%lldx%lld%c", &m, &n, &k, &rest) == 3) {
        if (m < 1 || n < 1 || k < 1)
            return cli_usage("'%s': sizes begin at 1", word);
        *s = (profile_size){m, n, k};
        return lab_sizes_check(m, n, k, 1, 0) == RUNG_SUCCESS ? 0 : cli_usage("%s", lab_error());
    }
    if (word[0] < '0' || word[0] > '9')
        return -1;
    *s = (profile_size){0};
    return cli_length("profile", word, &s->n);
}

/* Whether all kernels named are of one kind, and of that which the size says. */
static int check_kinds(const char **words, int count, const profile_size *s)
{
    for (int i = 0; i < count; i++) {
        const rung_kernel *kernel = rung_kernel_find(words[i]);
        if (!kernel)
            return cli_unknown_kernel(words[i]);
        if ((kernel->role == RUNG_REDUCE) != profile_is_sum(s))
            return kernel->role == RUNG_REDUCE
                       ? cli_usage("%s adds up a vector: its size is a length, such as 2^20", words[i])
                       : cli_usage("%s is a product: its size is MxNxK", words[i]);
        if (kernel->backend != rung_kernel_find(words[0])->backend)
            return cli_usage("%s and %s: one is a kernel of the CPU, so profile them one after the other", words[0],
                             words[i]);
    }
    return 0;
}

static int refuse_idle(const options *o, const rung_kernel *first)
{
    if (o->ports)
        return cli_idle("profile", "counters no-counters launch", "beside --ports");
    if (o->launch)
        return cli_idle("profile", "ladder counters no-counters format o", "beside --launch");
    if (o->saved)
        return cli_idle("profile", "no-counters", "beside --counters");
    return first && first->backend == RUNG_BACKEND_CPU
               ? cli_idle("profile", "ladder no-counters", "for a rung of the CPU")
               : CLI_PASS;
}

int cmd_profile(int argc, char **argv)
{
    options o = {.format = CLI_TABLE};
    const char *words[MOST_PROFILES];
    int count = 0, sized = -1;
    profile_size size = {1024, 1024, 1024};
    const cli_option list[] = {
        {"ladder", CLI_FLAG, &o.ladder, NULL,
         "every rung of the GPU ladder; with a length for a size, of the ladder of sums"},
        {"counters", CLI_TEXT, &o.saved, NULL,
         "take the counters from this file of an earlier run instead of a GPU; for the CPU's rungs their counts"},
        {"no-counters", CLI_FLAG, &o.no_counters, NULL, "only what the lens predicts"},
        {"o", CLI_TEXT, &o.json, NULL, "append the figures to this file as JSON lines"},
        {"ports", CLI_FLAG, &o.ports, NULL, "how fast FFMAs issue with chosen registers, instead of a kernel"},
        {"launch", CLI_TEXT, &o.launch, NULL, "(what runs under ncu) launch these kernels once and nothing else"},
        CLI_FORMAT(o.format),
        {0}};
    int code = cli_parse("profile", list, argc, argv, words, &count, MOST_PROFILES);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count > 0 && (sized = read_size(words[count - 1], &size)) == 0)
        count--;
    if (sized > 0)
        return sized;
    const rung_kernel *first = count > 0 ? rung_kernel_find(words[0]) : NULL;
    if (sized < 0 && first && first->role == RUNG_REDUCE)
        size = (profile_size){.n = 1 << 20};
    if ((code = refuse_idle(&o, first)))
        return code;
    if (o.ports)
        return count > 0 || o.ladder ? cli_usage("--ports takes no kernel") : cli_profile_ports(o.format, o.json);
    if (o.launch)
        return cli_profile_launch(o.launch, &size);
    code = check_kinds(words, count, &size);
    if (code)
        return code;
    if (first && first->backend == RUNG_BACKEND_CPU)
        return o.json ? cli_usage("-o: the counts of a CPU's rung are in a file already")
                      : cli_profile_cpu(words, count, &size, o.saved, o.format);
    return profile_kernels(&o, words, count, &size);
}
