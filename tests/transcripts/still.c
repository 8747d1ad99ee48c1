/* A still machine. Preloaded before the command, it answers what differs from run to run and from machine to machine:
 * time goes by as products and sums are computed, at a rate that each kernel has, a little more or less at each call
 * and now and then by half as much again; the system takes the core away at every 29th look; files of /proc and /sys,
 * libraries of GPUs and of other BLAS, and tools in their usual places, are those in STILL_ROOT. librung itself keeps
 * the real clock, by which its threads wait. */
#define _GNU_SOURCE
#include "core/plain.h"
#include "rung_multi.h"
#include "rung_tools.h"

#include <dlfcn.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CPUS = 4, L3_BYTES = 16 << 20, DAY = 1767323045 /* 2026-01-02 03:04:05 */ };

/* Finds the function that stands behind one of these. */
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static int asleep; /* in a compiler and a shell, which a command starts */
static __thread uint64_t state = 1, now_ns = 1000000000000, captured_ns;
static __thread int capturing;

__attribute__((constructor)) static void look_around(void)
{
    char self[4096] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    asleep = length <= 0 || strncmp(self, "/usr/", 5) == 0 || strncmp(self, "/bin/", 5) == 0;
}

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* So long did something take, within 2 %; every 17th time or so half as long again. */
void still_work(double us);
void still_work(double us)
{
    double noisy = us * (0.98 + 1e-5 * draw(4000)) * (draw(17) ? 1.0 : 1.5);
    *(capturing ? &captured_ns : &now_ns) += (uint64_t)(noisy * 1e3);
}

/* Returns a rate, in millions a second, between half and one and a half of `rate`: each name has its own. */
static double rate_of(const char *name, double rate)
{
    unsigned hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return rate * (0.5 + hash % 1000 * 1e-3);
}

static int is_library(void *caller)
{
    Dl_info where;
    return dladdr(caller, &where) && strstr(where.dli_fname, "librung.so");
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (asleep || is_library(__builtin_return_address(0)))
        return (int)syscall(SYS_clock_gettime, clock, t);
    now_ns += 20000 + draw(10000);
    t->tv_sec = (time_t)(now_ns / 1000000000) + (clock == CLOCK_REALTIME ? DAY : 0);
    t->tv_nsec = (long)(now_ns % 1000000000);
    return 0;
}

time_t time(time_t *at)
{
    if (asleep)
        return REAL(time)(at);
    if (at)
        *at = DAY;
    return DAY;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    static __thread long looks;
    int code = (int)syscall(SYS_getrusage, who, usage);
    if (!asleep)
        usage->ru_nivcsw = ++looks / 29;
    return code;
}

long sysconf(int name)
{
    const char *cpus = getenv("STILL_CPUS"); /* of another machine */
    if (!asleep && name == _SC_NPROCESSORS_ONLN)
        return cpus ? atol(cpus) : CPUS;
    if (!asleep && name == _SC_LEVEL3_CACHE_SIZE)
        return L3_BYTES;
    return REAL(sysconf)(name);
}

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    (void)process;
    memset(set, 0, bytes);
    for (int i = 0; i < CPUS; i++)
        CPU_SET_S(i, bytes, set);
    return 0;
}

int sched_getscheduler(pid_t process)
{
    const char *policy = getenv("STILL_POLICY");
    (void)process;
    return policy ? atoi(policy) : SCHED_OTHER;
}

int gethostname(char *name, size_t bytes)
{
    snprintf(name, bytes, "still");
    return 0;
}

static const char *moved(const char *path, char *to, size_t bytes)
{
    static const char *const places[] = {"/proc/cpuinfo", "/proc/meminfo", "/proc/self/cgroup", "/sys/",
                                         "/usr/share/javascript/"};
    const char *root = getenv("STILL_ROOT");
    for (size_t i = 0; !asleep && root && i < sizeof places / sizeof places[0]; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0) {
            snprintf(to, bytes, "%s%s", root, path);
            return to;
        }
    return path;
}

