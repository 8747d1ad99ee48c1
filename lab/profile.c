/* Runs ncu, reads its CSV. */
#include "lab/profile.h"
#include "lab/library.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CSV_CELLS = 4096 };

const lab_counter lab_counters[] = {
    {"ld_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "global load requests", 1, 0,
     "instructions of a warp that load from global memory"},
    {"ld_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global load sectors", 1, 0,
     "pieces of 32 bytes that those loads touch"},
    {"ld_sectors_per_request", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
     "sectors per global load request", 1, 2, "4 is a warp of neighbouring floats, 32 is every lane on its own"},
    {"ld_bytes_used", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "global load bytes used, %", 1,
     1, "of the bytes of those sectors, how many a lane asked for"},
    {"st_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "global store requests", 1, 0,
     "instructions of a warp that store to global memory"},
    {"st_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "global store sectors", 1, 0,
     "pieces of 32 bytes that those stores touch"},
    {"st_sectors_per_request", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
     "sectors per global store request", 1, 2, "4 is a warp of neighbouring floats"},
    {"red_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", "atomics without a result", 0, 0,
     "instructions of a warp that add to global memory and take nothing back: the L2 cache does them"},
    {"atom_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "atomics with a result", 0, 0,
     "the same where a lane gets the old value, as a ticket"},
    {"ldgsts_requests", "smsp__inst_executed_op_ldgsts.sum", "cp.async instructions", 1, 0,
     "copies from global to shared memory past the registers"},
    {"shared_ld_requests", "smsp__sass_inst_executed_op_shared_ld.sum", "shared load instructions", 1, 0,
     "instructions of a warp that load from shared memory"},
    {"shared_ld_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared load passes", 1, 0,
     "cycles that shared memory spends on them"},
    {"shared_ld_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "shared load passes lost", 1, 0,
     "of them, cycles that bank conflicts cost"},
    {"shared_st_requests", "smsp__sass_inst_executed_op_shared_st.sum", "shared store instructions", 1, 0,
     "instructions of a warp that store to shared memory"},
    {"shared_st_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared store passes", 1, 0,
     "cycles that shared memory spends on them"},
    {"shared_st_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "shared store passes lost", 1,
     0, "of them, cycles that bank conflicts cost"},
    {"sass_shared_ld_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
     "shared load passes by address", 1, 0, "the same, from the addresses alone"},
    {"sass_shared_st_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
     "shared store passes by address", 1, 0, "the same, from the addresses alone"},
    {"sass_shared_ldgsts_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
     "cp.async shared passes by address", 1, 0, "the same for copies past the registers"},
    {"us", "gpu__time_duration.sum", "time, us", 0, 2, "under the profiler, caches cold: slower than timed alone"},
    {"l1_hit", "l1tex__t_sector_hit_rate.pct", "L1 hit rate, %", 0, 1, "sectors found in the SM's own cache"},
    {"l2_hit", "lts__t_sector_hit_rate.pct", "L2 hit rate, %", 0, 1, "sectors found in the cache that all SMs share"},
    {"dram_bytes", "dram__bytes.sum", "device memory bytes", 0, 0, "read and written"},
    {"dram_percent", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "device memory, % of peak", 0, 1,
     "of the bandwidth"},
    {"sm_percent", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM, % of peak", 0, 1,
     "the busiest unit of the SM"},
    {"fma_percent", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "FMA pipe, % of peak", 0, 1,
     "cycles in which the FMA pipe took an instruction"},
    {"issued_percent", "smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots used, %", 0, 1,
     "cycles in which a scheduler issued: 100 is the issue limit"},
    {"instructions", "smsp__inst_executed.sum", "instructions of warps", 0, 0, "all of them"},
    {"occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", "occupancy achieved, %", 0, 1,
     "warps on an SM, of the 64 that fit"},
    {"registers", "launch__registers_per_thread", "registers a thread", 0, 0, "as the compiler gave them out"},
    {"stall_long_scoreboard", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
     "stall: waits for memory", 0, 2, "warps that wait for a load from global or local memory"},
    {"stall_short_scoreboard", "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
     "stall: waits for shared memory", 0, 2,
     "warps that wait for a load from shared memory or for a slow function unit"},
    {"stall_mio_throttle", "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
     "stall: queue to shared memory full", 0, 2, "warps that cannot hand in a shared load or store: the queue is full"},
    {"stall_lg_throttle", "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
     "stall: queue to memory full", 0, 2, "warps that cannot hand in a global load or store: the queue is full"},
    {"stall_barrier", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "stall: waits at a barrier",
     0, 2, "warps that wait at a barrier for the rest of their block"},
    {"stall_math_pipe_throttle", "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
     "stall: arithmetic pipe busy", 0, 2, "warps whose arithmetic unit is taken by another warp"},
    {"stall_dispatch_stall", "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
     "stall: register ports", 0, 2,
     "warps whose instruction was picked and held back at dispatch: its operands lie in one register bank"},
    {"stall_not_selected", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
     "stall: ready, another was taken", 0, 2, "warps that could issue while the scheduler took another one"},
    {"stall_wait", "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "stall: fixed delay", 0, 2,
     "warps that wait out the fixed delay the compiler wrote into the instruction before"},
    {"stall_no_instruction", "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio",
     "stall: waits for instructions", 0, 2, "warps whose next instruction is not fetched yet"},
    {"stall_branch_resolving", "smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio",
     "stall: waits for a branch", 0, 2, "warps that wait for the target of a branch"},
    {"stall_sleeping", "smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio", "stall: asleep", 0, 2,
     "warps that sleep until a barrier in shared memory changes"},
    {"stall_membar", "smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", "stall: waits for a fence", 0,
     2, "warps that wait for their memory operations to be seen by others"},
    {"stall_drain", "smsp__average_warps_issue_stalled_drain_per_issue_active.ratio",
     "stall: waits for stores at its end", 0, 2, "warps that have ended and wait for their stores to leave"},
    {"stall_gmma", "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", "stall: waits for tensor cores", 0,
     2, "warps that wait for a wgmma product"},
    {"stall_selected", "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", "stall: issues", 0, 2,
     "the warp that issues: one, by definition"},
    {"warps_active", "smsp__warps_active.avg.per_cycle_active", "warps of a scheduler", 0, 2,
     "warps that live on one of an SM's four schedulers; sixteen fit"},
    {"warps_eligible", "smsp__warps_eligible.avg.per_cycle_active", "of them ready to issue", 0, 2,
     "warps that could issue in a cycle: below one, cycles go by unused"},
    {"ipc", "sm__inst_executed.avg.per_cycle_active", "instructions a cycle of an SM", 0, 2,
     "four at most, one a scheduler"},
    {"ffma_threads", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "FMAs of threads", 0, 0,
     "m*n*k of them do the product; 32 are one instruction of a warp"},
    {"inst_fma", "smsp__inst_executed_pipe_fma.sum", "instructions to the FMA pipe", 0, 0,
     "FMAs and the integer multiplications that share their pipe"},
    {"inst_alu", "smsp__inst_executed_pipe_alu.sum", "instructions to the integer pipe", 0, 0,
     "addresses, comparisons, logic"},
    {"inst_lsu", "smsp__inst_executed_pipe_lsu.sum", "instructions to the load and store unit", 0, 0,
     "all of them, global and shared"},
    {"inst_tensor", "smsp__inst_executed_pipe_tensor.sum", "instructions to the tensor cores", 0, 0,
     "mma and wgmma; a few other instructions are counted with them"},
    {"inst_uniform", "smsp__inst_executed_pipe_uniform.sum", "instructions once a warp", 0, 0,
     "the uniform pipe: what is the same for all lanes"},
    {NULL, NULL, NULL, 0, 0, NULL},
};

