/* rung doctor: what this machine has, what is missing, and what each missing thing would give. */
#include "cli/commands.h"
#include "lab/monitor.h"
#include "lab/peer.h"
#include "lab/report.h"
#include "rung_catalog.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct report {
    cli_table table;
    int missing;
} report;

static void line(report *r, const char *what, const char *state, const char *found, const char *gives)
{
    cli_text(&r->table, what);
    cli_text(&r->table, state);
    cli_text(&r->table, found);
    cli_text(&r->table, gives);
}

static void found(report *r, const char *what, const char *text)
{
    line(r, what, "ok", text, "");
}

static void missing(report *r, const char *what, const char *why, const char *gives)
{
    r->missing++;
    line(r, what, "missing", why, gives);
}

static int read_word(int index, const char *name, char *word, int bytes)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    int ok = file && fgets(word, bytes, file);
    if (file)
        fclose(file);
    if (ok)
        word[strcspn(word, "\n")] = '\0';
    return ok;
}

/* Looks up the first CPU's caches in /sys, as the library does for its block sizes. */
static void list_caches(char *text, size_t bytes)
{
    char level[8], type[32], size[32];
    text[0] = '\0';
    for (int i = 0; read_word(i, "level", level, sizeof level); i++)
        if (read_word(i, "type", type, sizeof type) && strcmp(type, "Instruction") != 0 &&
            read_word(i, "size", size, sizeof size)) {
            size_t used = strlen(text);
            snprintf(text + used, bytes - used, "%sL%s %siB", used ? ", " : "", level, size);
        }
}

/* Names the kernel that products on the CPU take: the first one of the catalog that this CPU and RUNG_CPU_FEATURES let
 * run. */
static void name_cpu_kernel(report *r, const lab_place *place)
{
    rung_context *context;
    const rung_kernel *kernel = NULL;
    if (lab_place_context(place, RUNG_STRICT, &context) != RUNG_SUCCESS)
        return;
    for (int i = 0; i < rung_kernel_count() && !kernel; i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (k->backend == RUNG_BACKEND_CPU && k->role == RUNG_PRODUCTION && !rung_kernel_unusable(context, k))
            kernel = k;
    }
    if (kernel)
        found(r, "CPU kernel", kernel->name);
    rung_context_destroy(context);
}

static void check_cpu(report *r)
{
    lab_place place;
    char text[256] = "";
    if (lab_place_open(&place, RUNG_DEVICE_CPU, 0) != RUNG_SUCCESS) {
        missing(r, "CPU", lab_error(), "products on the CPU");
        return;
    }
    snprintf(text, sizeof text, "%s, %ld online, Rung uses %d thread%s", place.name, sysconf(_SC_NPROCESSORS_ONLN),
             place.threads, place.threads == 1 ? "" : "s");
    found(r, "CPU", text);
#if defined(__x86_64__)
    snprintf(text, sizeof text, "%s%s%s", __builtin_cpu_supports("avx2") ? " AVX2" : "",
             __builtin_cpu_supports("fma") ? " FMA" : "", __builtin_cpu_supports("avx512f") ? " AVX-512" : "");
    if (__builtin_cpu_supports("avx512f"))
        found(r, "CPU features", text + 1);
    else
        line(r, "CPU features", "ok", text[0] ? text + 1 : "SSE2, no AVX2",
             __builtin_cpu_supports("fma") ? "AVX-512 would double the FMA width"
                                           : "AVX2 with FMA: the tiles made for it");
#endif
    list_caches(text, sizeof text);
    if (text[0])
        found(r, "CPU caches", text);
    else
        missing(r, "CPU caches", "the kernel does not list them in /sys",
                "blocks sized to this CPU: a common size is taken");
    name_cpu_kernel(r, &place);
    lab_place_close(&place);
}

/* Looks for the modules of device code of this installation: for Hopper, for the ladder on Turing, for the other chips.
 */
static void check_device_code(report *r)
{
    static const struct {
        int arch;
        const char *name;
    } modules[] = {{75, " sm_75"}, {80, " sm_80"}, {90, " sm_90a"}};
    int gpu_kernels = 0, built = 0;
    for (int i = 0; i < rung_kernel_count(); i++)
        gpu_kernels += rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA;
    char text[96];
    size_t used = (size_t)snprintf(text, sizeof text, "%d kernels in the catalog; built for", gpu_kernels);
    for (int i = 0; i < 3; i++)
        if (rung_tools_resources(modules[i].arch))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", built++ ? "," : "", modules[i].name);
    if (built)
        found(r, "device code", text);
    else
        missing(r, "device code", "none was built: RUNG_CUDA_ARCHS=native builds it where there is a GPU",
                "products on NVIDIA GPUs; the lens runs the kernels without it");
}

