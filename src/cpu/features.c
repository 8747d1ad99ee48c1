/* Finds out what this machine offers: instruction sets, caches, CPUs. */
#define _GNU_SOURCE
#include "cpu/features.h"
#include "core/status.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static unsigned detect(void)
{
    unsigned found = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx"))
        found |= RUNG_CPU_AVX;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found |= RUNG_CPU_AVX2;
    if (found & RUNG_CPU_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        found |= RUNG_CPU_AVX512;
#elif defined(__aarch64__)
    found = RUNG_CPU_NEON; /* part of the architecture */
#endif
    return found;
}

unsigned rung_cpu_feature_bits(const char *names)
{
    unsigned bits = 0;
    for (const char *at = names; at && *at;) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "avx", 3) == 0)
            bits |= RUNG_CPU_AVX;
        else if (length == 4 && strncmp(at, "avx2", 4) == 0)
            bits |= RUNG_CPU_AVX2;
        else if (length == 6 && strncmp(at, "avx512", 6) == 0)
            bits |= RUNG_CPU_AVX512;
        else if (length == 4 && strncmp(at, "neon", 4) == 0)
            bits |= RUNG_CPU_NEON;
        else
            bits |= RUNG_CPU_UNKNOWN;
        at += length + (at[length] == ',');
    }
    return bits;
}

static const struct {
    const char *name;
    rung_processor processor;
} processors[] = {
    {"zen1", {32 << 10, 512 << 10, 8 << 20, 8 << 20, .follows_rows = 1, .units_of_four = 1}},
    {"zen3", {32 << 10, 512 << 10, 8 << 20, 32 << 20, .follows_rows = 1, .asks_next_rows = 1}},
    {"zen4", {32 << 10, 1 << 20, 16 << 20, 16 << 20, .follows_rows = 1, .asks_for_few = 1, .waits_for_l3 = 1}},
    {"zen5", {48 << 10, 1 << 20, 32 << 20, 32 << 20, .follows_rows = 0}},
    {"emerald",
     {48 << 10, 2 << 20, 32 << 20, 256 << 20, .follows_rows = 1, .stores_wait = 1, .far_l3 = 1, .three_loads = 1,
      .wide_units = 1}},
};
enum { PROCESSORS = sizeof processors / sizeof processors[0] };

/* Returns the processor that RUNG_CPU_PLAN names, PROCESSORS for none. */
static int planned_for(const char *name)
{
    int i = 0;
    while (name && i < PROCESSORS && strcmp(processors[i].name, name) != 0)
        i++;
    return name ? i : PROCESSORS;
}

rung_status rung_cpu_check_features(void)
{
    const char *plan = getenv("RUNG_CPU_PLAN");
    if (plan && *plan && planned_for(plan) == PROCESSORS)
        return rung_fail(RUNG_INVALID_ARGUMENT,
                         "RUNG_CPU_PLAN is '%s': set it to zen1, zen3, zen4, zen5 or emerald, or unset it", plan);
    const char *keep = getenv("RUNG_CPU_FEATURES");
    if (keep && strcmp(keep, "none") != 0 && rung_cpu_feature_bits(keep) & RUNG_CPU_UNKNOWN)
        return rung_fail(
            RUNG_INVALID_ARGUMENT,
            "RUNG_CPU_FEATURES is '%s': set it to avx512, avx2, avx, neon (several with commas between) or none, "
            "or unset it",
            keep);
    return RUNG_SUCCESS;
}

unsigned rung_cpu_features(void)
{
    unsigned found = detect();
    const char *keep = getenv("RUNG_CPU_FEATURES");
    unsigned kept = keep && *keep ? rung_cpu_feature_bits(keep) : found;
    if (kept & RUNG_CPU_AVX512)
        kept |= RUNG_CPU_AVX2;
    if (kept & RUNG_CPU_AVX2)
        kept |= RUNG_CPU_AVX;
    return found & kept;
}

static int read_line(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int ok = fgets(line, bytes, file) != NULL;
    fclose(file);
    return ok;
}

/* Returns the family of a processor of AMD's, with its model in the low byte; 0: it is another's. Compilers know the
 * families by name only as far as they are older than the compiler. */
static unsigned amd_family(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd") && __get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return ((eax >> 8 & 0xf) + (eax >> 20 & 0xff)) << 8 | (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
#endif
    return 0;
}

/* Zen, Zen+ and Zen 2 are one family, whose later models are Zen 2; so are Zen 3 and Zen 4. */
static int is_zen1(void)
{
    unsigned family = amd_family();
    return family >> 8 == 0x17 && (family & 0xff) < 0x30;
}