int lab_counter_index(const char *key)
{
    for (int i = 0; lab_counters[i].key; i++)
        if (strcmp(lab_counters[i].key, key) == 0)
            return i;
    return -1;
}

const char *lab_ncu_path(void)
{
    static char path[512];
    const char *named = lab_named("RUNG_NCU"), *folders = getenv("PATH");
    static const char *const usual[] = {"/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu",
                                        "/opt/nvidia/nsight-compute/*/target/linux-desktop-glibc_2_11_3-x64/ncu"};
    if (named)
        return named;
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/ncu", (int)length, folders);
        if (access(path, X_OK) == 0)
            return path;
        folders += length + (folders[length] == ':');
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        glob_t found;
        int good = glob(usual[i], 0, NULL, &found) == 0 && access(found.gl_pathv[found.gl_pathc - 1], X_OK) == 0;
        if (good)
            snprintf(path, sizeof path, "%s", found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
        if (good)
            return path;
    }
    return NULL;
}

/* Reads all of ncu's output, after ncu has ended. */
static char *run_words(char *const *words, int *exit_code)
{
    int ends[2];
    if (pipe(ends) != 0)
        return NULL;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        unsetenv("RUNG_LIBCUDA"); /* this process looks through the lens, ncu at the GPU */
        execv(words[0], words);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    ssize_t got;
    while (text && child > 0 && (got = read(ends[0], text + used, room - used - 1)) > 0) {
        used += (size_t)got;
        if (room - used < 4096) {
            char *more = realloc(text, room *= 2);
            if (!more)
                break;
            text = more;
        }
    }
    close(ends[0]);
    int status = -1;
    if (child > 0)
        waitpid(child, &status, 0);
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (text)
        text[used] = 0;
    return text;
}

