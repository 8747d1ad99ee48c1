/* rung profile: a kernel's hardware counters beside what the lens predicts. Without counters it says what timing alone
 * can say. */
#include "cli/commands.h"
#include "lab/host.h"
#include "lab/measure.h"
#include "lab/profile.h"
#include "lab/record.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROFILES = 64 };

typedef struct options {
    const char *launch, *json, *saved;
    int ladder, format, no_counters, ports;
} options;

static const cli_column columns[] = {{"kernel", "kernel", 26, -1},
                                     {"metric", "metric", 32, -1},
                                     {"counter", "counter", 14, 2},
                                     {"lens", "lens", 14, 2},
                                     {"lens_over_counter", "lens/counter", 12, 3},
                                     {"meaning", "", 40, -1}};

/* Runs the part that ncu watches: each kernel once, and nothing else. */

static rung_status launch_one(rung_tools *tools, rung_context *context, const char *name, int64_t m, int64_t n,
                              int64_t k)
{
    void *a = NULL, *b = NULL, *c = NULL;
    rung_plan *plan = NULL;
    rung_gemm g;
    rung_status status = rung_tools_alloc(tools, (size_t)(m * k) * 4, &a);
    if (status == RUNG_SUCCESS)
        status = rung_tools_alloc(tools, (size_t)(k * n) * 4, &b);
    if (status == RUNG_SUCCESS)
        status = rung_tools_alloc(tools, (size_t)(m * n) * 4, &c);
    int64_t most = m * k > k * n ? m * k : k * n;
    float *host = malloc((size_t)most * 4);
    if (status == RUNG_SUCCESS && host) {
        lab_fill_args f = {.view = {host, most, 1}, .lines = 1, .length = most, .seed = 5, .data = LAB_SIGNED};
        lab_host_fill(&f, 4);
        rung_tools_upload(tools, a, host, (size_t)(m * k) * 4);
        rung_tools_upload(tools, b, host, (size_t)(k * n) * 4);
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.m = m, g.n = n, g.k = k;
        g.a = a, g.b = b, g.c = c;
        g.lda = k, g.ldb = n, g.ldc = n;
        status = rung_plan_create_kernel(&plan, context, &g, name);
        if (status == RUNG_SUCCESS)
            status = rung_plan_run(plan, &g);
        if (status == RUNG_SUCCESS)
            status = rung_tools_synchronize(tools);
        rung_plan_destroy(plan);
    }
    free(host);
    rung_tools_free(tools, a);
    rung_tools_free(tools, b);
    rung_tools_free(tools, c);
    return status;
}

static rung_status open_gpu(rung_tools **tools, rung_context **context)
{
    rung_config config;
    LAB_TRY(rung_tools_open(tools, 0));
    rung_config_init(&config);
    config.device = 0;
    config.pointers = RUNG_POINTERS_DEVICE;
    config.stream = rung_tools_stream(*tools);
    return rung_context_create(context, &config);
}

static int launch_all(const options *o, int64_t m, int64_t n, int64_t k)
{
    char copy[4096];
    const char *names[MAX_PROFILES];
    rung_tools *tools = NULL;
    rung_context *context = NULL;
    int count = cli_split(o->launch, copy, sizeof copy, names, MAX_PROFILES), failed = 0;
    rung_status status = open_gpu(&tools, &context);
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "profile");
    for (int i = 0; i < count; i++) {
        status = launch_one(tools, context, names[i], m, n, k);
        if (status != RUNG_SUCCESS) {
            cli_fail_status(status, names[i]);
            failed = 1;
        }
    }
    rung_context_destroy(context);
    rung_tools_close(tools);
    return failed;
}

/* ---- what is printed ---- */

static void print_profile(cli_table *table, const lab_profile *p)
{
    for (int i = 0; lab_metrics[i].key; i++) {
        double measured = p->measured[i], predicted = p->predicted[i];
        int nothing = (isnan(measured) || measured == 0) && (isnan(predicted) || predicted == 0);
        if (nothing)
            continue;
        cli_text(table, p->kernel);
        cli_text(table, lab_metrics[i].what);
        cli_number(table, measured);
        cli_number(table, predicted);
        cli_number(table, measured > 0 ? predicted / measured : NAN);
        cli_text(table, lab_metrics[i].meaning ? lab_metrics[i].meaning : "");
    }
}

