/* What the CPU backend believes of a machine, whatever machine this is: the system's files are this file's (--wrap), so
 * that caches, affinity and the quotas of control groups of both versions can be any, and any file can be missing. */
#define _GNU_SOURCE
#include "cpu/features.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the machine ---- */

enum { MOST_FILES = 64, PATH_BYTES = 640 };

static struct {
    char path[PATH_BYTES], text[160];
} files[MOST_FILES];
static int file_count, open_files, cpus, possible, knows_affinity;
static long online;

static void clear(void)
{
    file_count = open_files = 0;
    cpus = 64, possible = 1024, knows_affinity = 1, online = 64;
}

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *path, ...)
{
    va_list list;
    va_start(list, path);
    assert_true(file_count < MOST_FILES);
    vsnprintf(files[file_count].path, PATH_BYTES, path, list);
    snprintf(files[file_count++].text, sizeof files[0].text, "%s", text);
    va_end(list);
}

FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_fclose(FILE *file);
int __real_fclose(FILE *file);
int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set);
long __wrap_sysconf(int name);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    assert_string_equal(mode, "re");
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0) {
            open_files++;
            return fmemopen(files[i].text, strlen(files[i].text), "r");
        }
    errno = ENOENT;
    return NULL;
}

int __wrap_fclose(FILE *file)
{
    open_files--;
    return __real_fclose(file);
}

int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    assert_int_equal(process, 0);
    if (!knows_affinity)
        return -1;
    if (bytes * 8 < (size_t)possible) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (int i = 0; i < cpus; i++)
        CPU_SET_S((size_t)(3 * i), bytes, set);
    return 0;
}

long __wrap_sysconf(int name)
{
    assert_int_equal(name, _SC_NPROCESSORS_ONLN);
    return online;
}

/* ---- caches ---- */

#define CACHE "/sys/devices/system/cpu/cpu0/cache/index%d/"

static void put_cache(int index, const char *level, const char *type, const char *size)
{
    if (level)
        put(level, CACHE "level", index);
    if (type)
        put(type, CACHE "type", index);
    if (size)
        put(size, CACHE "size", index);
}

static void expect_caches(long l1_kib, long l2_kib, long l3_kib)
{
    const rung_processor c = rung_cpu_processor();
    assert_int_equal(c.l1_bytes, l1_kib << 10);
    assert_int_equal(c.l2_bytes, l2_kib << 10);
    assert_int_equal(c.l3_bytes, l3_kib << 10);
    assert_true(c.whole_l3_bytes >= c.l3_bytes);
    assert_int_equal(open_files, 0);
}

static void caches_are_those_of_the_first_cpu(void **state)
{
    (void)state;
    unsetenv("RUNG_CPU_PLAN");
    clear();
    expect_caches(32, 512, 4096); /* no file */
    put_cache(0, "1\n", "Data\n", "48K\n");
    put_cache(1, "1\n", "Instruction\n", "64K\n");
    put_cache(2, "2\n", "Unified\n", "1280K\n");
    put_cache(3, "3\n", "Unified\n", "36608K\n");
    const long share_kib = rung_cpu_processor().asks_next_rows ? 4096 : 16384, l3_kib = 36608; /* a Zen 3, or another */
    static const long counts[] = {1, 2, 3, 8, 9, 64, 0, -1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        online = counts[i];
        expect_caches(48, 1280, online > 0 && online * share_kib < l3_kib ? online * share_kib : l3_kib);
        assert_int_equal(rung_cpu_processor().whole_l3_bytes, l3_kib << 10);
    }
}