/* Splits a CSV line in place. */
static int split_csv(char *line, char **cells, int capacity)
{
    int count = 0;
    while (*line && count < capacity) {
        if (*line == '"') {
            cells[count++] = ++line;
            line += strcspn(line, "\"");
        } else {
            cells[count++] = line;
            line += strcspn(line, ",");
        }
        if (*line)
            *line++ = 0;
        line += *line == ',';
    }
    return count;
}

static double number(const char *text)
{
    char plain[64];
    size_t n = 0;
    for (; *text && n + 1 < sizeof plain; text++)
        if (*text != ',')
            plain[n++] = *text;
    plain[n] = 0;
    char *end;
    double value = strtod(plain, &end);
    return end == plain ? NAN : value;
}

/* Takes a figure of a launch into the profile. A helper launch (packing, finishing) counts with the kernel by whose
 * name it begins: sums are added, percentages stay those of the main launch; of several (a sum is launched again on its
 * blocks' results) those of the longest. A helper of another name (l35 and l36 launch l34's split) counts with that
 * one. */
static void take(lab_profile *profile, int metric, double value, int longest)
{
    int sum = strstr(lab_counters[metric].ncu, ".sum") != NULL;
    if (!sum && longest)
        profile->measured[metric] = value;
    else if (sum)
        profile->measured[metric] = value + (isnan(profile->measured[metric]) ? 0 : profile->measured[metric]);
}

/* Takes a line of ncu's table. */
static void take_launch(lab_profile *profile, char *const *header, char *const *units, char *const *cells, int cells_n,
                        int units_n, int main_launch)
{
    double values[LAB_COUNTERS], us = NAN;
    for (int m = 0; m < LAB_COUNTERS; m++)
        values[m] = NAN;
    for (int i = 0; i < cells_n; i++)
        for (int m = 0; lab_counters[m].key; m++)
            if (strcmp(lab_counters[m].ncu, header[i]) == 0) {
                values[m] = number(cells[i]);
                if (strcmp(lab_counters[m].key, "us") == 0)
                    us = values[m] /= i < units_n && strcmp(units[i], "ns") == 0 ? 1000 : 1;
            }
    int longest = main_launch && !(us <= profile->longest_us);
    for (int m = 0; lab_counters[m].key; m++)
        if (!isnan(values[m]))
            take(profile, m, values[m], longest);
    if (longest)
        profile->longest_us = us;
}