static int write_json(const options *o, const lab_profile *profiles, int count, const char *command, int64_t m,
                      int64_t n, int64_t k)
{
    FILE *to = lab_record_open(o->json);
    if (!to)
        return cli_usage("%s", lab_error());
    for (int i = 0; i < count; i++) {
        lab_json json = {.to = to};
        lab_json_open(&json, NULL);
        lab_json_text(&json, "kind", "counters");
        lab_json_text(&json, "command", command);
        lab_json_text(&json, "rung", rung_version());
        lab_json_text(&json, "commit", lab_commit());
        lab_json_text(&json, "kernel", profiles[i].kernel);
        lab_json_integer(&json, "m", m);
        lab_json_integer(&json, "n", n);
        lab_json_integer(&json, "k", k);
        lab_json_open(&json, "counter");
        for (int j = 0; lab_metrics[j].key; j++)
            if (!isnan(profiles[i].measured[j]))
                lab_json_number(&json, lab_metrics[j].key, profiles[i].measured[j]);
        lab_json_close(&json);
        lab_json_open(&json, "lens");
        for (int j = 0; lab_metrics[j].key; j++)
            if (!isnan(profiles[i].predicted[j]))
                lab_json_number(&json, lab_metrics[j].key, profiles[i].predicted[j]);
        lab_json_close(&json);
        lab_json_close(&json);
        lab_json_end_line(&json);
    }
    return cli_close_record(to, o->json, CLI_PASS);
}

/* Prints times against the two floors, where there are no counters. */
static void timing_alone(const lab_profile *profiles, int count, int64_t m, int64_t n, int64_t k)
{
    char self[512], command[1024];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return;
    self[length] = 0;
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        snprintf(command, sizeof command,
                 "env -u RUNG_LIBCUDA '%s' bench --device gpu --kernel %.95s %lldx%lldx%lld >&2", self,
                 profiles[i].kernel, (long long)m, (long long)n, (long long)k);
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

static void predict(lab_profile *profiles, int count, int64_t m, int64_t n, int64_t k)
{
    for (int i = 0; i < count; i++) {
        lab_lens_case c = {
            .kernel = rung_kernel_find(profiles[i].kernel), .m = m, .n = n, .k = k, .alpha = 1.0f, .max_blocks = 2};
        lab_lens_result result;
        for (int j = 0; j < LAB_METRICS; j++)
            profiles[i].predicted[j] = NAN;
        cli_progress("lens: %s", profiles[i].kernel);
        if (lab_lens_whole(c.kernel))
            continue; /* each would take half a minute: their counters stand alone */
        if (!lab_lens_missing(c.kernel) && lab_lens_run(&c, &result) == RUNG_SUCCESS)
            lab_profile_predict(&profiles[i]);
    }
    cli_progress(NULL);
}

static int pick(const options *o, const char **words, int count, lab_profile *profiles, char *names, size_t bytes)
{
    int n = 0;
    names[0] = 0;
    for (int i = 0; i < rung_kernel_count() && n < MAX_PROFILES; i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        int wanted = o->ladder && kernel->role == RUNG_LADDER;
        for (int j = 0; j < count; j++)
            wanted |= strcmp(words[j], kernel->name) == 0;
        if (!wanted || kernel->backend != RUNG_BACKEND_CUDA || kernel->role == RUNG_REDUCE)
            continue;
        snprintf(profiles[n].kernel, sizeof profiles[n].kernel, "%s", kernel->name);
        snprintf(names + strlen(names), bytes - strlen(names), "%s%s", n ? "," : "", kernel->name);
        n++;
    }
    return n;
}

/* Says why a word is no kernel that can be profiled. */
static int refuse(const char *word)
{
    const rung_kernel *kernel = rung_kernel_find(word);
    if (!kernel)
        return cli_unknown_kernel(word);
    if (kernel->role == RUNG_REDUCE)
        return cli_usage("%s adds up a vector: profile is for products; 'rung lens %s' counts its accesses", word,
                         word);
    return cli_usage("%s is a CPU kernel: profile is for GPU kernels", word);
}

static int profile_kernels(const options *o, const char **words, int count, int64_t m, int64_t n, int64_t k)
{
    static lab_profile profiles[MAX_PROFILES];
    static char names[4096];
    char shape[96], command[4400];
    int kernels = pick(o, words, count, profiles, names, sizeof names);
    if (kernels == 0)
        return count ? refuse(words[0]) : cli_usage("profile takes the name of a GPU kernel, or --ladder");
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)m, (long long)n, (long long)k);
    snprintf(command, sizeof command, "rung profile %s %s%s%s", o->ladder ? "--ladder" : names, shape,
             o->saved ? " --counters " : "", o->saved ? o->saved : "");
    for (int i = 0; i < kernels; i++)
        for (int j = 0; j < LAB_METRICS; j++)
            profiles[i].measured[j] = profiles[i].predicted[j] = NAN;
    void *driver = o->saved ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    int blocked = CLI_FAIL, found;
    if (o->saved) {
        rung_status read = lab_counters_read(o->saved, m, n, k, profiles, kernels, &found);
        if (read != RUNG_SUCCESS)
            return cli_fail_file(read);
        blocked = CLI_PASS;
    } else if (!driver)
        fprintf(stderr, "rung: no NVIDIA driver on this machine: only what the lens predicts\n");
    else if (!o->no_counters)
        blocked = counters(names, shape, profiles, kernels);
    if (driver && blocked && !o->no_counters)
        timing_alone(profiles, kernels, m, n, k);
    rung_status status = lab_lens_open();
    if (status == RUNG_SUCCESS)
        predict(profiles, kernels, m, n, k);
    else
        fprintf(stderr, "rung: without the lens's prediction: %s\n", lab_error());
    cli_table table;
    cli_table_begin(&table, (cli_format)o->format, columns, (int)(sizeof columns / sizeof columns[0]));
    for (int i = 0; i < kernels; i++)
        print_profile(&table, &profiles[i]);
    int kept = o->json ? write_json(o, profiles, kernels, command, m, n, k) : CLI_PASS;
    return kept || o->no_counters ? kept : blocked;
}