static void check_one_gpu(report *r, int index)
{
    lab_place place;
    lab_monitor monitor;
    char what[16], text[256];
    snprintf(what, sizeof what, "GPU %d", index);
    if (lab_place_open(&place, index, 0) != RUNG_SUCCESS) {
        missing(r, what, lab_error(), "products on this GPU");
        return;
    }
    const rung_tools_machine *m = rung_tools_describe(place.tools);
    lab_monitor_open(&monitor, &place);
    snprintf(text, sizeof text, "%s, compute %d.%d, %d SMs, %.2f GHz, %lld GiB, L2 %lld MiB", m->name, m->arch / 10,
             m->arch % 10, m->sms, m->clock_ghz, (long long)(m->memory_bytes >> 30), (long long)(m->l2_bytes >> 20));
    found(r, what, text);
    if (index == 0) {
        snprintf(text, sizeof text, "%s, CUDA %d.%d", monitor.driver[0] ? monitor.driver : "version unknown",
                 m->driver_version / 1000, m->driver_version % 1000 / 10);
        found(r, "NVIDIA driver", text);
        if (monitor.device)
            found(r, "NVML", "clocks, power and throttling are watched while measuring");
        else
            missing(r, "NVML", monitor.calls ? "it does not know this GPU" : "libnvidia-ml.so.1 does not open",
                    "clocks and power in results, throttled samples thrown away");
        if (m->arch != 90)
            line(r, "Hopper kernels", "missing", "need compute capability 9.0",
                 "bulk copies and tensor cores: strict and accurate at full speed");
    }
    lab_monitor_close(&monitor);
    lab_place_close(&place);
}

static void check_gpus(report *r)
{
    int gpus = rung_tools_gpu_count();
    if (gpus == 0)
        missing(r, "GPU", lab_error(), "the GPU ladder and kernels on real hardware");
    for (int i = 0; i < gpus; i++)
        check_one_gpu(r, i);
}

static void check_peers(report *r, int device, const char *const *names, const char *gives)
{
    lab_place place;
    if (lab_place_open(&place, device, 1) != RUNG_SUCCESS)
        return;
    for (int i = 0; names[i]; i++) {
        lab_peer peer;
        char text[400];
        if (lab_peer_open(&place, names[i], &peer) != RUNG_SUCCESS) {
            missing(r, names[i], lab_error(), gives);
            continue;
        }
        snprintf(text, sizeof text, "%s, %s", peer.version, peer.path);
        found(r, names[i], text);
        lab_peer_close(&peer);
    }
    lab_place_close(&place);
}

static void check_library(report *r, const char *what, const char *file, const char *gives)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        found(r, what, file);
        dlclose(library);
    } else {
        missing(r, what, "not installed", gives);
    }
}

/* Looks along PATH for a program that building or measuring needs. */
static void check_program(report *r, const char *name, const char *also, const char *gives)
{
    const char *const lists[] = {getenv("PATH"), also};
    for (int i = 0; i < 2; i++)
        for (const char *folder = lists[i]; folder && *folder; folder += strspn(folder, ":")) {
            char file[4200];
            const int length = (int)strcspn(folder, ":");
            snprintf(file, sizeof file, "%.*s/%s", length, folder, name);
            if (access(file, X_OK) == 0) {
                found(r, name, file);
                return;
            }
            folder += length;
        }
    missing(r, name, "not on PATH", gives);
}

int cmd_doctor(int argc, char **argv)
{
    static const cli_column columns[] = {{"what", "what", 14, -1},
                                         {"state", "state", 7, -1},
                                         {"found", "found", 64, -1},
                                         {"would_give", "would give", 40, -1},
                                         {0}};
    static const char *const cublas_only[] = {"cublas", NULL};
    report r = {0};
    int format = CLI_TABLE;
    const cli_option list[] = {CLI_FORMAT(format), {0}};
    int code = cli_parse("doctor", list, argc, argv, NULL, NULL, 0);
    if (code)
        return code < 0 ? CLI_PASS : code;
    cli_table_begin(&r.table, (cli_format)format, columns);
    check_cpu(&r);
    check_device_code(&r);
    check_gpus(&r);
    check_peers(&r, RUNG_DEVICE_CPU, lab_cpu_peers, "a library to time Rung beside");
    if (rung_tools_gpu_count() > 0)
        check_peers(&r, 0, cublas_only, "NVIDIA's library to time Rung beside");
    if (lab_report_built())
        found(&r, "jansson", "this build makes reports");
    else
        missing(&r, "jansson", "its headers were not there when this was built (libjansson-dev)",
                "reports from result files");
    check_library(&r, "NCCL", "libnccl.so.2", "one product over the GPUs of several processes");
    check_program(&r, "nvcc", "/usr/local/cuda/bin", "building device code: ./dev setup --cuda");
    if (r.missing)
        cli_note(&r.table, "%d missing; everything else works without %s", r.missing, r.missing == 1 ? "it" : "them");
    return CLI_PASS;
}