/* Finds the longest kernel name with which the launch's begins. */
static lab_profile *profile_of(lab_profile *profiles, int count, const char *launch)
{
    lab_profile *best = NULL;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(profiles[i].kernel);
        if (strncmp(launch, profiles[i].kernel, length) == 0 &&
            (launch[length] == 0 || launch[length] == '_' || launch[length] == '(') &&
            (!best || length > strlen(best->kernel)))
            best = &profiles[i];
    }
    return best;
}

static int read_csv(char *text, lab_profile *profiles, int count)
{
    static char *header[CSV_CELLS], *units[CSV_CELLS], *cells[CSV_CELLS];
    char *saved = NULL;
    int columns = 0, unit_columns = 0, name_column = -1, taken = 0;
    for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
        if (line[0] != '"')
            continue;
        if (columns == 0) {
            columns = split_csv(line, header, CSV_CELLS);
            for (int i = 0; i < columns; i++)
                name_column = strcmp(header[i], "Kernel Name") == 0 ? i : name_column;
            continue;
        }
        if (unit_columns == 0) {
            unit_columns = split_csv(line, units, CSV_CELLS);
            continue;
        }
        int n = split_csv(line, cells, CSV_CELLS);
        if (name_column < 0 || name_column >= n)
            continue;
        lab_profile *profile = profile_of(profiles, count, cells[name_column]);
        if (!profile)
            continue;
        size_t length = strlen(profile->kernel);
        const char *rest = cells[name_column] + length; /* nothing, or a tile: l23_searched_128x256 */
        int main_launch = *rest == 0 || *rest == '(' || (*rest == '_' && isdigit((unsigned char)rest[1]));
        take_launch(profile, header, units, cells, n < columns ? n : columns, unit_columns, main_launch);
        taken++;
    }
    return taken;
}

/* Adds over all launches of a kernel, as the lens counts. */
static void ratios_of_sums(lab_profile *profile)
{
    static const char *const kinds[] = {"ld", "st"};
    for (int i = 0; i < 2; i++) {
        char requests[32], sectors[32], ratio[32];
        snprintf(requests, sizeof requests, "%s_requests", kinds[i]);
        snprintf(sectors, sizeof sectors, "%s_sectors", kinds[i]);
        snprintf(ratio, sizeof ratio, "%s_sectors_per_request", kinds[i]);
        double n = profile->measured[lab_counter_index(requests)];
        if (n > 0)
            profile->measured[lab_counter_index(ratio)] = profile->measured[lab_counter_index(sectors)] / n;
    }
}

static rung_status explain_failure(const char *text, int exit_code)
{
    if (strstr(text, "ERR_NVGPUCTRPERM"))
        return lab_fail(RUNG_UNSUPPORTED,
                        "the driver keeps the counters to administrators: run as root, or load the nvidia "
                        "module with NVreg_RestrictProfilingToAdminUsers=0 (docs/lens.md)");
    if (strstr(text, "LibraryNotLoaded") || strstr(text, "Failed to initialize the profiler"))
        return lab_fail(RUNG_UNSUPPORTED,
                        "ncu cannot reach the counters on this machine (a container or virtual machine "
                        "without profiling support)");
    const char *error = strstr(text, "==ERROR==");
    return lab_fail(RUNG_UNSUPPORTED, "ncu ended with %d and no figures: %.160s", exit_code, error ? error + 10 : text);
}