static void what_tells_nothing_of_a_cache_is_passed_over(void **state)
{
    (void)state;
    clear();
    put_cache(0, "1\n", NULL, "48K\n"); /* of what type, it does not say */
    put_cache(1, "2\n", "Unified\n", NULL);
    put_cache(2, "3\n", "Unified\n", "0K\n");
    put_cache(3, "3\n", "Unified\n", "none\n");
    put_cache(4, "4\n", "Unified\n", "65536K\n");
    put_cache(5, "0\n", "Unified\n", "65536K\n");
    put_cache(6, "2\n", "Unified\n", "1K\n");
    put_cache(7, "1\n", "Data\n", "24K\n"); /* the last that is asked for */
    put_cache(8, "3\n", "Unified\n", "8192K\n");
    expect_caches(24, 1, 4096);
    clear();
    put_cache(0, "1\n", "Data\n", "24K\n");
    put_cache(1, "2\n", "Unified\n", "256K\n");
    put_cache(2, NULL, "Unified\n", "9M\n"); /* a hole ends the list */
    put_cache(3, "3\n", "Unified\n", "8192K\n");
    expect_caches(24, 256, 4096);
    clear();
    put_cache(0, "", "Data\n", "24K\n"); /* an empty file has no line */
    expect_caches(32, 512, 4096);
}

static void a_processor_can_be_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        long kib[3], whole_l3_kib;
        int manners[9];
    } known[] = {
        {"zen1", {32, 512, 8192}, 8192, {1, 0, 0, 0, 0, 0, 0, 0, 1}},
        {"zen3", {32, 512, 8192}, 32768, {1, 0, 0, 1, 0, 0, 0, 0, 0}},
        {"zen4", {32, 1024, 16384}, 16384, {1, 1, 1, 0, 0, 0, 0, 0, 0}},
        {"zen5", {48, 1024, 32768}, 32768, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
        {"emerald", {48, 2048, 32768}, 262144, {1, 0, 0, 0, 1, 1, 1, 1, 0}},
    };
    clear();
    online = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        setenv("RUNG_CPU_PLAN", known[i].name, 1);
        const rung_processor c = rung_cpu_processor();
        const int manners[] = {c.follows_rows, c.asks_for_few, c.waits_for_l3, c.asks_next_rows, c.stores_wait,
                               c.far_l3,       c.three_loads,  c.wide_units,   c.units_of_four};
        assert_int_equal(rung_cpu_check_features(), RUNG_SUCCESS);
        assert_memory_equal(manners, known[i].manners, sizeof manners);
        expect_caches(known[i].kib[0], known[i].kib[1], known[i].kib[2]);
        assert_int_equal(c.whole_l3_bytes, known[i].whole_l3_kib << 10);
    }
    static const char *const unknown[] = {"zen", "zen33", "Zen3", " zen3"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char words[128];
        setenv("RUNG_CPU_PLAN", unknown[i], 1);
        snprintf(words, sizeof words, "RUNG_CPU_PLAN is '%s': set it to zen1, zen3, zen4, zen5 or emerald, or unset it",
                 unknown[i]);
        assert_int_equal(rung_cpu_check_features(), RUNG_INVALID_ARGUMENT);
        assert_string_equal(rung_last_error(), words);
        expect_caches(32, 512, 4096);
    }
    setenv("RUNG_CPU_PLAN", "", 1);
    assert_int_equal(rung_cpu_check_features(), RUNG_SUCCESS);
    expect_caches(32, 512, 4096);
    unsetenv("RUNG_CPU_PLAN");
}

/* ---- CPUs that may be used ---- */

static void expect_cpus(int wanted)
{
    const int found = rung_cpu_count();
    if (found != wanted || open_files != 0)
        fail_msg("%d CPUs, not %d; %d files stay open", found, wanted, open_files);
}

static void as_many_as_the_mask_has(void **state)
{
    (void)state;
    clear();
    for (cpus = 1; cpus <= 300; cpus += 1 + cpus / 7)
        expect_cpus(cpus);
    for (possible = 1025; possible <= 1 << 20; possible *= 2) /* more than a mask of the usual size has */
        for (cpus = 1; cpus <= 3000 && 3 * cpus < possible; cpus = 2 * cpus + 1)
            expect_cpus(cpus);
    cpus = 0, possible = 1024;
    expect_cpus(1);
    knows_affinity = 0;
    expect_cpus(1);
}