int cmd_profile(int argc, char **argv)
{
    options o = {.format = CLI_TABLE};
    const char *words[MAX_PROFILES];
    int count = 0;
    long long m = 1024, n = 1024, k = 1024;
    char rest;
    const cli_option list[] = {
        {"ladder", CLI_FLAG, &o.ladder, NULL, "every rung of the GPU ladder"},
        {"counters", CLI_TEXT, &o.saved, NULL, "take the counters from this file of an earlier run instead of a GPU"},
        {"no-counters", CLI_FLAG, &o.no_counters, NULL, "only what the lens predicts"},
        {"o", CLI_TEXT, &o.json, NULL, "append the figures to this file as JSON lines"},
        {"ports", CLI_FLAG, &o.ports, NULL, "how fast FFMAs issue with chosen registers, instead of a kernel"},
        {"launch", CLI_TEXT, &o.launch, NULL, "(what runs under ncu) launch these kernels once and nothing else"},
        CLI_FORMAT(o.format),
        {0}};
    int code = cli_parse("profile", list, argc, argv, words, &count, MAX_PROFILES);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count > 0 && sscanf(words[count - 1], "%lldx%lldx%lld%c", &m, &n, &k, &rest) == 3) {
        count--;
        if (m < 1 || n < 1 || k < 1)
            return cli_usage("'%s': sizes begin at 1", words[count]);
        if (lab_sizes_check(m, n, k, 1, 0) != RUNG_SUCCESS)
            return cli_usage("%s", lab_error());
    }
    if (o.ports)
        return count > 0 || o.ladder ? cli_usage("--ports takes no kernel") : cli_profile_ports(o.format, o.json);
    if (o.launch)
        return launch_all(&o, m, n, k);
    for (int i = 0; i < count; i++)
        if (!rung_kernel_find(words[i]))
            return cli_unknown_kernel(words[i]);
    return profile_kernels(&o, words, count, m, n, k);
}