static char *run_ncu(const char *ncu, char *const *command, const unsigned char *refused, int *exit_code)
{
    char metrics[8192] = "", path[512];
    for (int i = 0; lab_counters[i].key; i++)
        if (!refused[i])
            snprintf(metrics + strlen(metrics), sizeof metrics - strlen(metrics), "%s%s", metrics[0] ? "," : "",
                     lab_counters[i].ncu);
    snprintf(path, sizeof path, "%s", ncu);
    char *words[64] = {path,   "--csv",           "--page", "raw",       "--print-units",
                       "base", "--clock-control", "none",   "--metrics", metrics};
    int at = 10;
    for (int i = 0; command[i] && at < 63; i++)
        words[at++] = command[i];
    return run_words(words, exit_code);
}

/* Finds names that this ncu or this chip does not know. ncu is then asked again without them. */
static int note_refused(const char *text, unsigned char *refused)
{
    int found = 0;
    if (!strstr(text, "Failed to find metric") && !strstr(text, "Unknown metric"))
        return 0;
    for (int i = 0; lab_counters[i].key; i++) {
        for (const char *at = strstr(text, "metric"); at && !refused[i]; at = strstr(at + 1, "metric")) {
            size_t line = strcspn(at, "\n"), length = strlen(lab_counters[i].ncu);
            const char *name = strstr(at, lab_counters[i].ncu);
            if (name && name + length <= at + line)
                refused[i] = 1, found = 1;
        }
    }
    return found;
}

rung_status lab_ncu_run(char *const *command, lab_profile *profiles, int count)
{
    const char *ncu = lab_ncu_path();
    if (!ncu)
        return lab_fail(RUNG_MISSING_LIBRARY,
                        "ncu (Nsight Compute) is not on the PATH nor where it is usually installed; "
                        "RUNG_NCU names it");
    unsigned char refused[LAB_COUNTERS] = {0};
    for (int i = 0; i < count; i++) {
        profiles[i].longest_us = 0;
        for (int m = 0; m < LAB_COUNTERS; m++)
            profiles[i].measured[m] = NAN;
    }
    char *text = NULL;
    int exit_code = 0, again = 1;
    for (int tries = 0; tries < 8 && again; tries++) {
        free(text);
        text = run_ncu(ncu, command, refused, &exit_code);
        if (!text)
            return lab_fail(RUNG_OUT_OF_MEMORY, "cannot start ncu");
        again = note_refused(text, refused);
    }
    char *copy = strdup(text);
    const char *keep = getenv("RUNG_NCU_LOG");
    FILE *log = keep ? fopen(keep, "a") : NULL;
    if (log) {
        fputs(text, log);
        fclose(log);
    }
    int taken = copy ? read_csv(copy, profiles, count) : 0;
    for (int i = 0; i < count; i++)
        ratios_of_sums(&profiles[i]);
    rung_status status = taken ? RUNG_SUCCESS : explain_failure(text, exit_code);
    free(copy);
    free(text);
    return status;
}

/* Reads the number after "key": in a line of our own making, up to `end`. It is NaN where the key is not. */
static double number_of(const char *line, const char *end, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(line, quoted);
    return at && at < end ? strtod(at + strlen(quoted), NULL) : NAN;
}

static lab_profile *profile_named(lab_profile *profiles, int count, const char *line)
{
    char quoted[128];
    for (int i = 0; i < count; i++) {
        snprintf(quoted, sizeof quoted, "\"kernel\": \"%s\"", profiles[i].kernel);
        if (strstr(line, quoted))
            return &profiles[i];
    }
    return NULL;
}