FILE *fopen(const char *path, const char *mode)
{
    char to[4096];
    return REAL(fopen)(moved(path, to, sizeof to), mode);
}

int access(const char *path, int mode)
{
    return REAL(access)(!asleep && strncmp(path, "/usr/local/", 11) == 0 ? "/nowhere" : path, mode);
}

/* Toolkits and tools that are looked for in their usual places are those in STILL_ROOT. */
int glob(const char *pattern, int flags, int (*failed)(const char *path, int error), glob_t *found)
{
    const char *root = getenv("STILL_ROOT");
    const int usual = strncmp(pattern, "/usr/local/", 11) == 0 || strncmp(pattern, "/opt/", 5) == 0;
    char to[4096];
    snprintf(to, sizeof to, "%s%s", asleep || !root || !usual ? "" : root, pattern);
    return REAL(glob)(to, flags, failed, found);
}

/* Libraries that the loader would look for by name are those in STILL_ROOT; what packages and vendors have installed is
 * not there. */
void *dlopen(const char *file, int flags)
{
    static const char *const names[] = {"libcuda",  "libnvidia", "libnccl", "libcublas", "libopenblas",
                                        "openblas", "libblis",   "libmkl",  "libmpi",    "librung_mpi"};
    static const char *const places[] = {"/usr/", "/opt/", "/root/"};
    const char *root = getenv("STILL_ROOT");
    char to[4096];
    if (asleep || !file || !root || flags & RTLD_NOLOAD)
        return REAL(dlopen)(file, flags);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0) {
            snprintf(to, sizeof to, "%s/lib/%s", root, file);
            return REAL(dlopen)(to, flags);
        }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strncmp(file, places[i], strlen(places[i])) == 0 && strncmp(file, root, strlen(root)) != 0 &&
            !strstr(file, "/build/"))
            return REAL(dlopen)("/nowhere", flags);
    return REAL(dlopen)(file, flags);
}

/* ---- work ---- */

static double flops(const rung_gemm *g)
{
    return 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)(g->batch > 1 ? g->batch : 1);
}

rung_status rung_plan_run(rung_plan *plan, const rung_gemm *g)
{
    const char *kernel = rung_plan_kernel(plan);
    int gpu = kernel[0] == 'l' || kernel[0] == 's';
    rung_status status = REAL(rung_plan_run)(plan, g);
    const char *slow = getenv("STILL_SLOWER"); /* so many times */
    still_work((gpu ? 3.0 : 0.3) + flops(g) * (slow ? atof(slow) : 1.0) / rate_of(kernel, gpu ? 200.0 : 10000.0));
    return status;
}

rung_status rung_ssum(rung_context *context, int64_t n, const float *x, float *result)
{
    rung_status status = REAL(rung_ssum)(context, n, x, result);
    still_work(0.3 + 4.0 * (double)n / 8000.0);
    return status;
}

/* With STILL_CHIP the GPU is another one, whose memory and L2 have other sizes in thousands than in units of 1024. */
const rung_tools_machine *rung_tools_describe(const rung_tools *tools)
{
    static rung_tools_machine chip;
    const rung_tools_machine *is = REAL(rung_tools_describe)(tools);
    if (asleep || !getenv("STILL_CHIP"))
        return is;
    chip = *is;
    snprintf(chip.name, sizeof chip.name, "a chip of 2020");
    chip.arch = 80, chip.sms = 108, chip.clock_ghz = 1.41, chip.driver_version = 12080;
    chip.memory_bytes = 85031714816, chip.l2_bytes = 40 << 20;
    return &chip;
}

rung_status rung_tools_reduce(rung_tools *tools, const char *kernel, int64_t n, const float *x, float *result)
{
    rung_status status = REAL(rung_tools_reduce)(tools, kernel, n, x, result);
    still_work(3.0 + 4.0 * (double)n / rate_of(kernel, 500.0));
    return status;
}