static void a_line_of_a_quota(void **state)
{
    (void)state;
    static const struct {
        const char *max;
        int cpus;
    } second[] = {{"100000 100000\n", 1}, {"100001 100000\n", 2},  {"1 100000\n", 1},   {"250000 50000\n", 5},
                  {"0 100000\n", 64},     {"max 100000\n", 64},    {"-1 100000\n", 64}, {"100000 0\n", 64},
                  {"100000\n", 64},       {"9000000 100000\n", 64}};
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        clear();
        put(second[i].max, "/sys/fs/cgroup/cpu.max");
        expect_cpus(second[i].cpus);
    }
    static const struct {
        const char *quota, *period;
        int cpus;
    } first[] = {{"300000\n", "100000\n", 3}, {"300001\n", "100000\n", 4}, {"-1\n", "100000\n", 64},
                 {"100000\n", NULL, 64},      {NULL, "100000\n", 64},      {"100000\n", "0\n", 64}};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        clear();
        if (first[i].quota)
            put(first[i].quota, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
        if (first[i].period)
            put(first[i].period, "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
        expect_cpus(first[i].cpus);
    }
}

static void the_group_is_the_processs_own(void **state)
{
    (void)state;
    static const struct {
        const char *own, *group; /* in /proc/self/cgroup, and where the quota stands */
        int version;
    } at[] = {
        {"0::/\n", "", 2},
        {"0::/a\n", "/a", 2},
        {"0::/a/b b/c\n", "/a/b b/c", 2},
        {"0::/a/b/c\n", "/a", 2}, /* above it */
        {"0::/a/b/c\n", "", 2},
        {"12:pids:/x\n0::/a\n", "/a", 2},
        {"4:cpu,cpuacct:/a\n3:memory:/x\n", "/a", 1},
        {"5:cpuacct,cpu:/a/b\n0::/x\n", "/a/b", 1}, /* both versions: the one that has the CPUs */
        {"0::/x\n5:cpu:/a/b\n", "/a/b", 1},
        {"5:cpuset:/x\n4:cpu:/a\n", "/a", 1},
        {"5:name=cpu:/x\n4:cpu:/a\n", "/a", 1}, /* one that somebody has named */
        {"4:cpu:/\n", "", 1},
        {"no colon\n4:one\n0::/a\n", "/a", 2},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        clear();
        put(at[i].own, "/proc/self/cgroup");
        if (at[i].version == 2) {
            put("700000 100000\n", "/sys/fs/cgroup%s/cpu.max", at[i].group);
        } else {
            put("700000\n", "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", at[i].group);
            put("100000\n", "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", at[i].group);
        }
        put("100000 100000\n", "/sys/fs/cgroup/x/cpu.max"); /* another group's */
        put("100000\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us");
        put("100000\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us");
        expect_cpus(7);
    }
}

/* The tightest limit counts, wherever it stands, of any quotas on any of the groups on the way up. */
static void the_tightest_limit_counts(void **state)
{
    (void)state;
    uint64_t dice = 1;
    for (int i = 0; i < 3000; i++) {
        static const char *const groups[] = {"", "/a", "/a/b", "/a/b/c"};
        int wanted = 0, drawn[13];
        for (int j = 0; j < 13; j++) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            drawn[j] = (int)(dice >> 33);
        }
        clear();
        wanted = cpus = 1 + drawn[0] % 40;
        put(drawn[1] % 2 ? "0::/a/b/c\n" : "0::/a/b\n", "/proc/self/cgroup");
        for (int g = 0; g < 4; g++) {
            const int quota = drawn[2 + g] % 3 ? 1 + drawn[2 + g] / 3 % 4000000 : 0,
                      period = 1000 + drawn[6 + g] % 400000;
            char line[64];
            if (quota)
                snprintf(line, sizeof line, "%d %d\n", quota, period);
            else
                snprintf(line, sizeof line, "max %d\n", period);
            if (drawn[10] >> g & 1)
                continue;
            put(line, "/sys/fs/cgroup%s/cpu.max", groups[g]);
            int least = 1;
            while (quota && (int64_t)least * period < quota)
                least++;
            if (quota && least < wanted && (g < 3 || drawn[1] % 2))
                wanted = least;
        }
        expect_cpus(wanted);
    }
}

