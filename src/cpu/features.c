/* What this machine offers: instruction sets, caches, CPUs. */
#define _GNU_SOURCE
#include "cpu/features.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned detect(void)
{
    unsigned found = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found |= RUNG_CPU_AVX2;
    if (found && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        found |= RUNG_CPU_AVX512;
#endif
    return found;
}

static int lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

unsigned rung_cpu_features(void)
{
    unsigned found = detect();
    const char *keep = getenv("RUNG_CPU_FEATURES");
    if (keep && *keep) {
        if (!lists(keep, "avx512"))
            found &= ~(unsigned)RUNG_CPU_AVX512;
        if (!lists(keep, "avx2") && !lists(keep, "avx512"))
            found &= ~(unsigned)RUNG_CPU_AVX2;
    }
    return found;
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

rung_caches rung_cpu_caches(void)
{
    rung_caches caches = {32 << 10, 512 << 10, 4 << 20};
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
        long *into[] = {&caches.l1_bytes, &caches.l2_bytes, &caches.l3_bytes};
        if (level[0] >= '1' && level[0] <= '3')
            *into[level[0] - '1'] = kib << 10;
    }
    return caches;
}

static int affinity_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

static int quota_count(void)
{
    char line[64];
    long long quota = 0, period = 0;
    if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2) /* "max 100000": no limit */
            return 0;
    } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        quota = atoll(line);
        if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line))
            period = atoll(line);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int rung_cpu_count(void)
{
    int count = affinity_count(), quota = quota_count();
    return quota > 0 && quota < count ? quota : count;
}