/* A learner's kernel takes so long that few launches are a measurement. */
rung_status rung_tools_own_gemm(rung_tools *tools, void *function, const rung_tools_own *own)
{
    rung_status status = REAL(rung_tools_own_gemm)(tools, function, own);
    still_work(1e4 * own->parts);
    return status;
}

rung_status rung_tools_capture_begin(rung_tools *tools)
{
    capturing = 1;
    captured_ns = 0;
    return REAL(rung_tools_capture_begin)(tools);
}

rung_status rung_tools_capture_end(rung_tools *tools, void **graph)
{
    capturing = 0;
    return REAL(rung_tools_capture_end)(tools, graph);
}

rung_status rung_tools_graph_launch(rung_tools *tools, void *graph)
{
    rung_status status = REAL(rung_tools_graph_launch)(tools, graph);
    still_work((double)captured_ns * 1e-3);
    return status;
}

rung_status rung_psgemm(rung_multi *multi, rung_transpose trans_a, rung_transpose trans_b, int64_t m, int64_t n,
                        int64_t k, float alpha, const float *const *a, int64_t ia, int64_t ja,
                        const rung_matrix *desc_a, const float *const *b, int64_t ib, int64_t jb,
                        const rung_matrix *desc_b, float beta, float *const *c, int64_t ic, int64_t jc,
                        const rung_matrix *desc_c)
{
    rung_status status = REAL(rung_psgemm)(multi, trans_a, trans_b, m, n, k, alpha, a, ia, ja, desc_a, b, ib, jb,
                                           desc_b, beta, c, ic, jc, desc_c);
    still_work(20.0 + 2.0 * (double)m * (double)n * (double)k / 5000.0 / rung_multi_ranks(multi));
    return status;
}

rung_status rung_multi_sgemm(rung_multi *multi, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                             int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                             int64_t ldb, float beta, float *c, int64_t ldc)
{
    rung_status status =
        REAL(rung_multi_sgemm)(multi, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    still_work(50.0 + 2.0 * (double)m * (double)n * (double)k / 4000.0 / rung_multi_ranks(multi));
    return status;
}

static __thread int in_sgemm; /* which may go on to rung_gemm_run() */

rung_status rung_sgemm(rung_context *context, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                       int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                       int64_t ldb, float beta, float *c, int64_t ldc)
{
    in_sgemm = 1;
    rung_status status =
        REAL(rung_sgemm)(context, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    in_sgemm = 0;
    still_work(2.0 + 2.0 * (double)m * (double)n * (double)k / 3000.0);
    return status;
}

/* The BLAS drop-in calls the second for a small product, the first for others. */
rung_status rung_gemm_run(rung_context *context, const rung_gemm *g)
{
    rung_status status = REAL(rung_gemm_run)(context, g);
    if (!in_sgemm)
        still_work(2.0 + flops(g) / 3000.0);
    return status;
}

rung_status rung_small_run(rung_context *context, const rung_plain *s)
{
    rung_status status = REAL(rung_small_run)(context, s);
    still_work(2.0 + 2.0 * (double)s->m * (double)s->n * (double)s->k / 3000.0);
    return status;
}

static int by_rank(const void *left, const void *right)
{
    const rung_span *a = left, *b = right;
    int lanes = strcmp(a->lane, b->lane);
    return a->rank != b->rank ? a->rank - b->rank : lanes ? lanes : strcmp(a->what, b->what);
}

/* In an order that no thread's haste changes, each span 7 us long and 10 after the one before. */
int rung_multi_spans(const rung_multi *multi, const rung_span **spans)
{
    static rung_span still[512];
    int count = REAL(rung_multi_spans)(multi, spans);
    if (count > 512)
        return count;
    memcpy(still, *spans, (size_t)count * sizeof *still);
    qsort(still, (size_t)count, sizeof *still, by_rank);
    for (int i = 0; i < count; i++) {
        still[i].start_us = 10.0 * i;
        still[i].stop_us = 10.0 * i + 7.0;
    }
    *spans = still;
    return count;
}