static int is_zen3_or_4(void)
{
    return amd_family() >> 8 == 0x19;
}

/* A Zen 4 has AVX-512 also where RUNG_CPU_FEATURES leaves it out. */
static int is_zen3(void)
{
    return is_zen3_or_4() && !(detect() & RUNG_CPU_AVX512);
}

static int is_intel(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
#else
    return 0;
#endif
}

rung_processor rung_cpu_processor(void)
{
    /* At most, of each CPU there is: a guest is told of all of its host's L3. A Zen 3 has 4 MB for each core. */
    enum { L3_SHARE = 16 << 20, L3_SHARE_OF_ZEN3 = 4 << 20 };
    int planned = planned_for(getenv("RUNG_CPU_PLAN"));
    if (planned < PROCESSORS)
        return processors[planned].processor;
    rung_processor processor = {32 << 10,
                                512 << 10,
                                4 << 20,
                                4 << 20,
                                .follows_rows = is_intel() || is_zen3_or_4() || is_zen1(),
                                .asks_for_few = is_zen3_or_4() && !is_zen3(),
                                .waits_for_l3 = is_zen3_or_4() && !is_zen3(),
                                .asks_next_rows = is_zen3(),
                                .stores_wait = is_intel(),
                                .far_l3 = is_intel(),
                                .three_loads = is_intel(),
                                .wide_units = is_intel(),
                                .units_of_four = is_zen1()};
    for (int index = 0; index < 8; index++) {
        char path[96], level[16], type[32], size[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        if (!read_line(path, level, sizeof level))
            break;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        if (!read_line(path, type, sizeof type) || strncmp(type, "Instruction", 11) == 0)
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        long kib = read_line(path, size, sizeof size) ? strtol(size, NULL, 10) : 0; /* sysfs writes "1024K" */
        if (kib <= 0)
            continue;
        long *into[] = {&processor.l1_bytes, &processor.l2_bytes, &processor.l3_bytes};
        if (level[0] >= '1' && level[0] <= '3')
            *into[level[0] - '1'] = kib << 10;
    }
    long share = sysconf(_SC_NPROCESSORS_ONLN) * (long)(is_zen3() ? L3_SHARE_OF_ZEN3 : L3_SHARE);
    processor.whole_l3_bytes = processor.l3_bytes;
    if (share > 0 && processor.l3_bytes > share)
        processor.l3_bytes = share;
    return processor;
}

/* Returns how many CPUs the process may run on. The kernel refuses a set with less room than all CPUs that it may ever
 * have. */
static int affinity_count(void)
{
    enum { LEAST_ROOM = 1024, MOST_ROOM = 1 << 20 };
    int count = 0;
    for (int room = LEAST_ROOM; count == 0 && room <= MOST_ROOM; room *= 2) {
        cpu_set_t *set = CPU_ALLOC(room);
        if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(room), set) == 0)
            count = CPU_COUNT_S(CPU_ALLOC_SIZE(room), set);
        CPU_FREE(set);
    }
    return count > 0 ? count : 1;
}

/* Returns how many CPUs' time the group at `path` may use; 0: no limit. Version 2 has one file, version 1 two. */
static int quota_at(const char *path)
{
    char file[640], line[64];
    long long quota = 0, period = 0;
    snprintf(file, sizeof file, "/sys/fs/cgroup%s/cpu.max", path);
    if (read_line(file, line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2) /* "max 100000": no limit */
            return 0;
    } else {
        snprintf(file, sizeof file, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", path);
        quota = read_line(file, line, sizeof line) ? atoll(line) : 0;
        snprintf(file, sizeof file, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", path);
        period = read_line(file, line, sizeof line) ? atoll(line) : 0;
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

static int lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

/* Finds the process's own group, as "/a/b". Version 2 writes "0::/a/b", version 1 "4:cpu,cpuacct:/a/b". */
static void find_group(char *path, size_t bytes)
{
    char line[512];
    path[0] = '\0';
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (controllers[1] == '\0' || lists(controllers + 1, "cpu"))
            snprintf(path, bytes, "%s", strcmp(group, "/") ? group : "");
        if (lists(controllers + 1, "cpu"))
            break;
    }
    if (file)
        fclose(file);
}

/* Finds the tightest limit from the process's own group up to the root. A container sees the root only. */
static int quota_count(void)
{
    char path[512];
    int least = 0;
    find_group(path, sizeof path);
    for (;;) {
        int quota = quota_at(path);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        char *parent = strrchr(path, '/');
        if (!parent)
            return least;
        *parent = '\0';
    }
}

int rung_cpu_count(void)
{
    int count = affinity_count(), quota = quota_count();
    return quota > 0 && quota < count ? quota : count;
}