/* ---- instruction sets ---- */

static void features_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        unsigned bits;
    } lists[] = {{NULL, 0},
                 {"", 0},
                 {"avx2", RUNG_CPU_AVX2},
                 {"avx512", RUNG_CPU_AVX512},
                 {"neon", RUNG_CPU_NEON},
                 {"avx2,avx512", RUNG_CPU_AVX2 | RUNG_CPU_AVX512},
                 {"avx512,avx2,neon", RUNG_CPU_AVX2 | RUNG_CPU_AVX512 | RUNG_CPU_NEON},
                 {"avx2,", RUNG_CPU_AVX2},
                 {",avx2", RUNG_CPU_AVX2 | RUNG_CPU_UNKNOWN},
                 {"avx", RUNG_CPU_AVX},
                 {"avx,avx2", RUNG_CPU_AVX | RUNG_CPU_AVX2},
                 {"av", RUNG_CPU_UNKNOWN},
                 {"avx22", RUNG_CPU_UNKNOWN},
                 {"avx5122", RUNG_CPU_UNKNOWN},
                 {"AVX2", RUNG_CPU_UNKNOWN},
                 {"avx3", RUNG_CPU_UNKNOWN},
                 {"avx513", RUNG_CPU_UNKNOWN},
                 {"neo", RUNG_CPU_UNKNOWN},
                 {"neom", RUNG_CPU_UNKNOWN},
                 {"none", RUNG_CPU_UNKNOWN}};
    unsetenv("RUNG_CPU_FEATURES");
    const unsigned all = rung_cpu_features();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *names = lists[i].names;
        assert_int_equal(rung_cpu_feature_bits(names), lists[i].bits);
        if (!names)
            continue;
        setenv("RUNG_CPU_FEATURES", names, 1);
        const int is_known = !(lists[i].bits & RUNG_CPU_UNKNOWN) || strcmp(names, "none") == 0;
        assert_int_equal(rung_cpu_check_features(), is_known ? RUNG_SUCCESS : RUNG_INVALID_ARGUMENT);
        if (!is_known) {
            char words[160];
            snprintf(words, sizeof words,
                     "RUNG_CPU_FEATURES is '%s': set it to avx512, avx2, avx, neon (several with commas between) or "
                     "none, or "
                     "unset it",
                     names);
            assert_string_equal(rung_last_error(), words);
            continue;
        }
        unsigned kept = lists[i].bits & RUNG_CPU_KNOWN;
        if (kept & RUNG_CPU_AVX512) /* each needs the one before */
            kept |= RUNG_CPU_AVX2;
        if (kept & RUNG_CPU_AVX2)
            kept |= RUNG_CPU_AVX;
        assert_int_equal(rung_cpu_features(), names[0] ? all & kept : all);
    }
    unsetenv("RUNG_CPU_FEATURES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches_are_those_of_the_first_cpu),
        cmocka_unit_test(what_tells_nothing_of_a_cache_is_passed_over),
        cmocka_unit_test(a_processor_can_be_named),
        cmocka_unit_test(as_many_as_the_mask_has),
        cmocka_unit_test(a_line_of_a_quota),
        cmocka_unit_test(the_group_is_the_processs_own),
        cmocka_unit_test(the_tightest_limit_counts),
        cmocka_unit_test(features_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