rung_status lab_counters_read(const char *path, int64_t m, int64_t n, int64_t k, lab_profile *profiles, int count,
                              int *found)
{
    FILE *from = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    *found = 0;
    if (!from)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the counters in %s: %s", path, strerror(errno));
    while (getline(&line, &room, from) > 0) {
        const char *counters = strstr(line, "\"counter\": {"), *end = counters ? strchr(counters, '}') : NULL;
        lab_profile *profile = end ? profile_named(profiles, count, line) : NULL;
        if (!profile || number_of(line, counters, "n") != (double)n ||
            (k && (number_of(line, counters, "m") != (double)m || number_of(line, counters, "k") != (double)k)))
            continue;
        for (int i = 0; lab_counters[i].key; i++)
            profile->measured[i] = number_of(counters, end, lab_counters[i].key);
        ++*found;
    }
    int unread = ferror(from) ? errno : 0;
    free(line);
    fclose(from);
    if (unread)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the counters in %s: %s", path, strerror(unread));
    return *found ? RUNG_SUCCESS
                  : lab_fail(RUNG_INVALID_ARGUMENT, "%s has no counters of these kernels at this size", path);
}

rung_status lab_counts_read(const char *path, const char *kernel, int64_t m, int64_t n, int64_t k,
                            const char *const *keys, int count, double *values)
{
    FILE *from = fopen(path, "r");
    char *line = NULL, quoted[128];
    size_t room = 0;
    int found = 0;
    if (!from)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the counts in %s: %s", path, strerror(errno));
    snprintf(quoted, sizeof quoted, "\"kernel\": \"%s\"", kernel);
    while (getline(&line, &room, from) > 0) {
        const char *end = line + strlen(line);
        if (!strstr(line, quoted) || number_of(line, end, "m") != (double)m || number_of(line, end, "n") != (double)n ||
            number_of(line, end, "k") != (double)k)
            continue;
        found = 1;
        for (int i = 0; i < count; i++)
            values[i] = number_of(line, end, keys[i]);
    }
    int unread = ferror(from) ? errno : 0;
    free(line);
    fclose(from);
    if (unread)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the counts in %s: %s", path, strerror(unread));
    return found ? RUNG_SUCCESS
                 : lab_fail(RUNG_INVALID_ARGUMENT, "%s has no counts of %s at %lldx%lldx%lld", path, kernel,
                            (long long)m, (long long)n, (long long)k);
}

static void set(lab_profile *profile, const char *key, double value)
{
    profile->predicted[lab_counter_index(key)] = value;
}

void lab_profile_predict(lab_profile *profile)
{
    lab_lens_totals t;
    for (int m = 0; m < LAB_COUNTERS; m++)
        profile->predicted[m] = NAN;
    lab_lens_sum(&t);
    double requests = t.global_load_requests + t.async_requests, sectors = t.global_load_sectors + t.async_sectors;
    set(profile, "ld_requests", requests); /* the counter takes cp.async in */
    set(profile, "ld_sectors", sectors);
    set(profile, "ld_sectors_per_request", requests > 0 ? sectors / requests : NAN);
    set(profile, "ld_bytes_used",
        t.global_load_moved > 0 && t.global_load_requests > 0 ? 100 * t.global_load_used / t.global_load_moved : NAN);
    double stores = t.global_store_requests - t.global_atomic_requests; /* the counter leaves atomics out */
    double stored = t.global_store_sectors - t.global_atomic_sectors;
    set(profile, "st_requests", stores);
    set(profile, "st_sectors", stored);
    set(profile, "st_sectors_per_request", stores > 0 ? stored / stores : NAN);
    set(profile, "ldgsts_requests", t.async_requests);
    set(profile, "shared_ld_requests", t.shared_load_requests);
    set(profile, "shared_ld_wavefronts", t.shared_load_wavefronts);
    set(profile, "shared_ld_conflicts", t.shared_load_wavefronts - t.shared_load_ideal);
    set(profile, "shared_st_requests", t.shared_store_requests);
    set(profile, "shared_st_wavefronts", t.shared_store_wavefronts);
    set(profile, "shared_st_conflicts", t.shared_store_wavefronts - t.shared_store_ideal);
    set(profile, "sass_shared_ld_wavefronts", t.shared_load_wavefronts);
    set(profile, "sass_shared_st_wavefronts", t.shared_store_wavefronts);
    set(profile, "sass_shared_ldgsts_wavefronts", t.async_wavefronts);
}
